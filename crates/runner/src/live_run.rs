//! What a live run adds to the reader's events: the clock, the prompt, the text on stderr.
//!
//! The reader knows the agent's output and nothing else. Here its events get the numbers they keep,
//! the time where the agent reported none, the prompt that was given as an argument, and, when the
//! agent ended without a result, the reason from its exit or its stderr. No I/O, no clock.

mod announced;
mod deadlines;
mod reason;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{
    Ask, Binding, Body, Cause, ClientRun, Event, Frame, Item, ItemClosed, ItemId, Level, Message,
    Notice, Origin, Outcome, Raw, Role, RunEnded, RunError, RunId, SessionId, Sink, Status, Text,
    Timestamp, Tool, ToolKind, Why,
};

use self::announced::Announced;
use self::deadlines::Deadlines;
pub(crate) use self::reason::EndReason;
use crate::policy::PendingAsk;
use crate::stderr::StderrEvent;

/// The error code of an agent that needs a login.
const LOGIN_REQUIRED: &str = "authentication_required";

/// The now of one step, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) at: Timestamp,
    pub(crate) instant: Instant,
}

/// The state of a live run; every event passes through here.
#[derive(Debug, Default)]
pub(crate) struct LiveRun {
    pub(crate) session: String,
    engine: String,
    /// The number of the last event of the session, from whatever source.
    pub(crate) seq: u64,
    run: Option<RunId<'static>>,
    /// The first run starts with the agent, which may fail before its first event.
    run_began: Option<Instant>,
    /// A prompt that was not emitted yet.
    prompt: Option<PendingPrompt>,
    /// Whether the run is about a prompt.
    is_prompted: bool,
    n_prompts: u64,
    /// The agent's own id of the session, once it is known.
    pub(crate) native: Option<String>,
    pub(crate) asks: Vec<PendingAsk>,
    deadlines: Deadlines,
    /// Calls that are under way.
    calls: Vec<OpenCall>,
    /// Where the agent works.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) last: Option<RunResult>,
    /// How many runs have ended.
    pub(crate) n_ended: u64,
    /// The hint for an agent that is not logged in.
    login_hint: Option<String>,
    pub(crate) is_mismatch: bool,
    pub(crate) reason: Option<EndReason>,
    /// The reason is a failure, not a silence.
    pub(crate) is_failure: bool,
    /// The run that was announced before its agent started.
    announced: Option<Announced>,
    /// It was aborted before the reader saw its start; the reader would report a failure.
    is_stopped_early: bool,
}

/// A call that is under way: what kind of tool it is of, and which files it names.
#[derive(Debug)]
struct OpenCall {
    id: ItemId<'static>,
    kind: ToolKind,
    paths: Vec<PathBuf>,
}

/// A prompt, and whether the stream repeats it.
#[derive(Debug)]
struct PendingPrompt {
    text: String,
    /// The stream does, unless the agent fails before.
    is_echoed: bool,
}

/// How the last run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    pub outcome: Outcome,
    /// The stable error code, if there was an error.
    pub code: Option<String>,
    pub message: Option<String>,
}

impl LiveRun {
    pub(crate) fn new(
        session: &str,
        engine: &str,
        login_hint: Option<String>,
        began: Instant,
    ) -> Self {
        Self {
            session: session.to_owned(),
            engine: engine.to_owned(),
            run_began: Some(began),
            login_hint,
            ..Self::default()
        }
    }

    /// The session has events and runs already.
    pub(crate) fn continue_from(&mut self, seq: u64, n_runs: u64) {
        self.seq = seq;
        // No run has more than one prompt, so their names are new as well.
        self.n_prompts = n_runs;
    }

    /// Sets the prompt of the next run; with `is_echoed` the agent's stream repeats it.
    pub(crate) fn set_prompt(&mut self, prompt: &str, is_echoed: bool) {
        self.prompt = Some(PendingPrompt {
            text: prompt.to_owned(),
            is_echoed,
        });
    }

    pub(crate) fn has_run(&self) -> bool {
        self.run.is_some()
    }

    /// A sink for the reader that hands everything on to `out`.
    pub(crate) fn sink<'a>(&'a mut self, out: &'a mut dyn Sink, now: Now) -> StampingSink<'a> {
        StampingSink {
            live: self,
            out,
            now,
        }
    }

