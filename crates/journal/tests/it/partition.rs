//! A database behind a network that fails: nothing is lost, nothing is stored twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Entry, Error, Fault, Journal, Lease, NewSession, Node, Owner, Postgres,
    Reply, Takeover, WriteId,
};
use model::{Body, Outcome, RunId, SessionId};
use tokio::sync::watch;

use crate::database::{Database, config};
use crate::harness::{Dice, ended, event, everything, note, started};
use crate::proxy::{Network, Proxy};

const WRITERS: u64 = 6;
const ROUNDS: u64 = 24;

/// Whatever the network does, a write is tried again under its id until it is answered.
async fn insist<'a, T>(write: impl Fn() -> Reply<'a, T>) -> T {
    loop {
        match write().await {
            Ok(done) => return done,
            Err(Error::Storage(Fault::Lost | Fault::Busy | Fault::Io(_))) => (),
            Err(err) => panic!("{err:?}"),
        }
    }
}

fn new(session: &SessionId<'static>) -> NewSession {
    NewSession {
        id: session.clone(),
        home: Node::default(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_when_the_network_fails() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let proxy = Proxy::start(database.port(), Network::Whole).await;
    let url = database.url_through(proxy.port);
    let journal = Arc::new(Postgres::open(config(&url)).await.unwrap());
    let mut writers = tokio::task::JoinSet::new();
    let (stop, is_stopped) = watch::channel(false);
    for n in 0..WRITERS {
        writers.spawn(write(Arc::clone(&journal), n, is_stopped.clone()));
    }
    let mut dice = Dice::new(17);
    for round in 0..ROUNDS {
        tokio::time::sleep(Duration::from_millis(60 + dice.below(120))).await;
        let network = [Network::Cut, Network::Deaf, Network::Stalled][round as usize % 3];
        proxy
            .fail(network, Duration::from_millis(20 + dice.below(80)))
            .await;
    }
    stop.send_replace(true);
    let written = writers.join_all().await;
    assert!(proxy.n_lost() > 0);
    for Written {
        session,
        lines,
        n_commands,
    } in written
    {
        let page = journal.read(&session, everything(0)).await.unwrap();
        let stored: Vec<_> = page.events.into_iter().map(|it| it.line).collect();
        assert!(
            stored == lines,
            "{session}: {} stored, {} written",
            stored.len(),
            lines.len()
        );
        let commands = journal.commands(&session, 0).await.unwrap();
        let numbers: Vec<_> = commands.iter().map(|it| it.number).collect();
        assert_eq!(numbers, (1..=n_commands).collect::<Vec<_>>(), "{session}");
        let runs = journal.runs(&session, None, 1000).await.unwrap();
        assert!(runs.iter().all(|it| it.end.is_some()));
    }
}

/// What a writer was told is stored.
struct Written {
    session: SessionId<'static>,
    lines: Vec<Bytes>,
    n_commands: u64,
}

/// Appends runs, some in one batch and some in several, and leaves a command with each, until it is stopped.
async fn write(journal: Arc<Postgres>, n: u64, is_stopped: watch::Receiver<bool>) -> Written {
    let session = SessionId::new(format!("s{n}"));
    let lease = begin(&journal, &session, n).await;
    let mut written = Written {
        session,
        lines: Vec::new(),
        n_commands: 0,
    };
    let mut dice = Dice::new(n + 1);
    while !*is_stopped.borrow() {
        let run = format!("run {}", written.n_commands);
        let mut bodies = vec![started()];
        bodies.extend((0..dice.below(4)).map(|_| note("x")));
        bodies.push(ended(Outcome::Completed));
        let n_first = dice.below(bodies.len() as u64) as usize;
        let second = bodies.split_off(n_first);
        for bodies in [bodies, second] {
            append(&journal, &lease, &run, bodies, &mut written.lines).await;
        }
        let (id, prompt) = (WriteId::new(), Bytes::from(run));
        let order = CommandBody::Prompt(prompt);
        insist(|| journal.command(&written.session, id, order.clone())).await;
        written.n_commands += 1;
    }
    written
}

async fn begin(journal: &Postgres, session: &SessionId<'static>, n: u64) -> Lease {
    insist(|| {
        Box::pin(async {
            match journal.create(new(session)).await {
                // An earlier try that was given up had been done.
                Err(Error::SessionExists { .. }) => Ok(()),
                created => created.map(drop),
            }
        })
    })
    .await;
    let owner = Owner::new(format!("owner {n}"));
    let ttl = Duration::from_secs(600);
    insist(|| {
        let takeover = Takeover::Dead(owner.clone());
        journal.acquire(session, &owner, ttl, takeover)
    })
    .await
}

async fn append(
    journal: &Postgres,
    lease: &Lease,
    run: &str,
    bodies: Vec<Body<'_>>,
    lines: &mut Vec<Bytes>,
) {
    let entry = |(seq, body)| {
        let mut event = event(lease, seq, body);
        event.run = Some(RunId::new(run));
        Entry::of(&event, None).unwrap()
    };
    let first = lines.len() as u64 + 1;
    let entries: Vec<_> = (first..).zip(bodies).map(entry).collect();
    let stored = entries.iter().map(Entry::line).collect::<Vec<_>>();
    let batch = Batch::new(entries);
    let range = insist(|| journal.append(lease, batch.clone())).await;
    assert_eq!(range, first..first + stored.len() as u64);
    lines.extend(stored);
}
