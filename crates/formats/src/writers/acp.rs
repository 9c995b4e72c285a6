//! Agent Client Protocol v1: what an agent says to an editor, one JSON-RPC message per line.
//!
//! Each run becomes `session/update` notifications and one response to the prompt, whose id is the
//! run's number. Permission requests stand beside their answers, so that a file is the whole
//! conversation except the prompts. Facts: the v1 schema and the Claude adapters of Zed; profile
//! `seed` keeps the choices of the OpenHands CLI. Calls and asks are in `acp/tools.rs`.

mod tools;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use model::{
    Binding, Body, Channel, Delta, Event, Item, ItemClosed, Level, Losses, Message, Notice,
    Outcome, Part, Plan, PlanStatus, Role, RunEnded, RunError, Scope, SessionBound, Status, Text,
    Usage, Writer,
};

use super::{WriterConfig, line};
use crate::wire::acp as wire;
use tools::{Asked, OpenAsk, OpenTool};

#[derive(Clone, Debug)]
pub(crate) struct Acp {
    shape: Shape,
    session: Session,
    n_runs: u64,
    run: Option<Run>,
    texts: Vec<OpenText>,
    tools: Vec<OpenTool>,
    asks: Vec<OpenAsk>,
    asked: Asked,
    /// What the client was last told the plan is.
    plan: Option<u64>,
    context: Context,
    losses: Losses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Default,
    Seed,
}

/// What is known of the session, and what the client was told of it.
#[derive(Clone, Debug, Default)]
struct Session {
    /// The agent's own id, or linkspan's until that is known.
    id: String,
    is_native: bool,
    cwd: Option<String>,
    mode: Option<String>,
    commands: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Run {
    /// The model has spoken to the user.
    has_said: bool,
    /// A use of tokens was reported that the client has not heard of.
    has_unsaid_usage: bool,
}

#[derive(Clone, Debug)]
struct OpenText {
    id: String,
    voice: Voice,
    has_deltas: bool,
}

/// Who a chunk comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    User,
    Agent,
    Thought,
    /// ACP has no chunk for it.
    Unheard,
}

/// How full the model's context is.
#[derive(Clone, Debug, Default)]
struct Context {
    model: Option<String>,
    used: Option<u64>,
    size: Option<u64>,
    cost_usd: Option<f64>,
    /// The client knows all of this.
    is_told: bool,
}

