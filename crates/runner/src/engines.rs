//! How each agent is started: one table, and one file of rules per agent.
//!
//! Everything here is pure: a config and a request in, arguments and environment out. Flags are those of
//! Claude Code 2.1.325, Codex 0.166.0, OpenCode 1.18.33, Gemini CLI 0.61.0 and the SDK of OpenHands 1.58.0,
//! tried with the real programs.
//! `docs/engines.md` lists what each permission mode becomes.

mod acp;
mod arguments;
mod claude;
mod codex;
mod error;
mod gemini;
mod installed;
mod invocation;
mod launch_context;
mod login;
mod opencode;
pub(crate) mod openhands;
mod replay;
mod select;

pub(crate) use claude::ALLOWED_TOOLS as CLAUDE_TOOLS;
pub(crate) use codex::limits as codex_limits;
pub use error::Error;
pub(crate) use gemini::ALLOWED_TOOLS as GEMINI_TOOLS;
pub use installed::{Installed, detect_installed, find_installed};
pub use invocation::{EngineConfig, Invocation};
pub use launch_context::LaunchContext;
pub use login::{Billing, Found, Login, Machine, Store};
pub(crate) use opencode::ALLOWED_TOOLS as OPENCODE_TOOLS;
pub(crate) use openhands::ALLOWED_TOOLS as OPENHANDS_TOOLS;
pub use replay::{BundledReplay, REPLAYS, Recording};
pub use select::{DEFAULT_ORDER, Selected, SelectedAgent, first_installed, select};

use crate::request::Request;

/// One kind of agent.
#[derive(Debug)]
pub struct Engine {
    pub name: &'static str,
    pub summary: &'static str,
    /// What follows the colon, for the engines that are called `name:VALUE`.
    pub argument: Option<&'static str>,
    /// What is started; none where the value says it.
    pub program: Option<Program>,
    /// The format it prints when it runs one prompt; none when it cannot.
    pub one_shot: Option<&'static str>,
    /// Its output for one prompt repeats the prompt.
    pub echoes: bool,
    /// The format it speaks when it is talked with; none when it cannot.
    pub dialogue: Option<&'static str>,
    pub capabilities: Capabilities,
    /// How it logs in, where linkspan knows.
    pub login: Option<Login>,
    /// What a request becomes; none where no process is started.
    pub rules: Option<Rules>,
}

/// The arguments and the environment for a request.
pub type Rules = fn(&EngineConfig, &Request) -> Result<Invocation, Error>;

/// A program that the user has to install.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    /// The command that installs it.
    pub install: &'static str,
    /// The arguments that make it print its version.
    pub version: &'static [&'static str],
    /// The program has other users: the agent is installed only if it prints a version.
    pub is_shared: bool,
    /// Set for every start, that of asking the version too.
    pub env: &'static [(&'static str, &'static str)],
}

/// The capabilities of an agent, in any kind of interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Resume a named session.
    pub resume: bool,
    /// Begin a new session with what another one holds.
    pub fork: bool,
    /// Resume the newest session.
    pub latest: bool,
    /// Ask for permission, and wait for the answer.
    pub ask: bool,
    /// Stop a run without ending the process.
    pub interrupt: bool,
}

const EVERYTHING: Capabilities = Capabilities {
    resume: true,
    fork: true,
    latest: true,
    ask: true,
    interrupt: true,
};

/// Every engine, in the order they are listed for people.
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "claude",
        summary: "Claude Code",
        argument: None,
        program: Some(Program {
            name: "claude",
            install: "npm install -g @anthropic-ai/claude-code",
            version: &["--version"],
            is_shared: false,
            env: &[],
        }),
        one_shot: Some("claude"),
        echoes: false,
        dialogue: Some("claude"),
        capabilities: EVERYTHING,
        login: Some(claude::LOGIN),
        rules: Some(claude::invocation),
    },
    Engine {
        name: "codex",
        summary: "Codex",
        argument: None,
        program: Some(Program {
            name: "codex",
            install: "npm install -g @openai/codex",
            version: &["--version"],
            is_shared: false,
            env: &[],
        }),
        one_shot: Some("codex"),
        echoes: false,
        dialogue: Some("codex"),
        capabilities: EVERYTHING,
        login: Some(codex::LOGIN),
        rules: Some(codex::invocation),
    },
    Engine {
        name: "opencode",
        summary: "OpenCode",
        argument: None,
        program: Some(Program {
            name: "opencode",
            install: "npm install -g opencode-ai",
            version: &["--version"],
            is_shared: false,
            env: &[],
        }),
        one_shot: Some("opencode"),
        echoes: false,
        dialogue: Some("acp"),
        capabilities: EVERYTHING,
        login: Some(opencode::LOGIN),
        rules: Some(opencode::invocation),
    },
    Engine {
        name: "gemini",
        summary: "Gemini CLI",
        argument: None,
        program: Some(Program {
            name: "gemini",
            install: "npm install -g @google/gemini-cli",
            version: &["--version"],
            is_shared: false,
            env: gemini::ENV,
        }),
        one_shot: Some("gemini"),
        echoes: true,
        dialogue: Some("acp"),
        capabilities: Capabilities {
            fork: false,
            ..EVERYTHING
        },
        login: Some(gemini::LOGIN),
        rules: Some(gemini::invocation),
    },
    Engine {
        name: "openhands",
        summary: "OpenHands",
        argument: None,
        program: Some(Program {
            name: "python3",
            install: "pip install openhands-sdk openhands-tools",
            version: openhands::VERSION,
            is_shared: true,
            env: &[],
        }),
        one_shot: Some("openhands"),
        echoes: true,
        dialogue: Some("openhands"),
        capabilities: EVERYTHING,
        login: None,
        rules: Some(openhands::invocation),
    },
    Engine {
        name: "acp",
        summary: "any agent that speaks the Agent Client Protocol",
        argument: Some("COMMAND"),
        program: None,
        one_shot: None,
        echoes: false,
        dialogue: Some("acp"),
        capabilities: Capabilities {
            latest: false,
            ..EVERYTHING
        },
        login: None,
        rules: Some(acp::invocation),
    },
    Engine {
        name: "responses",
        summary: "a model of any OpenResponses endpoint",
        argument: Some("NAME"),
        program: None,
        one_shot: Some("openresponses"),
        echoes: false,
        dialogue: None,
        capabilities: Capabilities {
            resume: true,
            fork: false,
            latest: false,
            ask: false,
            interrupt: true,
        },
        login: None,
        rules: None,
    },
    Engine {
        name: "replay",
        summary: "a recording, played again",
        argument: Some("FILE"),
        program: None,
        one_shot: None,
        echoes: false,
        dialogue: None,
        capabilities: Capabilities {
            resume: false,
            fork: false,
            latest: false,
            ask: false,
            interrupt: true,
        },
        login: None,
        rules: None,
    },
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests;
