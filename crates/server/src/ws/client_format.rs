//! The format of a client's events, and what the bridge puts around them.

use std::fmt::Write;

use axum::extract::ws::Utf8Bytes;
use formats::registry::{self, WriterInfo};
use formats::{BridgeConfig, ServedThread};
use hub::{Cursor, Delivered, Follow, Scope};
use serde_json::Value;

/// What the bridge puts around a frame; with a longer id the text grows.
const MAX_AROUND: usize = 160;

#[derive(Clone, Debug)]
pub(crate) struct ClientFormat {
    pub(crate) format: &'static str,
    pub(crate) writer: &'static WriterInfo,
    pub(crate) profile: Option<String>,
    /// Only for a format with links.
    pub(crate) served: Option<ServedThread>,
    /// Asks and the ends of runs come as messages of the bridge, too.
    pub(crate) bridge: Option<BridgeConfig>,
}

impl ClientFormat {
    pub(super) fn follow(&self, scope: Scope) -> Follow {
        Follow {
            scope,
            format: self.format.to_owned(),
            profile: self.profile.clone(),
            served: self.served.clone(),
            bridge: self.bridge.clone(),
        }
    }

    /// What an event becomes, and the bridge's own messages about it.
    pub(super) fn frames(&self, delivered: &Delivered) -> Box<[Utf8Bytes]> {
        let (event, messages) = delivered.bytes.split_at(delivered.messages_at);
        let messages = messages
            .split(|it| *it == b'\n')
            .filter(|it| !it.is_empty());
        let session = delivered.session.as_str();
        if self.format == registry::CANONICAL {
            // Sent as stored, without a copy.
            let line = delivered.bytes.slice(..event.len() - 1);
            // The event contains its cursor, so a client that has the event knows its cursor.
            let cursor = Cursor::behind(delivered.seq, 1, 1);
            let messages = messages.map(|it| with_cursor(session, cursor, &text(it)).into());
            return Utf8Bytes::try_from(line)
                .into_iter()
                .chain(messages)
                .collect();
        }
        let frames = self.writer.stream_kind.frames(event);
        let messages: Vec<&[u8]> = messages.collect();
        let n_all = frames.len() + messages.len();
        let cursor = |n: usize| Cursor::behind(delivered.seq, n + 1, n_all);
        let made = frames.iter().chain(&messages).enumerate();
        let made = made.map(|(n, frame)| {
            // The fields of a ThreadEvent and of a message stay as they are, whatever they hold.
            let is_flat = n >= frames.len() || (self.writer.has_links && *frame != b"{}");
            let frame = text(frame);
            match is_flat {
                true => with_cursor(session, cursor(n), &frame).into(),
                false => wrapped(session, cursor(n), &frame).into(),
            }
        });
        made.collect()
    }
}

fn text(frame: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(frame)
}

/// An object with the fields of the bridge in front of its own, without parsing it.
fn with_cursor(session: &str, cursor: Cursor, object: &str) -> String {
    let fields = object.strip_prefix('{').unwrap_or(object);
    let mut text = String::with_capacity(object.len() + MAX_AROUND);
    text.push('{');
    put_place(&mut text, session, cursor);
    text.push(',');
    text.push_str(fields);
    text
}

/// A frame inside of a message of the bridge.
fn wrapped(session: &str, cursor: Cursor, frame: &str) -> String {
    let mut text = String::with_capacity(frame.len() + MAX_AROUND);
    text.push_str(r#"{"type":"bridge.event","#);
    put_place(&mut text, session, cursor);
    text.push_str(r#","data":"#);
    text.push_str(frame);
    text.push('}');
    text
}

fn put_place(text: &mut String, session: &str, cursor: Cursor) {
    let session = Value::from(session);
    // `7.10` as a JSON number would be `7.1`.
    let quote = if cursor.n_known == 0 { "" } else { "\"" };
    // Writing to a string does not fail.
    write!(
        text,
        r#""sessionId":{session},"cursor":{quote}{cursor}{quote}"#
    )
    .ok();
}
