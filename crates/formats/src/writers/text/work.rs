//! What the agent does: calls, the agents they start, the questions they raise, and its plan.
//!
//! Live output shows each of these when it starts, and a reminder when something came in between; a
//! file gets a call, its decisions and its result in one piece.

use std::collections::HashMap;

use model::{
    Ask, AskSettled, ItemId, Losses, Plan, PlanEntry, PlanStatus, Status, Subagent, Text,
    Timestamp, Tool, ToolKind,
};

use super::page::{BOLD, BlockKind, DIM, Indent, MAGENTA, PLAIN, SafeText, YELLOW};
use super::{Transcript, calls};
use crate::writers::asks::OpenAsk;
use crate::writers::labels::label;
use crate::writers::summary;

#[derive(Clone, Debug)]
pub(super) struct TranscriptCall {
    pub(super) item: ItemId<'static>,
    is_announced: bool,
    /// When it began; later by as long as it waited for a person.
    began: Option<Timestamp>,
    /// When permission was requested.
    asked: Option<Timestamp>,
    pub(super) printed: String,
    /// The agent it started goes on when it has ended.
    in_background: bool,
    /// What that agent reported.
    report: Option<Text<'static>>,
    /// What was decided about it.
    decisions: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct TranscriptPlan {
    pub(super) item: ItemId<'static>,
    /// By their text, as they were written last.
    entries: HashMap<String, PlanStatus>,
}

impl TranscriptCall {
    fn new(item: &ItemId<'_>, began: Option<Timestamp>) -> Self {
        Self {
            item: item.clone().into_owned(),
            is_announced: false,
            began,
            asked: None,
            printed: String::new(),
            in_background: false,
            report: None,
            decisions: Vec::new(),
        }
    }

    /// How long it took, if that was long enough to notice.
    fn took(&self, status: Status, now: Option<Timestamp>) -> Option<String> {
        // What was denied did not run, and of what is lost only the end of the stream is known.
        if matches!(status, Status::Denied | Status::Lost) {
            return None;
        }
        let millis = millis_between(self.began, now)?;
        let millis = u64::try_from(millis).ok()?;
        (millis >= 1000).then(|| summary::duration(millis))
    }

    /// What to show under the headline.
    fn outcome(self, tool: &Tool<'_>, status: Status, losses: &mut Losses) -> String {
        let is_ok = status == Status::Ok;
        match self.report {
            Some(report) if is_ok => report.to_str().into_owned(),
            None if is_ok && self.in_background => "goes on in the background".to_owned(),
            Some(_) | None if tool.result.is_none() => self.printed,
            Some(_) | None => calls::result_text(tool, losses),
        }
    }
}

impl Transcript {
    pub(super) fn call_opened(&mut self, tool: &Tool<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        if !self.calls.iter().any(|it| it.item == tool.id) {
            self.calls.push(TranscriptCall::new(&tool.id, self.now));
        }
        self.call_updated(tool, path, out);
    }

    /// Announces a call once its input is known, if it has to be known before it ends.
    pub(super) fn call_updated(&mut self, tool: &Tool<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let has_followers = tool.class.kind == ToolKind::Task;
        let is_wanted = has_followers || self.live && tool.class.kind != ToolKind::Todo;
        if !is_wanted || tool.input.is_none() {
            return;
        }
        if has_followers {
            self.page.name_agent(&tool.id, &label(tool));
        }
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == tool.id)
            && !open.is_announced
        {
            open.is_announced = true;
            calls::announce(tool, None, path, &mut self.page, &mut self.losses, out);
        }
    }

    pub(super) fn call_closed(
        &mut self,
        tool: &Tool<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let open = at.map(|at| self.calls.remove(at));
        let is_announced = open.as_ref().is_some_and(|it| it.is_announced);
        let in_background = open.as_ref().is_some_and(|it| it.in_background);
        if !in_background {
            self.page.forget_agent(&tool.id);
        }
        let is_ok = status == Status::Ok;
        if tool.class.kind == ToolKind::Todo && is_ok {
            return self.losses.count("todo call");
        }
        if is_ok && is_announced && calls::speaks_for_itself(tool) {
            return self.losses.count("edit result");
        }
        let mut took = open.as_ref().and_then(|it| it.took(status, self.now));
        if !is_announced {
            let took = took.take();
            calls::announce(tool, took, path, &mut self.page, &mut self.losses, out);
        } else if !self.page.is_under(&tool.id) {
            let took = took.take();
            calls::remind(tool, took, path, &mut self.page, &mut self.losses, out);
        }
        self.page
            .resume(BlockKind::Call(tool.id.clone().into_owned()), path);
        for decision in open.iter().flat_map(|it| &it.decisions) {
            if status == Status::Denied && is_shown(decision, tool) {
                continue;
            }
            let line = format!("→ {decision}");
            self.page
                .line(Indent("  "), YELLOW, &SafeText::new(&line), out);
        }
        if is_ok && calls::speaks_for_itself(tool) {
            return self.losses.count("edit result");
        }
        let text = match open {
            Some(open) => open.outcome(tool, status, &mut self.losses),
            None => calls::result_text(tool, &mut self.losses),
        };
        let end = calls::CallEnd {
            status,
            exit_code: tool.class.exit_code.filter(|code| *code != 0),
            took,
        };
        calls::ending(&end, &text, &self.page, &mut self.losses, out);
    }

