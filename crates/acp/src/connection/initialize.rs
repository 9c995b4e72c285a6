//! The response to `initialize`, and how to log in to an agent.

use runner::engines::{self, Engine, Login, Machine};

use super::Connection;
use crate::rpc::{self, Error};
use crate::wire::{self, Empty};

impl Connection {
    pub(super) fn initialized(&self) -> wire::Initialized {
        let engine = engines::find(&self.shared.config.engine);
        let is_agent = engine.is_some_and(|it| it.rules().is_some());
        let can = engine.map(|it| it.capabilities).unwrap_or_default();
        let has_terminal = self.shared.client.auth.terminal;
        let login = engine.and_then(|it| Some((it, it.login.as_ref()?)));
        // Clients treat an offered login method as a required one.
        let login = login.filter(|it| !self.is_logged_in(it.0, it.1));
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
                    http: can.mcp_http,
                    sse: can.mcp_sse,
                },
                session_capabilities: wire::SessionCapabilities {
                    list: wire::supported(true),
                    resume: wire::supported(true),
                    fork: wire::supported(can.fork),
                    close: wire::supported(true),
                    delete: wire::supported(true),
                },
            },
            auth_methods: login
                .map(|(engine, login)| method(engine, login, has_terminal))
                .into_iter()
                .collect(),
            agent_info: wire::Implementation {
                name: "linkspan",
                title: Some(format!("linkspan ({})", self.shared.config.engine)),
                version: self.shared.config.version,
            },
        }
    }

    /// A login is not possible from here; the response can only confirm one or explain how.
    pub(super) fn authenticated(&self, id: &str) -> Result<Empty, Error> {
        let engine = engines::find(&self.shared.config.engine);
        let login = engine.and_then(|it| Some((it, it.login.as_ref()?)));
        let login = login.filter(|it| method_id(it.0) == id);
        let (engine, login) = login.ok_or_else(|| {
            let message = format!("unknown method `{}`", super::display_safe(id));
            Error::params(message)
        })?;
        match self.is_logged_in(engine, login) {
            true => Ok(Empty {}),
            false => Err(Error::new(rpc::AUTH_REQUIRED, advice(engine, login))),
        }
    }

    fn is_logged_in(&self, engine: &Engine, login: &Login) -> bool {
        let config = self.shared.config.settings.engine(engine.name);
        login.find(&config, Machine::own()).is_some()
    }
}

/// A client with a terminal starts us there with one more argument.
fn method(engine: &Engine, login: &Login, has_terminal: bool) -> wire::AuthMethod {
    wire::AuthMethod {
        r#type: has_terminal.then(|| "terminal".to_owned()),
        args: Vec::from_iter(has_terminal.then(|| "--login".to_owned())),
        id: method_id(engine),
        name: format!("Log in with {}", engine.name),
        description: Some(advice(engine, login)),
        ..wire::AuthMethod::default()
    }
}

fn method_id(engine: &Engine) -> String {
    format!("{}-login", engine.name)
}

fn advice(engine: &Engine, login: &Login) -> String {
    let command = login.terminal_command(engine.name);
    format!("run `{command}` in a terminal, then try again")
}
