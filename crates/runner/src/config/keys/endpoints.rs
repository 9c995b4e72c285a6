//! The keys of `[engines.responses.NAME]`, for models over HTTP.

use responses::Provider;

use super::ValueKind::{Choice, Count, Seconds, Secret, Switch, Table, Text};
use super::{KeySpec, Preset};

pub(super) const ENDPOINT: &[KeySpec] = &[
    Text.key("base_url"),
    Text.key("model"),
    Text.key("api_key_env"),
    Text.key("api_key_file"),
    Choice(Provider::NAMES).key("provider"),
    Table.key("headers"),
    Switch.key("stateful").preset(Preset::On),
    Count.key("max_retries").preset(Preset::Count(3)),
    Seconds.key("connect_timeout").preset(Preset::Seconds(10)),
    Seconds
        .key("first_byte_timeout")
        .preset(Preset::Seconds(300)),
    Seconds.key("idle_timeout").preset(Preset::Seconds(120)),
    Choice(&["thinking"]).key("profile"),
    Switch.key("client_state").preset(Preset::Off),
];

pub(super) const AZURE: &[KeySpec] = &[Text.key("api_version"), Text.key("deployment_name")];

pub(super) const OPENCLAW: &[KeySpec] = &[
    Text.key("agent_id"),
    Secret.key("session_key"),
    Switch.key("nested_tools").preset(Preset::On),
];