    /// Live output shows a question when it is asked.
    pub(super) fn on_ask(&mut self, ask: &Ask<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let open = OpenAsk::new(ask);
        let call = (self.calls.iter_mut()).find(|it| Some(&it.item) == open.call.as_ref());
        if let Some(call) = call {
            call.asked = self.now;
        }
        if self.live {
            open.write(path, &mut self.page, out);
        }
        self.asks.push(open);
    }

    /// In a file, a decision stands with the call it is about.
    pub(super) fn settled(
        &mut self,
        settled: &AskSettled<'_>,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        let Some(at) = self.asks.iter().position(|it| it.id == settled.id) else {
            return;
        };
        let ask = self.asks.remove(at);
        let mut call = (self.calls.iter_mut()).find(|it| Some(&it.item) == ask.call.as_ref());
        if let Some(call) = &mut call {
            // The asks may be timed by another clock than the calls, so only differences count.
            let waited = millis_between(call.asked.take(), self.now).unwrap_or_default();
            call.began = call.began.map(|it| it.plus_millis(waited.max(0)));
        }
        match call {
            Some(call) if !self.live => call.decisions.push(ask.decision(settled)),
            Some(_) | None => ask.settle(settled, path, &mut self.page, out),
        }
    }

    pub(super) fn agent_known(&mut self, agent: &Subagent<'_>) {
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.in_background = agent.background;
        }
    }

    /// The report of an agent goes under the call that started it, or stands alone when that has ended.
    pub(super) fn agent_closed(
        &mut self,
        agent: &Subagent<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.report = agent.report.clone().map(Text::into_owned);
            return;
        }
        if agent.background {
            calls::agent(agent, status, path, &mut self.page, &mut self.losses, out);
        }
        self.page.forget_agent(&agent.call);
    }

    /// Writes what is new in a plan.
    pub(super) fn plan(&mut self, plan: &Plan<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let at = self.plans.iter().position(|it| it.item == plan.id);
        let before = at.map(|at| self.plans.remove(at).entries);
        let before = before.unwrap_or_default();
        let mut entries = HashMap::new();
        let is_done = |it: &&PlanEntry<'_>| it.status == PlanStatus::Completed;
        let n_done = plan.entries.iter().filter(is_done).count();
        let heading = format!("▤ plan {n_done}/{}", plan.entries.len());
        self.page.begin(BlockKind::Text, path, out);
        self.page
            .line(Indent(""), MAGENTA, &SafeText::new(&heading), out);
        for entry in &plan.entries {
            let text = entry.text.to_str();
            if before.get(&*text) != Some(&entry.status) {
                self.plan_entry(&text, entry.status, out);
            }
            entries.insert(text.into_owned(), entry.status);
        }
        let item = plan.id.clone().into_owned();
        self.plans.push(TranscriptPlan { item, entries });
    }

    fn plan_entry(&self, text: &str, status: PlanStatus, out: &mut Vec<u8>) {
        let (mark, style) = match status {
            PlanStatus::Pending => ('☐', PLAIN),
            PlanStatus::InProgress => ('◐', BOLD),
            PlanStatus::Completed => ('☑', DIM),
        };
        let line = format!("{mark} {}", text.replace('\n', " "));
        self.page
            .line(Indent("  "), style, &SafeText::new(&line), out);
    }
}

fn millis_between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    to?.millis().checked_sub(from?.millis())
}

/// The result says that it was denied, and why.
fn is_shown(decision: &str, tool: &Tool<'_>) -> bool {
    let Some(reason) = decision.strip_prefix("denied") else {
        return false;
    };
    let result = calls::result_text(tool, &mut Losses::default());
    result.contains(reason.trim_start_matches(": "))
}
