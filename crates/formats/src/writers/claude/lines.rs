//! What every line has: the session, an id, a time, and the fields of the agent's own line that
//! the model has no place for.
//!
//! A line that Claude Code printed keeps its id and its other fields; only the names that it is known
//! to print are taken, so that the fields of another agent's frame are not passed off as its own.

use model::{Event, Extra, Raw, Timestamp};
use serde::Serialize;

use crate::wire::claude::output::{Fields, LineId, OutputLine, SystemLine};
use crate::writers::event_ids::EventIds;
use crate::writers::line;

/// What Claude Code prints beside a message.
const LINE_FIELDS: &[&str] = &[
    "agent_id",
    "api_error",
    "api_error_params",
    "api_error_status",
    "api_error_type",
    "context_usage",
    "error",
    "local_command_outcome",
    "local_command_run",
    "local_command_source",
    "refused_message_id",
    "request_id",
    "subagent_type",
    "task_description",
    "thinking_display",
    "thinking_duration_ms",
    "tool_use_meta",
];
/// What it prints inside of a message, which the reader does not tell apart.
const MESSAGE_FIELDS: &[&str] = &[
    "stop_reason",
    "stop_sequence",
    "context_management",
    "container",
    "diagnostics",
    "stop_details",
];
/// What it prints with `init`, and what stands there for an agent that does not have it.
const INIT_FIELDS: &[(&str, Option<&str>)] = &[
    ("mcp_servers", Some("[]")),
    ("apiKeySource", Some("\"none\"")),
    ("output_style", Some("\"default\"")),
    ("agents", Some("[]")),
    ("skills", Some("[]")),
    ("plugins", Some("[]")),
    ("terminal_slash_commands", None),
    ("capabilities", None),
    ("analytics_disabled", None),
    ("product_feedback_disabled", None),
    ("memory_paths", None),
    ("original_cwd", None),
    ("additional_directories", None),
    ("messaging_socket_path", None),
    ("fast_mode_state", None),
    ("fast_mode_disabled_reason", None),
    ("per_turn_effort_active", None),
    ("ultrathink_available", None),
    ("ultrathink_typed_raises", None),
    ("view_mode", None),
];

#[derive(Clone, Debug, Default)]
pub(super) struct ClaudeLines {
    /// The session that lines are of.
    pub(super) session: String,
    ids: EventIds,
    /// The id of the frame, until a line has it.
    native: Option<String>,
    used_native: Option<String>,
    at: Option<Timestamp>,
    frame: Option<u64>,
    /// The fields of the frame; they are with its first event, which may be another than the one they
    /// belong to.
    extra: Vec<(String, Raw<'static>)>,
}

impl ClaudeLines {
    /// Lines of a session that has no events yet.
    pub(super) fn of_session(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            ids: EventIds::of_session(session),
            ..Self::default()
        }
    }

    /// The lines that follow come from this event.
    pub(super) fn turn_to(&mut self, event: &Event<'_>) {
        self.ids.turn_to(event);
        self.at = event.at.or(self.at);
        if event.frame.is_none() || event.frame != self.frame {
            self.frame = event.frame;
            self.extra.clear();
        }
        let native = event.native.as_deref().filter(|it| is_uuid(it));
        // Several events come from one frame, and only one line may have its id.
        let native = native.filter(|it| self.used_native.as_deref() != Some(it));
        self.native = native.map(str::to_owned);
        let is_known = |it: &str| LINE_FIELDS.contains(&it) || MESSAGE_FIELDS.contains(&it);
        let known = event.extra.iter().filter(|(key, _)| is_known(key));
        let known = known.map(|(key, value)| (key.to_string(), value.clone().into_owned()));
        self.extra.extend(known);
    }

    pub(super) fn frame(&self) -> Option<u64> {
        self.frame
    }

    pub(super) fn system(
        &mut self,
        subtype: &'static str,
        body: impl Serialize,
        out: &mut Vec<u8>,
    ) {
        let body = SystemLine { subtype, body };
        self.write("system", body, None, Fields::default(), out);
    }

    /// An `init` may be written later than it was read: `id` is the agent's own of it.
    pub(super) fn init(
        &mut self,
        body: impl Serialize,
        id: Option<String>,
        fields: Fields<'_>,
        out: &mut Vec<u8>,
    ) {
        let subtype = "init";
        let body = SystemLine { subtype, body };
        let other = std::mem::replace(&mut self.native, id);
        self.write("system", body, None, fields, out);
        self.native = other.filter(|it| self.used_native.as_ref() != Some(it));
    }

    /// A line of the conversation, with its time and the other fields of the agent's own.
    pub(super) fn turn(&mut self, r#type: &'static str, body: impl Serialize, out: &mut Vec<u8>) {
        let extra = std::mem::take(&mut self.extra);
        let fields = pick(&extra, LINE_FIELDS);
        self.write(r#type, body, self.at, fields, out);
        self.extra = extra;
    }

    pub(super) fn write(
        &mut self,
        r#type: &'static str,
        body: impl Serialize,
        timestamp: Option<Timestamp>,
        extra: Fields<'_>,
        out: &mut Vec<u8>,
    ) {
        let made = self.ids.next_id();
        let native = self.native.take();
        let uuid = native.as_deref().map_or(LineId::Made(made), LineId::Native);
        let written = OutputLine {
            r#type,
            body,
            session_id: &self.session,
            uuid,
            timestamp,
            extra,
        };
        line(out, &written);
        self.used_native = native.or(self.used_native.take());
    }

    /// The fields of the frame that stand inside a message; the API always has the first two.
    pub(super) fn message_fields(&self) -> Vec<(&'static str, Raw<'static>)> {
        let mut fields: Vec<_> = MESSAGE_FIELDS[..2]
            .iter()
            .map(|it| (*it, Raw::of(&())))
            .collect();
        for (key, value) in &self.extra {
            let Some(key) = MESSAGE_FIELDS.iter().find(|it| *it == key) else {
                continue;
            };
            match fields.iter_mut().find(|(known, _)| known == key) {
                Some(field) => field.1 = value.clone(),
                None => fields.push((key, value.clone())),
            }
        }
        fields
    }
}

/// Fields of the frame of an `init` that Claude Code prints, in its order.
pub(super) fn init_fields(extra: &Extra<'_>) -> Vec<(&'static str, Raw<'static>)> {
    let found = INIT_FIELDS.iter().filter_map(|(key, default)| {
        let own = extra.iter().find(|(name, _)| name == key);
        let own = own.map(|(_, value)| value.clone().into_owned());
        let value = own.or_else(|| default.map(|it| Raw::parse(it.to_owned())));
        Some((*key, value?))
    });
    found.collect()
}

fn pick<'e>(extra: &'e [(String, Raw<'static>)], known: &[&str]) -> Fields<'e> {
    let known = extra.iter().filter(|(key, _)| known.contains(&&**key));
    Fields(known.map(|(key, value)| (&**key, value.by_ref())).collect())
}

pub(super) fn is_uuid(id: &str) -> bool {
    let is_digit = |(at, it): (usize, u8)| match at {
        8 | 13 | 18 | 23 => it == b'-',
        _ => it.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(is_digit)
}
