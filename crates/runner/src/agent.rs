//! A running agent: a process, an endpoint or a recording, read to its end.
//!
//! [`Agent::step`] waits for the next thing to happen and emits its events to a sink. They may be
//! published when it returns, not before: the lock of a session that has just become known is
//! acquired in between. Everything else (abort, answers, the next prompt) is a plain call between
//! two steps.

mod asks;
mod end;
mod newest;
mod session_lock;
mod setup;
mod source;
mod words;

use std::env;
use std::time::{Duration, Instant, SystemTime};

use formats::framing::Framer;
use formats::registry;
use formats::{ReaderConfig, RunEnds};
use model::{Level, Raw, Reader, RunId, Sink};

pub use self::newest::Place;
use self::newest::{Held as HeldBack, Newest};
use self::session_lock::{LockStep, Reacquiring, SessionLock};
pub use self::setup::{Backend, Limits, ResumePoint, Setup, StartError};
use self::source::{Source, SourceEvent};
use crate::dialogue::{Dialogue, NotSettled, Offers, Outbox};
use crate::live_run::{EndReason, LiveRun, Now, RunResult};
use crate::locks::{LockHolder, Locks};
use crate::policy::PendingAsk;
use crate::process::{Escalation, GracePeriods, ProcessTag};
use crate::request::{Answer, Mode, Prompt};
use crate::secrets::Secrets;
use crate::stderr::Stderr;

/// Grace periods for ending an idle agent whose session another process wants.
const DISMISS_GRACE: GracePeriods = GracePeriods {
    // Short, because that process waits, and an idle agent has nothing left to write.
    interrupted: Duration::from_millis(1000),
    terminated: Duration::from_millis(300),
};

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Events were emitted; there is more to come.
    Progress,
    /// A run has ended, and the agent can be prompted again.
    RunEnded,
    /// The newest session was requested, and the agent has named it ([`Agent::native`]) or never will. No event
    /// was emitted yet: [`Agent::place`] sets where they continue.
    Found,
    /// The newest session was requested and is in use by another process ([`Agent::native`] names
    /// it). The agent was ended at once; discard its events.
    SessionBusy,
    /// The agent and everything it started have exited.
    Exited,
}

/// An agent at work.
#[derive(Debug)]
pub struct Agent {
    engine: String,
    source: Source,
    framer: Framer,
    reader: Box<dyn Reader>,
    dialogue: Option<Box<dyn Dialogue>>,
    outbox: Outbox,
    live: LiveRun,
    stderr: Stderr,
    limits: Limits,
    /// Asks that are known to be overdue.
    overdue: Vec<String>,
    /// The agent is being stopped.
    stopping: Option<Escalation>,
    /// Why it was stopped, if it did not exit by itself.
    reason: Option<EndReason>,
    is_aborted: bool,
    locks: Option<Locks>,
    session_lock: Option<SessionLock>,
    /// The idle lock is being reacquired.
    reacquiring: Option<Reacquiring>,
    /// The prompt to send once it is.
    waiting: Option<Prompt>,
    /// The run of the next prompt, if it was announced.
    announced: Option<RunId<'static>>,
    /// It has a prompt whose run has not ended.
    has_prompt: bool,
    /// A description of this holder for others that wait for the session.
    holder: String,
    /// The newest session was requested, and its place is not known yet.
    newest: Option<Newest>,
    /// What is emitted now that it is known.
    held_back: Option<HeldBack>,
    tag: ProcessTag,
    /// When the agent was started, until its first output.
    silent_since: Option<Instant>,
    last_output_at: Instant,
    n_ended: u64,
    /// It was prompted.
    is_prompted: bool,
    is_gone: bool,
    /// A notice about the start, until it is emitted.
    notice: Option<String>,
    /// The permission modes that the agent can be switched to.
    modes: Vec<Mode>,
}

