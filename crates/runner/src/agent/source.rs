//! The source of an agent's output: a process with its pipes, an endpoint, or a recording.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use formats::framing::Framing;
use model::Exit;
use responses::{Call, CallError, Conversation, Endpoint};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::yield_now;
use tokio::time::sleep_until;

use crate::process::{Drain, EscalationStep, Guard, Process, ProcessTag, SpawnError};
use crate::replay::Replay;
use crate::request::{Launch, SecretFile};

/// Bytes read at once.
const READ_SIZE: usize = 64 * 1024;
/// Bytes of stderr read at once.
const STDERR_SIZE: usize = 8 * 1024;
/// Output that arrives token by token is read at this interval, because waking up costs more than
/// reading. The first output, and the response to an input, are read at once.
const GATHER: Duration = Duration::from_millis(5);
/// How much time a recording that was held up makes up for.
const LATE: Duration = Duration::from_millis(50);

/// An event of the source.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SourceEvent {
    /// See [`Source::take_stdout`].
    Stdout,
    /// See [`Source::take_stderr`].
    Stderr,
    /// A notice about a request: a code and a sentence.
    Notice(&'static str, String),
    /// Nothing to report.
    None,
    Deadline,
    /// The process has ended, and all it wrote was read.
    Exited,
}

#[derive(Debug)]
pub(super) enum Source {
    Process(Box<ProcessSource>),
    Call(Box<HttpSource>),
    Replay(Box<ReplaySource>),
}

#[derive(Debug)]
pub(super) struct ProcessSource {
    process: Process,
    #[expect(dead_code, reason = "it is there to be dropped, and the file with it")]
    secret_file: Option<NamedTempFile>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Vec<u8>,
    /// When stdout was read last.
    read_at: Option<Instant>,
    /// Until when it is not read again.
    rest: Option<Instant>,
    err: Vec<u8>,
    /// Input that the agent has not read yet.
    unsent: Vec<u8>,
    n_sent: usize,
    /// Close stdin once that is sent.
    is_closing: bool,
    exit: Option<Exit>,
    drain: Option<Drain>,
}

/// A request to an endpoint and its response.
#[derive(Debug)]
pub(super) struct HttpSource {
    call: Option<Call>,
    chunk: Bytes,
    failure: Option<CallError>,
}

#[derive(Debug)]
pub(super) struct ReplaySource {
    replay: Replay,
    next: Option<(Instant, Vec<u8>)>,
    /// When the last frame was due.
    due: Instant,
    frame: Vec<u8>,
    is_stopped: bool,
    error: Option<io::Error>,
}

impl Source {
    pub(super) fn process(
        launch: &Launch,
        guard: &Guard,
        tag: ProcessTag,
    ) -> Result<Self, SpawnError> {
        let private = launch.private.as_ref().map(write_secret_file).transpose();
        let private = private.map_err(|source| SpawnError::Start {
            program: launch.program.clone(),
            source,
        })?;
        let mut process = match (&private, &launch.private) {
            (Some(file), Some(SecretFile { flag, .. })) => {
                let mut launch = launch.clone();
                let mut arg = OsString::from(format!("{flag}="));
                arg.push(file.path());
                // Behind the others there may be a prompt.
                launch.args.insert(0, arg);
                Process::spawn(&launch, guard, tag)?
            }
            _ => Process::spawn(launch, guard, tag)?,
        };
        Ok(Self::Process(Box::new(ProcessSource {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
            secret_file: private,
            out: Vec::with_capacity(READ_SIZE),
            read_at: None,
            rest: None,
            err: Vec::new(),
            unsent: Vec::new(),
            n_sent: 0,
            is_closing: false,
            exit: None,
            drain: None,
        })))
    }

    /// A request that cannot be made ends like one that was refused.
    pub(super) fn call(endpoint: &Endpoint, conversation: &Conversation) -> Self {
        let (call, failure) = match Call::new(endpoint, conversation) {
            Ok(call) => (Some(call), None),
            Err(err) => (None, Some(err)),
        };
        Self::Call(Box::new(HttpSource {
            call,
            chunk: Bytes::new(),
            failure,
        }))
    }

    pub(super) fn replay(input: Box<dyn Read + Send>, framing: Framing, speed: f64) -> Self {
        Self::Replay(Box::new(ReplaySource {
            replay: Replay::new(input, framing, speed),
            next: None,
            due: Instant::now(),
            frame: Vec::new(),
            is_stopped: false,
            error: None,
        }))
    }

    /// How the output is framed: a recording yields whole frames, each as a line.
    pub(super) fn framing(&self, framing: Framing) -> Framing {
        match self {
            Self::Process(_) | Self::Call(_) => framing,
            Self::Replay(_) => Framing::Lines,
        }
    }

