//! What a session holds, as the messages of a thread: for clients that come late, and for models that
//! remember nothing by themselves.
//!
//! Only the root conversation counts; sub-agents have conversations of their own. Tools that the
//! provider runs are its own affair.

use model::{
    Body, ClientRun, Content, Event, Item, ItemClosed, MessageContent, Outcome, Role, RunEnded,
    ThreadMessage, Tool, ToolAnswer, ToolCall,
};

use crate::writers::content;

/// The messages of a session, folded from its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub messages: Vec<ThreadMessage>,
    /// The last response that a model's endpoint can continue from.
    pub last: Option<LastResponse>,
    /// The model's text in the open run.
    text: String,
    /// Unanswered calls of that run: they are for the client.
    calls: Vec<String>,
    client: Option<ClientRun>,
    /// The assistant message that calls of this model response belong to.
    group: Option<(String, usize)>,
}

/// Where an endpoint that stores conversations can continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastResponse {
    pub response: String,
    /// How many messages of the history it knows.
    pub n_messages: usize,
    /// What the client had sent for it.
    pub client: Option<ClientRun>,
    /// The model's text in it.
    pub text: String,
    /// The calls it made and waits for: an endpoint continues only when all of them are answered.
    pub calls: Vec<String>,
}

impl History {
    /// Takes the next event of the session.
    pub fn event(&mut self, event: &Event<'_>) {
        if !event.path.is_empty() {
            return;
        }
        match &event.body {
            Body::RunStarted(_) => {
                self.text.clear();
                self.calls.clear();
                self.client = None;
                self.group = None;
            }
            Body::ItemClosed(closed) => self.closed(closed),
            Body::RunEnded(ended) => self.ended(ended, event.native.as_deref()),
            Body::NoticeRaised(_) => {
                if let Some(client) = ClientRun::of(event) {
                    client.answers.iter().for_each(|it| self.answered(it));
                    self.client = Some(client);
                }
            }
            Body::SessionBound(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::UsageReported(_)
            | Body::FrameUnmapped(_) => (),
        }
    }

    fn closed(&mut self, closed: &ItemClosed<'_>) {
        match &closed.item {
            Item::Message(it) => {
                let text = it.text.to_str().into_owned();
                let content = match it.role {
                    Role::User => MessageContent::User(Content::Text(text)),
                    Role::Assistant if text.is_empty() => return,
                    Role::Assistant => {
                        self.text.push_str(&text);
                        let group = it.group.as_deref().map(str::to_owned);
                        // The place that the message is about to take: calls of the same response
                        // join it there.
                        self.group = group.map(|it| (it, self.messages.len()));
                        MessageContent::Assistant {
                            content: Some(text),
                            tool_calls: Vec::new(),
                        }
                    }
                    // Messages from the agent program to its model are internal.
                    Role::Harness => return,
                };
                self.push(it.id.as_str(), content);
            }
            Item::Reasoning(it) => {
                let content = MessageContent::Reasoning {
                    content: it.text.to_str().into_owned(),
                    encrypted: it.encrypted.as_ref().map(|it| it.to_str().into_owned()),
                };
                self.push(it.id.as_str(), content);
            }
            Item::Tool(it) if !it.server_side => self.called(it),
            Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    /// A call belongs to the message of its model response, or makes one.
    fn called(&mut self, tool: &Tool<'_>) {
        let call = ToolCall {
            id: tool.id.to_string(),
            name: tool.name.to_string(),
            // Arguments are JSON as text: nothing at all would not parse.
            arguments: tool.input.as_ref().map_or("{}", |it| it.get()).to_owned(),
        };
        let at = match (&self.group, tool.group.as_deref()) {
            (Some((group, at)), Some(of)) if group == of => *at,
            (_, group) => {
                let at = self.messages.len();
                self.group = group.map(|it| (it.to_owned(), at));
                let content = MessageContent::Assistant {
                    content: None,
                    tool_calls: Vec::new(),
                };
                self.push(tool.id.as_str(), content);
                at
            }
        };
        if let MessageContent::Assistant { tool_calls, .. } = &mut self.messages[at].content {
            tool_calls.push(call);
        }
        let Some(result) = &tool.result else {
            return self.calls.push(tool.id.to_string());
        };
        let text = content::text(&result.content).to_str().into_owned();
        let content = MessageContent::Tool {
            call: tool.id.to_string(),
            error: result.is_error.then(|| text.clone()),
            content: Content::Text(text),
        };
        self.push(&format!("{}:result", tool.id), content);
    }

    /// A client may tell what it likes: an answer counts where a call waits for it.
    fn answered(&mut self, answer: &ToolAnswer) {
        let waits = |it: &ThreadMessage| match &it.content {
            MessageContent::Assistant { tool_calls, .. } => {
                tool_calls.iter().any(|it| it.id == answer.call)
            }
            _ => false,
        };
        let is_answer = |it: &ThreadMessage| matches!(&it.content, MessageContent::Tool { call, .. } if *call == answer.call);
        // An answer without its call, or a second one, has no place in a history.
        if self.messages.iter().any(waits) && !self.messages.iter().any(is_answer) {
            let content = MessageContent::Tool {
                call: answer.call.clone(),
                content: Content::Text(answer.text.clone()),
                error: answer.error.clone(),
            };
            self.push(&answer.id, content);
        }
    }

    fn ended(&mut self, ended: &RunEnded<'_>, response: Option<&str>) {
        let is_kept = match ended.outcome {
            Outcome::Completed | Outcome::Refused | Outcome::Limit => ended.error.is_none(),
            Outcome::Failed | Outcome::Aborted | Outcome::Lost => false,
        };
        if let Some(response) = response.filter(|_| is_kept) {
            self.last = Some(LastResponse {
                response: response.to_owned(),
                n_messages: self.messages.len(),
                client: self.client.clone(),
                text: self.text.clone(),
                calls: self.calls.clone(),
            });
        } else if ended.outcome == Outcome::Failed {
            // The previous response may be the cause of the failure; sending the whole thread avoids it.
            self.last = None;
        }
        // A group is a response of one run: no call of the next may join it.
        self.group = None;
    }

    fn push(&mut self, id: &str, content: MessageContent) {
        self.messages.push(ThreadMessage {
            id: id.to_owned(),
            content,
        });
    }
}
