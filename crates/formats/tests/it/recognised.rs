//! Every recording is known by its first frames, and taken for nothing else.

use formats::detect::{Detector, Unsure};
use formats::registry::FORMATS;

use crate::fixtures::recordings;

/// Recordings that nobody can be sure of, and why.
const UNSURE: &[(&str, Unsure)] = &[
    // An SDK took the types away.
    ("claude/agent_sdk", Unsure::Unknown),
];

#[test]
fn recordings_are_recognised() {
    let mut wrong = Vec::new();
    for format in FORMATS
        .iter()
        .filter(|it| it.reader.is_some() && it.name != "linkspan")
    {
        for recording in recordings(format.name) {
            let name = format!("{}/{}", format.name, recording.name);
            let expected = UNSURE.iter().find(|it| it.0 == name);
            let expected = expected.map_or(Ok(format.name), |it| Err(it.1.clone()));
            let mut detector = Detector::default();
            let verdict = detector.push(&recording.bytes);
            let verdict = verdict.unwrap_or_else(|| detector.end()).map(|it| it.name);
            if verdict != expected {
                wrong.push(format!("{name}: {verdict:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
