//! A damaged store is examined without being changed, and its undamaged rows are saved.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use journal::{
    CommandBody, Damage, DamagedRow, Fault, Journal, Owner, Session, SessionQuery, Sqlite,
    Takeover, WriteId,
};
use model::SessionId;

use crate::damage::{Disk, config, differences, read};
use crate::harness::{Dice, TTL, everything};

fn row(session: &str, row: Damage) -> DamagedRow {
    DamagedRow {
        session: SessionId::new(session.to_owned()),
        row,
    }
}

async fn sessions(journal: &Sqlite) -> Vec<Session> {
    let list = journal.list(SessionQuery::default(), None, 100).await;
    list.unwrap().sessions
}

/// All files beside a store but its locks.
fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut files: Vec<_> = entries
        .map(|it| it.unwrap().path())
        .filter(|it| !it.to_string_lossy().ends_with("-shm"))
        .filter(|it| fs::metadata(it).unwrap().len() > 0)
        .map(|it| (it.clone(), fs::read(it).unwrap()))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn an_undamaged_store_is_reported_as_such() {
    let disk = Disk::new(3, 10).await;
    let before = files(&disk.path);
    let report = Sqlite::examine(&disk.path).unwrap();
    assert!(files(&disk.path) == before, "looking changes nothing");
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.sessions, report.events), (3, 42));
    assert_eq!((report.version, report.known), (5, 5));
    assert_eq!(report.missing, Some(vec![]));
    let length = |suffix: &str| {
        let path = format!("{}{suffix}", disk.path.display());
        fs::metadata(path).map_or(0, |it| it.len())
    };
    assert_eq!((report.bytes, report.wal_bytes), (length(""), 0));
    // The same while it is in use.
    let journal = disk.open().await;
    let s1 = SessionId::new("s1");
    journal.rename(&s1, "new".to_owned()).await.unwrap();
    let report = Sqlite::examine(&disk.path).unwrap();
    assert!(report.is_whole());
    assert!(report.wal_bytes > 0);
    assert_eq!(
        (report.bytes, report.wal_bytes),
        (length(""), length("-wal"))
    );
    drop(journal);
}

#[tokio::test]
async fn what_is_whole_is_saved_and_the_old_store_is_kept() {
    let disk = Disk::new(3, 10).await;
    let journal = disk.open().await;
    let before = sessions(&journal).await;
    let pages = [
        read(&journal, "s1").await,
        read(&journal, "s2").await,
        read(&journal, "s3").await,
    ];
    let runs = journal.runs(&SessionId::new("s1"), None, 9).await.unwrap();
    let asks = journal.asks(None).await.unwrap();
    drop(journal);
    disk.alter(
        "UPDATE events SET line = replace(line, 's1', 's9') WHERE key IN (1 << 36 | 4, 1 << 36 | 5);
         UPDATE runs SET outcome = 'failed' WHERE session = 1;
         UPDATE sessions SET title = 'another' WHERE id = 's2';
         UPDATE logs SET head = 99 WHERE session = 2;
         UPDATE commands SET body = x'00' WHERE session = 3 AND number = 1;
         UPDATE frames SET cut = 5 WHERE key = (3 << 36 | 11);
         DELETE FROM events WHERE key = (3 << 36 | 14)",
    );
    let damaged = Sqlite::examine(&disk.path).unwrap();
    let lost = vec![
        row("s1", Damage::Event(4)),
        row("s1", Damage::Event(5)),
        row("s1", Damage::Run(1)),
        row("damaged-2", Damage::Entry),
        row("damaged-2", Damage::Log),
        row("s3", Damage::Event(14)),
        row("s3", Damage::Frame(11)),
        row("s3", Damage::Command(1)),
    ];
    let mut sorted = lost.clone();
    sorted.sort_by_key(|it| (it.session.to_string(), it.row));
    assert_eq!(damaged.damaged, sorted);
    let old = fs::read(&disk.path).unwrap();

    let repaired = Sqlite::repair(&disk.path).unwrap();
    assert_eq!((repaired.sessions, repaired.events), (3, 42 - 3));
    assert_eq!(
        repaired.lost,
        [
            row("s1", Damage::Event(4)),
            row("s1", Damage::Event(5)),
            row("s2", Damage::Entry),
            row("s3", Damage::Event(14)),
            row("s3", Damage::Frame(11)),
            row("s3", Damage::Command(1)),
        ]
    );
    assert!(fs::read(&repaired.kept[0]).unwrap() == old);

    let report = Sqlite::examine(&disk.path).unwrap();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.aside, repaired.kept[..1]);
    assert_eq!(report.missing, Some(vec![]));
    let journal = disk.open().await;
    let mut expected = before;
    for session in &mut expected {
        if session.id.as_str() == "s2" {
            session.title = None;
            session.cwd = None;
        }
        if session.id.as_str() == "s3" {
            // Its first command was damaged.
            session.queued -= 1;
        }
    }
    for (was, is) in expected.iter_mut().zip(sessions(&journal).await) {
        // Notices are shorter than the events they replace.
        was.bytes = is.bytes;
        assert_eq!(*was, is);
    }
    let damaged = [vec![4, 5], vec![], vec![14]];
    for ((n, page), damaged) in (1..).zip(pages).zip(damaged) {
        let after = read(&journal, &format!("s{n}")).await;
        let other = |it: &(&journal::Stored, &journal::Stored)| it.0 != it.1;
        let pairs = page.events.iter().zip(&after.events).filter(other);
        assert_eq!(pairs.map(|it| it.0.seq).collect::<Vec<_>>(), damaged);
        let mut notices = after.events.iter();
        for seq in damaged {
            let notice = notices.find(|it| it.seq == seq).unwrap();
            assert_eq!(notice.event().unwrap().why, Some(model::Why::Damaged));
        }
    }
    let s1 = SessionId::new("s1");
    assert_eq!(journal.runs(&s1, None, 9).await.unwrap(), runs);
    assert_eq!(journal.asks(None).await.unwrap(), asks);
    let s3 = SessionId::new("s3");
    let orders = journal.commands(&s3, 0).await.unwrap();
    let two = CommandBody::Prompt(Bytes::from_static(b"two"));
    assert_eq!(
        orders
            .iter()
            .map(|it| (it.number, &it.order))
            .collect::<Vec<_>>(),
        [(2, &two)]
    );
    assert_eq!(
        journal
            .command(&s3, WriteId::new(), two.clone())
            .await
            .unwrap(),
        3
    );
    // Leases of before do not pass, and new ones are given.
    let owner = Owner::new("owner");
    let lease = journal.acquire(&s1, &owner, TTL, Takeover::Lapsed).await;
    assert!(lease.unwrap().epoch > 6);
}

