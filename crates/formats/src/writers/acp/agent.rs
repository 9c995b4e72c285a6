//! The writer for a live connection: it writes the agent's side and nothing else.
//!
//! A file holds both sides and all sessions; a connection has ids of its own, a client that answers
//! its requests itself, and no need for its own prompts. Text that streams faster than it is passed on
//! is sent as one piece. The end of a tool's output is sent every now and then while it runs, so that
//! the cost grows with its length, and not with the square of that.

use model::{Ask, Event, Timestamp, Writer};
use serde::Serialize;

use super::texts::ChunkSource;
use super::{Acp, WriterConfig, line, wire};
use crate::wire::json_rpc;

/// What is shown of an output that is not whole.
const TAIL: usize = 8 * 1024;
/// Between two looks at an output that is not whole.
const PAUSE_MS: i64 = 500;

/// The capabilities of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcpClient {
    pub has_notices: bool,
    pub has_compactions: bool,
}

/// Writes to the client of one session.
#[derive(Clone, Debug)]
pub struct AcpAgent(Acp);

/// A connection, as the writer needs to know it.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    client: AcpClient,
    /// History is replayed, including the user's messages.
    pub(super) is_history: bool,
    pub(super) knows_commands: bool,
    pending: Option<HeldText>,
    requests: Vec<AcpRequest>,
    ended: Option<String>,
}

/// A permission request, to be sent unless the policy decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpRequest {
    /// The ask it is about.
    pub ask: String,
    /// Of the request: the session's and the ask's with a slash between them.
    pub id: String,
    /// With its newline.
    pub line: Vec<u8>,
}

/// Words that wait for more of them.
#[derive(Clone, Debug)]
struct HeldText {
    source: ChunkSource,
    item: String,
    parent: Option<String>,
    text: String,
}

/// What a tool has printed so far: the end of it.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputTail {
    text: String,
    sent_at: Option<Timestamp>,
}

impl AcpAgent {
    /// `cwd` is where relative paths begin.
    pub fn new(session: &str, cwd: &str, profile: Option<&str>, client: AcpClient) -> Self {
        let config = WriterConfig {
            profile: profile.map(str::to_owned),
            live: true,
            ..WriterConfig::default()
        };
        let mut acp = Acp::new(&config);
        acp.session.id = session.to_owned();
        // A connection keeps the id that the session was opened with.
        acp.session.is_native = true;
        acp.session.cwd = Some(cwd.to_owned());
        acp.connection = Some(Connection {
            client,
            ..Connection::default()
        });
        Self(acp)
    }

    /// Sets whether the following events are history.
    pub fn set_history(&mut self, is_history: bool) {
        self.0.is_live = !is_history;
        if let Some(connection) = &mut self.0.connection {
            connection.is_history = is_history;
        }
    }

    /// The client knows the agent's commands better than its events list them.
    pub fn set_knows_commands(&mut self) {
        if let Some(connection) = &mut self.0.connection {
            connection.knows_commands = true;
        }
    }

    /// Tells an event. At the end of a run: the rest of the response to its prompt, `"result":…` or
    /// `"error":…`.
    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Option<String> {
        self.0.event(event, out);
        self.0.connection.as_mut()?.ended.take()
    }

    /// What the client may have to be asked since the last time. Nothing that is past.
    pub fn take_requests(&mut self) -> Vec<AcpRequest> {
        let connection = self.0.connection.as_mut();
        connection
            .map(|it| std::mem::take(&mut it.requests))
            .unwrap_or_default()
    }

    /// Says what waits for more.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.0.flush(out);
    }
}

impl Connection {
    pub(super) fn asked(&mut self, ask: &Ask<'_>, id: &str, message: &wire::PermissionCall<'_>) {
        // A question of the past was settled then.
        if self.is_history {
            return;
        }
        let mut bytes = Vec::new();
        line(&mut bytes, message);
        self.requests.push(AcpRequest {
            ask: ask.id.to_string(),
            id: id.to_owned(),
            line: bytes,
        });
    }

