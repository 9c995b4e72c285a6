//! One event after the other, as server-sent events of a size that the client takes.

use model::{Event, Text, escape_line_breaks};

use super::wire;
use crate::writers::{json, string};

/// Bytes of a text in one frame: the client refuses frames above 10 MB, and a byte may become six.
pub(super) const MAX_PIECE: usize = 1024 * 1024;

/// A long text in pieces that the client takes.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Where the events of one moment and one agent go.
pub(super) struct EventLane<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) at: Option<i64>,
    /// The sub-agent whose events these are.
    pub(super) subagent: Option<&'a str>,
}

impl<'a> EventLane<'a> {
    /// Where events of the main agent go that have no time.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            at: None,
            subagent: None,
        }
    }

    pub(super) fn of(event: &Event<'_>, out: &'a mut Vec<u8>) -> Self {
        Self {
            at: event.at.map(|it| it.millis()),
            ..Self::new(out)
        }
    }

    pub(super) fn emit(&mut self, body: wire::Body<'_>) {
        // The client splits on `\n\n` and knows no other framing.
        self.out.extend_from_slice(b"data: ");
        json(self.out, &body);
        // The closing brace: `end` writes the fields that all events share, and another one.
        self.out.pop();
        self.end();
    }

    /// A piece of a text, written by hand: these come by the thousand.
    pub(super) fn piece(&mut self, r#type: &str, id_field: &str, id: &str, delta: &Text<'_>) {
        if delta.len_bound() <= MAX_PIECE {
            return self.one_piece(r#type, id_field, id, delta);
        }
        let text = delta.to_str();
        for part in parts(&text) {
            self.one_piece(r#type, id_field, id, &Text::new(part));
        }
    }

    fn one_piece(&mut self, r#type: &str, id_field: &str, id: &str, delta: &Text<'_>) {
        self.out.extend_from_slice(b"data: {\"type\":\"");
        self.out.extend_from_slice(r#type.as_bytes());
        self.out.extend_from_slice(b"\",\"");
        self.out.extend_from_slice(id_field.as_bytes());
        self.out.extend_from_slice(b"\":");
        string(self.out, id);
        self.out.extend_from_slice(b",\"delta\":");
        match delta {
            Text::Json(raw) => {
                let from = self.out.len();
                self.out.extend_from_slice(raw.get().as_bytes());
                escape_line_breaks(self.out, from);
            }
            Text::Plain(text) => json(self.out, text),
        }
        self.end();
    }

    fn end(&mut self) {
        // What all events have goes behind the fields of each: `flatten` would write every field
        // of every event through a map.
        if let Some(subagent) = self.subagent {
            self.out.extend_from_slice(b",\"subagentRunId\":");
            string(self.out, subagent);
        }
        if let Some(at) = self.at {
            self.out.extend_from_slice(b",\"timestamp\":");
            json(self.out, &at);
        }
        self.out.extend_from_slice(b"}\n\n");
    }
}
