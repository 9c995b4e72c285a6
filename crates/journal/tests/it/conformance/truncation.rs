//! With the option set, long strings are shortened with a mark.

use bytes::Bytes;
use journal::{Batch, Entry, Truncate};
use model::{Body, Event};

use super::for_every_engine;
use crate::harness::{Engine, Harness, event, everything, note};

for_every_engine!(
    nothing_is_cut_by_default,
    what_is_cut_is_marked_and_still_an_event,
);

async fn nothing_is_cut_by_default(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let long = "x".repeat(1 << 20);
    harness.append(&lease, 1, vec![note(&long)]).await.unwrap();
    let stored = harness.read("s").await.events.remove(0);
    assert_eq!(stored.cut, 0);
    assert!(stored.line.len() > 1 << 20);
}

async fn what_is_cut_is_marked_and_still_an_event(engine: Engine) {
    let harness = Harness::with_cut(engine, Some(Truncate::above(2000))).await;
    let lease = harness.lease("s").await;
    let long = "é\n".repeat(5000);
    let entry = Entry::of(
        &event(&lease, 1, note(&long)),
        Some(Bytes::from(vec![b'f'; 3000])),
    )
    .unwrap();
    let length = entry.line().len() as u64;
    let batch = Batch::new(vec![entry]);
    harness.journal.append(&lease, batch).await.unwrap();

    let stored = harness.read("s").await.events.remove(0);
    let line = std::str::from_utf8(&stored.line).unwrap();
    let Body::NoticeRaised(notice) = Event::from_json(line).unwrap().body else {
        panic!("the kind has changed");
    };
    // Five hundred pairs of four bytes fit; the rest of the twenty thousand is gone.
    assert_eq!(
        notice.text.to_str(),
        format!("{}… [18000 bytes cut]", "é\n".repeat(500))
    );
    assert_eq!(stored.cut, 18_000);

    let frame = harness.journal.frames(&lease.session, everything(0)).await;
    let frame = frame.unwrap().remove(0);
    assert_eq!((frame.bytes.len(), frame.cut), (2000, 1000));
    let mark = "… [18000 bytes cut]".len() as u64;
    assert_eq!(harness.find("s").await.bytes, length - 18_000 + mark + 2000);
}
