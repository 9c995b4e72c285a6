//! What a repair keeps although it is in no event: the order of the list, names, fences, states; and when it fails.

use std::fs;
use std::path::Path;

use journal::{
    Batch, Damage, DamagedRow, Entry, Fault, Journal, Lease, Owner, Session, SessionQuery, Sqlite,
    State, Takeover,
};
use model::{Binding, Body, Event, Origin, Outcome, SessionId};

use crate::damage::{Disk, append, begin};
use crate::harness::{TTL, bound, ended, event, note, started};

/// So long that the copies of a store cannot have a name: they add some thirty characters.
const LONG: usize = 230;

async fn acquire(journal: &Sqlite, id: &str) -> Lease {
    let (id, owner) = (SessionId::new(id.to_owned()), Owner::new("owner"));
    let acquired = journal.acquire(&id, &owner, TTL, Takeover::Lapsed);
    acquired.await.unwrap()
}

/// The ids and states of the list, the newest first.
async fn list(journal: &Sqlite) -> Vec<(String, State)> {
    let listed = journal.list(SessionQuery::default(), None, 100).await;
    let row = |it: Session| (it.id.to_string(), it.state);
    listed.unwrap().sessions.into_iter().map(row).collect()
}

/// Appends what linkspan itself adds to a log.
async fn append_own(journal: &Sqlite, lease: &Lease, seq: u64, body: Body<'_>) {
    let own = Event {
        origin: Origin::Linkspan,
        ..event(lease, seq, body)
    };
    let batch = Batch::new(vec![Entry::of(&own, None).unwrap()]);
    journal.append(lease, batch).await.unwrap();
}

async fn found_by(journal: &Sqlite, native: &str) -> Option<String> {
    let found = journal.find_native(&SessionId::new(native)).await.unwrap();
    found.map(|it| it.id.to_string())
}

#[tokio::test]
async fn the_list_has_its_order_and_its_states() {
    let disk = Disk::new(1, 4).await;
    let journal = disk.open().await;
    let idle = begin(&journal, "idle").await;
    let starting = begin(&journal, "starting").await;
    let running = begin(&journal, "running").await;
    // In the reverse order of their creation.
    append_own(&journal, &running, 1, started()).await;
    append(&journal, &running, 2, vec![note("x")]).await;
    append_own(&journal, &starting, 1, started()).await;
    append(
        &journal,
        &idle,
        1,
        vec![started(), ended(Outcome::Completed)],
    )
    .await;
    let expected = [
        ("idle".to_owned(), State::Idle),
        ("starting".to_owned(), State::Starting),
        ("running".to_owned(), State::Running),
        ("s1".to_owned(), State::Waiting),
    ];
    assert_eq!(list(&journal).await, expected);
    drop(journal);
    disk.alter("UPDATE runs SET outcome = 'failed' WHERE session = 1");
    Sqlite::repair(&disk.path).unwrap();
    assert_eq!(list(&disk.open().await).await, expected);
}

#[tokio::test]
async fn no_lease_of_before_passes() {
    // The counter may be damaged, or the logs; leases of removed sessions are in the counter alone.
    for sql in ["UPDATE epochs SET last = 0", "UPDATE logs SET epoch = 0"] {
        let disk = Disk::new(1, 4).await;
        let journal = disk.open().await;
        let mut last = acquire(&journal, "s1").await;
        for _ in 0..5 {
            journal.release(&last).await.unwrap();
            last = acquire(&journal, "s1").await;
        }
        assert_eq!(last.epoch, 13);
        drop(journal);
        disk.alter(sql);
        Sqlite::repair(&disk.path).unwrap();
        let journal = disk.open().await;
        // The repair has acquired it once, and a release counts, too.
        assert_eq!(acquire(&journal, "s1").await.epoch, 16, "{sql}");
    }
}

#[tokio::test]
async fn a_session_is_found_by_the_names_of_lost_events() {
    let disk = Disk::new(2, 4).await;
    let journal = disk.open().await;
    let lease = acquire(&journal, "s2").await;
    let names = ["first", "second", "third"].map(|it| bound(it, Binding::Init));
    append(&journal, &lease, 9, names.into()).await;
    drop(journal);
    disk.alter(
        "UPDATE events SET at = at + 1 WHERE kind = 'session.bound';
         UPDATE natives SET native = 'altered' WHERE native = 'second'",
    );
    let lost = Sqlite::repair(&disk.path).unwrap().lost;
    let row = |row| DamagedRow {
        session: SessionId::new("s2"),
        row,
    };
    let events = [9, 10, 11].map(|it| row(Damage::Event(it)));
    assert_eq!(lost, [&events[..], &[row(Damage::Native)]].concat());
    let journal = disk.open().await;
    let mut found = Vec::new();
    for native in ["first", "second", "altered", "third"] {
        found.push(found_by(&journal, native).await);
    }
    let s2 = Some("s2".to_owned());
    assert_eq!(found, [s2.clone(), None, None, s2]);
}

#[tokio::test]
async fn a_session_of_which_nothing_is_left_has_its_key_for_a_name() {
    let disk = Disk::new(1, 4).await;
    disk.alter(
        "UPDATE sessions SET title = 'another';
         UPDATE events SET at = at + 1",
    );
    let repaired = Sqlite::repair(&disk.path).unwrap();
    assert_eq!((repaired.sessions, repaired.events), (1, 0));
    let journal = disk.open().await;
    let found = journal.find_session(&SessionId::new("damaged-1")).await;
    let found = found.unwrap().unwrap();
    assert_eq!(
        (&*found.engine, found.head, found.title),
        ("unknown", 8, None)
    );
}

/// A store whose copies would have too long a name.
async fn store_without_room_for_copies(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("j".repeat(LONG));
    let journal = Sqlite::open(&path, crate::damage::config()).await.unwrap();
    begin(&journal, "s").await;
    path
}

#[tokio::test]
async fn a_repair_that_cannot_keep_the_old_store_leaves_it_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = store_without_room_for_copies(dir.path()).await;
    let before = fs::read(&path).unwrap();
    let refused = Sqlite::repair(&path);
    assert!(matches!(refused, Err(Fault::Io(_))), "{refused:?}");
    assert!(fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn a_repair_does_not_begin_where_something_is_in_its_way() {
    let disk = Disk::new(1, 4).await;
    fs::create_dir(disk.path.with_extension("db.new")).unwrap();
    let refused = Sqlite::repair(&disk.path);
    assert!(matches!(refused, Err(Fault::Io(_))), "{refused:?}");
    fs::remove_dir(disk.path.with_extension("db.new")).unwrap();
    // What an earlier one has left is removed.
    fs::write(disk.path.with_extension("db.new"), "half").unwrap();
    Sqlite::repair(&disk.path).unwrap();
    assert!(!disk.path.with_extension("db.new").exists());
}
