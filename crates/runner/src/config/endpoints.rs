//! The OpenResponses endpoints that the config has a name for.

use std::time::Duration;

use responses::{Azure, Endpoint, EndpointError, Key, Limits, OpenClaw, Provider};

use super::{Config, RESPONSES, Value};

impl Config {
    /// The names of those endpoints.
    pub fn endpoint_names(&self) -> impl Iterator<Item = &str> {
        let keys = self.settings.iter().map(|it| it.key.as_str());
        keys.filter_map(|it| {
            it.strip_prefix("engines.responses.")?
                .strip_suffix(".base_url")
        })
    }

    /// The endpoint that the file has under this name.
    pub fn endpoint(&self, name: &str) -> Option<Result<Endpoint, EndpointError>> {
        let section = EndpointSection {
            config: self,
            path: format!("engines.responses.{name}"),
        };
        let base_url = section.text("base_url")?;
        Some(section.endpoint(name, base_url))
    }

    /// The profile of `ag-ui` that an endpoint's clients get.
    pub fn endpoint_profile(&self, name: &str) -> Option<&str> {
        self.text(&format!("engines.responses.{name}.profile"))
    }

    /// Whether clients of an endpoint receive the ids of responses.
    pub fn endpoint_sends_state(&self, name: &str) -> bool {
        let state = self.find(&format!("engines.responses.{name}.client_state"));
        state.is_some_and(|it| it.value == Value::Switch(true))
    }
}

/// One table of the file; what it does not set has the default of the table of keys.
struct EndpointSection<'a> {
    config: &'a Config,
    path: String,
}

impl EndpointSection<'_> {
    fn endpoint(&self, name: &str, base_url: &str) -> Result<Endpoint, EndpointError> {
        let named = self.text("provider").and_then(Provider::find);
        let provider = named.unwrap_or_else(|| Provider::of(base_url));
        let text = |key: &str| self.text(key).map(str::to_owned);
        Ok(Endpoint {
            name: name.to_owned(),
            base_url: Endpoint::parse_url(base_url)?,
            provider,
            model: text("model").or_else(|| self.config.text("model").map(str::to_owned)),
            key: match (text("api_key_env"), text("api_key_file")) {
                (Some(name), _) => Key::Variable(name),
                (None, Some(path)) => Key::File(path.into()),
                (None, None) => Key::None,
            },
            headers: match self.value("headers") {
                Some(Value::Table(it)) => it.clone(),
                _ => Default::default(),
            },
            is_stateful: self.is_on("stateful") && provider.keeps_responses(),
            max_retries: match self.value("max_retries") {
                Some(Value::Count(it)) => *it,
                _ => default_count("max_retries"),
            },
            limits: Limits {
                connect: self.seconds("connect_timeout"),
                first_byte: self.seconds("first_byte_timeout"),
                idle: self.seconds("idle_timeout"),
            },
            azure: Azure {
                api_version: text("azure.api_version"),
                deployment_name: text("azure.deployment_name"),
            },
            openclaw: OpenClaw {
                agent_id: text("openclaw.agent_id"),
                session_key: text("openclaw.session_key"),
                nested_tools: self.is_on("openclaw.nested_tools"),
            },
        })
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let setting = self.config.find(&format!("{}.{key}", self.path))?;
        Some(&setting.value)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(it) | Value::Secret(it) => Some(it),
            _ => None,
        }
    }

    /// A switch that is on unless it is turned off.
    fn is_on(&self, key: &str) -> bool {
        self.value(key) != Some(&Value::Switch(false))
    }

    fn seconds(&self, key: &str) -> Duration {
        match self.value(key) {
            // As everywhere, 0 means no timeout.
            Some(Value::Seconds(it)) if it.is_zero() => A_YEAR,
            Some(Value::Seconds(it)) => *it,
            _ => default_seconds(key),
        }
    }
}

/// Effectively no timeout.
const A_YEAR: Duration = Duration::from_secs(366 * 86_400);

fn default_seconds(key: &str) -> Duration {
    match preset(key) {
        Some(super::Preset::Seconds(it)) => Duration::from_secs(it),
        _ => A_YEAR,
    }
}

fn default_count(key: &str) -> u32 {
    match preset(key) {
        Some(super::Preset::Count(it)) => it,
        _ => 0,
    }
}

fn preset(key: &str) -> Option<super::Preset> {
    RESPONSES
        .keys()
        .find(|it| it.name == key)
        .map(|it| it.preset)
}