#[tokio::test]
async fn a_store_in_use_is_not_repaired() {
    let disk = Disk::new(1, 4).await;
    disk.alter("UPDATE runs SET outcome = 'failed'");
    let journal = disk.open().await;
    journal.pending(None).await.unwrap();
    let before = fs::read(&disk.path).unwrap();
    let refused = Sqlite::repair(&disk.path);
    assert!(matches!(refused, Err(Fault::InUse)), "{refused:?}");
    assert!(fs::read(&disk.path).unwrap() == before);
    drop(journal);
    Sqlite::repair(&disk.path).unwrap();
}

/// Whatever is flipped, a repair either fails and changes nothing, or makes a store that is whole and holds
/// no altered event.
#[tokio::test]
async fn a_repair_saves_nothing_that_was_altered() {
    let disk = Disk::new(4, 100).await;
    let journal = disk.open().await;
    let mut before = Vec::new();
    for n in 1..=4 {
        before.push(read(&journal, &format!("s{n}")).await);
    }
    drop(journal);
    let whole = fs::read(&disk.path).unwrap();
    let mut dice = Dice::new(77);
    let mut n_repaired = 0;
    for n in 0..30 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        let mut bytes = whole.clone();
        for _ in 0..4 {
            let bit = dice.below(whole.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        fs::write(&path, &bytes).unwrap();
        if Sqlite::examine(&path).is_ok_and(|it| it.is_whole()) {
            continue;
        }
        if Sqlite::repair(&path).is_err() {
            assert!(fs::read(&path).unwrap() == bytes, "damage {n}");
            continue;
        }
        n_repaired += 1;
        let report = Sqlite::examine(&path).unwrap();
        assert!(report.is_whole(), "damage {n}: {report:?}");
        let journal = Sqlite::open(&path, config()).await.unwrap();
        for session in sessions(&journal).await {
            let after = journal.read(&session.id, everything(0)).await.unwrap();
            let was = before
                .iter()
                .find(|it| it.events[0].line == after.events[0].line);
            let Some(was) = was else { continue };
            let mut after = after;
            for event in &mut after.events {
                event.is_damaged = event
                    .event()
                    .is_some_and(|it| it.why == Some(model::Why::Damaged));
            }
            differences(was, &after);
        }
    }
    assert!(
        n_repaired > 5,
        "{n_repaired} repaired: too few for a verdict"
    );
}

#[test]
fn what_is_no_store_is_not_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    assert!(matches!(Sqlite::examine(&path), Err(Fault::Io(_))));
    fs::write(&path, "Dear Ann, ".repeat(1000)).unwrap();
    assert!(matches!(Sqlite::examine(&path), Err(Fault::Corrupt(_))));
    assert!(matches!(Sqlite::repair(&path), Err(Fault::Corrupt(_))));
}

#[tokio::test]
async fn damage_of_the_structure_is_reported_in_the_words_of_sqlite() {
    let disk = Disk::new(1, 300).await;
    let mut bytes = fs::read(&disk.path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    fs::write(&disk.path, bytes).unwrap();
    let report = Sqlite::examine(&disk.path).unwrap();
    assert_eq!(report.structure, ["database disk image is malformed"]);

    let disk = Disk::new(1, 4).await;
    disk.alter(
        "CREATE TABLE more (a); INSERT INTO more VALUES (NULL); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE more (a NOT NULL)' WHERE name = 'more'",
    );
    let report = Sqlite::examine(&disk.path).unwrap();
    assert_eq!(report.structure, ["NULL value in more.a"]);
}
