//! Groups on a disk that is full or read-only, with the connection in the test's own hands.

use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use model::SessionId;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::*;
use crate::session::NewSession;
use crate::sqlite::{open, sessions};
use crate::watch::Scope;

struct Disk {
    store: WriteStore,
    hints: Watchers,
    _dir: TempDir,
}

type Answer = oneshot::Receiver<Result<()>>;

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            store: open::writer(&dir.path().join("journal.db"), &mut |_| ())
                .and_then(WriteStore::new)
                .unwrap(),
            hints: Watchers::default(),
            _dir: dir,
        }
    }

    /// Commits jobs as one group and returns the answers.
    fn commit(&mut self, jobs: Vec<(Box<dyn Job>, Answer)>) -> Vec<String> {
        let (group, answers): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        commit(&self.store, group, &self.hints);
        let answers = answers.into_iter();
        answers
            .map(|mut it| match it.try_recv().unwrap() {
                Ok(()) => "stored".to_owned(),
                Err(Error::Storage(fault)) => fault.to_string(),
                Err(err) => err.to_string(),
            })
            .collect()
    }

    fn n_sessions(&self) -> i64 {
        let count = "SELECT count(*) FROM sessions";
        self.store
            .conn
            .query_row(count, [], |row| row.get(0))
            .unwrap()
    }
}

/// Stores a session with a title of `length` bytes.
fn create(id: &'static str, length: usize) -> (Box<dyn Job>, Answer) {
    job(move |conn, _| {
        let new = NewSession {
            home: crate::Node::default(),
            id: SessionId::new(id),
            engine: "claude".to_owned(),
            cwd: None,
            title: Some("x".repeat(length)),
            parent: None,
        };
        sessions::create(conn, &new, model::Timestamp::from_millis(0))?;
        Ok(())
    })
}

fn job(
    work: impl FnOnce(&Connection, &mut Changed) -> Result<()> + Send + 'static,
) -> (Box<dyn Job>, Answer) {
    let (reply, answer) = oneshot::channel();
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let task = Task {
        work: Some(work),
        result: None,
        reply,
        _room: room,
    };
    (Box::new(task), answer)
}

#[test]
fn a_commit_is_synced() {
    let disk = Disk::new();
    let setting = |name| -> rusqlite::types::Value {
        disk.store
            .conn
            .pragma_query_value(None, name, |row| row.get(0))
            .unwrap()
    };
    assert_eq!(setting("journal_mode"), "wal".to_owned().into());
    // FULL.
    assert_eq!(setting("synchronous"), 2.into());
    assert_eq!(setting("fullfsync"), 1.into());
}

#[test]
fn a_job_that_breaks_a_rule_is_rolled_back_alone() {
    let mut disk = Disk::new();
    let half = job(|conn, _| {
        conn.execute("DELETE FROM sessions", [])?;
        Err(Error::NoAsk {
            session: SessionId::new("a"),
            seq: 1,
        })
    });
    let refused = job(|conn, _| {
        conn.execute("INSERT INTO sessions (id) VALUES ('half')", [])?;
        Ok(())
    });
    assert_eq!(
        disk.commit(vec![create("a", 0), half, refused, create("b", 0)]),
        [
            "stored",
            "session `a` asked nothing with event 1",
            "the database refused",
            "stored"
        ]
    );
    assert_eq!(disk.n_sessions(), 2);
}

#[test]
fn a_full_disk_fails_the_whole_group_until_there_is_space() {
    let mut disk = Disk::new();
    assert_eq!(disk.commit(vec![create("a", 0)]), ["stored"]);
    let n_pages: i64 = disk
        .store
        .conn
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    disk.store
        .conn
        .pragma_update(None, "max_page_count", n_pages + 2)
        .unwrap();
    for _ in 0..3 {
        assert_eq!(
            disk.commit(vec![create("b", 0), create("c", 100_000), create("d", 0)]),
            ["the disk is full"; 3]
        );
        assert_eq!(disk.n_sessions(), 1);
    }
    assert_eq!(disk.commit(vec![create("b", 0)]), ["stored"]);

    disk.store
        .conn
        .pragma_update(None, "max_page_count", n_pages + 1000)
        .unwrap();
    assert_eq!(
        disk.commit(vec![create("c", 100_000), create("d", 0)]),
        ["stored"; 2]
    );
    assert_eq!(disk.n_sessions(), 4);
}

#[test]
fn a_read_only_store_is_reported_until_it_is_writable() {
    let mut disk = Disk::new();
    disk.store
        .conn
        .pragma_update(None, "query_only", true)
        .unwrap();
    for _ in 0..3 {
        assert_eq!(
            disk.commit(vec![create("a", 0), create("b", 0)]),
            ["the store is read-only"; 2]
        );
    }
    assert_eq!(disk.n_sessions(), 0);
    disk.store
        .conn
        .pragma_update(None, "query_only", false)
        .unwrap();
    assert_eq!(disk.commit(vec![create("a", 0)]), ["stored"]);
    assert_eq!(disk.n_sessions(), 1);
}

#[test]
fn a_transaction_that_was_left_open_is_closed_before_the_next() {
    let mut disk = Disk::new();
    disk.store
        .conn
        .execute_batch("BEGIN; DELETE FROM sessions")
        .unwrap();
    assert_eq!(disk.commit(vec![create("a", 0)]), ["stored"]);
    assert_eq!(disk.n_sessions(), 1);
}

#[test]
fn the_first_look_at_a_store_is_a_hint() {
    let Disk {
        mut store,
        hints,
        _dir,
    } = Disk::new();
    let mut watch = Box::pin(async {
        let mut watch = hints.watch(Scope::All);
        // The first hint is there at once; what a watcher reads after it may be old already.
        assert!(watch.changed().await);
        watch.changed().await
    });
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(watch.as_mut().poll(&mut context), Poll::Pending);
    let (jobs, waiting) = mpsc::channel();
    jobs.send(job(|_, _| Ok(())).0).unwrap();
    drop(jobs);
    run(&mut store, &waiting, &hints);
    assert_eq!(watch.as_mut().poll(&mut context), Poll::Ready(true));
}
