//! The control protocol: questions of the agent, answers of its host, interrupts.

use std::borrow::Cow;

use model::{Ask, AskId, AskKind, AskSettled, Decision, ItemId, Level};

use super::{Claude, Direction, FrameContext};
use crate::tools;
use crate::wire::claude as wire;
use crate::wire::scanner;

impl Claude {
    pub(super) fn control_request(&mut self, cx: &mut FrameContext<'_>, direction: Direction) {
        cx.extra.clear();
        let control: wire::Control<'_> = scanner::from_str(cx.message).unwrap_or_default();
        let subtype = control.request.subtype.owned().unwrap_or_default();
        let (level, code, text) = match (direction, &*subtype) {
            (Direction::FromAgent, "can_use_tool") => return self.permission(cx, control),
            (Direction::ToAgent, "interrupt") => {
                // An interrupt after the result has nothing left to stop: the run keeps its
                // outcome.
                self.was_interrupted |= self.lifecycle.has_run() && self.held.is_none();
                let text = "the host asked for an interrupt".to_owned();
                (Level::Info, "interrupt", text)
            }
            (Direction::ToAgent, _) => {
                let text = format!("the host asked: {subtype}");
                (Level::Debug, "control_request", text)
            }
            (Direction::FromAgent, _) => {
                let text = format!("the agent asked: {subtype}");
                (Level::Info, "control_request", text)
            }
        };
        self.lifecycle.raise_with_message(cx, level, code, text);
    }

    fn permission<'c>(&mut self, cx: &mut FrameContext<'c>, control: wire::Control<'c>) {
        let Some(id) = control.request_id.0 else {
            return self.lifecycle.unmapped(cx, "question without a request_id");
        };
        self.begin_turn(cx);
        let request = control.request;
        let tool = request.tool_name.0.unwrap_or_default();
        let input = request.input.raw();
        // Without the working directory: nothing of a path is left out where it is approved.
        let class = tools::classify(&tool, input.as_ref(), None);
        let item = request.tool_use_id.0.map(ItemId::new);
        // A request does not say which sub-agent asks; the call that it is about does.
        if let Some(path) = item.as_ref().and_then(|it| self.lifecycle.path_of(it)) {
            cx.path = Cow::Owned(path.to_vec());
        }
        // Questions and plans come as permissions, told apart by their tools.
        let kind = match &*tool {
            "AskUserQuestion" => AskKind::Question,
            "ExitPlanMode" => AskKind::Plan,
            _ => AskKind::Permission,
        };
        let ask = Ask {
            item,
            description: request.description.text(),
            input,
            suggestions: request.permission_suggestions.raw(),
            ..Ask::new(AskId::new(id), kind, tool, class.title)
        };
        self.lifecycle.ask(cx, ask);
    }

    pub(super) fn control_response(&mut self, cx: &mut FrameContext<'_>, direction: Direction) {
        cx.extra.clear();
        let control: wire::Control<'_> = scanner::from_str(cx.message).unwrap_or_default();
        let response = control.response;
        // The agent's answers are to the host's requests, such as `set_model`; only the host
        // settles asks.
        if direction == Direction::FromAgent {
            let outcome = response.subtype.as_deref().unwrap_or("answer");
            let error = response.error.text();
            let error = error.map(|it| format!(": {it}")).unwrap_or_default();
            let text = format!("{outcome}{error}");
            return self
                .lifecycle
                .raise_with_message(cx, Level::Debug, "control_response", text);
        }
        let Some(id) = response.request_id.0 else {
            return self.lifecycle.unmapped(cx, "answer without a request_id");
        };
        let answer = response.response;
        let decision = match (response.subtype.as_deref(), answer.behavior.as_deref()) {
            // "Always" has no word of its own: the host sends the suggested rules back with its
            // permission.
            (Some("success"), Some("allow")) if answer.updated_permissions.0.is_some() => {
                Decision::AllowedAlways
            }
            (Some("success"), Some("allow")) => Decision::Allowed,
            _ => Decision::Denied,
        };
        // The error result that follows looks like any other failure: the denial is remembered for
        // it.
        if decision == Decision::Denied
            && let Some(item) = self.lifecycle.item_of_ask(&id)
        {
            self.remember_denied(&item);
        }
        let settled = AskSettled {
            message: answer.message.text().or(response.error.text()),
            input: answer.updated_input.raw(),
            remembered: answer.updated_permissions.raw(),
            ..AskSettled::new(AskId::new(id), decision)
        };
        self.lifecycle.settle(cx, settled);
    }

    pub(super) fn control_cancel(&mut self, cx: &mut FrameContext<'_>) {
        cx.extra.clear();
        let control: wire::Control<'_> = scanner::from_str(cx.message).unwrap_or_default();
        if let Some(id) = control.request_id.0 {
            let settled = AskSettled::new(AskId::new(id), Decision::Withdrawn);
            self.lifecycle.settle(cx, settled);
        }
    }
}
