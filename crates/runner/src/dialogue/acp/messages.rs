//! Messages of this client in the Agent Client Protocol, and the login methods of an agent.

use formats::wire::acp::{
    AuthMethod, Block, ClientCapabilities, Implementation, Initialize, McpServer, Pair, Prompt,
    Remote, SessionExtras, VERSION, supported,
};

use crate::request::{self, McpVia};

pub(super) fn initialize() -> Initialize {
    Initialize {
        protocol_version: VERSION,
        client_capabilities: ClientCapabilities {
            session: SessionExtras {
                compaction: supported(true),
                notices: supported(true),
            },
            ..ClientCapabilities::default()
        },
        client_info: Some(Implementation {
            name: "linkspan",
            title: None,
            version: env!("CARGO_PKG_VERSION"),
        }),
    }
}

pub(super) fn servers(servers: &[request::McpServer]) -> Vec<McpServer> {
    servers.iter().map(server).collect()
}

fn server(request::McpServer { name, via }: &request::McpServer) -> McpServer {
    let name = name.clone();
    let remote = |r#type, name, url: &String, headers: &[(String, String)]| McpServer::Remote {
        r#type,
        name,
        url: url.clone(),
        headers: pairs(headers),
    };
    match via {
        McpVia::Stdio { command, args, env } => McpServer::Program {
            name,
            command: command.clone(),
            args: args.clone(),
            env: pairs(env),
        },
        McpVia::Http { url, headers } => remote(Remote::Http, name, url, headers),
        McpVia::Sse { url, headers } => remote(Remote::Sse, name, url, headers),
    }
}

fn pairs(pairs: &[(String, String)]) -> Vec<Pair> {
    let pairs = pairs.iter().cloned();
    pairs.map(|(name, value)| Pair { name, value }).collect()
}

pub(super) fn prompt<'a>(session: &'a str, prompt: &'a request::Prompt) -> Prompt<'a> {
    let text = Block::Text {
        text: (&*prompt.text).into(),
    };
    let images = prompt.images.iter().map(|it| Block::Image {
        mime_type: (&*it.media_type).into(),
        data: (&*it.data).into(),
    });
    Prompt {
        session_id: session.into(),
        prompt: std::iter::once(text).chain(images).collect(),
    }
}

/// False for a key that the agent finds in its environment.
pub(super) fn needs_user(method: &AuthMethod) -> bool {
    method.r#type.as_deref() != Some("env_var") && !method.meta.contains_key("api-key")
}

/// True for a login that only a person at a terminal can do.
pub(super) fn is_terminal(method: &AuthMethod) -> bool {
    method.r#type.as_deref() == Some("terminal")
}

/// Its name, how it is done, and the id by which it is chosen.
pub(super) fn description(method: &AuthMethod) -> String {
    let mut text = match &method.description {
        Some(description) => format!("{} ({description})", method.name),
        None => method.name.clone(),
    };
    if is_terminal(method) {
        let args = method.args.join(" ");
        text += &format!(": run the agent's command with `{args}` in a terminal");
    } else if !method.id.is_empty() {
        text += &format!(" [`{}`]", method.id);
    }
    text
}
