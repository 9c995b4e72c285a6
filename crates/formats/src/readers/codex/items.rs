//! Items: words, thoughts, calls and lists, each started, updated and completed under one id.
//!
//! Most items of `codex exec` are only ever completed. A call keeps the words of its item: the
//! input holds the fields that say what is to be done, under the item's own names, so that a
//! ThreadEvent can be made of it again.

use std::borrow::Cow;

use model::{
    Class, Compaction, Denial, Item, ItemId, Level, Mcp, Message, Other, Part, Plan, PlanEntry,
    PlanStatus, Raw, Reasoning, Role, Status, Text, Tool, ToolResult,
};

use super::{Codex, FrameContext, MAX_DENIALS};
use crate::tools::{self, ToolInput};
use crate::wire::codex as wire;
use crate::wire::lenient::{Any, Object as _, Str};

/// Where in its life an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Started,
    Updated,
    Completed,
}

impl Codex {
    pub(super) fn item<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut item: wire::Item<'c>,
        phase: Phase,
        text: &'c str,
    ) {
        let Some(id) = item.id.take().map(ItemId::new) else {
            return self
                .lifecycle
                .unmapped(cx, "item without an id".to_owned(), text);
        };
        cx.extra.append(item.extra());
        let kind = item.r#type.take().unwrap_or_default();
        if cx.extra.iter().any(|it| it.0 == "ask_id") {
            // The row in which a server shows a question: not a message of the agent.
            let said = item.text.raw().map(Text::from).unwrap_or_default();
            return self.notice(cx, Level::Info, "ask", said, None);
        }
        match &*kind {
            "agent_message" | "agentMessage" => self.agent_message(cx, id, &item, phase),
            "userMessage" => self.user_message(cx, id, item, phase),
            "reasoning" => self.reasoning(cx, id, &item, phase),
            "command_execution" | "commandExecution" => {
                let call = self.command(id, &item);
                let output = item.aggregated_output.raw();
                let output = output.or(item.aggregated_output_camel.raw());
                self.call(cx, call, &item, phase, output.map(tool_result));
            }
            "file_change" | "fileChange" => {
                let call = self.file_change(id, &item);
                self.call(cx, call, &item, phase, None);
            }
            "mcp_tool_call" | "mcpToolCall" => {
                let call = mcp_call(id, &item);
                let result = mcp_result(&mut item);
                self.call(cx, call, &item, phase, result);
            }
            "web_search" | "webSearch" => {
                let call = web_search(id, &item);
                self.call(cx, call, &item, phase, None);
            }
            "collab_tool_call" | "collabToolCall" | "collabAgentToolCall" => {
                let call = agents_call(id, &item);
                let result = agents_result(&item);
                self.call(cx, call, &item, phase, result);
            }
            "dynamicToolCall" => {
                let name = item.tool.take().unwrap_or_default();
                let input = item.arguments.raw().unwrap_or_else(|| Raw::of(&()));
                let class = tools::classify(&name, Some(&input), self.cwd.as_deref());
                self.call(cx, tool(id, name, input, class), &item, phase, None);
            }
            "imageView" => {
                let call = self.image_view(id, &item);
                self.call(cx, call, &item, phase, None);
            }
            "todo_list" => self.todo_list(cx, id, &item, phase),
            "error" => self.error_item(cx, &id, &item),
            "contextCompaction" => self.compaction(cx, id, phase),
            "plan" => self.proposal(cx, id, &item, phase),
            "enteredReviewMode" | "exitedReviewMode" => {
                let review = item.review.raw().map(Text::from).unwrap_or_default();
                let said = format!("{kind}: {review}");
                self.notice(cx, Level::Info, "review", Text::new(said), None);
            }
            other => {
                let what = format!("item `{other}`");
                self.lifecycle.unmapped(cx, what, text);
            }
        }
    }

    fn agent_message<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
    ) {
        self.begin(cx);
        let text = item.text.raw().map(Text::from).unwrap_or_default();
        let mut message = message(id, Role::Assistant, text);
        if phase != Phase::Completed {
            message.text = Text::EMPTY;
            return self.lifecycle.open(cx, Item::Message(message));
        }
        let said: Str<'_> = item.phase.parse().unwrap_or_default();
        let kept = || Some(message.text.clone().into_owned());
        match said.as_deref() {
            Some("commentary") => (),
            Some("final_answer") => self.answer.last_final = kept(),
            Some(_) | None => self.answer.last = kept(),
        }
        // What else is known of a message goes with its whole text, whether it was streamed or not.
        let extra = std::mem::take(&mut cx.extra);
        if !self.lifecycle.is_open(&message.id) {
            let mut empty = message.clone();
            empty.text = Text::EMPTY;
            self.lifecycle.open(cx, Item::Message(empty));
        }
        cx.extra = extra;
        (cx.extra).extend(item.phase.raw().map(|it| (Cow::Borrowed("phase"), it)));
        let message = Item::Message(message);
        self.lifecycle.close_text(cx, message, Status::Ok);
    }

    fn user_message<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: wire::Item<'c>,
        phase: Phase,
    ) {
        if phase != Phase::Completed {
            cx.extra.clear(); // All of it comes again with the end, which follows at once.
            return;
        }
        self.begin(cx);
        cx.origin = model::Origin::Client;
        let mut texts = Vec::new();
        let mut parts = Vec::new();
        for part in item.content.0 {
            let input: wire::UserInput<'_> = part.parse().unwrap_or_default();
            match (input.r#type.as_deref(), input.text.raw(), input.url.raw()) {
                (Some("text"), Some(text), _) => texts.push(Text::from(text)),
                (Some("image"), _, Some(url)) => {
                    let url = Text::from(url);
                    parts.push(Part::ImageUrl { url });
                }
                _ => parts.extend(part.raw().map(Part::Other)),
            }
        }
        let mut message = message(id, Role::User, joined(texts, "\n"));
        message.parts = parts;
        let message = Item::Message(message);
        self.lifecycle.close_text(cx, message, Status::Ok);
    }

    fn reasoning<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
    ) {
        self.begin(cx);
        let texts = |parts: &[Any<'c>]| -> Vec<Text<'c>> {
            let texts = parts.iter().filter_map(|it| it.raw());
            texts.map(Text::from).collect()
        };
        let text = match item.text.raw() {
            Some(text) => Text::from(text),
            None if item.summary.0.is_empty() => joined(texts(&item.content.0), "\n"),
            None => joined(texts(&item.summary.0), "\n"),
        };
        let mut reasoning = Reasoning {
            id,
            group: None,
            text,
            signature: None,
            encrypted: None,
        };
        if phase != Phase::Completed {
            reasoning.text = Text::EMPTY;
            return self.lifecycle.open(cx, Item::Reasoning(reasoning));
        }
        let reasoning = Item::Reasoning(reasoning);
        self.lifecycle.close_text(cx, reasoning, Status::Ok);
    }

    /// A call, from its start to its result.
    fn call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut call: Tool<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
        result: Option<ToolResult<'c>>,
    ) {
        self.begin(cx);
        if phase != Phase::Completed {
            return self.lifecycle.update(cx, Item::Tool(Box::new(call)));
        }
        if self.lifecycle.is_open(&call.id) {
            // A search says what it looks for, and a patch what it changes, only in the end.
            let known = Item::Tool(Box::new(call.clone()));
            self.lifecycle.update(cx, known);
        }
        let status = status(item);
        if status == Status::Denied && self.denials.len() < MAX_DENIALS {
            self.denials.push(Denial {
                tool: Cow::Owned(call.name.clone().into_owned()),
                item: Some(call.id.clone().into_owned()),
                input: call.input.clone().map(Raw::into_owned),
            });
        }
        if status != Status::Lost {
            let mut result = result.unwrap_or_else(|| tool_result(Raw::of(&"")));
            result.is_error = status != Status::Ok;
            call.result = Some(result);
        }
        let exit_code = item.exit_code.0.or(item.exit_code_camel.0);
        call.class.exit_code = exit_code.map(|it| it as i32);
        let call = Item::Tool(Box::new(call));
        self.lifecycle.close_whole(cx, call, status);
    }

    fn command<'c>(&self, id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
        let mut fields = ToolInput::default();
        fields.command = item.command;
        let cwd = item.cwd.as_deref();
        let name = Cow::Borrowed("command_execution");
        let class = tools::classify_fields(&name, &fields, cwd.or(self.cwd.as_deref()));
        let command = item.command.raw().unwrap_or_else(|| Raw::of(&""));
        let input = Raw::of(&wire::Input::Command { command, cwd });
        tool(id, name, input, class)
    }

    fn file_change<'c>(&self, id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
        let mut fields = ToolInput::default();
        fields.changes = item.changes.parse().unwrap_or_default();
        let name = Cow::Borrowed("file_change");
        let class = tools::classify_fields(&name, &fields, self.cwd.as_deref());
        let changes = item.changes.raw();
        let changes = changes.unwrap_or_else(|| Raw::parse("[]".to_owned()));
        let input = Raw::of(&wire::Input::Changes { changes });
        tool(id, name, input, class)
    }

    fn image_view<'c>(&self, id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
        let mut fields = ToolInput::default();
        fields.path = item.path;
        let name = Cow::Borrowed("view_image");
        let class = tools::classify_fields(&name, &fields, self.cwd.as_deref());
        let path = item.path.raw().unwrap_or_else(|| Raw::of(&""));
        tool(id, name, Raw::of(&wire::Input::Path { path }), class)
    }

    fn todo_list<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
    ) {
        self.begin(cx);
        let entries = item.items.0.iter().map(|todo| PlanEntry {
            key: None,
            text: todo.text.raw().map(Text::from).unwrap_or_default(),
            status: if todo.completed.is_true() {
                PlanStatus::Completed
            } else {
                PlanStatus::Pending
            },
            doing: None,
        });
        let entries = entries.collect();
        let plan = Item::Plan(Plan { id, entries });
        match phase {
            Phase::Started | Phase::Updated => self.lifecycle.update(cx, plan),
            Phase::Completed => self.lifecycle.close_whole(cx, plan, Status::Ok),
        }
    }

    /// A warning that Codex dresses as an item; it may come before any turn.
    fn error_item<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &ItemId<'c>,
        item: &wire::Item<'c>,
    ) {
        let message = item.message.raw().unwrap_or_else(|| Raw::of(&""));
        let text = Text::from(message.clone());
        let id = id.as_str();
        let detail = Raw::of(&wire::ErrorItem { id, message });
        self.notice(cx, Level::Warning, "warning", text, Some(detail));
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, id: ItemId<'c>, phase: Phase) {
        self.begin(cx);
        let compaction = Item::Compaction(Compaction {
            id,
            trigger: None,
            summary: None,
            tokens_before: None,
            tokens_after: None,
            detail: None,
        });
        match phase {
            Phase::Started | Phase::Updated => self.lifecycle.update(cx, compaction),
            Phase::Completed => self.lifecycle.close_whole(cx, compaction, Status::Ok),
        }
    }

    /// A plan in words, put before the user; the list of steps is something else.
    fn proposal<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
    ) {
        self.begin(cx);
        let text = item.text.raw();
        let other = Item::Other(Other {
            id,
            name: Cow::Borrowed("plan"),
            text: text.clone().map(Text::from),
            data: text.unwrap_or_else(|| Raw::of(&())),
        });
        match phase {
            Phase::Started | Phase::Updated => self.lifecycle.update(cx, other),
            Phase::Completed => self.lifecycle.close_whole(cx, other, Status::Ok),
        }
    }
}

