//! The framer of server-sent events: the chunking does not matter and nothing outgrows the limit.

#![no_main]

use formats::framing::{HEAD_KEPT, Sse};
use libfuzzer_sys::fuzz_target;
use model::Frame;

fuzz_target!(|data: &[u8]| {
    let [limit, cut, stream @ ..] = data else {
        return;
    };
    let limit = usize::from(*limit);
    let whole = frames(limit, [stream]);
    assert_eq!(whole, frames(limit, fuzz::chunks(stream, *cut)));
});

#[derive(Debug, PartialEq)]
enum Seen {
    Data(Vec<u8>),
    Oversized(u64, Vec<u8>),
}

fn frames<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut sse = Sse::with_limit(limit);
    let mut seen = Vec::new();
    let mut note = |frame: Frame<'_>| {
        seen.push(match frame {
            Frame::Data(data) => {
                assert!(!data.contains(&b'\n'), "a frame is one line");
                assert!(data.len() <= limit);
                Seen::Data(data.to_vec())
            }
            Frame::Oversized { length, head } => {
                assert!(length > limit as u64 && head.len() <= HEAD_KEPT);
                Seen::Oversized(length, head.to_vec())
            }
        });
    };
    for chunk in chunks {
        sse.push(chunk, &mut note);
    }
    sse.end(&mut note);
    seen
}
