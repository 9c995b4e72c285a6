//! A store that its disk has altered: nothing altered is served, and undamaged rows still are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use journal::{
    Batch, CommandBody, Config, Damage, Deltas, Error, Fault, Journal, Lease, ManualClock,
    NewSession, Owner, Page, Read, SessionQuery, Sqlite, Stored, StoredFrame, Takeover, WriteId,
};
use model::{Body, BodyKind, Level, Outcome, SessionId, Why};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::harness::{
    Dice, START, TTL, ask_opened, delta, ended, entries, everything, note, settled, started,
    with_frame,
};

/// Flips in the fast tier, for each seed; `JOURNAL_FLIPS` asks for more.
const FLIPS: u64 = 40;
const SEEDS: [u64; 3] = [3, 14, 159];

pub(crate) fn config() -> Config {
    Config {
        clock: Arc::new(ManualClock::new(START)),
        cut: None,
    }
}

/// A store of some sessions, closed.
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    _dir: TempDir,
}

impl Disk {
    pub(crate) async fn new(n_sessions: u64, n_events: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        let journal = Sqlite::open(&path, config()).await.unwrap();
        for n in 1..=n_sessions {
            fill(&journal, &format!("s{n}"), n_events).await;
        }
        Self { path, _dir: dir }
    }

    pub(crate) async fn open(&self) -> Sqlite {
        Sqlite::open(&self.path, config()).await.unwrap()
    }

    /// Changes rows behind the journal's back.
    pub(crate) fn alter(&self, sql: &str) {
        let conn = Connection::open(&self.path).unwrap();
        conn.execute_batch(sql).unwrap();
    }
}

/// A session with a run of `n_events` events and one that is open, a question, a frame and two commands.
async fn fill(journal: &Sqlite, id: &str, n_events: u64) {
    let lease = begin(journal, id).await;
    let mut bodies = vec![started()];
    let texts: Vec<_> = (0..n_events - 2)
        .map(|it| format!("{id} {it} ").repeat(40))
        .collect();
    for (n, text) in texts.iter().enumerate() {
        bodies.push(if n % 3 == 0 { delta(text) } else { note(text) });
    }
    bodies.push(ended(Outcome::Completed));
    append(journal, &lease, 1, bodies).await;
    let frame = Batch::new(vec![with_frame(&lease, n_events + 1, b"a frame")]);
    journal.append(&lease, frame).await.unwrap();
    append(
        journal,
        &lease,
        n_events + 2,
        vec![ask_opened("a"), ask_opened("b")],
    )
    .await;
    let denied = settled("b", model::Decision::Denied);
    append(journal, &lease, n_events + 4, vec![denied]).await;
    for body in ["one", "two"] {
        let order = CommandBody::Prompt(Bytes::from_static(body.as_bytes()));
        journal
            .command(&lease.session, WriteId::new(), order)
            .await
            .unwrap();
    }
    journal.release(&lease).await.unwrap();
}

pub(crate) async fn begin(journal: &Sqlite, id: &str) -> Lease {
    let new = NewSession {
        home: journal::Node::default(),
        id: SessionId::new(id.to_owned()),
        engine: "claude".to_owned(),
        cwd: Some("/srv".to_owned()),
        title: Some(format!("title of {id}")),
        parent: None,
    };
    let id = journal.create(new).await.unwrap().id;
    let owner = Owner::new("owner");
    let lease = journal.acquire(&id, &owner, TTL, Takeover::Lapsed);
    lease.await.unwrap()
}

pub(crate) async fn append(journal: &Sqlite, lease: &Lease, first: u64, bodies: Vec<Body<'_>>) {
    let batch = Batch::new(entries(lease, first, bodies));
    journal.append(lease, batch).await.unwrap();
}

pub(crate) async fn read(journal: &Sqlite, id: &str) -> Page {
    let id = SessionId::new(id);
    journal.read(&id, everything(0)).await.unwrap()
}

