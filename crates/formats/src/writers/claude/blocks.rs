//! Messages, thoughts and calls: lines of one content block each.

use model::{
    Delta, Event, Item, ItemId, Message, Part, Raw, Reasoning, Role, Status, Text, Tool,
    ToolResult, Why,
};
use serde::Serialize;

use super::{Claude, ClaudeCall};
use crate::wire::claude::output::{
    AssistantMessage, Fields, ImageData, NotRun, OutputBlock, RejectedBy, ServerToolResult,
    ToolUse, TurnBody, TurnFlags, UsageObject, UserMessage,
};
use crate::writers::take;

/// The tools of Claude Code whose calls make a plan.
const PLAN_TOOLS: &[&str] = &["TodoWrite", "TaskCreate", "TaskUpdate"];

impl Claude {
    pub(super) fn opened(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => {
                self.stream_open(event, item);
                self.call_known(event, tool, out);
            }
            Item::Message(_) | Item::Reasoning(_) => self.stream_open(event, item),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Subagent(agent) => self.agent_opened(event, agent),
            Item::Compaction(it) => self.compaction_opened(it, out),
            Item::Other(_) => (),
        }
    }

    pub(super) fn updated(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.call_known(event, tool, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Compaction(it) => self.compacted(it, out),
            Item::Message(_) | Item::Reasoning(_) | Item::Subagent(_) | Item::Other(_) => (),
        }
    }

    pub(super) fn delta(&mut self, event: &Event<'_>, delta: &Delta<'_>, out: &mut Vec<u8>) {
        match delta.channel {
            model::Channel::Text | model::Channel::Input => self.stream_delta(event, delta, out),
            model::Channel::Output => self.losses.count("output before its end"),
        }
    }

    pub(super) fn closed(
        &mut self,
        event: &Event<'_>,
        item: &Item<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        match item {
            Item::Message(message) => self.message(event, message, status, out),
            Item::Reasoning(reasoning) => self.reasoning(event, reasoning, status, out),
            Item::Tool(tool) => self.call_closed(event, tool, status, out),
            Item::Plan(plan) => self.plan(event, plan, out),
            Item::Subagent(agent) => self.agent_closed(agent, status, out),
            Item::Compaction(it) => self.compaction_closed(event, it, status, out),
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn message(
        &mut self,
        event: &Event<'_>,
        message: &Message<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let is_users = match message.role {
            Role::Assistant => false,
            Role::User | Role::Harness => true,
        };
        if is_users {
            return self.words_to_model(event, message, out);
        }
        for part in &message.parts {
            self.losses.count(match part {
                Part::Image { .. } | Part::ImageUrl { .. } => "image",
                Part::Other(_) => "message part",
            });
        }
        let text = message.text.by_ref();
        let block = OutputBlock::Text { text };
        let id = &message.id;
        self.block(event, id, message.group.as_deref(), block, status, out);
    }

    /// What the user says is repeated as `--replay-user-messages` does, what the program says has a
    /// mark of its own.
    fn words_to_model(&mut self, event: &Event<'_>, message: &Message<'_>, out: &mut Vec<u8>) {
        let is_synthetic = message.role == Role::Harness;
        // The prompt of a sub-agent is no repetition.
        let is_replay = !is_synthetic && event.path.is_empty();
        if is_replay
            && self
                .live
                .as_ref()
                .is_some_and(|it| !it.client.replays_prompts)
        {
            return;
        }
        let flags = TurnFlags {
            is_synthetic,
            is_replay,
            ..TurnFlags::default()
        };
        if is_replay && message.parts.is_empty() {
            return self.user(event, &message.text, flags, None, out);
        }
        let text = Some(&message.text).filter(|it| !it.is_empty() || message.parts.is_empty());
        let text = text.map(|it| Raw::of(&OutputBlock::Text { text: it.by_ref() }));
        let (parts, others): (Vec<_>, Vec<_>) =
            message.parts.iter().partition(|it| is_known_part(it));
        for _ in others {
            self.losses.count("message part");
        }
        let parts = parts.into_iter().map(part);
        let blocks: Vec<Raw<'_>> = text.into_iter().chain(parts).collect();
        self.user(event, &blocks, flags, None, out);
    }

    fn reasoning(
        &mut self,
        event: &Event<'_>,
        reasoning: &Reasoning<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let block = match &reasoning.encrypted {
            Some(data) if reasoning.text.is_empty() => OutputBlock::RedactedThinking {
                data: data.by_ref(),
            },
            encrypted => {
                if encrypted.is_some() {
                    self.losses.count("hidden reasoning");
                }
                let signature = reasoning.signature.as_ref();
                OutputBlock::Thinking {
                    thinking: reasoning.text.by_ref(),
                    signature: signature.map_or(Text::EMPTY, Text::by_ref),
                }
            }
        };
        let id = &reasoning.id;
        self.block(event, id, reasoning.group.as_deref(), block, status, out);
    }

    /// A call is written when its input is known.
    fn call_known(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        let at = self.calls.iter().position(|it| it.id == tool.id);
        let at = at.unwrap_or_else(|| {
            self.calls.push(ClaudeCall {
                id: tool.id.clone().into_owned(),
                is_of_plan: PLAN_TOOLS.contains(&&*tool.name),
                is_written: false,
            });
            self.calls.len() - 1
        });
        if tool.input.is_some() && !self.calls[at].is_written {
            self.calls[at].is_written = true;
            self.call(event, tool, out);
        }
    }

    fn call(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        let call = ToolUse {
            id: tool.id.as_str(),
            name: &tool.name,
            input: input(tool.input.as_ref()),
        };
        let block = match tool.server_side {
            true => OutputBlock::ServerToolUse(call),
            false => OutputBlock::ToolUse(call),
        };
        let group = tool.group.as_deref();
        self.block(event, &tool.id, group, block, Status::Ok, out);
    }

    fn call_closed(
        &mut self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let open = take(&mut self.calls, |it| it.id == tool.id);
        if open.is_none_or(|it| !it.is_written) {
            self.call(event, tool, out);
        }
        let is_left = event.why == Some(Why::LeftOpen) || status == Status::Lost;
        // Claude Code prints nothing for a call that was left.
        if tool.result.is_none() && is_left {
            return;
        }
        let nothing = ToolResult::new(Raw::of(&""), false);
        let result = tool.result.as_ref().unwrap_or(&nothing);
        let is_error = result.is_error || status != Status::Ok;
        let tool_use_id = tool.id.as_str();
        let content = result.content.by_ref();
        if tool.server_side {
            let r#type = format!("{}_tool_result", tool.name).into();
            let block = ServerToolResult {
                r#type,
                tool_use_id,
                content,
                is_error,
            };
            let group = tool.group.as_deref();
            let group = group.unwrap_or(tool_use_id).to_owned();
            return self.assistant(event, &group, [block], TurnFlags::default(), out);
        }
        let block = OutputBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        };
        let was_told = take(&mut self.denied, |it| *it == tool.id).is_some();
        let meta = match &result.meta {
            Some(meta) if meta.get().starts_with('[') => Some(meta.by_ref()),
            // Another agent's note says what only that agent means by it.
            Some(_) | None if was_told => None,
            Some(_) | None => not_run(tool_use_id, status),
        };
        let told = ResultFields {
            structured: result.structured.as_ref(),
            meta,
        };
        self.user(event, &[block], TurnFlags::default(), Some(told), out);
    }

    /// One block of a response of the model, whole.
    fn block(
        &mut self,
        event: &Event<'_>,
        id: &ItemId<'_>,
        group: Option<&str>,
        block: OutputBlock<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let flags = TurnFlags {
            aborted: matches!(status, Status::Cancelled | Status::Lost),
            ..TurnFlags::default()
        };
        // The API has an id for every response; a message of no response is one of its own.
        let streamed = self.stream.as_ref().and_then(|it| it.group_of(id));
        let group = streamed.or(group).unwrap_or(id.as_str()).to_owned();
        self.stream_whole(event, id, &group, &block, out);
        self.assistant(event, &group, [block], flags, out);
        self.stream_stop(event, id, out);
    }

    pub(super) fn assistant(
        &mut self,
        event: &Event<'_>,
        group: &str,
        content: impl Serialize,
        flags: TurnFlags,
        out: &mut Vec<u8>,
    ) {
        self.begin(out);
        self.attach_call(group);
        let call = self.call.as_ref();
        let call = call.filter(|it| it.group.as_deref() == Some(group));
        let unknown = UsageObject::Counts(model::Tokens::default());
        let model = call.and_then(|it| it.model.as_deref());
        let synthetic = flags.is_api_error_message.then_some("<synthetic>");
        let message = AssistantMessage {
            id: group,
            r#type: "message",
            role: "assistant",
            model: synthetic.or(model).unwrap_or(&self.session.model),
            content,
            usage: call.map_or(&unknown, |it| &it.usage),
            extra: Fields(self.lines.message_fields()),
        };
        let body = TurnBody {
            message,
            parent_tool_use_id: event.path.last().map(ItemId::as_str),
            flags,
            tool_use_result: None,
            tool_result_meta: None,
        };
        self.lines.turn("assistant", body, out);
    }

    pub(super) fn user(
        &mut self,
        event: &Event<'_>,
        content: impl Serialize,
        flags: TurnFlags,
        result: Option<ResultFields<'_>>,
        out: &mut Vec<u8>,
    ) {
        self.begin(out);
        if event.path.is_empty() {
            // What the model reads next begins another response.
            self.stream_end(out);
            self.run.get_or_insert_default().n_messages += u64::from(!flags.is_replay);
        }
        let result = result.unwrap_or_default();
        let body = TurnBody {
            message: UserMessage {
                role: "user",
                content,
            },
            parent_tool_use_id: event.path.last().map(ItemId::as_str),
            flags,
            tool_use_result: result.structured,
            tool_result_meta: result.meta,
        };
        self.lines.turn("user", body, out);
    }
}

