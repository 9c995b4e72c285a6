//! The operator's log: lines on stderr, written by a thread of their own through a bounded queue.
//!
//! Nothing in the server waits for stderr: a reader that has stopped reading would otherwise stop the
//! server too. Lines that find the queue full are dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;

/// Lines that wait to be written.
const MAX_WAITING: usize = 1024;
/// How long the last lines may take when the server has stopped.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// The crates that may log: dependencies can change their log lines, and may log what clients sent.
const TARGETS: [&str; 2] = ["hub", "server"];

/// The log of this process; dropping it waits a little for the last lines.
pub(super) struct Log {
    queue: LineQueue,
    /// Until something is written.
    waiting: Option<Receiver<LogMessage>>,
}

#[derive(Clone)]
struct LineQueue {
    lines: SyncSender<LogMessage>,
    n_dropped: Arc<AtomicU64>,
}

enum LogMessage {
    Line(Vec<u8>),
    /// Everything before it was written.
    Flush(SyncSender<()>),
}

impl Log {
    /// Collects what `hub` and `server` log from now on, down to `level`.
    pub(super) fn start(format: &str, level: &str) -> Self {
        let (lines, rx) = sync_channel(MAX_WAITING);
        let n_dropped = Arc::default();
        let queue = LineQueue { lines, n_dropped };
        let level = level.parse().unwrap_or(LevelFilter::INFO);
        let targets = Targets::new().with_targets(TARGETS.map(|it| (it, level)));
        let lines = fmt::layer().with_writer(queue.clone()).with_target(false);
        let lines = match format {
            "json" => lines.json().flatten_event(true).boxed(),
            _ => lines.boxed(),
        };
        let subscriber = registry().with(lines.with_filter(targets));
        // A second subscriber is refused; this one is installed once.
        tracing::subscriber::set_global_default(subscriber).ok();
        Self {
            queue,
            waiting: Some(rx),
        }
    }

    /// Writes what was collected and what follows. Not before the address is printed: programs that start a
    /// server take it from the first line.
    pub(super) fn write_lines(&mut self) {
        let n_dropped = Arc::clone(&self.queue.n_dropped);
        // Without a copy of stderr there is nowhere to write to, and the queue takes nothing.
        if let (Some(rx), Ok(stderr)) = (
            self.waiting.take(),
            io::stderr().as_fd().try_clone_to_owned(),
        ) {
            thread::spawn(move || write(File::from(stderr), &rx, &n_dropped));
        }
    }

    /// Prints a message in turn with the lines of the log.
    pub(super) fn print(&self, text: &str) {
        self.queue.push(text.as_bytes());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.write_lines();
        let (tx, rx) = sync_channel(1);
        if self.queue.lines.try_send(LogMessage::Flush(tx)).is_ok() {
            // A reader that does not read loses the last lines.
            rx.recv_timeout(FLUSH_LIMIT).ok();
        }
    }
}

impl LineQueue {
    fn push(&self, line: &[u8]) {
        if self
            .lines
            .try_send(LogMessage::Line(line.to_vec()))
            .is_err()
        {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Each write is one line.
impl Write for LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn write(mut stderr: File, lines: &Receiver<LogMessage>, n_dropped: &AtomicU64) {
    for message in lines {
        match message {
            // If stderr is closed, there is nowhere to report it.
            LogMessage::Line(line) => drop(stderr.write_all(&line)),
            LogMessage::Flush(done) => drop(done.send(())),
        }
        let lines = n_dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            tracing::warn!(target: "server", lines, "log lines dropped");
        }
    }
}