/// Checks the placeholder of event `seq`, and returns it.
#[track_caller]
fn stand_in(stored: &Stored, session: &str, seq: u64) {
    assert_eq!((stored.seq, stored.kind), (seq, BodyKind::NoticeRaised));
    assert!(stored.is_damaged);
    let event = stored.event().unwrap();
    assert_eq!((event.seq, event.session.as_str()), (seq, session));
    assert_eq!(event.why, Some(Why::Damaged));
    let Body::NoticeRaised(notice) = event.body else {
        panic!("not a notice");
    };
    assert_eq!((notice.level, &*notice.code), (Level::Error, "damaged"));
    let text = format!(
        "event {seq} is damaged in the journal and not shown; `linkspan doctor` says what else is"
    );
    assert_eq!(notice.text.to_str(), text);
}

/// The numbers that are damaged; all others are as they were.
#[track_caller]
pub(crate) fn differences(before: &Page, after: &Page) -> Vec<u64> {
    assert_eq!(
        (before.head, before.next, before.events.len()),
        (after.head, after.next, after.events.len())
    );
    let pairs = before.events.iter().zip(&after.events);
    let damaged = pairs.filter(|(before, after)| {
        assert!(
            after.is_damaged || before == after,
            "event {} is altered",
            before.seq
        );
        after.is_damaged
    });
    damaged.map(|it| it.0.seq).collect()
}

#[tokio::test]
async fn a_damaged_event_is_replaced_by_a_notice_and_its_neighbours_are_served() {
    let key = "(SELECT key FROM sessions WHERE id = 's1') << 36 |";
    for (sql, damaged) in [
        (
            format!("UPDATE events SET line = replace(line, 'e', 'f') WHERE key = ({key} 6)"),
            vec![6],
        ),
        (
            format!("UPDATE events SET at = at + 1 WHERE key = ({key} 1)"),
            vec![1],
        ),
        (
            format!("UPDATE events SET kind = 'item.closed' WHERE key = ({key} 2)"),
            vec![2],
        ),
        // Two rows that have changed places.
        (
            format!(
                "UPDATE events SET key = -1 WHERE key = ({key} 7);
                 UPDATE events SET key = ({key} 7) WHERE key = ({key} 9);
                 UPDATE events SET key = ({key} 9) WHERE key = -1"
            ),
            vec![7, 9],
        ),
        // One of another session.
        (
            format!(
                "DELETE FROM events WHERE key = ({key} 3);
                 UPDATE events SET key = ({key} 3) WHERE key = (2 << 36 | 3)"
            ),
            vec![3],
        ),
        // Rows that are not there.
        (
            format!(
                "DELETE FROM events WHERE key IN (({key} 1), ({key} 4), ({key} 5), ({key} 16))"
            ),
            vec![1, 4, 5, 16],
        ),
        (
            format!("DELETE FROM events WHERE key > ({key} 0)"),
            (1..=16).collect(),
        ),
    ] {
        let disk = Disk::new(2, 12).await;
        let before = read(&disk.open().await, "s1").await;
        assert_eq!(before.head, 16);
        disk.alter(&sql);
        let journal = disk.open().await;
        let after = read(&journal, "s1").await;
        assert_eq!(differences(&before, &after), damaged, "{sql}");
        for seq in damaged {
            stand_in(&after.events[seq as usize - 1], "s1", seq);
        }
        // The same by pages of one, and without deltas: no reader stops at the damage.
        for deltas in [Deltas::Keep, Deltas::Skip] {
            let mut events = Vec::new();
            let mut next = 0;
            while next < after.head {
                let page = Read {
                    after: next,
                    deltas,
                    max_events: 1,
                    max_bytes: usize::MAX,
                };
                let page = journal.read(&SessionId::new("s1"), page).await.unwrap();
                next = page.next;
                events.extend(page.events);
            }
            let seqs = |events: &[Stored]| events.iter().map(|it| it.seq).collect::<Vec<_>>();
            let wanted = after.events.iter();
            let wanted =
                wanted.filter(|it| deltas == Deltas::Keep || it.kind != BodyKind::ItemDelta);
            let wanted: Vec<_> = wanted.cloned().collect();
            assert_eq!(seqs(&events), seqs(&wanted), "{sql}");
        }
    }
}

