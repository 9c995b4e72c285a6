//! An event of an agent to append.

use journal::Lease;
use model::{Body, Event, Level, Notice, Origin, RunId, Text};

pub(crate) fn notice<'a>(
    lease: &'a Lease,
    seq: u64,
    run: Option<&'a str>,
    code: &'static str,
    text: &'a str,
) -> Event<'a> {
    Event {
        seq,
        at: None,
        session: lease.session.by_ref(),
        run: run.map(RunId::new),
        engine: "claude".into(),
        path: Vec::new().into(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Vec::new().into(),
        body: Body::NoticeRaised(Notice {
            level: Level::Info,
            code: code.into(),
            text: Text::new(text),
            item: None,
            detail: None,
        }),
    }
}