impl Agent {
    /// Starts the agent. A session that is resumed is locked first; `waiting` is called with its
    /// holder.
    pub async fn start(
        mut setup: Setup,
        waiting: impl FnMut(&LockHolder),
    ) -> Result<Self, StartError> {
        let format = registry::find_reader(setup.format);
        let (format, reader) = format.map_err(|_| StartError::NoReader(setup.format))?;
        // Drawn before the lock is taken, because the ticket names the agent that it protects.
        let tag = ProcessTag::random().map_err(StartError::Marker)?;
        // Before the process: an agent must not work in a session that another one writes.
        let lock = match setup.lock.take() {
            Some(lock) => Some(lock),
            None => setup.lock(waiting).await?,
        };
        if let Some(lock) = &lock {
            // If this process dies right after the start, the next owner waits for the agent.
            lock.protect(tag).map_err(|it| setup.not_locked(it))?;
        }
        let now = Instant::now();
        let n_runs = setup.resume_point.previous.n_runs;
        let is_prompted = !matches!(setup.backend, Backend::Dialogue { prompt: None, .. });
        let config = ReaderConfig {
            session: setup.session.clone(),
            engine: Some(setup.engine.clone()),
            expected_session: setup.expect.clone(),
            started_at: Some(SystemTime::now().into()),
            previous: setup.resume_point.previous,
            run_ends: match &setup.backend {
                // It stays alive for the next prompt, so its exit cannot be the end of a run.
                Backend::Dialogue { .. } => RunEnds::AtResult,
                Backend::OneShot { .. } | Backend::Responses { .. } => RunEnds::AtExit,
                // A recording may hold many turns.
                Backend::Replay { .. } => RunEnds::AtNextTurn,
            },
        };
        let mut live = LiveRun::new(&setup.session, &setup.engine, setup.login_hint, now);
        live.continue_from(setup.resume_point.seq, n_runs);
        let mut outbox = Outbox::default();
        let secrets = match &setup.backend {
            Backend::OneShot { launch, .. } | Backend::Dialogue { launch, .. } => {
                live.cwd = Some(launch.cwd.clone());
                // The agent inherits this environment, and its stderr may repeat any secret of it.
                Secrets::of(env::vars_os().chain(launch.env.iter().cloned()))
            }
            Backend::Responses { .. } | Backend::Replay { .. } => Secrets::default(),
        };
        let (source, dialogue) = match setup.backend {
            Backend::OneShot {
                launch,
                guard,
                prompt,
                echoes,
            } => {
                live.set_prompt(&prompt, echoes);
                (Source::process(&launch, &guard, tag)?, None)
            }
            Backend::Dialogue {
                launch,
                guard,
                prompt,
                mut dialogue,
            } => {
                let source = Source::process(&launch, &guard, tag)?;
                dialogue.open(&mut outbox);
                if let Some(prompt) = prompt {
                    // The reader sees what is sent, so the prompt comes back as an event.
                    live.set_prompt(&prompt.text, true);
                    dialogue.prompt(&prompt, &mut outbox);
                }
                (source, Some(dialogue))
            }
            Backend::Responses {
                endpoint,
                mut conversation,
                prompt,
            } => {
                conversation.in_session(&setup.session);
                // The results of the application's tools are not a prompt.
                if !prompt.is_empty() {
                    live.set_prompt(&prompt, false);
                }
                (Source::call(&endpoint, &conversation), None)
            }
            Backend::Replay {
                input,
                speed,
                prompt,
            } => {
                if let Some(prompt) = prompt {
                    live.set_prompt(&prompt, false);
                }
                (Source::replay(input, format.framing, speed), None)
            }
        };
        // After the prompt is set, because the announced run takes it over.
        if let Some(run) = setup.announced {
            live.set_announced(run);
        }
        Ok(Self {
            engine: setup.engine,
            framer: Framer::new(source.framing(format.framing)),
            reader: reader(&config),
            newest: setup.is_latest.then(|| Newest::new(reader, config)),
            held_back: None,
            source,
            dialogue,
            outbox,
            live,
            stderr: Stderr::new(now).without(secrets),
            limits: setup.limits,
            overdue: Vec::new(),
            stopping: None,
            reason: None,
            is_aborted: false,
            locks: setup.locks,
            session_lock: lock
                .zip(setup.in_use)
                .map(|(lock, session)| SessionLock::Held {
                    session,
                    lock,
                    is_read: setup.is_fork,
                }),
            reacquiring: None,
            waiting: None,
            announced: None,
            has_prompt: is_prompted,
            holder: setup.holder,
            tag,
            silent_since: Some(now),
            last_output_at: now,
            n_ended: 0,
            is_prompted,
            is_gone: false,
            notice: setup.notice,
            modes: setup.modes,
        })
    }

