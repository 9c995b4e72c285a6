//! Tool calls: an action, then an observation, a rejection or an error; or two ACP cards.

use std::borrow::Cow;

use model::{
    Change, Decision, Diff, Item, ItemId, Level, Message, Notice, Plan, PlanEntry, Raw, Reasoning,
    Role, Status, Text, Tool, ToolKind, ToolResult,
};

use super::end::PossibleEnd;
use super::texts::{self, ResponseThinking};
use super::wire::{self, Action, Event, Observation};
use super::{FrameContext, OpenHands};
use crate::readers::acp_tool_content;
use crate::readers::content::{self, ContentPiece};
use crate::readers::plans::{self, MAX_ENTRIES};
use crate::readers::subagents;
use crate::tools;
use crate::wire::lenient::{Any, Map};
use crate::wire::openhands::{CALL_FAILED, CALL_LOST, CALL_STOPPED, RUN_ENDED, STREAM_ENDED};
use crate::wire::scanner;

impl OpenHands {
    pub(super) fn is_call(&self, id: &str) -> bool {
        let id = ItemId::new(id);
        self.lifecycle.open_tool(&id).is_some() || self.subagents.knows(id.as_str())
    }

    pub(super) fn action<'c>(&mut self, cx: &mut FrameContext<'c>, mut event: Event<'c>) {
        self.work(cx);
        let id = self.id(cx);
        let group = event.llm_response_id.take();
        let thinking = ResponseThinking {
            content: event.reasoning_content,
            blocks: std::mem::take(&mut event.thinking_blocks),
            item: std::mem::take(&mut event.responses_reasoning_item),
        };
        self.think(cx, &id, group.as_ref(), thinking);
        let thought = std::mem::take(&mut event.thought);
        self.thoughts(cx, &id, group.as_ref(), thought);
        let action: Action<'c> = event.action.parse().unwrap_or_default();
        match (action.kind.as_deref(), action.message.0, action.thought.0) {
            (Some("FinishAction"), Some(message), _) => {
                self.silence(event.tool_call_id.as_deref());
                let text = Text::from_json(message);
                // A `FinishAction` may repeat the message before it.
                if self.lifecycle.answer.as_ref() != Some(&text) {
                    let message = Message::new(ItemId::new(id), Role::Assistant, text);
                    self.close_message(cx, Message { group, ..message });
                }
                self.ending = Some(PossibleEnd::by_message(cx));
            }
            (Some("ThinkAction"), _, Some(thought)) => {
                self.silence(event.tool_call_id.as_deref());
                let reasoning = Reasoning {
                    group,
                    ..Reasoning::new(ItemId::new(id), Text::from_json(thought))
                };
                self.lifecycle.close_text(cx, reasoning.into(), Status::Ok);
            }
            _ => self.call(cx, id, group, &action, event),
        }
    }

    fn call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: String,
        group: Option<Cow<'c, str>>,
        action: &Action<'c>,
        mut event: Event<'c>,
    ) {
        let mut made = String::new();
        let arguments = event.tool_call.take().arguments;
        let input = input(action, event.action, arguments, &mut made);
        let name = event.tool_name.as_deref().unwrap_or_default();
        let mut class = tools::classify(name, input.as_ref(), self.cwd.as_deref());
        let summary = event.summary.text();
        // Where the model gave none, OpenHands makes one of the tool and its whole input.
        let is_made_up = |it: &Text<'_>| {
            let rest = it.to_str();
            rest.strip_prefix(name)
                .is_some_and(|it| it.starts_with(": {"))
        };
        if let Some(summary) = summary.filter(|it| !it.is_blank() && !is_made_up(it)) {
            class.title = summary;
        }
        let id = match event.tool_call_id.as_deref() {
            Some(call) if !call.is_empty() => ItemId::new(call.to_owned()),
            _ => ItemId::new(id),
        };
        let tool = Tool {
            group,
            input,
            ..Tool::new(id.clone(), name, class)
        };
        if tool.class.kind == ToolKind::Task {
            self.subagents.expect(&id, &cx.path);
        }
        self.lifecycle.open(cx, tool.into());
        self.pending.push(id);
    }

    /// A call that is emitted as text: its result is empty.
    fn silence(&mut self, call: Option<&str>) {
        if let Some(call) = call {
            self.silent.push(call.to_owned());
        }
    }

    fn is_silent(&mut self, call: &ItemId<'_>) -> bool {
        let at = self.silent.iter().position(|it| it == call.as_str());
        at.map(|at| self.silent.remove(at)).is_some()
    }

    /// The call of a result; a missing one is synthesized.
    fn answered(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) -> ItemId<'static> {
        let id = match event.tool_call_id.as_deref() {
            Some(id) => ItemId::new(id.to_owned()),
            None => ItemId::new(self.id(cx)),
        };
        self.pending.retain(|it| *it != id);
        if !self.lifecycle.is_open(&id) {
            let name = event.tool_name.as_deref().unwrap_or("unknown");
            let tool = tools::call(id.clone(), name, None, None);
            self.lifecycle.open_unseen(cx, tool.into());
        }
        id
    }

    pub(super) fn observation<'c>(&mut self, cx: &mut FrameContext<'c>, mut event: Event<'c>) {
        let frame_id = self.id(cx);
        let extended = std::mem::take(&mut event.extended_content);
        let call = ItemId::new(event.tool_call_id.owned().unwrap_or_default());
        if !self.is_silent(&call) {
            self.observed(cx, &event);
        }
        self.extended(cx, &frame_id, extended);
    }

    fn observed<'c>(&mut self, cx: &mut FrameContext<'c>, event: &Event<'c>) {
        let id = self.answered(cx, event);
        let raw = event.observation;
        let mut observation: Observation<'c> = raw.parse().unwrap_or_default();
        let is_error = observation.is_error.is_true();
        let status = if is_error { Status::Error } else { Status::Ok };
        // A log shows no answers: a call that ran must have been allowed.
        self.lifecycle.settle_item(cx, &id, Decision::Allowed);
        subagents::call_ended(&mut self.lifecycle, cx, id.as_str(), status);
        if !is_error && observation.kind.as_deref() == Some("TaskTrackerObservation") {
            self.plan(cx, &observation);
        }
        let structured = raw.raw().filter(|_| has_more(&mut observation));
        let result = ToolResult {
            structured,
            ..ToolResult::new(content(&mut observation), is_error)
        };
        self.lifecycle
            .close_tool(cx, &id, status, result, |tool| refine(tool, &observation));
    }

    fn plan(&mut self, cx: &mut FrameContext<'_>, observation: &Observation<'_>) {
        let tasks = observation.task_list.0.iter().take(MAX_ENTRIES);
        let entry = |task: &wire::Task<'_>| {
            let text = task.title.text().unwrap_or_default();
            PlanEntry::new(text.into_owned(), plans::status(task.status.as_deref()))
        };
        let plan = Plan {
            id: ItemId::new("plan"),
            entries: tasks.map(entry).collect(),
        };
        self.lifecycle.update(cx, Item::Plan(plan));
    }

    pub(super) fn rejection<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let reason = event.rejection_reason.raw();
        let call = ItemId::new(event.tool_call_id.owned().unwrap_or_default());
        if self.is_silent(&call) {
            return self.not_done(cx, "rejected", reason);
        }
        let id = self.answered(cx, &event);
        self.lifecycle.settle_item(cx, &id, Decision::Denied);
        if let Some(tool) = self.lifecycle.open_tool(&id).cloned() {
            self.lifecycle.deny(&tool);
        }
        let by_hook = event.rejection_source.as_deref() == Some("hook");
        let meta = by_hook.then(|| Raw::parse(r#"{"rejection_source":"hook"}"#.to_owned()));
        let content = reason.unwrap_or_else(|| Raw::of(&"User rejected the action"));
        let result = ToolResult {
            meta,
            ..ToolResult::new(content, true)
        };
        self.lifecycle
            .close_tool(cx, &id, Status::Denied, result, |_| ());
    }

    pub(super) fn agent_error<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let call = ItemId::new(event.tool_call_id.owned().unwrap_or_default());
        if self.is_silent(&call) {
            return self.not_done(cx, "agent_error", event.error.raw());
        }
        let id = self.answered(cx, &event);
        let error = event.error.raw().unwrap_or_else(|| Raw::of(&""));
        // linkspan's own placeholder for an unanswered call is not an answer.
        let made_up = match &*Text::from(error.by_ref()).to_str() {
            CALL_FAILED => Some(Status::Error),
            CALL_STOPPED => Some(Status::Cancelled),
            CALL_LOST | RUN_ENDED | STREAM_ENDED => Some(Status::Lost),
            _ => None,
        };
        let status = made_up.unwrap_or(Status::Error);
        self.lifecycle.settle_item(cx, &id, Decision::Allowed);
        subagents::call_ended(&mut self.lifecycle, cx, id.as_str(), status);
        if made_up.is_some() {
            return self.lifecycle.close(cx, &id, status, |_| ());
        }
        let result = ToolResult::new(error, true);
        self.lifecycle.close_tool(cx, &id, status, result, |_| ());
    }

    /// The agent's last message was rejected: it continues.
    fn not_done(&mut self, cx: &mut FrameContext<'_>, code: &'static str, why: Option<Raw<'_>>) {
        self.ending = None;
        let why = why.map(Text::from).unwrap_or_default();
        self.lifecycle.raise(cx, Level::Warning, code, why);
    }

    /// A call that another agent made over ACP: every card says all that is known by then.
    pub(super) fn card<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let id = match event.tool_call_id.as_deref() {
            Some(id) => ItemId::new(id.to_owned()),
            None => ItemId::new(self.id(cx)),
        };
        if self.ended_cards.iter().any(|it| it == id.as_str()) {
            let text = Text::new("a card after the last one of its call");
            let notice = Notice {
                item: Some(id),
                ..Notice::new(Level::Debug, "late_card", text)
            };
            return self.lifecycle.notice(cx, notice);
        }
        let status = match event.status.as_deref() {
            Some("completed") if event.is_error.is_true() => Some(Status::Error),
            Some("completed") => Some(Status::Ok),
            Some("failed") => Some(Status::Error),
            Some(_) | None => None,
        };
        if status.is_none() || !self.lifecycle.has_run() {
            self.work(cx);
        }
        let input = event.raw_input.raw();
        let title = event.title.text();
        let kind = event.tool_kind.as_deref();
        let mut class = tools::classify_acp(None, kind, title, input.as_ref(), self.cwd.as_deref());
        let blocks = acp_tool_content::contents(event.content);
        if !blocks.diffs.is_empty() {
            class.diffs = blocks.diffs;
        }
        let known = self.lifecycle.open_tool(&id);
        let known = known.and_then(|it| it.input.clone());
        // A card has one of ACP's kinds and no name.
        let name = kind.unwrap_or("tool").to_owned();
        let mut tool = Tool {
            input: input.or(known),
            ..Tool::new(id.clone(), name, class)
        };
        let Some(status) = status else {
            return self.lifecycle.update(cx, tool.into());
        };
        tool.result = Some(result(event.raw_output, blocks.pieces, status));
        self.lifecycle.close_whole(cx, tool.into(), status);
        self.ended_cards.push(id.as_str().to_owned());
    }
}

