//! OpenHands' SDK, through the shim that comes with linkspan: see `engines/openhands.rs`.
//!
//! The shim prints the SDK's own events. A run ends with an `execution_status`, after everything else
//! of it. A call waits for an answer when that status says so, and OpenHands continues when all calls of
//! one response have theirs.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Dialogue, NotSettled, Outbox, may_hold};
use crate::engines::EngineConfig;
use crate::engines::openhands::{limits, open_line, prompt_line};
use crate::request::{Answer, Mode, Prompt, Request};

#[derive(Debug)]
pub struct OpenHands {
    config: EngineConfig,
    request: Request,
    has_run: bool,
    /// Calls that have no result yet.
    calls: Vec<String>,
    /// Those that wait for an answer.
    asks: Vec<String>,
    waiting: VecDeque<Prompt>,
}

#[derive(Deserialize)]
struct ShimEvent<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    tool_call_id: Option<String>,
    action: Option<ShimAction<'a>>,
    key: Option<String>,
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ShimAction<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

impl OpenHands {
    pub fn new(request: &Request, config: &EngineConfig) -> Self {
        Self {
            config: config.clone(),
            request: request.clone(),
            has_run: false,
            calls: Vec::new(),
            asks: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    fn send_line(&mut self, prompt: &Prompt, out: &mut Outbox) {
        self.has_run = true;
        out.send(&prompt_line(prompt));
    }

    fn status(&mut self, status: &str, out: &mut Outbox) {
        match status {
            // The status names no call: all calls without a result wait together.
            "waiting_for_confirmation" => self.asks.clone_from(&self.calls),
            "running" => self.asks.clear(),
            _ => {
                self.has_run = false;
                self.calls.clear();
                self.asks.clear();
                if let Some(prompt) = self.waiting.pop_front() {
                    self.send_line(&prompt, out);
                }
            }
        }
    }

    fn ended(&mut self, call: &str) {
        self.calls.retain(|it| it != call);
        self.asks.retain(|it| it != call);
    }
}

impl Dialogue for OpenHands {
    fn open(&mut self, out: &mut Outbox) {
        out.send(&open_line(&self.config, &self.request));
    }

    fn line(&mut self, line: &str, out: &mut Outbox) {
        if !may_hold(line, &["\"tool_call_id\"", "\"execution_status\""]) {
            return;
        }
        let Ok(event) = serde_json::from_str::<ShimEvent<'_>>(line) else {
            return;
        };
        match (&*event.kind, event.tool_call_id, event.key.as_deref()) {
            ("ActionEvent", Some(call), _) => {
                // Words that OpenHands sends as calls; without an action nothing is called.
                let is_call = event
                    .action
                    .is_some_and(|it| !matches!(&*it.kind, "FinishAction" | "ThinkAction"));
                if is_call {
                    self.calls.push(call);
                }
            }
            ("ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent", Some(call), _) => {
                self.ended(&call);
            }
            ("ConversationStateUpdateEvent", _, Some("execution_status")) => {
                let status = event
                    .value
                    .and_then(|it| serde_json::from_str(it.get()).ok());
                if let Some(status) = status {
                    self.status(status, out);
                }
            }
            _ => (),
        }
    }

    fn prompt(&mut self, prompt: &Prompt, out: &mut Outbox) {
        if self.has_run {
            self.waiting.push_back(prompt.clone());
        } else {
            self.send_line(prompt, out);
        }
    }

    fn interrupt(&mut self, out: &mut Outbox) -> bool {
        if self.has_run {
            out.send(&json!({"type": "interrupt"}));
        }
        self.has_run
    }

    fn settle(
        &mut self,
        ask: &str,
        _: Option<&RawValue>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        let at = self.asks.iter().position(|it| it == ask);
        let at = at.ok_or(NotSettled::NotOpen)?;
        let line = match answer {
            Answer::Allow { input: Some(_) } | Answer::AllowAlways { input: Some(_) } => {
                return Err(NotSettled::FixedInput);
            }
            Answer::Allow { input: None } => {
                json!({"type": "answer", "call": ask, "allow": true})
            }
            // The same tool is not asked about again.
            Answer::AllowAlways { input: None } => {
                json!({"type": "answer", "call": ask, "allow": true, "always": true})
            }
            Answer::Deny { message } => {
                json!({"type": "answer", "call": ask, "allow": false, "reason": message})
            }
        };
        self.asks.remove(at);
        out.send(&line);
        Ok(())
    }

    fn set_model(&mut self, model: &str, out: &mut Outbox) -> bool {
        out.send(&json!({"type": "model", "model": model}));
        true
    }

    fn set_mode(&mut self, mode: Mode, out: &mut Outbox) -> bool {
        self.request.permissions.mode = mode;
        let permissions = limits(&self.config, &self.request);
        out.send(&json!({"type": "permissions", "permissions": permissions}));
        true
    }
}
