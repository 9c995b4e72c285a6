//! Every recording is known by its first frames, and taken for nothing else.

use formats::detect::Detector;
use formats::framing::{Framer, clean};
use formats::registry::FORMATS;
use model::Frame;

use crate::fixtures::recordings;

#[test]
fn recordings_are_recognised() {
    let mut wrong = Vec::new();
    for format in FORMATS
        .iter()
        .filter(|it| it.reader.is_some() && it.name != "linkspan")
    {
        for recording in recordings(format.name) {
            let name = format!("{}/{}", format.name, recording.name);
            let mut detector = Detector::default();
            let verdict = detector.push(&recording.bytes);
            let verdict = verdict.unwrap_or_else(|| detector.end()).map(|it| it.name);
            if verdict != Ok(format.name) {
                wrong.push(format!("{name}: {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_frame_is_taken_for_another_format() {
    let mut wrong = Vec::new();
    for format in FORMATS
        .iter()
        .filter(|it| it.reader.is_some() && it.name != "linkspan")
    {
        for recording in recordings(format.name) {
            let mut n = 0;
            let mut look = |frame: Frame<'_>| {
                n += 1;
                let Frame::Data(data) = frame else { return };
                let text = clean(data).text;
                let others = FORMATS.iter().filter(|it| it.name != format.name);
                for other in others.filter(|it| (it.recognises)(&text)) {
                    let name = &recording.name;
                    wrong.push(format!("{}/{name} {n}: {}", format.name, other.name));
                }
            };
            let mut framer = Framer::default();
            framer.push(&recording.bytes, &mut look);
            framer.end(&mut look);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
