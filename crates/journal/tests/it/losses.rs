//! A store that lost acknowledged data: its witness reports it, and there are no false alarms.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Config, Error, Fault, Journal, LostData, LostSession, ManualClock,
    NewSession, OpenNote, Owner, Retention, Session, SessionQuery, Sqlite, Takeover, WriteId,
};
use model::SessionId;

use crate::harness::{Dice, START, TTL, entries, note};

/// Logs of changes that are damaged, with three flipped bits each.
const LOGS: u64 = 12;

fn config() -> Config {
    Config {
        clock: Arc::new(ManualClock::new(START)),
        cut: None,
    }
}

/// Opens a store and collects its messages.
async fn open(path: &Path) -> (Result<Sqlite, Fault>, Vec<OpenNote>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&notes);
    let notify = move |note| collected.lock().unwrap().push(note);
    let journal = Sqlite::open_with_notes(path, config(), notify).await;
    let notes = std::mem::take(&mut *notes.lock().unwrap());
    (journal, notes)
}

async fn add(journal: &Sqlite, id: &str, n_events: usize) -> Result<(), Error> {
    let new = NewSession {
        home: journal::Node::default(),
        id: SessionId::new(id.to_owned()),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    let id = journal.create(new).await?.id;
    let owner = Owner::new("owner");
    let lease = journal.acquire(&id, &owner, TTL, Takeover::Lapsed).await?;
    let bodies = std::iter::repeat_with(|| note("x")).take(n_events);
    let batch = Batch::new(entries(&lease, 1, bodies.collect()));
    journal.append(&lease, batch).await?;
    let prompt = CommandBody::Prompt(Bytes::from_static(b"p"));
    journal.command(&id, WriteId::new(), prompt).await?;
    journal.release(&lease).await
}

async fn sessions(journal: &Sqlite) -> Vec<Session> {
    let list = journal.list(SessionQuery::default(), None, 100).await;
    list.unwrap().sessions
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Copies a store while it is open, as a program that is killed leaves it.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-witness"] {
        fs::copy(beside(from, suffix), beside(to, suffix)).unwrap();
    }
}

#[tokio::test]
async fn a_truncated_write_ahead_log_is_reported_session_by_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let (journal, _) = open(&path).await;
    let journal = journal.unwrap();
    for n in 1..=12 {
        add(&journal, &format!("s{n}"), n).await.unwrap();
    }
    let acknowledged = sessions(&journal).await;
    let mut n_lost = 0;
    let mut dice = Dice::new(12);
    for n in 0..LOGS {
        let dir = dir.path().join(format!("copy-{n}"));
        fs::create_dir(&dir).unwrap();
        let damaged = dir.join("journal.db");
        copy(&path, &damaged);
        let wal = beside(&damaged, "-wal");
        let mut bytes = fs::read(&wal).unwrap();
        for _ in 0..3 {
            let bit = dice.below(bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        fs::write(&wal, &bytes).unwrap();
        let (left, notes) = open(&damaged).await;
        let left = left.unwrap();
        let found = sessions(&left).await;
        let missing: Vec<_> = acknowledged
            .iter()
            .filter_map(|was| {
                let now = found.iter().find(|it| it.id == was.id);
                let is_whole = now.is_some_and(|it| it.head == was.head);
                (!is_whole).then(|| (was.id.to_string(), now.map(|it| it.head), was.head))
            })
            .collect();
        n_lost += missing.len();
        let reported = notes.iter().find_map(|it| match it {
            OpenNote::Lost(lost) => Some(lost),
            OpenNote::Upgrading { .. } | OpenNote::ReadOnly(_) => None,
        });
        let reported_sessions = reported.map_or(&[][..], |it| &it.sessions);
        let mut reported_sessions: Vec<_> = reported_sessions
            .iter()
            .map(|it| (it.id.to_string(), it.head, it.acknowledged))
            // Of some only the prompt is gone.
            .filter(|it| it.1 != Some(it.2))
            .collect();
        reported_sessions.sort();
        let mut missing = missing;
        missing.sort();
        assert_eq!(reported_sessions, missing, "log {n}");
        if let Some(lost) = reported {
            // The files are preserved as they were found.
            assert_eq!((lost.kept.len(), &lost.not_kept), (3, &None));
            assert!(fs::read(&lost.kept[1]).unwrap() == bytes);
        }
        drop(left);
        let (again, notes) = open(&damaged).await;
        assert_eq!(notes, [], "it is reported once");
        add(&again.unwrap(), "new", 1).await.unwrap();
        assert_eq!(open(&damaged).await.1, []);
    }
    assert!(
        n_lost > 12,
        "{n_lost} sessions were lost: too few for a verdict"
    );
}

#[tokio::test]
async fn what_is_removed_is_not_missed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let (journal, _) = open(&path).await;
    let journal = journal.unwrap();
    for id in ["a", "b", "c"] {
        add(&journal, id, 2).await.unwrap();
    }
    let owner = Owner::new("owner");
    let b = SessionId::new("b");
    let lease = journal.acquire(&b, &owner, TTL, Takeover::Lapsed).await;
    journal.remove(&lease.unwrap()).await.unwrap();
    let none = Retention {
        sessions: Some(0),
        ..Retention::default()
    };
    // Their prompts wait: nothing goes.
    assert_eq!(journal.retain(none).await.unwrap().sessions, 0);
    let killed = dir.path().join("killed.db");
    copy(&path, &killed);
    let (left, notes) = open(&killed).await;
    assert_eq!((left.is_ok(), notes), (true, vec![]));
}

