//! A program that appends is killed, or meets a full disk: acknowledged events are there, once and whole.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{
    Batch, Config, Entry, Journal, Lease, NewSession, OpenNote, Owner, Sqlite, SystemClock,
    Takeover,
};
use model::{Body, Event, SessionId};

use crate::harness::{Dice, TTL, event, everything, note};

/// Kills in the fast tier; `JOURNAL_KILLS` asks for more.
const KILLS: u64 = 50;

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let kills = std::env::var("JOURNAL_KILLS").map_or(KILLS, |it| it.parse().unwrap());
    let mut dice = Dice::new(5);
    let mut head = 0;
    for n in 1..=kills {
        let mut child = Command::new(appender())
            .arg(&path)
            .args([
                format!("owner {n}"),
                format!("owner {}", n - 1),
                n.to_string(),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let acknowledged = kill_after(&mut child, dice.below(30), dice.below(3000));
        let found = verify(&path, head).await;
        assert!(found >= acknowledged.unwrap_or(head), "kill {n}");
        head = found;
    }
    assert!(head > kills, "the program got nowhere");
}

/// Lets it acknowledge some appends and work a little longer; the last number it acknowledged before it died.
fn kill_after(child: &mut Child, n_appends: u64, micros: u64) -> Option<u64> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = None;
    for _ in 0..n_appends {
        last = Some(lines.next().unwrap().unwrap());
    }
    let until = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had printed before it died was acknowledged too; its last line may be cut off.
    for line in lines.map_while(Result::ok) {
        last = Some(line);
    }
    last.map(|it| it.parse().unwrap())
}

#[tokio::test]
async fn a_full_disk_is_survived_without_opening_the_store_again() {
    for limit in [200_000, 250_000, 300_000, 400_000] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        // Ignored signals stay ignored: a write over the limit fails instead of killing.
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(appender())
            .arg(&path)
            .args(["owner", "nobody", "1", &limit.to_string()])
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{stdout}");
        let (faults, heads): (Vec<_>, Vec<_>) =
            stdout.lines().partition(|it| it.parse::<u64>().is_err());
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            ["the disk is full", "reading or writing the store failed"].contains(&faults[0]),
            "{faults:?}"
        );
        let head: u64 = heads.last().unwrap().parse().unwrap();
        assert_eq!(verify(&path, 0).await, head);
    }
}

/// What was not synced when the power went may be missing or garbage; what was acknowledged was synced.
#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = Sqlite::open(&path, config()).await.unwrap();
    let lease = take(&journal).await;
    let log = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    // How long the log of changes was when each event was acknowledged.
    let mut lengths = vec![(0, fs::metadata(log(&path)).unwrap().len())];
    for seq in 1..=40 {
        let batch = Batch::new(vec![entry(&lease, seq)]);
        journal.append(&lease, batch).await.unwrap();
        lengths.push((seq, fs::metadata(log(&path)).unwrap().len()));
    }
    let (store, changes) = (fs::read(&path).unwrap(), fs::read(log(&path)).unwrap());

    let mut dice = Dice::new(20);
    let (_, first) = lengths[0];
    for n in 0..100 {
        let cut = first + dice.below(changes.len() as u64 - first + 1);
        let mut left = changes[..cut as usize].to_vec();
        left.extend((0..dice.below(3) * 5000).map(|_| dice.below(256) as u8));
        let copy = dir.path().join(format!("copy-{n}.db"));
        fs::write(&copy, &store).unwrap();
        fs::write(log(&copy), left).unwrap();
        let synced = lengths.iter().rev().find(|(_, length)| *length <= cut);
        assert!(
            verify(&copy, 0).await >= synced.unwrap().0,
            "cut {n} at {cut}"
        );
    }
}

/// Reads on from `after`: the numbers have no gap, each event and frame is whole. Returns the last number.
async fn verify(path: &Path, after: u64) -> u64 {
    let no_alarm = |note| assert!(!matches!(note, OpenNote::Lost(_)), "{note:?}");
    let journal = Sqlite::open_with_notes(path, config(), no_alarm)
        .await
        .unwrap();
    let session = SessionId::new("s");
    if journal.find_session(&session).await.unwrap().is_none() {
        return 0;
    }
    let page = journal.read(&session, everything(after)).await.unwrap();
    let frames = journal.frames(&session, everything(after)).await.unwrap();
    assert_eq!(page.events.len(), frames.len());
    for ((seq, stored), frame) in (after + 1..).zip(&page.events).zip(&frames) {
        assert_eq!((stored.seq, frame.seq), (seq, seq));
        let text = text(seq);
        let event = Event::from_json(std::str::from_utf8(&stored.line).unwrap()).unwrap();
        assert_eq!(event.seq, seq);
        let Body::NoticeRaised(notice) = event.body else {
            panic!("event {seq} is something else");
        };
        assert_eq!(notice.text.to_str(), text);
        assert_eq!(frame.bytes, text.as_bytes());
    }
    assert_eq!(page.head, after + page.events.len() as u64);
    page.head
}

fn config() -> Config {
    Config {
        clock: Arc::new(SystemClock::new()),
        cut: None,
    }
}

async fn take(journal: &Sqlite) -> Lease {
    let session = SessionId::new("s");
    let new = NewSession {
        home: journal::Node::default(),
        id: session.clone(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    journal.create(new).await.unwrap();
    let owner = Owner::new("owner");
    let lease = journal.acquire(&session, &owner, TTL, Takeover::Lapsed);
    lease.await.unwrap()
}

/// An event like those of the example program.
fn entry(lease: &Lease, seq: u64) -> Entry {
    let text = text(seq);
    let event = event(lease, seq, note(&text));
    Entry::of(&event, Some(text.clone().into())).unwrap()
}

fn text(seq: u64) -> String {
    format!("{seq} ").repeat((seq % 97) as usize * 5 + 1)
}

/// The example program; `cargo test` builds it beside the tests.
fn appender() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples/appender");
    assert!(
        path.exists(),
        "no example beside the tests: run `cargo test -p linkspan-journal` without naming a target"
    );
    path
}
