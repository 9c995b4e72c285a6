//! The control protocol: questions of the agent, answers of its host, interrupts.

use std::borrow::Cow;

use model::{Ask, AskId, AskKind, AskSettled, Decision, ItemId, Level, Notice, Raw, Text};

use super::{Claude, Direction, FrameContext};
use crate::tools;
use crate::wire::claude as wire;

impl Claude {
    pub(super) fn control_request<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        text: &'c str,
        direction: Direction,
    ) {
        cx.extra.clear();
        let control: wire::Control<'c> = serde_json::from_str(text).unwrap_or_default();
        let subtype = control
            .request
            .subtype
            .as_deref()
            .unwrap_or_default()
            .to_owned();
        match (direction, &*subtype) {
            (Direction::FromAgent, "can_use_tool") => self.on_permission_request(cx, control, text),
            (Direction::ToAgent, "interrupt") => {
                self.was_interrupted |= self.lifecycle.has_run() && self.held.is_none();
                self.control_notice(
                    cx,
                    Level::Info,
                    "interrupt",
                    "the host asked for an interrupt".to_owned(),
                    text,
                );
            }
            (Direction::ToAgent, _) => {
                self.control_notice(
                    cx,
                    Level::Debug,
                    "control_request",
                    format!("the host asked: {subtype}"),
                    text,
                );
            }
            (Direction::FromAgent, _) => {
                self.control_notice(
                    cx,
                    Level::Info,
                    "control_request",
                    format!("the agent asked: {subtype}"),
                    text,
                );
            }
        }
    }

    fn on_permission_request<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        control: wire::Control<'c>,
        text: &'c str,
    ) {
        let Some(id) = control.request_id.0 else {
            return self
                .lifecycle
                .unmapped(cx, "question without a request_id".to_owned(), text);
        };
        self.begin_turn(cx);
        let request = control.request;
        let tool = request.tool_name.0.unwrap_or_default();
        let input = request.input.raw();
        // Without the working directory: nothing of a path is left out where it is approved.
        let class = tools::classify(&tool, input.as_ref(), None);
        let item = request.tool_use_id.0.map(ItemId::new);
        if let Some(path) = item.as_ref().and_then(|it| self.lifecycle.path_of(it)) {
            cx.path = Cow::Owned(path.to_vec());
        }
        let kind = match &*tool {
            "AskUserQuestion" => AskKind::Question,
            "ExitPlanMode" => AskKind::Plan,
            _ => AskKind::Permission,
        };
        let description = request.description.raw().map(Text::from);
        let suggestions = request.permission_suggestions.raw();
        let ask = Ask {
            id: AskId::new(id),
            kind,
            item,
            tool,
            title: class.title,
            description,
            input,
            suggestions,
            deadline: None,
        };
        self.lifecycle.ask(cx, ask);
    }

    pub(super) fn control_response<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        text: &'c str,
        direction: Direction,
    ) {
        cx.extra.clear();
        let control: wire::Control<'c> = serde_json::from_str(text).unwrap_or_default();
        let response = control.response;
        if direction == Direction::FromAgent {
            let outcome = response.subtype.as_deref().unwrap_or("answer").to_owned();
            let said = response
                .error
                .0
                .map(|it| format!(": {}", Text::from_json(it)))
                .unwrap_or_default();
            return self.control_notice(
                cx,
                Level::Debug,
                "control_response",
                format!("{outcome}{said}"),
                text,
            );
        }
        let Some(id) = response.request_id.0 else {
            return self
                .lifecycle
                .unmapped(cx, "answer without a request_id".to_owned(), text);
        };
        let answer = response.response;
        let decision = match (response.subtype.as_deref(), answer.behavior.as_deref()) {
            (Some("success"), Some("allow")) if answer.updated_permissions.0.is_some() => {
                Decision::AllowedAlways
            }
            (Some("success"), Some("allow")) => Decision::Allowed,
            _ => Decision::Denied,
        };
        if decision == Decision::Denied
            && let Some(item) = self.lifecycle.item_of_ask(&id)
        {
            self.remember_denied(&item);
        }
        let message = answer
            .message
            .raw()
            .or(response.error.raw())
            .map(Text::from);
        let input = answer.updated_input.raw();
        let remembered = answer.updated_permissions.raw();
        self.lifecycle.settle(
            cx,
            AskSettled {
                id: AskId::new(id),
                decision,
                message,
                input,
                remembered,
            },
        );
    }

    pub(super) fn control_cancel<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        cx.extra.clear();
        let control: wire::Control<'c> = serde_json::from_str(text).unwrap_or_default();
        if let Some(id) = control.request_id.0 {
            let decision = Decision::Withdrawn;
            let settled = AskSettled {
                id: AskId::new(id),
                decision,
                message: None,
                input: None,
                remembered: None,
            };
            self.lifecycle.settle(cx, settled);
        }
    }

    fn control_notice(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: String,
        json: &str,
    ) {
        let detail = Some(Raw::parse(json.to_owned()));
        let notice = Notice {
            detail,
            ..Notice::new(level, code, Text::new(text))
        };
        self.lifecycle.notice(cx, notice);
    }
}