    /// Waits for an event until `deadline`. Cancel safe.
    pub(super) async fn next(&mut self, deadline: Option<Instant>) -> SourceEvent {
        match self {
            Self::Process(it) => it.next(deadline).await,
            Self::Call(it) => it.next(deadline).await,
            Self::Replay(it) => tokio::select! {
                biased;
                () = until(deadline), if deadline.is_some() => SourceEvent::Deadline,
                event = it.next() => event,
            },
        }
    }

    /// The last bytes read from stdout.
    pub(super) fn take_stdout(&self) -> &[u8] {
        match self {
            Self::Process(it) => &it.out,
            Self::Call(it) => &it.chunk,
            Self::Replay(it) => &it.frame,
        }
    }

    /// The last bytes read from stderr.
    pub(super) fn take_stderr(&self) -> &[u8] {
        match self {
            Self::Process(it) => &it.err,
            Self::Call(_) | Self::Replay(_) => &[],
        }
    }

    /// Sends a line, as soon as the agent takes it.
    pub(super) fn send(&mut self, line: String) {
        if let Self::Process(it) = self
            && it.stdin.is_some()
            && !it.is_closing
        {
            match it.unsent.is_empty() {
                // Moved where possible, because a line may be many megabytes.
                true => it.unsent = line.into_bytes(),
                false => it.unsent.extend_from_slice(line.as_bytes()),
            }
            it.unsent.push(b'\n');
            // What the agent answers to this is wanted at once.
            it.rest = None;
        }
    }

    /// Closes stdin after the pending input.
    pub(super) fn close_stdin(&mut self) {
        if let Self::Process(it) = self {
            it.is_closing = true;
            if it.unsent.is_empty() {
                it.stdin = None;
            }
        }
    }

    /// Whether stdin is open.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Process(it) => it.stdin.is_some() && !it.is_closing,
            Self::Call(_) | Self::Replay(_) => false,
        }
    }

    /// A source without a process stops at the first step of the escalation.
    pub(super) fn stop(&mut self, step: EscalationStep) {
        match self {
            Self::Process(it) => match step {
                EscalationStep::Interrupt => it.process.interrupt(),
                EscalationStep::Terminate => it.process.terminate(),
                EscalationStep::Kill => it.process.kill(),
            },
            Self::Call(it) => it.call = None,
            Self::Replay(it) => it.is_stopped = true,
        }
    }

    pub(super) fn kill(&mut self) {
        self.stop(EscalationStep::Kill);
    }

    /// Waits for the end of the process.
    pub(super) async fn ended(&mut self) {
        if let Self::Process(it) = self {
            it.exit = Some(it.process.wait().await);
        }
    }

    /// Why a recording could not be read to its end.
    pub(super) fn error(&self) -> Option<&io::Error> {
        match self {
            Self::Process(_) | Self::Call(_) => None,
            Self::Replay(it) => it.error.as_ref(),
        }
    }

    /// Why an endpoint has not answered, or not to the end.
    pub(super) fn failure(&self) -> Option<&CallError> {
        match self {
            Self::Call(it) => it.failure.as_ref(),
            Self::Process(_) | Self::Replay(_) => None,
        }
    }

    /// The run has ended: close the connection, even if the endpoint keeps it open.
    pub(super) fn hang_up(&mut self) {
        if let Self::Call(it) = self {
            it.call = None;
        }
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        match self {
            Self::Process(it) => it.exit,
            Self::Call(_) | Self::Replay(_) => None,
        }
    }
}

impl ProcessSource {
    async fn next(&mut self, deadline: Option<Instant>) -> SourceEvent {
        // Not at the exit alone: the pipes may still hold what the agent printed last.
        if self.exit.is_some() && self.stdout.is_none() && self.stderr.is_none() {
            return SourceEvent::Exited;
        }
        let drained = self.drain.as_ref().map(Drain::deadline);
        let Self {
            process,
            stdin,
            stdout,
            stderr,
            out,
            err,
            rest,
            unsent,
            n_sent,
            exit,
            ..
        } = self;
        // The caller has taken what was read by the step before.
        out.clear();
        err.clear();
        let has_stdout = stdout.is_some();
        let has_input = stdin.is_some() && !unsent.is_empty();
        // A process that is gone prints no more, so there is nothing left to gather.
        let rest = rest.filter(|it| exit.is_none() && *it > Instant::now());
        let read_out = async {
            if let Some(rest) = rest {
                sleep_until(rest.into()).await;
            }
            read(stdout, out, READ_SIZE).await
        };
        tokio::select! {
            // Output comes first: a deadline for silence must not pass while there is some.
            biased;
            read = read_out, if has_stdout => {
                if read {
                    self.on_read();
                    return SourceEvent::Stdout;
                }
                self.stdout = None;
            }
            read = read(stderr, err, STDERR_SIZE), if stderr.is_some() => {
                if read {
                    return SourceEvent::Stderr;
                }
                self.stderr = None;
            }
            wrote = write(stdin, &unsent[*n_sent..]), if has_input => self.wrote(wrote),
            ended = process.wait(), if exit.is_none() => {
                self.exit = Some(ended);
                self.drain = Some(Drain::new(Instant::now()));
                // The remaining input is discarded.
                self.stdin = None;
            }
            // A grandchild holds the pipes open.
            () = until(drained), if drained.is_some() => {
                (self.stdout, self.stderr) = (None, None);
            }
            () = until(deadline), if deadline.is_some() => return SourceEvent::Deadline,
        }
        SourceEvent::None
    }

