//! Appends a second of one, some and many writers, in alternating rounds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Batch, Journal};
use private_postgres::Server;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::session::{acquire, database, entry, lease_of, open};

/// Of a round.
const DURATION: Duration = Duration::from_secs(4);

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
pub(crate) async fn measure(server: &Server, rounds: usize) {
    for n_writers in [1, 16, 64] {
        let (mut loops, mut journals) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            loops.push(bare(server, n_writers).await);
            journals.push(kept(server, n_writers).await);
        }
        println!(r#"{{"writers":{n_writers},"bare":{loops:?},"journal":{journals:?}}}"#);
    }
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
    let journal = Arc::new(open(&database(server), n_writers).await);
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