impl Acp {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let shape = match config.profile.as_deref() {
            Some("seed") => Shape::Seed,
            Some(_) | None => Shape::Default,
        };
        Self {
            shape,
            session: Session::default(),
            n_runs: 0,
            run: None,
            texts: Vec::new(),
            tools: Vec::new(),
            asks: Vec::new(),
            asked: Asked::default(),
            plan: None,
            context: Context::default(),
            losses: Losses::default(),
        }
    }

    fn send(&self, out: &mut Vec<u8>, update: wire::SessionUpdate<'_>) {
        let session_id = &self.session.id;
        line(
            out,
            &wire::Notification {
                jsonrpc: wire::JSONRPC,
                method: wire::SESSION_UPDATE,
                params: wire::SessionNotification { session_id, update },
            },
        );
    }

    fn bound(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let session = &mut self.session;
        // A session that was not asked for does not take the place of the one that was.
        if !session.is_native || bound.how != Binding::Mismatch {
            bound.native.as_str().clone_into(&mut session.id);
            session.is_native = true;
        }
        if let Some(cwd) = &bound.cwd {
            session.cwd = Some(cwd.clone().into_owned());
        }
        if bound.model.is_some() || !bound.tools.is_empty() || !bound.mcp_servers.is_empty() {
            self.losses.count("session detail");
        }
        self.commands(bound, out);
        self.mode(bound, out);
    }

    fn commands(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let hash = hash(&bound.commands);
        if bound.commands.is_empty() || self.session.commands == Some(hash) {
            return;
        }
        self.session.commands = Some(hash);
        let command = |name| wire::AvailableCommand {
            name,
            description: format!("/{name}"),
        };
        let available_commands = bound.commands.iter().map(|it| command(&**it)).collect();
        self.send(
            out,
            wire::SessionUpdate::AvailableCommandsUpdate { available_commands },
        );
    }

    fn mode(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let Some(mode) = &bound.permission_mode else {
            return;
        };
        if self.session.mode.as_deref() == Some(mode) {
            return;
        }
        self.session.mode = Some(mode.clone().into_owned());
        self.send(
            out,
            wire::SessionUpdate::CurrentModeUpdate {
                current_mode_id: mode,
            },
        );
    }

    fn opened(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Message(message) => {
                let voice = self.voice(event, message);
                self.open_text(message.id.as_str(), voice);
            }
            Item::Reasoning(reasoning) => {
                let voice = match self.shape {
                    Shape::Default => Voice::Thought,
                    Shape::Seed => Voice::Agent,
                };
                self.open_text(reasoning.id.as_str(), voice);
            }
            Item::Tool(tool) => self.tool_opened(event, tool, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Subagent(_) => (), // The call that started it shows it.
            Item::Compaction(it) => {
                let update = wire::CompactionUpdate {
                    compaction_id: it.id.as_str(),
                    status: "in_progress",
                    summary: Vec::new(),
                };
                self.send(out, wire::SessionUpdate::CompactionUpdate(update));
            }
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn updated(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.tool_updated(event, tool, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn closed(&mut self, event: &Event<'_>, closed: &ItemClosed<'_>, out: &mut Vec<u8>) {
        match &closed.item {
            Item::Message(it) => self.message_closed(event, it, out),
            Item::Reasoning(it) => {
                self.text_closed(event, it.id.as_str(), &it.text, out);
                if it.encrypted.is_some() {
                    self.losses.count("hidden reasoning");
                }
            }
            Item::Tool(it) => self.tool_closed(event, it, closed.status, out),
            Item::Plan(it) => self.plan(event, it, out),
            Item::Subagent(it) => {
                // What a sub-agent in the foreground reports is also the result of its call.
                if it.background && it.report.is_some() {
                    self.losses.count("background sub-agent report");
                }
            }
            Item::Compaction(it) => {
                let text = |text| wire::ContentBlock::Text { text };
                let update = wire::CompactionUpdate {
                    compaction_id: it.id.as_str(),
                    status: compaction_status(closed.status),
                    summary: it.summary.iter().map(Text::by_ref).map(text).collect(),
                };
                self.send(out, wire::SessionUpdate::CompactionUpdate(update));
            }
            Item::Other(_) => (),
        }
    }

    fn voice(&mut self, event: &Event<'_>, message: &Message<'_>) -> Voice {
        match (message.role, self.shape) {
            (Role::Assistant, _) => Voice::Agent,
            // The user did not say this; it is in the input of the call already.
            (Role::User, _) if !event.path.is_empty() => self.unheard("sub-agent prompt"),
            (Role::User, Shape::Default) => Voice::User,
            (Role::User, Shape::Seed) => self.unheard("user message"),
            (Role::Harness, _) => self.unheard("harness message"),
        }
    }

    fn unheard(&mut self, what: &'static str) -> Voice {
        self.losses.count(what);
        Voice::Unheard
    }

    fn open_text(&mut self, id: &str, voice: Voice) {
        self.texts.push(OpenText {
            id: id.to_owned(),
            voice,
            has_deltas: false,
        });
    }

    fn delta(&mut self, event: &Event<'_>, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let id = delta.item.as_str();
        match delta.channel {
            Channel::Text => {
                let Some(open) = self.texts.iter_mut().rfind(|it| it.id == id) else {
                    return;
                };
                open.has_deltas = true;
                let voice = open.voice;
                self.text_chunk(event, voice, id, &delta.text, out);
            }
            Channel::Input => (), // The whole input follows in an update.
            Channel::Output => self.tool_printed(id),
        }
    }

    fn message_closed(&mut self, event: &Event<'_>, message: &Message<'_>, out: &mut Vec<u8>) {
        let id = message.id.as_str();
        let voice = self.text_closed(event, id, &message.text, out);
        for part in &message.parts {
            let content = match part {
                Part::Image { media_type, data } => wire::ContentBlock::Image {
                    data: data.by_ref(),
                    mime_type: Cow::Borrowed(media_type),
                },
                Part::ImageUrl { url } => wire::ContentBlock::ResourceLink {
                    name: url.by_ref(),
                    uri: url.by_ref(),
                },
                Part::Other(_) => {
                    self.losses.count("content block");
                    continue;
                }
            };
            self.chunk(event, voice, id, content, out);
        }
    }

    /// Says what no delta has said.
    fn text_closed(
        &mut self,
        event: &Event<'_>,
        id: &str,
        text: &Text<'_>,
        out: &mut Vec<u8>,
    ) -> Voice {
        let Some(at) = self.texts.iter().rposition(|it| it.id == id) else {
            return Voice::Unheard;
        };
        let open = self.texts.remove(at);
        if !open.has_deltas {
            self.text_chunk(event, open.voice, id, text, out);
        }
        open.voice
    }

    fn text_chunk(
        &mut self,
        event: &Event<'_>,
        voice: Voice,
        id: &str,
        text: &Text<'_>,
        out: &mut Vec<u8>,
    ) {
        if text.is_empty() {
            return;
        }
        let text = text.by_ref();
        self.chunk(event, voice, id, wire::ContentBlock::Text { text }, out);
    }

    fn chunk(
        &mut self,
        event: &Event<'_>,
        voice: Voice,
        id: &str,
        content: wire::ContentBlock<'_>,
        out: &mut Vec<u8>,
    ) {
        let chunk = wire::ContentChunk {
            message_id: Some(id),
            content,
            meta: meta(event),
        };
        let update = match voice {
            Voice::User => wire::SessionUpdate::UserMessageChunk(chunk),
            Voice::Thought => wire::SessionUpdate::AgentThoughtChunk(chunk),
            Voice::Agent => {
                if let Some(run) = &mut self.run {
                    run.has_said |= event.path.is_empty();
                }
                wire::SessionUpdate::AgentMessageChunk(chunk)
            }
            Voice::Unheard => return,
        };
        self.send(out, update);
    }

    fn plan(&mut self, event: &Event<'_>, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if !event.path.is_empty() {
            // ACP has one plan per session; a sub-agent's would replace the user's.
            return self.losses.count("sub-agent plan");
        }
        let entries: Vec<_> = plan
            .entries
            .iter()
            .map(|entry| {
                let doing = entry.doing.as_ref().filter(|it| !it.is_empty());
                let (status, content) = match entry.status {
                    PlanStatus::Pending => ("pending", &entry.text),
                    PlanStatus::InProgress => ("in_progress", doing.unwrap_or(&entry.text)),
                    PlanStatus::Completed => ("completed", &entry.text),
                };
                wire::PlanEntry {
                    content: content.by_ref(),
                    priority: "medium",
                    status,
                }
            })
            .collect();
        let mut hasher = DefaultHasher::new();
        for entry in &entries {
            (entry.content.to_str(), entry.status).hash(&mut hasher);
        }
        let hash = hasher.finish();
        // A plan is closed as it stands, and a client that never saw one needs no empty one.
        if self.plan == Some(hash) || (self.plan.is_none() && entries.is_empty()) {
            return;
        }
        self.plan = Some(hash);
        self.send(out, wire::SessionUpdate::Plan { entries });
    }

    fn usage(&mut self, event: &Event<'_>, usage: &Usage<'_>, out: &mut Vec<u8>) {
        match usage.scope {
            Scope::Call if event.path.is_empty() => {
                self.context.call(usage);
                if !self.say_usage(out)
                    && let Some(run) = &mut self.run
                {
                    run.has_unsaid_usage = true;
                }
            }
            Scope::Session => self.context.spent(usage.cost_usd),
            // A sub-agent has a context of its own; the end of the run has the sums.
            Scope::Call | Scope::Run => (),
        }
    }

    /// Tells how full the context is, if that is known.
    fn say_usage(&mut self, out: &mut Vec<u8>) -> bool {
        let (Some(used), Some(size)) = (self.context.used, self.context.size) else {
            return false;
        };
        if std::mem::replace(&mut self.context.is_told, true) {
            return true;
        }
        let cost = self.context.cost_usd.map(|amount| wire::Cost {
            amount,
            currency: "USD",
        });
        let update = wire::UsageUpdate { used, size, cost };
        self.send(out, wire::SessionUpdate::UsageUpdate(update));
        true
    }

    fn notice(&mut self, event: &Event<'_>, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let severity = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info => return self.losses.count("info notice"),
            Level::Warning => "warning",
            Level::Error => "error",
        };
        // A title must not be empty.
        let title = if notice.text.is_empty() {
            Text::new(format!("{severity} {}", notice.code))
        } else {
            notice.text.by_ref()
        };
        let meta = meta(event);
        let notice = wire::Notice {
            severity,
            title,
            meta,
        };
        self.send(out, wire::SessionUpdate::Notice(notice));
    }

    fn finish(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let Some(run) = self.run.take() else { return };
        self.close_left_open(out);
        self.texts.clear();
        self.context.end(ended);
        if !self.say_usage(out) && (run.has_unsaid_usage || ended.usage.is_some()) {
            self.losses.count("usage report");
        }
        let stop_reason = match ended.outcome {
            Outcome::Completed | Outcome::Limit
                if ended.stop_reason.as_deref() == Some("max_tokens") =>
            {
                "max_tokens"
            }
            Outcome::Completed => "end_turn",
            Outcome::Limit => "max_turn_requests",
            Outcome::Refused => "refusal",
            Outcome::Aborted => "cancelled",
            Outcome::Failed | Outcome::Lost => return self.failure(ended, out),
        };
        if !run.has_said {
            self.unsaid_answer(ended, out);
        }
        // That it was stopped is all there is to say about a run that was stopped.
        let error = ended
            .error
            .as_ref()
            .filter(|_| ended.outcome != Outcome::Aborted);
        let meta = error.map(|error| wire::StopMeta {
            code: &error.code,
            message: error.message.by_ref(),
        });
        line(
            out,
            &wire::Response {
                jsonrpc: wire::JSONRPC,
                id: self.n_runs,
                result: wire::PromptResponse { stop_reason, meta },
            },
        );
    }

    /// An answer that no message had: a local command's, for example.
    fn unsaid_answer(&self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let Some(answer) = ended.answer.as_ref().filter(|it| !it.is_empty()) else {
            return;
        };
        let text = answer.by_ref();
        let chunk = wire::ContentChunk {
            message_id: None,
            content: wire::ContentBlock::Text { text },
            meta: None,
        };
        self.send(out, wire::SessionUpdate::AgentMessageChunk(chunk));
    }

    fn failure(&self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let unknown = RunError {
            code: Cow::Borrowed("unknown"),
            message: Text::new("the run failed"),
        };
        let error = ended.error.as_ref().unwrap_or(&unknown);
        let code = if error.code.starts_with("authentication") {
            wire::AUTH_REQUIRED
        } else {
            wire::INTERNAL_ERROR
        };
        line(
            out,
            &wire::Failure {
                jsonrpc: wire::JSONRPC,
                id: self.n_runs,
                error: wire::Error {
                    code,
                    message: error.message.by_ref(),
                    data: wire::ErrorData { code: &error.code },
                },
            },
        );
    }
}

impl Writer for Acp {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if !self.session.is_native && self.session.id != event.session.as_str() {
            event.session.as_str().clone_into(&mut self.session.id);
        }
        match &event.body {
            Body::SessionBound(it) => self.bound(it, out),
            Body::RunStarted(_) => {
                self.n_runs += 1;
                self.run = Some(Run::default());
            }
            Body::RunEnded(it) => self.finish(it, out),
            Body::ItemOpened(it) => self.opened(event, it, out),
            Body::ItemUpdated(it) => self.updated(event, it, out),
            Body::ItemDelta(it) => self.delta(event, it, out),
            Body::ItemClosed(it) => self.closed(event, it, out),
            Body::AskOpened(it) => self.ask(event, it, out),
            Body::AskSettled(it) => self.settle(event, it, out),
            Body::UsageReported(it) => self.usage(event, it, out),
            Body::NoticeRaised(it) => self.notice(event, it, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let error = RunError {
            code: Cow::Borrowed("missing_end"),
            message: Text::new("the events stop before the run ended"),
        };
        self.finish(&RunEnded::new(Outcome::Lost, Some(error)), out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn clone_box(&self) -> Box<dyn Writer> {
        Box::new(self.clone())
    }
}

impl Context {
    fn call(&mut self, usage: &Usage<'_>) {
        let tokens = &usage.tokens;
        let output = tokens.output.unwrap_or_default();
        let used = Some(tokens.all_input().saturating_add(output));
        self.is_told &= used == self.used;
        self.used = used;
        if self.model.as_deref() != usage.model.as_deref() {
            // Another model has another window, which only the end of the run tells.
            self.model = usage.model.as_deref().map(str::to_owned);
            self.size = None;
            self.is_told = false;
        }
    }

    fn end(&mut self, ended: &RunEnded<'_>) {
        self.spent(ended.session_cost_usd);
        let model = ended
            .models
            .iter()
            .find(|it| Some(&*it.model) == self.model.as_deref())
            .or(ended.models.first());
        let size = model.and_then(|it| it.context_window).or(self.size);
        self.is_told &= size == self.size;
        self.size = size;
    }

    /// What the session has cost so far.
    fn spent(&mut self, cost_usd: Option<f64>) {
        let cost_usd = cost_usd.or(self.cost_usd);
        self.is_told &= cost_usd == self.cost_usd;
        self.cost_usd = cost_usd;
    }
}

fn compaction_status(status: Status) -> &'static str {
    match status {
        Status::Ok => "completed",
        Status::Error | Status::Lost => "failed",
        Status::Denied | Status::Cancelled => "cancelled",
    }
}

/// What a client needs to put an update inside the sub-agent it came from.
fn meta<'a>(event: &'a Event<'_>) -> Option<wire::Meta<'a>> {
    let parent = event.path.last()?;
    Some(wire::Meta {
        parent_tool_use_id: Some(parent.as_str()),
        status: None,
    })
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
