//! Followers of a live session read its last events from memory: the same as the store would give them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Config, Deltas, Entry, Error, Journal, ManualClock, NewSession, Owner, Read, Scope,
    Sqlite, Takeover,
};
use model::SessionId;
use tempfile::TempDir;

use crate::harness::{Dice, START, TTL, delta, event, note};

/// A store, opened by two programs.
struct TwoPrograms {
    _dir: TempDir,
    /// It has a follower.
    ours: Sqlite,
    theirs: Sqlite,
}

impl TwoPrograms {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let open = || async {
            let config = Config {
                clock: Arc::new(ManualClock::new(START)),
                cut: None,
            };
            let path = dir.path().join("journal.db");
            Sqlite::open(&path, config).await.unwrap()
        };
        let (ours, theirs) = (open().await, open().await);
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new("s"),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        };
        ours.create(session).await.unwrap();
        Self {
            _dir: dir,
            ours,
            theirs,
        }
    }

    /// Appends notices and deltas, some of them too long for the tail; returns the last number.
    async fn append(&self, journal: &Sqlite, dice: &mut Dice, n_events: u64) -> u64 {
        let (session, owner) = (SessionId::new("s"), Owner::new("owner"));
        let lease = journal
            .acquire(&session, &owner, TTL, Takeover::Lapsed)
            .await
            .unwrap();
        let long = "x".repeat(300 << 10);
        let entry = |seq| {
            let body = match dice.below(100) {
                0 => note(&long),
                1..50 => delta("piece"),
                _ => note("short"),
            };
            let frame = (dice.below(2) == 0).then(|| Bytes::from_static(b"frame"));
            Entry::of(&event(&lease, seq, body), frame).unwrap()
        };
        let entries = (lease.head + 1..=lease.head + n_events)
            .map(entry)
            .collect();
        let done = Vec::new();
        let batch = Batch::new(entries).with_done(done);
        journal.append(&lease, batch).await.unwrap();
        journal.release(&lease).await.unwrap();
        lease.head + n_events
    }
}

#[tokio::test]
async fn the_tail_and_the_store_give_the_same_pages() {
    let programs = TwoPrograms::new().await;
    let session = SessionId::new("s");
    let _watch = programs.ours.watch(Scope::Session(session.clone()));
    let mut dice = Dice::new(7);
    for _ in 0..60 {
        let n_events = 1 + dice.below(40);
        let is_foreign = dice.below(8) == 0;
        let journal = if is_foreign {
            &programs.theirs
        } else {
            &programs.ours
        };
        let head = programs.append(journal, &mut dice, n_events).await;
        for _ in 0..6 {
            let read = Read {
                after: head - dice.below(head.min(300) + 1),
                deltas: [Deltas::Keep, Deltas::Skip][dice.below(2) as usize],
                max_events: 1 + dice.below(300) as u32,
                max_bytes: 1 + dice.below(400 << 10) as usize,
            };
            let ours = programs.ours.read(&session, read).await.unwrap();
            let mut theirs = programs.theirs.read(&session, read).await.unwrap();
            // What another program has appended is known when it was noticed; it only has to be noticed.
            if is_foreign && ours.head < theirs.head {
                theirs.head = ours.head;
                theirs.next = theirs.next.min(ours.next);
                theirs.events.truncate(ours.events.len());
            }
            assert_eq!(ours, theirs, "{read:?} of {head}");
        }
    }
}

#[tokio::test]
async fn a_removed_session_is_gone_from_memory() {
    for is_foreign in [false, true] {
        let programs = TwoPrograms::new().await;
        let session = SessionId::new("s");
        let mut watch = programs.ours.watch(Scope::Session(session.clone()));
        programs.append(&programs.ours, &mut Dice::new(1), 3).await;
        let journal = if is_foreign {
            &programs.theirs
        } else {
            &programs.ours
        };
        let owner = Owner::new("owner");
        let lease = journal
            .acquire(&session, &owner, TTL, Takeover::Lapsed)
            .await
            .unwrap();
        journal.remove(&lease).await.unwrap();
        let noticed = async {
            while programs.ours.read(&session, Read::page(0)).await.is_ok() {
                watch.changed().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), noticed)
            .await
            .unwrap();
        let gone = programs.ours.read(&session, Read::page(0)).await;
        assert!(matches!(gone, Err(Error::NoSession { .. })), "{gone:?}");
    }
}
