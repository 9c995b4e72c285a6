//! One agent at work: a process or a recording, read to its one end.
//!
//! [`Agent::step`] waits for the next thing to happen and tells it to a sink. What it told may be
//! shown when it returns, and not before: the lock of a session that has just become known is taken
//! in between. All else (abort, answers, the next prompt) is a plain call between two steps.

mod asks;
mod end;
mod hold;
mod newest;
mod setup;
mod source;
mod words;

use std::env;
use std::time::{Duration, Instant, SystemTime};

use formats::ag_ui::ClientRun;
use formats::framing::Framer;
use formats::registry;
use formats::{ReaderConfig, RunEnds};
use model::{Reader, RunId, Sink};

use self::hold::{Hold, Holding, TakingUp};
pub use self::newest::Place;
use self::newest::{Held as HeldBack, Newest};
pub use self::setup::{Earlier, Limits, Setup, StartError, Work};
use self::source::{Heard, Source};
use crate::dialogue::{Dialogue, NotSettled, Offers, Outbox};
use crate::live::{Ended, Live, Now, Reason};
use crate::locks::{Held, Locks};
use crate::policy::Asked;
use crate::process::{Ladder, Marker, Patience};
use crate::request::{Answer, Mode, Prompt};
use crate::secrets::Secrets;
use crate::stderr::Stderr;

/// For each step of letting an idle agent go that is in somebody's way.
const DISMISSED: Patience = Patience {
    interrupted: Duration::from_millis(1000),
    terminated: Duration::from_millis(300),
};

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was told; there is more to come.
    Told,
    /// A run has ended, and the agent can be prompted again.
    Ended,
    /// The newest session was asked for, and it is known which one it is ([`Agent::native`] names it), or that
    /// nobody will ever know. Nothing was told yet: [`Agent::place`] says where it goes on.
    Found,
    /// The newest session was asked for, and somebody else is in it ([`Agent::native`] names it). The
    /// agent was ended at once; nothing that was told counts.
    Busy,
    /// The agent is gone, and everything it started with it.
    Gone,
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
    live: Live,
    stderr: Stderr,
    limits: Limits,
    /// Asks that are known to be overdue.
    overdue: Vec<String>,
    /// The agent has been told to stop.
    stopping: Option<Ladder>,
    /// Who stopped it, when it was not the agent itself.
    reason: Option<Reason>,
    is_aborted: bool,
    locks: Option<Locks>,
    held: Option<Holding>,
    /// The lock that was set down is on its way back.
    taking_up: Option<TakingUp>,
    /// The prompt that waits for it.
    waiting: Option<Prompt>,
    /// The run of the next prompt, when it was told already.
    announced: Option<RunId<'static>>,
    /// It has a prompt that has not come to its end.
    is_at_work: bool,
    /// Who works on the session, for those who wait for it.
    holder: String,
    /// The newest session was asked for, and nobody has said yet where it is kept.
    newest: Option<Newest>,
    /// What is to be told now that it is known.
    held_back: Option<HeldBack>,
    marker: Marker,
    /// Nothing was heard of the agent yet, since then.
    silent_since: Option<Instant>,
    heard_at: Instant,
    n_ended: u64,
    /// Somebody wanted something of it.
    is_prompted: bool,
    is_gone: bool,
    /// What the user should know about the start, until it is told.
    notice: Option<String>,
    /// The permission modes that the agent can be switched to.
    modes: Vec<Mode>,
}

