//! How fast many writers append to PostgreSQL beside a bare loop with the same batches, in alternating rounds.
//!
//! Starts a server of its own that waits for its disk. Prints an object for each number of writers: appends a
//! second, by round. `cargo xtask bench cluster` makes a table of it; by itself it is
//! `cargo run --release -p linkspan-journal --example cluster ROUNDS`.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot continue should stop"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{
    Batch, Entry, Journal, Lease, NewSession, Node, Owner, Postgres, PostgresAddress,
    PostgresConfig, Takeover,
};
use model::{Body, Event, Level, Notice, Origin, RunId, SessionId, Text};
use private_postgres::{Server, Sync};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Of a round.
const DURATION: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = std::env::args().nth(1).and_then(|it| it.parse().ok());
    let rounds: usize = rounds.expect("cluster ROUNDS");
    let server = Server::start(Sync::Disk).unwrap();
    for n_writers in [1, 16, 64] {
        let (mut loops, mut journals) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            loops.push(bare(&server, n_writers).await);
            journals.push(kept(&server, n_writers).await);
        }
        println!(r#"{{"writers":{n_writers},"bare":{loops:?},"journal":{journals:?}}}"#);
    }
}

/// A database that nothing is in yet.
fn database(server: &Server) -> String {
    server.url(&server.create_database("template1").unwrap())
}

/// Inserts without leases and checksums, each writer on a connection of its own.
async fn bare(server: &Server, n_writers: usize) -> f64 {
    let url = database(server);
    let (setup, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let table =
        "CREATE TABLE events (session bigint, seq bigint, line bytea, PRIMARY KEY (session, seq))";
    setup.batch_execute(table).await.unwrap();
    drop((setup, driver));
    let mut writers = JoinSet::new();
    for n in 0..n_writers {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        writers.spawn(async move {
            let _driver = tokio::spawn(connection);
            let insert = "INSERT INTO events VALUES ($1, $2, $3)";
            let insert = client.prepare(insert).await.unwrap();
            let (lease, begun) = (lease_of(n), Instant::now());
            let mut seq = 0;
            while begun.elapsed() < DURATION {
                seq += 1;
                let line = entry(&lease, seq).line();
                let row: [&(dyn tokio_postgres::types::ToSql + std::marker::Sync); 3] =
                    [&(n as i64), &(seq as i64), &&line[..]];
                client.execute(&insert, &row).await.unwrap();
            }
            seq
        });
    }
    rate(writers.join_all().await)
}

async fn kept(server: &Server, n_writers: usize) -> f64 {
    let address = PostgresAddress {
        url: database(server),
        ..PostgresAddress::default()
    };
    let config = PostgresConfig::new(&address).unwrap();
    let config = config.with_connections(n_writers);
    let journal = Arc::new(Postgres::open(config).await.unwrap());
    let mut leases = Vec::new();
    for n in 0..n_writers {
        leases.push(acquire(&journal, n).await);
    }
    let mut writers = JoinSet::new();
    for lease in leases {
        let journal = Arc::clone(&journal);
        writers.spawn(async move {
            let begun = Instant::now();
            let mut seq = 0;
            while begun.elapsed() < DURATION {
                seq += 1;
                let batch = Batch::new(vec![entry(&lease, seq)]);
                journal.append(&lease, batch).await.unwrap();
            }
            seq
        });
    }
    rate(writers.join_all().await)
}

fn rate(n_appends: Vec<u64>) -> f64 {
    n_appends.into_iter().sum::<u64>() as f64 / DURATION.as_secs_f64()
}

async fn acquire(journal: &Postgres, n: usize) -> Lease {
    let lease = lease_of(n);
    let new = NewSession {
        id: lease.session.clone(),
        home: Node::default(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    journal.create(new).await.unwrap();
    let ttl = Duration::from_secs(60);
    let acquire = journal.acquire(&lease.session, &lease.owner, ttl, Takeover::Lapsed);
    acquire.await.unwrap()
}

fn lease_of(n: usize) -> Lease {
    Lease {
        session: SessionId::new(format!("session {n}")),
        owner: Owner::new("cluster"),
        epoch: 1,
        head: 0,
    }
}

/// Three hundred bytes, as a line of an agent that streams.
fn entry(lease: &Lease, seq: u64) -> Entry {
    let text = "x".repeat(150);
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