#[tokio::test]
async fn a_damaged_entry_is_an_error_and_the_list_shows_the_others() {
    let disk = Disk::new(3, 4).await;
    disk.alter("UPDATE sessions SET title = 'title of s9' WHERE id = 's2'");
    let journal = disk.open().await;
    let found = journal.find_session(&SessionId::new("s2")).await;
    assert!(
        matches!(&found, Err(Error::Damaged { session, row: Damage::Entry }) if session.as_str() == "s2"),
        "{found:?}"
    );
    assert_eq!(
        found.unwrap_err().to_string(),
        "the entry of session `s2` is damaged in the journal"
    );
    let list = journal.list(SessionQuery::default(), None, 10).await;
    let list = list.unwrap().sessions;
    let titles: Vec<_> = list.iter().map(|it| it.title.as_deref().unwrap()).collect();
    assert_eq!(
        titles,
        [
            "title of s3",
            "damaged in the journal; `linkspan doctor --repair` rescues its events",
            "title of s1"
        ]
    );
    assert_eq!(list[1].id.as_str(), "damaged-2");
    // Writing it again would hide the damage.
    let renamed = journal
        .rename(&SessionId::new("s2"), "new".to_owned())
        .await;
    assert!(matches!(
        renamed,
        Err(Error::Damaged {
            row: Damage::Entry,
            ..
        })
    ));
    // What is in it can be read.
    assert_eq!(read(&journal, "s2").await.head, 8);
}

#[tokio::test]
async fn damaged_rows_beside_the_log_are_not_acted_upon() {
    let s1 = SessionId::new("s1");
    let disk = Disk::new(2, 4).await;
    disk.alter(
        "UPDATE runs SET outcome = 'failed' WHERE session = 1;
         UPDATE asks SET answered = 1, decision = NULL WHERE session = 1 AND seq = 7;
         UPDATE commands SET body = CAST('rm' AS BLOB) WHERE session = 1 AND number = 1;
         UPDATE frames SET bytes = CAST('a flame' AS BLOB) WHERE key = (1 << 36 | 5)",
    );
    let journal = disk.open().await;
    assert_eq!(journal.runs(&s1, None, 9).await.unwrap(), []);
    assert_eq!(
        journal
            .runs(&SessionId::new("s2"), None, 9)
            .await
            .unwrap()
            .len(),
        1
    );
    let asks = journal.asks(None).await.unwrap();
    let asks: Vec<_> = asks
        .iter()
        .map(|it| (it.session.as_str(), it.seq))
        .collect();
    assert_eq!(asks, [("s1", 6), ("s2", 6)]);
    let settled = journal
        .settle(&s1, 7, WriteId::new(), Bytes::from_static(b"{}"))
        .await;
    assert!(
        matches!(
            settled,
            Err(Error::Damaged {
                row: Damage::Ask(7),
                ..
            })
        ),
        "{settled:?}"
    );
    let orders = journal.commands(&s1, 0).await.unwrap();
    let orders: Vec<_> = orders.into_iter().map(|it| it.order).collect();
    assert_eq!(
        orders,
        [
            CommandBody::Damaged,
            CommandBody::Prompt(Bytes::from_static(b"two"))
        ]
    );
    let frames = journal.frames(&s1, everything(0)).await;
    assert!(
        matches!(
            frames,
            Err(Error::Damaged {
                row: Damage::Frame(5),
                ..
            })
        ),
        "{frames:?}"
    );
    drop(journal);

    // The row of the ask is whole, its event is not.
    disk.alter(
        "UPDATE events SET line = replace(line, 'run it?', 'eat it?') WHERE key = (1 << 36 | 6)",
    );
    let journal = disk.open().await;
    let asks = journal.asks(None).await.unwrap();
    assert_eq!(asks.len(), 1);
    let settled = journal
        .settle(&s1, 6, WriteId::new(), Bytes::from_static(b"{}"))
        .await;
    assert!(
        matches!(
            settled,
            Err(Error::Damaged {
                row: Damage::Ask(6),
                ..
            })
        ),
        "{settled:?}"
    );
    drop(journal);

    disk.alter("UPDATE logs SET epoch = epoch - 1 WHERE session = 1");
    let journal = disk.open().await;
    let owner = Owner::new("owner");
    let lease = journal.acquire(&s1, &owner, TTL, Takeover::Lapsed).await;
    assert!(
        matches!(
            lease,
            Err(Error::Damaged {
                row: Damage::Log,
                ..
            })
        ),
        "{lease:?}"
    );
    let page = journal.read(&s1, everything(0)).await;
    assert!(
        matches!(
            page,
            Err(Error::Damaged {
                row: Damage::Log,
                ..
            })
        ),
        "{page:?}"
    );
    drop(journal);

    disk.alter("UPDATE epochs SET last = 0");
    let journal = disk.open().await;
    let s2 = SessionId::new("s2");
    let lease = journal.acquire(&s2, &owner, TTL, Takeover::Lapsed).await;
    assert!(
        matches!(lease, Err(Error::Storage(Fault::Corrupt(_)))),
        "{lease:?}"
    );
}