/// What stands beside a result.
#[derive(Debug, Default)]
pub(super) struct ResultFields<'a> {
    structured: Option<&'a Raw<'a>>,
    meta: Option<Raw<'a>>,
}

/// An input is an object, whatever is known of it.
pub(super) fn input<'a>(input: Option<&'a Raw<'_>>) -> Raw<'a> {
    match input {
        Some(input) if input.get().starts_with('{') => input.by_ref(),
        // Some tools of other agents take text.
        Some(input) if !input.is_null() => Raw::parse(format!("{{\"input\":{}}}", input.get())),
        Some(_) | None => Raw::parse("{}".to_owned()),
    }
}

fn not_run(id: &str, status: Status) -> Option<Raw<'static>> {
    let permission_decision = match status {
        Status::Ok | Status::Error | Status::Lost => return None,
        Status::Denied => Some(RejectedBy {
            decision: "reject",
            source: "user_reject",
        }),
        Status::Cancelled => None,
    };
    let non_execution_kind = "user-rejected";
    Some(Raw::of(&[NotRun {
        id,
        non_execution_kind,
        permission_decision,
    }]))
}

/// True for what the Messages API takes.
fn is_known_part(part: &Part<'_>) -> bool {
    match part {
        Part::Image { .. } | Part::ImageUrl { .. } => true,
        Part::Other(raw) => {
            let kinds = ["document", "image"].map(|it| format!("\"type\":\"{it}\""));
            kinds.iter().any(|it| raw.get().contains(&**it))
        }
    }
}

fn part<'a>(part: &'a Part<'_>) -> Raw<'a> {
    let source = match part {
        Part::Image { media_type, data } => ImageData::Base64 {
            media_type,
            data: data.by_ref(),
        },
        Part::ImageUrl { url } => ImageData::Url { url: url.by_ref() },
        Part::Other(raw) => return raw.by_ref(),
    };
    Raw::of(&OutputBlock::Image { source })
}
