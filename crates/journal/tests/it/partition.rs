//! A database behind a network that fails: nothing is lost, nothing is stored twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Enqueued, Entry, Error, Fault, Journal, Lease, Owner, Postgres,
    PromptTarget, Removed, Reply, Retention, Takeover, WriteId,
};
use model::{Body, Outcome, RunId, SessionId};
use private_postgres::{Server, Sync};
use tokio::sync::watch;

use crate::database::{Database, config};
use crate::harness::{
    Dice, ask_opened, ended, entries, event, everything, new_session, note, started,
};
use crate::proxy::{Network, Proxy};

pub(crate) const WRITERS: u64 = 6;
const ROUNDS: u64 = 24;
const CRASHES: usize = 3;

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
    check(&journal, written).await;
}

/// A server of its own is killed while others write.
#[tokio::test]
async fn nothing_is_lost_or_doubled_when_the_server_crashes() {
    if !Database::is_installed() {
        return;
    }
    let mut server = Server::start(Sync::Memory).unwrap();
    let journal = Postgres::open(config(&server.url("postgres"))).await;
    let journal = Arc::new(journal.unwrap());
    let mut writers = tokio::task::JoinSet::new();
    let (stop, is_stopped) = watch::channel(false);
    for n in 0..WRITERS {
        writers.spawn(write(Arc::clone(&journal), n, is_stopped.clone()));
    }
    for _ in 0..CRASHES {
        tokio::time::sleep(Duration::from_millis(700)).await;
        server.crash().unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.send_replace(true);
    check(&journal, writers.join_all().await).await;
    let log = server.log();
    let recoveries = log.matches("was not properly shut down");
    assert_eq!(recoveries.count(), CRASHES, "{log}");
}

/// What writers were told is there, once and in order.
pub(crate) async fn check(journal: &Postgres, written: Vec<Written>) {
    for Written {
        session,
        lines,
        n_commands,
    } in written
    {
        assert!(n_commands > 0);
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

/// A call whose first answer is swallowed. The next try finds that it is done.
async fn unanswered<T>(proxy: &Proxy, call: Reply<'_, T>) -> T {
    let n_lost = proxy.n_lost();
    let network = proxy.fail(Network::Deaf, Duration::from_millis(100));
    let (answer, ()) = tokio::join!(call, network);
    assert!(proxy.n_lost() > n_lost);
    answer.unwrap()
}

#[tokio::test]
async fn each_write_whose_answer_is_lost_is_done_once() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let proxy = Proxy::start(database.port(), Network::Whole).await;
    let url = database.url_through(proxy.port);
    let journal = Postgres::open(config(&url)).await.unwrap();
    let (session, owner) = (SessionId::new("s"), Owner::new("owner"));
    let created = unanswered(&proxy, journal.create(new_session("s"))).await;
    assert_eq!(created.activity, 1);
    let ttl = Duration::from_secs(60);
    let acquire = journal.acquire(&session, &owner, ttl, Takeover::Lapsed);
    let lease = unanswered(&proxy, acquire).await;
    assert_eq!(lease.epoch, 1);
    let asking = Batch::new(entries(&lease, 1, vec![started(), ask_opened("a")]));
    let numbers = unanswered(&proxy, journal.append(&lease, asking)).await;
    assert_eq!(numbers, 1..3);
    let plain = Batch::new(entries(&lease, 3, vec![note("x")]));
    let numbers = unanswered(&proxy, journal.append(&lease, plain)).await;
    assert_eq!(numbers, 3..4);
    let prompt = CommandBody::Prompt(Bytes::new());
    let command = journal.command(&session, WriteId::new(), prompt);
    assert_eq!(unanswered(&proxy, command).await, 1);
    let settle = journal.settle(&session, 2, WriteId::new(), Bytes::new());
    assert_eq!(unanswered(&proxy, settle).await, 2);
    let target = PromptTarget::New(new_session("t"));
    let enqueue = journal.enqueue(target, WriteId::new(), Bytes::new());
    let (number, position) = (1, 0);
    let enqueued = unanswered(&proxy, enqueue).await;
    assert_eq!(enqueued, Enqueued { number, position });
    unanswered(&proxy, journal.rename(&session, "title".to_owned())).await;
    unanswered(&proxy, journal.renew(&lease, ttl)).await;
    let found = journal.find_session(&session).await.unwrap().unwrap();
    assert_eq!(
        (found.head, found.queued, found.title.as_deref()),
        (3, 1, Some("title"))
    );
    let only_one = Retention {
        sessions: Some(1),
        ..Retention::default()
    };
    // Both are in use.
    assert_eq!(
        unanswered(&proxy, journal.retain(only_one)).await,
        Removed::default()
    );
    unanswered(&proxy, journal.remove(&lease)).await;
    assert_eq!(journal.find_session(&session).await.unwrap(), None);
    unanswered(&proxy, journal.release(&lease)).await;
}

/// What a writer was told is stored.
pub(crate) struct Written {
    session: SessionId<'static>,
    lines: Vec<Bytes>,
    n_commands: u64,
}

/// Appends runs, some in one batch and some in several, and leaves a command with each, until it is stopped.
pub(crate) async fn write(
    journal: Arc<Postgres>,
    n: u64,
    is_stopped: watch::Receiver<bool>,
) -> Written {
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
            match journal.create(new_session(session.as_str())).await {
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