impl Agent {
    /// Starts the agent. A session that is resumed is locked first; `waiting` hears who has it.
    pub async fn start(mut setup: Setup, waiting: impl FnMut(&Held)) -> Result<Self, StartError> {
        let format = registry::find_reader(setup.format);
        let (format, reader) = format.map_err(|_| StartError::NoReader(setup.format))?;
        let marker = Marker::random().map_err(StartError::Marker)?;
        let lock = match setup.lock.take() {
            Some(lock) => Some(lock),
            None => setup.lock(waiting).await?,
        };
        if let Some(lock) = &lock {
            lock.protect(marker).map_err(|it| setup.not_locked(it))?;
        }
        let now = Instant::now();
        let n_runs = setup.earlier.names.n_runs;
        let is_prompted = !matches!(setup.work, Work::Dialogue { prompt: None, .. });
        let config = ReaderConfig {
            session: setup.session.clone(),
            engine: Some(setup.engine.clone()),
            expect: setup.expect.clone(),
            began: Some(SystemTime::now().into()),
            earlier: setup.earlier.names,
            run_ends: match &setup.work {
                Work::Dialogue { .. } => RunEnds::AtResult,
                Work::OneShot { .. } | Work::Responses { .. } => RunEnds::AtExit,
                // A recording may hold many turns.
                Work::Replay { .. } => RunEnds::AtNextTurn,
            },
        };
        let mut live = Live::new(&setup.session, &setup.engine, setup.login_hint, now);
        live.goes_on(setup.earlier.seq, n_runs);
        let mut outbox = Outbox::default();
        let secrets = match &setup.work {
            Work::OneShot { launch, .. } | Work::Dialogue { launch, .. } => {
                live.works_in(&launch.cwd);
                Secrets::of(env::vars_os().chain(launch.env.iter().cloned()))
            }
            Work::Responses { .. } | Work::Replay { .. } => Secrets::default(),
        };
        let (source, dialogue) = match setup.work {
            Work::OneShot {
                launch,
                guard,
                prompt,
                echoes,
            } => {
                live.prompted(&prompt, echoes);
                (Source::process(&launch, &guard, marker)?, None)
            }
            Work::Dialogue {
                launch,
                guard,
                prompt,
                mut dialogue,
            } => {
                let source = Source::process(&launch, &guard, marker)?;
                dialogue.open(&mut outbox);
                if let Some(prompt) = prompt {
                    live.prompted(&prompt.text, true);
                    dialogue.prompt(&prompt, &mut outbox);
                }
                (source, Some(dialogue))
            }
            Work::Responses {
                endpoint,
                mut conversation,
                prompt,
            } => {
                conversation.in_session(&setup.session);
                // What the application's tools have answered is no prompt.
                if !prompt.is_empty() {
                    live.prompted(&prompt, false);
                }
                (Source::call(&endpoint, &conversation), None)
            }
            Work::Replay {
                input,
                speed,
                prompt,
            } => {
                if let Some(prompt) = prompt {
                    live.prompted(&prompt, false);
                }
                (Source::replay(input, format.framing, speed), None)
            }
        };
        if let Some(run) = setup.announced {
            live.is_announced(run);
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
            held: lock.zip(setup.in_use).map(|(lock, session)| Holding::Held {
                session,
                lock,
                is_read: setup.is_fork,
            }),
            taking_up: None,
            waiting: None,
            announced: None,
            is_at_work: is_prompted,
            holder: setup.holder,
            marker,
            silent_since: Some(now),
            heard_at: now,
            n_ended: 0,
            is_prompted,
            is_gone: false,
            notice: setup.notice,
            modes: setup.modes,
        })
    }

    /// Waits for what happens next and tells it. May be dropped and called again: nothing is lost.
    pub async fn step<S: Sink>(&mut self, sink: &mut S) -> Step {
        if self.is_gone {
            return Step::Gone;
        }
        if self.tell_held(sink) {
            return self.told();
        }
        self.say(sink);
        match self.hold(sink).await {
            Hold::Idle => (),
            Hold::Taken => return self.told(),
            Hold::Busy => return Step::Busy,
        }
        self.set_down();
        self.take_up();
        let deadline = self.deadline();
        let heard = tokio::select! {
            biased;
            taken = hold::taken(&mut self.taking_up), if self.taking_up.is_some() => {
                self.took_up(sink, taken);
                Heard::Nothing
            }
            heard = self.source.next(deadline) => heard,
        };
        match heard {
            Heard::Stdout => self.heard(sink),
            Heard::Stderr => self.complained(sink),
            Heard::Said => self.said(sink),
            Heard::Nothing => (),
            Heard::Deadline => self.late(),
            Heard::Gone if self.newest.is_some() => return Step::Found,
            Heard::Gone => return self.finish(sink),
        }
        self.say(sink);
        match self.hold(sink).await {
            Hold::Busy => Step::Busy,
            Hold::Idle | Hold::Taken if self.newest.as_ref().is_some_and(Newest::is_decided) => {
                Step::Found
            }
            Hold::Idle | Hold::Taken => self.told(),
        }
    }

    /// What the next run is to a client, as it is to be noted beside the run.
    pub fn name_run(&mut self, run: ClientRun) {
        self.live.named(run);
    }

    /// The next prompt of an agent that is talked with. One that idles has put the lock of its session
    /// down, and is told the prompt when it has it again.
    pub fn prompt(&mut self, prompt: &Prompt) {
        self.is_at_work = true;
        match self.held {
            Some(Holding::Idle { .. }) => self.waiting = Some(prompt.clone()),
            Some(Holding::Held { .. }) | None => self.give(prompt),
        }
    }

    /// The run of the next prompt was told already, with the prompt; the last event of that is `seq`.
    pub fn announced(&mut self, run: RunId<'static>, seq: u64) {
        self.live.skip_to(seq);
        self.announced = Some(run);
    }

    /// The prompt that the agent was not given, because somebody else has worked in its session while
    /// it idled: it is gone, and another one has to go on with the session.
    pub fn take_unsent(&mut self) -> Option<Prompt> {
        self.waiting.take()
    }

    fn give(&mut self, prompt: &Prompt) {
        self.heard_at = Instant::now();
        self.is_prompted = true;
        if let Some(dialogue) = &mut self.dialogue {
            self.live.prompted(&prompt.text, true);
            if let Some(run) = self.announced.take() {
                self.live.is_announced(run);
            }
            dialogue.prompt(prompt, &mut self.outbox);
        }
    }

    /// Answers an ask. The second answer is told so.
    pub fn settle(&mut self, ask: &str, answer: &Answer) -> Result<(), NotSettled> {
        // However long somebody thought about it, the agent was not idle.
        self.heard_at = Instant::now();
        match &mut self.dialogue {
            Some(dialogue) => dialogue.settle(ask, answer, &mut self.outbox),
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
        if !self.modes.contains(&mode) {
            return false;
        }
        let dialogue = self.dialogue.as_mut();
        dialogue.is_some_and(|it| it.set_mode(mode, &mut self.outbox))
    }

    /// What the agent has said it offers, as far as it is known by now.
    pub fn offers(&self) -> Offers {
        let dialogue = self.dialogue.as_ref();
        dialogue.map(|it| it.offers()).unwrap_or_default()
    }

    /// Whether an answer may change what runs.
    pub fn takes_changes(&self) -> bool {
        self.dialogue.as_ref().is_some_and(|it| it.takes_changes())
    }

    /// What the agent waits for an answer to.
    pub fn asks(&self) -> &[Asked] {
        self.live.asks()
    }

    /// Asks the agent to stop; if it does not, it is made to, one step harder at a time.
    /// An agent that can be talked with stays.
    pub fn abort(&mut self) {
        if self.is_aborted || self.is_gone {
            return;
        }
        self.is_aborted = true;
        self.live.stops();
        if self.waiting.take().is_some() {
            // It has not been told what it would have to stop.
            return self.stop();
        }
        let dialogue = self.dialogue.as_mut();
        if dialogue.is_some_and(|it| it.interrupt(&mut self.outbox)) {
            self.stopping = Some(Ladder::asked(Instant::now(), self.limits.patience));
        } else {
            self.stop();
        }
    }

    /// No more prompts: an agent that is talked with goes when its run has ended.
    pub fn close(&mut self) {
        self.source.close_stdin();
        let patience = self.limits.patience;
        self.stopping
            .get_or_insert_with(|| Ladder::asked(Instant::now(), patience));
    }

    /// The same for an agent without work whose session somebody else wants: it has nothing to finish.
    pub fn dismiss(&mut self) {
        self.source.close_stdin();
        self.stopping = Some(Ladder::asked(Instant::now(), DISMISSED));
    }

    /// Ends the agent and all it started, now.
    pub fn kill(&mut self) {
        self.is_aborted = true;
        self.source.kill();
    }

    /// Waits until a killed agent and all it started are gone.
    pub async fn step_to_end(&mut self) {
        self.source.kill();
        self.source.ended().await;
    }

    /// How the last run ended.
    pub fn last(&self) -> Option<&Ended> {
        self.live.last()
    }

    /// The agent's own id of the session, once it is known.
    pub fn native(&self) -> Option<&str> {
        let newest = self.newest.as_ref().and_then(Newest::native);
        newest.or(self.live.native())
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    fn told(&mut self) -> Step {
        let n_ended = self.live.n_ended();
        if n_ended == self.n_ended || self.dialogue.is_none() {
            return Step::Told;
        }
        self.n_ended = n_ended;
        self.is_at_work = false;
        // It did as it was told, and stays, unless it was told to leave.
        if self.source.is_open() {
            self.stopping = None;
        }
        self.is_aborted = false;
        Step::Ended
    }
}

fn now() -> Now {
    Now {
        at: SystemTime::now().into(),
        instant: Instant::now(),
    }
}
