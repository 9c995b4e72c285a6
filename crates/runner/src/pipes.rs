//! A pair of pipes to the program that started this one: a thread that reads lines, and one that writes
//! them.
//!
//! Threads rather than tasks: reading a pipe blocks, and a blocked write should apply backpressure
//! to its senders, not to the whole program.

use std::io::{Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use formats::framing::{Framer, Framing};
use model::Frame;
use tokio::sync::{mpsc, oneshot, watch};

/// What is read at a time.
const READ_SIZE: usize = 64 * 1024;
/// Capacity of the inbound queue.
const MAX_INBOUND: usize = 16;
/// Capacity of the outbound queue; senders wait when it is full.
const MAX_OUTBOUND: usize = 64;
/// Pieces are written together up to this many bytes.
const MAX_WRITE: usize = 256 * 1024;

/// A line of the client.
#[derive(Debug, PartialEq, Eq)]
pub enum PipeLine {
    Line(Vec<u8>),
    /// It was too long to be kept.
    TooLong(u64),
}

/// Where whole lines go out.
#[derive(Clone, Debug)]
pub struct LineSender {
    lines: mpsc::Sender<(Instant, Vec<u8>)>,
    /// Senders no longer wait for capacity.
    is_hasty: Arc<watch::Sender<bool>>,
}

impl LineSender {
    /// Sends whole lines, waiting for capacity.
    pub async fn send(&self, lines: Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        let mut is_hasty = self.is_hasty.subscribe();
        tokio::select! {
            biased;
            // A closed pipe is reported by `closed`.
            _ = self.lines.send((Instant::now(), lines)) => (),
            _ = is_hasty.wait_for(|it| *it) => (),
        }
    }

    /// From now on what there is no room for is lost.
    pub fn flush_now(&self) {
        self.is_hasty.send_replace(true);
    }

    /// The client has closed the pipe.
    pub async fn closed(&self) {
        self.lines.closed().await;
    }
}

/// Both pipes, and a signal for when all output is written.
#[derive(Debug)]
pub struct Pipes {
    pub outbound: LineSender,
    pub inbound: mpsc::Receiver<PipeLine>,
    pub written: oneshot::Receiver<()>,
}

/// Opens both. `wrote` gets the bytes of each write, and how long the first of them had to wait.
pub fn open(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    wrote: impl Fn(usize, Duration) + Send + 'static,
) -> Pipes {
    let (inbound_tx, inbound) = mpsc::channel(MAX_INBOUND);
    // A thread of its own: a blocked read cannot be cancelled, and would hold up the runtime's end.
    thread::spawn(move || read(input, &inbound_tx));
    let (outbound, outbound_rx) = mpsc::channel(MAX_OUTBOUND);
    let (done, written) = oneshot::channel();
    thread::spawn(move || {
        write(output, outbound_rx, wrote);
        // There may be no receiver.
        done.send(()).ok()
    });
    Pipes {
        outbound: LineSender {
            lines: outbound,
            is_hasty: Arc::new(watch::Sender::new(false)),
        },
        inbound,
        written,
    }
}

fn read(mut input: impl Read, inbound: &mpsc::Sender<PipeLine>) {
    let mut framer = Framer::new(Framing::Lines);
    let mut buf = vec![0; READ_SIZE];
    let mut is_open = true;
    while is_open {
        let n = match input.read(&mut buf) {
            Ok(n) => n,
            Err(err) if err.kind() == std::io::ErrorKind::Interrupted => continue,
            // A pipe that cannot be read has ended for us.
            Err(_) => 0,
        };
        let mut pass = |frame: Frame<'_>| {
            let line = match frame {
                Frame::Data(line) => PipeLine::Line(line.to_owned()),
                Frame::Oversized { length, .. } => PipeLine::TooLong(length),
            };
            is_open &= inbound.blocking_send(line).is_ok();
        };
        if n == 0 {
            return framer.end(&mut pass);
        }
        framer.push(&buf[..n], &mut pass);
    }
}

fn write(
    mut output: impl Write,
    mut outbound: mpsc::Receiver<(Instant, Vec<u8>)>,
    wrote: impl Fn(usize, Duration),
) {
    while let Some((first, mut lines)) = outbound.blocking_recv() {
        // What has gathered during the last write goes out in one.
        while lines.len() < MAX_WRITE
            && let Ok((_, more)) = outbound.try_recv()
        {
            lines.extend_from_slice(&more);
        }
        // The receiver is gone, so stop.
        if output
            .write_all(&lines)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
        wrote(lines.len(), first.elapsed());
    }
}
