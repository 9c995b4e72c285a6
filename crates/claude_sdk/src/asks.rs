//! Asks of the agent: settled by the policy, otherwise by the host.

use formats::ClaudeRequest;
use runner::{Agent, Answer, PendingAsk, no_one_to_ask_message};
use serde_json::Value;

use crate::connection::Connection;
use crate::messages::HostAnswer;

#[derive(Debug, Default)]
pub(crate) struct Asks {
    /// What the writer has made of them, for those that the host is asked.
    written: Vec<ClaudeRequest>,
    /// The host is being asked.
    open: Vec<PendingAsk>,
}

impl Asks {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Connection {
    /// Puts the asks that the policy leaves open to the host, and withdraws those that are gone.
    pub(crate) fn handle_asks(&mut self) {
        self.asks.written.extend(self.writer.take_requests());
        let worker = &self.core.worker;
        // The host answers in place of a recording.
        let (asked, unanswered) = match self.is_recording {
            true => (
                worker.agent().map(Agent::recorded_asks),
                worker.recorded_asks(),
            ),
            false => (worker.agent().map(Agent::asks), worker.open_asks()),
        };
        let asked: Vec<String> = asked
            .unwrap_or_default()
            .iter()
            .map(|it| it.ask.id.to_string())
            .collect();
        let is_asked = |id: &str| asked.iter().any(|it| it == id);
        let (open, gone) = std::mem::take(&mut self.asks.open)
            .into_iter()
            .partition(|it| is_asked(it.ask.id.as_str()));
        self.asks.open = open;
        self.withdraw(gone);
        self.asks.written.retain(|it| is_asked(&it.ask));
        for asked in unanswered {
            let id = asked.ask.id.as_str();
            if self.asks.open.iter().any(|it| it.ask.id.as_str() == id) {
                continue;
            }
            let written = self.asks.written.iter().position(|it| it.ask == id);
            match written.filter(|_| self.config.asks_host && !self.is_input_closed) {
                Some(at) => {
                    let request = self.asks.written.swap_remove(at);
                    self.lines.extend(request.line);
                    self.asks.open.push(asked);
                }
                // The agent must not wait for an answer that cannot come.
                None => {
                    let message = no_one_to_ask_message(&asked);
                    let answer = Answer::Deny { message };
                    self.core
                        .worker
                        .settle_or_deny(asked.ask.id.as_str(), &answer);
                }
            }
        }
        self.report_state();
    }

    /// The host answers a question of ours.
    pub(crate) fn answered(&mut self, answered: &HostAnswer) {
        let open = &mut self.asks.open;
        let at = open
            .iter()
            .position(|it| it.ask.id.as_str() == answered.request_id);
        // It was withdrawn while the host answered.
        let Some(at) = at else { return };
        let asked = open.swap_remove(at);
        let answer = answer(&asked, answered);
        self.core
            .worker
            .settle_or_deny(asked.ask.id.as_str(), &answer);
        if answered.response["interrupt"] == true {
            self.interrupt();
        }
        self.report_state();
    }

    /// The host can no longer answer.
    pub(crate) fn deny_asks(&mut self) {
        for asked in std::mem::take(&mut self.asks.open) {
            let message = no_one_to_ask_message(&asked);
            let answer = Answer::Deny { message };
            self.core
                .worker
                .settle_or_deny(asked.ask.id.as_str(), &answer);
        }
    }

    pub(crate) fn withdraw_asks(&mut self) {
        let gone = std::mem::take(&mut self.asks.open);
        self.withdraw(gone);
    }

    fn withdraw(&mut self, gone: Vec<PendingAsk>) {
        for asked in gone {
            self.writer.withdraw(asked.ask.id.as_str(), &mut self.lines);
        }
    }
}

/// What the host's answer means; an error does not grant permission.
fn answer(asked: &PendingAsk, answered: &HostAnswer) -> Answer {
    let response = &answered.response;
    let text = |it: &Value| it.as_str().map(str::to_owned);
    if answered.subtype != "success" || response["behavior"] != "allow" {
        let message = text(&response["message"]).or(answered.error.clone());
        let message = message.unwrap_or_else(|| "the host did not allow it".to_owned());
        return Answer::Deny { message };
    }
    let before = asked.ask.input.as_ref();
    let before: Option<Value> = before.and_then(|it| serde_json::from_str(it.get()).ok());
    let updated = &response["updatedInput"];
    // The host repeats the input that it allows, which not every agent lets be changed.
    let is_changed = !updated.is_null() && before.as_ref() != Some(updated);
    let input = is_changed.then(|| updated.to_string());
    match response["updatedPermissions"].as_array() {
        Some(rules) if !rules.is_empty() => Answer::AllowAlways { input },
        Some(_) | None => Answer::Allow { input },
    }
}

#[cfg(test)]
mod tests {
    use model::{Ask, AskId, AskKind, Raw, Text, ToolKind};
    use serde_json::json;

    use super::*;

    fn answered(subtype: &str, response: Value) -> Answer {
        let ask = Ask {
            input: Some(Raw::parse(r#"{"command": "ls"}"#.to_owned())),
            ..Ask::new(
                AskId::new("a"),
                AskKind::Permission,
                "Bash",
                Text::new("ls"),
            )
        };
        let asked = PendingAsk {
            ask,
            kind: ToolKind::Shell,
            paths: Vec::new(),
            cwd: None,
        };
        let host =
            json!({"request_id": "a", "subtype": subtype, "response": response, "error": "broken"});
        answer(&asked, &serde_json::from_value(host).unwrap())
    }

    #[test]
    fn an_input_that_is_repeated_is_not_changed() {
        let same = json!({"behavior": "allow", "updatedInput": {"command": "ls"}});
        assert_eq!(answered("success", same), Answer::Allow { input: None });
        let other = json!({"behavior": "allow", "updatedInput": {"command": "pwd"}});
        let input = Some(r#"{"command":"pwd"}"#.to_owned());
        assert_eq!(answered("success", other), Answer::Allow { input });
    }

    #[test]
    fn rules_that_come_back_are_remembered() {
        let always = json!({"behavior": "allow", "updatedPermissions": [{"type": "setMode"}]});
        assert_eq!(
            answered("success", always),
            Answer::AllowAlways { input: None }
        );
        let none = json!({"behavior": "allow", "updatedPermissions": []});
        assert_eq!(answered("success", none), Answer::Allow { input: None });
    }

    #[test]
    fn anything_else_is_no_permission() {
        let deny = |message: &str| Answer::Deny {
            message: message.to_owned(),
        };
        let no = json!({"behavior": "deny", "message": "not there"});
        assert_eq!(answered("success", no), deny("not there"));
        assert_eq!(answered("error", Value::Null), deny("broken"));
        assert_eq!(
            answered("error", json!({"behavior": "allow"})),
            deny("broken")
        );
    }
}
