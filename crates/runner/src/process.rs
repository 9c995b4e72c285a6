//! An agent's process and everything it starts, from the start until nothing of it is left.
//!
//! A guard process (`guard.rs`) supervises the agent: linkspan starts, signals and waits for the
//! guard, which forwards the agent's output, signals and exit. A program that is not linkspan has
//! no guard; its agents get a process group of their own, and what they leave behind is found by
//! its [tag](ProcessTag).

mod escalation;
mod find;
mod owner;
#[cfg(target_os = "linux")]
pub(crate) mod proc;
mod tag;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{self, ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::time::Duration;

use model::Exit;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::SIGCHLD;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

pub use escalation::{Drain, Escalation, EscalationStep, GracePeriods, PATIENCE};
pub use find::{NotFound, find_on_path, find_program};
pub use owner::{NotAnOwner, OWNER, Owner, end_orphans};
pub use tag::{ProcessTag, VARIABLE};

use crate::request::{Launch, Stdin};

/// The first argument that makes linkspan a guard.
pub const GUARD: &str = "__guard";

/// Grace period for processes left behind without a guard.
const GRACE: Duration = Duration::from_millis(300);

/// Upper bound for the guard's own cleanup; past it the guard is considered hung.
const GUARD_LIMIT: Duration = Duration::from_secs(3);

/// How long survivors are killed before they are given up: only the kernel can hold one that long.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);

/// How an agent is supervised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// This program, started as [`GUARD`].
    Exe(PathBuf),
    None,
}

