//! The keys of `[engines.NAME]`, for agents that are started as a process.

use super::{Key, Kind, Preset};
use crate::ask_limit::AskDefault;
use crate::engines::{CLAUDE_TOOLS, GEMINI_TOOLS, OPENCODE_TOOLS, OPENHANDS_TOOLS};

pub(super) const PROCESS: &[Key] = &[
    Key {
        name: "program",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the program, as a path or a name to look for",
    },
    Key {
        name: "args",
        kind: Kind::List,
        preset: Preset::List(&[]),
        variable: None,
        summary: "arguments added to every start, before the prompt",
    },
    Key {
        name: "env",
        kind: Kind::Table,
        preset: Preset::Unset,
        variable: None,
        summary: "environment variables of the agent",
    },
    Key {
        name: "ask_timeout",
        kind: Kind::Seconds,
        preset: Preset::Unset,
        variable: None,
        summary: "the general `ask_timeout`, for this agent",
    },
    Key {
        name: "ask_default",
        kind: Kind::Choice(AskDefault::NAMES),
        preset: Preset::Unset,
        variable: None,
        summary: "the general `ask_default`, for this agent",
    },
];

pub(super) const AGENT: &[Key] = &[
    Key {
        name: "model",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the model, by the agent's own name for it",
    },
    Key {
        name: "dangerously_skip_permissions",
        kind: Kind::Switch,
        preset: Preset::Off,
        variable: None,
        summary: "allow everything, as `permissions = \"allow\"` for this engine",
    },
];

pub(super) const CLAUDE: &[Key] = &[
    Key {
        name: "allowed_tools",
        kind: Kind::List,
        preset: Preset::List(CLAUDE_TOOLS),
        variable: None,
        summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
    },
    Key {
        name: "use_api_billing",
        kind: Kind::SwitchOrAuto,
        preset: Preset::Auto,
        variable: None,
        summary: "hand `ANTHROPIC_API_KEY` on to Claude Code; `auto` does so if it has no login of its own",
    },
    Key {
        name: "output_style",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "Claude Code's `outputStyle`",
    },
];

pub(super) const CODEX: &[Key] = &[
    Key {
        name: "sandbox",
        kind: Kind::Choice(&["read-only", "workspace-write", "danger-full-access"]),
        preset: Preset::Unset,
        variable: None,
        summary: "what commands can do; unset, it follows the permissions",
    },
    Key {
        name: "verbosity",
        kind: Kind::Choice(&["low", "medium", "high"]),
        preset: Preset::Unset,
        variable: None,
        summary: "how much the model says, Codex's `model_verbosity`",
    },
    Key {
        name: "use_api_billing",
        kind: Kind::SwitchOrAuto,
        preset: Preset::Auto,
        variable: None,
        summary: "hand `CODEX_API_KEY`, else `OPENAI_API_KEY`, on to Codex; `auto` does so if it has no login of its own",
    },
];

pub(super) const OPENCODE: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(OPENCODE_TOOLS),
    variable: None,
    summary: "tools that run without a question, such as `bash(git *)`, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const GEMINI: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(GEMINI_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const OPENHANDS: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(OPENHANDS_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];

pub(super) const LOGIN: &[Key] = &[Key {
    name: "auth_method",
    kind: Kind::Text,
    preset: Preset::Unset,
    variable: None,
    summary: "how to log in when the agent wants it, by the id of one of the agent's own methods",
}];