    fn on_read(&mut self) {
        let now = Instant::now();
        if let Some(drain) = &mut self.drain {
            drain.read(now);
        }
        // Two reads in close succession: the agent prints token by token.
        let is_stream = self.read_at.is_some_and(|it| now < it + 2 * GATHER);
        // An agent that writes this much should not be slowed down.
        let is_trickle = self.out.len() < READ_SIZE / 4;
        self.rest = (is_stream && is_trickle).then(|| now + GATHER);
        self.read_at = Some(now);
    }

    fn wrote(&mut self, n: Option<usize>) {
        match n {
            Some(n) => self.n_sent += n,
            // The agent has closed stdin; its exit will show why.
            None => self.stdin = None,
        }
        if self.stdin.is_none() || self.n_sent == self.unsent.len() {
            // Not `clear`: the room of an answer of many megabytes is given back.
            self.unsent = Vec::new();
            self.n_sent = 0;
            if self.is_closing {
                self.stdin = None;
            }
        }
    }
}

impl HttpSource {
    async fn next(&mut self, deadline: Option<Instant>) -> SourceEvent {
        let Some(call) = &mut self.call else {
            return SourceEvent::Exited;
        };
        let event = tokio::select! {
            biased;
            () = until(deadline), if deadline.is_some() => return SourceEvent::Deadline,
            event = call.next() => event,
        };
        match event {
            responses::CallEvent::Bytes(bytes) => {
                self.chunk = bytes;
                SourceEvent::Stdout
            }
            responses::CallEvent::Notice(code, text) => SourceEvent::Notice(code, text),
            responses::CallEvent::End(ended) => {
                self.failure = ended.err();
                self.call = None;
                SourceEvent::Exited
            }
        }
    }
}

impl ReplaySource {
    async fn next(&mut self) -> SourceEvent {
        if self.is_stopped {
            return SourceEvent::Exited;
        }
        if self.next.is_none() {
            match self.replay.next() {
                Ok(Some(next)) => {
                    // A timer is late by a little every time, which would add up.
                    let now = Instant::now();
                    self.due = now.checked_sub(LATE).map_or(now, |it| it.max(self.due)) + next.wait;
                    self.next = Some((self.due, next.frame));
                }
                Ok(None) => return SourceEvent::Exited,
                Err(err) => {
                    self.error = Some(err);
                    return SourceEvent::Exited;
                }
            }
        }
        if let Some((at, _)) = &self.next {
            until(Some(*at)).await;
        }
        if let Some((_, frame)) = self.next.take() {
            self.frame = frame;
            // The framer of a recording splits lines, whatever the format.
            self.frame.push(b'\n');
        }
        SourceEvent::Stdout
    }
}

/// Temporary files are readable only by their owner.
fn write_secret_file(private: &SecretFile) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::with_prefix("linkspan-")?;
    file.write_all(private.text.as_bytes())?;
    Ok(file)
}

/// True when there was something; an error is an end.
async fn read(
    pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>,
    buf: &mut Vec<u8>,
    size: usize,
) -> bool {
    buf.reserve(size);
    match pipe {
        Some(pipe) => pipe.read_buf(buf).await.is_ok_and(|n| n > 0),
        None => false,
    }
}

async fn write(pipe: &mut Option<ChildStdin>, bytes: &[u8]) -> Option<usize> {
    match pipe {
        Some(pipe) => pipe.write(bytes).await.ok(),
        None => None,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        // A timer would take a millisecond, for nothing.
        Some(at) if at <= Instant::now() => yield_now().await,
        Some(at) => sleep_until(at.into()).await,
        None => (),
    }
}
