//! Items: words, thoughts, calls and lists, each started, updated and completed under one id.
//!
//! Most items of `codex exec` are only ever completed. A call keeps the words of its item: the
//! input holds the fields that say what is to be done, under the item's own names, so that a
//! ThreadEvent can be made of it again.

use std::borrow::Cow;

use model::{
    Class, Compaction, Item, ItemId, Level, Mcp, Message, Notice, Other, Part, Plan, PlanEntry,
    PlanStatus, Raw, Reasoning, Role, Status, Text, Tool, ToolResult,
};

use super::{Codex, FrameContext};
use crate::readers::content::joined;
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
    ) {
        let Some(id) = item.id.take().map(ItemId::new) else {
            return self.lifecycle.unmapped(cx, "item without an id");
        };
        cx.extra.append(item.extra());
        let kind = item.r#type.take().unwrap_or_default();
        if cx.has("ask_id") {
            // The row in which a server shows a question: not a message of the agent.
            let text = item.text.text().unwrap_or_default();
            return self.lifecycle.raise(cx, Level::Info, "ask", text);
        }
        match &*kind {
            "agent_message" | "agentMessage" => self.agent_message(cx, id, &item, phase),
            "userMessage" => self.user_message(cx, id, item, phase),
            "reasoning" => self.reasoning(cx, id, &item, phase),
            "command_execution" | "commandExecution" => {
                let call = self.command(id, &item);
                let output = item.aggregated_output.raw();
                let output = output.or(item.aggregated_output_camel.raw());
                let result = output.map(|it| ToolResult::new(it, false));
                self.call(cx, call, &item, phase, result);
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
                let call = tools::call(id, name, Some(input), self.cwd.as_deref());
                self.call(cx, call, &item, phase, None);
            }
            "imageView" => {
                let call = self.image_view(id, &item);
                self.call(cx, call, &item, phase, None);
            }
            "todo_list" => self.todo_list(cx, id, &item, phase),
            "error" => self.error_item(cx, &id, &item),
            "contextCompaction" => {
                let compaction = Item::Compaction(Compaction::new(id));
                self.simple_item(cx, compaction, phase);
            }
            "plan" => self.proposal(cx, id, &item, phase),
            "enteredReviewMode" | "exitedReviewMode" => {
                let text = format!("{kind}: {}", item.review.text().unwrap_or_default());
                self.lifecycle.raise(cx, Level::Info, "review", text);
            }
            other => self.lifecycle.unmapped(cx, format!("item `{other}`")),
        }
    }

    /// An item that every event has whole.
    fn simple_item(&mut self, cx: &mut FrameContext<'_>, item: Item<'_>, phase: Phase) {
        self.begin(cx);
        match phase {
            Phase::Started | Phase::Updated => self.lifecycle.update(cx, item),
            Phase::Completed => self.lifecycle.close_whole(cx, item, Status::Ok),
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
        let text = item.text.text().unwrap_or_default();
        let mut message = Message::new(id, Role::Assistant, text);
        if phase != Phase::Completed {
            // The text of an unfinished message is left to its deltas, which have to add up to the
            // whole.
            message.text = Text::EMPTY;
            return self.lifecycle.open(cx, message.into());
        }
        let purpose: Str<'_> = item.phase.parse().unwrap_or_default();
        match purpose.as_deref() {
            Some("commentary") => (),
            Some("final_answer") => self.final_answer = Some(message.text.clone().into_owned()),
            Some(_) | None => self.lifecycle.answer = Some(message.text.clone().into_owned()),
        }
        // What else is known of a message goes with its whole text, whether it was streamed or not.
        if !self.lifecycle.is_open(&message.id) {
            let empty = Message::new(message.id.clone(), Role::Assistant, Text::EMPTY);
            cx.without_extra(|cx| self.lifecycle.open(cx, empty.into()));
        }
        cx.keep("phase", item.phase);
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
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
        // The item echoes what the client sent with `turn/start`.
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
        let message = Message {
            parts,
            ..Message::new(id, Role::User, joined(texts, "\n"))
        };
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
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
        let mut reasoning = Reasoning::new(id, text);
        if phase != Phase::Completed {
            // As for messages: deltas fill it.
            reasoning.text = Text::EMPTY;
            return self.lifecycle.open(cx, reasoning.into());
        }
        self.lifecycle.close_text(cx, reasoning.into(), Status::Ok);
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
            return self.lifecycle.update(cx, call.into());
        }
        if self.lifecycle.is_open(&call.id) {
            // A search says what it looks for, and a patch what it changes, only in the end.
            self.lifecycle.update(cx, call.clone().into());
        }
        let status = status(item);
        // Codex lists no denials at the end of a turn; the run's end gets them from here.
        if status == Status::Denied {
            self.lifecycle.deny(&call);
        }
        // What was not waited for has returned nothing: an empty result would say that it had.
        if status != Status::Lost {
            let mut result = result.unwrap_or_else(|| ToolResult::new(Raw::of(&""), false));
            result.is_error = status != Status::Ok;
            call.result = Some(result);
        }
        let exit_code = item.exit_code.0.or(item.exit_code_camel.0);
        call.class.exit_code = exit_code.map(|it| it as i32);
        self.lifecycle.close_whole(cx, call.into(), status);
    }

    fn command<'c>(&self, id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
        // The fields are filled by hand: the item mixes what was asked for with what came back.
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
        let entries = item.items.0.iter().map(|todo| {
            let status = match todo.completed.is_true() {
                true => PlanStatus::Completed,
                false => PlanStatus::Pending,
            };
            PlanEntry::new(todo.text.text().unwrap_or_default(), status)
        });
        let entries = entries.collect();
        self.simple_item(cx, Item::Plan(Plan { id, entries }), phase);
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
        let notice = Notice {
            detail: Some(detail),
            // An item of type `error` fails no turn: Codex sends its warnings this way.
            ..Notice::new(Level::Warning, "warning", text)
        };
        self.lifecycle.notice(cx, notice);
    }

    /// A plan in words, put before the user; the list of steps is something else.
    fn proposal<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        item: &wire::Item<'c>,
        phase: Phase,
    ) {
        let text = item.text.raw();
        let other = Item::Other(Other {
            id,
            name: Cow::Borrowed("plan"),
            text: text.clone().map(Text::from),
            data: text.unwrap_or_else(|| Raw::of(&())),
        });
        self.simple_item(cx, other, phase);
    }
}

