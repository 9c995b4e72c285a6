//! What is no message: notices, sub-agents, compactions, plans.
//!
//! A notice of Claude Code holds its line, which is written as it was. What other agents tell becomes
//! the nearest line that there is.

use model::{
    Compaction, Event, ItemId, Level, Notice, Origin, Plan, PlanStatus, Raw, Status, Subagent,
    Text, Unmapped,
};
use serde::Serialize;

use super::Claude;
use crate::wire::claude::Line;
use crate::wire::claude::output::{
    CompactBody, CompactMetadata, InformationalBody, OutputBlock, StatusBody, TaskBody, TaskPhase,
    ToolUse, TurnFlags,
};
use crate::wire::lenient::read;
use crate::writers::{hash, line, take};

/// Something that Claude Code tells with a line of its own, if it is Claude Code: that line comes
/// with the next event of the frame.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Mode(String, Option<u64>),
    Agent(Box<Subagent<'static>>, Option<u64>),
}

impl Pending {
    fn frame(&self) -> Option<u64> {
        match self {
            Self::Mode(_, frame) | Self::Agent(_, frame) => *frame,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ClaudePlans {
    /// Of the last list that was written.
    written: u64,
    n_written: u64,
}

impl Claude {
    /// Writes what waits for a line of the agent, unless this event brings it.
    pub(super) fn release(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Some(pending) = &self.pending else { return };
        if let model::Body::NoticeRaised(notice) = &event.body
            && event.frame == pending.frame()
            && is_own_line(event, notice.detail.as_ref())
        {
            self.pending = None;
            return;
        }
        self.flush_pending(out);
    }

    pub(super) fn flush_pending(&mut self, out: &mut Vec<u8>) {
        match self.pending.take() {
            Some(Pending::Mode(mode, _)) => {
                let body = StatusBody {
                    status: None,
                    permission_mode: Some(&mode),
                };
                self.system("status", body, out);
            }
            Some(Pending::Agent(agent, _)) => self.task_started(&agent, out),
            None => (),
        }
    }

    pub(super) fn notice(&mut self, event: &Event<'_>, notice: &Notice<'_>, out: &mut Vec<u8>) {
        if let Some(detail) = &notice.detail
            && is_own_line(event, Some(detail))
        {
            if self.live.is_some() && is_control(detail) {
                // It was said to us, and not to our client.
                return;
            }
            if notice.code == "permission_denied" {
                let item = notice.item.clone();
                self.denied.extend(item.map(ItemId::into_owned));
            }
            self.begin_known(out);
            return line(out, detail);
        }
        let text = notice.text.to_str();
        match &*notice.code {
            // A message outside of a turn would be a turn of its own.
            _ if self.run.is_none() => self.remark(notice, out),
            "thinking_tokens" if !event.extra.is_empty() => {
                let fields = event.extra.iter().map(|(key, it)| (&**key, it));
                let body: std::collections::BTreeMap<&str, &Raw<'_>> = fields.collect();
                self.system("thinking_tokens", body, out);
            }
            "interrupted" if text.starts_with("Request interrupted") => {
                let text = Text::new(format!("[{text}]"));
                let block = OutputBlock::Text { text };
                self.user(event, [block], TurnFlags::default(), None, out);
            }
            "command_output" => {
                let text = format!("<local-command-stdout>{text}</local-command-stdout>");
                let flags = TurnFlags {
                    is_replay: true,
                    ..TurnFlags::default()
                };
                self.user(event, text, flags, None, out);
            }
            "api_error" => {
                let block = OutputBlock::Text {
                    text: notice.text.by_ref(),
                };
                let flags = TurnFlags {
                    is_api_error_message: true,
                    ..TurnFlags::default()
                };
                let id = format!("error_{}", event.seq);
                self.assistant(event, &id, [block], flags, out);
            }
            _ => self.remark(notice, out),
        }
    }

    /// A notice of any agent.
    fn remark(&mut self, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let level = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let content = &notice.text;
        let body = InformationalBody { content, level };
        self.system("informational", body, out);
    }

    pub(super) fn unmapped(
        &mut self,
        event: &Event<'_>,
        unmapped: &Unmapped<'_>,
        out: &mut Vec<u8>,
    ) {
        match self.live.is_none() && is_own_line(event, Some(&unmapped.raw)) {
            true => {
                self.begin_known(out);
                line(out, &unmapped.raw);
            }
            false => self.losses.count("unmapped frame"),
        }
    }

    pub(super) fn agent_opened(&mut self, event: &Event<'_>, agent: &Subagent<'_>) {
        let agent = Box::new(agent.clone().into_owned());
        self.pending = Some(Pending::Agent(agent, event.frame));
    }

    fn task_started(&mut self, agent: &Subagent<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        self.agents.push(agent.id.clone().into_owned());
        let or_empty = |it: &Option<Text<'static>>| it.clone().unwrap_or_default();
        let agent = agent.clone().into_owned();
        let phase = TaskPhase::Started {
            description: or_empty(&agent.description),
            task_type: "local_agent",
            subagent_type: &agent.name,
            prompt: or_empty(&agent.prompt),
            is_backgrounded: agent.background,
        };
        let body = TaskBody {
            task_id: agent.id.as_str(),
            tool_use_id: agent.call.as_str(),
            phase,
        };
        self.system("task_started", body, out);
    }

    pub(super) fn agent_closed(&mut self, agent: &Subagent<'_>, status: Status, out: &mut Vec<u8>) {
        let is_told = take(&mut self.agents, |it| *it == agent.id).is_some();
        if let Some(detail) = agent.detail.as_ref().filter(|it| is_line(it)) {
            return line(out, detail);
        }
        // Claude Code tells of the end of an agent in the background alone: any other's is the result of
        // its call.
        if !is_told {
            return;
        }
        let phase = TaskPhase::Ended {
            status: match status {
                Status::Ok => "completed",
                Status::Cancelled => "stopped",
                Status::Error | Status::Denied | Status::Lost => "failed",
            },
            summary: agent.report.as_ref().map_or(Text::EMPTY, Text::by_ref),
            output_file: "",
        };
        let body = TaskBody {
            task_id: agent.id.as_str(),
            tool_use_id: agent.call.as_str(),
            phase,
        };
        self.system("task_notification", body, out);
    }

    pub(super) fn compaction_opened(&mut self, _: &Compaction<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        let body = StatusBody {
            status: Some("compacting"),
            permission_mode: None,
        };
        self.system("status", body, out);
    }

    /// The conversation was cut.
    pub(super) fn compacted(&mut self, compaction: &Compaction<'_>, out: &mut Vec<u8>) {
        if let Some(detail) = compaction.detail.as_ref().filter(|it| is_line(it)) {
            line(out, detail);
        }
    }

    pub(super) fn compaction_closed(
        &mut self,
        event: &Event<'_>,
        compaction: &Compaction<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let is_own = compaction.detail.as_ref().is_some_and(is_line);
        if !is_own && status == Status::Ok {
            let compact_metadata = CompactMetadata {
                trigger: compaction.trigger.as_deref().unwrap_or("auto"),
                pre_tokens: compaction.tokens_before.unwrap_or_default(),
                post_tokens: compaction.tokens_after,
            };
            let body = CompactBody { compact_metadata };
            self.system("compact_boundary", body, out);
        }
        if let Some(summary) = &compaction.summary {
            let flags = TurnFlags {
                is_synthetic: true,
                ..TurnFlags::default()
            };
            self.user(event, summary, flags, None, out);
        }
    }

    /// A plan is what the calls of a tool leave; one that no call has changed gets such a call.
    pub(super) fn plan(&mut self, event: &Event<'_>, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if self.calls.iter().any(|it| it.is_of_plan) {
            self.plans.written = plan_hash(plan);
            return;
        }
        if self.plans.written == plan_hash(plan) {
            return;
        }
        self.plans.written = plan_hash(plan);
        self.plans.n_written += 1;
        let id = format!("{}_{}", plan.id, self.plans.n_written);
        let input = Raw::of(&TodoInput {
            todos: plan.entries.iter().map(Todo::new).collect(),
        });
        let call = OutputBlock::ToolUse(ToolUse {
            id: &id,
            name: "TodoWrite",
            input,
        });
        self.assistant(event, &id, [call], TurnFlags::default(), out);
        let result = OutputBlock::ToolResult {
            tool_use_id: &id,
            content: Raw::of(&"the plan was changed"),
            is_error: false,
        };
        self.user(event, [result], TurnFlags::default(), None, out);
    }
}

#[derive(Serialize)]
struct TodoInput<'a> {
    todos: Vec<Todo<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Todo<'a> {
    content: Text<'a>,
    status: &'static str,
    active_form: Text<'a>,
}

impl<'a> Todo<'a> {
    fn new(entry: &'a model::PlanEntry<'_>) -> Self {
        Self {
            content: entry.text.by_ref(),
            status: match entry.status {
                PlanStatus::Pending => "pending",
                PlanStatus::InProgress => "in_progress",
                PlanStatus::Completed => "completed",
            },
            active_form: entry.doing.as_ref().unwrap_or(&entry.text).by_ref(),
        }
    }
}

fn plan_hash(plan: &Plan<'_>) -> u64 {
    let todos: Vec<_> = plan.entries.iter().map(Todo::new).collect();
    hash(Raw::of(&todos).get())
}

/// A line that Claude Code printed, as opposed to one that it was sent.
fn is_own_line(event: &Event<'_>, raw: Option<&Raw<'_>>) -> bool {
    event.origin == Origin::Agent && raw.is_some_and(is_line)
}

/// A line of Claude Code that is no part of the conversation, so that it can stand anywhere. The others
/// are written from what the reader made of them.
fn is_line(raw: &Raw<'_>) -> bool {
    // Nearly every payload is none, and must not be parsed to know it.
    if !raw.get().starts_with('{') || !raw.get().contains("\"type\"") {
        return false;
    }
    let mut line = Line::default();
    if read(raw.get(), &mut line).is_err() {
        return false;
    }
    let Some(kind) = line.r#type.str() else {
        return false;
    };
    match &*kind {
        "assistant" | "user" | "stream_event" | "result" => false,
        "system" => line.subtype.str().is_some_and(|it| it != "init") && line.session_id.is_str(),
        "rate_limit_event" => true,
        "control_request" | "control_response" | "control_cancel_request" => true,
        // Later versions print other types.
        _ => line.session_id.is_str() && line.uuid.is_str(),
    }
}

fn is_control(raw: &Raw<'_>) -> bool {
    let mut line = Line::default();
    let is_read = read(raw.get(), &mut line).is_ok();
    is_read
        && line
            .r#type
            .str()
            .is_some_and(|it| it.starts_with("control"))
}