    /// Waits for the next thing to happen and emits its events. Cancel safe.
    pub async fn step<S: Sink>(&mut self, sink: &mut S) -> Step {
        if self.is_gone {
            return Step::Exited;
        }
        // Held frames are older than anything the source still has, so they go first.
        if self.emit_held(sink) {
            return self.step_result();
        }
        // Calls between two steps, such as an answer or an abort, may have filled the outbox.
        self.flush_outbox(sink);
        // The last step may have been dropped while it waited for the lock.
        match self.lock_session(sink).await {
            LockStep::Unchanged => (),
            LockStep::Acquired => return self.step_result(),
            LockStep::Busy => return Step::SessionBusy,
        }
        // The last events of the run are published by now, so others may use the session.
        self.release_idle_lock();
        self.reacquire_lock();
        let deadline = self.deadline();
        let event = tokio::select! {
            biased;
            taken = session_lock::reacquired(&mut self.reacquiring), if self.reacquiring.is_some() => {
                self.on_reacquired(sink, taken);
                SourceEvent::None
            }
            event = self.source.next(deadline) => event,
        };
        match event {
            SourceEvent::Stdout => self.on_stdout(sink),
            SourceEvent::Stderr => self.on_stderr(sink),
            SourceEvent::Notice(code, text) => {
                self.live.notice(sink, now(), Level::Warning, code, &text);
            }
            SourceEvent::None => (),
            SourceEvent::Deadline => self.on_deadline(),
            // It never named its session; what is held is emitted first, and then the end.
            SourceEvent::Exited if self.newest.is_some() => return Step::Found,
            SourceEvent::Exited => return self.finish(sink),
        }
        // The dialogue may have answered the lines that were just read.
        self.flush_outbox(sink);
        match self.lock_session(sink).await {
            LockStep::Busy => Step::SessionBusy,
            LockStep::Unchanged | LockStep::Acquired
                if self.newest.as_ref().is_some_and(Newest::is_decided) =>
            {
                Step::Found
            }
            LockStep::Unchanged | LockStep::Acquired => self.step_result(),
        }
    }

    /// Sends the next prompt of a dialogue. An idle agent has released the lock of its session and
    /// gets the prompt once it is reacquired.
    pub fn prompt(&mut self, prompt: &Prompt) {
        // Set at once, so that the lock is not released while the prompt waits.
        self.has_prompt = true;
        match self.session_lock {
            Some(SessionLock::Idle { .. }) => self.waiting = Some(prompt.clone()),
            Some(SessionLock::Held { .. }) | None => self.send_prompt(prompt),
        }
    }

    /// The run of the next prompt was announced, with the prompt; see [`Agent::skip_to`].
    pub fn announced(&mut self, run: RunId<'static>) {
        self.announced = Some(run);
    }

    /// Events up to this one were emitted by others.
    pub fn skip_to(&mut self, seq: u64) {
        self.live.seq = seq;
    }

    /// The prompt that was not sent because another process wrote the session while the agent was
    /// idle: this agent ends, and a new one has to resume the session.
    pub fn take_unsent(&mut self) -> Option<Prompt> {
        self.waiting.take()
    }

    fn send_prompt(&mut self, prompt: &Prompt) {
        // The idle time of a run begins with its prompt, not with the output of the run before.
        self.last_output_at = Instant::now();
        self.is_prompted = true;
        if let Some(dialogue) = &mut self.dialogue {
            self.live.set_prompt(&prompt.text, true);
            if let Some(run) = self.announced.take() {
                self.live.set_announced(run);
            }
            dialogue.prompt(prompt, &mut self.outbox);
        }
    }

    /// Answers an ask; a second answer is an error.
    pub fn settle(&mut self, ask: &str, answer: &Answer) -> Result<(), NotSettled> {
        // Waiting for an answer does not count as idle time.
        self.last_output_at = Instant::now();
        match &mut self.dialogue {
            Some(dialogue) => {
                let asked = self.live.asks.iter().find(|it| it.ask.id.as_str() == ask);
                let input = asked.and_then(|it| it.ask.input.as_ref());
                let input = input.map(Raw::as_raw_value);
                dialogue.settle(ask, input, answer, &mut self.outbox)
            }
            None => Err(NotSettled::NotOpen),
        }
    }

