//! The session's introduction: the one place of the target for what the agent reports about itself.

use model::{Binding, Event, McpServer, SessionBound, Text};

use super::{OpenHands, text};
use crate::agents;
use crate::wire::openhands::{Event as Line, Source};

impl OpenHands {
    /// Introduces a native session once, as a system prompt that names it.
    pub(super) fn bound(&mut self, event: &Event<'_>, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        let is_known = self.native.as_deref() == Some(bound.native.as_str());
        if bound.model.is_some() {
            if is_known && self.model.as_deref() != bound.model.as_deref() {
                self.losses.count("change of model");
            }
            self.model = bound.model.as_deref().map(str::to_owned);
        }
        if is_known || bound.how == Binding::Mismatch {
            return;
        }
        self.native = Some(bound.native.as_str().to_owned());
        let head = self.pen.head(Source::Agent);
        let prompt = Line::SystemPromptEvent {
            head,
            system_prompt: text(Text::new(introduction(&event.engine, bound))),
            dynamic_context: surroundings(bound).map(|it| text(Text::new(it))),
            // The SDK resolves each tool by its class, and knows none of a foreign agent.
            tools: [],
        };
        self.pen.write(out, &prompt);
    }
}

/// One line that names the session.
fn introduction(engine: &str, bound: &SessionBound<'_>) -> String {
    let mut facts = Vec::new();
    if let Some(model) = &bound.model {
        facts.push(format!("model {model}"));
    }
    if let Some(cwd) = &bound.cwd {
        facts.push(format!("cwd {cwd}"));
    }
    if !bound.tools.is_empty() {
        facts.push(format!("tools: {}", bound.tools.join(", ")));
    }
    let name = agents::find(engine).map_or(engine, |it| it.title);
    if facts.is_empty() {
        format!("{name} session {}", bound.native)
    } else {
        format!("{name} session {} ({})", bound.native, facts.join(", "))
    }
}

/// What else is known of the session, one fact per line.
fn surroundings(bound: &SessionBound<'_>) -> Option<String> {
    let mut facts = Vec::new();
    if let Some(version) = &bound.version {
        facts.push(format!("version: {version}"));
    }
    if let Some(mode) = &bound.permission_mode {
        facts.push(format!("permission mode: {mode}"));
    }
    if !bound.mcp_servers.is_empty() {
        let server = |it: &McpServer<'_>| match &it.status {
            Some(status) => format!("{} ({status})", it.name),
            None => it.name.to_string(),
        };
        let servers: Vec<String> = bound.mcp_servers.iter().map(server).collect();
        facts.push(format!("MCP servers: {}", servers.join(", ")));
    }
    if !bound.commands.is_empty() {
        facts.push(format!("commands: {}", bound.commands.join(", ")));
    }
    (!facts.is_empty()).then(|| facts.join("\n"))
}
