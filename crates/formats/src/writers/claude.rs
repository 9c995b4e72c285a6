//! Claude Code's stream-json: what `claude -p --output-format stream-json --verbose` prints, for
//! programs that read Claude Code.
//!
//! Each run is a turn: `init`, messages of one block each, `result`. What was a line of Claude Code
//! comes back as it was, as far as the events have it. The profile `partial` adds the `stream_event`s
//! of `--include-partial-messages`.
//! Left out and counted: the answers to asks, which are the host's, a tool's output before its end,
//! and what the program has no line for.

mod agent;
mod blocks;
mod lines;
mod outcome;
mod partial;
mod system;

use std::borrow::Cow;

use model::{
    Basis, Body, Decision, Event, ItemClosed, ItemId, Losses, Raw, Scope, SessionBound, Usage,
    Writer,
};

use serde::Serialize;

pub use self::agent::{ClaudeAgent, ClaudeClient, ClaudeRequest};

use self::agent::LiveState;
use self::lines::ClaudeLines;
use self::outcome::Totals;
use self::partial::Stream;
use self::system::{ClaudePlans, Pending};
use super::{WriterConfig, line, missing_end};
use crate::wire::claude::output::{
    CanUseTool, ControlCancel, ControlQuestion, Fields, InitBody, UsageObject,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Claude {
    lines: ClaudeLines,
    session: KnownSession,
    run: Option<OpenTurn>,
    calls: Vec<ClaudeCall>,
    /// Calls whose denial was a line of its own.
    denied: Vec<ItemId<'static>>,
    /// Sub-agents whose start was written.
    agents: Vec<ItemId<'static>>,
    plans: ClaudePlans,
    pending: Option<Pending>,
    /// What the model call used that the next message is of.
    call: Option<CallUsage>,
    stream: Option<Stream>,
    totals: Totals,
    /// A client at the other end, which answers asks itself.
    live: Option<LiveState>,
    losses: Losses,
}

/// What the agent has reported about its session.
#[derive(Clone, Debug, Default)]
struct KnownSession {
    native: String,
    model: String,
    cwd: String,
    mode: String,
    version: String,
    tools: Vec<String>,
    commands: Vec<String>,
    fields: Vec<(&'static str, Raw<'static>)>,
    /// The agent's own id of the line that told it, until that is written.
    line_id: Option<String>,
}

/// A run that has not ended.
#[derive(Clone, Debug, Default)]
struct OpenTurn {
    has_init: bool,
    /// Messages to the model: the prompt, and each result.
    n_messages: u64,
}

#[derive(Clone, Debug)]
struct ClaudeCall {
    id: ItemId<'static>,
    /// The reader makes a plan of its calls.
    is_of_plan: bool,
    /// Its `tool_use` was written, with its input.
    is_written: bool,
}

#[derive(Clone, Debug)]
struct CallUsage {
    frame: Option<u64>,
    /// The response that it belongs to, once one has begun in its frame.
    group: Option<String>,
    model: Option<String>,
    usage: UsageObject,
}

impl Claude {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let is_partial = config.profile.as_deref() == Some("partial");
        Self {
            stream: is_partial.then(Stream::default),
            ..Self::default()
        }
    }

    fn bound(&mut self, event: &Event<'_>, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let mode = bound.permission_mode.as_deref();
        let is_mode_only = mode.is_some()
            && bound.model.is_none()
            && bound.cwd.is_none()
            && bound.version.is_none()
            && bound.tools.is_empty();
        self.session.learn(event, bound);
        let has_init = self.run.as_ref().is_some_and(|it| it.has_init);
        match mode {
            Some(mode) if is_mode_only && has_init => {
                self.pending = Some(Pending::Mode(mode.to_owned(), event.frame));
            }
            _ if has_init => {
                if self.lines.session != self.session.native {
                    // The turn began without it, and keeps the name that it has.
                    self.losses.count("session that was named late");
                }
                self.init(out);
            }
            _ => (),
        }
    }

    /// Each turn begins with an `init`, once there is something to say.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let run = self.run.get_or_insert_default();
        if run.has_init {
            return;
        }
        run.has_init = true;
        if !self.session.native.is_empty() {
            // Not in the middle of a turn, which keeps the id that it began with.
            self.lines.session.clone_from(&self.session.native);
        }
        self.init(out);
    }

    /// The same before a line that can stand between turns, too: only where the session is known.
    fn begin_known(&mut self, out: &mut Vec<u8>) {
        if self.run.is_some() && !self.session.native.is_empty() {
            self.begin(out);
        }
    }

    fn system(&mut self, subtype: &'static str, body: impl Serialize, out: &mut Vec<u8>) {
        self.begin_known(out);
        self.lines.system(subtype, body, out);
    }

    fn init(&mut self, out: &mut Vec<u8>) {
        if self.session.fields.is_empty() {
            self.session.fields = lines::init_fields(&Cow::Borrowed(&[]));
        }
        let known = &self.session;
        let or = |text: &'_ str, other: &'static str| match text.is_empty() {
            true => Cow::Borrowed(other),
            false => Cow::Owned(text.to_owned()),
        };
        let body = InitBody {
            cwd: &known.cwd,
            tools: &known.tools,
            model: &known.model,
            permission_mode: &or(&known.mode, "default"),
            slash_commands: &known.commands,
            claude_code_version: &known.version,
        };
        let fields = known.fields.iter().map(|(key, it)| (*key, it.by_ref()));
        let fields = Fields(fields.collect());
        self.lines.init(body, known.line_id.clone(), fields, out);
        self.session.line_id = None;
    }

    fn used(&mut self, event: &Event<'_>, usage: &Usage<'_>, out: &mut Vec<u8>) {
        // The `result` has what the session used.
        if usage.scope == Scope::Session && usage.basis == Basis::Cumulative {
            return;
        }
        let object = outcome::usage_object(usage);
        if usage.scope != Scope::Call || !event.path.is_empty() {
            return self.losses.count("usage report");
        }
        if self.stream_used(&object, out) {
            return;
        }
        if self
            .call
            .replace(CallUsage {
                frame: event.frame,
                group: None,
                model: usage.model.as_deref().map(str::to_owned),
                usage: object,
            })
            .is_some_and(|it| it.group.is_none())
        {
            self.losses.count("usage report");
        }
    }

    /// The usage of a model call is written with its first message.
    fn attach_call(&mut self, group: &str) {
        let frame = self.lines.frame();
        if let Some(call) = &mut self.call
            && call.group.is_none()
            && frame.is_some()
            && call.frame == frame
        {
            call.group = Some(group.to_owned());
        }
    }

    fn asked(&mut self, ask: &model::Ask<'_>, out: &mut Vec<u8>) {
        let message = ControlQuestion {
            r#type: "control_request",
            request_id: ask.id.as_str(),
            request: CanUseTool {
                subtype: "can_use_tool",
                tool_name: &ask.tool,
                display_name: &ask.tool,
                input: blocks::input(ask.input.as_ref()),
                description: ask.description.as_ref(),
                permission_suggestions: ask.suggestions.as_ref(),
                tool_use_id: ask.item.as_ref().map(ItemId::as_str),
            },
        };
        match &mut self.live {
            Some(live) => live.asked(ask, &message),
            None => {
                self.begin(out);
                line(out, &message);
            }
        }
    }

    fn settled(&mut self, settled: &model::AskSettled<'_>, out: &mut Vec<u8>) {
        if self.live.is_some() {
            // The connection itself notifies the client of a withdrawn question.
            return;
        }
        match settled.decision {
            Decision::Withdrawn => {
                let r#type = "control_cancel_request";
                let request_id = settled.id.as_str();
                line(out, &ControlCancel { r#type, request_id });
            }
            Decision::Allowed | Decision::AllowedAlways | Decision::Denied => {
                self.losses.count("answer to an ask");
            }
            Decision::Lost => (),
        }
    }

    /// A run whose end never came still ends.
    fn abandon(&mut self, out: &mut Vec<u8>) {
        if self.run.is_some() {
            self.ended(&missing_end(), out);
        }
    }
}

impl KnownSession {
    fn learn(&mut self, event: &Event<'_>, bound: &SessionBound<'_>) {
        let is_other = !self.native.is_empty() && self.native != bound.native.as_str();
        match bound.how {
            // The run fails with it; what it said goes to the session that was asked for.
            model::Binding::Mismatch => return,
            model::Binding::Init
            | model::Binding::Resume
            | model::Binding::Fork
            | model::Binding::Repeat => (),
        }
        if is_other {
            *self = Self::default();
        }
        self.native = bound.native.as_str().to_owned();
        let line_id = event.native.as_deref().filter(|it| lines::is_uuid(it));
        self.line_id = line_id.map(str::to_owned).or(self.line_id.take());
        let learn = |known: &mut String, new: &Option<Cow<'_, str>>| {
            if let Some(new) = new {
                *known = new.to_string();
            }
        };
        learn(&mut self.model, &bound.model);
        learn(&mut self.cwd, &bound.cwd);
        learn(&mut self.mode, &bound.permission_mode);
        learn(&mut self.version, &bound.version);
        let own = |list: &[Cow<'_, str>]| list.iter().map(ToString::to_string).collect();
        if !bound.tools.is_empty() {
            self.tools = own(&bound.tools);
        }
        if !bound.commands.is_empty() {
            self.commands = own(&bound.commands);
        }
        if self.fields.is_empty() || !event.extra.is_empty() {
            self.fields = lines::init_fields(&event.extra);
        }
        let mut fields = self.fields.iter_mut();
        if let Some((_, servers)) = fields.find(|it| it.0 == "mcp_servers" && it.1.get() == "[]") {
            *servers = Raw::of(&bound.mcp_servers);
        }
    }
}

impl Writer for Claude {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.lines.session.is_empty() {
            self.lines.session = event.session.to_string();
        }
        self.release(event, out);
        self.lines.turn_to(event);
        match &event.body {
            Body::SessionBound(bound) => self.bound(event, bound, out),
            Body::RunStarted(_) => {
                self.abandon(out);
                self.run = Some(OpenTurn::default());
            }
            Body::RunEnded(ended) => self.ended(ended, out),
            Body::ItemOpened(item) => self.opened(event, item, out),
            Body::ItemUpdated(item) => self.updated(event, item, out),
            Body::ItemDelta(delta) => self.delta(event, delta, out),
            Body::ItemClosed(ItemClosed { item, status }) => self.closed(event, item, *status, out),
            Body::AskOpened(ask) => self.asked(ask, out),
            Body::AskSettled(settled) => self.settled(settled, out),
            Body::UsageReported(usage) => self.used(event, usage, out),
            Body::NoticeRaised(notice) => self.notice(event, notice, out),
            Body::FrameUnmapped(unmapped) => self.unmapped(event, unmapped, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.flush_pending(out);
        self.abandon(out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

#[cfg(test)]
mod tests;
