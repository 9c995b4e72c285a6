//! What the agent does: calls, the agents they start, the questions they raise, and its plan.

use model::{Ask, AskSettled, ItemId, Plan, PlanStatus, Status, Subagent, Text, Tool, ToolKind};

use super::PageTranscript;
use super::card::{CardOutcome, CardPart, LastText, OpenCard, ToolCard};
use super::renderer::{PlanDisplay, Renderer};
use crate::writers::asks::OpenAsk;
use crate::writers::labels::label_and_target;

#[derive(Clone, Debug)]
pub(super) struct PagePlan {
    item: ItemId<'static>,
    /// As it was written last.
    is_whole: bool,
    entries: Vec<(String, PlanStatus)>,
}

impl<M: Renderer> PageTranscript<M> {
    pub(super) fn call_known(&mut self, tool: &Tool<'_>) {
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let at = at.unwrap_or_else(|| {
            self.calls.push(OpenCard::new(&tool.id));
            self.calls.len() - 1
        });
        if tool.class.kind == ToolKind::Task {
            self.calls[at].prose = Some(label_and_target(tool));
        }
    }

    pub(super) fn call_closed(
        &mut self,
        tool: &Tool<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        if path.is_empty() {
            self.begin(None, out);
        }
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let open = at.map(|at| self.calls.remove(at));
        let open = open.unwrap_or_else(|| OpenCard::new(&tool.id));
        let goes_on = open.in_background && status == Status::Ok;
        let agent = if goes_on {
            None
        } else {
            self.agents.take(&tool.id, &self.markup)
        };
        let mut card = ToolCard::of_call(tool, status, goes_on);
        let told = agent.as_ref().and_then(|it| it.told);
        card.input::<M>(tool, told, &mut self.losses);
        card.pieces
            .extend(open.decisions.into_iter().map(CardPart::Decision));
        let said = agent.as_ref().and_then(|it| it.last_said);
        if let Some(agent) = agent {
            card.pieces.push(CardPart::Inside(agent.held));
        }
        let mut heard = LastText::new(said);
        if let Some(report) = &open.report {
            card.report::<M>(report, &mut heard, &mut self.losses);
        }
        card.result::<M>(tool, status, &mut heard, &open.printed, &mut self.losses);
        let mut block = Vec::new();
        self.markup.card(&card, &mut block);
        self.place(path, &block, out);
    }

    pub(super) fn agent_known(&mut self, agent: &Subagent<'_>, path: &[ItemId<'_>]) {
        let mut prose = None;
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.in_background = agent.background;
            prose = open.prose.clone();
        }
        let prose = prose.unwrap_or_else(|| {
            let about = agent.description.as_ref().map(Text::to_string);
            (agent.name.to_string(), about)
        });
        self.agents.introduce(&agent.call, prose, path);
    }

    /// The report of an agent is what its call returns; only one that went on after that has its own.
    pub(super) fn agent_closed(
        &mut self,
        agent: &Subagent<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.report = agent.report.as_ref().map(Text::to_string);
            return;
        }
        let held = self.agents.take(&agent.call, &self.markup);
        if held.is_none() && !agent.background {
            return;
        }
        let mut card = ToolCard {
            kind: ToolKind::Task,
            name: agent.name.to_string(),
            about: agent.description.as_ref().map(Text::to_string),
            ending: CardOutcome::of(status, None),
            pieces: Vec::new(),
        };
        let mut said = None;
        if let Some(held) = held {
            said = held.last_said;
            (card.name, card.about) = (held.name, held.about);
            card.pieces.push(CardPart::Inside(held.held));
        }
        if let Some(report) = &agent.report {
            card.report::<M>(&report.to_str(), &mut LastText::new(said), &mut self.losses);
        }
        let mut block = Vec::new();
        self.markup.card(&card, &mut block);
        self.place(path, &block, out);
    }

    pub(super) fn on_ask(&mut self, ask: &Ask<'_>) {
        self.asks.push(OpenAsk::new(ask));
    }

    /// A decision stands with the call it is about.
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
        let answer = ask.decision(settled);
        let call = (self.calls.iter_mut()).find(|it| Some(&it.item) == ask.call.as_ref());
        if let Some(call) = call {
            call.decisions.push(answer);
            return;
        }
        let mut block = Vec::new();
        self.markup
            .ask(&ask.question, settled.decision, &answer, &mut block);
        self.place(path, &block, out);
    }

    /// The first list and a finished one are shown whole, the steps between in short.
    pub(super) fn plan(&mut self, plan: &Plan<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let entries = entries(plan);
        let at = self.plans.iter().position(|it| it.item == plan.id);
        let before = at.map(|at| self.plans.remove(at));
        let is_new = before.as_ref().is_none_or(|it| it.entries.is_empty());
        let is_same = before.is_some_and(|it| it.entries == entries);
        let is_done = entries.iter().all(|it| it.1 == PlanStatus::Completed);
        self.plans.push(PagePlan {
            item: plan.id.clone().into_owned(),
            is_whole: is_new || is_done,
            entries,
        });
        if plan.entries.is_empty() || is_same {
            return;
        }
        let shown = match is_new || is_done {
            true => PlanDisplay::Whole,
            false => PlanDisplay::Folded,
        };
        let mut block = Vec::new();
        self.markup.plan(plan, shown, &mut block);
        self.place(path, &block, out);
    }

    /// Shows what became of a plan, unless it stands there already.
    pub(super) fn plan_closed(&mut self, plan: &Plan<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let at = self.plans.iter().position(|it| it.item == plan.id);
        let before = at.map(|at| self.plans.remove(at));
        let is_shown = before.is_some_and(|it| it.is_whole && it.entries == entries(plan));
        if plan.entries.is_empty() || is_shown {
            return;
        }
        let mut block = Vec::new();
        self.markup.plan(plan, PlanDisplay::Whole, &mut block);
        self.place(path, &block, out);
    }
}

fn entries(plan: &Plan<'_>) -> Vec<(String, PlanStatus)> {
    let entries = plan.entries.iter();
    entries.map(|it| (it.text.to_string(), it.status)).collect()
}
