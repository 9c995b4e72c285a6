//! The keys of linkspan itself: the top of the file, `[journal]` and `[serve]`.

use super::ValueKind::{Choice, Engine, List, Mode, Number, Seconds, Size, Text};
use super::{KeySpec, Preset};
use crate::ask_limit::AskDefault;

pub(super) const TOP: &[KeySpec] = &[
    Engine.key("default_engine").variable("LINKSPAN_ENGINE"),
    Text.key("model").variable("LINKSPAN_MODEL"),
    Mode.key("permissions").variable("LINKSPAN_PERMISSIONS"),
    Seconds
        .key("start_timeout")
        .preset(Preset::Seconds(180))
        .variable("LINKSPAN_START_TIMEOUT"),
    Seconds
        .key("idle_timeout")
        .preset(Preset::Seconds(0))
        .variable("LINKSPAN_IDLE_TIMEOUT"),
    Seconds
        .key("ask_timeout")
        .preset(Preset::Seconds(0))
        .variable("LINKSPAN_ASK_TIMEOUT"),
    Choice(AskDefault::NAMES)
        .key("ask_default")
        .variable("LINKSPAN_ASK_DEFAULT"),
    Seconds.key("interrupt_grace").preset(Preset::Seconds(5)),
    Seconds.key("terminate_grace").preset(Preset::Seconds(3)),
];

pub(super) const JOURNAL: &[KeySpec] = &[
    Number.key("keep_days"),
    Number.key("keep_sessions"),
    Size.key("keep_bytes"),
    Size.key("cut_above"),
];

pub(super) const SERVE: &[KeySpec] = &[
    List.key("roots"),
    List.key("allow_origins").preset(Preset::List(&[])),
    Mode.key("permissions"),
    Choice(&["text", "json"])
        .key("log_format")
        .preset(Preset::Text("text"))
        .variable("LINKSPAN_LOG_FORMAT"),
    Choice(&["off", "error", "warn", "info", "debug"])
        .key("log_level")
        .preset(Preset::Text("info"))
        .variable("LINKSPAN_LOG_LEVEL"),
];
