//! AG-UI streams: 1.0, the `THINKING_*` era before it, chunk events, and what our own writer adds.
//!
//! As server-sent events or as JSON lines. More is accepted than the real client does: a piece of
//! something that was never started starts it, and a run without an end is lost, not invalid.

mod chunks;
mod custom;
mod end;
mod messages;
mod subagents;
mod texts;
mod tools;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::{
    Cause, Item, ItemId, Level, Notice, Other, Plan, PlanEntry, Raw, RunEnded, Status, Text,
    Timestamp,
};

use self::chunks::Chunk;
use self::subagents::AgUiSubagent;
use self::texts::AgUiTexts;
use self::tools::AgUiCalls;
use super::lifecycle::{FrameContext, Lifecycle, SeenIds};
use super::machine::MessageReader;
use super::recent::Recent;
use super::{input, plans, session_tracker};
use crate::wire::ag_ui::inbound::{self as wire, Line};
use crate::wire::lenient::{Any, Object as _};
use crate::wire::scanner;

/// Things of one kind that are remembered while they are open.
const MAX_OPEN: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct AgUi {
    lifecycle: Lifecycle,
    cwd: Option<String>,
    texts: AgUiTexts,
    calls: AgUiCalls,
    /// Each agent has one open chunk at a time.
    chunks: Vec<Chunk>,
    subagents: Recent<AgUiSubagent, MAX_OPEN>,
    /// Plans and activities, by the name they have here.
    activities: Recent<(String, ItemId<'static>), MAX_OPEN>,
    /// Messages and calls that were shown before a snapshot repeats them.
    shown: SeenIds,
}

impl AgUi {
    fn event<'c>(&mut self, cx: &mut FrameContext<'c>, kind: &str, mut line: Line<'c>) {
        // The hidden form of a thought may follow its end, but nothing else comes between them.
        if !kind.starts_with("REASONING_") {
            self.close_ended_thoughts(cx);
        }
        // Chunks have no end event: whatever else their agent does ends them.
        self.end_chunks_before(cx, kind, line.subagent_run_id.as_deref());
        if self.lifecycle.is_over() && is_of_run(kind) {
            return self.lifecycle.after_end(cx);
        }
        match kind {
            "TEXT_MESSAGE_CONTENT" => self.text_content(cx, &line),
            "TEXT_MESSAGE_START" => self.text_start(cx, &mut line),
            "TEXT_MESSAGE_END" => self.text_end(cx, &line),
            "TEXT_MESSAGE_CHUNK" => self.text_chunk(cx, &mut line),
            "TOOL_CALL_START" => self.call_start(cx, &mut line),
            "TOOL_CALL_ARGS" => self.call_args(cx, &line),
            "TOOL_CALL_END" => self.call_end(cx, line.tool_call_id.as_deref()),
            "TOOL_CALL_CHUNK" => self.call_chunk(cx, &mut line),
            "TOOL_CALL_RESULT" => self.call_result(cx, &mut line),
            "REASONING_START" => self.span_start(cx, &line),
            "REASONING_END" => self.span_end(cx, &line),
            "REASONING_MESSAGE_START" => self.thought_start(cx, &line),
            "REASONING_MESSAGE_CONTENT" => self.thought_content(cx, &line),
            "REASONING_MESSAGE_END" => self.thought_end(cx, &line),
            "REASONING_MESSAGE_CHUNK" => self.thought_chunk(cx, &mut line),
            "REASONING_ENCRYPTED_VALUE" => self.hidden_value(cx, &line),
            "THINKING_START" | "THINKING_TEXT_MESSAGE_START" => self.thinking_start(cx, kind),
            "THINKING_TEXT_MESSAGE_CONTENT" => self.thinking_content(cx, &line),
            "THINKING_TEXT_MESSAGE_END" | "THINKING_END" => self.thinking_end(cx),
            "RUN_STARTED" => self.run_started(cx, &mut line),
            "RUN_FINISHED" => self.run_finished(cx, &mut line),
            "RUN_ERROR" => self.run_error(cx, &mut line),
            "STEP_STARTED" | "STEP_FINISHED" => self.step(cx, kind, &mut line),
            "STATE_SNAPSHOT" => self.state(cx, "state_snapshot", line.snapshot),
            "STATE_DELTA" => self.state(cx, "state_delta", line.delta),
            "ACTIVITY_SNAPSHOT" => self.activity(cx, &mut line),
            "ACTIVITY_DELTA" => self.state(cx, "activity_delta", line.patch),
            "MESSAGES_SNAPSHOT" => self.snapshot(cx, line.messages),
            "SUBAGENT_STARTED" => self.subagent_started(cx, &mut line),
            "SUBAGENT_FINISHED" => self.subagent_finished(cx, &mut line),
            "SUBAGENT_ERROR" => self.subagent_error(cx, &mut line),
            "RAW" => {
                let source = line.source.as_deref().unwrap_or("another protocol");
                let json = line.event.0.map_or("null", |it| it.get());
                let what = format!("raw event of {source}");
                self.lifecycle.unmapped_part(cx, what, json);
            }
            "CUSTOM" => self.custom(cx, &mut line),
            _ => self.lifecycle.unmapped(cx, format!("type `{kind}`")),
        }
    }

    fn run_started<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        // Pieces before the first announcement belong to the run that it announces.
        if self.lifecycle.session.id().is_some() {
            self.end_unfinished(cx);
        }
        let input: wire::Input<'c> = line.input.parse().unwrap_or_default();
        cx.keep("input", line.input);
        self.keep_metadata(cx, line.metadata);
        cx.native = line.run_id.take();
        if let Some(thread) = line.thread_id.take()
            && !self.bind(cx, &thread)
        {
            return;
        }
        self.lifecycle.start_run(cx, Cause::Prompt);
        self.show_prompt(cx, input.messages);
    }

    /// Introduces the thread; false when it is not the one that was asked for.
    fn bind(&mut self, cx: &mut FrameContext<'_>, thread: &str) -> bool {
        let is_accepted = self.accepts_session(cx, thread);
        if is_accepted && !self.lifecycle.session.is_bound() {
            self.lifecycle.bind(cx, session_tracker::bound(thread));
        }
        is_accepted
    }

    /// A step has a name and no id.
    fn step<'c>(&mut self, cx: &mut FrameContext<'c>, kind: &str, line: &mut Line<'c>) {
        let name = line.step_name.take().unwrap_or_default();
        let lane = line.subagent_run_id.as_deref().unwrap_or_default();
        // Steps of two agents may have one name.
        let key = ItemId::new(format!("step {lane}/{name}"));
        if kind == "STEP_FINISHED" && self.lifecycle.is_open(&key) {
            return self.lifecycle.close(cx, &key, Status::Ok, |_| ());
        }
        let step = Item::Other(Other {
            id: key,
            name: Cow::Borrowed("step"),
            data: Raw::of(&serde_json::json!({"stepName": name})),
            text: Some(Text::Plain(name)),
        });
        match kind {
            "STEP_STARTED" => self.lifecycle.open(cx, step),
            _ => self.lifecycle.close_whole(cx, step, Status::Ok),
        }
    }

    /// The application's own state: kept, not understood.
    fn state<'c>(&mut self, cx: &mut FrameContext<'c>, code: &'static str, detail: Any<'c>) {
        let notice = Notice {
            detail: detail.raw(),
            ..Notice::new(Level::Debug, code, Text::new(code))
        };
        self.lifecycle.notice(cx, notice);
    }

    fn activity<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let meta = metadata(line.metadata);
        let name = line.activity_type.take().unwrap_or_default();
        let id = line.message_id.take().unwrap_or_default();
        let key = self.activity_key(&id);
        let data = line.content.raw().unwrap_or_else(|| Raw::of(&()));
        if name == "PLAN"
            && let Some(plan) = plan(&key, line.content)
        {
            return self.lifecycle.update(cx, plan);
        }
        let item = Item::Other(Other {
            id: key,
            name,
            text: meta.linkspan.text.text(),
            data,
        });
        // Only our own writer tells when an activity ends.
        match meta.linkspan.status.as_deref().map(status) {
            Some(status) => {
                self.lifecycle.close_whole(cx, item, status);
                self.activities.retain(|it| it.0 != *id);
            }
            None => self.lifecycle.update(cx, item),
        }
    }

    /// Messages, calls and activities may share an id; items may not.
    fn activity_key(&mut self, id: &str) -> ItemId<'static> {
        let known = self.activities.iter().rfind(|it| it.0 == id);
        if let Some((_, key)) = known {
            return key.clone();
        }
        let key = self.free_key(id, "activity");
        self.activities.push((id.to_owned(), key.clone()));
        key
    }

    /// The id itself, unless something of another kind is open under it.
    fn free_key(&self, id: &str, kind: &str) -> ItemId<'static> {
        let key = ItemId::new(id.to_owned());
        if self.lifecycle.is_open(&key) {
            ItemId::new(format!("{kind}:{id}"))
        } else {
            key
        }
    }

    /// What the metadata says besides what is read from it.
    fn keep_metadata<'c>(&mut self, cx: &mut FrameContext<'c>, metadata: Any<'c>) {
        let mut meta = self::metadata(metadata);
        cx.keep("phase", meta.phase);
        cx.keep("refusal", meta.refusal);
        if !meta.extra().is_empty() {
            cx.keep("metadata", metadata);
        }
    }

    /// An event about something that is not open, or is already.
    fn late(&mut self, cx: &mut FrameContext<'_>, text: &'static str) {
        self.lifecycle.raise(cx, Level::Debug, "late", text);
    }

    fn forget_run(&mut self) {
        self.texts.forget_run();
        self.calls = AgUiCalls::default();
        self.subagents.clear();
        self.activities.clear();
    }
}