    /// Keeps words back that belong to those before them.
    fn hold(&mut self, source: ChunkSource, item: &str, parent: Option<&str>, text: &str) -> bool {
        let pending = self.pending.as_mut();
        let fits = |it: &&mut HeldText| {
            it.source == source && it.item == item && it.parent.as_deref() == parent
        };
        match pending.filter(fits) {
            Some(pending) => {
                pending.text.push_str(text);
                true
            }
            None => false,
        }
    }
}

impl Acp {
    /// Words for a client that is there: they may wait for more of them.
    pub(super) fn send_later(
        &mut self,
        event: &Event<'_>,
        source: ChunkSource,
        item: &str,
        text: &str,
        out: &mut Vec<u8>,
    ) {
        let parent = event.path.last().map(|it| it.as_str());
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.hold(source, item, parent, text) {
            return;
        }
        self.flush(out);
        if let Some(connection) = &mut self.connection {
            connection.pending = Some(HeldText {
                source,
                item: item.to_owned(),
                parent: parent.map(str::to_owned),
                text: text.to_owned(),
            });
        }
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let connection = self.connection.as_mut();
        let Some(pending) = connection.and_then(|it| it.pending.take()) else {
            return;
        };
        let parent = pending.parent.as_deref();
        let chunk = wire::ContentChunk {
            message_id: Some(&pending.item),
            content: wire::ContentBlock::Text {
                text: model::Text::new(&*pending.text),
            },
            meta: parent.map(|parent| wire::Meta {
                parent_tool_use_id: Some(parent),
                ..wire::Meta::default()
            }),
        };
        if let Some(update) = pending.source.update(chunk) {
            self.send(out, update);
        }
    }

    /// What the client takes; a file takes everything.
    pub(super) fn client(&self) -> AcpClient {
        let whole = AcpClient {
            has_notices: true,
            has_compactions: true,
        };
        self.connection.as_ref().map_or(whole, |it| it.client)
    }

    /// The end of a turn: in a file a response, on a connection the rest of one.
    pub(super) fn respond(&mut self, key: &str, end: &impl Serialize, out: &mut Vec<u8>) {
        // Held text goes first: ACP allows updates only before the answer to the prompt.
        self.flush(out);
        let end = model::json_string(end).expect("ends are plain data with string keys");
        let end = format!("\"{key}\":{end}");
        match &mut self.connection {
            Some(connection) => connection.ended = Some(end),
            None => out.extend(json_rpc::response(&self.n_runs.to_string(), &end).bytes()),
        }
    }

    /// Shows what a tool has printed, if it is time to.
    pub(super) fn show_output(
        &mut self,
        event: &Event<'_>,
        id: &str,
        text: &str,
        out: &mut Vec<u8>,
    ) {
        // The result of a past call follows at once.
        if self.connection.as_ref().is_none_or(|it| it.is_history) {
            return;
        }
        let Some(tool) = self.tools.iter_mut().find(|it| it.id == id) else {
            return;
        };
        if !tool.printed.more(text, event.at) {
            return;
        }
        let text = tool.printed.text.clone();
        let content = wire::ContentBlock::Text {
            text: model::Text::new(text),
        };
        let update = wire::ToolCall {
            content: vec![wire::ToolCallContent::Content { content }],
            meta: super::meta(event),
            ..wire::ToolCall::of(id)
        };
        self.send(out, wire::SessionUpdate::ToolCallUpdate(update));
    }
}

impl OutputTail {
    /// Takes what was printed; true when it is time to show it.
    fn more(&mut self, text: &str, at: Option<Timestamp>) -> bool {
        self.text.push_str(text);
        // Twice the length, so that a long output is not moved with every piece.
        if self.text.len() > 2 * TAIL {
            let cut = self.text.len() - TAIL;
            let cut = (cut..self.text.len()).find(|it| self.text.is_char_boundary(*it));
            self.text.drain(..cut.unwrap_or(self.text.len()));
        }
        let is_time = match (self.sent_at, at) {
            (Some(before), Some(now)) => now.millis() - before.millis() >= PAUSE_MS,
            (None, _) => true,
            (Some(_), None) => false,
        };
        if is_time {
            self.sent_at = at.or(Some(Timestamp::from_millis(0)));
        }
        is_time
    }
}
