//! Locks within one process; those across processes are tested with the program.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::process::VARIABLE;

/// A folder of locks that is gone after the test.
struct Folder(Locks);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = env::temp_dir().join(format!("linkspan-locks-{}-{name}", process::id()));
        Self(Locks::new(dir))
    }

    async fn queue(&self, id: &str, holder: &str) -> QueueSlot {
        self.0.queue("claude", id, holder).await.unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0.dir).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0.dir).unwrap();
    }
}

fn holder(place: &QueueSlot) -> Option<(u32, &str)> {
    place.held().map(|it| (it.pid, it.holder.as_str()))
}

#[tokio::test]
async fn a_free_session_is_ours_at_once_and_leaves_nothing_behind() {
    let folder = Folder::new("free");
    let place = folder.queue("s1", "a").await;
    assert_eq!(holder(&place), None);
    let lock = place.wait().await.unwrap();
    assert_eq!(folder.files().len(), 2);
    drop(lock);
    assert_eq!(folder.files(), ["queue"]);
    let mode = fs::metadata(&folder.0.dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn a_waiter_sees_the_holder() {
    let folder = Folder::new("held");
    let lock = folder.queue("s1", "run 1").await.wait().await.unwrap();
    let second = folder.queue("s1", "run 2").await;
    let third = folder.queue("s1", "run 3").await;
    let expected = Some((process::id(), "run 1"));
    assert_eq!([holder(&second), holder(&third)], [expected; 2]);
    drop(lock);
    drop(second.wait().await.unwrap());
    drop(third.wait().await.unwrap());
}

#[tokio::test]
async fn sessions_and_engines_do_not_wait_for_each_other() {
    let folder = Folder::new("others");
    let mut locks = Vec::new();
    for (engine, id) in [
        ("claude", "s1"),
        ("claude", "s2"),
        ("codex", "s1"),
        ("claudes", "1"),
        ("claude", "../../s1"),
        ("claude", ""),
        ("claude", &"x".repeat(512)),
    ] {
        let place = folder.0.queue(engine, id, "a").await.unwrap();
        assert_eq!(holder(&place), None, "{engine} {id}");
        locks.push(place.wait().await.unwrap());
    }
    // Each has one ticket, and no id has become a path.
    assert_eq!(folder.files().len(), locks.len() + 1);
}

#[tokio::test]
async fn first_come_first_served() {
    let folder = Folder::new("fifo");
    let lock = folder.queue("s1", "holder").await.wait().await.unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    let mut waiting = JoinSet::new();
    for n in 0..20 {
        let place = folder.queue("s1", "waiter").await;
        let tx = tx.clone();
        waiting.spawn(async move {
            let _lock = place.wait().await.unwrap();
            tx.send(n).unwrap();
        });
    }
    drop((lock, tx));
    waiting.join_all().await;
    assert_eq!(rx.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_cancelled_wait_frees_its_slot() {
    let folder = Folder::new("cancel");
    let lock = folder.queue("s1", "holder").await.wait().await.unwrap();
    let second = folder.queue("s1", "second").await;
    let third = folder.queue("s1", "third").await;
    let short = Duration::from_millis(20);
    assert!(timeout(short, second.wait()).await.is_err());
    let third = tokio::spawn(third.wait());
    drop(lock);
    drop(third.await.unwrap().unwrap());
    assert_eq!(folder.files(), ["queue"]);
}

#[tokio::test]
async fn readers_wait_for_writers_and_not_for_each_other() {
    let folder = Folder::new("readers");
    let read = async |name: &str| folder.0.queue_to_read("claude", "s1", name).await.unwrap();
    let first = read("fork 1").await;
    let second = read("fork 2").await;
    assert_eq!([holder(&first), holder(&second)], [None; 2]);
    let (first, second) = (first.wait().await.unwrap(), second.wait().await.unwrap());
    let writer = folder.queue("s1", "run").await;
    assert_eq!(holder(&writer), Some((process::id(), "fork 1")));
    let third = read("fork 3").await;
    assert_eq!(holder(&third), Some((process::id(), "run")));
    drop((first, second));
    drop(writer.wait().await.unwrap());
    drop(third.wait().await.unwrap());
    assert_eq!(folder.files(), ["queue"]);
}

#[tokio::test]
async fn an_idle_lock_blocks_no_one_and_can_be_reacquired() {
    let folder = Folder::new("idle");
    let lock = folder.queue("s1", "warm").await.wait().await.unwrap();
    let waiter = folder.queue("s1", "waiter").await;
    let idle = lock.mark_idle().unwrap();
    drop((lock, waiter));
    let reader = folder.0.queue_to_read("claude", "s1", "fork").await;
    let reader = reader.unwrap();
    assert_eq!(holder(&reader), None);
    drop(reader.wait().await.unwrap());
    let lock = idle.clone().reacquire("warm").await.unwrap();
    assert!(lock.is_some(), "a reader leaves the session as it is");
    drop((idle, lock));
    assert_eq!(folder.files(), ["queue"]);
}

#[tokio::test]
async fn a_write_while_idle_is_noticed() {
    let folder = Folder::new("outdated");
    let lock = folder.queue("s1", "warm").await.wait().await.unwrap();
    let idle = lock.mark_idle().unwrap();
    drop(lock);
    let other = folder.queue("s1", "other").await;
    assert_eq!(holder(&other), None);
    let other = other.wait().await.unwrap();
    let second = other.mark_idle().unwrap();
    drop(other);
    assert!(idle.reacquire("warm").await.unwrap().is_none());
    assert!(second.reacquire("other").await.unwrap().is_some());
    assert_eq!(folder.files(), ["queue"]);
}

/// A ticket as a killed process leaves it, and the agent it speaks of.
async fn leave_behind(folder: &Folder, with_agent: bool) -> (ProcessTag, Child) {
    let tag = ProcessTag::random().unwrap();
    let mut agent = Command::new("sh")
        .args(["-c", "echo; trap '' TERM; while :; do sleep 0.1; done"])
        .env(VARIABLE, tag.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    io::Read::read_exact(agent.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let lock = folder.queue("s1", "dead").await.wait().await.unwrap();
    if with_agent {
        lock.protect(tag).unwrap();
    }
    let content = fs::read(&lock.ticket.path).unwrap();
    let path = lock.ticket.path.clone();
    drop(lock);
    fs::write(path, content).unwrap();
    (tag, agent)
}

#[tokio::test]
async fn the_place_of_a_dead_owner_is_free() {
    let folder = Folder::new("dead");
    let (_, mut other) = leave_behind(&folder, false).await;
    let place = folder.queue("s1", "next").await;
    assert_eq!(holder(&place), None);
    drop(place.wait().await.unwrap());
    assert_eq!(folder.files(), ["queue"]);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn a_session_stays_locked_while_the_agent_of_a_dead_owner_lives() {
    let folder = Folder::new("orphan");
    let (tag, mut agent) = leave_behind(&folder, true).await;
    let place = folder.queue("s1", "next").await;
    assert_eq!(holder(&place), Some((process::id(), "dead")));
    let start = Instant::now();
    let lock = place.wait().await.unwrap();
    assert!(!tag.is_alive());
    // It was given the time that a guard may take.
    assert!(start.elapsed() >= Duration::from_secs(2));
    drop(lock);
    agent.wait().unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_an_error() {
    let err = Locks::new("/dev/null/locks")
        .queue("claude", "s1", "a")
        .await
        .unwrap_err();
    assert_eq!(
        err.to_string(),
        "cannot lock a session in `/dev/null/locks`"
    );
}
