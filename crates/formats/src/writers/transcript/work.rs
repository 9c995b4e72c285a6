//! What the agent does: its calls, the agents they start, the asks they raise, and its plan.

use model::{
    Ask, AskSettled, ItemId, Plan, PlanStatus, Status, Subagent, Text, Timestamp, Tool, ToolKind,
};

use super::{ClosedCall, Layout, Place, PlanDisplay, Transcript};
use crate::writers::asks::OpenAsk;
use crate::writers::labels::label_and_target;
use crate::writers::{summary, take};

/// The duration of shorter calls is not shown.
const NOTICEABLE_MS: u64 = 1000;

/// A call that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(crate) item: ItemId<'static>,
    /// A live layout has shown it.
    pub(crate) is_announced: bool,
    /// When it began; later by as long as it waited for a person.
    began: Option<Timestamp>,
    /// When permission was requested.
    asked: Option<Timestamp>,
    pub(crate) printed: String,
    /// The name of the agent it starts, and its subject.
    pub(crate) agent_label: Option<(String, Option<String>)>,
    /// The agent it started outlives it.
    pub(crate) in_background: bool,
    /// What that agent reported.
    pub(crate) report: Option<String>,
    /// What was decided about it.
    pub(crate) decisions: Vec<String>,
}

/// A plan as it was shown last.
#[derive(Clone, Debug)]
pub(crate) struct ShownPlan {
    item: ItemId<'static>,
    is_whole: bool,
    pub(crate) entries: Vec<(String, PlanStatus)>,
}

impl OpenCall {
    fn new(item: &ItemId<'_>, began: Option<Timestamp>) -> Self {
        Self {
            item: item.clone().into_owned(),
            is_announced: false,
            began,
            asked: None,
            printed: String::new(),
            agent_label: None,
            in_background: false,
            report: None,
            decisions: Vec::new(),
        }
    }

    fn took(&self, status: Status, now: Option<Timestamp>) -> Option<String> {
        // What was denied did not run, and of what is lost only the end of the stream is known.
        if matches!(status, Status::Denied | Status::Lost) {
            return None;
        }
        let millis = u64::try_from(millis_between(self.began, now)?).ok()?;
        (millis >= NOTICEABLE_MS).then(|| summary::duration(millis))
    }
}

impl<L: Layout> Transcript<L> {
    pub(super) fn call_known(&mut self, tool: &Tool<'_>, place: &mut Place<'_>) {
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let at = at.unwrap_or_else(|| {
            self.calls.push(OpenCall::new(&tool.id, self.now));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if tool.class.kind == ToolKind::Task {
            call.agent_label = Some(label_and_target(tool));
        }
        self.layout.call_known(tool, call, place);
    }

    pub(super) fn call_closed(&mut self, tool: &Tool<'_>, status: Status, place: &mut Place<'_>) {
        let open = take(&mut self.calls, |it| it.item == tool.id);
        let open = open.unwrap_or_else(|| OpenCall::new(&tool.id, None));
        let took = open.took(status, self.now);
        let closed = ClosedCall {
            tool,
            status,
            open,
            took,
        };
        self.layout.call_closed(closed, place);
    }

    pub(super) fn agent_known(&mut self, agent: &Subagent<'_>, place: &Place<'_>) {
        let mut call = self.calls.iter_mut().find(|it| it.item == agent.call);
        if let Some(call) = &mut call {
            call.in_background = agent.background;
        }
        self.layout.agent_known(agent, call.as_deref(), place);
    }

    /// The report of an agent is what its call returns; only one that went on after that has its own.
    pub(super) fn agent_closed(
        &mut self,
        agent: &Subagent<'_>,
        status: Status,
        place: &mut Place<'_>,
    ) {
        if let Some(call) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            call.report = agent.report.as_ref().map(Text::to_string);
            return;
        }
        self.layout.agent_closed(agent, status, place);
    }

    pub(super) fn ask_opened(&mut self, ask: &Ask<'_>, place: &mut Place<'_>) {
        let ask = OpenAsk::new(ask);
        if let Some(call) = find_call(&mut self.calls, &ask) {
            call.asked = self.now;
        }
        self.layout.ask_opened(&ask, place);
        self.asks.push(ask);
    }

    /// A decision stands with the call it is about, unless that was shown before.
    pub(super) fn ask_settled(&mut self, settled: &AskSettled<'_>, place: &mut Place<'_>) {
        let Some(ask) = take(&mut self.asks, |it| it.id == settled.id) else {
            return;
        };
        let mut call = find_call(&mut self.calls, &ask);
        if let Some(call) = &mut call {
            // The asks may be timed by another clock than the calls, so only differences count.
            let waited = millis_between(call.asked.take(), self.now).unwrap_or_default();
            call.began = call.began.map(|it| it.plus_millis(waited.max(0)));
        }
        match call {
            Some(call) if !self.layout.is_live() => call.decisions.push(ask.decision(settled)),
            Some(_) | None => self.layout.ask_settled(&ask, settled, place),
        }
    }

    /// The first list and a finished one are shown whole, the steps between in short.
    pub(super) fn plan(&mut self, plan: &Plan<'_>, place: &mut Place<'_>) {
        let entries = entries(plan);
        let before = self.take_plan(plan);
        let is_new = before.as_ref().is_none_or(|it| it.entries.is_empty());
        let is_same = before.as_ref().is_some_and(|it| it.entries == entries);
        let is_done = entries.iter().all(|it| it.1 == PlanStatus::Completed);
        let is_whole = is_new || is_done;
        if !plan.entries.is_empty() && !is_same {
            let shown = match is_whole {
                true => PlanDisplay::Whole,
                false => PlanDisplay::Folded,
            };
            self.layout.plan(plan, shown, before.as_ref(), place);
        }
        self.plans.push(ShownPlan {
            item: plan.id.clone().into_owned(),
            is_whole,
            entries,
        });
    }

    /// Shows what became of a plan, unless it stands there already.
    pub(super) fn plan_closed(&mut self, plan: &Plan<'_>, place: &mut Place<'_>) {
        let before = self.take_plan(plan);
        let is_shown = |it: &ShownPlan| it.is_whole && it.entries == entries(plan);
        if !plan.entries.is_empty() && !before.as_ref().is_some_and(is_shown) {
            let whole = PlanDisplay::Whole;
            self.layout.plan(plan, whole, before.as_ref(), place);
        }
    }

    fn take_plan(&mut self, plan: &Plan<'_>) -> Option<ShownPlan> {
        take(&mut self.plans, |it| it.item == plan.id)
    }
}

fn find_call<'a>(calls: &'a mut [OpenCall], ask: &OpenAsk) -> Option<&'a mut OpenCall> {
    let mut calls = calls.iter_mut();
    calls.find(|it| Some(&it.item) == ask.call.as_ref())
}

fn entries(plan: &Plan<'_>) -> Vec<(String, PlanStatus)> {
    let entries = plan.entries.iter();
    entries.map(|it| (it.text.to_string(), it.status)).collect()
}

fn millis_between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    to?.millis().checked_sub(from?.millis())
}
