//! Agents inside the run: each starts once, and ends before the run does.

use std::collections::HashSet;

use model::{ItemId, Status, Subagent, Text};

use super::{EventLane, wire};
use crate::writers::{hash, take};

/// Sub-agents introduced per run. The events of more still carry their id, which is legal.
const MAX_STARTED: usize = 65_536;

#[derive(Clone, Debug, Default)]
pub(super) struct StartedSubagents {
    /// Every id of this run, by hash: the protocol lets each be used once.
    started: HashSet<u64>,
    active: Vec<String>,
}

impl StartedSubagents {
    /// Ensures that all sub-agents on the path have been started.
    pub(super) fn enter(&mut self, path: &[ItemId<'static>], lane: &mut EventLane<'_>) {
        let Some(last) = path.last() else { return };
        // Agents on the way to it were started with it.
        if self.is_started(last.as_str()) {
            return;
        }
        let mut parent = None;
        for call in path {
            self.start(call.as_str(), "sub-agent", None, parent, lane);
            parent = Some(call.as_str());
        }
    }

    pub(super) fn opened(&mut self, item: &Subagent<'_>, lane: &mut EventLane<'_>) {
        let description = item.description.as_ref();
        let parent = lane.subagent.take();
        self.start(item.call.as_str(), &item.name, description, parent, lane);
        lane.subagent = parent;
    }

    fn start(
        &mut self,
        call: &str,
        name: &str,
        description: Option<&Text<'_>>,
        parent: Option<&str>,
        lane: &mut EventLane<'_>,
    ) {
        // The verifier refuses a second start of the same id.
        if self.started.len() >= MAX_STARTED || !self.started.insert(hash(call)) {
            return;
        }
        self.active.push(call.to_owned());
        lane.emit(wire::Body::SubagentStarted {
            subagent_run_id: call,
            name,
            description,
            // The verifier refuses a parent that was not started.
            parent_subagent_run_id: parent.filter(|it| self.is_started(it)),
            parent_tool_call_id: Some(call),
        });
    }

    pub(super) fn closed(&mut self, item: &Subagent<'_>, status: Status, lane: &mut EventLane<'_>) {
        let call = item.call.as_str();
        if take(&mut self.active, |it| it == call).is_none() {
            return;
        }
        let parent = lane.subagent.take();
        let report = item.report.as_ref();
        lane.emit(match status {
            Status::Ok => wire::Body::SubagentFinished {
                subagent_run_id: call,
                result: report,
            },
            Status::Error | Status::Denied | Status::Cancelled | Status::Lost => {
                wire::Body::SubagentError {
                    subagent_run_id: call,
                    message: report.map_or(Text::new(status.name()), Text::by_ref),
                    code: status,
                }
            }
        });
        lane.subagent = parent;
    }

    pub(super) fn close_left_open(&mut self, lane: &mut EventLane<'_>) {
        // Innermost first.
        while let Some(call) = self.active.pop() {
            lane.emit(wire::Body::SubagentFinished {
                subagent_run_id: &call,
                result: None,
            });
        }
    }

    fn is_started(&self, call: &str) -> bool {
        self.started.contains(&hash(call))
    }
}
