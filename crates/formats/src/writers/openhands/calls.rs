//! A tool call's two moments: its input is whole, its result is there.

use model::{Event, ItemId, Raw, Status, Text, Tool};

use super::agent_buffer::PendingResponse;
use super::{OpenHands, OpenHandsProfile, tools};
use crate::wire::acp;
use crate::wire::openhands::{self as wire, Event as Line, Source};
use crate::wire::uuid::Uuid;
use crate::writers::acp::tool_kind;
use crate::writers::take;

/// A call that waits for its result.
#[derive(Clone, Debug)]
pub(super) struct PendingAction {
    id: ItemId<'static>,
    name: String,
    action: Uuid,
    /// Kept for the second card of the ACP profile only.
    title: Text<'static>,
    kind: acp::ToolKind,
}

impl OpenHands {
    pub(super) fn is_open(&self, id: &ItemId<'_>) -> bool {
        self.calls.iter().any(|it| it.id == *id)
    }

    /// Writes a call whose input is whole, or will never be.
    pub(super) fn start_call(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        if self.is_open(&tool.id) {
            return;
        }
        // A denied call may get no result; the next call shows that the agent has gone on.
        if self.is_denied {
            self.run_on(out);
        }
        let action = match self.profile {
            OpenHandsProfile::Message => return,
            OpenHandsProfile::Acp => {
                let lane = self.response(event, tool.group.as_deref(), out);
                self.pause(lane, out);
                self.card(tool, None, out)
            }
            OpenHandsProfile::Mcp | OpenHandsProfile::External | OpenHandsProfile::Native => {
                self.action(event, tool, out)
            }
        };
        let is_card = self.profile == OpenHandsProfile::Acp;
        let title = is_card.then(|| tool.class.title.clone().into_owned());
        self.calls.push(PendingAction {
            id: tool.id.clone().into_owned(),
            name: tool.name.to_string(),
            action,
            title: title.unwrap_or_default(),
            kind: tool_kind(tool.class.kind),
        });
    }

    pub(super) fn end_call(
        &mut self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        // The sub-agent of this call has ended with it.
        self.leave(&tool.id, out);
        self.start_call(event, tool, out);
        let Some(call) = take(&mut self.calls, |it| it.id == tool.id) else {
            // Only the profile `message` starts no calls.
            return self.losses.count("tool call");
        };
        let result = tool.result.as_ref();
        if result.is_some_and(|it| it.structured.is_some()) {
            self.losses.count("structured result");
        }
        if self.profile == OpenHandsProfile::Acp {
            self.card(tool, Some(status), out);
        } else {
            self.result(tool, call.action, status, out);
        }
        if self.is_denied && status == Status::Denied {
            self.run_on(out);
        }
    }

    /// Closes every unanswered call.
    pub(super) fn end_open_calls(&mut self, error: &'static str, out: &mut Vec<u8>) {
        // The SDK wants a result for every action.
        for call in std::mem::take(&mut self.calls) {
            let head = self.pen.head(Source::Agent);
            let tool_call_id = call.id.as_str();
            let line = if self.profile == OpenHandsProfile::Acp {
                Line::ACPToolCallEvent {
                    head,
                    tool_call_id,
                    title: call.title.by_ref(),
                    status: "failed",
                    tool_kind: call.kind,
                    raw_input: None,
                    raw_output: Some(Raw::of(&error)),
                    content: Vec::new(),
                    is_error: true,
                }
            } else {
                Line::AgentErrorEvent {
                    head,
                    tool_name: &call.name,
                    tool_call_id,
                    error: Text::new(error),
                }
            };
            self.pen.write(out, &line);
        }
    }

    fn action(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) -> Uuid {
        let group = tool.group.as_deref();
        let lane = self.response(event, group, out);
        let head = self.pen.head(Source::Agent);
        let own_id = head.id.digits();
        let own_id = std::str::from_utf8(&own_id).expect("hex digits and dashes");
        // The SDK joins the calls that share an id into one message.
        let response = group.unwrap_or(own_id);
        let held = self.thoughts(lane, response, out);
        // Without a response to share, every action is a message of its own.
        self.lanes[lane].has_acted = group.is_some();
        let line = Line::ActionEvent {
            head,
            thought: held.contents(),
            reasoning_content: held.reasoning_content(),
            thinking_blocks: held.thinking_blocks(),
            action: tools::action(self.profile, tool),
            tool_name: &tool.name,
            tool_call_id: tool.id.as_str(),
            tool_call: tools::call(tool),
            llm_response_id: response,
        };
        self.pen.write(out, &line);
        head.id
    }

    /// The words that go with an action: only the first of a response has any.
    fn thoughts(&mut self, lane: usize, response: &str, out: &mut Vec<u8>) -> PendingResponse {
        if self.pen.is_in_batch(response) {
            // A message in between would part calls that the model made at once: words between
            // two of them wait until after the results.
            self.lanes[lane].held.new_paragraph();
            return PendingResponse::default();
        }
        if self.lanes[lane].has_acted {
            self.flush(lane, out);
        }
        std::mem::take(&mut self.lanes[lane].held)
    }

    fn result(&mut self, tool: &Tool<'_>, action_id: Uuid, status: Status, out: &mut Vec<u8>) {
        let (tool_name, tool_call_id) = (&*tool.name, tool.id.as_str());
        let failed = |pen: &mut super::LineWriter, error: &'static str| Line::AgentErrorEvent {
            head: pen.head(Source::Agent),
            tool_name,
            tool_call_id,
            error: Text::new(error),
        };
        let pen = &mut self.pen;
        let line = match (status, &tool.result) {
            // The SDK has a kind of its own for this, also where the agent wrote a result.
            (Status::Denied, _) => {
                let (rejection_reason, rejection_source) = tools::rejection(tool);
                Line::UserRejectObservation {
                    head: pen.head(Source::Environment),
                    tool_name,
                    tool_call_id,
                    action_id,
                    rejection_reason,
                    rejection_source,
                }
            }
            (Status::Error, None) => failed(pen, wire::CALL_FAILED),
            (Status::Cancelled, None) => failed(pen, wire::CALL_STOPPED),
            (Status::Lost, None) => failed(pen, wire::CALL_LOST),
            (Status::Ok | Status::Error | Status::Cancelled | Status::Lost, result) => {
                Line::ObservationEvent {
                    head: pen.head(Source::Environment),
                    tool_name,
                    tool_call_id,
                    action_id,
                    observation: tools::observation(self.profile, tool, result.as_ref(), status),
                }
            }
        };
        self.pen.write(out, &line);
    }

    /// One of the two cards of a call in the ACP profile.
    fn card(&mut self, tool: &Tool<'_>, ended: Option<Status>, out: &mut Vec<u8>) -> Uuid {
        let head = self.pen.head(Source::Agent);
        let is_error = ended.is_some_and(|it| it != Status::Ok);
        let status = match ended {
            None => "in_progress",
            Some(_) if is_error => "failed",
            Some(_) => "completed",
        };
        let result = tool.result.as_ref().filter(|_| ended.is_some());
        let line = Line::ACPToolCallEvent {
            head,
            tool_call_id: tool.id.as_str(),
            title: tool.class.title.by_ref(),
            status,
            tool_kind: tool_kind(tool.class.kind),
            raw_input: tool.input.as_ref().map(tools::loadable),
            raw_output: result.map(|it| tools::loadable(&it.content)),
            content: tools::acp_content(tool),
            is_error,
        };
        self.pen.write(out, &line);
        head.id
    }
}
