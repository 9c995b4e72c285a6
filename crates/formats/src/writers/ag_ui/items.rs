//! Messages, reasoning, tool calls and plans of a run.
//!
//! A text starts with its first piece, so that an empty one never shows. Calls of one model
//! response hang on its text, or on its first call, so that a client's history has one assistant
//! message where the model sent one.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::{
    Channel, Compaction, Delta, Item, ItemClosed, Losses, Message, Other, Part, Plan, PlanStatus,
    Raw, Reasoning, Role, Status, Text, Tool, ToolResult,
};

use super::{Lane, Run, Shape, status_name, wire};
use crate::writers::content::{self, Block, blocks};

#[derive(Clone, Debug)]
pub(super) struct Items {
    shape: Shape,
    texts: Vec<OpenText>,
    tools: Vec<OpenTool>,
    plans: Vec<OpenPlan>,
    /// The reasoning that speaks: 0.0.45 has no ids to keep two apart.
    thinking: Option<String>,
    parents: Vec<Parent>,
    /// The model has spoken to the user.
    has_said: bool,
}

#[derive(Clone, Debug)]
struct OpenText {
    id: String,
    kind: TextKind,
    group: Option<String>,
    has_deltas: bool,
    is_started: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Message(Role),
    Reasoning,
}

#[derive(Clone, Debug)]
struct OpenTool {
    id: String,
    has_args: bool,
    has_output: bool,
    /// All arguments were sent.
    is_complete: bool,
}

#[derive(Clone, Debug)]
struct OpenPlan {
    id: String,
    shown: u64,
}

/// The assistant message that the next call of a model response belongs to, one for each agent.
#[derive(Clone, Debug)]
struct Parent {
    subagent: Option<String>,
    group: String,
    message: String,
}

impl Run {
    pub(super) fn opened(&mut self, item: &Item<'_>, lane: &mut Lane<'_>, losses: &mut Losses) {
        match item {
            Item::Message(it) => {
                let group = it.group.as_deref();
                let kind = TextKind::Message(it.role);
                self.items.open_text(it.id.as_str(), kind, group);
            }
            Item::Reasoning(it) => {
                let group = it.group.as_deref();
                self.items
                    .open_text(it.id.as_str(), TextKind::Reasoning, group);
            }
            Item::Tool(it) => self.items.tool_opened(it, lane),
            Item::Plan(it) => self.items.plan(it, lane),
            Item::Subagent(it) => match self.items.shape {
                Shape::Current => self.subagents.opened(it, lane),
                Shape::Thinking => losses.count("sub-agent"),
            },
            Item::Compaction(it) => lane.emit(compaction(it, "in_progress")),
            Item::Other(_) => (), // Said whole when it closes.
        }
    }

    pub(super) fn closed(
        &mut self,
        closed: &ItemClosed<'_>,
        lane: &mut Lane<'_>,
        losses: &mut Losses,
    ) {
        let status = closed.status;
        match &closed.item {
            Item::Message(it) => self.items.message_closed(it, lane, losses),
            Item::Reasoning(it) => self.items.reasoning_closed(it, lane, losses),
            Item::Tool(it) => self.items.tool_closed(it, status, lane, losses),
            Item::Plan(it) => {
                self.items.plan(it, lane);
                self.items.plans.retain(|open| open.id != it.id.as_str());
            }
            Item::Subagent(it) => {
                self.subagents.closed(it, status, lane);
                let call = Some(it.call.as_str());
                self.items
                    .parents
                    .retain(|it| it.subagent.as_deref() != call);
            }
            Item::Compaction(it) => lane.emit(compaction(it, status_name(status))),
            Item::Other(it) => lane.emit(other(it, status)),
        }
    }
}

