//! The response to `initialize`, and how to log in to an agent.

use super::Connection;
use crate::rpc::{self, Error};
use crate::wire::{self, Empty};

/// How to log in to an engine, which it does by itself in a terminal, and what is there once it is done.
struct Login {
    engine: &'static str,
    id: &'static str,
    args: &'static [&'static str],
    /// Each stands for a login.
    variables: &'static [&'static str],
    /// Files in the home directory, and what is in them; each stands for a login.
    files: &'static [(&'static str, &'static str)],
}

const LOGINS: &[Login] = &[
    Login {
        engine: "claude",
        id: "claude-login",
        args: &["/login"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        files: &[
            (".claude.json", "\"oauthAccount\""),
            (".claude/.credentials.json", "{"),
        ],
    },
    Login {
        engine: "codex",
        id: "codex-login",
        args: &["login"],
        variables: &["CODEX_API_KEY"],
        files: &[(".codex/auth.json", "{")],
    },
    Login {
        engine: "gemini",
        id: "gemini-login",
        args: &[],
        variables: &["GEMINI_API_KEY"],
        files: &[(".gemini/oauth_creds.json", "{")],
    },
    Login {
        engine: "opencode",
        id: "opencode-login",
        args: &["auth", "login"],
        variables: &[],
        files: &[(".local/share/opencode/auth.json", "{")],
    },
];

/// The arguments with which the program of an engine logs in, in a terminal.
pub fn login(engine: &str) -> Option<&'static [&'static str]> {
    let login = LOGINS.iter().find(|it| it.engine == engine);
    login.map(|it| it.args)
}

impl Connection {
    pub(super) fn initialized(&self) -> wire::Initialized<'static> {
        let engine = self.family();
        let is_agent = !matches!(engine, "replay" | "responses");
        let yes = || Some(Empty {});
        let login = LOGINS.iter().find(|it| it.engine == engine);
        // Clients take a method that is offered for one that has to be used.
        let login = login.filter(|it| !it.is_done());
        wire::Initialized {
            protocol_version: wire::VERSION,
            agent_capabilities: wire::AgentCapabilities {
                load_session: true,
                prompt_capabilities: wire::PromptCapabilities {
                    image: is_agent,
                    audio: false,
                    embedded_context: true,
                },
                mcp_capabilities: wire::McpCapabilities {
                    http: matches!(engine, "claude" | "codex"),
                    sse: engine == "claude",
                },
                session_capabilities: wire::SessionCapabilities {
                    list: yes(),
                    resume: yes(),
                    fork: runner::engines::find(engine)
                        .filter(|it| it.capabilities.fork)
                        .and_then(|_| yes()),
                    close: yes(),
                    delete: yes(),
                },
            },
            auth_methods: login
                .map(|it| it.method(self.shared.client.auth.terminal))
                .into_iter()
                .collect(),
            agent_info: wire::AgentInfo {
                name: "linkspan",
                title: format!("linkspan ({})", self.shared.config.engine),
                version: self.shared.config.version,
            },
        }
    }

    /// The engine without what follows its colon.
    fn family(&self) -> &str {
        let engine = self.shared.config.engine.split(':').next();
        engine.unwrap_or_default()
    }

    /// A login is not possible from here; the response can only confirm one or explain how.
    pub(super) fn authenticated(&self, method: &str) -> Result<Empty, Error> {
        let engine = self.family();
        let login = LOGINS.iter().find(|it| it.engine == engine);
        let login = login.filter(|it| it.id == method);
        let login = login.ok_or_else(|| {
            let message = format!("unknown method `{}`", super::display_safe(method));
            Error::params(message)
        })?;
        match login.is_done() {
            true => Ok(Empty {}),
            false => Err(Error::new(rpc::AUTH_REQUIRED, login.advice())),
        }
    }
}

impl Login {
    /// A client with a terminal starts us there with one more argument.
    fn method(&self, has_terminal: bool) -> wire::AuthMethod<'static> {
        wire::AuthMethod {
            r#type: has_terminal.then_some("terminal"),
            args: if has_terminal { &["--login"] } else { &[] },
            id: self.id,
            name: format!("Log in with {}", self.engine),
            description: self.advice(),
        }
    }

    fn advice(&self) -> String {
        let mut command = self.engine.to_owned();
        for arg in self.args {
            command.push(' ');
            command.push_str(arg);
        }
        format!("run `{command}` in a terminal, then try again")
    }

    fn is_done(&self) -> bool {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        if self.variables.iter().any(is_set) {
            return true;
        }
        let Some(home) = std::env::home_dir() else {
            return false;
        };
        let is_there = |(path, word): &(&str, &str)| {
            let text = std::fs::read_to_string(home.join(path));
            text.is_ok_and(|it| it.contains(word))
        };
        self.files.iter().any(is_there)
    }
}
