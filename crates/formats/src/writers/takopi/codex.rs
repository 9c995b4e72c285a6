//! The shapes of takopi 0.22.3's own Codex runner, which is another program than its Claude runner.
//!
//! Facts: `runners/codex.py` of that version, and what it was seen to emit
//! (`fixtures/takopi/expected`). Every ThreadItem is an action under its own id; a patch is written
//! when it is done; calls of other agents and unknown items are left out.

use model::{
    Binding, Body, Event, Item, ItemClosed, ItemId, Level, Message, Notice, Outcome, Plan, Raw,
    Reasoning, RunEnded, SessionBound, Status, Text, Tool, ToolKind, Why,
};
use serde::Serialize;

use super::super::{find_extra, line};
use super::actions::Action;
use super::notes::{Note, plan_title};
use super::session::TakopiSession;
use super::{MAX_WAITING, Takopi, TakopiRun, end};
use crate::tools::FileChanges;
use crate::wire::codex;
use crate::wire::lenient::Str;
use crate::wire::scanner;
use crate::wire::takopi as wire;

/// A notice that came from a Codex item or line.
enum CodexNotice {
    Item(String),
    Line,
    /// linkspan's own.
    None,
}

impl Takopi {
    pub(super) fn codex_event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match &event.body {
            Body::SessionBound(bound) => self.codex_bound(event, bound, out),
            Body::RunStarted(_) => self.codex_run(event.why, out),
            Body::RunEnded(ended) => self.codex_ended(ended, out),
            Body::ItemOpened(item) => self.codex_item(item, wire::Phase::Started, event, out),
            Body::ItemUpdated(item) => self.codex_item(item, wire::Phase::Updated, event, out),
            Body::ItemClosed(closed) => self.codex_closed(closed, event, out),
            Body::NoticeRaised(notice) => self.codex_notice(notice, out),
            Body::ItemDelta(_) | Body::AskSettled(_) => (),
            Body::AskOpened(_) => self.losses.count("ask"),
            Body::UsageReported(_) => self.losses.count("usage report"),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn codex_bound(&mut self, event: &Event<'_>, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        if bound.how == Binding::Mismatch {
            return;
        }
        TakopiSession::learn(&mut self.session, event, bound);
        if self.run.is_open {
            self.codex_started(out);
        }
    }

    fn codex_started(&mut self, out: &mut Vec<u8>) {
        let Some(session) = &self.session else { return };
        if std::mem::replace(&mut self.run.has_started, true) {
            return;
        }
        let engine = &*self.engine;
        let value = &session.native;
        let started = wire::Started {
            engine,
            resume: wire::Resume { engine, value },
            // Codex' first line names no model, so that takopi has only this.
            title: Some("Codex"),
            meta: None,
        };
        line(out, &started);
    }

    fn codex_run(&mut self, why: Option<Why>, out: &mut Vec<u8>) {
        self.run.is_open = true;
        self.codex_started(out);
        self.release(out);
        if why.is_some() {
            return; // No line reported the start of a turn.
        }
        let id = format!("turn_{}", self.n_turns);
        // Takopi numbers turns over the whole stream, not per run.
        self.n_turns += 1;
        let title = Text::new("turn started");
        let action = wire::Action::new(&id, wire::Kind::Turn, title, wire::NoDetail {});
        line(out, &action.event(&self.engine, wire::Phase::Started, None));
    }

