//! Sub-agents: each has a run id of its own, and events carry it.

use std::borrow::Cow;

use model::{Item, ItemId, Status, Subagent, Text};

use super::{AgUi, FrameContext, Line, status};

#[derive(Clone, Debug)]
pub(super) struct AgUiSubagent {
    run: String,
    path: Vec<ItemId<'static>>,
    key: ItemId<'static>,
}

impl AgUi {
    /// Where events of a sub-agent go.
    pub(super) fn enter(&mut self, cx: &mut FrameContext<'_>, run: Option<&str>) {
        if let Some(run) = run.filter(|it| !it.is_empty()) {
            cx.path = Cow::Owned(self.path_of(run));
        }
    }

    fn path_of(&self, run: &str) -> Vec<ItemId<'static>> {
        match self.subagents.iter().rev().find(|it| it.run == run) {
            Some(agent) => agent.path.clone(),
            // A stream may begin after the sub-agent did: its run is all that is known of it.
            None => vec![ItemId::new(run.to_owned())],
        }
    }

    pub(super) fn subagent_started<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let run = line.subagent_run_id.take().unwrap_or_default();
        self.keep_metadata(cx, line.metadata);
        self.enter(cx, line.parent_subagent_run_id.as_deref());
        let call = line.parent_tool_call_id.take();
        let is_taken = |call: &str| {
            let known = self.subagents.iter();
            known
                .rev()
                .any(|it| it.path.last().is_some_and(|it| it.as_str() == call))
        };
        // Two agents of one call are told apart by their own names.
        let call = call
            .filter(|it| !is_taken(it))
            .unwrap_or_else(|| run.clone());
        let call = ItemId::new(call.into_owned());
        let key = ItemId::new(format!("{run}:agent"));
        let mut path = cx.path.to_vec();
        path.push(call.clone());
        self.subagents.push(AgUiSubagent {
            run: run.into_owned(),
            path,
            key: key.clone(),
        });
        let agent = Subagent {
            id: key,
            call,
            name: line.name.take().unwrap_or_default(),
            description: line.description.text(),
            prompt: None,
            background: false,
            report: None,
            detail: None,
        };
        self.lifecycle.open(cx, Item::Subagent(agent));
    }

    pub(super) fn subagent_finished<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        self.keep_metadata(cx, line.metadata);
        cx.keep("outcome", line.outcome);
        let report = line.result.text();
        self.subagent_ended(cx, line, Status::Ok, report);
    }

    pub(super) fn subagent_error<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        self.keep_metadata(cx, line.metadata);
        let code = line.code.take().unwrap_or_default();
        let report = line.message.text();
        // Without words of its own, the message only repeats the code.
        let report = report.filter(|it| it.to_str() != code);
        self.subagent_ended(cx, line, status(&code), report);
    }

    fn subagent_ended<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        status: Status,
        report: Option<Text<'c>>,
    ) {
        let run = line.subagent_run_id.as_deref().unwrap_or_default();
        let Some(agent) = self.subagents.iter().rev().find(|it| it.run == run) else {
            return self.late(cx, "the end of a sub-agent that is not known");
        };
        let key = agent.key.clone();
        self.lifecycle.close(cx, &key, status, |item| {
            if let Item::Subagent(it) = item {
                it.report = report;
            }
        });
    }
}
