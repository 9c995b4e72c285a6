//! Stop signals, handled on a thread of their own, because the loop may be blocked in a write; then
//! the program exits, and the guard ends the agent.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc;

use crate::exit::Code;

/// How long the loop may take to notice.
const PATIENCE: Duration = Duration::from_secs(2);

/// The loop's end of it.
#[derive(Debug)]
pub(super) struct InterruptSignals {
    presses: mpsc::UnboundedReceiver<()>,
    shared: Arc<SignalState>,
}

#[derive(Debug, Default)]
struct SignalState {
    n_noticed: AtomicU64,
    /// Another program has the terminal; keys are for it.
    is_lent: AtomicBool,
}

impl InterruptSignals {
    pub(super) fn new() -> io::Result<Self> {
        let ignored = ignored();
        // Signals that our parent ignores, as with `nohup`, stay ignored.
        let wanted = |it: &i32| ignored >> (it - 1) & 1 == 0;
        let wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(wanted)
            .collect();
        let mut signals = Signals::new(wanted)?;
        let (tx, presses) = mpsc::unbounded_channel();
        let shared = Arc::new(SignalState::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            let mut n_pressed = 0;
            for _ in signals.forever() {
                if theirs.is_lent.load(Ordering::Relaxed) {
                    continue;
                }
                n_pressed += 1;
                if tx.send(()).is_err() {
                    return;
                }
                // On another thread, so that a second press is taken while this one waits.
                thread::spawn({
                    let theirs = Arc::clone(&theirs);
                    move || leave_unless_noticed(&theirs, n_pressed)
                });
            }
        });
        Ok(Self { presses, shared })
    }

    /// Waits for the next stop request.
    pub(super) async fn next(&mut self) {
        match self.presses.recv().await {
            Some(()) => drop(self.shared.n_noticed.fetch_add(1, Ordering::Relaxed)),
            None => std::future::pending().await,
        }
    }

    /// While `lent`, signals are meant for another program on the terminal.
    pub(super) fn lend(&self, lent: bool) {
        self.shared.is_lent.store(lent, Ordering::Relaxed);
    }
}

#[expect(clippy::exit, reason = "the main thread is blocked")]
fn leave_unless_noticed(shared: &SignalState, n_pressed: u64) {
    thread::sleep(PATIENCE);
    if shared.n_noticed.load(Ordering::Relaxed) < n_pressed {
        process::exit(i32::from(Code::Interrupted.number()));
    }
}

/// The signals that are ignored, a bit each, the first for signal 1. `None` where it is unknown.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok())
        .unwrap_or_default()
}