impl Guard {
    /// The running program, if it is linkspan.
    pub fn own() -> Self {
        // Not by name: that file may be another version by now, or gone.
        match cfg!(target_os = "linux") {
            true => Self::Exe("/proc/self/exe".into()),
            false => Self::None,
        }
    }
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot start `{}`", program.display())]
    Start {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot work in `{}`", cwd.display())]
    Cwd {
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A running agent. Dropping it kills the agent and all it has started.
#[derive(Debug)]
pub struct Process {
    /// There for [`Stdin::Open`] only; closing it is the caller's to do.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    child: Child,
    is_guarded: bool,
    tag: ProcessTag,
    writer: Option<JoinHandle<()>>,
    killed: Option<Instant>,
    exit: Option<Exit>,
}

impl Process {
    /// Starts an agent whose processes all carry `tag`.
    pub fn spawn(launch: &Launch, guard: &Guard, tag: ProcessTag) -> Result<Self, SpawnError> {
        let failed = |source| SpawnError::Start {
            program: launch.program.clone(),
            source,
        };
        // The kernel would name neither the program nor the folder, whichever is missing.
        let cwd = &launch.cwd;
        let is_folder = fs::metadata(cwd).and_then(|it| match it.is_dir() {
            true => Ok(()),
            false => Err(ErrorKind::NotADirectory.into()),
        });
        is_folder.map_err(|source| SpawnError::Cwd {
            cwd: cwd.clone(),
            source,
        })?;
        let mut command = command(launch, guard);
        command
            // By these two the agent is found again, should this process die.
            .env(VARIABLE, tag.to_string())
            .env(OWNER, Owner::own().to_string())
            .current_dir(cwd)
            .stdin(match launch.stdin {
                Stdin::Closed => Stdio::null(),
                Stdin::Text(_) | Stdin::Open => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Before the start: with SIGCHLD ignored the kernel would drop the exit status.
        notice_ends();
        let mut child = Command::from(command).spawn().map_err(failed)?;
        let mut stdin = child.stdin.take();
        let writer = match &launch.stdin {
            Stdin::Text(text) => stdin
                .take()
                .map(|stdin| tokio::spawn(write(stdin, text.clone()))),
            Stdin::Closed | Stdin::Open => None,
        };
        Ok(Self {
            stdin,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            is_guarded: matches!(guard, Guard::Exe(_)),
            tag,
            writer,
            killed: None,
            exit: None,
        })
    }

    pub fn tag(&self) -> ProcessTag {
        self.tag
    }

    /// Waits until the agent and everything it started have exited. Cancel safe.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        // Read before the wait, because afterwards the child no longer has an id.
        let group = self.pid();
        let exit = self.child_exit().await;
        // Elsewhere the group is all that can be found.
        if let Some(group) = group.filter(|_| cfg!(not(target_os = "linux"))) {
            kill_process_group(group, Signal::KILL).ok();
        }
        let grace = match (self.is_guarded, exit) {
            // The guard has seen to it.
            (true, Exit::Code(_)) => None,
            // Perhaps the agent's end, perhaps the guard's.
            (true, Exit::Signal(_)) => Some(Duration::ZERO),
            (false, _) => Some(GRACE),
        };
        if let Some(grace) = grace {
            let tag = self.tag;
            // An error means that the runtime ends; dropping the process does the rest.
            spawn_blocking(move || tag.end(grace, SWEEP_LIMIT))
                .await
                .ok();
        }
        self.exit = Some(exit);
        exit
    }

    /// Asks the agent to stop what it is doing.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks the agent to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the agent and all it has started, now.
    pub fn kill(&mut self) {
        // A second kill must not give a guard that hangs more time.
        self.killed.get_or_insert_with(Instant::now);
        self.kill_tree();
    }

    async fn child_exit(&mut self) -> Exit {
        if let Some(killed) = self.killed {
            tokio::select! {
                exit = exit(&mut self.child) => return exit,
                // The guard hangs; its process tag finds what it leaves behind.
                () = sleep_until(killed + GUARD_LIMIT) => self.signal(Signal::KILL),
            }
        }
        exit(&mut self.child).await
    }

    fn signal(&self, signal: Signal) {
        // An ended process that was not waited for keeps its id, so this never signals another process.
        if let Some(pid) = self.pid() {
            kill_process(pid, signal).ok();
        }
    }

    fn kill_tree(&self) {
        if self.is_guarded {
            // Not SIGKILL: a guard that is dead cannot end what the agent has started.
            self.signal(Signal::USR1);
            // The agent may have stopped its guard.
            self.signal(Signal::CONT);
        } else if let Some(pid) = self.pid() {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.try_into().ok()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            // It may wait for an agent that never reads its input.
            writer.abort();
        }
        if self.exit.is_some() {
            return;
        }
        self.kill_tree();
        // The guard does it, unless it is killed itself; a thread of the runtime cannot wait for that.
        let patience = match self.is_guarded {
            true => GUARD_LIMIT,
            false => Duration::ZERO,
        };
        self.tag.end_later(patience, SWEEP_LIMIT);
    }
}

/// Our parent may ignore SIGCHLD, which is inherited and would hide how an agent exited. Any
/// handler undoes that; the flag itself is not used.
fn notice_ends() {
    static NOTICED: Once = Once::new();
    NOTICED.call_once(|| {
        signal_hook::flag::register(SIGCHLD, Arc::default()).ok();
    });
}

fn command(launch: &Launch, guard: &Guard) -> process::Command {
    let mut command = match guard {
        Guard::Exe(exe) => {
            let mut command = process::Command::new(exe);
            command
                // The process list would show `/proc/self/exe` otherwise.
                .arg0("linkspan")
                .arg(GUARD)
                .arg(process::id().to_string())
                .arg("--")
                .arg(&launch.program);
            command
        }
        Guard::None => {
            let mut command = process::Command::new(&launch.program);
            command.process_group(0);
            command
        }
    };
    command.args(&launch.args);
    // The holder of this pipe can answer the agent.
    command.env_remove("LINKSPAN_TOKEN");
    for name in &launch.env_remove {
        command.env_remove(name);
    }
    // After the removals, so that what is set on purpose stays.
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    command
}

/// An agent that does not read its input is free to do so.
async fn write(mut stdin: ChildStdin, text: String) {
    stdin.write_all(text.as_bytes()).await.ok();
}

async fn exit(child: &mut Child) -> Exit {
    match child.wait().await {
        Ok(status) => from_status(status),
        // Another waiter has reaped it, so its exit status is unknown.
        Err(_) => Exit::Signal(Signal::KILL.as_raw()),
    }
}

fn from_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}