fn result<'a>(output: Any<'a>, pieces: Vec<ContentPiece<'a>>, status: Status) -> ToolResult<'a> {
    let output = output.raw();
    let is_content = |it: &Raw<'_>| it.is_string() || it.get().starts_with('[');
    let (content, structured) = match output {
        Some(output) if is_content(&output) => (output, None),
        output => (content::content(pieces), output),
    };
    ToolResult {
        structured,
        ..ToolResult::new(content, status != Status::Ok)
    }
}

/// The input of a call: what the tool was given, unless the model's own words say more.
fn input<'m>(
    action: &Action<'m>,
    fields: Any<'m>,
    arguments: Any<'m>,
    made: &'m mut String,
) -> Option<Raw<'m>> {
    match action.kind.as_deref() {
        Some("MCPToolAction") if action.data.0.is_some() => return action.data.raw(),
        Some("ExternalToolAction") if action.args.0.is_some() => return action.args.raw(),
        _ => (),
    }
    let text = arguments.text();
    let text = text.as_ref().map(Text::to_str);
    if let Some(action) = fields.0
        // The SDK may drop arguments that its action has no field for; then the model's own are
        // more.
        && !text.as_deref().is_some_and(|it| is_more(it, action.get()))
        && let Some(fields) = without_kind(action.get())
    {
        *made = fields;
        return scanner::from_str(made).ok();
    }
    let text = text?;
    *made = match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => text.into_owned(),
        Err(_) => serde_json::to_string(&text).ok()?,
    };
    scanner::from_str(made).ok()
}

