//! The placeholder for a damaged event.
//!
//! Readers of a log get it as an ordinary event under the missing number: a page, a follower or a
//! transcript reports what is missing and continues.

use std::borrow::Cow;

use model::{Body, BodyKind, Event, Level, Notice, Origin, SessionId, Text, Timestamp, Why};

use crate::entry::Stored;
use crate::error::Damage;

/// The code for programs.
const CODE: &str = "damaged";

/// `at` is the time of the event before it: its own is not to be trusted.
pub(crate) fn placeholder(session: &SessionId<'_>, seq: u64, at: Timestamp) -> Stored {
    let text = format!(
        "{} is damaged in the journal and not shown; `linkspan doctor` says what else is",
        Damage::Event(seq)
    );
    let event = Event {
        seq,
        at: Some(at),
        session: session.by_ref(),
        run: None,
        engine: Cow::Borrowed("linkspan"),
        path: Cow::Borrowed(&[]),
        origin: Origin::Linkspan,
        frame: None,
        native: None,
        why: Some(Why::Damaged),
        extra: Vec::new().into(),
        body: Body::NoticeRaised(Notice {
            level: Level::Error,
            code: Cow::Borrowed(CODE),
            text: Text::new(&text),
            item: None,
            detail: None,
        }),
    };
    let line = serde_json::to_vec(&event).expect("a notice is plain data with string keys");
    Stored {
        seq,
        at,
        kind: BodyKind::NoticeRaised,
        line: line.into(),
        cut: 0,
        is_damaged: true,
    }
}
