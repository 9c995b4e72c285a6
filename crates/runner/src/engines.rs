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
mod engine_option;
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

pub(crate) use arguments::VERBOSITIES;
pub(crate) use claude::ALLOWED_TOOLS as CLAUDE_TOOLS;
pub(crate) use codex::limits as codex_limits;
pub use engine_option::EngineOption;
pub use error::Error;
pub(crate) use gemini::ALLOWED_TOOLS as GEMINI_TOOLS;
pub use installed::{Installed, detect_installed, find_installed, first_of};
pub use invocation::{EngineConfig, Invocation};
pub use launch_context::LaunchContext;
pub use login::{Billing, Found, Login, Machine, Store};
pub(crate) use opencode::ALLOWED_TOOLS as OPENCODE_TOOLS;
pub(crate) use openhands::ALLOWED_TOOLS as OPENHANDS_TOOLS;
pub use replay::{BundledReplay, REPLAYS, Recording};
pub use select::{Selected, SelectedAgent, default_order, first_installed, select};

use self::login::Key;
use crate::dialogue::{self, Dialogue};
use crate::request::{Interaction, Launch, Request};

/// The engines that are called `name:VALUE`.
pub const ACP: &str = "acp";
pub const RESPONSES: &str = "responses";
pub const REPLAY: &str = "replay";

/// One kind of agent.
#[derive(Debug)]
pub struct Engine {
    pub name: &'static str,
    pub summary: &'static str,
    /// What follows the colon, for the engines that are called `name:VALUE`.
    pub argument: Option<&'static str>,
    /// The program that is started; none where the argument names it.
    pub program: Option<Program>,
    /// The format it prints when it runs one prompt; none when it cannot.
    pub one_shot: Option<&'static str>,
    /// Its output for one prompt repeats the prompt.
    pub echoes: bool,
    /// How it is talked with; none when it cannot be.
    pub dialogue: Option<DialogueInfo>,
    pub capabilities: Capabilities,
    /// Those it has of the options that not every engine has; the others are refused.
    pub options: &'static [EngineOption],
    /// The reasoning efforts that it is known to take.
    pub efforts: &'static [&'static str],
    /// Its place among those that may be the default engine.
    pub default_rank: Option<u32>,
    /// Other names that clients have for it.
    pub aliases: &'static [&'static str],
    /// How it logs in, where linkspan knows.
    pub login: Option<Login>,
    /// Its command line is that of `linkspan exec`, whose flags are handed on to it.
    pub takes_exec_flags: bool,
    pub kind: EngineKind,
}

/// What executes the runs of an engine.
#[derive(Debug)]
pub enum EngineKind {
    Agent(AgentRules),
    /// A model, over HTTP.
    Model,
    /// A recording, in this process.
    Replay,
}

/// What a request becomes for an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentRules {
    pub invocation: Rules,
    /// What the mode `listed` allows when neither the caller nor the config has a list.
    pub allowed_tools: &'static [&'static str],
    /// The rules about tools that an agent keeps from its start to its end.
    pub fixed_rules: FixedRules,
    /// How it is given an API key, where that is not just a variable.
    use_key: Option<fn(&mut Launch, &Key, Interaction)>,
    /// What limits it besides a list of tools.
    pub sandbox: Option<&'static str>,
    /// It does not work as root where everything is allowed.
    pub refuses_root: bool,
}

impl AgentRules {
    const fn new(invocation: Rules, allowed_tools: &'static [&'static str]) -> Self {
        Self {
            invocation,
            allowed_tools,
            fixed_rules: |_, _| Ok(Vec::new()),
            use_key: None,
            sandbox: None,
            refuses_root: false,
        }
    }
}

/// The arguments and the environment for a request.
pub type Rules = fn(&EngineConfig, &Request) -> Result<Invocation, Error>;
pub type FixedRules = fn(&EngineConfig, &Request) -> Result<Vec<String>, Error>;
/// The machine that talks with an agent; the text is the API key that it is to use.
pub type NewDialogue = fn(&Request, &EngineConfig, Option<&str>) -> Box<dyn Dialogue>;

/// How an agent is talked with.
#[derive(Debug)]
pub struct DialogueInfo {
    /// What it prints then.
    pub format: &'static str,
    pub new: NewDialogue,
}

const ACP_DIALOGUE: DialogueInfo = DialogueInfo {
    format: "acp",
    new: |request, config, _| {
        Box::new(dialogue::Acp::new(request).with_login(config.auth_method.clone()))
    },
};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Show the work of its sub-agents.
    pub subagents: bool,
    /// Run a tool with other input than it asked for.
    pub edited_input: bool,
    /// Use MCP servers over HTTP.
    pub mcp_http: bool,
    /// Use MCP servers over server-sent events.
    pub mcp_sse: bool,
}

/// What most agents can do.
const USUAL: Capabilities = Capabilities {
    resume: true,
    fork: true,
    latest: true,
    ask: true,
    interrupt: true,
    subagents: false,
    edited_input: false,
    mcp_http: false,
    mcp_sse: false,
};

/// What can be stopped, and nothing else.
const STOPPABLE: Capabilities = Capabilities {
    resume: false,
    fork: false,
    latest: false,
    ask: false,
    ..USUAL
};

/// What a row means that leaves columns out.
const ENGINE: Engine = Engine {
    name: "",
    summary: "",
    argument: None,
    program: None,
    one_shot: None,
    echoes: false,
    dialogue: None,
    capabilities: USUAL,
    options: &[],
    efforts: &[],
    default_rank: None,
    aliases: &[],
    login: None,
    takes_exec_flags: false,
    kind: EngineKind::Replay,
};

