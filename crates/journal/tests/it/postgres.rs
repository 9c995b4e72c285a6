//! What only a database does: it is shared by nodes, restarted, upgraded and damaged by others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Error, Fault, Journal, Lease, Node, Owner, Postgres, Read, Scope,
    SessionQuery, State, Takeover, WriteId,
};
use model::{BodyKind, SessionId};
use tokio::time::timeout;

use crate::database::{Database, config};
use crate::harness::{ask_opened, entries, everything, new_session, note, started, with_frame};

const TTL: Duration = Duration::from_secs(60);
/// Long enough for a hint or a poll, on a machine with much to do.
const SOON: Duration = Duration::from_secs(10);
/// Longer than a hint takes.
const QUIET: Duration = Duration::from_millis(700);

async fn open(database: &Database) -> Postgres {
    Postgres::open(config(&database.url())).await.unwrap()
}

async fn lease(journal: &Postgres, id: &str) -> Lease {
    journal.create(new_session(id)).await.unwrap();
    let (session, owner) = (SessionId::new(id), Owner::new("owner"));
    let lease = journal.acquire(&session, &owner, TTL, Takeover::Lapsed);
    lease.await.unwrap()
}

/// Two nodes of one database: what one writes, the other hears of.
#[tokio::test]
async fn another_node_is_told_of_events_and_commands() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let (ours, theirs) = (open(&database).await, open(&database).await);
    let lease = lease(&ours, "s").await;
    let session = lease.session.clone();
    let mut log = theirs.watch(Scope::Session(session.clone()));
    let mut commands = theirs.watch(Scope::Commands(session.clone()));
    let mut all = theirs.watch(Scope::All);
    // The first hints, and the poll that finds the session.
    for watch in [&mut log, &mut commands, &mut all] {
        while timeout(Duration::from_secs(2), watch.changed()).await == Ok(true) {}
    }
    let mut delays = Vec::new();
    for seq in 1..=9 {
        let begun = Instant::now();
        let batch = Batch::new(entries(&lease, seq, vec![note("x")]));
        ours.append(&lease, batch).await.unwrap();
        assert_eq!(timeout(SOON, log.changed()).await, Ok(true));
        delays.push(begun.elapsed());
        let page = theirs.read(&session, everything(0)).await.unwrap();
        assert_eq!(page.head, seq);
    }
    delays.sort();
    // A hint takes milliseconds; a poll would take half a second.
    assert!(delays[4] < Duration::from_millis(250), "{delays:?}");
    assert_eq!(timeout(SOON, all.changed()).await, Ok(true));
    assert!(timeout(QUIET, commands.changed()).await.is_err());
    let abort = CommandBody::Abort(Bytes::new());
    ours.command(&session, WriteId::new(), abort).await.unwrap();
    assert_eq!(timeout(SOON, commands.changed()).await, Ok(true));
    ours.remove(&lease).await.unwrap();
    assert_eq!(timeout(SOON, log.changed()).await, Ok(true));
    let gone = theirs.read(&session, everything(0)).await;
    assert!(matches!(gone, Err(Error::NoSession { .. })), "{gone:?}");
}

/// A hint may be lost: the poll finds what it would have told.
#[tokio::test]
async fn what_no_hint_tells_is_polled() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let journal = open(&database).await;
    let lease = lease(&journal, "s").await;
    let mut watch = journal.watch(Scope::Session(lease.session.clone()));
    let mut all = journal.watch(Scope::All);
    for watch in [&mut watch, &mut all] {
        while timeout(Duration::from_secs(2), watch.changed()).await == Ok(true) {}
    }
    database.sql("UPDATE linkspan.logs SET commands = commands + 1");
    assert_eq!(timeout(SOON, watch.changed()).await, Ok(true));
    database.sql("UPDATE linkspan.sessions SET changed_at = clock_timestamp()");
    assert_eq!(timeout(SOON, all.changed()).await, Ok(true));
}

/// As many nodes start after an upgrade at once, one of them makes the schema.
#[tokio::test]
async fn many_may_make_the_schema_at_once() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    database.sql("DROP SCHEMA linkspan CASCADE");
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let url = database.url();
        opening.spawn(async move { Postgres::open(config(&url)).await.map(drop) });
    }
    for opened in opening.join_all().await {
        opened.unwrap();
    }
    let versions = database.sql("SELECT version, compatible FROM linkspan.meta");
    assert_eq!(versions, "1|1\n");
}

#[tokio::test]
async fn a_schema_that_excludes_this_version_is_left_alone() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    // Later versions add, and older ones go on as long as they may.
    database.sql("UPDATE linkspan.meta SET version = 7, compatible = 1");
    drop(open(&database).await);
    database.sql("UPDATE linkspan.meta SET compatible = 2");
    let opened = Postgres::open(config(&database.url())).await;
    assert!(
        matches!(opened, Err(Fault::Newer { found: 7, known: 1 })),
        "{opened:?}"
    );
}

