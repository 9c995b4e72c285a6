//! Random histories: all engines give the same answers, and acknowledged events are there in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Deltas, Entry, Error, Journal, Lease, NewSession, Owner, Read, Retention,
    Scope, SessionQuery, State, Takeover, WriteId,
};
use model::{Binding, Body, Decision, Outcome, RunId, SessionId};
use tokio::sync::Mutex;

use crate::database::Database;
use crate::harness::{
    Dice, Engine, Harness, TTL, ask_opened, bound, delta, ended, entries, event, everything, note,
    settled, started,
};

const HISTORIES: u64 = 24;
const STEPS: usize = 120;

#[tokio::test]
async fn sqlite_answers_as_memory_does() {
    compare(Engine::Sqlite, HISTORIES, str::to_owned).await;
}

#[tokio::test]
async fn postgres_answers_as_memory_does() {
    if Database::is_installed() {
        compare(Engine::Postgres, HISTORIES / 4, without_times).await;
    }
}

/// Lets two engines live through the same histories; `shown` is what of their answers has to be the same.
async fn compare(engine: Engine, n_histories: u64, shown: fn(&str) -> String) {
    for seed in 1..=n_histories {
        let memory = Harness::new(Engine::Memory).await;
        let other = Harness::new(engine).await;
        let mut dice = Dice::new(seed);
        let mut history = History::default();
        for step in 0..STEPS {
            let act = history.draw(&mut dice);
            let (expected, leased) = perform(&memory, &act).await;
            let (answer, _) = perform(&other, &act).await;
            let (answer, expected) = (shown(&answer), shown(&expected));
            assert_eq!(answer, expected, "seed {seed}, step {step}: {act:?}");
            history.leases.extend(leased);
        }
    }
}

/// A database has a clock of its own, and leaves out numbers of the list.
fn without_times(answer: &str) -> String {
    let mut shown = String::new();
    let mut rest = answer;
    while let Some((at, mark)) = ["Timestamp(", "activity: "]
        .iter()
        .filter_map(|it| Some((rest.find(it)?, it)))
        .min()
    {
        let (before, after) = rest.split_at(at + mark.len());
        shown.push_str(before);
        rest = after.trim_start_matches(|it: char| it == '-' || it.is_ascii_digit());
    }
    shown + rest
}

