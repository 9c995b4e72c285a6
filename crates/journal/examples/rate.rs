//! How fast the journal appends beside a bare SQLite loop with the same batching: medians of alternating
//! rounds. Run it by hand, on a quiet machine: `cargo run --release -p journal --example rate [DIR]`.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on should stop"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use journal::{
    Batch, Config, Entry, Journal, Lease, NewSession, Owner, Sqlite, SystemClock, Takeover,
};
use model::{Body, Event, Level, Notice, Origin, RunId, SessionId, Text};
use rusqlite::{Connection, params};

const ROUNDS: usize = 7;
const BATCHES: u64 = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = match std::env::args().nth(1) {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let dir = dir.unwrap();
    println!("events of 1 KB, each batch one durable append; events/s");
    for batch in [1, 10, 100] {
        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            let path = |name| dir.path().join(format!("{name}-{batch}-{round}.db"));
            rates[0].push(bare(&path("bare"), batch));
            rates[1].push(kept(&path("kept"), batch).await);
        }
        let [bare, kept] = rates.map(median);
        let ratio = kept / bare * 100.0;
        println!("batch {batch:>3}: bare {bare:>7.0}  journal {kept:>7.0}  {ratio:>4.0} %");
    }
    let path = dir.path().join("many.db");
    let rate = many(&path).await;
    println!("64 sessions at once, one event an append: journal {rate:.0}");
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn rate(n_events: u64, since: Instant) -> f64 {
    n_events as f64 / since.elapsed().as_secs_f64()
}

/// What SQLite does when nobody asks who writes, and nothing but the line is kept.
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
            let line = std::str::from_utf8(entry.line()).unwrap();
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

async fn many(path: &Path) -> f64 {
    const SESSIONS: u64 = 64;
    let journal = Arc::new(open(path).await);
    let mut leases = Vec::new();
    for n in 0..SESSIONS {
        leases.push(acquire(&journal, &n.to_string()).await);
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for lease in leases {
        let journal = Arc::clone(&journal);
        tasks.spawn(async move {
            for seq in 1..=BATCHES {
                append(&journal, &lease, vec![entry(&lease, seq)]).await;
            }
        });
    }
    tasks.join_all().await;
    rate(SESSIONS * BATCHES, started)
}

async fn append(journal: &Sqlite, lease: &Lease, entries: Vec<Entry>) {
    let batch = Batch {
        entries,
        done: Vec::new(),
    };
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
        id: session.clone(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
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
    let event = Event {
        seq,
        at: None,
        session: lease.session.by_ref(),
        run: Some(RunId::new("run")),
        engine: "claude".into(),
        path: Vec::new().into(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Vec::new().into(),
        body: Body::NoticeRaised(Notice {
            level: Level::Info,
            code: "rate".into(),
            text: Text::new(&text),
            item: None,
            detail: None,
        }),
    };
    Entry::of(&event, None).unwrap()
}
