//! The keys of `[engines.responses.NAME]`, for models over HTTP.

use responses::Provider;

use super::{Key, Kind, Preset};

pub(super) const ENDPOINT: &[Key] = &[
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

pub(super) const AZURE: &[Key] = &[
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

pub(super) const OPENCLAW: &[Key] = &[
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
