//! What a run is asked to do, and what has to be started for it: plain data.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::options::RunOptions;
pub use crate::permissions::{Mode, Permissions};

/// One prompt for an agent, and under which conditions.
#[derive(Clone, Debug)]
pub struct Request {
    /// Empty for an agent that is talked with: it is started, and waits.
    pub prompt: String,
    pub resume: Resume,
    pub options: RunOptions,
    /// What the agent may do, by the options and the config.
    pub permissions: Permissions,
    /// Servers of tools, beside those of the agent's own config.
    pub mcp_servers: Vec<McpServer>,
    /// Where the agent works; absolute.
    pub cwd: PathBuf,
    pub talk: Interaction,
}

/// A prompt of a dialogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Image>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: String,
    /// Base64.
    pub data: String,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            images: Vec::new(),
        }
    }
}

/// A server of tools, after the Model Context Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub via: McpVia,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpVia {
    Stdio {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    Sse {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// Which session of the agent a prompt belongs to. Ids are the agent's own, and opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    Fresh,
    Session(String),
    /// The newest session of the directory.
    Latest,
    /// A new session that begins with what this one holds.
    Fork(String),
}

/// Whether the agent can be talked with while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interaction {
    /// One process for one prompt; no client can be asked.
    OneShot,
    /// A process that stays: asks are answered, runs are interrupted, the next prompt needs no start-up.
    Dialogue,
}

/// The answer to an ask; its JSON is stored in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Answer {
    /// `input` is the JSON text of what runs instead of what was asked for, or of the answers.
    Allow {
        input: Option<String>,
    },
    /// Also remember it, as the agent suggested.
    AllowAlways {
        input: Option<String>,
    },
    Deny {
        message: String,
    },
}

/// What to start. The program is found, and nothing here goes through a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Set on top of what is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Taken out of what is inherited.
    pub env_remove: Vec<OsString>,
    pub cwd: PathBuf,
    pub stdin: Stdin,
    /// Values that would be visible in the process list.
    pub private: Option<SecretFile>,
}

/// A file that only the agent's user can read: its flag and its content. It exists as long as the
/// agent runs.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    pub flag: &'static str,
    pub text: String,
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretFile").field(&self.flag).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    Closed,
    /// Written, then closed.
    Text(String),
    /// Kept, to talk.
    Open,
}