    /// Later runs use another model; false when this agent cannot change it.
    pub fn set_model(&mut self, model: &str) -> bool {
        let dialogue = self.dialogue.as_mut();
        dialogue.is_some_and(|it| it.set_model(model, &mut self.outbox))
    }

    /// Later runs may do more, or less; false when this agent cannot change it.
    pub fn set_mode(&mut self, mode: Mode) -> bool {
        // Rules about tools are fixed when the process starts, and would be wrong in other modes.
        if !self.modes.contains(&mode) {
            return false;
        }
        let dialogue = self.dialogue.as_mut();
        dialogue.is_some_and(|it| it.set_mode(mode, &mut self.outbox))
    }

    /// The models, modes and commands that the agent has reported so far.
    pub fn offers(&self) -> Offers {
        let dialogue = self.dialogue.as_ref();
        dialogue.map(|it| it.offers()).unwrap_or_default()
    }

    /// Whether an answer may change what runs.
    pub fn takes_changes(&self) -> bool {
        self.dialogue.as_ref().is_some_and(|it| it.takes_changes())
    }

    /// The open asks that wait for an answer. What a recording asks is answered by the recording.
    pub fn asks(&self) -> &[PendingAsk] {
        match self.dialogue {
            Some(_) => &self.live.asks,
            None => &[],
        }
    }

    /// What a recording asks at this point, and answers by itself.
    pub fn recorded_asks(&self) -> &[PendingAsk] {
        match self.dialogue {
            Some(_) => &[],
            None => &self.live.asks,
        }
    }

    /// Asks the agent to stop; if it does not, it is made to, one step harder at a time.
    /// An agent that can be talked with stays.
    pub fn abort(&mut self) {
        if self.is_aborted || self.is_gone {
            return;
        }
        self.is_aborted = true;
        // A run that the reader has not seen yet would end as a failure otherwise.
        self.live.stops();
        if self.waiting.take().is_some() {
            // It has no prompt yet that could be aborted.
            return self.stop();
        }
        let dialogue = self.dialogue.as_mut();
        if dialogue.is_some_and(|it| it.interrupt(&mut self.outbox)) {
            self.stopping = Some(Escalation::started(Instant::now(), self.limits.patience));
        } else {
            self.stop();
        }
    }

    /// No more prompts: an agent that is talked with goes when its run has ended.
    pub fn close(&mut self) {
        self.source.close_stdin();
        let patience = self.limits.patience;
        self.stopping
            // An escalation that is under way keeps its times: closing twice must not prolong it.
            .get_or_insert_with(|| Escalation::started(Instant::now(), patience));
    }

    /// The same for an idle agent whose session another process wants: it has nothing to finish.
    pub fn dismiss(&mut self) {
        self.source.close_stdin();
        // Replaces an escalation with longer grace periods, unlike `close`.
        self.stopping = Some(Escalation::started(Instant::now(), DISMISS_GRACE));
    }

    /// Ends the agent and all it started, now.
    pub fn kill(&mut self) {
        // The exit that follows is an abort then, and no crash.
        self.is_aborted = true;
        self.source.kill();
    }

    /// Waits until a killed agent and all it started are gone.
    pub async fn step_to_end(&mut self) {
        self.source.kill();
        self.source.ended().await;
    }

    /// How the last run ended.
    pub fn last(&self) -> Option<&RunResult> {
        self.live.last.as_ref()
    }

    /// The agent's own id of the session, once it is known.
    pub fn native(&self) -> Option<&str> {
        // Until the newest session has its place, only the probe knows the id.
        let newest = self.newest.as_ref().and_then(Newest::native);
        newest.or(self.live.native.as_deref())
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    fn step_result(&mut self) -> Step {
        let n_ended = self.live.n_ended;
        // Only a dialogue can be prompted again; for the others the end of the run is their exit.
        if n_ended == self.n_ended || self.dialogue.is_none() {
            return Step::Progress;
        }
        self.n_ended = n_ended;
        self.has_prompt = false;
        // The run was aborted; the agent stays alive unless it was asked to exit.
        if self.source.is_open() {
            self.stopping = None;
        }
        // The abort was meant for that run alone.
        self.is_aborted = false;
        Step::RunEnded
    }
}

fn now() -> Now {
    Now {
        at: SystemTime::now().into(),
        instant: Instant::now(),
    }
}