/// True when the arguments hold something the action does not; two of them OpenHands takes away.
fn is_more(arguments: &str, action: &str) -> bool {
    let Ok(arguments) = scanner::from_str::<Map<'_, Any<'_>>>(arguments) else {
        return false;
    };
    let action: Map<'_, Any<'_>> = scanner::from_str(action).unwrap_or_default();
    let has = |key: &str| action.0.iter().any(|(it, _)| it == key);
    arguments.0.iter().any(|(key, value)| {
        value.0.is_some() && !matches!(&**key, "security_risk" | "summary") && !has(key)
    })
}

/// The fields of an action; its kind is the tool's name over again.
fn without_kind(action: &str) -> Option<String> {
    let fields: Map<'_, Any<'_>> = scanner::from_str(action).ok()?;
    let fields = fields.0.iter().filter(|(key, _)| key != "kind");
    let fields = fields.filter_map(|(key, value)| Some((key, value.0?)));
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    serde::Serializer::collect_map(&mut serializer, fields).ok()?;
    String::from_utf8(json).ok()
}

/// True when an observation holds more than its text and an error flag.
fn has_more(observation: &mut Observation<'_>) -> bool {
    use crate::wire::lenient::Object as _;
    observation
        .extra()
        .iter()
        // Where the full output was saved, and flags that are off, are no structured result.
        .any(|(key, value)| key != "full_output_save_dir" && value.get() != "false")
        || observation.exit_code.0.is_some()
        || observation.path.0.is_some()
        || observation.file_path.0.is_some()
        || observation.old_content.0.is_some()
        || observation.new_content.0.is_some()
        || !observation.task_list.0.is_empty()
}

