//! The machine of the database ends, and its standby takes over.

use std::sync::Arc;
use std::time::Duration;

use journal::{Fault, Postgres};
use private_postgres::{Server, Sync};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::database::{Database, config};
use crate::partition::{WRITERS, check, write};

/// Both hosts of an address, the standby first.
fn url(standby: &Server, primary: &Server) -> String {
    let ports = format!("{},127.0.0.1:{}", standby.port(), primary.port());
    let url = primary.url("postgres");
    url.replace(&primary.port().to_string(), &ports)
}

#[tokio::test]
async fn a_standby_takes_over_and_has_all_that_was_acknowledged() {
    if !Database::is_installed() {
        return;
    }
    let primary = Server::start(Sync::Memory).unwrap();
    let standby = primary.start_standby(Sync::Memory).unwrap();
    // Otherwise what the standby does not have yet would be lost with the primary.
    for sql in [
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
        "SELECT pg_reload_conf()",
    ] {
        primary.sql("postgres", sql).unwrap();
    }
    let alone = Postgres::open(config(&standby.url("postgres"))).await;
    assert!(matches!(alone, Err(Fault::ReadOnly)), "{alone:?}");
    let journal = Postgres::open(config(&url(&standby, &primary))).await;
    let journal = Arc::new(journal.unwrap());
    let mut writers = tokio::task::JoinSet::new();
    let (stop, is_stopped) = watch::channel(false);
    for n in 0..WRITERS {
        writers.spawn(write(Arc::clone(&journal), n, is_stopped.clone()));
    }
    sleep(Duration::from_secs(1)).await;
    primary.kill().unwrap();
    standby.sql("postgres", "SELECT pg_promote()").unwrap();
    sleep(Duration::from_secs(2)).await;
    stop.send_replace(true);
    let written = writers.join_all().await;
    check(&journal, written).await;
}
