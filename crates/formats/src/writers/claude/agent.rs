//! The writer for a live connection: it writes the agent's side of the control protocol.
//!
//! A file holds the questions where they were asked; at a connection they are put by whoever knows
//! which of them the policy has not answered. The user's messages are repeated only where the client
//! wants them, and what Claude Code says to its own host is not passed on.

use model::{Ask, Event, Outcome, RunEnded, RunError, Text, Writer as _, json_line};
use serde::Serialize;

use super::lines::ClaudeLines;
use super::partial::Stream;
use super::{Claude, line};
use crate::wire::claude::output::{ControlCancel, InformationalBody, StateBody, StatusBody};

/// What the client wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaudeClient {
    /// `--include-partial-messages`
    pub wants_partials: bool,
    /// `--replay-user-messages`
    pub replays_prompts: bool,
}

/// Writes to the host of one session.
#[derive(Clone, Debug)]
pub struct ClaudeAgent(Claude);

/// A question for the host, to be sent unless the policy decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaudeRequest {
    /// The ask it is about; also the id of the request.
    pub ask: String,
    /// With its newline.
    pub line: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LiveState {
    pub(super) client: ClaudeClient,
    requests: Vec<ClaudeRequest>,
}

impl LiveState {
    pub(super) fn asked(&mut self, ask: &Ask<'_>, message: &impl Serialize) {
        let line = json_line(message).expect("wire types have string keys and write to memory");
        let ask = ask.id.to_string();
        self.requests.push(ClaudeRequest { ask, line });
    }
}

impl ClaudeAgent {
    /// `session` is what the session is called before the agent names it.
    pub fn new(session: &str, client: ClaudeClient) -> Self {
        Self(Claude {
            lines: ClaudeLines::of_session(session),
            live: Some(LiveState {
                client,
                ..LiveState::default()
            }),
            stream: client.wants_partials.then(Stream::default),
            ..Claude::default()
        })
    }

    /// What is known of the session before the agent says it.
    pub fn introduce(&mut self, cwd: &str, model: Option<&str>, mode: &str) {
        let known = &mut self.0.session;
        cwd.clone_into(&mut known.cwd);
        known.model = model.unwrap_or_default().to_owned();
        mode.clone_into(&mut known.mode);
    }

    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.0.event(event, out);
    }

    /// What the host may have to be asked since the last time.
    pub fn take_requests(&mut self) -> Vec<ClaudeRequest> {
        let live = self.0.live.as_mut();
        live.map(|it| std::mem::take(&mut it.requests))
            .unwrap_or_default()
    }

    /// A question is gone: it was answered elsewhere, or taken back.
    pub fn withdraw(&self, ask: &str, out: &mut Vec<u8>) {
        let r#type = "control_cancel_request";
        let request_id = ask;
        line(out, &ControlCancel { r#type, request_id });
    }

    /// Whether the session works, waits for an answer, or for a prompt.
    pub fn state(&mut self, state: &'static str, out: &mut Vec<u8>) {
        let body = StateBody {
            state,
            sdk_host_only: true,
        };
        self.0.lines.system("session_state_changed", body, out);
    }

    /// Something worth showing that no event says.
    pub fn warn(&mut self, text: &str, out: &mut Vec<u8>) {
        let content = &Text::new(text);
        let level = "warning";
        let body = InformationalBody { content, level };
        self.0.lines.system("informational", body, out);
    }

    /// The host has chosen another mode.
    pub fn set_mode(&mut self, mode: &str, out: &mut Vec<u8>) {
        mode.clone_into(&mut self.0.session.mode);
        let body = StatusBody {
            status: None,
            permission_mode: Some(mode),
        };
        self.0.lines.system("status", body, out);
    }

    /// The host has chosen another model; none is the agent's own default.
    pub fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            model.clone_into(&mut self.0.session.model);
        }
    }

    /// The result of a turn that no event ends.
    pub fn fail(&mut self, outcome: Outcome, message: &str, out: &mut Vec<u8>) {
        let error = RunError::new(outcome.name(), Text::new(message));
        self.0.ended(&RunEnded::new(outcome, Some(error)), out);
    }
}
