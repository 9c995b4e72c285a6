//! The one table of keys: the file, the variables, `linkspan config` and the manual follow it.

use std::time::Duration;

use responses::Provider;

use super::{Origin, Setting, Value};
use crate::ask_limit::AskDefault;
use crate::engines::{CLAUDE_TOOLS, GEMINI_TOOLS, OPENCODE_TOOLS, OPENHANDS_TOOLS};

/// One key of a section.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub preset: Preset,
    /// The environment variable that sets it too.
    pub variable: Option<&'static str>,
    pub summary: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Choice(&'static [&'static str]),
    Mode,
    Engine,
    Switch,
    /// `true`, `false`, or `"auto"`.
    SwitchOrAuto,
    List,
    Table,
    Seconds,
    Number,
    /// Bytes, perhaps with a unit.
    Size,
    /// A number of times.
    Count,
    /// A text that is not shown.
    Secret,
}

/// What a key holds when nobody has set it.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    Unset,
    Off,
    Auto,
    List(&'static [&'static str]),
    Seconds(u64),
    On,
    Count(u32),
}

/// A table of the file; the top of the file has an empty path.
#[derive(Debug)]
pub struct Section {
    pub path: &'static str,
    pub keys: &'static [&'static [Key]],
}

impl Section {
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().flatten()
    }
}

const TOP: &[Key] = &[
    Key {
        name: "default_engine",
        kind: Kind::Engine,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_ENGINE"),
        summary: "the engine of a run that names none; unset, the first one installed",
    },
    Key {
        name: "model",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_MODEL"),
        summary: "the model, whichever engine runs; an engine's own `model` is nearer",
    },
    Key {
        name: "permissions",
        kind: Kind::Mode,
        preset: Preset::Unset,
        variable: Some("LINKSPAN_PERMISSIONS"),
        summary: "what an agent may do; unset, `ask` where somebody can be asked, and `listed` in a `run` without a terminal",
    },
    Key {
        name: "start_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(180),
        variable: Some("LINKSPAN_START_TIMEOUT"),
        summary: "seconds until an agent must have said something; 0 waits for ever",
    },
    Key {
        name: "idle_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(0),
        variable: Some("LINKSPAN_IDLE_TIMEOUT"),
        summary: "seconds of silence after which a run is given up; 0 waits for ever",
    },
    Key {
        name: "ask_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(0),
        variable: Some("LINKSPAN_ASK_TIMEOUT"),
        summary: "seconds after which an ask that nobody has answered is answered by `ask_default`; 0 waits for ever",
    },
    Key {
        name: "ask_default",
        kind: Kind::Choice(AskDefault::NAMES),
        preset: Preset::Unset,
        variable: Some("LINKSPAN_ASK_DEFAULT"),
        summary: "the answer to an ask that nobody has answered in time; unset, `deny`",
    },
    Key {
        name: "interrupt_grace",
        kind: Kind::Seconds,
        preset: Preset::Seconds(5),
        variable: None,
        summary: "seconds between asking or interrupting an agent and terminating it",
    },
    Key {
        name: "terminate_grace",
        kind: Kind::Seconds,
        preset: Preset::Seconds(3),
        variable: None,
        summary: "seconds between terminating an agent and killing it",
    },
];

const JOURNAL: &[Key] = &[
    Key {
        name: "keep_days",
        kind: Kind::Number,
        preset: Preset::Unset,
        variable: None,
        summary: "days after which a session that nobody used is removed; 0 keeps it for ever",
    },
    Key {
        name: "keep_sessions",
        kind: Kind::Number,
        preset: Preset::Unset,
        variable: None,
        summary: "how many sessions stay, those used last; 0 keeps all",
    },
    Key {
        name: "keep_bytes",
        kind: Kind::Size,
        preset: Preset::Unset,
        variable: None,
        summary: "how much all sessions may take up; 0 keeps all",
    },
    Key {
        name: "cut_above",
        kind: Kind::Size,
        preset: Preset::Unset,
        variable: None,
        summary: "longer texts are stored shortened to about this, at least 1024 bytes; 0 keeps them whole",
    },
];

const SERVE: &[Key] = &[
    Key {
        name: "roots",
        kind: Kind::List,
        preset: Preset::Unset,
        variable: None,
        summary: "directories that agents of the server may work in, and below; unset, it depends on the token",
    },
    Key {
        name: "allow_origins",
        kind: Kind::List,
        preset: Preset::List(&[]),
        variable: None,
        summary: "pages of other origins that may use `/ag-ui`, `/api` and `/ws` from a browser, such as `https://app.example.com`",
    },
    Key {
        name: "permissions",
        kind: Kind::Mode,
        preset: Preset::Unset,
        variable: None,
        summary: "the mode of prompts to the server that name none; unset, `permissions`, else `ask`",
    },
];

const PROCESS: &[Key] = &[
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

const AGENT: &[Key] = &[
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

const CLAUDE: &[Key] = &[
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

const CODEX: &[Key] = &[
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
        summary: "hand `CODEX_API_KEY` on to Codex; `auto` does so if it has no login of its own",
    },
];

const OPENCODE: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(OPENCODE_TOOLS),
    variable: None,
    summary: "tools that run without a question, such as `bash(git *)`, unless the caller lists others; the default holds in `listed` only",
}];

const GEMINI: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(GEMINI_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];

