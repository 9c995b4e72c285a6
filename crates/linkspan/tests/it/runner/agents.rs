//! One agent at a time: its output, its end, and how it is stopped.

use std::process::Command;
use std::time::{Duration, Instant};

use model::Exit;
use runner::process::{
    Escalation, EscalationStep, GracePeriods, Guard, Process, ProcessTag, SpawnError,
};
use runner::{Launch, Stdin};
use tokio::io::AsyncReadExt;

use super::{example, guard, launch, start, within};
use crate::program::{Folder, ran};

/// Everything an agent said, and how it ended.
async fn outcome(mut process: Process) -> (Exit, String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let (mut out, mut err) = (
        process.stdout.take().unwrap(),
        process.stderr.take().unwrap(),
    );
    let (exit, _, _) = tokio::join!(
        process.wait(),
        out.read_to_string(&mut stdout),
        err.read_to_string(&mut stderr)
    );
    (exit, stdout, stderr)
}

fn said(exit: Exit, stdout: &str) -> (Exit, String, String) {
    (exit, stdout.to_owned(), String::new())
}

#[tokio::test]
async fn the_end_of_the_agent_passes_through_the_guard() {
    for guard in [guard(), Guard::None] {
        for (script, exit) in [
            ("say=hi", Exit::Code(0)),
            ("say=hi exit=7", Exit::Code(7)),
            ("say=hi exit=255", Exit::Code(255)),
            ("say=hi signal=9", Exit::Signal(9)),
            ("say=hi signal=15", Exit::Signal(15)),
            ("say=hi signal=6", Exit::Signal(6)),
        ] {
            assert_eq!(
                outcome(start(script, &guard)).await,
                said(exit, "hi\n"),
                "{script}"
            );
        }
    }
}

/// Some programs ignore the ends of their children, and whatever they start inherits that.
#[test]
fn the_agents_exit_is_seen_for_any_parent() {
    let folder = Folder::new("ignored-children");
    for guard in [env!("CARGO_BIN_EXE_linkspan"), ""] {
        let ignoring = Command::new("env")
            .arg("--ignore-signal=CHLD")
            .arg(example("stand_in"))
            .args(["run", &folder.path(""), "1", guard])
            .arg(example("scripted_agent"))
            .arg("exit=3")
            .output()
            .unwrap();
        assert_eq!(ran(ignoring).shown(), "running\nCode(3)\nexit 0\n");
    }
}

#[tokio::test]
async fn text_is_written_to_stdin_and_may_stay_unread() {
    let text = "x".repeat(1 << 20);
    for (script, exit) in [("read", Exit::Code(0)), ("exit=3", Exit::Code(3))] {
        let launch = launch(&[script], Stdin::Text(text.clone()));
        let process = Process::spawn(&launch, &guard(), ProcessTag::random().unwrap()).unwrap();
        assert_eq!(outcome(process).await, said(exit, ""));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_an_error() {
    let run = async |program: &str| {
        let program = program.into();
        let launch = Launch {
            program,
            ..launch(&[], Stdin::Closed)
        };
        outcome(Process::spawn(&launch, &guard(), ProcessTag::random().unwrap()).unwrap()).await
    };
    let missing = "cannot start `/nowhere/agent`: No such file or directory\n";
    let denied = "cannot start `/etc/passwd`: Permission denied\n";
    assert_eq!(
        [run("/nowhere/agent").await, run("/etc/passwd").await],
        [
            (Exit::Code(127), String::new(), missing.to_owned()),
            (Exit::Code(126), String::new(), denied.to_owned()),
        ]
    );
}

#[tokio::test]
async fn a_missing_folder_is_not_blamed_on_the_program() {
    let launch = Launch {
        cwd: "/nowhere".into(),
        ..launch(&[], Stdin::Closed)
    };
    let err = Process::spawn(&launch, &guard(), ProcessTag::random().unwrap()).unwrap_err();
    assert!(matches!(err, SpawnError::Cwd { .. }));
    assert_eq!(err.to_string(), "cannot work in `/nowhere`");
}

#[tokio::test]
async fn an_interrupted_agent_ends_at_once() {
    for guard in [guard(), Guard::None] {
        let mut process = start("say=ready hold", &guard);
        let mut ready = [0; 6];
        process
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .await
            .unwrap();
        let start = Instant::now();
        process.interrupt();
        assert_eq!(process.wait().await, Exit::Signal(2));
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            start.elapsed()
        );
    }
}

/// Climbs the ladder until the agent is gone.
pub(super) async fn abort(process: &mut Process, patience: GracePeriods) -> Exit {
    let mut ladder = Escalation::signals(Instant::now(), patience);
    loop {
        match ladder.step(Instant::now()) {
            Some(EscalationStep::Interrupt) => process.interrupt(),
            Some(EscalationStep::Terminate) => process.terminate(),
            Some(EscalationStep::Kill) => process.kill(),
            None => (),
        }
        let Some(due) = ladder.due() else {
            return process.wait().await;
        };
        if let Ok(exit) = tokio::time::timeout_at(due.into(), process.wait()).await {
            return exit;
        }
    }
}

#[tokio::test]
async fn an_agent_that_ignores_everything_is_killed() {
    let patience = GracePeriods {
        interrupted: Duration::from_millis(50),
        terminated: Duration::from_millis(50),
    };
    for guard in [guard(), Guard::None] {
        let mut process = start(
            "ignore start ( ignore session hold ) say=ready hold",
            &guard,
        );
        let mut ready = [0; 6];
        process
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .await
            .unwrap();
        assert_eq!(abort(&mut process, patience).await, Exit::Signal(9));
        assert!(!process.tag().is_alive());
    }
}

#[tokio::test]
async fn a_grandchild_that_holds_stdout_ends_with_its_agent() {
    for guard in [guard(), Guard::None] {
        let process = start(
            "start ( session start ( ignore hold ) hold ) sleep=100 say=done",
            &guard,
        );
        let tag = process.tag();
        let start = Instant::now();
        assert_eq!(outcome(process).await, said(Exit::Code(0), "done\n"));
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{:?}",
            start.elapsed()
        );
        assert!(!tag.is_alive());
    }
}

#[tokio::test]
async fn a_stopped_or_killed_guard_changes_nothing() {
    for script in ["stop-guard hold", "start ( hold ) kill-guard hold"] {
        let mut process = start(script, &guard());
        tokio::time::sleep(Duration::from_millis(50)).await;
        process.kill();
        assert_eq!(process.wait().await, Exit::Signal(9), "{script}");
        assert!(!process.tag().is_alive());
    }
}

#[tokio::test]
async fn a_dropped_process_is_killed() {
    for guard in [guard(), Guard::None] {
        let process = start("ignore start ( session hold ) hold", &guard);
        let tag = process.tag();
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(process);
        within(Duration::from_secs(10), "all gone", || !tag.is_alive());
    }
}