    fn emit(&mut self, out: &mut dyn Sink, now: Now, origin: Origin, body: Body<'_>) {
        self.seq += 1;
        out.event(&Event {
            seq: self.seq,
            at: Some(now.at),
            session: SessionId::new(&*self.session),
            run: self.run.as_ref().map(RunId::by_ref),
            engine: Cow::Borrowed(&self.engine),
            path: Cow::Borrowed(&[]),
            origin,
            frame: None,
            native: None,
            why: None,
            extra: Cow::Borrowed(&[]),
            body,
        });
    }

    /// Emits a notice of the supervisor.
    pub(crate) fn notice(
        &mut self,
        out: &mut dyn Sink,
        now: Now,
        level: Level,
        code: &'static str,
        text: &str,
    ) {
        // These are the agent's own words; all other notices are linkspan's.
        let origin = if code == "stderr" {
            Origin::Agent
        } else {
            Origin::Linkspan
        };
        let notice = Notice {
            level,
            code: Cow::Borrowed(code),
            text: Text::new(text),
            item: None,
            detail: None,
        };
        self.emit(out, now, origin, Body::NoticeRaised(notice));
    }

    /// A line of the agent's stderr.
    pub(crate) fn on_stderr(&mut self, out: &mut dyn Sink, now: Now, events: &[StderrEvent]) {
        for it in events {
            match it {
                StderrEvent::Line(line) => self.notice(out, now, Level::Debug, "stderr", line),
                StderrEvent::Dropped(n) => {
                    let text = format!("{n} lines on stderr came too fast and were left out");
                    self.notice(out, now, Level::Debug, "stderr_left_out", &text);
                }
            }
        }
    }

    fn show_prompt(&mut self, out: &mut dyn Sink, now: Now) {
        let Some(prompt) = self.prompt.take() else {
            return;
        };
        self.n_prompts += 1;
        let message = |text| {
            Item::Message(Message {
                id: ItemId::new(format!("prompt-{}", self.n_prompts)),
                role: Role::User,
                group: None,
                text: Text::new(text),
                parts: Vec::new(),
            })
        };
        let (opened, item) = (message(String::new()), message(prompt.text));
        self.emit(out, now, Origin::Client, Body::ItemOpened(opened));
        let status = Status::Ok;
        let closed = Body::ItemClosed(ItemClosed { status, item });
        self.emit(out, now, Origin::Client, closed);
    }

