//! How much of a thread has to be sent to an endpoint: everything, or what is new to it.
//!
//! Nothing here is kept: the last response and what was sent for it are in the journal, and
//! [`History`] has found them there. A thread whose earlier messages the client has changed is sent
//! whole; so is one that the provider has never seen.

use formats::{History, LastResponse};
use model::{Content, MessageContent, Thread, ThreadMessage};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::endpoint::Endpoint;
use crate::request::{UnsupportedInput, body};

/// A thread on its way to an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Tells threads apart, for providers that want to know.
    pub name: String,
    pub thread: Thread,
    pub model: Option<String>,
    /// The reasoning effort.
    pub effort: Option<String>,
    /// The response to continue, and how many of the messages it knows.
    previous: Option<(String, usize)>,
}

impl Conversation {
    /// The thread as its client has sent it; `history` is what the journal has of it.
    pub fn of_client(name: &str, thread: Thread, history: &History) -> Self {
        let last = history.last.as_ref();
        let previous = last.and_then(|last| {
            let n_known = known(&thread.messages, last)?;
            Some((last.response.clone(), n_known))
        });
        Self {
            name: name.to_owned(),
            thread,
            model: None,
            effort: None,
            previous,
        }
    }

    /// What the journal has of a thread, and one prompt more.
    pub fn of_prompt(name: &str, history: History, prompt: &str) -> Self {
        // A prompt answers no call, and providers refuse to continue from one that is open.
        let previous = history.last.filter(|it| it.calls.is_empty());
        let mut messages = history.messages;
        messages.push(ThreadMessage {
            id: "prompt".to_owned(),
            content: MessageContent::User(Content::Text(prompt.to_owned())),
        });
        Self {
            name: name.to_owned(),
            thread: Thread {
                messages,
                ..Thread::default()
            },
            model: None,
            effort: None,
            previous: previous.map(|it| (it.response, it.n_messages)),
        }
    }

    /// The session that the thread is: providers that keep sessions of their own know it by this.
    pub fn in_session(&mut self, session: &str) {
        session.clone_into(&mut self.name);
    }

    /// The response to continue, when nothing else is known.
    pub fn follow(&mut self, response: &str) {
        // With more messages the client has sent the history itself, and it would be there twice.
        if self.previous.is_none() && self.thread.messages.len() == 1 {
            self.previous = Some((response.to_owned(), 0));
        }
    }

    /// The response that the next one continues.
    pub fn previous(&self, endpoint: &Endpoint) -> Option<&str> {
        self.next(endpoint).map(|it| it.0)
    }

    fn next(&self, endpoint: &Endpoint) -> Option<(&str, usize)> {
        let is_kept = endpoint.is_stateful && endpoint.provider.keeps_responses();
        let previous = self.previous.as_ref().filter(|_| is_kept)?;
        Some((previous.0.as_str(), previous.1))
    }

    /// The request: the short one, where there is one, and the whole one.
    pub(crate) fn bodies(
        &self,
        endpoint: &Endpoint,
    ) -> Result<(Option<Value>, Value), UnsupportedInput> {
        // Made in any case, because the provider may have forgotten the rest.
        let whole = body(endpoint, self, None)?;
        let next = self.next(endpoint);
        let short = next.map(|it| body(endpoint, self, Some(it))).transpose()?;
        Ok((short, whole))
    }

    /// Fails on what cannot be sent, before anything is begun.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), UnsupportedInput> {
        body(endpoint, self, None).map(drop)
    }
}

