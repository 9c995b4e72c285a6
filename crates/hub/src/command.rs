//! Commands of a session: prompts as submitted and as queued in the journal, aborts and answers.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use journal::{CommandBody, Journal};
use model::{ClientRun, SessionId, Thread};
use runner::{Answer, AskDefault, Mode};
use serde::{Deserialize, Serialize};

use crate::acceptor::Accepted;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A prompt with its options. Absent options default to the session's settings, then to the config.
#[derive(Clone, Debug)]
pub struct Submit {
    pub prompt: String,
    pub target: Target,
    /// As in `linkspan run --engine`; absent is the session's, else the user's default.
    pub engine: Option<String>,
    pub cwd: Option<PathBuf>,
    pub model: Option<String>,
    pub permissions: Option<Mode>,
    /// Tools that may run without a question, instead of those of the config; an empty list allows
    /// nothing.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
    pub output_style: Option<String>,
    pub verbosity: Option<String>,
    /// Of a recording: 2 is twice as fast. Absent is as fast as it can be.
    pub speed: Option<f64>,
    /// The timeout of asks; `None` means no timeout.
    pub ask_timeout: Option<Duration>,
    /// The answer to an ask that times out.
    pub ask_default: Option<AskDefault>,
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
            model: None,
            permissions: None,
            allow: None,
            deny: Vec::new(),
            output_style: None,
            verbosity: None,
            speed: None,
            ask_timeout: None,
            ask_default: None,
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
    pub(crate) speed: Option<f64>,
    /// In milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask_default: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<ClientRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<Thread>,
    /// An AG-UI request, in what older versions have left.
    #[serde(default, skip_serializing)]
    pub(crate) input: Option<String>,
    pub(crate) settings: Settings,
}

impl Prompt {
    pub(crate) fn new(submit: &Submit, settings: Settings) -> Self {
        let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        Self {
            accepted: None,
            prompt: submit.prompt.clone(),
            resume: None,
            fork: None,
            speed: submit.speed.filter(|it| *it > 0.0),
            ask_timeout: submit.ask_timeout.map(millis),
            ask_default: submit.ask_default.map(|it| it.name().to_owned()),
            client: submit.client.clone(),
            thread: submit.thread.clone(),
            input: None,
            settings,
        }
    }

    /// The whole conversation, if the prompt came with one.
    pub(crate) fn thread(&self) -> Result<Option<Thread>, BoxError> {
        match (&self.thread, &self.input) {
            (None, Some(input)) => Ok(Some(formats::read_thread(input.as_bytes())?)),
            (thread, _) => Ok(thread.clone()),
        }
    }

    pub(crate) fn ask_timeout(&self) -> Option<Duration> {
        self.ask_timeout.map(Duration::from_millis)
    }

    pub(crate) fn ask_default(&self) -> Option<AskDefault> {
        self.ask_default.as_deref().and_then(AskDefault::find)
    }
}

/// The settings an agent is started with; a prompt with equal settings reuses its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) engine: String,
    pub(crate) cwd: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permissions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allow: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) deny: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_style: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verbosity: Option<String>,
}

impl Settings {
    pub(crate) fn new(submit: &Submit, engine: String, cwd: PathBuf) -> Self {
        Self {
            engine,
            cwd,
            model: submit.model.clone(),
            permissions: submit.permissions.map(|it| it.name().to_owned()),
            allow: submit.allow.clone(),
            deny: submit.deny.clone(),
            output_style: submit.output_style.clone(),
            verbosity: submit.verbosity.clone(),
        }
    }

    pub(crate) fn mode(&self) -> Option<Mode> {
        self.permissions.as_deref().and_then(Mode::parse)
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
    journal.command(session, order).await.map(drop)
}

/// An answer as stored in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum StoredAnswer {
    Allow {
        input: Option<String>,
        /// The ask timed out.
        #[serde(default, skip_serializing_if = "is_false")]
        is_late: bool,
    },
    AllowAlways {
        input: Option<String>,
    },
    Deny {
        message: String,
        #[serde(default, skip_serializing_if = "is_false")]
        is_late: bool,
    },
}

impl StoredAnswer {
    /// The answer to an ask that timed out.
    pub(crate) fn late(answer: Answer) -> Self {
        match Self::from(answer) {
            Self::Allow { input, .. } => Self::Allow {
                input,
                is_late: true,
            },
            Self::Deny { message, .. } => Self::Deny {
                message,
                is_late: true,
            },
            Self::AllowAlways { input } => Self::AllowAlways { input },
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        match self {
            Self::Allow { is_late, .. } | Self::Deny { is_late, .. } => *is_late,
            Self::AllowAlways { .. } => false,
        }
    }
}

impl From<Answer> for StoredAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow { input } => Self::Allow {
                input,
                is_late: false,
            },
            Answer::AllowAlways { input } => Self::AllowAlways { input },
            Answer::Deny { message } => Self::Deny {
                message,
                is_late: false,
            },
        }
    }
}

impl From<StoredAnswer> for Answer {
    fn from(answer: StoredAnswer) -> Self {
        match answer {
            StoredAnswer::Allow { input, .. } => Self::Allow { input },
            StoredAnswer::AllowAlways { input } => Self::AllowAlways { input },
            StoredAnswer::Deny { message, .. } => Self::Deny { message },
        }
    }
}

pub(crate) fn to_bytes(order: &impl Serialize) -> Bytes {
    let json = serde_json::to_vec(order);
    json.expect("orders are plain data with string keys").into()
}

#[cfg(test)]
mod tests {
    use model::{Content, MessageContent, ThreadMessage};

    use super::*;

    #[test]
    fn a_thread_that_an_older_version_stored_is_read() {
        let input = r#"{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"hi"}],"forwardedProps":{"temperature":0.5}}"#;
        let stored = serde_json::json!({
            "prompt": "hi", "input": input, "settings": { "engine": "responses:x", "cwd": "/" },
        });
        let prompt: Prompt = serde_json::from_value(stored).unwrap();
        let expected = Thread {
            messages: vec![ThreadMessage {
                id: "1".to_owned(),
                content: MessageContent::User(Content::Text("hi".to_owned())),
            }],
            props: [("temperature".to_owned(), 0.5.into())]
                .into_iter()
                .collect(),
            ..Thread::default()
        };
        assert_eq!(prompt.thread().unwrap(), Some(expected));
    }
}
