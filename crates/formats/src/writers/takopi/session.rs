//! What is known of the agent's session, for `started` and for the resume token.

use model::{Event, Raw, SessionBound, Text};

use super::super::{find_extra, line};
use crate::wire::takopi as wire;

#[derive(Clone, Debug, Default)]
pub(super) struct TakopiSession {
    pub(super) native: String,
    model: Option<String>,
    pub(super) cwd: Option<String>,
    permission_mode: Option<String>,
    tools: Vec<String>,
    mcp_servers: Option<Raw<'static>>,
    /// The servers in words.
    servers: String,
    output_style: Option<Raw<'static>>,
    api_key_source: Option<Raw<'static>>,
    /// It has had a run: what it reports between two runs starts no other.
    pub(super) had_run: bool,
}

impl TakopiSession {
    /// Takes over what a binding reports; true when the session is another one than before.
    pub(super) fn learn(
        known: &mut Option<Self>,
        event: &Event<'_>,
        bound: &SessionBound<'_>,
    ) -> bool {
        let is_new = known
            .as_ref()
            .is_none_or(|it| it.native != bound.native.as_str());
        let knew_model = !is_new && known.as_ref().is_some_and(|it| it.model.is_some());
        if is_new {
            *known = Some(Self::new(bound.native.as_str()));
        }
        if let Some(session) = known {
            session.update(event, bound);
        }
        // A session first met by its bare id is new until it has introduced itself.
        !knew_model && known.as_ref().is_none_or(|it| !it.had_run)
    }

    pub(super) fn new(native: &str) -> Self {
        Self {
            native: native.to_owned(),
            ..Self::default()
        }
    }

    fn update(&mut self, event: &Event<'_>, bound: &SessionBound<'_>) {
        set(&mut self.model, bound.model.as_deref());
        set(&mut self.cwd, bound.cwd.as_deref());
        set(&mut self.permission_mode, bound.permission_mode.as_deref());
        // Only an `init` lists tools; what other frames add must not clear its list.
        if !bound.tools.is_empty() {
            self.tools = bound.tools.iter().map(|it| it.to_string()).collect();
            self.mcp_servers = Some(servers(event, bound));
            self.servers = describe(bound);
        }
        let own = |key| find_extra(&event.extra, key).map(|it| it.clone().into_owned());
        self.output_style = own("output_style").or(self.output_style.take());
        self.api_key_source = own("apiKeySource").or(self.api_key_source.take());
    }

    pub(super) fn write_started(&self, engine: &str, title: Option<&str>, out: &mut Vec<u8>) {
        let meta = wire::Meta {
            cwd: self.cwd.as_deref(),
            tools: &self.tools,
            permission_mode: self.permission_mode.as_deref(),
            output_style: self.output_style.as_ref(),
            api_key_source: self.api_key_source.as_ref(),
            mcp_servers: self.mcp_servers.as_ref(),
        };
        // The list of servers alone says nothing: it is there whenever tools are.
        let has_meta = self.cwd.is_some()
            || !self.tools.is_empty()
            || self.permission_mode.is_some()
            || self.output_style.is_some()
            || self.api_key_source.is_some();
        let started = wire::Started {
            engine,
            resume: wire::Resume {
                engine,
                value: &self.native,
            },
            title: self.model.as_deref().or(title),
            meta: has_meta.then_some(meta),
        };
        line(out, &started);
    }

    /// A note of the tools and servers the session has.
    pub(super) fn write_note(&self, engine: &str, id: &str, out: &mut Vec<u8>) {
        let n_tools = self.tools.len();
        let title = match &*self.servers {
            "" => format!("{n_tools} tools"),
            servers => format!("{n_tools} tools; MCP servers: {servers}"),
        };
        let detail = wire::SessionDetail {
            tools: &self.tools,
            mcp_servers: self.mcp_servers.as_ref(),
        };
        let action = wire::Action::new(id, wire::Kind::Note, Text::new(title), detail);
        let note = wire::ActionEvent {
            level: Some(wire::Level::Debug),
            ..action.event(engine, wire::Phase::Completed, Some(true))
        };
        line(out, &note);
    }
}

fn set(field: &mut Option<String>, value: Option<&str>) {
    if let Some(value) = value {
        *field = Some(value.to_owned());
    }
}

/// The servers as the agent listed them, or as far as the model knows them.
fn servers(event: &Event<'_>, bound: &SessionBound<'_>) -> Raw<'static> {
    match find_extra(&event.extra, "mcp_servers") {
        Some(servers) => servers.clone().into_owned(),
        None => Raw::of(&bound.mcp_servers),
    }
}

fn describe(bound: &SessionBound<'_>) -> String {
    let servers = bound.mcp_servers.iter().map(|it| match &it.status {
        Some(status) => format!("{} ({status})", it.name),
        None => it.name.clone().into_owned(),
    });
    servers.collect::<Vec<_>>().join(", ")
}