    fn observe(&mut self, event: &Event<'_>, now: Now) {
        match &event.body {
            Body::SessionBound(it) if it.how == Binding::Mismatch => self.is_mismatch = true,
            Body::SessionBound(it) => self.native = Some(it.native.to_string()),
            Body::RunStarted(started) => {
                self.is_prompted = started.cause == Cause::Prompt;
                self.run = event.run.clone().map(RunId::into_owned);
                // The first run began with the process, so that its start-up counts.
                self.run_began.get_or_insert(now.instant);
            }
            Body::RunEnded(_) => {
                self.run = None;
                self.announced = None;
                self.n_ended += 1;
            }
            Body::AskOpened(ask) => self.on_ask(ask, now),
            Body::AskSettled(settled) => {
                self.asks.retain(|it| it.ask.id != settled.id);
                self.deadlines.settled(&settled.id);
            }
            Body::ItemOpened(Item::Tool(tool)) | Body::ItemUpdated(Item::Tool(tool)) => {
                self.on_call(tool);
            }
            Body::ItemClosed(closed) => {
                // The stream has repeated the prompt, so it is not emitted a second time.
                if self.run.is_some() && is_prompt(event, &closed.item) {
                    self.prompt = None;
                }
                let id = closed.item.id();
                self.calls.retain(|it| it.id != *id);
            }
            Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }

    fn on_ask(&mut self, ask: &Ask<'_>, now: Now) {
        self.deadlines.asked(ask, now);
        let call = ask.item.as_ref();
        let call = call.and_then(|item| self.calls.iter().find(|it| it.id == *item));
        self.asks.push(PendingAsk {
            ask: ask.clone().into_owned(),
            kind: call.map_or(ToolKind::Other, |it| it.kind),
            paths: call.map(|it| it.paths.clone()).unwrap_or_default(),
            cwd: self.cwd.clone(),
        });
    }

    fn on_call(&mut self, tool: &Tool<'_>) {
        let class = &tool.class;
        let named = class.paths.iter().map(|it| &it.path);
        // A call may name a file in its diff alone, and the policy has to see it.
        let changed = class.diffs.iter().map(|it| &it.path);
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in named.chain(changed) {
            let path = PathBuf::from(&*path.to_str());
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let kind = class.kind;
        match self.calls.iter_mut().find(|it| it.id == tool.id) {
            Some(call) => (call.kind, call.paths) = (kind, paths),
            None => self.calls.push(OpenCall {
                id: tool.id.clone().into_owned(),
                kind,
                paths,
            }),
        }
    }

    /// Completes the end of a run with what the reader could not know.
    fn on_run_ended(&mut self, ended: &mut RunEnded<'_>, why: Option<Why>, now: Now) {
        let took = self.run_began.take();
        let took = took.map(|it| millis(now.instant.saturating_duration_since(it)));
        ended.duration_ms = ended.duration_ms.or(took);
        // The agent reported no end: the reader made this one up from the exit alone.
        let is_made_up = matches!(why, Some(Why::ProcessExit | Why::MissingEnd))
            && matches!(ended.outcome, Outcome::Failed | Outcome::Lost);
        if let Some(reason) = self.reason.as_ref().filter(|_| is_made_up) {
            let before = ended.error.take();
            ended.error = Some(reason.error(before));
            if self.is_failure {
                ended.outcome = Outcome::Failed;
            }
        }
        if let (Some(error), Some(hint)) = (&mut ended.error, &self.login_hint)
            && is_login(error)
        {
            error.message = Text::new(format!("{}\nhint: {hint}", error.message));
        }
        let is_stopped = std::mem::take(&mut self.is_stopped_early);
        if is_stopped && matches!(ended.outcome, Outcome::Failed | Outcome::Lost) {
            (ended.outcome, ended.error) = (Outcome::Aborted, None);
        }
        self.last = Some(RunResult {
            outcome: ended.outcome,
            code: ended.error.as_ref().map(|it| it.code.to_string()),
            message: ended.error.as_ref().map(|it| it.message.to_string()),
        });
    }

    /// Gives an event its number and its time, and what the reader could not know.
    fn stamp(&mut self, event: &mut Event<'_>, now: Now) {
        self.seq += 1;
        event.seq = self.seq;
        event.at = event.at.or(Some(now.at));
        event.why = event.why.or_else(|| self.is_deadline(&event.body));
        if let Some(run) = self.announced_id(event.run.as_ref()) {
            event.run = Some(run);
        }
        match &mut event.body {
            Body::RunEnded(ended) => self.on_run_ended(ended, event.why, now),
            Body::AskOpened(ask) => ask.deadline = self.ask_deadline(ask, now),
            Body::AskSettled(settled) => self.explain_settlement(settled),
            Body::SessionBound(_)
            | Body::RunStarted(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }
}

/// The notice with the client's name for a run.
pub fn client_notice(run: &ClientRun) -> Notice<'static> {
    Notice {
        level: Level::Debug,
        code: Cow::Borrowed(ClientRun::CODE),
        text: Text::new(run.id.clone()),
        item: None,
        detail: Some(Raw::of(run)),
    }
}

/// True for the user's prompts; those of sub-agents have a path.
fn is_prompt(event: &Event<'_>, item: &Item<'_>) -> bool {
    let is_user = matches!(item, Item::Message(it) if it.role == Role::User);
    is_user && event.path.is_empty()
}

/// True when an agent ended because it has no login.
fn is_login(error: &RunError<'_>) -> bool {
    error.code == "auth" || error.message.to_str().contains("/login")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Hands events on, numbered and timed.
pub(crate) struct StampingSink<'a> {
    live: &'a mut LiveRun,
    out: &'a mut dyn Sink,
    now: Now,
}

impl Sink for StampingSink<'_> {
    fn frame(&mut self, frame: Frame<'_>) {
        self.out.frame(frame);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.owned_event(event.clone());
    }

    fn owned_event(&mut self, mut event: Event<'_>) {
        if self.is_known(&event) {
            return;
        }
        let Self { live, out, now } = self;
        // The agent failed before it repeated its prompt, which would be missing from the run.
        if matches!(event.body, Body::RunEnded(_)) && live.is_prompted {
            live.show_prompt(*out, *now);
        }
        // The sink gets the event before the state changes: a run that ends still has its id.
        live.stamp(&mut event, *now);
        out.event(&event);
        live.observe(&event, *now);
        let is_prompted = matches!(&event.body, Body::RunStarted(it) if it.cause == Cause::Prompt);
        if is_prompted && live.prompt.as_ref().is_some_and(|it| !it.is_echoed) {
            live.show_prompt(*out, *now);
        }
    }
}
