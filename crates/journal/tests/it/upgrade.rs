//! A store of an earlier version is brought up to this one, unless somebody uses it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use journal::{CommandBody, Fault, Journal, OpenNote, Owner, Sqlite, Takeover};
use model::SessionId;
use rusqlite::Connection;

use crate::damage::{config, read};
use crate::harness::{TTL, everything};

/// A store as the first version made it.
fn old_store(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")
        .unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.execute_batch(include_str!("../../src/sqlite/schema.sql"))
        .unwrap();
    conn.execute_batch(
        r#"INSERT INTO sessions VALUES (1, 's', 'claude', 'n', '/srv', 'title', 's', 5, 6);
           INSERT INTO logs VALUES (1, 2, 40, 1, 3, NULL, NULL, NULL);
           UPDATE epochs SET last = 3;
           INSERT INTO events VALUES (1 << 36 | 1, 7, 'run.started', 0, '{"a":1}');
           INSERT INTO events VALUES (1 << 36 | 2, 8, 'ask.opened', 0, '{"a":2}');
           INSERT INTO frames VALUES (1 << 36 | 1, 0, x'6162');
           INSERT INTO runs VALUES (1, 'r1', 1, 7, NULL, NULL, NULL);
           INSERT INTO asks VALUES (1, 2, 'a', 'r1', 8, 0, NULL);
           INSERT INTO commands VALUES (1, 1, 9, 'prompt', NULL, x'70');
           INSERT INTO natives VALUES ('n', 1);
           PRAGMA user_version = 1;"#,
    )
    .unwrap();
    conn
}

#[tokio::test]
async fn a_store_of_the_first_version_gets_its_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    drop(old_store(&path));
    let notes = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&notes);
    let notify = move |note| collected.lock().unwrap().push(note);
    let journal = Sqlite::open_with_notes(&path, config(), notify)
        .await
        .unwrap();
    let upgrading = |done| OpenNote::Upgrading { done, total: 11 };
    // sessions, logs, epochs, activities, events, frames, runs, asks, commands, natives
    assert_eq!(
        *notes.lock().unwrap(),
        [1, 2, 3, 4, 6, 7, 8, 9, 10, 11].map(upgrading)
    );
    let page = read(&journal, "s").await;
    let lines: Vec<_> = page.events.iter().map(|it| &it.line[..]).collect();
    assert_eq!(lines, [br#"{"a":1}"#, br#"{"a":2}"#]);
    let id = SessionId::new("s");
    let session = journal.find_native(&SessionId::new("n")).await.unwrap();
    assert_eq!(session.unwrap().title.as_deref(), Some("title"));
    assert_eq!(journal.runs(&id, None, 9).await.unwrap().len(), 1);
    assert_eq!(journal.asks(None).await.unwrap().len(), 1);
    let orders = journal.commands(&id, 0).await.unwrap();
    assert_eq!(
        orders[0].order,
        CommandBody::Prompt(Bytes::from_static(b"p"))
    );
    assert_eq!(journal.frames(&id, everything(0)).await.unwrap().len(), 1);
    let owner = Owner::new("owner");
    let lease = journal.acquire(&id, &owner, TTL, Takeover::Lapsed).await;
    assert_eq!(lease.unwrap().epoch, 4);
}

#[tokio::test]
async fn a_store_that_an_older_program_uses_is_not_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let older = old_store(&path);
    older
        .query_row("SELECT count(*) FROM events", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    let opened = Sqlite::open(&path, config()).await;
    assert!(matches!(opened, Err(Fault::InUse)), "{opened:?}");
    older.execute("DELETE FROM commands", []).unwrap();
    drop(older);
    Sqlite::open(&path, config()).await.unwrap();
}
