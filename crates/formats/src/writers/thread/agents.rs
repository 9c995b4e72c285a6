//! Sub-agents: most are shown by the call that started them; those that outlive it, or had none,
//! become `wait` items.

use std::borrow::Cow;

use model::{ItemId, Status, Subagent};

use super::{Thread, ThreadProfile, take};
use crate::wire::thread as wire;

#[derive(Clone, Debug)]
pub(super) struct ThreadOpenAgent {
    item: ItemId<'static>,
    pub(super) call: ItemId<'static>,
    /// The call that started it is shown.
    is_shown: bool,
    pub(super) in_background: bool,
}

impl Thread {
    pub(super) fn agent_opened(&mut self, agent: &Subagent<'_>) {
        self.agents.push(ThreadOpenAgent {
            item: agent.id.clone().into_owned(),
            call: agent.call.clone().into_owned(),
            // Asked now: when the agent ends, its call may have ended long ago.
            is_shown: self.calls.iter().any(|it| it.item == agent.call),
            in_background: agent.background,
        });
    }

    pub(super) fn agent_updated(&mut self, agent: &Subagent<'_>) {
        if let Some(open) = self.agents.iter_mut().find(|it| it.item == agent.id) {
            open.in_background = agent.background;
        }
    }

    /// An agent that outlived its call, or had none, is written as a `wait` item.
    pub(super) fn agent_closed(
        &mut self,
        agent: &Subagent<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        let open = take(&mut self.agents, |it| it.item == agent.id);
        let is_shown = open.is_some_and(|it| it.is_shown);
        if self.turns.profile == ThreadProfile::Seed {
            return self.losses.count("sub-agent");
        }
        // The result of its call holds its report already.
        if is_shown && !agent.background {
            return;
        }
        self.turns.begin(out);
        let sender = path.last().map_or(self.turns.thread_id(), ItemId::as_str);
        let sender = sender.to_owned();
        let call = agent.call.as_str();
        let (agent_status, status) = match status {
            Status::Ok => (wire::AgentStatus::Completed, wire::Status::Completed),
            Status::Error | Status::Denied => (wire::AgentStatus::Errored, wire::Status::Failed),
            Status::Cancelled | Status::Lost => {
                (wire::AgentStatus::Interrupted, wire::Status::Failed)
            }
        };
        let report = agent.report.as_ref();
        let state = wire::AgentState {
            status: agent_status,
            message: report.map(|it| self.outputs.cut(it.by_ref(), None).text),
        };
        let details = wire::Details::CollabToolCall {
            tool: wire::CollabTool::Wait,
            sender_thread_id: &sender,
            receiver_thread_ids: vec![call],
            prompt: None,
            agents_states: wire::AgentsStates(vec![(Cow::Borrowed(call), state)]),
            status,
        };
        self.write_item("", details, out);
    }
}
