//! How fast the journal appends beside a bare SQLite loop with the same batching, in alternating rounds.
//!
//! Prints an object for each size of a batch: events of 1 KB a second, by round. `cargo xtask bench serve`
//! makes a table of it; by itself it is `cargo run --release -p linkspan-journal --example rate DIR ROUNDS`.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot continue should stop"
)]

#[path = "shared/notice.rs"]
mod notice;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use journal::{
    Batch, Config, Entry, Journal, Lease, NewSession, Owner, Sqlite, SystemClock, Takeover,
};
use model::SessionId;
use rusqlite::{Connection, params};

use self::notice::notice;

/// Enough of them that one slow sync does not make a round.
const BATCHES: u64 = 400;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, rounds] = &args[..] else {
        panic!("rate DIR ROUNDS");
    };
    let dir = tempfile::tempdir_in(dir).unwrap();
    let rounds: usize = rounds.parse().unwrap();
    for batch in [1, 10, 100] {
        let (mut loops, mut journals) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let path = |name| dir.path().join(format!("{name}-{batch}-{round}.db"));
            loops.push(bare(&path("bare"), batch));
            journals.push(kept(&path("kept"), batch).await);
        }
        println!(r#"{{"batch":{batch},"bare":{loops:?},"journal":{journals:?}}}"#);
    }
}

fn rate(n_events: u64, since: Instant) -> f64 {
    n_events as f64 / since.elapsed().as_secs_f64()
}

/// SQLite without leases, where only the line is stored.
fn bare(path: &Path, batch: u64) -> f64 {
    let mut conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.pragma_update(None, "synchronous", "FULL").unwrap();
    conn.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)")
        .unwrap();
    let lease = lease();
    let started = Instant::now();
    for n in 0..BATCHES {
        let tx = conn.transaction().unwrap();
        for seq in n * batch + 1..=(n + 1) * batch {
            let entry = entry(&lease, seq);
            let line = entry.line();
            let line = std::str::from_utf8(&line).unwrap();
            tx.prepare_cached("INSERT INTO events (seq, line) VALUES (?1, ?2)")
                .unwrap()
                .execute(params![seq as i64, line])
                .unwrap();
        }
        tx.commit().unwrap();
    }
    rate(BATCHES * batch, started)
}

async fn kept(path: &Path, batch: u64) -> f64 {
    let journal = open(path).await;
    let lease = acquire(&journal, "s").await;
    let started = Instant::now();
    for n in 0..BATCHES {
        let entries = (n * batch + 1..=(n + 1) * batch).map(|seq| entry(&lease, seq));
        append(&journal, &lease, entries.collect()).await;
    }
    rate(BATCHES * batch, started)
}

async fn append(journal: &Sqlite, lease: &Lease, entries: Vec<Entry>) {
    let batch = Batch::new(entries);
    journal.append(lease, batch).await.unwrap();
}

async fn open(path: &Path) -> Sqlite {
    let config = Config {
        clock: Arc::new(SystemClock::new()),
        cut: None,
    };
    Sqlite::open(path, config).await.unwrap()
}

async fn acquire(journal: &Sqlite, session: &str) -> Lease {
    let session = SessionId::new(session.to_owned());
    let new = NewSession {
        home: journal::Node::default(),
        id: session.clone(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    journal.create(new).await.unwrap();
    let ttl = std::time::Duration::from_secs(60);
    let owner = Owner::new("rate");
    journal
        .acquire(&session, &owner, ttl, Takeover::Lapsed)
        .await
        .unwrap()
}

fn lease() -> Lease {
    Lease {
        session: SessionId::new("s"),
        owner: Owner::new("rate"),
        epoch: 1,
        head: 0,
    }
}

fn entry(lease: &Lease, seq: u64) -> Entry {
    let text = "x".repeat(850);
    let event = notice(lease, seq, Some("run"), "rate", &text);
    Entry::of(&event, None).unwrap()
}
