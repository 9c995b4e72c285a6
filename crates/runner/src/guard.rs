//! The guard: a small process between linkspan and an agent, so that nothing the agent starts outlives its run.
//!
//! linkspan starts itself again as `linkspan __guard PARENT_PID -- PROGRAM ARGS…`. The guard is the reaper
//! of everything below it: whatever loses its parent becomes its child, also what left the group and the
//! session. It forwards SIGINT and SIGTERM to the agent, kills everything on SIGUSR1 or when linkspan is
//! gone, ends what the agent left behind, and then ends the way the agent did.
//!
//! It needs Linux: elsewhere an agent has its process group and nothing more.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Exit, error_chain};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpgid, getpgrp, getpid, getppid,
    kill_process, kill_process_group, pidfd_open, set_child_subreaper, setrlimit, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::process::proc;

/// Grace period for processes that the agent left behind.
const GRACE: Duration = Duration::from_millis(300);

/// Killed processes exit in milliseconds, unless the kernel holds one or they multiply. The guard's
/// parent then finds them by their process tag.
const LIMIT: Duration = Duration::from_secs(2);

/// Signals wake the guard; this only covers a process that was re-parented without one.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Without a pidfd the guard looks for its parent this often.
const LOOK_FOR_PARENT: Duration = Duration::from_millis(500);

/// The exit codes of a shell for a missing program and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Guards one agent. `args` are what follows [`GUARD`](crate::process::GUARD): `PARENT_PID -- PROGRAM ARGS…`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let [parent, dashes, program, args @ ..] = args.as_slice() else {
        return refuse("the guard is started by linkspan itself");
    };
    let parent = parent.to_str().and_then(|it| it.parse().ok());
    let (Some(parent), "--") = (
        parent.and_then(Pid::from_raw),
        dashes.to_str().unwrap_or_default(),
    ) else {
        return refuse("the guard is started by linkspan itself");
    };
    let watch = match ParentWatch::new(parent) {
        Ok(it) => it,
        Err(err) => {
            return refuse(&format!("cannot guard an agent: {}", error_chain(&err)));
        }
    };
    // A parent that died before it was watched would never be missed.
    if getppid() != Some(parent) {
        return ExitCode::FAILURE;
    }
    match start(program, args) {
        Ok(agent) => exit_like(watch.wait_for_all(agent)),
        Err(err) => {
            let program = program.to_string_lossy();
            print_error(&format!("cannot start `{program}`: {}", error_chain(&err)));
            ExitCode::from(match err.kind() {
                ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            })
        }
    }
}

/// The agent inherits stdin, stdout and stderr, and has them alone: their ends are the agent's.
fn start(program: &OsStr, args: &[OsString]) -> io::Result<Pid> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    // A group of its own: signals for it must not reach the guard.
    let child = Command::new(program).args(args).process_group(0).spawn()?;
    // Otherwise linkspan would not see the agent close its pipes, as the guard holds them too.
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(Pid::from_child(&child))
}

/// Watches the parent process and its signals.
struct ParentWatch {
    parent: Pid,
    parent_gone: Option<OwnedFd>,
    wakeups: UnixStream,
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
    kill: Arc<AtomicBool>,
}

impl ParentWatch {
    fn new(parent: Pid) -> io::Result<Self> {
        // A session of its own has no terminal: Ctrl-C does not reach it, and an agent's tool that asks
        // for a password fails at once, where one in a background group would be stopped for ever.
        // It also means that every group in here consists of the agent's descendants alone.
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        let (wakeups, waker) = UnixStream::pair()?;
        // It is read until it is empty, which would block.
        wakeups.set_nonblocking(true)?;
        let flag = |signal| -> io::Result<Arc<AtomicBool>> {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            pipe::register(signal, waker.try_clone()?)?;
            Ok(flag)
        };
        let watch = Self {
            parent,
            // Kernels before 5.3 have none; the guard then looks for its parent from time to time.
            parent_gone: pidfd_open(parent, PidfdFlags::empty()).ok(),
            interrupt: flag(SIGINT)?,
            terminate: flag(SIGTERM)?,
            kill: flag(SIGUSR1)?,
            wakeups,
        };
        // Without a flag: every wake-up reaps, whatever caused it.
        pipe::register(SIGCHLD, waker)?;
        Ok(watch)
    }

