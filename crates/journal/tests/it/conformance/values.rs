//! Every string and every length that the model allows comes back as it went in.

use bytes::Bytes;
use journal::{Batch, CommandBody, Entry, NewSession, Node, SessionQuery, WriteId};
use model::{Binding, Decision, RunId, SessionId};

use super::for_every_engine;
use crate::harness::{
    Engine, Harness, ask_opened, bound, event, everything, note, settled, started,
};

for_every_engine!(
    strings_that_databases_dislike_come_back,
    long_lines_and_frames_come_back,
    a_name_that_fits_no_index_breaks_nothing,
);

/// A NUL, what is no character, both ends of the planes, and what looks like an escape of them.
const ODD: &str =
    "nul \0, \u{FFFF}, \u{FFFF}0, \u{10FFFF}, \u{E000}, \\u0000, \\x00 'quoted' $1 %s";

async fn strings_that_databases_dislike_come_back(engine: Engine) {
    let harness = Harness::new(engine).await;
    let new = NewSession {
        id: SessionId::new(ODD),
        home: Node::default(),
        engine: ODD.to_owned(),
        cwd: Some(ODD.to_owned()),
        title: Some(ODD.to_owned()),
        parent: None,
    };
    harness.journal.create(new).await.unwrap();
    let lease = harness.acquire(ODD, ODD).await.unwrap();
    let bodies = [
        started(),
        bound(ODD, Binding::Init),
        ask_opened(ODD),
        note(ODD),
    ];
    let entry = |(seq, body)| {
        let mut event = event(&lease, seq, body);
        event.run = Some(RunId::new(ODD));
        Entry::of(&event, Some(Bytes::from_static(ODD.as_bytes()))).unwrap()
    };
    let entries: Vec<_> = (1..).zip(bodies).map(entry).collect();
    let lines: Vec<_> = entries.iter().map(Entry::line).collect();
    let batch = Batch::new(entries);
    harness.journal.append(&lease, batch).await.unwrap();
    let read = harness.read(ODD).await.events.into_iter();
    assert_eq!(read.map(|it| it.line).collect::<Vec<_>>(), lines);

    let journal = &harness.journal;
    let session = journal.find_native(&SessionId::new(ODD)).await.unwrap();
    let session = session.unwrap();
    let strings = [
        &session.engine,
        &session.cwd.unwrap(),
        &session.title.unwrap(),
    ];
    assert_eq!(
        (session.id.as_str(), strings),
        (ODD, [ODD; 3].map(str::to_owned).each_ref())
    );
    let run = journal.find_run(&RunId::new(ODD)).await.unwrap().unwrap();
    assert_eq!(run.run.as_str(), ODD);
    let asks = journal.asks(None).await.unwrap();
    assert_eq!((asks[0].ask.as_str(), &asks[0].line), (ODD, &lines[2]));
    let query = SessionQuery {
        text: Some(ODD.to_owned()),
        engine: Some(ODD.to_owned()),
        ..SessionQuery::default()
    };
    let found = journal.list(query, None, 10).await.unwrap();
    assert_eq!(found.sessions.len(), 1);

    let order = CommandBody::Prompt(Bytes::from_static(ODD.as_bytes()));
    let command = journal.command(&lease.session, WriteId::new(), order.clone());
    command.await.unwrap();
    let commands = journal.commands(&lease.session, 0).await.unwrap();
    assert_eq!(commands[0].order, order);
    let bodies = vec![settled(ODD, Decision::Denied)];
    harness.append(&lease, 5, bodies).await.unwrap();
    assert_eq!(journal.asks(None).await.unwrap(), []);
}

async fn long_lines_and_frames_come_back(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let text = "0123456789abcdef".repeat(1 << 20);
    let frame = Bytes::from(vec![0xFF; 4 << 20]);
    let entry = Entry::of(&event(&lease, 1, note(&text)), Some(frame.clone())).unwrap();
    let line = entry.line();
    let batch = Batch::new(vec![entry]);
    assert_eq!(harness.journal.append(&lease, batch).await.unwrap(), 1..2);
    harness.append(&lease, 2, vec![note("x")]).await.unwrap();
    let read = everything(0);
    let page = harness.journal.read(&lease.session, read).await.unwrap();
    // Not compared by a macro, which would print them.
    assert!(page.events.len() == 2 && page.events[0].line == line);
    let frames = harness.journal.frames(&lease.session, read).await.unwrap();
    assert!(frames.len() == 1 && frames[0].bytes == frame);
}

/// A database has a longest key. An agent that names its session by a longer one loses that batch, and neither
/// what is stored nor what comes next.
async fn a_name_that_fits_no_index_breaks_nothing(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let long: String = (0..4000_u32)
        .map(|n| char::from_digit(n * n * 7 % 36, 36).unwrap())
        .collect();
    let bodies = vec![bound(&long, Binding::Init)];
    let next = match harness.append(&lease, 1, bodies).await {
        Ok(()) => 2,
        Err(journal::Error::TooLarge { .. }) => 1,
        Err(err) => panic!("{err:?}"),
    };
    harness.append(&lease, next, vec![note("x")]).await.unwrap();
    assert_eq!(harness.find("s").await.head, next);
}