fn message<'c>(id: ItemId<'c>, role: Role, text: Text<'c>) -> Message<'c> {
    Message {
        id,
        role,
        group: None,
        text,
        parts: Vec::new(),
    }
}

fn tool<'c>(id: ItemId<'c>, name: Cow<'c, str>, input: Raw<'c>, class: Class<'c>) -> Tool<'c> {
    Tool {
        id,
        group: None,
        name,
        input: Some(input),
        class,
        server_side: false,
        result: None,
    }
}

fn tool_result(content: Raw<'_>) -> ToolResult<'_> {
    ToolResult {
        content,
        is_error: false,
        structured: None,
        meta: None,
    }
}

/// How a completed item ended. One that is still running then was not waited for.
fn status(item: &wire::Item<'_>) -> Status {
    match item.status.as_deref() {
        Some("failed") => Status::Error,
        Some("declined") => Status::Denied,
        Some("interrupted") => Status::Cancelled,
        Some("in_progress" | "inProgress") => Status::Lost,
        Some(_) | None => Status::Ok,
    }
}

fn mcp_call<'c>(id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
    let server = item.server.0.clone().unwrap_or_default();
    let tool_name = item.tool.0.clone().unwrap_or_default();
    let name = format!("mcp__{server}__{tool_name}");
    let input = item.arguments.raw().unwrap_or_else(|| Raw::of(&()));
    let mut class = tools::classify(&name, Some(&input), None);
    // A server's name may hold what separates it from the tool's.
    class.mcp = Some(Mcp {
        server,
        tool: tool_name,
    });
    tool(id, Cow::Owned(name), input, class)
}