const OPENHANDS: &[Key] = &[Key {
    name: "allowed_tools",
    kind: Kind::List,
    preset: Preset::List(OPENHANDS_TOOLS),
    variable: None,
    summary: "tools that run without a question, unless the caller lists others; the default holds in `listed` only",
}];
const ENDPOINT: &[Key] = &[
    Key {
        name: "base_url",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the address, such as `https://api.openai.com/v1`",
    },
    Key {
        name: "model",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the model; unset, the provider's usual one",
    },
    Key {
        name: "api_key_env",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the environment variable that has the key",
    },
    Key {
        name: "api_key_file",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the file that has the key",
    },
    Key {
        name: "provider",
        kind: Kind::Choice(Provider::NAMES),
        preset: Preset::Unset,
        variable: None,
        summary: "whose endpoint it is; unset, the address tells",
    },
    Key {
        name: "headers",
        kind: Kind::Table,
        preset: Preset::Unset,
        variable: None,
        summary: "headers of every request",
    },
    Key {
        name: "stateful",
        kind: Kind::Switch,
        preset: Preset::On,
        variable: None,
        summary: "let the provider keep the conversation, and send it what is new",
    },
    Key {
        name: "max_retries",
        kind: Kind::Count,
        preset: Preset::Count(3),
        variable: None,
        summary: "how often a request is repeated that nothing has come back for",
    },
    Key {
        name: "connect_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(10),
        variable: None,
        summary: "seconds until the endpoint must have been reached",
    },
    Key {
        name: "first_byte_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(300),
        variable: None,
        summary: "seconds until its answer must have begun",
    },
    Key {
        name: "idle_timeout",
        kind: Kind::Seconds,
        preset: Preset::Seconds(120),
        variable: None,
        summary: "seconds of silence in the middle of an answer",
    },
    Key {
        name: "profile",
        kind: Kind::Choice(&["thinking"]),
        preset: Preset::Unset,
        variable: None,
        summary: "the profile of `ag-ui` for clients of this endpoint",
    },
    Key {
        name: "client_state",
        kind: Kind::Switch,
        preset: Preset::Off,
        variable: None,
        summary: "tell AG-UI clients the response's id as a part of their state",
    },
];

const AZURE: &[Key] = &[
    Key {
        name: "api_version",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the `api-version` of every request",
    },
    Key {
        name: "deployment_name",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "what Azure calls the model",
    },
];

const OPENCLAW: &[Key] = &[
    Key {
        name: "agent_id",
        kind: Kind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the agent that requests are routed to",
    },
    Key {
        name: "session_key",
        kind: Kind::Secret,
        preset: Preset::Unset,
        variable: None,
        summary: "the session that all requests belong to",
    },
    Key {
        name: "nested_tools",
        kind: Kind::Switch,
        preset: Preset::On,
        variable: None,
        summary: "tools as `{type, function: {…}}`",
    },
];

pub const SECTIONS: &[Section] = &[
    Section {
        path: "",
        keys: &[TOP],
    },
    Section {
        path: "journal",
        keys: &[JOURNAL],
    },
    Section {
        path: "serve",
        keys: &[SERVE],
    },
    Section {
        path: "engines.claude",
        keys: &[PROCESS, AGENT, CLAUDE],
    },
    Section {
        path: "engines.codex",
        keys: &[PROCESS, AGENT, CODEX],
    },
    Section {
        path: "engines.opencode",
        keys: &[PROCESS, AGENT, OPENCODE],
    },
    Section {
        path: "engines.gemini",
        keys: &[PROCESS, AGENT, GEMINI],
    },
    Section {
        path: "engines.openhands",
        keys: &[PROCESS, AGENT, OPENHANDS],
    },
];

/// `[engines.acp.NAME]`, for any name.
pub const ACP: Section = Section {
    path: "engines.acp.NAME",
    keys: &[PROCESS, LOGIN],
};

const LOGIN: &[Key] = &[Key {
    name: "auth_method",
    kind: Kind::Text,
    preset: Preset::Unset,
    variable: None,
    summary: "how to log in when the agent wants it, by the id of one of the agent's own methods",
}];

/// `[engines.responses.NAME]`, for any name.
pub const RESPONSES: Section = Section {
    path: "engines.responses.NAME",
    keys: &[ENDPOINT],
};

/// The tables inside of it, for one provider each.
pub const PROVIDERS: &[Section] = &[
    Section {
        path: "engines.responses.NAME.azure",
        keys: &[AZURE],
    },
    Section {
        path: "engines.responses.NAME.openclaw",
        keys: &[OPENCLAW],
    },
];

/// The full name of a key.
pub(super) fn full(section: &str, name: &str) -> String {
    match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    }
}

pub(super) fn defaults() -> Vec<Setting> {
    let mut settings = Vec::new();
    for section in SECTIONS {
        settings.extend(section.keys().map(|key| Setting {
            key: full(section.path, key.name),
            value: preset(key.preset),
            origin: Origin::Default,
        }));
    }
    settings
}

/// The keys that a variable can set: key, kind, variable.
pub(super) fn variables() -> impl Iterator<Item = (&'static str, Kind, &'static str)> {
    TOP.iter()
        .filter_map(|it| it.variable.map(|variable| (it.name, it.kind, variable)))
}

pub(super) fn kind(key: &str) -> Option<Kind> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let section = SECTIONS.iter().find(|it| it.path == section)?;
    section.keys().find(|it| it.name == name).map(|it| it.kind)
}

fn preset(preset: Preset) -> Value {
    match preset {
        Preset::Unset => Value::Unset,
        Preset::Off => Value::Switch(false),
        Preset::On => Value::Switch(true),
        Preset::Auto => Value::Text("auto".to_owned()),
        Preset::Count(it) => Value::Count(it),
        Preset::List(items) => Value::List(items.iter().map(|it| (*it).to_owned()).collect()),
        Preset::Seconds(it) => Value::Seconds(Duration::from_secs(it)),
    }
}