#[tokio::test]
async fn a_missing_journal_is_reported_when_a_new_one_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    add(&open(&path).await.0.unwrap(), "s", 3).await.unwrap();
    fs::remove_file(&path).unwrap();
    let (journal, notes) = open(&path).await;
    let [OpenNote::Lost(lost)] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert_eq!(lost.kept.len(), 1);
    let expected = LostData {
        is_gone: true,
        sessions: vec![LostSession {
            id: SessionId::new("s"),
            head: None,
            acknowledged: 3,
            commands: 1,
        }],
        kept: lost.kept.clone(),
        not_kept: None,
    };
    assert_eq!(*lost, expected);
    drop(journal);
    assert_eq!(open(&path).await.1, []);
}

/// The user moved the store away with all of its files.
#[tokio::test]
async fn another_journal_in_its_place_has_another_witness() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one.db"), dir.path().join("two.db"));
    add(&open(&one).await.0.unwrap(), "s", 3).await.unwrap();
    drop(open(&two).await.0.unwrap());
    fs::rename(&two, &one).unwrap();
    let (journal, notes) = open(&one).await;
    assert_eq!(notes, []);
    assert_eq!(sessions(&journal.unwrap()).await, []);
}

#[tokio::test]
async fn a_file_that_is_deleted_or_replaced_is_noticed_before_anything_is_acknowledged() {
    for suffix in ["", "-wal", "-shm"] {
        for is_replaced in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal.db");
            let journal = open(&path).await.0.unwrap();
            add(&journal, "before", 1).await.unwrap();
            journal.check().unwrap();
            let file = beside(&path, suffix);
            let bytes = fs::read(&file).unwrap();
            fs::rename(&file, dir.path().join("moved")).unwrap();
            if is_replaced {
                fs::write(&file, bytes).unwrap();
            }
            let refused = add(&journal, "after", 1).await;
            assert!(
                matches!(&refused, Err(Error::Storage(Fault::Gone(it))) if *it == file),
                "{suffix} {is_replaced}: {refused:?}"
            );
            assert!(matches!(journal.check(), Err(Fault::Gone(_))));
        }
    }
}

/// Prompts and answers are acknowledged like events, and the store may be ahead of its witness in one of the two.
#[tokio::test]
async fn what_is_missing_is_counted_for_events_and_commands() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = open(&path).await.0.unwrap();
    add(&journal, "s", 3).await.unwrap();
    drop(journal);
    let missing = |change: &str| {
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(&format!("UPDATE logs SET {change}"))
            .unwrap();
        Sqlite::examine(&path).unwrap().missing
    };
    let lost = |head, acknowledged, commands| {
        Some(vec![LostSession {
            id: SessionId::new("s"),
            head: Some(head),
            acknowledged,
            commands,
        }])
    };
    assert_eq!(missing("head = 3, commands = 1"), Some(vec![]));
    assert_eq!(missing("head = 4, commands = 2"), Some(vec![]));
    assert_eq!(missing("head = 3, commands = 0"), lost(3, 3, 1));
    assert_eq!(missing("head = 2, commands = 1"), lost(2, 3, 0));
    assert_eq!(missing("head = 5, commands = 0"), lost(5, 5, 1));
    // The witness of another store says nothing of this one.
    let other = dir.path().join("other.db");
    drop(open(&other).await.0.unwrap());
    fs::copy(Sqlite::witness(&other), beside(&path, "-witness")).unwrap();
    assert_eq!(missing("head = 1, commands = 0"), None);
}

#[tokio::test]
async fn an_emptied_journal_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    add(&open(&path).await.0.unwrap(), "s", 3).await.unwrap();
    fs::write(&path, "").unwrap();
    let (journal, notes) = open(&path).await;
    let [OpenNote::Lost(lost)] = &notes[..] else {
        panic!("{notes:?}");
    };
    let expected = LostData {
        is_gone: false,
        sessions: vec![LostSession {
            id: SessionId::new("s"),
            head: None,
            acknowledged: 3,
            commands: 1,
        }],
        kept: lost.kept.clone(),
        not_kept: None,
    };
    assert_eq!(*lost, expected);
    assert_eq!(lost.kept.len(), 2);
    add(&journal.unwrap(), "new", 1).await.unwrap();
}

/// A journal that never acknowledged anything has lost nothing.
#[tokio::test]
async fn a_missing_journal_without_sessions_is_no_loss() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    drop(open(&path).await.0.unwrap());
    fs::remove_file(&path).unwrap();
    assert_eq!(open(&path).await.1, []);
}

#[tokio::test]
async fn it_is_said_why_a_copy_could_not_be_made() {
    let dir = tempfile::tempdir().unwrap();
    // The name of the copy is too long for a file.
    let path = dir.path().join("j".repeat(230));
    add(&open(&path).await.0.unwrap(), "s", 1).await.unwrap();
    fs::remove_file(&path).unwrap();
    let notes = open(&path).await.1;
    let [OpenNote::Lost(lost)] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert_eq!(lost.kept, Vec::<PathBuf>::new());
    let reason = lost.not_kept.as_deref().unwrap();
    assert!(reason.contains("too long"), "{reason}");
}
