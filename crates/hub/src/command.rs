//! Commands of a session: prompts as submitted and as queued in the journal, aborts and answers.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use journal::{CommandBody, Journal, WriteId};
use model::{ClientRun, SessionId, Thread};
use runner::{Answer, AskDefault, RunOptions};
use serde::{Deserialize, Serialize};

use crate::acceptor::Accepted;

/// A prompt with its options. Absent options default to the session's settings, then to the config.
#[derive(Clone, Debug)]
pub struct Submit {
    pub prompt: String,
    pub target: Target,
    /// As in `linkspan run --engine`; absent is the session's, else the user's default.
    pub engine: Option<String>,
    pub cwd: Option<PathBuf>,
    pub options: RunOptions,
    /// The client's own name for the run; stored with it.
    pub client: Option<ClientRun>,
    /// The whole conversation, for engines that take one.
    pub thread: Option<Thread>,
}

impl Submit {
    /// A prompt for a new session with default options.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            target: Target::New,
            engine: None,
            cwd: None,
            options: RunOptions::default(),
            client: None,
            thread: None,
        }
    }
}

/// Which session a prompt belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    New,
    /// One of the journal, by our id or by the agent's.
    Session(String),
    /// One by our id, made if it is not there.
    Own(String),
    /// One by the agent's own id, whether the journal has it or not.
    Native(String),
    /// A new one that begins with what this one holds, by our id or by the agent's.
    Fork(String),
}

/// A prompt as it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prompt {
    /// Absent in what older versions have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<Accepted>,
    pub(crate) prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<ClientRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<Thread>,
    pub(crate) settings: Settings,
}

/// The engine of a prompt, and what it is started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) engine: String,
    pub(crate) cwd: PathBuf,
    #[serde(flatten)]
    pub(crate) options: RunOptions,
}

impl Settings {
    /// Whether an agent with these settings can take a prompt with `other`.
    pub(crate) fn fit(&self, other: &Self) -> bool {
        self.engine == other.engine && self.cwd == other.cwd && self.options.fit(&other.options)
    }
}

/// What older versions stored in other places.
#[derive(Deserialize)]
struct OldPrompt {
    speed: Option<f64>,
    /// In milliseconds.
    ask_timeout: Option<u64>,
    ask_default: Option<AskDefault>,
    /// An AG-UI request.
    input: Option<String>,
}

impl Prompt {
    /// Reads a stored prompt; none that can never be run.
    pub(crate) fn read(stored: &[u8]) -> Option<Self> {
        let mut prompt: Self = serde_json::from_slice(stored).ok()?;
        let old: OldPrompt = serde_json::from_slice(stored).ok()?;
        let options = &mut prompt.settings.options;
        options.speed = options.speed.or(old.speed);
        options.ask_timeout = (options.ask_timeout).or(old.ask_timeout.map(Duration::from_millis));
        options.ask_default = options.ask_default.or(old.ask_default);
        if let Some(input) = old.input {
            prompt.thread = Some(formats::read_thread(input.as_bytes()).ok()?);
        }
        Some(prompt)
    }
}

/// A request to the owner of a session to stop something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Abort {
    /// The number of a queued prompt to remove; absent means the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<u64>,
    /// Only the run of this prompt; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<u64>,
    /// Only release the session once it is idle, because another process wants it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) leave: bool,
}

fn is_false(it: &bool) -> bool {
    !*it
}

/// Asks the owner of a session to release it as soon as it is idle.
pub async fn request_release(
    journal: &dyn Journal,
    session: &SessionId<'_>,
) -> journal::Result<()> {
    let leave = Abort {
        leave: true,
        ..Abort::default()
    };
    let order = CommandBody::Abort(to_bytes(&leave));
    journal
        .command(session, WriteId::new(), order)
        .await
        .map(drop)
}

/// An answer as stored in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    #[serde(flatten)]
    pub(crate) answer: Answer,
    /// The ask timed out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_late: bool,
}

pub(crate) fn to_bytes(order: &impl Serialize) -> Bytes {
    let json = serde_json::to_vec(order);
    json.expect("orders are plain data with string keys").into()
}

#[cfg(test)]
mod tests {
    use model::{Content, MessageContent, ThreadMessage};
    use runner::Mode;
    use serde_json::json;

    use super::*;

    fn prompt() -> Prompt {
        Prompt {
            accepted: None,
            prompt: "hi".to_owned(),
            resume: None,
            fork: None,
            client: None,
            thread: Some(Thread {
                messages: vec![ThreadMessage {
                    id: "1".to_owned(),
                    content: MessageContent::User(Content::Text("hi".to_owned())),
                }],
                props: [("temperature".to_owned(), json!(0.5))]
                    .into_iter()
                    .collect(),
                ..Thread::default()
            }),
            settings: Settings {
                engine: "claude".to_owned(),
                cwd: "/".into(),
                options: RunOptions {
                    permissions: Some(Mode::AcceptEdits),
                    output_style: Some("Explanatory".to_owned()),
                    speed: Some(2.0),
                    ask_timeout: Some(Duration::from_millis(1500)),
                    ask_default: Some(AskDefault::Deny),
                    ..RunOptions::default()
                },
            },
        }
    }

    #[test]
    fn an_order_has_only_what_it_says() {
        assert_eq!(to_bytes(&Abort::default()), "{}");
        let answer = StoredAnswer {
            answer: Answer::Deny {
                message: "no".to_owned(),
            },
            is_late: false,
        };
        let json = r#"{"decision":"deny","message":"no"}"#;
        assert_eq!(to_bytes(&answer), json);
        let late = StoredAnswer {
            is_late: true,
            ..answer
        };
        assert_eq!(to_bytes(&late), json.replace('}', r#","is_late":true}"#));
        let read: StoredAnswer = serde_json::from_slice(&to_bytes(&late)).unwrap();
        assert_eq!(read, late);
    }

    #[test]
    fn a_stored_prompt_is_read_as_it_was() {
        assert_eq!(Prompt::read(&to_bytes(&prompt())), Some(prompt()));
    }

    #[test]
    fn a_prompt_that_an_older_version_stored_is_read() {
        let input = r#"{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"hi"}],"forwardedProps":{"temperature":0.5}}"#;
        let stored = json!({
            "prompt": "hi", "speed": 2.0, "ask_timeout": 1500, "ask_default": "deny", "input": input,
            "settings": {
                "engine": "claude", "cwd": "/", "permissions": "accept-edits",
                "output_style": "Explanatory",
            },
        });
        assert_eq!(Prompt::read(stored.to_string().as_bytes()), Some(prompt()));
    }
}