/// What the server answered, or why it could not be asked.
fn mcp_result<'c>(item: &mut wire::Item<'c>) -> Option<ToolResult<'c>> {
    if let Some(message) = item.error.take().message.raw() {
        return Some(tool_result(message));
    }
    let result: wire::McpResult<'c> = item.result.parse()?;
    let content = result.content.raw();
    Some(ToolResult {
        content: content.unwrap_or_else(|| Raw::parse("[]".to_owned())),
        is_error: false,
        structured: result.structured.raw().or(result.structured_camel.raw()),
        meta: result.meta.raw(),
    })
}

fn web_search<'c>(id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
    let mut fields = ToolInput::default();
    fields.query = item.query;
    let is_blank = |it: Any<'c>| it.raw().is_none_or(|raw| Text::from(raw).is_blank());
    if is_blank(fields.query) {
        let action: wire::Action<'c> = item.action.parse().unwrap_or_default();
        if action.url.0.is_some() {
            fields.query = action.url;
        }
    }
    let name = Cow::Borrowed("web_search");
    let class = tools::classify_fields(&name, &fields, None);
    let query = item.query.raw().unwrap_or_else(|| Raw::of(&""));
    let action = item.action.raw();
    let input = Raw::of(&wire::Input::Search { query, action });
    let mut tool = tool(id, name, input, class);
    tool.server_side = true;
    tool
}