impl Items {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            texts: Vec::new(),
            tools: Vec::new(),
            plans: Vec::new(),
            thinking: None,
            parents: Vec::new(),
            has_said: false,
        }
    }

    pub(super) fn updated(&mut self, item: &Item<'_>, lane: &mut Lane<'_>, losses: &mut Losses) {
        match item {
            Item::Tool(it) => self.tool_updated(it, lane, losses),
            Item::Plan(it) => self.plan(it, lane),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    pub(super) fn delta(&mut self, delta: &Delta<'_>, lane: &mut Lane<'_>) {
        let id = delta.item.as_str();
        match delta.channel {
            Channel::Text => {
                if let Some(at) = self.find_text(id) {
                    self.texts[at].has_deltas = true;
                    self.say(at, &delta.text, lane);
                }
            }
            Channel::Input => {
                if let Some(tool) = self.find_tool(id)
                    && !tool.is_complete
                {
                    tool.has_args = true;
                    args(id, wire::Args::Piece(&delta.text), lane);
                }
            }
            // The result has it whole.
            Channel::Output => {
                if let Some(tool) = self.find_tool(id) {
                    tool.has_output = true;
                }
            }
        }
    }

    fn open_text(&mut self, id: &str, kind: TextKind, group: Option<&str>) {
        self.texts.push(OpenText {
            id: id.to_owned(),
            kind,
            group: group.map(str::to_owned),
            has_deltas: false,
            is_started: false,
        });
    }

    /// A piece of text, behind whatever must come before the first.
    fn say(&mut self, at: usize, text: &Text<'_>, lane: &mut Lane<'_>) {
        if text.is_empty() {
            return;
        }
        self.start(at, lane);
        let open = &self.texts[at];
        let message_id = &open.id;
        lane.emit(match (open.kind, self.shape) {
            (TextKind::Message(_), _) => wire::Body::TextMessageContent {
                message_id,
                delta: text,
            },
            (TextKind::Reasoning, Shape::Current) => wire::Body::ReasoningMessageContent {
                message_id,
                delta: text,
            },
            (TextKind::Reasoning, Shape::Thinking) => {
                wire::Body::ThinkingTextMessageContent { delta: text }
            }
        });
    }

    fn start(&mut self, at: usize, lane: &mut Lane<'_>) {
        let open = &mut self.texts[at];
        if open.kind == TextKind::Reasoning && self.shape == Shape::Thinking {
            return self.think(at, lane);
        }
        if std::mem::replace(&mut open.is_started, true) {
            return;
        }
        let message_id = &open.id;
        match open.kind {
            TextKind::Message(role) => {
                lane.emit(wire::Body::TextMessageStart {
                    message_id,
                    role: role_name(role),
                });
                if role == Role::Assistant {
                    self.has_said |= lane.subagent.is_none();
                    let (id, group) = (open.id.clone(), open.group.clone());
                    self.set_parent(id, group, lane);
                }
            }
            TextKind::Reasoning => {
                lane.emit(wire::Body::ReasoningStart { message_id });
                lane.emit(wire::Body::ReasoningMessageStart {
                    message_id,
                    role: "reasoning",
                });
            }
        }
    }

    /// Gives the word to one reasoning, and takes it from another.
    fn think(&mut self, at: usize, lane: &mut Lane<'_>) {
        let open = &mut self.texts[at];
        open.is_started = true;
        if self.thinking.as_deref() == Some(&open.id) {
            return;
        }
        let id = open.id.clone();
        self.stop_thinking(lane);
        self.thinking = Some(id);
        lane.emit(wire::Body::ThinkingStart);
        lane.emit(wire::Body::ThinkingTextMessageStart);
    }

    fn stop_thinking(&mut self, lane: &mut Lane<'_>) {
        if self.thinking.take().is_some() {
            lane.emit(wire::Body::ThinkingTextMessageEnd);
            lane.emit(wire::Body::ThinkingEnd);
        }
    }

    fn message_closed(&mut self, it: &Message<'_>, lane: &mut Lane<'_>, losses: &mut Losses) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.say(at, &it.text, lane);
        }
        for part in &it.parts {
            losses.count(match part {
                Part::Image { .. } | Part::ImageUrl { .. } => "image in a message",
                Part::Other(_) => "content block",
            });
        }
        self.end_text(at, lane);
    }

    fn reasoning_closed(&mut self, it: &Reasoning<'_>, lane: &mut Lane<'_>, losses: &mut Losses) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.say(at, &it.text, lane);
        }
        let hidden = it.encrypted.as_ref().or(it.signature.as_ref());
        let Some(hidden) = hidden.filter(|it| !it.is_empty()) else {
            return self.end_text(at, lane);
        };
        match self.shape {
            Shape::Current => {
                // It belongs to a message, even to one without words.
                self.start(at, lane);
                lane.emit(wire::Body::ReasoningEncryptedValue {
                    subtype: "message",
                    entity_id: it.id.as_str(),
                    encrypted_value: hidden,
                });
            }
            Shape::Thinking => losses.count("hidden reasoning"),
        }
        self.end_text(at, lane);
    }

    fn end_text(&mut self, at: usize, lane: &mut Lane<'_>) {
        let open = self.texts.remove(at);
        if !open.is_started {
            return;
        }
        let message_id = &open.id;
        match (open.kind, self.shape) {
            (TextKind::Message(_), _) => lane.emit(wire::Body::TextMessageEnd { message_id }),
            (TextKind::Reasoning, Shape::Current) => {
                lane.emit(wire::Body::ReasoningMessageEnd { message_id });
                lane.emit(wire::Body::ReasoningEnd { message_id });
            }
            (TextKind::Reasoning, Shape::Thinking) => {
                if self.thinking.as_deref() == Some(&open.id) {
                    self.stop_thinking(lane);
                }
            }
        }
    }

    /// An answer that no message had: a local command's, for example.
    pub(super) fn unsaid_answer(&mut self, run: &str, answer: &Text<'_>, lane: &mut Lane<'_>) {
        if self.has_said {
            return;
        }
        let id = format!("{run}:answer");
        self.open_text(&id, TextKind::Message(Role::Assistant), None);
        let at = self.texts.len() - 1;
        self.say(at, answer, lane);
        self.end_text(at, lane);
    }

    fn tool_opened(&mut self, tool: &Tool<'_>, lane: &mut Lane<'_>) {
        let id = tool.id.as_str();
        let parent = self.find_parent(tool, lane);
        lane.emit(wire::Body::ToolCallStart {
            tool_call_id: id,
            tool_call_name: &tool.name,
            parent_message_id: parent,
        });
        if parent.is_none() {
            // A client makes a message of the call's own name for it.
            let group = tool.group.as_deref().map(str::to_owned);
            self.set_parent(id.to_owned(), group, lane);
        }
        let mut open = OpenTool {
            id: id.to_owned(),
            has_args: false,
            has_output: false,
            is_complete: false,
        };
        if let Some(input) = &tool.input {
            open.complete(Some(input), lane);
        }
        self.tools.push(open);
    }

    fn tool_updated(&mut self, tool: &Tool<'_>, lane: &mut Lane<'_>, losses: &mut Losses) {
        let Some(open) = self.find_tool(tool.id.as_str()) else {
            return;
        };
        match &tool.input {
            Some(_) if open.is_complete => losses.count("changed tool input"),
            Some(input) => open.complete(Some(input), lane),
            None => (),
        }
    }

    fn tool_closed(
        &mut self,
        tool: &Tool<'_>,
        status: Status,
        lane: &mut Lane<'_>,
        losses: &mut Losses,
    ) {
        let id = tool.id.as_str();
        let Some(at) = self.tools.iter().position(|it| it.id == id) else {
            return;
        };
        let mut open = self.tools.remove(at);
        open.complete(tool.input.as_ref(), lane);
        let Some(result) = &tool.result else {
            if open.has_output {
                losses.count("output without a result");
            }
            return losses.count("call without a result");
        };
        if result.structured.is_some() {
            losses.count("structured tool result");
        }
        let linkspan = wire::ToolStatus {
            status: status_name(status),
        };
        lane.emit(wire::Body::ToolCallResult {
            message_id: &format!("{id}:result"),
            tool_call_id: id,
            content: self.content(result, losses),
            metadata: (status != Status::Ok).then_some(wire::Metadata { linkspan }),
        });
    }

    fn content<'a>(&self, result: &'a ToolResult<'_>, losses: &mut Losses) -> wire::Content<'a> {
        let blocks = blocks(&result.content);
        if blocks.iter().all(|it| matches!(it, Block::Text(_))) {
            return wire::Content::Text(content::text(&result.content));
        }
        match self.shape {
            Shape::Current => wire::Content::Parts(blocks.into_iter().map(part).collect()),
            Shape::Thinking => wire::Content::Text(flat(blocks, losses)),
        }
    }

    fn plan(&mut self, plan: &Plan<'_>, lane: &mut Lane<'_>) {
        let shown = hash(plan);
        let id = plan.id.as_str();
        match self.plans.iter_mut().find(|it| it.id == id) {
            Some(open) if open.shown == shown => return,
            Some(open) => open.shown = shown,
            None if plan.entries.is_empty() => return,
            None => self.plans.push(OpenPlan {
                id: id.to_owned(),
                shown,
            }),
        }
        let entries = plan
            .entries
            .iter()
            .map(|entry| wire::PlanEntry {
                content: &entry.text,
                status: plan_status(entry.status),
                doing: entry.doing.as_ref(),
            })
            .collect();
        lane.emit(wire::Body::ActivitySnapshot {
            message_id: id,
            activity_type: "PLAN",
            content: wire::Plan { entries },
        });
    }

    /// Ends what nobody ended, so that the run can end.
    pub(super) fn close_left_open(&mut self, lane: &mut Lane<'_>) {
        while let Some(at) = self.texts.len().checked_sub(1) {
            self.end_text(at, lane);
        }
        for mut tool in std::mem::take(&mut self.tools) {
            tool.complete(None, lane);
        }
    }

    fn set_parent(&mut self, message: String, group: Option<String>, lane: &Lane<'_>) {
        let Some(group) = group else { return };
        self.parents
            .retain(|it| it.subagent.as_deref() != lane.subagent);
        self.parents.push(Parent {
            subagent: lane.subagent.map(str::to_owned),
            group,
            message,
        });
    }

    fn find_parent(&self, tool: &Tool<'_>, lane: &Lane<'_>) -> Option<&str> {
        let group = tool.group.as_deref()?;
        let parent = self
            .parents
            .iter()
            .find(|it| it.subagent.as_deref() == lane.subagent && it.group == group)?;
        Some(&parent.message)
    }

    fn find_text(&self, id: &str) -> Option<usize> {
        self.texts.iter().rposition(|it| it.id == id)
    }

    fn find_tool(&mut self, id: &str) -> Option<&mut OpenTool> {
        self.tools.iter_mut().find(|it| it.id == id)
    }
}

