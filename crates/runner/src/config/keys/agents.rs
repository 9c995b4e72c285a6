//! The keys of `[engines.NAME]`, for agents that are started as a process.

use super::ValueKind::{Choice, List, Seconds, Switch, SwitchOrAuto, Table, Text};
use super::{KeySpec, Preset};
use crate::ask_limit::AskDefault;
use crate::engines::{CLAUDE_TOOLS, GEMINI_TOOLS, OPENCODE_TOOLS, OPENHANDS_TOOLS, VERBOSITIES};

pub(super) const PROCESS: &[KeySpec] = &[
    Text.key("program"),
    List.key("args").preset(Preset::List(&[])),
    Table.key("env"),
    Seconds.key("ask_timeout"),
    Choice(AskDefault::NAMES).key("ask_default"),
];

pub(super) const AGENT: &[KeySpec] = &[
    Text.key("model"),
    Switch
        .key("dangerously_skip_permissions")
        .preset(Preset::Off),
];

pub(super) const CLAUDE: &[KeySpec] = &[
    List.key("allowed_tools").preset(Preset::List(CLAUDE_TOOLS)),
    SwitchOrAuto
        .key("use_api_billing")
        .preset(Preset::Text("auto")),
    Text.key("output_style"),
];

pub(super) const CODEX: &[KeySpec] = &[
    Choice(&["read-only", "workspace-write", "danger-full-access"]).key("sandbox"),
    Choice(VERBOSITIES).key("verbosity"),
    SwitchOrAuto
        .key("use_api_billing")
        .preset(Preset::Text("auto")),
];

pub(super) const OPENCODE: &[KeySpec] = &[List
    .key("allowed_tools")
    .preset(Preset::List(OPENCODE_TOOLS))];

pub(super) const GEMINI: &[KeySpec] =
    &[List.key("allowed_tools").preset(Preset::List(GEMINI_TOOLS))];

pub(super) const OPENHANDS: &[KeySpec] = &[List
    .key("allowed_tools")
    .preset(Preset::List(OPENHANDS_TOOLS))];

pub(super) const LOGIN: &[KeySpec] = &[Text.key("auth_method")];