    /// How the agent ended, or nothing when something would not die.
    fn wait_for_all(&self, agent: Pid) -> Option<Exit> {
        let mut family = ProcessTree {
            agent,
            exit: None,
            is_empty: false,
        };
        family.reap();
        while family.exit.is_none() && !family.is_empty {
            if self.must_kill() {
                return family.kill(self);
            }
            for (flag, signal) in [
                (&self.interrupt, Signal::INT),
                (&self.terminate, Signal::TERM),
            ] {
                if flag.swap(false, Ordering::SeqCst) {
                    // Not reaped yet, so the id is still the agent's; it may be a zombie already.
                    kill_process(agent, signal).ok();
                }
            }
            self.sleep(None);
            family.reap();
        }
        // The agent has ended, but not necessarily what it has started.
        family.terminate(self);
        family.kill(self)
    }

    fn must_kill(&self) -> bool {
        // An orphan gets another parent, so a different one means that linkspan is gone.
        self.kill.load(Ordering::SeqCst) || getppid() != Some(self.parent)
    }

    /// Until a signal, the parent's death, or `limit`.
    fn sleep(&self, limit: Option<Duration>) {
        let mut fds = vec![PollFd::new(&self.wakeups, PollFlags::IN)];
        let mut limit = limit;
        match &self.parent_gone {
            Some(it) => fds.push(PollFd::new(it, PollFlags::IN)),
            None => limit = Some(limit.map_or(LOOK_FOR_PARENT, |it| it.min(LOOK_FOR_PARENT))),
        }
        let limit = limit.and_then(|it| Timespec::try_from(it).ok());
        // Every caller looks at the state afterwards, so an interrupted poll needs no care.
        poll(&mut fds, limit.as_ref()).ok();
        let mut bytes = [0; 64];
        // Emptied, or the next poll would return at once.
        while matches!((&self.wakeups).read(&mut bytes), Ok(n) if n > 0) {}
    }
}

/// The agent and everything below it.
struct ProcessTree {
    agent: Pid,
    exit: Option<Exit>,
    is_empty: bool,
}

impl ProcessTree {
    /// Takes note of every child that has ended; the kernel alone knows for sure that none is left.
    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent => {
                    let code = status.exit_status().map(Exit::Code);
                    self.exit = code.or(status.terminating_signal().map(Exit::Signal));
                }
                Ok(Some(_)) | Err(Errno::INTR) => (),
                Ok(None) => return,
                Err(_) => {
                    self.is_empty = true;
                    return;
                }
            }
        }
    }

    /// Asks what the agent left behind to end, each once.
    fn terminate(&mut self, watch: &ParentWatch) {
        let deadline = Instant::now() + GRACE;
        let mut terminated = HashSet::new();
        self.reap();
        while !self.is_empty && !watch.must_kill() && Instant::now() < deadline {
            for pid in proc::own_children() {
                if terminated.insert(pid) {
                    kill_process(pid, Signal::TERM).ok();
                }
            }
            watch.sleep(Some(LOOK_AGAIN));
            self.reap();
        }
    }

    /// Kills the children until there are none. The children of a killed one become children of the guard.
    fn kill(&mut self, watch: &ParentWatch) -> Option<Exit> {
        let deadline = Instant::now() + LIMIT;
        self.reap();
        while !self.is_empty {
            if Instant::now() > deadline {
                return None;
            }
            for pid in proc::own_children() {
                // A group is killed as a whole, so that even a fork bomb in it cannot escape.
                if let Ok(group) = getpgid(Some(pid))
                    && group != getpgrp()
                {
                    kill_process_group(group, Signal::KILL).ok();
                }
                kill_process(pid, Signal::KILL).ok();
            }
            watch.sleep(Some(LOOK_AGAIN));
            self.reap();
        }
        self.exit
    }
}

/// The guard's end is what linkspan sees of the agent's.
fn exit_like(exit: Option<Exit>) -> ExitCode {
    // The agent has dumped its core already.
    let no_core = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, no_core).ok();
    match exit {
        Some(Exit::Code(code)) => ExitCode::from(code.to_le_bytes()[0]),
        Some(Exit::Signal(signal)) => {
            emulate_default_handler(signal).ok();
            // Only for signals without a name.
            ExitCode::from(128_u8.wrapping_add(signal.to_le_bytes()[0]))
        }
        // The one ending that makes linkspan look for survivors.
        None => {
            kill_process(getpid(), Signal::KILL).ok();
            ExitCode::FAILURE
        }
    }
}

fn refuse(message: &str) -> ExitCode {
    print_error(message);
    ExitCode::from(NOT_EXECUTABLE)
}

fn print_error(message: &str) {
    // There is nowhere to report that stderr is closed.
    writeln!(io::stderr(), "{message}").ok();
}
