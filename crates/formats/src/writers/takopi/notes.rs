//! Actions that are no tool calls: thinking, plans, compactions, warnings and other notes.

use model::{
    Compaction, Event, ItemId, Level, Notice, Plan, PlanEntry, PlanStatus, Reasoning, Status, Text,
    Unmapped,
};
use serde::Serialize;

use super::super::line;
use super::{DeniedCall, MAX_DENIED, MAX_WAITING, Takopi, TakopiProfile, next_id};
use crate::wire::takopi as wire;

/// An action that is completed at once.
pub(super) struct Note<'a, D> {
    level: wire::Level,
    title: Text<'a>,
    detail: D,
}

impl<'a, D> Note<'a, D> {
    pub(super) fn new(level: wire::Level, title: Text<'a>, detail: D) -> Self {
        Self {
            level,
            title,
            detail,
        }
    }
}

impl Takopi {
    pub(super) fn reasoning(
        &mut self,
        event: &Event<'_>,
        reasoning: &Reasoning<'_>,
        out: &mut Vec<u8>,
    ) {
        if reasoning.text.is_empty() {
            if reasoning.encrypted.is_some() {
                self.losses.count("hidden thinking");
            }
            return;
        }
        let is_upstream = self.profile == TakopiProfile::Upstream;
        // Takopi's decoder requires a signature, and drops the block without one.
        if is_upstream && reasoning.signature.is_none() {
            return self.losses.count("thinking without signature");
        }
        // Takopi counts thoughts and notes together.
        let id = next_id(&self.engine, "thinking", &mut self.run.n_notes);
        let detail = wire::ThinkingDetail {
            message_id: reasoning.group.as_deref().filter(|_| !is_upstream),
            parent_tool_use_id: event.path.last().map(ItemId::as_str),
            signature: reasoning.signature.as_ref(),
        };
        let action = wire::Action::new(&id, wire::Kind::Note, reasoning.text.by_ref(), detail);
        line(
            out,
            &action.event(&self.engine, wire::Phase::Completed, Some(true)),
        );
    }

    /// How far the plan has come; an action of its own each time, because an action keeps its title.
    pub(super) fn plan(&mut self, plan: &Plan<'_>, out: &mut Vec<u8>) {
        if self.profile != TakopiProfile::Debug {
            return self.losses.count("plan update");
        }
        let (title, detail) = plan_title(plan);
        let title = Text::new(title);
        self.note(out, Note::new(wire::Level::Info, title, detail));
    }

    pub(super) fn compaction(
        &mut self,
        compaction: &Compaction<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        if self.profile == TakopiProfile::Upstream {
            return self.losses.count("compaction");
        }
        let detail = wire::CompactionDetail {
            trigger: compaction.trigger.as_deref(),
            tokens_before: compaction.tokens_before,
            tokens_after: compaction.tokens_after,
            summary: compaction.summary.as_ref(),
        };
        let title = Text::new("conversation compacted");
        let action = wire::Action::new(compaction.id.as_str(), wire::Kind::Note, title, detail);
        let ok = Some(status == Status::Ok);
        line(out, &action.event(&self.engine, wire::Phase::Completed, ok));
    }

    pub(super) fn notice(&mut self, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let is_upstream = self.profile == TakopiProfile::Upstream;
        let is_denial = notice.code == "permission_denied";
        if is_denial && !is_upstream && self.run.is_open && self.run.denied.len() < MAX_DENIED {
            let item = notice.item.clone().map(ItemId::into_owned);
            let text = notice.text.clone().into_owned();
            // Written at the end, unless the end has the same denial with its input.
            self.run.denied.push(DeniedCall { item, text });
            return;
        }
        let level = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info if self.profile != TakopiProfile::Debug => {
                return self.losses.count("info notice");
            }
            Level::Warning | Level::Error if is_upstream => return self.losses.count("warning"),
            Level::Info => wire::Level::Info,
            Level::Warning => wire::Level::Warning,
            Level::Error => wire::Level::Error,
        };
        let detail = wire::NoticeDetail {
            code: &notice.code,
            tool_use_id: notice.item.as_ref().map(ItemId::as_str),
            data: notice.detail.as_ref(),
        };
        self.note(out, Note::new(level, notice.text.by_ref(), detail));
    }

    pub(super) fn unmapped(&mut self, unmapped: &Unmapped<'_>, out: &mut Vec<u8>) {
        if self.profile != TakopiProfile::Debug {
            return self.losses.count("unmapped frame");
        }
        let title = Text::new(format!("unmapped: {}", unmapped.what));
        let detail = wire::RawDetail { raw: &unmapped.raw };
        self.note(out, Note::new(wire::Level::Debug, title, detail));
    }

    /// Writes a note of linkspan's or the agent's; between runs it waits for the next one.
    pub(super) fn note<D: Serialize>(&mut self, out: &mut Vec<u8>, note: Note<'_, D>) {
        let is_bad = matches!(note.level, wire::Level::Warning | wire::Level::Error);
        let has_run = self.run.is_open || self.run.has_started;
        if !has_run && self.waiting.len() > MAX_WAITING {
            return self.losses.count("notice outside a run");
        }
        let id = next_id(&self.engine, "note", &mut self.run.n_notes);
        let kind = match is_bad {
            true => wire::Kind::Warning,
            false => wire::Kind::Note,
        };
        let action = wire::Action::new(&id, kind, note.title.by_ref(), note.detail);
        let event = wire::ActionEvent {
            message: is_bad.then(|| note.title.by_ref()),
            level: Some(note.level),
            ..action.event(&self.engine, wire::Phase::Completed, Some(!is_bad))
        };
        // Takopi attaches an action to a run, so that a note between runs would be lost.
        line(if has_run { out } else { &mut self.waiting }, &event);
        self.n_waiting += usize::from(!has_run);
    }
}

/// How far a plan has come, in words and in numbers.
pub(super) fn plan_title(plan: &Plan<'_>) -> (String, wire::PlanDetail) {
    let is_done = |it: &&PlanEntry<'_>| it.status == PlanStatus::Completed;
    let done = plan.entries.iter().filter(is_done).count();
    let total = plan.entries.len();
    let title = match plan.entries.iter().find(|it| !is_done(it)) {
        Some(next) => format!("todo {done}/{total}: {}", next.text),
        None if total == 0 => "todo".to_owned(),
        None => format!("todo {done}/{total}: done"),
    };
    (title, wire::PlanDetail { done, total })
}
