//! Tool calls as actions: started with the whole input, completed with the result, one title for both.

use model::{Event, ItemId, Status, Text, Tool, Why};

use super::super::{line, take};
use super::upstream::opencode;
use super::{Takopi, TakopiProfile, tools, upstream};
use crate::wire::takopi as wire;

/// A tool call that is open; its completed title has to be its started title.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) id: ItemId<'static>,
    pub(super) kind: wire::Kind,
    pub(super) title: Text<'static>,
}

impl Takopi {
    /// A call was opened, or more is known of it.
    pub(super) fn tool(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        if tool.input.is_none() {
            return; // It is still streaming; an action is written with its whole input.
        }
        let is_upstream = self.profile == TakopiProfile::Upstream;
        let known = self.run.actions.iter().position(|it| it.id == tool.id);
        if let Some(at) = known {
            // Takopi's own runners write nothing when more of a call becomes known.
            if !is_upstream {
                let action = &self.run.actions[at];
                self.write_tool(event, tool, action, wire::Phase::Updated, None, out);
            }
            return;
        }
        // Such a call is known by its result alone, which takopi titles `tool result`.
        let is_orphan = event.why == Some(Why::NeverOpened);
        let action = self.action(event, tool, is_orphan);
        if !(is_upstream && is_orphan) {
            self.write_tool(event, tool, &action, wire::Phase::Started, None, out);
        }
        self.run.actions.push(action);
    }

    pub(super) fn tool_closed(
        &mut self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let known = take(&mut self.run.actions, |it| it.id == tool.id);
        let action = known.unwrap_or_else(|| self.action(event, tool, true));
        if self.profile == TakopiProfile::Upstream && tool.result.is_none() {
            return; // Takopi leaves a call without a result open.
        }
        let result = tool.result.as_ref();
        if result.is_some_and(|it| it.structured.is_some()) {
            self.losses.count("structured tool result");
        }
        let phase = wire::Phase::Completed;
        self.write_tool(event, tool, &action, phase, Some(status), out);
    }

    /// Closes open actions: the events stopped before the run ended.
    pub(super) fn left_open(&mut self, out: &mut Vec<u8>) {
        for Action { id, kind, title } in std::mem::take(&mut self.run.actions) {
            if self.profile == TakopiProfile::Upstream {
                continue;
            }
            let detail = wire::ToolDetail {
                tool_use_id: Some(id.as_str()),
                ..Default::default()
            };
            let action = wire::Action::new(id.as_str(), kind, title, detail);
            let event = wire::ActionEvent {
                message: tools::why_no_result(Status::Lost).map(Text::new),
                ..action.event(&self.engine, wire::Phase::Completed, Some(false))
            };
            line(out, &event);
        }
    }

    fn action(&self, event: &Event<'_>, tool: &Tool<'_>, is_orphan: bool) -> Action {
        let cwd = self.session.as_ref().and_then(|it| it.cwd.as_deref());
        let (kind, title) = match self.profile {
            TakopiProfile::Upstream if self.engine == opencode::ENGINE => {
                opencode::heading(event, tool, cwd)
            }
            TakopiProfile::Upstream => upstream::heading(tool, is_orphan, cwd),
            TakopiProfile::Seed | TakopiProfile::Debug => tools::heading(tool, cwd),
        };
        Action {
            id: tool.id.clone().into_owned(),
            kind,
            title: title.into_owned(),
        }
    }

    fn write_tool(
        &self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        action: &Action,
        phase: wire::Phase,
        status: Option<Status>,
        out: &mut Vec<u8>,
    ) {
        let (id, kind, title) = (tool.id.as_str(), action.kind, action.title.by_ref());
        let parent = event.path.last().map(ItemId::as_str);
        let engine = &self.engine;
        match self.profile {
            TakopiProfile::Upstream if self.engine == opencode::ENGINE => {
                let action = wire::Action::new(id, kind, title, opencode::detail(tool, kind));
                let ok = status.map(|_| opencode::is_ok(tool));
                let event = wire::ActionEvent {
                    message: opencode::error(tool),
                    ..action.event(engine, phase, ok)
                };
                line(out, &event);
            }
            TakopiProfile::Upstream => {
                let detail = upstream::detail(tool, kind, parent, status.is_some());
                let ok = tool.result.as_ref().map(|it| !it.is_error);
                let action = wire::Action::new(id, kind, title, detail);
                line(out, &action.event(engine, phase, ok));
            }
            TakopiProfile::Seed | TakopiProfile::Debug => {
                let detail = tools::detail(tool, kind, parent, status.is_some());
                let action = wire::Action::new(id, kind, title, detail);
                let unanswered = status.filter(|_| tool.result.is_none());
                let event = wire::ActionEvent {
                    message: unanswered.and_then(tools::why_no_result).map(Text::new),
                    ..action.event(engine, phase, status.map(|it| it == Status::Ok))
                };
                line(out, &event);
            }
        }
    }
}