#[tokio::test]
async fn frames_before_a_damaged_one_are_served() {
    let disk = Disk::new(1, 4).await;
    let journal = disk.open().await;
    let s1 = SessionId::new("s1");
    let owner = Owner::new("owner");
    let lease = journal.acquire(&s1, &owner, TTL, Takeover::Lapsed).await;
    let lease = lease.unwrap();
    let batch = Batch::new(vec![
        with_frame(&lease, 9, b"second"),
        with_frame(&lease, 10, b"third"),
    ]);
    journal.append(&lease, batch).await.unwrap();
    drop(journal);
    disk.alter("UPDATE frames SET bytes = x'00' WHERE key = (1 << 36 | 9)");
    let journal = disk.open().await;
    let seqs = |frames: Vec<StoredFrame>| frames.iter().map(|it| it.seq).collect::<Vec<_>>();
    let frames = |after| journal.frames(&s1, everything(after));
    assert_eq!(seqs(frames(0).await.unwrap()), [5]);
    let damaged = frames(5).await;
    assert!(
        matches!(
            damaged,
            Err(Error::Damaged {
                row: Damage::Frame(9),
                ..
            })
        ),
        "{damaged:?}"
    );
    assert_eq!(seqs(frames(9).await.unwrap()), [10]);
}

/// Everything a store serves, without what it refuses.
async fn served(path: &Path) -> Option<Vec<(String, Option<String>, Option<Page>)>> {
    let journal = Sqlite::open(path, config()).await.ok()?;
    let mut all = Vec::new();
    for id in ["s1", "s2", "s3", "s4"] {
        let id = SessionId::new(id);
        let session = journal.find_session(&id).await.ok();
        let page = journal.read(&id, everything(0)).await.ok();
        let runs = journal.runs(&id, None, 9).await.ok();
        all.push((
            id.to_string(),
            session.map(|it| format!("{it:?} {runs:?}")),
            page,
        ));
    }
    Some(all)
}

#[tokio::test]
async fn after_any_flipped_bit_no_altered_event_is_served() {
    let flips = std::env::var("JOURNAL_FLIPS").map_or(FLIPS, |it| it.parse().unwrap());
    let disk = Disk::new(4, 300).await;
    let before = served(&disk.path).await.unwrap();
    let whole = fs::read(&disk.path).unwrap();
    let (mut n_refused, mut n_reported) = (0, 0);
    for seed in SEEDS {
        let mut dice = Dice::new(seed);
        for n in 0..flips {
            let bit = dice.below(whole.len() as u64 * 8);
            let mut bytes = whole.clone();
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal.db");
            fs::write(&path, bytes).unwrap();
            let Some(after) = served(&path).await else {
                n_refused += 1;
                continue;
            };
            let mut is_told = false;
            for ((id, session, page), (_, then, now)) in before.iter().zip(&after) {
                let which = format!("seed {seed}, flip {n}, bit {bit}, session {id}");
                let is_same = session == then;
                // Leaving something out is no alteration; a session shown as another would be one.
                let is_shown = then.as_ref().is_some_and(|it| it.starts_with("Some"));
                let head = |it: &Option<String>| {
                    let it = it.as_deref().unwrap_or_default();
                    it.split_once(" Some([").map(|it| it.0.to_owned())
                };
                assert!(
                    is_same || !is_shown || head(session) == head(then),
                    "{which}: {then:?}"
                );
                is_told |= !is_same;
                match now {
                    None => is_told = true,
                    Some(now) => is_told |= !differences(page.as_ref().unwrap(), now).is_empty(),
                }
            }
            n_reported += u64::from(is_told);
        }
    }
    assert!(
        n_refused + n_reported > flips / 4,
        "{n_refused} refused, {n_reported} reported"
    );
}