/// Something a caller may do, right or wrong.
#[derive(Debug)]
enum Act {
    Create(NewSession),
    Acquire(SessionId<'static>, Owner, Takeover),
    Renew(Lease),
    Release(Lease),
    Append(Lease, Batch),
    Read(SessionId<'static>, Read),
    Command(SessionId<'static>, CommandBody),
    Settle(SessionId<'static>, u64),
    Retain(Retention),
    List(SessionQuery, u32),
    Rename(SessionId<'static>, String),
    Look(SessionId<'static>),
    Pass(Duration),
}

#[derive(Default)]
struct History {
    /// Every lease that was ever granted, so that old ones are tried too.
    leases: Vec<Lease>,
    /// Where the drawer believes each log stands; mostly right.
    heads: BTreeMap<String, u64>,
}

impl History {
    fn draw(&mut self, dice: &mut Dice) -> Act {
        let session = SessionId::new(format!("s{}", dice.below(3)));
        let owner = Owner::new(format!("o{}", dice.below(3)));
        match dice.below(24) {
            0..=2 => Act::Create(NewSession {
                home: journal::Node::default(),
                id: session,
                engine: ["claude", "codex"][dice.below(2) as usize].to_owned(),
                cwd: None,
                title: Some(format!("Title {}", dice.below(3))),
                parent: None,
            }),
            3..=4 => {
                let takeover = match dice.below(2) {
                    0 => Takeover::Lapsed,
                    _ => Takeover::Dead(Owner::new(format!("o{}", dice.below(3)))),
                };
                Act::Acquire(session, owner, takeover)
            }
            5 => self.lease(dice).map_or(Act::Look(session), Act::Renew),
            6 => self.lease(dice).map_or(Act::Look(session), Act::Release),
            7..=13 => match self.lease(dice) {
                Some(lease) => self.append(dice, lease),
                None => Act::Look(session),
            },
            14..=15 => Act::Read(
                session,
                Read {
                    after: dice.below(20),
                    deltas: [Deltas::Keep, Deltas::Skip][dice.below(2) as usize],
                    max_events: dice.below(5) as u32,
                    max_bytes: dice.below(1000) as usize,
                },
            ),
            16 => Act::Command(session, CommandBody::Prompt(Bytes::from_static(b"go"))),
            17 => Act::Settle(session, dice.below(20)),
            18 => Act::Retain(Retention {
                age: None,
                sessions: Some(dice.below(4)),
                bytes: None,
            }),
            19 => Act::List(
                SessionQuery {
                    home: None,
                    engine: None,
                    text: (dice.below(2) == 0).then(|| format!("title {}", dice.below(3))),
                    state: [None, Some(State::Running), Some(State::Waiting)]
                        [dice.below(3) as usize],
                },
                dice.below(3) as u32,
            ),
            20 => Act::Rename(session, format!("title {}", dice.below(3))),
            21..=22 => Act::Look(session),
            _ => Act::Pass(TTL * dice.below(3) as u32 / 2),
        }
    }

    /// Mostly the newest.
    fn lease(&self, dice: &mut Dice) -> Option<Lease> {
        let back = [0, 0, 0, 1, 2, 3][dice.below(6) as usize];
        self.leases.iter().rev().nth(back).cloned()
    }

    fn append(&mut self, dice: &mut Dice, lease: Lease) -> Act {
        let head = self.heads.entry(lease.session.to_string()).or_default();
        *head = (*head).max(lease.head);
        let first = match dice.below(10) {
            0 => dice.below(20),
            _ => *head + 1,
        };
        let n_events = dice.below(4);
        let bodies = (0..n_events).map(|_| body(dice)).collect();
        let entries = entries(&lease, first, bodies);
        *head = first + n_events.max(1) - 1;
        let done = (0..dice.below(2)).map(|_| dice.below(5)).collect();
        Act::Append(lease, Batch::new(entries).with_done(done))
    }
}

fn body(dice: &mut Dice) -> Body<'static> {
    match dice.below(12) {
        0..=1 => started(),
        2..=3 => ended(Outcome::Completed),
        4 => ask_opened("ask"),
        5 => settled("ask", Decision::Allowed),
        6 => bound("native", Binding::Init),
        7..=8 => delta("piece"),
        _ => note("note"),
    }
}

/// The journal's answer, and the lease if it granted one.
async fn perform(harness: &Harness, act: &Act) -> (String, Option<Lease>) {
    let journal = &harness.journal;
    let answer = match act {
        Act::Create(new) => summary(&journal.create(new.clone()).await),
        Act::Acquire(session, owner, takeover) => {
            let lease = journal.acquire(session, owner, TTL, takeover.clone()).await;
            return (summary(&lease), lease.ok());
        }
        Act::Renew(lease) => summary(&journal.renew(lease, TTL).await),
        Act::Release(lease) => summary(&journal.release(lease).await),
        Act::Append(lease, batch) => summary(&journal.append(lease, batch.clone()).await),
        Act::Read(session, read) => {
            let frames = journal.frames(session, *read).await;
            summary(&journal.read(session, *read).await) + &summary(&frames)
        }
        Act::Command(session, order) => summary(
            &journal
                .command(session, WriteId::new(), order.clone())
                .await,
        ),
        Act::Settle(session, seq) => summary(
            &journal
                .settle(session, *seq, WriteId::new(), Bytes::new())
                .await,
        ),
        Act::Retain(retention) => summary(&journal.retain(*retention).await),
        Act::List(query, limit) => summary(&journal.list(query.clone(), None, *limit).await),
        Act::Rename(session, title) => summary(&journal.rename(session, title.clone()).await),
        Act::Look(session) => snapshot(harness, session).await,
        Act::Pass(duration) => {
            harness.pass(*duration);
            String::new()
        }
    };
    (answer, None)
}

async fn snapshot(harness: &Harness, session: &SessionId<'static>) -> String {
    let journal = &harness.journal;
    let native = SessionId::new("native");
    [
        summary(&journal.find_session(session).await),
        summary(&journal.find_native(&native).await),
        summary(&journal.find_run(&RunId::new("run")).await),
        summary(&journal.runs(session, None, 10).await),
        summary(&journal.commands(session, 0).await),
        summary(&journal.open_runs(None).await),
        summary(&journal.asks(None).await),
    ]
    .join("\n")
}

fn summary<T: std::fmt::Debug>(answer: &Result<T, Error>) -> String {
    format!("{answer:?}")
}

/// Owners that take the session from each other while they write, and followers that read along.
#[tokio::test]
async fn owners_that_fight_leave_one_log_without_a_gap() {
    for engine in Engine::all() {
        let harness = Harness::new(engine).await;
        harness.create("s").await;
        let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
        let mut owners = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (journal, acknowledged) = (harness.journal.clone(), Arc::clone(&acknowledged));
            owners.spawn(fight(journal, n, acknowledged));
        }
        let mut followers = tokio::task::JoinSet::new();
        for _ in 0..3 {
            followers.spawn(follow(harness.journal.clone()));
        }
        owners.join_all().await;
        let mut lease = None;
        while lease.is_none() {
            harness.pass(TTL);
            lease = harness.acquire("s", "last").await.ok();
        }
        let lease = lease.unwrap();
        let last = vec![ended_by_all()];
        harness.append(&lease, lease.head + 1, last).await.unwrap();

        let page = harness.read("s").await;
        let numbers: Vec<_> = page.events.iter().map(|it| it.seq).collect();
        assert_eq!(numbers, (1..=page.head).collect::<Vec<_>>());
        let stored: BTreeMap<_, _> = page
            .events
            .iter()
            .map(|it| (it.seq, it.line.clone()))
            .collect();
        let mut acknowledged = acknowledged.lock().await.clone();
        acknowledged.insert(page.head, stored[&page.head].clone());
        assert_eq!(acknowledged, stored);
        for seen in followers.join_all().await {
            assert_eq!(seen, numbers);
        }
    }
}

fn ended_by_all() -> Body<'static> {
    note("the last event")
}

type Acknowledged = Arc<Mutex<BTreeMap<u64, Bytes>>>;

async fn fight(journal: Arc<dyn Journal>, n: u64, acknowledged: Acknowledged) {
    let mut dice = Dice::new(n + 77);
    let session = SessionId::new("s");
    let owner = Owner::new(format!("fighter {n}"));
    for _ in 0..10 {
        let rival = Owner::new(format!("fighter {}", dice.below(6)));
        let takeover = Takeover::Dead(rival);
        let Ok(lease) = journal.acquire(&session, &owner, TTL, takeover).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut head = lease.head;
        for _ in 0..dice.below(8) {
            let numbers = head + 1..=head + 1 + dice.below(3);
            let text = format!("{n} in epoch {}", lease.epoch);
            let entries: Vec<_> = numbers
                .map(|seq| Entry::of(&event(&lease, seq, note(&text)), None).unwrap())
                .collect();
            let batch = Batch::new(entries.clone());
            match journal.append(&lease, batch).await {
                Ok(range) => head = range.end - 1,
                Err(Error::Fenced { .. }) => break,
                Err(err) => panic!("{err}"),
            }
            let lines = entries.iter().map(|it| (it.seq(), it.line()));
            acknowledged.lock().await.extend(lines);
        }
    }
}

/// Reads from hint to hint until the last event; the numbers it saw.
async fn follow(journal: Arc<dyn Journal>) -> Vec<u64> {
    let session = SessionId::new("s");
    let mut watch = journal.watch(Scope::Session(session.clone()));
    let mut seen = Vec::new();
    loop {
        assert!(watch.changed().await);
        let after = seen.last().copied().unwrap_or(0);
        let page = journal.read(&session, everything(after)).await.unwrap();
        seen.extend(page.events.iter().map(|it| it.seq));
        if page
            .events
            .last()
            .is_some_and(|it| it.line.ends_with(b"\"the last event\"}}"))
        {
            return seen;
        }
    }
}
