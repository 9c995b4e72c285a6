//! The loop of the one session: lines of the host in, turns out.
//!
//! Prompts are worked on in the order in which they come, each in a turn of its own. When the host closes the
//! pipe, the last turn is finished, and nobody is there to be asked.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use formats::ClaudeAgent;
use hub::{ClientSession, LogLost, Progress, Request};
use journal::Journal;
use model::{Body, Cause, Event, Outcome, Sink, error_chain};
use runner::Prompt;
use runner::engines::{self, Engine};
use runner::pipes::{LineSender, PipeLine};
use tokio::sync::mpsc;

use crate::ClaudeSdkConfig;
use crate::asks::Asks;
use crate::messages::{self, HostLine};
use crate::modes;

/// Prompts that wait for their turn; a host that sends more is not being read.
const MAX_QUEUED: usize = 256;

/// The codes of runs whose agent could not be started, and whose agent exited without an answer.
const START_FAILED: &str = "start_failed";
const CRASHED: &str = "crashed";

pub(crate) struct Connection {
    pub(crate) config: ClaudeSdkConfig,
    pub(crate) core: ClientSession,
    journal: Arc<dyn Journal>,
    pub(crate) writer: ClaudeAgent,
    outbound: LineSender,
    pub(crate) lines: Vec<u8>,
    pub(crate) turn: Option<Turn>,
    queue: VecDeque<Prompt>,
    pub(crate) asks: Asks,
    pub(crate) is_input_closed: bool,
    /// The engine plays a recording: from its start for every prompt, up to the end of its first turn.
    pub(crate) is_recording: bool,
    /// Why this host's prompts are not run: it asked for something that is not supported.
    pub(crate) refusal: Option<String>,
    /// The state that was last reported to the host.
    state: &'static str,
}

/// A prompt without a result.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Its run, once it has begun.
    run: Option<String>,
    pub(crate) is_cancelled: bool,
}

/// What woke the loop.
enum Wakeup {
    Line(Option<PipeLine>),
    Worker(Progress),
    Stopped,
}

/// Events of the agent on their way to the host.
struct Fanout<'a> {
    writer: &'a mut ClaudeAgent,
    lines: &'a mut Vec<u8>,
    turn: &'a mut Option<Turn>,
    is_recording: bool,
}

impl Sink for Fanout<'_> {
    fn event(&mut self, event: &Event<'_>) {
        // The later turns of a recording are dropped: their prompts are not the host's.
        if self.is_recording && self.turn.is_none() {
            return;
        }
        self.writer.event(event, self.lines);
        let run = event.run.as_ref().map(|it| it.as_str());
        match &event.body {
            // A run started by background work does not answer the prompt.
            Body::RunStarted(it) if it.cause == Cause::Prompt => {
                if let Some(turn) = self.turn
                    && turn.run.is_none()
                {
                    turn.run = run.map(str::to_owned);
                }
            }
            Body::RunEnded(_) => drop(self.turn.take_if(|it| it.run.as_deref() == run)),
            _ => (),
        }
    }
}

impl Connection {
    pub(crate) fn new(
        config: ClaudeSdkConfig,
        core: ClientSession,
        journal: Arc<dyn Journal>,
        outbound: LineSender,
    ) -> Self {
        let session = &config.session;
        let mut writer = ClaudeAgent::new(&session.id, config.client);
        let cwd = session.cwd.to_string_lossy();
        let model = session.options.model.as_deref();
        writer.introduce(&cwd, model, modes::name(core.mode()));
        let engine = engines::find(&session.engine);
        let is_recording = engine.is_some_and(Engine::is_recording);
        Self {
            config,
            core,
            journal,
            writer,
            outbound,
            lines: Vec::new(),
            turn: None,
            queue: VecDeque::new(),
            asks: Asks::default(),
            is_input_closed: false,
            is_recording,
            refusal: None,
            state: "idle",
        }
    }

