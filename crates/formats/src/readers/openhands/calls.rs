//! Tool calls: an action, then an observation, a rejection or an error; or two ACP cards.

use std::borrow::Cow;

use model::{
    Change, Decision, Denial, Diff, Item, ItemId, Level, Notice, Plan, PlanEntry, PlanStatus, Raw,
    Reasoning, Role, Status, Text, Tool, ToolKind, ToolResult,
};

use super::end::PossibleEnd;
use super::texts::{self, ResponseThinking};
use super::wire::{self, Action, Event, Observation};
use super::{FrameContext, MAX_CARDS, MAX_SILENT, OpenHands};
use crate::readers::acp_tool_content;
use crate::readers::content::{self, ContentPiece};
use crate::readers::subagents;
use crate::tools;
use crate::wire::lenient::{Any, Map};
use crate::wire::openhands::{CALL_FAILED, CALL_LOST, CALL_STOPPED, RUN_ENDED, STREAM_ENDED};

/// Calls without a result, remembered for the question whether they may run.
const MAX_PENDING: usize = 256;
/// Denied calls, repeated at the end of the run.
const MAX_DENIALS: usize = 256;
/// Entries kept; the rest of a longer plan is not shown.
const MAX_ENTRIES: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct PendingCall {
    pub(super) id: ItemId<'static>,
}

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
                if self.last_text.as_ref() != Some(&text) {
                    self.close_message(
                        cx,
                        ItemId::new(id),
                        Role::Assistant,
                        group,
                        text,
                        Vec::new(),
                    );
                }
                self.ending = Some(PossibleEnd::by_message(cx));
            }
            (Some("ThinkAction"), _, Some(thought)) => {
                self.silence(event.tool_call_id.as_deref());
                let reasoning = Reasoning {
                    id: ItemId::new(id),
                    group,
                    text: Text::from_json(thought),
                    signature: None,
                    encrypted: None,
                };
                self.lifecycle
                    .close_text(cx, Item::Reasoning(reasoning), Status::Ok);
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
        let summary = event.summary.0.map(Text::from_json);
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
            id: id.clone(),
            group,
            name: Cow::Borrowed(name),
            input,
            class,
            server_side: false,
            result: None,
        };
        if tool.class.kind == ToolKind::Task {
            self.subagents.expect(&id, &cx.path);
        }
        self.lifecycle.open(cx, Item::Tool(Box::new(tool)));
        if self.pending.len() >= MAX_PENDING {
            self.pending.remove(0);
        }
        self.pending.push(PendingCall { id });
    }

    /// A call that is emitted as text: its result is empty.
    fn silence(&mut self, call: Option<&str>) {
        if self.silent.len() >= MAX_SILENT {
            self.silent.pop_front();
        }
        self.silent.extend(call.map(str::to_owned));
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
        self.pending.retain(|it| it.id != id);
        if !self.lifecycle.is_open(&id) {
            let name = event.tool_name.as_deref().unwrap_or("unknown");
            let tool = Tool {
                id: id.clone(),
                group: None,
                name: Cow::Borrowed(name),
                input: None,
                class: tools::classify(name, None, None),
                server_side: false,
                result: None,
            };
            self.lifecycle.open_unseen(cx, Item::Tool(Box::new(tool)));
        }
        id
    }

    pub(super) fn observation<'c>(&mut self, cx: &mut FrameContext<'c>, mut event: Event<'c>) {
        let frame_id = self.id(cx);
        let extended = std::mem::take(&mut event.extended_content);
        let call = ItemId::new(event.tool_call_id.as_deref().unwrap_or_default().to_owned());
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
        self.settle(cx, &id, Decision::Allowed);
        subagents::call_ended(&mut self.lifecycle, cx, id.as_str(), status);
        if !is_error && observation.kind.as_deref() == Some("TaskTrackerObservation") {
            self.plan(cx, &observation);
        }
        let structured = raw.raw().filter(|_| has_more(&mut observation));
        let result = ToolResult {
            content: content(&mut observation),
            is_error,
            structured,
            meta: None,
        };
        self.lifecycle
            .close_tool(cx, &id, status, result, |tool| refine(tool, &observation));
    }

    fn plan(&mut self, cx: &mut FrameContext<'_>, observation: &Observation<'_>) {
        let tasks = observation.task_list.0.iter().take(MAX_ENTRIES);
        let entry = |task: &wire::Task<'_>| PlanEntry {
            key: None,
            text: task
                .title
                .0
                .map(Text::from_json)
                .unwrap_or_default()
                .into_owned(),
            status: match task.status.as_deref() {
                Some("in_progress") => PlanStatus::InProgress,
                Some("done") => PlanStatus::Completed,
                Some(_) | None => PlanStatus::Pending,
            },
            doing: None,
        };
        let plan = Plan {
            id: ItemId::new("plan"),
            entries: tasks.map(entry).collect(),
        };
        self.lifecycle.update(cx, Item::Plan(plan));
    }

    pub(super) fn rejection<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let reason = event.rejection_reason.raw();
        let call = ItemId::new(event.tool_call_id.as_deref().unwrap_or_default().to_owned());
        if self.is_silent(&call) {
            return self.not_done(cx, "rejected", reason);
        }
        let id = self.answered(cx, &event);
        self.settle(cx, &id, Decision::Denied);
        if let Some(tool) = self.lifecycle.open_tool(&id)
            && self.denials.len() < MAX_DENIALS
        {
            self.denials.push(Denial {
                tool: tool.name.clone(),
                item: Some(id.clone()),
                input: tool.input.clone(),
            });
        }
        let by_hook = event.rejection_source.as_deref() == Some("hook");
        let meta = by_hook.then(|| Raw::parse(r#"{"rejection_source":"hook"}"#.to_owned()));
        let result = ToolResult {
            content: reason.unwrap_or_else(|| Raw::of(&"User rejected the action")),
            is_error: true,
            structured: None,
            meta,
        };
        self.lifecycle
            .close_tool(cx, &id, Status::Denied, result, |_| ());
    }

    pub(super) fn agent_error<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let call = ItemId::new(event.tool_call_id.as_deref().unwrap_or_default().to_owned());
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
        self.settle(cx, &id, Decision::Allowed);
        subagents::call_ended(&mut self.lifecycle, cx, id.as_str(), status);
        if made_up.is_some() {
            return self.lifecycle.close(cx, &id, status, |_| ());
        }
        let result = ToolResult {
            content: error,
            is_error: true,
            structured: None,
            meta: None,
        };
        self.lifecycle.close_tool(cx, &id, status, result, |_| ());
    }

    /// What the agent meant to say last was not accepted: it goes on.
    fn not_done(&mut self, cx: &mut FrameContext<'_>, code: &'static str, why: Option<Raw<'_>>) {
        self.ending = None;
        let notice = Notice::new(
            Level::Warning,
            code,
            why.map(Text::from).unwrap_or_default(),
        );
        self.lifecycle.notice(cx, notice);
    }

    /// A call that another agent made over ACP: every card says all that is known by then.
    pub(super) fn card<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        let id = match event.tool_call_id.as_deref() {
            Some(id) => ItemId::new(id.to_owned()),
            None => ItemId::new(self.id(cx)),
        };
        if self.ended_cards.iter().any(|it| it == id.as_str()) {
            let notice = Notice {
                item: Some(id),
                ..Notice::new(
                    Level::Debug,
                    "late_card",
                    Text::new("a card after the last one of its call"),
                )
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
        let title = event.title.raw().map(Text::from);
        let kind = event.tool_kind.as_deref();
        let mut class = tools::classify_acp(None, kind, title, input.as_ref(), self.cwd.as_deref());
        let blocks = acp_tool_content::contents(event.content);
        if !blocks.diffs.is_empty() {
            class.diffs = blocks.diffs;
        }
        let known = self
            .lifecycle
            .open_tool(&id)
            .and_then(|it| it.input.clone());
        let mut tool = Tool {
            id: id.clone(),
            group: None,
            name: Cow::Owned(kind.unwrap_or("tool").to_owned()),
            input: input.or(known),
            class,
            server_side: false,
            result: None,
        };
        let Some(status) = status else {
            return self.lifecycle.update(cx, Item::Tool(Box::new(tool)));
        };
        tool.result = Some(result(event.raw_output, blocks.pieces, status));
        self.lifecycle
            .close_whole(cx, Item::Tool(Box::new(tool)), status);
        if self.ended_cards.len() >= MAX_CARDS {
            self.ended_cards.pop_front();
        }
        self.ended_cards.push_back(id.as_str().to_owned());
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
        content,
        is_error: status != Status::Ok,
        structured,
        meta: None,
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
    let text = arguments.0.map(Text::from_json);
    let text = text.as_ref().map(Text::to_str);
    if let Some(action) = fields.0
        && !text.as_deref().is_some_and(|it| is_more(it, action.get()))
        && let Some(fields) = without_kind(action.get())
    {
        *made = fields;
        return serde_json::from_str(made).ok();
    }
    let text = text?;
    *made = match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => text.into_owned(),
        Err(_) => serde_json::to_string(&text).ok()?,
    };
    serde_json::from_str(made).ok()
}

