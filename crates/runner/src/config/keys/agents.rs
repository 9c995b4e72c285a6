//! The keys of `[engines.NAME]`, for agents that are started as a process.

use super::{KeySpec, Preset, ValueKind};
use crate::ask_limit::AskDefault;
use crate::engines::{CLAUDE_TOOLS, GEMINI_TOOLS, OPENCODE_TOOLS, OPENHANDS_TOOLS, VERBOSITIES};

pub(super) const PROCESS: &[KeySpec] = &[
    KeySpec {
        name: "program",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the program, as a path or a name to look for",
    },
    KeySpec {
        name: "args",
        kind: ValueKind::List,
        preset: Preset::List(&[]),
        variable: None,
        summary: "arguments added to every start, before the prompt",
    },
    KeySpec {
        name: "env",
        kind: ValueKind::Table,
        preset: Preset::Unset,
        variable: None,
        summary: "environment variables of the agent",
    },
    KeySpec {
        name: "ask_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Unset,
        variable: None,
        summary: "the general `ask_timeout`, for this agent",
    },
    KeySpec {
        name: "ask_default",
        kind: ValueKind::Choice(AskDefault::NAMES),
        preset: Preset::Unset,
        variable: None,
        summary: "the general `ask_default`, for this agent",
    },
];

pub(super) const AGENT: &[KeySpec] = &[
    KeySpec {
        name: "model",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the model, by the agent's own name for it",
    },
    KeySpec {
        name: "dangerously_skip_permissions",
        kind: ValueKind::Switch,
        preset: Preset::Off,
        variable: None,
        summary: "allow everything, as `permissions = \"allow\"` for this engine",
    },
];

pub(super) const CLAUDE: &[KeySpec] = &[
    KeySpec {
        name: "allowed_tools",
        kind: ValueKind::List,
        preset: Preset::List(CLAUDE_TOOLS),
        variable: None,
        summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
    },
    KeySpec {
        name: "use_api_billing",
        kind: ValueKind::SwitchOrAuto,
        preset: Preset::Text("auto"),
        variable: None,
        summary: "hand `ANTHROPIC_API_KEY` on to Claude Code; `auto` does so if it has no login of its own",
    },
    KeySpec {
        name: "output_style",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "Claude Code's `outputStyle`",
    },
];

pub(super) const CODEX: &[KeySpec] = &[
    KeySpec {
        name: "sandbox",
        kind: ValueKind::Choice(&["read-only", "workspace-write", "danger-full-access"]),
        preset: Preset::Unset,
        variable: None,
        summary: "what commands can do; unset, it follows the permissions",
    },
    KeySpec {
        name: "verbosity",
        kind: ValueKind::Choice(VERBOSITIES),
        preset: Preset::Unset,
        variable: None,
        summary: "how much the model says, Codex's `model_verbosity`",
    },
    KeySpec {
        name: "use_api_billing",
        kind: ValueKind::SwitchOrAuto,
        preset: Preset::Text("auto"),
        variable: None,
        summary: "hand `CODEX_API_KEY`, else `OPENAI_API_KEY`, on to Codex; `auto` does so if it has no login of its own",
    },
];

pub(super) const OPENCODE: &[KeySpec] = &[KeySpec {
    name: "allowed_tools",
    kind: ValueKind::List,
    preset: Preset::List(OPENCODE_TOOLS),
    variable: None,
    summary: "tools that run without a question, such as `bash(git *)`, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const GEMINI: &[KeySpec] = &[KeySpec {
    name: "allowed_tools",
    kind: ValueKind::List,
    preset: Preset::List(GEMINI_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const OPENHANDS: &[KeySpec] = &[KeySpec {
    name: "allowed_tools",
    kind: ValueKind::List,
    preset: Preset::List(OPENHANDS_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const LOGIN: &[KeySpec] = &[KeySpec {
    name: "auth_method",
    kind: ValueKind::Text,
    preset: Preset::Unset,
    variable: None,
    summary: "how to log in when the agent wants it, by the id of one of the agent's own methods",
}];