fn agents_call<'c>(id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
    let name = item.tool.0.clone().unwrap_or(Cow::Borrowed("spawn_agent"));
    let mut fields = ToolInput::default();
    fields.prompt = item.prompt;
    let class = tools::classify_fields(&name, &fields, None);
    let sender = item.sender.raw().or(item.sender_camel.raw());
    let receivers = item.receivers.raw().or(item.receivers_camel.raw());
    let input = Raw::of(&wire::Input::Agents {
        prompt: item.prompt.raw(),
        sender_thread_id: sender.unwrap_or_else(|| Raw::of(&"")),
        receiver_thread_ids: receivers.unwrap_or_else(|| Raw::parse("[]".to_owned())),
    });
    tool(id, name, input, class)
}

/// What the agents say; how each of them is doing stays beside it.
fn agents_result<'c>(item: &wire::Item<'c>) -> Option<ToolResult<'c>> {
    let states = item.agents_states.0.or(item.agents_states_camel.0)?;
    let agents: wire::AgentsStates<'c> = Any(Some(states)).parse().unwrap_or_default();
    let words = agents.0.iter().filter_map(|(_, it)| it.message.raw());
    let words = words.map(Text::from).collect();
    let mut result = tool_result(Raw::of(&joined(words, "\n")));
    result.structured = Some(Raw::borrowed(states));
    Some(result)
}

fn joined<'c>(mut texts: Vec<Text<'c>>, between: &str) -> Text<'c> {
    if texts.len() < 2 {
        return texts.pop().unwrap_or_default();
    }
    let texts: Vec<_> = texts.iter().map(Text::to_str).collect();
    Text::new(texts.join(between))
}