    pub(crate) async fn run(
        mut self,
        mut inbound: mpsc::Receiver<PipeLine>,
        stop: impl Future<Output = ()>,
    ) {
        let outbound = self.outbound.clone();
        let mut stop = pin!(stop);
        loop {
            self.begin().await;
            self.send().await;
            if self.is_input_closed && self.turn.is_none() && self.queue.is_empty() {
                break;
            }
            let takes_lines = !self.is_input_closed && self.queue.len() < MAX_QUEUED;
            // A recording continues as it was recorded, but only after the host has answered.
            let may_step = !self.is_recording || self.asks.is_empty();
            let (core, mut fanout) = self.parts();
            let wakeup = tokio::select! {
                biased;
                () = &mut stop => Wakeup::Stopped,
                () = outbound.closed() => Wakeup::Stopped,
                line = inbound.recv(), if takes_lines => Wakeup::Line(line),
                progress = core.worker.step(&mut fanout), if may_step => Wakeup::Worker(progress),
            };
            match wakeup {
                Wakeup::Stopped => {
                    outbound.flush_now();
                    break;
                }
                Wakeup::Line(None) => {
                    self.is_input_closed = true;
                    self.deny_asks();
                }
                Wakeup::Line(Some(PipeLine::Line(line))) => self.line(&line),
                Wakeup::Line(Some(PipeLine::TooLong(length))) => {
                    self.refuse_line(&format!("it has {length} bytes, which is too long"));
                }
                Wakeup::Worker(progress) => self.progressed(progress).await,
            }
        }
        self.leave().await;
    }

