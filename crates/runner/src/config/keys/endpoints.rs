//! The keys of `[engines.responses.NAME]`, for models over HTTP.

use responses::Provider;

use super::{KeySpec, Preset, ValueKind};

pub(super) const ENDPOINT: &[KeySpec] = &[
    KeySpec {
        name: "base_url",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the address, such as `https://api.openai.com/v1`",
    },
    KeySpec {
        name: "model",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the model; unset, the provider's usual one",
    },
    KeySpec {
        name: "api_key_env",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the environment variable that has the key",
    },
    KeySpec {
        name: "api_key_file",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the file that has the key",
    },
    KeySpec {
        name: "provider",
        kind: ValueKind::Choice(Provider::NAMES),
        preset: Preset::Unset,
        variable: None,
        summary: "whose endpoint it is; unset, the address tells",
    },
    KeySpec {
        name: "headers",
        kind: ValueKind::Table,
        preset: Preset::Unset,
        variable: None,
        summary: "headers of every request",
    },
    KeySpec {
        name: "stateful",
        kind: ValueKind::Switch,
        preset: Preset::On,
        variable: None,
        summary: "let the provider keep the conversation, and send it what is new",
    },
    KeySpec {
        name: "max_retries",
        kind: ValueKind::Count,
        preset: Preset::Count(3),
        variable: None,
        summary: "how often a request is repeated that nothing has come back for",
    },
    KeySpec {
        name: "connect_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(10),
        variable: None,
        summary: "seconds until the endpoint must have been reached",
    },
    KeySpec {
        name: "first_byte_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(300),
        variable: None,
        summary: "seconds until its answer must have begun",
    },
    KeySpec {
        name: "idle_timeout",
        kind: ValueKind::Seconds,
        preset: Preset::Seconds(120),
        variable: None,
        summary: "seconds of silence in the middle of an answer",
    },
    KeySpec {
        name: "profile",
        kind: ValueKind::Choice(&["thinking"]),
        preset: Preset::Unset,
        variable: None,
        summary: "the profile of `ag-ui` for clients of this endpoint",
    },
    KeySpec {
        name: "client_state",
        kind: ValueKind::Switch,
        preset: Preset::Off,
        variable: None,
        summary: "tell AG-UI clients the response's id as a part of their state",
    },
];

pub(super) const AZURE: &[KeySpec] = &[
    KeySpec {
        name: "api_version",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the `api-version` of every request",
    },
    KeySpec {
        name: "deployment_name",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "what Azure calls the model",
    },
];

pub(super) const OPENCLAW: &[KeySpec] = &[
    KeySpec {
        name: "agent_id",
        kind: ValueKind::Text,
        preset: Preset::Unset,
        variable: None,
        summary: "the agent that requests are routed to",
    },
    KeySpec {
        name: "session_key",
        kind: ValueKind::Secret,
        preset: Preset::Unset,
        variable: None,
        summary: "the session that all requests belong to",
    },
    KeySpec {
        name: "nested_tools",
        kind: ValueKind::Switch,
        preset: Preset::On,
        variable: None,
        summary: "tools as `{type, function: {…}}`",
    },
];