fn tool<'c>(id: ItemId<'c>, name: Cow<'c, str>, input: Raw<'c>, class: Class<'c>) -> Tool<'c> {
    Tool {
        input: Some(input),
        ..Tool::new(id, name, class)
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
        return Some(ToolResult::new(message, true));
    }
    let result: wire::McpResult<'c> = item.result.parse()?;
    let content = result.content.raw();
    let content = content.unwrap_or_else(|| Raw::parse("[]".to_owned()));
    Some(ToolResult {
        structured: result.structured.raw().or(result.structured_camel.raw()),
        meta: result.meta.raw(),
        ..ToolResult::new(content, false)
    })
}

fn web_search<'c>(id: ItemId<'c>, item: &wire::Item<'c>) -> Tool<'c> {
    let mut fields = ToolInput::default();
    fields.query = item.query;
    // A search that opens a page has an empty query; its address is what it is about.
    if fields.query.text().is_none_or(|it| it.is_blank()) {
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
    // The provider runs the search, not Codex.
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
    let words = agents.0.iter().filter_map(|(_, it)| it.message.text());
    let words = joined(words.collect(), "\n");
    Some(ToolResult {
        structured: Some(Raw::borrowed(states)),
        ..ToolResult::new(Raw::of(&words), false)
    })
}