/// How many of the client's messages the last response knows: those sent for it, and its own.
/// None when the client has changed the story, or has nothing new, or leaves a call of the response open:
/// providers refuse to continue from there, and a whole request leaves such calls out.
fn known(messages: &[ThreadMessage], last: &LastResponse) -> Option<usize> {
    // A run without a client, such as one from the command line, has no digest to compare.
    let client = last.client.as_ref()?;
    let sent = messages.get(..client.n_messages)?;
    if digest(sent) != client.digest {
        return None;
    }
    let (mut text, mut calls) = (String::new(), Vec::new());
    let mut n_known = client.n_messages;
    for message in &messages[n_known..] {
        match &message.content {
            MessageContent::Assistant {
                content,
                tool_calls,
            } => {
                text.push_str(content.as_deref().unwrap_or(""));
                calls.extend(tool_calls.iter().map(|it| &it.id));
            }
            // Clients may leave these out, so they prove nothing.
            MessageContent::Reasoning { .. } | MessageContent::Activity => (),
            MessageContent::Instructions(_)
            | MessageContent::User(_)
            | MessageContent::Tool { .. } => break,
        }
        n_known += 1;
    }
    let new = &messages[n_known..];
    let is_answered = |id: &String| {
        let mut contents = new.iter().map(|it| &it.content);
        contents.any(|it| matches!(it, MessageContent::Tool { call, .. } if call == id))
    };
    // Clients list calls in the order in which they began, the journal in the one in which they ended.
    calls.sort_unstable();
    let mut made: Vec<&String> = last.calls.iter().collect();
    made.sort_unstable();
    // The client may have edited the answer, too.
    let is_same = text == last.text && calls == made;
    (is_same && !new.is_empty() && made.into_iter().all(is_answered)).then_some(n_known)
}

/// A hash of messages, by which they are known again.
pub fn digest(messages: &[ThreadMessage]) -> String {
    let json = serde_json::to_vec(messages).expect("messages are plain data with string keys");
    let hash = Sha256::digest(&json);
    // Half of it tells messages apart, and the digest is stored with every run.
    hash.iter().take(16).map(|it| format!("{it:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use model::ClientRun;
    use serde_json::json;

    use super::*;

    fn messages(list: Value) -> Vec<ThreadMessage> {
        let input = json!({ "threadId": "t", "runId": "r", "messages": list }).to_string();
        formats::read_thread(input.as_bytes()).unwrap().messages
    }

    fn calls(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({ "id": id, "function": { "name": "f", "arguments": "{}" } });
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({ "id": "a", "role": "assistant", "content": "Let me see.", "toolCalls": calls })
    }

    #[test]
    fn a_response_continues_only_when_all_its_calls_are_answered() {
        let user = |id: &str| json!({ "id": id, "role": "user", "content": "hi" });
        let tool =
            |call: &str| json!({ "id": call, "role": "tool", "toolCallId": call, "content": "x" });
        let last = LastResponse {
            response: "resp_1".to_owned(),
            n_messages: 2,
            client: Some(ClientRun {
                id: "r1".to_owned(),
                n_messages: 1,
                digest: digest(&messages(json!([user("1")]))),
                answers: Vec::new(),
            }),
            text: "Let me see.".to_owned(),
            calls: vec!["c2".to_owned(), "c1".to_owned()],
        };
        let both = calls(&["c1", "c2"]);
        let rows = [
            (json!([user("1"), both, tool("c1"), tool("c2")]), Some(2)),
            (
                json!([user("1"), both, tool("c1"), tool("c2"), user("2")]),
                Some(2),
            ),
            // Nothing new.
            (json!([user("1"), both]), None),
            // The user says something else instead, or answers one call only.
            (json!([user("1"), both, user("2")]), None),
            (json!([user("1"), both, tool("c1")]), None),
            // Other calls than the model made.
            (
                json!([user("1"), calls(&["c1", "c3"]), tool("c1"), tool("c3")]),
                None,
            ),
            (json!([user("1"), calls(&[]), user("2")]), None),
        ];
        for (list, expected) in rows {
            assert_eq!(known(&messages(list.clone()), &last), expected, "{list}");
        }
    }

    #[test]
    fn a_prompt_does_not_continue_from_an_open_call() {
        let last = |calls: &[&str]| LastResponse {
            response: "resp_1".to_owned(),
            n_messages: 1,
            client: None,
            text: String::new(),
            calls: calls.iter().map(|it| (*it).to_owned()).collect(),
        };
        let previous = |last: LastResponse| {
            let mut history = History::default();
            history.last = Some(last);
            Conversation::of_prompt("t", history, "hi").previous
        };
        assert_eq!(previous(last(&[])), Some(("resp_1".to_owned(), 1)));
        assert_eq!(previous(last(&["c1"])), None);
    }
}