/// A program from npm that has no other users.
const fn npm(name: &'static str, install: &'static str) -> Option<Program> {
    Some(Program {
        name,
        install,
        version: &["--version"],
        is_shared: false,
        env: &[],
    })
}

/// Every engine, in the order in which users see them.
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "claude",
        summary: "Claude Code",
        program: npm("claude", "npm install -g @anthropic-ai/claude-code"),
        one_shot: Some("claude"),
        dialogue: Some(DialogueInfo {
            format: "claude",
            new: |request, _, _| Box::new(dialogue::Claude::new(request.prompt.is_empty())),
        }),
        capabilities: Capabilities {
            subagents: true,
            edited_input: true,
            mcp_http: true,
            mcp_sse: true,
            ..USUAL
        },
        options: &[EngineOption::Effort, EngineOption::OutputStyle],
        efforts: &["low", "medium", "high", "xhigh", "max"],
        default_rank: Some(2),
        aliases: &["claude_code", "claude-code"],
        login: Some(claude::LOGIN),
        kind: EngineKind::Agent(claude::RULES),
        ..ENGINE
    },
    Engine {
        name: "codex",
        summary: "Codex",
        program: npm("codex", "npm install -g @openai/codex"),
        one_shot: Some("codex"),
        dialogue: Some(DialogueInfo {
            format: "codex",
            new: |request, config, key| {
                Box::new(dialogue::Codex::new(request, config.sandbox.clone()).with_key(key))
            },
        }),
        capabilities: Capabilities {
            mcp_http: true,
            ..USUAL
        },
        options: &[EngineOption::Effort, EngineOption::Verbosity],
        efforts: &["minimal", "low", "medium", "high", "xhigh"],
        default_rank: Some(1),
        login: Some(codex::LOGIN),
        takes_exec_flags: true,
        kind: EngineKind::Agent(codex::RULES),
        ..ENGINE
    },
    Engine {
        name: "opencode",
        summary: "OpenCode",
        program: npm("opencode", "npm install -g opencode-ai"),
        one_shot: Some("opencode"),
        dialogue: Some(ACP_DIALOGUE),
        default_rank: Some(3),
        login: Some(opencode::LOGIN),
        kind: EngineKind::Agent(opencode::RULES),
        ..ENGINE
    },
    Engine {
        name: "gemini",
        summary: "Gemini CLI",
        program: Some(Program {
            name: "gemini",
            install: "npm install -g @google/gemini-cli",
            version: &["--version"],
            is_shared: false,
            env: gemini::ENV,
        }),
        one_shot: Some("gemini"),
        echoes: true,
        dialogue: Some(ACP_DIALOGUE),
        capabilities: Capabilities {
            fork: false,
            ..USUAL
        },
        default_rank: Some(4),
        login: Some(gemini::LOGIN),
        kind: EngineKind::Agent(gemini::RULES),
        ..ENGINE
    },
    Engine {
        name: "openhands",
        summary: "OpenHands",
        program: Some(Program {
            name: "python3",
            install: "pip install openhands-sdk openhands-tools",
            version: openhands::VERSION,
            is_shared: true,
            env: &[],
        }),
        one_shot: Some("openhands"),
        echoes: true,
        dialogue: Some(DialogueInfo {
            format: "openhands",
            new: |request, config, _| Box::new(dialogue::OpenHands::new(request, config)),
        }),
        options: &[EngineOption::Effort],
        kind: EngineKind::Agent(openhands::RULES),
        ..ENGINE
    },
    Engine {
        name: ACP,
        summary: "any agent that speaks the Agent Client Protocol",
        argument: Some("COMMAND"),
        dialogue: Some(ACP_DIALOGUE),
        capabilities: Capabilities {
            latest: false,
            ..USUAL
        },
        kind: EngineKind::Agent(acp::RULES),
        ..ENGINE
    },
    Engine {
        name: RESPONSES,
        summary: "a model of any OpenResponses endpoint",
        argument: Some("NAME"),
        one_shot: Some("openresponses"),
        capabilities: Capabilities {
            resume: true,
            ..STOPPABLE
        },
        options: &[EngineOption::Effort],
        kind: EngineKind::Model,
        ..ENGINE
    },
    Engine {
        name: REPLAY,
        summary: "a recording, played again",
        argument: Some("FILE"),
        capabilities: STOPPABLE,
        options: &[EngineOption::Speed],
        ..ENGINE
    },
];

/// The name of an engine without its argument: `acp` of `acp:COMMAND`.
pub fn family(engine: &str) -> &str {
    engine.split(':').next().unwrap_or_default()
}

/// The row of an engine, which may have its argument: `acp`, `acp:COMMAND`.
pub fn find(name: &str) -> Option<&'static Engine> {
    let name = family(name);
    ENGINES.iter().find(|it| it.name == name)
}

/// The name of an engine that a client may know by another one.
pub fn canonical_name(name: &str) -> &str {
    let engine = ENGINES.iter().find(|it| it.aliases.contains(&name));
    engine.map_or(name, |it| it.name)
}

impl Engine {
    /// How it is started; none where no process is.
    pub fn rules(&self) -> Option<&AgentRules> {
        match &self.kind {
            EngineKind::Agent(rules) => Some(rules),
            EngineKind::Model | EngineKind::Replay => None,
        }
    }

    /// Whether it plays what was recorded, whatever it is asked.
    pub fn is_recording(&self) -> bool {
        matches!(self.kind, EngineKind::Replay)
    }
}

#[cfg(test)]
mod tests;
