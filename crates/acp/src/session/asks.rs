//! Asks of the agent: settled by the policy, otherwise by the client's user.

use formats::AcpRequest;
use model::AskKind;
use runner::{Agent, Answer, PendingAsk};
use serde_json::Value;

use super::Session;
use crate::question::Question;
use crate::rpc;
use crate::wire;

#[derive(Debug, Default)]
pub(super) struct Asks {
    /// What the writer has made of them, for those that the client is asked.
    written: Vec<AcpRequest>,
    /// Those that the client was asked.
    seen: Vec<String>,
    /// The client is being asked.
    open: Vec<OpenAsk>,
    questions: Vec<Question>,
}

#[derive(Debug)]
struct OpenAsk {
    ask: String,
    /// What the request is called, after the session's name: one ask may take several.
    request: String,
}

impl Session {
    /// Handles all open asks.
    pub(super) fn handle_asks(&mut self) {
        self.asks.written.extend(self.writer.take_requests());
        let asked = self
            .core
            .worker
            .agent()
            .map(Agent::asks)
            .unwrap_or_default();
        if asked.is_empty() && self.asks.seen.is_empty() {
            // They were settled meanwhile, or by the recording that they are part of.
            self.asks.written.clear();
            return;
        }
        let asked: Vec<PendingAsk> = asked.to_vec();
        let is_asked = |id: &str| asked.iter().any(|it| it.ask.id.as_str() == id);
        let mut gone = Vec::new();
        self.asks.open.retain(|it| {
            let is_asked = is_asked(&it.ask);
            if !is_asked {
                gone.push(it.request.clone());
            }
            is_asked
        });
        // Answered in another place, or taken back: the client must not show it any longer.
        gone.iter().for_each(|it| self.withdraw(it));
        self.asks.seen.retain(|it| is_asked(it));
        self.asks.questions.retain(|it| is_asked(it.ask()));
        self.asks.written.retain(|it| is_asked(&it.ask));
        for asked in self.core.worker.open_asks() {
            let id = asked.ask.id.to_string();
            if !self.asks.seen.contains(&id) {
                self.asks.seen.push(id.clone());
                self.ask(id, &asked);
            }
        }
    }

    fn ask(&mut self, id: String, asked: &PendingAsk) {
        let has_forms = self.shared.client.elicitation.form.is_some();
        let question = match asked.ask.kind {
            AskKind::Question => Question::new(asked),
            AskKind::Permission | AskKind::Plan => None,
        };
        // Flush earlier text first, so that it is shown before the question.
        self.flush_text();
        let mut request = id.clone();
        if let Some(question) = question {
            request = question.name();
            self.lines.extend(question.request(&self.name, has_forms));
            self.asks.questions.push(question);
        } else if let Some(at) = self.asks.written.iter().position(|it| it.ask == id) {
            self.lines.extend(self.asks.written.swap_remove(at).line);
        } else {
            // The agent must not wait for an answer that will never arrive.
            let message = "no one could be asked".to_owned();
            return self
                .core
                .worker
                .settle_or_deny(&id, &Answer::Deny { message });
        }
        self.asks.open.push(OpenAsk { ask: id, request });
    }

    /// The client's response to a request of ours.
    pub(super) fn answered(&mut self, request: &str, result: Option<&Value>) {
        let Asks {
            open, questions, ..
        } = &mut self.asks;
        // It was withdrawn while the client answered.
        let Some(at) = open.iter().position(|it| it.request == request) else {
            return;
        };
        let question = questions.iter_mut().find(|it| it.ask() == open[at].ask);
        let answer = match question {
            Some(question) => match question.answered(result) {
                Some(answer) => answer,
                None => {
                    open[at].request = question.name();
                    let has_forms = self.shared.client.elicitation.form.is_some();
                    return self.lines.extend(question.request(&self.name, has_forms));
                }
            },
            None => answer(result),
        };
        let OpenAsk { ask, .. } = open.swap_remove(at);
        self.core.worker.settle_or_deny(&ask, &answer);
    }

    /// Withdraws a request from the client.
    fn withdraw(&mut self, request: &str) {
        let request_id = Value::from(format!("{}/{request}", self.name));
        let params = wire::CancelRequest { request_id };
        self.lines
            .extend(rpc::notification("$/cancel_request", &params));
    }

    pub(super) fn withdraw_asks(&mut self) {
        let Asks { open, .. } = std::mem::take(&mut self.asks);
        open.iter().for_each(|it| self.withdraw(&it.request));
    }
}

/// What an answer to a permission request means; no answer means no permission.
fn answer(result: Option<&Value>) -> Answer {
    let chosen = result.and_then(|it| it["outcome"]["optionId"].as_str());
    let input = None;
    match chosen {
        Some("allow") => Answer::Allow { input },
        Some("allow_always") => Answer::AllowAlways { input },
        Some(_) => Answer::Deny {
            message: "the user rejected it".to_owned(),
        },
        None => Answer::Deny {
            message: "the user did not decide".to_owned(),
        },
    }
}
