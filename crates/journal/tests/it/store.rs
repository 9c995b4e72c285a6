//! The store on disk: private, versioned, checked, and shared by several programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Waker};

use journal::{
    Batch, Config, Error, Fault, Journal, Lease, ManualClock, NewSession, Owner, Scope, Sqlite,
    Takeover,
};
use model::SessionId;
use tempfile::TempDir;

use crate::harness::{START, TTL, entries, everything, note};

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state").join("journal.db");
    (dir, path)
}

async fn open(path: &Path) -> Result<Sqlite, Fault> {
    let config = Config {
        clock: Arc::new(ManualClock::new(START)),
        cut: None,
    };
    Sqlite::open(path, config).await
}

async fn lease(journal: &Sqlite, owner: &str) -> Result<Lease, Error> {
    let (session, owner) = (SessionId::new("s"), Owner::new(owner));
    journal
        .acquire(&session, &owner, TTL, Takeover::Lapsed)
        .await
}

async fn create(journal: &Sqlite) {
    let session = NewSession {
        home: journal::Node::default(),
        id: SessionId::new("s"),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    journal.create(session).await.unwrap();
}

async fn append(journal: &Sqlite, lease: &Lease, first: u64, n_events: usize) {
    let bodies = std::iter::repeat_with(|| note("x")).take(n_events);
    let batch = Batch::new(entries(lease, first, bodies.collect()));
    journal.append(lease, batch).await.unwrap();
}

/// Monotonic time begins again with a boot, and no owner has outlived it.
#[tokio::test]
async fn a_restart_of_the_machine_ends_every_lease() {
    let (_dir, path) = place();
    let clock = Arc::new(ManualClock::new(START));
    let config = Config {
        clock: Arc::clone(&clock) as _,
        cut: None,
    };
    let journal = Sqlite::open(&path, config).await.unwrap();
    create(&journal).await;
    lease(&journal, "owner").await.unwrap();
    clock.reboot("second boot");
    lease(&journal, "other").await.unwrap();
}

#[tokio::test]
async fn only_the_owner_may_read_it() {
    let (_dir, path) = place();
    let journal = open(&path).await.unwrap();
    create(&journal).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for suffix in ["", "-wal", "-shm", "-open", "-witness"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        assert_eq!(mode(&file), 0o600, "{suffix}");
    }
    drop(journal);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    open(&path).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    // Where nobody else may read it, it is left as it is.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    open(&path).await.unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[tokio::test]
async fn what_was_begun_is_stored_when_the_journal_is_dropped() {
    let (_dir, path) = place();
    let journal = open(&path).await.unwrap();
    for n in 0..50 {
        let mut create = journal.create(NewSession {
            home: journal::Node::default(),
            id: SessionId::new(format!("s{n}")),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        });
        // Begun, and not waited for.
        let mut context = Context::from_waker(Waker::noop());
        assert!(create.as_mut().poll(&mut context).is_pending());
    }
    drop(journal);
    let conn = rusqlite::Connection::open(&path).unwrap();
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let n_sessions = conn.query_row("SELECT count(*) FROM sessions", [], count);
    assert_eq!(n_sessions.unwrap(), 50);
}

#[tokio::test]
async fn what_was_stored_is_there_when_it_is_opened_again() {
    let (_dir, path) = place();
    let journal = open(&path).await.unwrap();
    create(&journal).await;
    let first = lease(&journal, "owner").await.unwrap();
    append(&journal, &first, 1, 3).await;
    let page = journal.read(&first.session, everything(0)).await.unwrap();
    drop(journal);

    let journal = open(&path).await.unwrap();
    let again = journal.read(&first.session, everything(0)).await.unwrap();
    assert_eq!(again, page);
    append(&journal, &first, 4, 1).await;
}

#[tokio::test]
async fn a_store_of_a_later_version_is_left_alone() {
    let (_dir, path) = place();
    drop(open(&path).await.unwrap());
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    assert!(matches!(
        open(&path).await,
        Err(Fault::Newer {
            found: 99,
            known: 5
        })
    ));
}

#[tokio::test]
async fn what_is_no_store_is_not_touched() {
    let (_dir, path) = place();
    fs::create_dir(path.parent().unwrap()).unwrap();
    let letter = "Dear Ann, ".repeat(1000);
    fs::write(&path, &letter).unwrap();
    assert!(matches!(open(&path).await, Err(Fault::Corrupt(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), letter);
}

#[tokio::test]
async fn a_damaged_store_is_found_when_it_is_opened() {
    let (_dir, path) = place();
    let journal = open(&path).await.unwrap();
    create(&journal).await;
    let first = lease(&journal, "owner").await.unwrap();
    append(&journal, &first, 1, 1000).await;
    drop(journal);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(open(&path).await, Err(Fault::Corrupt(_))));
}

#[tokio::test]
async fn of_two_programs_on_one_store_one_owns_a_session() {
    let (_dir, path) = place();
    let (one, two) = (open(&path).await.unwrap(), open(&path).await.unwrap());
    create(&one).await;
    let first = lease(&one, "one").await.unwrap();
    assert!(matches!(
        lease(&two, "two").await,
        Err(Error::Held { owner, .. }) if owner == Owner::new("one")
    ));
    append(&one, &first, 1, 2).await;
    one.release(&first).await.unwrap();
    let second = lease(&two, "two").await.unwrap();
    assert_eq!(second.head, 2);
    append(&two, &second, 3, 1).await;
    let batch = Batch::new(entries(&first, 4, vec![note("late")]));
    let late = one.append(&first, batch).await;
    assert!(matches!(late, Err(Error::Fenced { .. })));
}

#[tokio::test]
async fn many_may_open_a_new_store_at_once() {
    for _ in 0..3 {
        let (_dir, path) = place();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let path = path.clone();
            tasks.spawn(async move { open(&path).await.map(drop) });
        }
        for opened in tasks.join_all().await {
            opened.unwrap();
        }
    }
}

#[tokio::test]
async fn what_another_program_writes_is_hinted() {
    let (_dir, path) = place();
    let (one, two) = (open(&path).await.unwrap(), open(&path).await.unwrap());
    create(&one).await;
    let first = lease(&one, "one").await.unwrap();
    let mut watch = two.watch(Scope::Session(SessionId::new("s")));
    let mut head = 0;
    for seq in 1..=5 {
        append(&one, &first, seq, 1).await;
        while head < seq {
            assert!(watch.changed().await);
            head = two.read(&first.session, everything(0)).await.unwrap().head;
        }
    }
}

/// The store itself begins to look a moment after its first watcher has looked.
#[tokio::test]
async fn what_another_program_writes_in_the_first_moment_is_hinted() {
    let (_dir, path) = place();
    let one = open(&path).await.unwrap();
    create(&one).await;
    let first = lease(&one, "one").await.unwrap();
    for seq in 1..=20 {
        let two = open(&path).await.unwrap();
        let mut watch = two.watch(Scope::Session(SessionId::new("s")));
        assert!(watch.changed().await);
        let mut head = two.read(&first.session, everything(0)).await.unwrap().head;
        append(&one, &first, seq, 1).await;
        while head < seq {
            assert!(watch.changed().await);
            head = two.read(&first.session, everything(0)).await.unwrap().head;
        }
    }
}

#[tokio::test]
async fn space_is_given_back_when_sessions_are_removed() {
    let (_dir, path) = place();
    let journal = open(&path).await.unwrap();
    create(&journal).await;
    let first = lease(&journal, "owner").await.unwrap();
    // More pages than are given back in one step.
    let text = "x".repeat(4000);
    let bodies = std::iter::repeat_with(|| note(&text)).take(1200);
    let batch = Batch::new(entries(&first, 1, bodies.collect()));
    journal.append(&first, batch).await.unwrap();
    journal.release(&first).await.unwrap();
    let all = journal::Retention {
        sessions: Some(0),
        ..journal::Retention::default()
    };
    assert_eq!(journal.retain(all).await.unwrap().sessions, 1);
    drop(journal);
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < 200 << 10, "{length} bytes are left");
}
