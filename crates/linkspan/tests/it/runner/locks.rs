//! Sessions shared by processes: never two in one, none stuck, whoever is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runner::locks::{Lock, Locks};
use runner::process::ProcessTag;
use tokio::time::{sleep, timeout};

use super::{example, rounds, soaked, within};
use crate::program::Folder;

/// Nobody waits longer for a session that is free.
const STUCK: Duration = Duration::from_secs(20);

fn stand_in(args: &[&str]) -> Child {
    let mut command = Command::new(example("stand_in"));
    command.args(args).stdout(Stdio::piped()).spawn().unwrap()
}

async fn enter(folder: &Folder) -> Lock {
    let locks = Locks::new(folder.path("locks"));
    let place = locks.queue("scripted", "s1", "a test").await.unwrap();
    timeout(STUCK, place.wait()).await.unwrap().unwrap()
}

fn tickets(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("locks")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|it| it != "queue").collect()
}

#[tokio::test]
async fn processes_with_many_tasks_take_turns_in_one_session() {
    let began = Instant::now();
    let folder = Folder::new("turns");
    let n_each = rounds(32);
    let each = n_each.to_string();
    let busy = ["lock", &folder.path(""), "32", &each];
    let [mut one, mut two] = [(); 2].map(|()| stand_in(&busy));
    // One among many gets its turns too.
    for _ in 0..10 {
        enter(&folder).await;
    }
    let ends = [one.wait().unwrap(), two.wait().unwrap()];
    assert!(ends.iter().all(|it| it.success()), "{ends:?}");
    let counted = fs::read_to_string(folder.path("rounds")).unwrap();
    assert_eq!(counted, (2 * 32 * n_each).to_string());
    assert_eq!(tickets(&folder), Vec::<String>::new());
    let what = format!("{counted} turns of 64 tasks of two processes in one session");
    soaked(began, &what);
}

#[tokio::test]
async fn killed_holders_and_waiters_do_not_keep_the_session() {
    let began = Instant::now();
    let folder = Folder::new("kills");
    let start = || stand_in(&["lock", &folder.path(""), "4", "0"]);
    let mut children: Vec<Child> = (0..4).map(|_| start()).collect();
    let n_kills = rounds(100);
    for n in 0..n_kills {
        // Some die before they have drawn a ticket, most while they wait, some in the session.
        sleep(Duration::from_millis(n as u64 * 7 % 30)).await;
        let mut killed = std::mem::replace(&mut children[n % 4], start());
        killed.kill().unwrap();
        assert_eq!(killed.wait().unwrap().signal(), Some(9));
    }
    let before = fs::read_to_string(folder.path("rounds")).unwrap();
    drop(enter(&folder).await);
    // The living go on.
    within(STUCK, "another round", || {
        let now = fs::read_to_string(folder.path("rounds")).unwrap();
        !now.is_empty() && now != before
    });
    for mut child in children {
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    drop(enter(&folder).await);
    assert_eq!(tickets(&folder), Vec::<String>::new());
    let what = format!("{n_kills} holders and waiters of a session killed, none kept it");
    soaked(began, &what);
}

/// Kills a linkspan with its agent in a session, and enters that session.
async fn enter_after_a_kill(guard: &str) {
    let folder = Folder::new(&format!("orphan-{}", guard.len()));
    let agent = example("scripted_agent");
    let tag = ProcessTag::random().unwrap();
    let mut args = vec!["run", "", "", guard, agent.to_str().unwrap()];
    let (dir, mark) = (folder.path(""), tag.to_string());
    (args[1], args[2]) = (&dir, &mark);
    args.extend("ignore start ( ignore session hold ) hold".split(' '));
    let mut killed = stand_in(&args);
    let mut line = String::new();
    let mut stdout = BufReader::new(killed.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    sleep(Duration::from_millis(u64::from(killed.id()) % 40)).await;
    killed.kill().unwrap();
    let _lock = enter(&folder).await;
    assert!(!tag.is_alive());
    killed.wait().unwrap();
}

#[tokio::test]
async fn a_killed_linkspan_leaves_no_agent_in_the_session() {
    let began = Instant::now();
    let n_kills = rounds(10);
    for _ in 0..n_kills {
        enter_after_a_kill(env!("CARGO_BIN_EXE_linkspan")).await;
    }
    let what = format!("{n_kills} linkspans killed in a session, no agent left in it");
    soaked(began, &what);
}

#[tokio::test]
async fn the_agent_of_a_killed_program_without_a_guard_is_ended_by_the_next() {
    enter_after_a_kill("").await;
}