impl OpenTool {
    /// Sends the arguments, unless their pieces were sent, and says that there are no more.
    fn complete(&mut self, input: Option<&Raw<'_>>, lane: &mut Lane<'_>) {
        if std::mem::replace(&mut self.is_complete, true) {
            return;
        }
        if let Some(input) = input
            && !self.has_args
        {
            args(&self.id, wire::Args::Whole(input), lane);
        }
        lane.emit(wire::Body::ToolCallEnd {
            tool_call_id: &self.id,
        });
    }
}

fn args(tool_call_id: &str, delta: wire::Args<'_>, lane: &mut Lane<'_>) {
    lane.emit(wire::Body::ToolCallArgs {
        tool_call_id,
        delta,
    });
}

fn part(block: Block<'_>) -> wire::ContentPart<'_> {
    match block {
        Block::Text(text) => wire::ContentPart::Text { text },
        Block::Image { media_type, data } => wire::ContentPart::Image {
            source: wire::Source::Data {
                value: data,
                mime_type: media_type,
            },
        },
        Block::ImageUrl(url) => wire::ContentPart::Image {
            source: wire::Source::Url { value: url },
        },
        Block::Other(raw) => wire::ContentPart::Text {
            text: Text::new(raw.get().to_owned()),
        },
    }
}

/// A result for clients that only know text.
fn flat(blocks: Vec<Block<'_>>, losses: &mut Losses) -> Text<'static> {
    let mut texts = Vec::new();
    for block in blocks {
        match block {
            Block::Text(text) => texts.push(text.to_str().into_owned()),
            Block::Other(raw) => texts.push(raw.get().to_owned()),
            Block::Image { .. } | Block::ImageUrl(_) => losses.count("image in a tool result"),
        }
    }
    Text::new(texts.join("\n"))
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Harness => "developer",
    }
}

fn plan_status(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    }
}

fn hash(plan: &Plan<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in &plan.entries {
        (entry.text.to_str(), plan_status(entry.status)).hash(&mut hasher);
    }
    hasher.finish()
}

fn compaction<'a>(item: &'a Compaction<'_>, status: &'static str) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Compaction(wire::Compaction {
        id: item.id.as_str(),
        status,
        trigger: item.trigger.as_deref(),
        summary: item.summary.as_ref(),
        tokens_before: item.tokens_before,
        tokens_after: item.tokens_after,
    }))
}

fn other<'a>(item: &'a Other<'_>, status: Status) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Item(wire::Item {
        id: item.id.as_str(),
        name: &item.name,
        status: status_name(status),
        text: item.text.as_ref(),
        data: &item.data,
    }))
}