impl MessageReader for AgUi {
    const ENGINE: &str = "ag-ui";
    const AGENT: &str = "the agent";
    const ANNOUNCES_TURNS: bool = true;

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, "an AG-UI event", &mut line) {
            return;
        }
        if let Some(millis) = line.timestamp.0 {
            cx.at = Some(Timestamp::from_millis(millis as i64));
        }
        let Some(kind) = line.r#type.take() else {
            return self.lifecycle.unmapped(cx, "no type");
        };
        // The events of a sub-agent's own life name its run, but happen in the agent around it.
        if !kind.starts_with("SUBAGENT_") {
            self.enter(cx, line.subagent_run_id.as_deref());
        }
        self.event(cx, &kind, line);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.lifecycle.end_run(cx, ended);
        self.forget_run();
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.end_chunks(cx);
        self.close_ended_thoughts(cx);
    }
}

/// True for an event of what happens within a run; states, snapshots and ends have rules of their own.
fn is_of_run(kind: &str) -> bool {
    let kinds = [
        "TEXT_",
        "TOOL_",
        "REASONING_",
        "THINKING_",
        "SUBAGENT_",
        "ACTIVITY_",
        "STEP_",
    ];
    kinds.iter().any(|it| kind.starts_with(it))
}

/// True when the line can only be an AG-UI event.
pub(crate) fn recognises(line: &str) -> bool {
    let Ok(mut line) = scanner::from_str::<Line<'_>>(line) else {
        return false;
    };
    let kind = line.r#type.take().unwrap_or_default();
    match &*kind {
        "RAW" => line.event.0.is_some(),
        "CUSTOM" => line.value.0.is_some(),
        "STATE_SNAPSHOT" | "STATE_DELTA" | "MESSAGES_SNAPSHOT" => true,
        kind => [
            "RUN_",
            "STEP_",
            "TEXT_MESSAGE_",
            "TOOL_CALL_",
            "REASONING_",
            "THINKING_",
            "ACTIVITY_",
            "SUBAGENT_",
        ]
        .iter()
        .any(|it| kind.starts_with(it)),
    }
}

fn metadata(value: Any<'_>) -> wire::Metadata<'_> {
    value.parse().unwrap_or_default()
}

fn status(name: &str) -> Status {
    match name {
        "ok" => Status::Ok,
        "denied" => Status::Denied,
        "cancelled" => Status::Cancelled,
        "lost" => Status::Lost,
        _ => Status::Error,
    }
}

fn plan<'c>(id: &ItemId<'static>, content: Any<'c>) -> Option<Item<'c>> {
    let plan: wire::Plan<'c> = content.parse()?;
    let entries = plan.entries.0.into_iter().map(|it| {
        let text = it.content.text().unwrap_or_default();
        PlanEntry {
            doing: it.doing.text(),
            ..PlanEntry::new(text, plans::status(it.status.as_deref()))
        }
    });
    Some(Item::Plan(Plan {
        id: id.clone(),
        entries: entries.collect(),
    }))
}