fn content<'c>(observation: &mut Observation<'c>) -> Raw<'c> {
    if let Some(result) = observation.result.raw() {
        return result;
    }
    let mut pieces = texts::contents(std::mem::take(&mut observation.content));
    if let Some(data) = observation.screenshot_data.0 {
        pieces.push(ContentPiece::Part(model::Part::Image {
            media_type: Cow::Borrowed("image/png"),
            data: Text::from_json(data),
        }));
    }
    content::content(pieces)
}

/// What only the observation tells: the exit code, and the file before and after.
fn refine<'c>(tool: &mut Tool<'c>, observation: &Observation<'c>) {
    // A command that still runs has the exit code -1.
    let exit_code = observation.exit_code.as_u64();
    tool.class.exit_code = exit_code
        .and_then(|it| i32::try_from(it).ok())
        .or(tool.class.exit_code);
    let new = observation.new_content.text();
    let Some(new) = new.filter(|_| !observation.is_error.is_true()) else {
        return;
    };
    let path = observation.path.text().or(observation.file_path.text());
    let path = path.or_else(|| tool.class.paths.first().map(|it| it.path.clone()));
    let is_new = observation.prev_exist.0 == Some(false);
    let old = observation.old_content.text();
    if old.is_none() && !is_new {
        return;
    }
    tool.class.change = Some(if is_new { Change::Add } else { Change::Update });
    if let Some(path) = path {
        tool.class.diffs = vec![Diff {
            path,
            old: old.filter(|_| !is_new),
            new,
        }];
    }
}
