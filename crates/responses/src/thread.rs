//! How much of a thread an endpoint has to be told: everything, or what is new to it.
//!
//! Nothing here is kept: the last response and what was sent for it are in the journal, and
//! [`History`] has found them there. A client that has changed what was said before is noticed, and told
//! whole; so is one whose thread the provider has never seen.

use formats::ag_ui::{Content, Context, History, Last, Message, RunAgentInput, Said, Tool};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::endpoint::Endpoint;
use crate::request::{Refused, body};

/// A thread on its way to an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Tells threads apart, for providers that want to know.
    pub thread: String,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub context: Vec<Context>,
    /// What the client says about the request itself.
    pub props: Map<String, Value>,
    pub model: Option<String>,
    /// The response to go on with, and how many of the messages it knows.
    previous: Option<(String, usize)>,
}

impl Conversation {
    /// The thread as its client has sent it; `history` is what the journal has of it.
    pub fn of_client(thread: &str, input: RunAgentInput, history: &History) -> Self {
        let last = history.last.as_ref();
        let previous = last.and_then(|last| {
            let n_known = known(&input.messages, last)?;
            Some((last.response.clone(), n_known))
        });
        Self {
            thread: thread.to_owned(),
            messages: input.messages,
            tools: input.tools,
            context: input.context,
            props: input.forwarded_props,
            model: None,
            previous,
        }
    }

    /// What the journal has of a thread, and one prompt more.
    pub fn of_prompt(thread: &str, history: History, prompt: &str) -> Self {
        let mut messages = history.messages;
        messages.push(Message {
            id: "prompt".to_owned(),
            said: Said::User(Content::Text(prompt.to_owned())),
        });
        Self {
            thread: thread.to_owned(),
            messages,
            tools: Vec::new(),
            context: Vec::new(),
            props: Map::new(),
            model: None,
            previous: history.last.map(|it| (it.response, it.n_messages)),
        }
    }

    /// The response to go on with, when nothing else is known.
    pub fn follow(&mut self, response: &str) {
        if self.previous.is_none() && self.messages.len() == 1 {
            self.previous = Some((response.to_owned(), 0));
        }
    }

    /// The response that the next one goes on with.
    pub fn previous(&self, endpoint: &Endpoint) -> Option<&str> {
        self.next(endpoint).map(|it| it.0)
    }

    fn next(&self, endpoint: &Endpoint) -> Option<(&str, usize)> {
        let is_kept = endpoint.is_stateful && endpoint.provider.keeps_responses();
        let previous = self.previous.as_ref().filter(|_| is_kept)?;
        Some((previous.0.as_str(), previous.1))
    }

    /// The request: the short one, where there is one, and the whole one.
    pub(crate) fn bodies(&self, endpoint: &Endpoint) -> Result<(Option<Value>, Value), Refused> {
        let whole = body(endpoint, self, None)?;
        let next = self.next(endpoint);
        let short = next.map(|it| body(endpoint, self, Some(it))).transpose()?;
        Ok((short, whole))
    }

    /// Says what is wrong before anything is begun.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), Refused> {
        body(endpoint, self, None).map(drop)
    }
}

/// How many of the client's messages the last response knows: what was sent for it, and what it said.
/// None when the client tells another story, or nothing new.
fn known(messages: &[Message], last: &Last) -> Option<usize> {
    let client = last.client.as_ref()?;
    let sent = messages.get(..client.n_messages)?;
    if digest(sent) != client.digest {
        return None;
    }
    let mut text = String::new();
    let mut n_known = client.n_messages;
    for message in &messages[n_known..] {
        match &message.said {
            Said::Assistant { content, .. } => text.push_str(content.as_deref().unwrap_or("")),
            Said::Reasoning { .. } | Said::Activity => (),
            Said::Instructions(_) | Said::User(_) | Said::Tool { .. } => break,
        }
        n_known += 1;
    }
    (text == last.text && n_known < messages.len()).then_some(n_known)
}

/// A hash of messages, by which they are known again.
pub fn digest(messages: &[Message]) -> String {
    let json = serde_json::to_vec(messages).expect("messages are plain data with string keys");
    let hash = Sha256::digest(&json);
    hash.iter().take(16).map(|it| format!("{it:02x}")).collect()
}