    fn codex_item(
        &mut self,
        item: &Item<'_>,
        phase: wire::Phase,
        event: &Event<'_>,
        out: &mut Vec<u8>,
    ) {
        match item {
            // An item that was never started is only completed.
            Item::Tool(_) if event.why == Some(Why::NeverOpened) => (),
            Item::Tool(tool) => self.codex_call(tool, phase, None, out),
            Item::Plan(plan) => self.codex_plan(plan, phase, out),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn codex_closed(&mut self, closed: &ItemClosed<'_>, event: &Event<'_>, out: &mut Vec<u8>) {
        let phase = wire::Phase::Completed;
        match &closed.item {
            Item::Tool(tool) if tool.result.is_some() => {
                self.codex_call(tool, phase, Some(closed.status), out);
            }
            Item::Plan(plan) if event.why.is_none() => self.codex_plan(plan, phase, out),
            // Takopi leaves open what Codex leaves open.
            Item::Tool(_) | Item::Plan(_) => (),
            Item::Message(message) => self.codex_message(message, event, out),
            Item::Reasoning(reasoning) => self.codex_reasoning(reasoning, out),
            Item::Subagent(_) => (),
            Item::Compaction(_) => self.losses.count("compaction"),
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn codex_call(
        &mut self,
        tool: &Tool<'_>,
        phase: wire::Phase,
        status: Option<Status>,
        out: &mut Vec<u8>,
    ) {
        let class = &tool.class;
        let title = || class.title.by_ref();
        match class.kind {
            ToolKind::Shell => {
                let title = class.command.as_ref().map_or_else(title, Text::by_ref);
                let detail = wire::CodexCommand {
                    // Takopi writes a null for a command without an exit code.
                    exit_code: status.map(|_| class.exit_code),
                    status: status.map(status_name),
                };
                self.codex_action(tool, wire::Kind::Command, title, detail, phase, status, out);
            }
            ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => {
                // Takopi's Codex runner writes a patch only when it is done.
                let Some(status) = status else { return };
                let changes = changes(tool);
                let paths: Vec<_> = changes.iter().map(|it| it.path.to_str()).collect();
                let title = Text::new(paths.join(", "));
                let detail = wire::CodexChanges {
                    changes,
                    status: status_name(status),
                };
                let kind = wire::Kind::FileChange;
                self.codex_action(tool, kind, title, detail, phase, Some(status), out);
            }
            ToolKind::Mcp => {
                let (server, name) = match &class.mcp {
                    Some(mcp) => (&*mcp.server, &*mcp.tool),
                    None => ("", &*tool.name),
                };
                let title = Text::new(format!("{server}.{name}"));
                let detail = mcp_detail(tool, server, name, status);
                self.codex_action(tool, wire::Kind::Tool, title, detail, phase, status, out);
            }
            ToolKind::WebSearch => {
                let query = class.query.as_ref().filter(|it| !it.is_blank());
                let title = query.map_or_else(title, Text::by_ref);
                let detail = wire::CodexSearch {
                    query: class.query.as_ref(),
                };
                let kind = wire::Kind::WebSearch;
                self.codex_action(tool, kind, title, detail, phase, status, out);
            }
            // Takopi's Codex runner does not know `collab_tool_call`.
            ToolKind::Task => self.losses.count("call of another agent"),
            ToolKind::Read
            | ToolKind::Search
            | ToolKind::Fetch
            | ToolKind::Todo
            | ToolKind::Ask
            | ToolKind::Think
            | ToolKind::Mode
            | ToolKind::Other => self.losses.count("unknown call"),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an action has this many parts")]
    fn codex_action(
        &mut self,
        tool: &Tool<'_>,
        kind: wire::Kind,
        title: Text<'_>,
        detail: impl Serialize,
        phase: wire::Phase,
        status: Option<Status>,
        out: &mut Vec<u8>,
    ) {
        let known = self.run.actions.iter().position(|it| it.id == tool.id);
        let (phase, title) = match (phase, known) {
            (wire::Phase::Completed, Some(at)) => {
                let action = self.run.actions.remove(at);
                // Only a search gets its query at its end.
                let is_kept = kind != wire::Kind::WebSearch;
                (phase, if is_kept { action.title } else { title })
            }
            (wire::Phase::Completed, None) => (phase, title),
            (wire::Phase::Started | wire::Phase::Updated, Some(at)) => {
                (wire::Phase::Updated, self.run.actions[at].title.clone())
            }
            (wire::Phase::Started | wire::Phase::Updated, None) => {
                self.run.actions.push(Action {
                    id: tool.id.clone().into_owned(),
                    kind,
                    title: title.clone().into_owned(),
                });
                (wire::Phase::Started, title)
            }
        };
        let action = wire::Action::new(tool.id.as_str(), kind, title, detail);
        let ok = status.map(|it| it == Status::Ok);
        line(out, &action.event(&self.engine, phase, ok));
    }

    fn codex_plan(&self, plan: &Plan<'_>, phase: wire::Phase, out: &mut Vec<u8>) {
        let (title, detail) = plan_title(plan);
        let id = plan.id.as_str();
        let action = wire::Action::new(id, wire::Kind::Note, Text::new(title), detail);
        let ok = (phase == wire::Phase::Completed).then_some(true);
        line(out, &action.event(&self.engine, phase, ok));
    }

    fn codex_message(&mut self, message: &Message<'_>, event: &Event<'_>, out: &mut Vec<u8>) {
        let phase = find_extra(&event.extra, "phase");
        let phase: Option<Str<'_>> = phase.and_then(|it| scanner::from_str(it.get()).ok());
        if phase.as_ref().and_then(Str::as_deref) != Some("commentary") {
            return self.message(event, message);
        }
        let detail = wire::CodexPhase {
            phase: "commentary",
        };
        self.codex_note(&message.id, message.text.by_ref(), detail, out);
    }

    fn codex_reasoning(&mut self, reasoning: &Reasoning<'_>, out: &mut Vec<u8>) {
        let text = reasoning.text.by_ref();
        self.codex_note(&reasoning.id, text, wire::NoDetail {}, out);
    }

    fn codex_note(
        &self,
        id: &ItemId<'_>,
        title: Text<'_>,
        detail: impl Serialize,
        out: &mut Vec<u8>,
    ) {
        let action = wire::Action::new(id.as_str(), wire::Kind::Note, title, detail);
        line(
            out,
            &action.event(&self.engine, wire::Phase::Completed, Some(true)),
        );
    }

    fn codex_notice(&mut self, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let level = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info => return self.losses.count("info notice"),
            // To takopi's Codex runner, whatever ends nothing is a warning.
            Level::Warning | Level::Error => wire::Level::Warning,
        };
        match codex_source(notice) {
            CodexNotice::Item(id) => self.codex_warning(&id, notice, level, out),
            CodexNotice::Line if &*notice.code == "api_retry" => self.codex_retry(notice, out),
            CodexNotice::Line => {
                let title = notice.text.by_ref();
                self.note(out, Note::new(level, title, wire::NoDetail {}));
            }
            CodexNotice::None => self.losses.count("warning"),
        }
    }

    /// An `error` item; it may come before any run.
    fn codex_warning(
        &mut self,
        id: &str,
        notice: &Notice<'_>,
        level: wire::Level,
        out: &mut Vec<u8>,
    ) {
        let detail = wire::CodexError {
            message: &notice.text,
        };
        let action = wire::Action::new(id, wire::Kind::Warning, notice.text.by_ref(), detail);
        let event = wire::ActionEvent {
            message: Some(notice.text.by_ref()),
            level: Some(level),
            ..action.event(&self.engine, wire::Phase::Completed, Some(false))
        };
        if self.run.is_open {
            line(out, &event);
        } else if self.waiting.len() <= MAX_WAITING {
            line(&mut self.waiting, &event);
            self.n_waiting += 1;
        } else {
            self.losses.count("notice outside a run");
        }
    }

    /// `Reconnecting... 1/5`: one action, updated with every attempt.
    fn codex_retry(&mut self, notice: &Notice<'_>, out: &mut Vec<u8>) {
        if !self.run.is_open {
            return self.losses.count("notice outside a run");
        }
        let text = notice.text.to_str();
        let digits = |text: &str| -> Option<u64> {
            let end = text.find(|it: char| !it.is_ascii_digit());
            text[..end.unwrap_or(text.len())].parse().ok()
        };
        let numbers = text.strip_prefix("Reconnecting... ").unwrap_or_default();
        let max = numbers.split_once('/').and_then(|(_, max)| digits(max));
        let phase = match std::mem::replace(&mut self.run.is_retrying, true) {
            true => wire::Phase::Updated,
            false => wire::Phase::Started,
        };
        let attempt = digits(numbers);
        let detail = wire::CodexRetry { attempt, max };
        let title = notice.text.by_ref();
        let action = wire::Action::new("codex.reconnect", wire::Kind::Note, title, detail);
        let event = wire::ActionEvent {
            level: Some(wire::Level::Info),
            ..action.event(&self.engine, phase, None)
        };
        line(out, &event);
    }

    fn codex_ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.codex_started(out);
        let mut error = end::error(ended);
        if ended.error.as_ref().is_some_and(|it| it.code == "crashed") {
            // Takopi ends the message about an exit code with a full stop, and repeats it as a warning.
            let words = error.unwrap_or_default().to_str().into_owned() + ".";
            let title = Text::new(words.clone());
            let note = Note::new(wire::Level::Warning, title, wire::NoDetail {});
            self.note(out, note);
            error = Some(Text::new(words));
        }
        let is_completed = ended.outcome == Outcome::Completed;
        let completed = wire::Completed {
            // Codex counts nothing for a turn that failed.
            usage: usage(ended).filter(|_| is_completed),
            ..self.completed(end::answer(ended), error)
        };
        line(out, &completed);
        self.run = TakopiRun::default();
    }
}

fn codex_source(notice: &Notice<'_>) -> CodexNotice {
    let Some(detail) = &notice.detail else {
        return CodexNotice::None;
    };
    let line: codex::Item<'_> = scanner::from_str(detail.get()).unwrap_or_default();
    match (line.r#type.as_deref(), line.id.0) {
        (Some("error"), Some(id)) => CodexNotice::Item(id.into_owned()),
        (Some("error"), None) => CodexNotice::Line,
        _ => CodexNotice::None,
    }
}

/// How a call ended, in the terms of Codex.
fn status_name(status: Status) -> &'static str {
    match status {
        Status::Ok => "completed",
        Status::Denied => "declined",
        Status::Error | Status::Cancelled | Status::Lost => "failed",
    }
}

/// What a patch over several files does to each.
pub(super) fn changes<'t>(tool: &'t Tool<'_>) -> Vec<wire::Change<'t>> {
    let input = tool.input.as_ref().map_or("null", Raw::get);
    let input: FileChanges<'t> = scanner::from_str(input).unwrap_or_default();
    let changes = input.changes.0.into_iter().filter_map(|it| {
        let kind = super::tools::change_kind(it.change());
        let path = Text::from(it.path.raw()?);
        Some(wire::Change { path, kind })
    });
    changes.collect()
}

fn mcp_detail<'t>(
    tool: &'t Tool<'_>,
    server: &'t str,
    name: &'t str,
    status: Option<Status>,
) -> wire::CodexMcp<'t> {
    let result = tool.result.as_ref().filter(|_| status.is_some());
    let blocks = result
        .and_then(|it| serde_json::from_str::<Vec<serde::de::IgnoredAny>>(it.content.get()).ok());
    let error = result.filter(|it| it.is_error && it.content.is_string());
    wire::CodexMcp {
        server,
        tool: name,
        status: status.map_or("in_progress", status_name),
        arguments: tool.input.as_ref(),
        result_summary: blocks.map(|it| wire::CodexSummary {
            content_blocks: it.len(),
            has_structured: result.is_some_and(|it| it.structured.is_some()),
        }),
        error_message: error.map(|it| Text::from(it.content.by_ref())),
    }
}

/// The three counts that takopi knows.
fn usage<'a>(ended: &'a RunEnded<'_>) -> Option<Raw<'a>> {
    let detail = ended.usage.as_ref()?.detail.as_ref()?;
    let usage: codex::Usage<'_> = scanner::from_str(detail.get()).ok()?;
    usage.input.0?;
    Some(Raw::of(&wire::CodexUsage {
        input_tokens: usage.input.as_u64(),
        cached_input_tokens: usage.cached.as_u64(),
        output_tokens: usage.output.as_u64(),
    }))
}
