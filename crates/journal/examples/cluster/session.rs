//! Databases, sessions and events to measure with.

use std::time::Duration;

use journal::{
    Entry, Journal, Lease, NewSession, Node, Owner, Postgres, PostgresAddress, PostgresConfig,
    Takeover,
};
use model::SessionId;
use private_postgres::Server;

use crate::notice::notice;

/// A database that nothing is in yet.
pub(crate) fn database(server: &Server) -> String {
    server.url(&server.create_database("template1").unwrap())
}

pub(crate) async fn open(url: &str, n_connections: usize) -> Postgres {
    let address = PostgresAddress {
        url: url.to_owned(),
        ..PostgresAddress::default()
    };
    let config = PostgresConfig::new(&address).unwrap();
    let config = config.with_connections(n_connections);
    Postgres::open(config).await.unwrap()
}

pub(crate) async fn acquire(journal: &Postgres, n: usize) -> Lease {
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

pub(crate) fn lease_of(n: usize) -> Lease {
    Lease {
        session: SessionId::new(format!("session {n}")),
        owner: Owner::new("cluster"),
        epoch: 1,
        head: 0,
    }
}

/// Three hundred bytes, as a line of an agent that streams.
pub(crate) fn entry(lease: &Lease, seq: u64) -> Entry {
    let text = "x".repeat(150);
    let event = notice(lease, seq, Some("run"), "rate", &text);
    Entry::of(&event, None).unwrap()
}
