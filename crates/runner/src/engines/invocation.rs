//! The arguments and the environment of one start, and the two ways a prompt gets there.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::{Value, json};

use super::Billing;
use crate::request::{Interaction, McpServer, McpVia, Mode, Request, SecretFile, Stdin};

/// The user's config of one engine. Keys an engine does not have stay empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineConfig {
    /// A name to look for, or a path.
    pub program: Option<String>,
    /// Added to every start, before the prompt.
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub model: Option<String>,
    /// The tools that may run without asking, where the caller lists none. `None` when not
    /// configured: then none may, except in `listed`, which has a default.
    pub allowed_tools: Option<Vec<String>>,
    pub use_api_billing: Billing,
    pub output_style: Option<String>,
    pub verbosity: Option<String>,
    pub sandbox: Option<String>,
    /// The ACP method to log in with.
    pub auth_method: Option<String>,
}

/// What an engine's rules make of a request. The program is not looked for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub args: Vec<OsString>,
    /// What this request sets, beside what the program and the config always set.
    pub env: Vec<(OsString, OsString)>,
    pub env_remove: Vec<OsString>,
    pub stdin: Stdin,
    pub private: Option<SecretFile>,
}

impl Invocation {
    pub(super) fn new(stdin: Stdin) -> Self {
        Self {
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            stdin,
            private: None,
        }
    }

    pub(super) fn arg(&mut self, arg: impl Into<OsString>) -> &mut Self {
        self.args.push(arg.into());
        self
    }

    pub(super) fn args<'a>(&mut self, args: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.args.extend(args.into_iter().map(OsString::from));
        self
    }

    /// What the user's config adds.
    pub(super) fn extra(&mut self, config: &EngineConfig) -> &mut Self {
        self.args(config.args.iter().map(String::as_str))
    }

    pub(super) fn env(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// Linux takes at most 128 KiB in one argument, its final NUL included.
const MAX_ARGUMENT: usize = 100 * 1024;

/// How a prompt reaches an agent that takes it in either way.
pub(super) enum PromptVia<'a> {
    Argument(&'a str),
    Stdin(&'a str),
}

pub(super) fn prompt(request: &Request) -> PromptVia<'_> {
    let prompt = request.prompt.as_str();
    // To most programs a single dash means stdin, also behind `--`.
    if prompt.len() > MAX_ARGUMENT || prompt.contains('\0') || prompt == "-" {
        PromptVia::Stdin(prompt)
    } else {
        PromptVia::Argument(prompt)
    }
}

impl Request {
    /// Whether a client can answer when the agent asks.
    pub(super) fn can_ask(&self) -> bool {
        self.permissions.mode.can_ask(self.talk)
    }
}

impl Mode {
    pub(super) fn can_ask(self, talk: Interaction) -> bool {
        let is_answered = match self {
            Self::Plan | Self::Ask | Self::AcceptEdits => true,
            Self::Deny | Self::Listed | Self::Allow => false,
        };
        is_answered && talk == Interaction::Dialogue
    }
}

/// The one list of tools that run without a question: the caller's, else that of the config. Only
/// `listed` has a `default`. Planning runs nothing, and allowing everything needs no list.
pub(super) fn allowed(config: &EngineConfig, request: &Request, default: &[&str]) -> Vec<String> {
    let permissions = &request.permissions;
    let list = || permissions.allow.as_ref().or(config.allowed_tools.as_ref());
    match permissions.mode {
        Mode::Plan | Mode::Allow => Vec::new(),
        Mode::Deny | Mode::Ask | Mode::AcceptEdits => list().cloned().unwrap_or_default(),
        Mode::Listed => match list() {
            Some(list) => list.clone(),
            None => default.iter().map(|it| (*it).to_owned()).collect(),
        },
    }
}

/// MCP servers by name, as configs have them; `tag` is the key of the transport.
pub(super) fn mcp_servers(servers: &[McpServer], tag: &str) -> Value {
    let object = |pairs: &[(String, String)]| -> Value { pairs.iter().cloned().collect() };
    let server = |it: &McpServer| {
        let (transport, mut server) = match &it.via {
            McpVia::Stdio { command, args, env } => {
                let server = json!({ "command": command, "args": args, "env": object(env) });
                ("stdio", server)
            }
            McpVia::Http { url, headers } => {
                ("http", json!({ "url": url, "headers": object(headers) }))
            }
            McpVia::Sse { url, headers } => {
                ("sse", json!({ "url": url, "headers": object(headers) }))
            }
        };
        // Claude Code calls it `type`, the SDK of OpenHands `transport`.
        server[tag] = json!(transport);
        (it.name.clone(), server)
    };
    servers.iter().map(server).collect()
}