/// What is answered has to survive a crash of the server.
#[tokio::test]
async fn a_server_that_does_not_wait_for_its_disk_is_refused() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    let name = database.sql("SELECT current_database()");
    let name = name.trim();
    database.sql(&format!(
        "ALTER DATABASE {name} SET synchronous_commit = off"
    ));
    let opened = Postgres::open(config(&database.url())).await.unwrap_err();
    let source = std::error::Error::source(&opened).unwrap().to_string();
    assert_eq!(
        source,
        "`synchronous_commit` is off, so what is stored could be lost \
         (ALTER ROLE … SET synchronous_commit = on)"
    );
}

/// A changed byte, a missing row and a row in another's place are told apart from what was written.
#[tokio::test]
async fn damage_is_found_and_stays_where_it_is() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let journal = open(&database).await;
    let lease = lease(&journal, "s").await;
    let mut bodies = vec![started()];
    bodies.extend((0..7).map(|_| note("x")));
    bodies.push(ask_opened("a"));
    let mut batch = Batch::new(entries(&lease, 1, bodies));
    batch.entries.push(with_frame(&lease, 10, b"first"));
    batch.entries.push(with_frame(&lease, 11, b"second"));
    journal.append(&lease, batch).await.unwrap();
    let undamaged = journal.read(&lease.session, everything(0)).await.unwrap();
    database.sql(
        "UPDATE linkspan.events SET line = set_byte(line, 20, get_byte(line, 20) # 1) WHERE seq IN (3, 9);
         DELETE FROM linkspan.events WHERE seq = 5;
         UPDATE linkspan.events SET seq = 500 WHERE seq = 7; UPDATE linkspan.events SET seq = 7 WHERE seq = 8;
         UPDATE linkspan.frames SET bytes = 'other' WHERE seq = 11",
    );
    let page = journal.read(&lease.session, everything(0)).await.unwrap();
    assert_eq!((page.head, page.next), (11, 11));
    for (found, written) in page.events.iter().zip(&undamaged.events) {
        match found.seq {
            3 | 5 | 7 | 8 | 9 => {
                let shown = (found.is_damaged, found.kind);
                assert_eq!(shown, (true, BodyKind::NoticeRaised), "{found:?}");
            }
            _ => assert_eq!(found, written),
        }
    }
    // A notice is shorter or longer than what it stands for, and no page lacks an event for that.
    let mut seen = Vec::new();
    let mut next = 0;
    while next < 11 {
        let read = Read {
            max_bytes: 300,
            ..everything(next)
        };
        let page = journal.read(&lease.session, read).await.unwrap();
        seen.extend(page.events.iter().map(|it| (it.seq, it.is_damaged)));
        next = page.next;
    }
    let expected = page.events.iter().map(|it| (it.seq, it.is_damaged));
    assert_eq!(seen, expected.collect::<Vec<_>>());
    assert_eq!(journal.asks(None).await.unwrap(), []);
    let settled = journal.settle(&lease.session, 9, WriteId::new(), Bytes::new());
    let settled = settled.await;
    assert!(matches!(settled, Err(Error::Damaged { .. })), "{settled:?}");
    let frames = async |after| journal.frames(&lease.session, everything(after)).await;
    assert_eq!(frames(0).await.unwrap().len(), 1);
    assert!(matches!(frames(10).await, Err(Error::Damaged { .. })));
    let batch = Batch::new(entries(&lease, 12, vec![note("goes on")]));
    journal.append(&lease, batch).await.unwrap();
}

/// No call reads more rows because more sessions are stored. Retention and a search for a piece of text do.
#[tokio::test]
async fn calls_do_not_grow_with_the_stored_sessions() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    database.sql(
        "INSERT INTO linkspan.sessions (id, made, home, engine, search, created_at, active_at)
         SELECT 'old ' || n, gen_random_uuid(), 'node' || n % 50, 'claude', '', n, n FROM generate_series(1, 20000) n;
         INSERT INTO linkspan.logs (session, home, head, commands) SELECT key, home, 3, 1 FROM linkspan.sessions;
         INSERT INTO linkspan.events SELECT key, n, 0, 1, 'notice.raised', 0, 0, '{}'
         FROM linkspan.sessions, generate_series(1, 3) n;
         INSERT INTO linkspan.runs SELECT key, home, 'old run', 1, 0, 3, 0, 'completed', true, key FROM linkspan.sessions;
         INSERT INTO linkspan.asks SELECT key, home, 2, 'a', NULL, 0, true, 'allowed' FROM linkspan.sessions;
         INSERT INTO linkspan.commands SELECT key, 1, gen_random_uuid(), home, 0, 'prompt', NULL, '', NULL, now()
         FROM linkspan.sessions;
         INSERT INTO linkspan.natives SELECT 'native ' || key, key FROM linkspan.sessions;
         ANALYZE",
    );
    // By another connection: each reports what it read when it closes.
    database.sql("SELECT pg_stat_reset()");
    let journal = open(&database).await;
    every_call(&journal).await;
    drop(journal);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while database.sql(open).trim() != "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let read = "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables
        WHERE schemaname = 'linkspan' AND seq_tup_read + coalesce(idx_tup_fetch, 0) > 400";
    assert_eq!(database.sql(read), "");
}

