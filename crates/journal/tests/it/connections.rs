//! Passwords and encryption, and what is said when they are wrong.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use journal::{Fault, Journal, Postgres, PostgresAddress, PostgresConfig, Retention, SessionQuery};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::database::{Database, config};
use crate::postgres::every_call;

const PASSWORD: &str = "correct horse";

/// As a role that needs its password, through `localhost`, which the certificate names.
fn address(database: &Database, host: &str, password: &str) -> PostgresAddress {
    let url = database.url();
    let url = url.replace("linkspan@127.0.0.1", &format!("guarded@{host}"));
    PostgresAddress {
        url: format!("{url}?sslmode=verify-full"),
        password: Some(password.to_owned()),
        ca_file: Some(file("ca.pem")),
        ..PostgresAddress::default()
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/tls")
        .join(name)
}

/// Everything that a fault says, to people and to programmers.
fn words(fault: &Fault) -> String {
    let mut words = format!("{fault:?} {fault}");
    let mut source = fault.source();
    while let Some(it) = source {
        words.push_str(&format!(": {it}"));
        source = it.source();
    }
    words
}

#[tokio::test]
async fn a_connection_is_encrypted_and_its_server_checked() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    let certificate = include_str!("tls/cert.pem");
    database.enable_tls(certificate, include_str!("tls/key.pem"));
    database.sql(&format!(
        "DROP ROLE IF EXISTS guarded; CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
    ));
    let open = async |address: PostgresAddress| {
        let config = PostgresConfig::new(&address).unwrap();
        let shown = format!("{address:?} {config:?} {config}");
        assert!(!shown.contains(PASSWORD), "{shown}");
        Postgres::open(config).await
    };
    let journal = open(address(&database, "localhost", PASSWORD))
        .await
        .unwrap();
    let query = SessionQuery::default();
    journal.list(query, None, 1).await.unwrap();
    let plain = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl)
        FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'guarded'";
    let counts = database.sql(plain);
    assert!(
        counts.trim().ends_with("|0") && !counts.starts_with('0'),
        "{counts}"
    );

    let unknown = PostgresAddress {
        ca_file: None,
        ..address(&database, "localhost", PASSWORD)
    };
    for (address, expected) in [
        (
            address(&database, "localhost", "wrong"),
            "password authentication failed",
        ),
        (address(&database, "127.0.0.1", PASSWORD), "NotValidForName"),
        (unknown, "UnknownIssuer"),
    ] {
        let words = words(&open(address).await.unwrap_err());
        assert!(words.contains(expected), "{words}");
        assert!(
            !words.contains(PASSWORD) && !words.contains("wrong"),
            "{words}"
        );
    }
}

/// A role that may not make the schema is told who may.
#[tokio::test]
async fn a_schema_that_cannot_be_made_is_said() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    database.sql("DROP SCHEMA linkspan CASCADE; DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    let address = PostgresAddress {
        url: database.url().replace("linkspan@", "poor@"),
        ..PostgresAddress::default()
    };
    let opened = Postgres::open(PostgresConfig::new(&address).unwrap()).await;
    let words = words(&opened.unwrap_err());
    for expected in ["permission denied for database", "linkspan journal init"] {
        assert!(words.contains(expected), "{words}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_said_at_once() {
    let address = PostgresAddress {
        // Nobody listens on this port.
        url: "postgres://ann:secret@127.0.0.1:1/db".to_owned(),
        ..PostgresAddress::default()
    };
    let opened = Postgres::open(PostgresConfig::new(&address).unwrap()).await;
    let fault = opened.unwrap_err();
    assert!(matches!(fault, Fault::Io(_)), "{fault:?}");
    assert!(!words(&fault).contains("secret"));
}

/// The statements for people to run make what `init` makes, and nodes have the rights that they need and no more.
#[tokio::test]
async fn a_node_writes_rows_and_changes_nothing_else() {
    if !Database::is_installed() {
        return;
    }
    let by_program = Database::to_spoil();
    by_program.sql("DROP SCHEMA linkspan CASCADE");
    for _ in 0..2 {
        Postgres::init(&config(&by_program.url())).await.unwrap();
    }
    let by_hand = Database::to_spoil();
    by_hand.sql("DROP SCHEMA linkspan CASCADE");
    by_hand.sql(&Postgres::init_sql());
    let columns = "SELECT table_name, column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'linkspan' ORDER BY 1, 2";
    assert_eq!(by_program.sql(columns), by_hand.sql(columns));

    let url = by_hand.url();
    let node = url.replace("linkspan@", "linkspan_node@");
    let journal = Postgres::open(config(&node)).await.unwrap();
    every_call(&journal).await;
    journal.retain(Retention::default()).await.unwrap();
    let reader = url.replace("linkspan@", "linkspan_reader@");
    let refused = [
        (&node, "TRUNCATE linkspan.events"),
        (&node, "DROP TABLE linkspan.events"),
        (&node, "CREATE TABLE linkspan.other ()"),
        (&node, "UPDATE linkspan.meta SET compatible = 9"),
        (&reader, "DELETE FROM linkspan.sessions"),
        (&reader, "SELECT * FROM linkspan.tokens"),
    ];
    for (url, sql) in refused {
        let err = execute(url, sql).await.unwrap_err();
        assert_eq!(err.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}");
    }
    execute(&reader, "SELECT * FROM linkspan.lines")
        .await
        .unwrap();
}

async fn execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let done = async {
        let done = client.batch_execute(sql).await;
        drop(client);
        done
    };
    tokio::join!(done, connection).0
}

/// Of several hosts the first that takes writes is used.
#[tokio::test]
async fn a_host_that_does_not_answer_is_passed_over() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    // Nobody listens on this port.
    let url = database
        .url()
        .replace("@127.0.0.1", "@127.0.0.1:1,127.0.0.1");
    let journal = Postgres::open(config(&url)).await.unwrap();
    every_call(&journal).await;
}