/// True when the arguments hold something the action does not; two of them OpenHands takes away.
fn is_more(arguments: &str, action: &str) -> bool {
    let Ok(arguments) = serde_json::from_str::<Map<'_, Any<'_>>>(arguments) else {
        return false;
    };
    let action: Map<'_, Any<'_>> = serde_json::from_str(action).unwrap_or_default();
    let has = |key: &str| action.0.iter().any(|(it, _)| it == key);
    arguments.0.iter().any(|(key, value)| {
        value.0.is_some() && !matches!(&**key, "security_risk" | "summary") && !has(key)
    })
}

/// The fields of an action; its kind is the tool's name over again.
fn without_kind(action: &str) -> Option<String> {
    let fields: Map<'_, Any<'_>> = serde_json::from_str(action).ok()?;
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
    let Some(new) = observation
        .new_content
        .0
        .filter(|_| !observation.is_error.is_true())
    else {
        return;
    };
    let path = observation
        .path
        .0
        .or(observation.file_path.0)
        .map(Text::from_json);
    let path = path.or_else(|| tool.class.paths.first().map(|it| it.path.clone()));
    let is_new = observation.prev_exist.0 == Some(false);
    let old = observation.old_content.0.map(Text::from_json);
    if old.is_none() && !is_new {
        return;
    }
    tool.class.change = Some(if is_new { Change::Add } else { Change::Update });
    if let Some(path) = path {
        tool.class.diffs = vec![Diff {
            path,
            old: old.filter(|_| !is_new),
            new: Text::from_json(new),
        }];
    }
}