pub(crate) async fn every_call(journal: &Postgres) {
    let lease = lease(journal, "new").await;
    let session = &lease.session;
    let bodies = vec![started(), ask_opened("a"), note("x")];
    let batch = Batch::new(entries(&lease, 1, bodies));
    journal.append(&lease, batch).await.unwrap();
    let prompt = CommandBody::Prompt(Bytes::new());
    journal
        .command(session, WriteId::new(), prompt)
        .await
        .unwrap();
    journal
        .settle(session, 2, WriteId::new(), Bytes::new())
        .await
        .unwrap();
    journal.renew(&lease, TTL).await.unwrap();
    journal.read(session, everything(0)).await.unwrap();
    journal.frames(session, everything(0)).await.unwrap();
    journal.commands(session, 0).await.unwrap();
    journal.overview(session, 10).await.unwrap();
    journal
        .find_native(&SessionId::new("native 7"))
        .await
        .unwrap();
    journal.runs(session, None, 10).await.unwrap();
    journal.find_run(&model::RunId::new("run")).await.unwrap();
    journal.rename(session, "title".to_owned()).await.unwrap();
    let home = Node::default();
    for home in [None, Some(&home)] {
        journal.pending(home).await.unwrap();
        journal.open_runs(home).await.unwrap();
        journal.asks(home).await.unwrap();
    }
    let states = State::ALL.into_iter().map(Some);
    for state in states.chain([None]) {
        let query = SessionQuery {
            state,
            ..SessionQuery::default()
        };
        journal.list(query, None, 10).await.unwrap();
    }
    journal.remove(&lease).await.unwrap();
}

/// The database is restarted between calls and while some are on their way.
#[tokio::test]
async fn connections_that_the_server_ends_are_replaced() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let journal = Arc::new(open(&database).await);
    let lease = lease(&journal, "s").await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for seq in 1..=20 {
        let batch = Batch::new(entries(&lease, seq, vec![note("x")]));
        if seq % 2 == 0 {
            database.sql(kill);
        }
        journal.append(&lease, batch).await.unwrap();
    }
    let page = journal.read(&lease.session, everything(0)).await.unwrap();
    assert_eq!((page.events.len(), page.head), (20, 20));
}

/// A server that fails with each of these states once: what passes is tried again, the rest is told.
#[tokio::test]
async fn each_failure_of_the_server_is_what_it_means() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::to_spoil();
    database.sql(
        "CREATE SEQUENCE tries; CREATE TABLE failure (state text);
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE failing text := (SELECT state FROM failure);
         BEGIN
             IF failing <> '' AND nextval('tries') = 1 THEN RAISE EXCEPTION USING ERRCODE = failing; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER fail BEFORE INSERT ON linkspan.events FOR EACH ROW EXECUTE FUNCTION fail();
         INSERT INTO failure VALUES ('')",
    );
    let journal = open(&database).await;
    let lease = lease(&journal, "s").await;
    let mut seq = 1;
    let mut append = async |state: &str| {
        database.sql(&format!(
            "UPDATE failure SET state = '{state}'; ALTER SEQUENCE tries RESTART"
        ));
        let batch = Batch::new(entries(&lease, seq, vec![note("x")]));
        let appended = journal.append(&lease, batch).await;
        seq += u64::from(appended.is_ok());
        appended
    };
    let passing = [
        "40001", "40P01", "55P03", "57014", "53300", "08006", "57P01", "57P02", "57P03", "25006",
    ];
    for state in passing {
        append(state).await.unwrap();
    }
    let full = append("53100").await;
    assert!(matches!(full, Err(Error::Storage(Fault::Full))), "{full:?}");
    for state in ["XX001", "XX002"] {
        let damaged = append(state).await;
        assert!(
            matches!(damaged, Err(Error::Storage(Fault::Corrupt(_)))),
            "{damaged:?}"
        );
    }
    for state in ["42501", "28000", "3D000"] {
        let refused = append(state).await;
        assert!(
            matches!(refused, Err(Error::Storage(Fault::Database(_)))),
            "{refused:?}"
        );
    }
    let name = append("54000").await;
    assert!(matches!(name, Err(Error::TooLarge { .. })), "{name:?}");
    append("").await.unwrap();
    assert_eq!(seq, passing.len() as u64 + 2);
}

/// Followers at the end of a log are served from memory with what the store has, the time of the database too.
#[tokio::test]
async fn a_follower_gets_from_memory_what_the_store_has() {
    if !Database::is_installed() {
        return;
    }
    let database = Database::new();
    let (ours, theirs) = (open(&database).await, open(&database).await);
    let lease = lease(&ours, "s").await;
    let session = lease.session.clone();
    let _watch = ours.watch(Scope::Session(session.clone()));
    for seq in 1..=5 {
        let batch = Batch::new(entries(&lease, seq, vec![note("x")]));
        ours.append(&lease, batch).await.unwrap();
    }
    let stored = theirs.read(&session, Read::page(0)).await.unwrap();
    // Without the rows, only what is in memory can be read.
    database.sql("DELETE FROM linkspan.events");
    assert_eq!(ours.read(&session, Read::page(0)).await.unwrap(), stored);
}