    /// The session, and the sink of its events.
    fn parts(&mut self) -> (&mut ClientSession, Fanout<'_>) {
        let fanout = Fanout {
            writer: &mut self.writer,
            lines: &mut self.lines,
            turn: &mut self.turn,
            is_recording: self.is_recording,
        };
        (&mut self.core, fanout)
    }

    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(HostLine::User { message }) => match message.prompt() {
                Ok(prompt) => self.queue.push_back(prompt),
                Err(message) => self.writer.fail(Outcome::Failed, &message, &mut self.lines),
            },
            Ok(HostLine::ControlRequest {
                request_id,
                request,
            }) => {
                let answer = self.control(&request);
                // Before the events that it causes.
                let mut lines = messages::answer(&request_id, &answer);
                lines.append(&mut self.lines);
                self.lines = lines;
            }
            Ok(HostLine::ControlResponse { response }) => self.answered(&response),
            Ok(HostLine::ControlCancelRequest {} | HostLine::KeepAlive {}) => (),
            Err(err) => self.refuse_line(&err.to_string()),
        }
    }

    /// A line that is none of the protocol has no id to answer it by.
    fn refuse_line(&mut self, why: &str) {
        let message = format!("a line of the host cannot be read: {why}");
        self.writer.warn(&message, &mut self.lines);
    }

    /// Begins the next turn, and gives its prompt to the agent.
    async fn begin(&mut self) {
        let is_played = self.is_recording && self.core.worker.agent().is_some();
        if let Some(refusal) = &self.refusal {
            for _ in self.queue.drain(..) {
                self.writer.fail(Outcome::Failed, refusal, &mut self.lines);
            }
        }
        if self.turn.is_none()
            && !is_played
            && let Some(prompt) = self.queue.pop_front()
        {
            self.accept(prompt).await;
        }
        if let Err(err) = self.core.begin() {
            self.fail(START_FAILED, &err.advice());
        }
        self.report_state();
    }

    async fn accept(&mut self, prompt: Prompt) {
        if self.core.is_stale() {
            let (core, mut fanout) = self.parts();
            core.release_agent(&mut fanout).await;
            self.withdraw_asks();
        }
        self.turn = Some(Turn::default());
        let journal = Arc::clone(&self.journal);
        let (core, mut fanout) = self.parts();
        match core.accept(&journal, prompt, &mut fanout).await {
            Ok(accepted) => {
                for warning in accepted.warnings {
                    self.writer.warn(&warning, &mut self.lines);
                }
            }
            Err(_) => {
                let message = "another program works in this session; try again when it is done";
                self.fail("session_busy", message);
            }
        }
    }

    async fn progressed(&mut self, progress: Progress) {
        match progress {
            Progress::Stored { .. } => self.core.is_store_failing = false,
            Progress::StoreFailed(_) => self.core.is_store_failing = true,
            // No host asks for the newest session here.
            Progress::Found => (),
            Progress::LogLost(LogLost { error, .. }) => {
                self.core.worker.stop_logging();
                let warning = hub::not_kept(&error);
                self.writer.warn(&warning, &mut self.lines);
            }
            Progress::Requests(requests) => {
                for request in requests {
                    self.requested(request).await;
                }
            }
            Progress::Started => {
                let (core, mut fanout) = self.parts();
                core.on_started(&mut fanout).await;
                let is_cancelled = self.turn.as_ref().is_some_and(|it| it.is_cancelled);
                if is_cancelled && self.core.drop_waiting() {
                    self.end_unbegun();
                }
            }
            Progress::NotStarted(err) => self.fail(START_FAILED, &error_chain(&err)),
            Progress::Events | Progress::Ended => {
                self.core.on_step();
                self.handle_asks();
                if self.is_recording && self.turn.is_none() {
                    self.core.worker.kill();
                }
            }
            Progress::Gone(mut agent) | Progress::Busy(mut agent) => {
                let is_again = self.core.agent_gone(&mut agent);
                self.withdraw_asks();
                if !is_again {
                    self.fail(CRASHED, "the agent ended before it answered");
                }
            }
        }
    }

    async fn requested(&mut self, request: Request) {
        match request {
            Request::Abort { .. } => self.interrupt(),
            Request::Leave { .. } if self.turn.is_none() && self.queue.is_empty() => {
                let (core, mut fanout) = self.parts();
                core.yield_session(&mut fanout).await;
            }
            Request::RemovePrompt { prompt, .. } => self.core.worker.log_mut().done(prompt),
            // The next owner of the session works on it.
            Request::Leave { .. } | Request::Prompt { .. } | Request::Damaged { .. } => (),
        }
    }

    /// Fails the turn; without one the next will report the error.
    fn fail(&mut self, code: &'static str, message: &str) {
        self.core.drop_waiting();
        if let Some(turn) = self.turn.take() {
            if turn.is_cancelled {
                return self.aborted();
            }
            self.core.end_announced(Some((code, message.to_owned())));
            self.writer.fail(Outcome::Failed, message, &mut self.lines);
        }
    }

    /// The turn was cancelled before an agent had its prompt.
    pub(crate) fn end_unbegun(&mut self) {
        if self.turn.take().is_some() {
            self.aborted();
        }
    }

    fn aborted(&mut self) {
        self.core.end_announced(None);
        self.writer
            .fail(Outcome::Aborted, "aborted", &mut self.lines);
    }

    /// Tells the host whether the session works, waits for an answer or for a prompt.
    pub(crate) fn report_state(&mut self) {
        let state = match (&self.turn, self.asks.is_empty()) {
            (None, _) => "idle",
            (Some(_), false) => "requires_action",
            (Some(_), true) => "running",
        };
        if self.config.reports_state && state != self.state {
            self.writer.state(state, &mut self.lines);
        }
        self.state = state;
    }

    async fn send(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        // A host that has its result may read the session at once: all of it is stored by then.
        if self.turn.is_none() && !self.core.is_store_failing {
            self.core.is_store_failing = !self.core.worker.log_mut().flush().await;
        }
        let lines = std::mem::take(&mut self.lines);
        self.outbound.send(lines).await;
    }

    async fn leave(mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_cancelled = true;
            self.core.cancel();
        }
        // The agent never outlives the session.
        let (core, mut fanout) = self.parts();
        core.wait_for_run_end(&mut fanout, |it| it.turn.is_some())
            .await;
        let (core, mut fanout) = self.parts();
        core.release_agent(&mut fanout).await;
        self.withdraw_asks();
        self.end_unbegun();
        self.report_state();
        self.core.worker.log_mut().release().await;
        self.send().await;
    }
}
