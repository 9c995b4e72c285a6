//! The keys of linkspan itself: the top of the file, `[journal]` and `[serve]`.

use super::{KeySpec, Preset, ValueKind};
use crate::ask_limit::AskDefault;

pub(super) const TOP: &[KeySpec] = &[
    KeySpec {
        name: "default_engine",
        kind: ValueKind::Engine,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_ENGINE"),
        summary: "the engine of a run that names none; unset, the first one installed",
    },
    KeySpec {
        name: "model",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_MODEL"),
        summary: "the model, whichever engine runs; an engine's own `model` is nearer",
    },
    KeySpec {
        name: "permissions",
        kind: ValueKind::Mode,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_PERMISSIONS"),
        summary: "what an agent may do; unset, `ask` where somebody can be asked, and `listed` in a `run` without a terminal",
    },
    KeySpec {
        name: "start_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(180),
        variable: Some("LINKSPAN_START_TIMEOUT"),
        summary: "seconds until an agent must have said something; 0 waits for ever",
    },
    KeySpec {
        name: "idle_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(0),
        variable: Some("LINKSPAN_IDLE_TIMEOUT"),
        summary: "seconds of silence after which a run is given up; 0 waits for ever",
    },
    KeySpec {
        name: "ask_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(0),
        variable: Some("LINKSPAN_ASK_TIMEOUT"),
        summary: "seconds after which an ask that nobody has answered is answered by `ask_default`; 0 waits for ever",
    },
    KeySpec {
        name: "ask_default",
        kind: ValueKind::Choice(AskDefault::NAMES),
        preset: Preset::Unset,
        variable: Some("LINKSPAN_ASK_DEFAULT"),
        summary: "the answer to an ask that nobody has answered in time; unset, `deny`",
    },
    KeySpec {
        name: "interrupt_grace",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(5),
        variable: None,
        summary: "seconds between asking or interrupting an agent and terminating it",
    },
    KeySpec {
        name: "terminate_grace",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(3),
        variable: None,
        summary: "seconds between terminating an agent and killing it",
    },
];

pub(super) const JOURNAL: &[KeySpec] = &[
    KeySpec {
        name: "keep_days",
        kind: ValueKind::Number,
        preset: Preset::Unset,
        variable: None,
        summary: "days after which a session that nobody used is removed; 0 keeps it for ever",
    },
    KeySpec {
        name: "keep_sessions",
        kind: ValueKind::Number,
        preset: Preset::Unset,
        variable: None,
        summary: "how many sessions stay, those used last; 0 keeps all",
    },
    KeySpec {
        name: "keep_bytes",
        kind: ValueKind::Size,
        preset: Preset::Unset,
        variable: None,
        summary: "how much all sessions may take up; 0 keeps all",
    },
    KeySpec {
        name: "cut_above",
        kind: ValueKind::Size,
        preset: Preset::Unset,
        variable: None,
        summary: "longer texts are stored shortened to about this, at least 1024 bytes; 0 keeps them whole",
    },
];

pub(super) const SERVE: &[KeySpec] = &[
    KeySpec {
        name: "roots",
        kind: ValueKind::List,
        preset: Preset::Unset,
        variable: None,
        summary: "directories that agents of the server may work in, and below; unset, it depends on the token",
    },
    KeySpec {
        name: "allow_origins",
        kind: ValueKind::List,
        preset: Preset::List(&[]),
        variable: None,
        summary: "pages of other origins that may use `/ag-ui`, `/api` and `/ws` from a browser, such as `https://app.example.com`",
    },
    KeySpec {
        name: "permissions",
        kind: ValueKind::Mode,
        preset: Preset::Unset,
        variable: None,
        summary: "the mode of prompts to the server that name none; unset, `permissions`, else `ask`",
    },
    KeySpec {
        name: "log_format",
        kind: ValueKind::Choice(&["text", "json"]),
        preset: Preset::Text("text"),
        variable: Some("LINKSPAN_LOG_FORMAT"),
        summary: "how the lines of the server's log are written",
    },
    KeySpec {
        name: "log_level",
        kind: ValueKind::Choice(&["off", "error", "warn", "info", "debug"]),
        preset: Preset::Text("info"),
        variable: Some("LINKSPAN_LOG_LEVEL"),
        summary: "the least important lines of the server's log",
    },
];
