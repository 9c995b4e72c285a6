//! The OpenResponses endpoints of the config.

use std::borrow::Cow;
use std::time::Duration;

use responses::{Azure, Endpoint, EndpointError, Key, Limits, OpenClaw, Provider};

use super::keys::{KeySpec, RESPONSES};
use super::{Config, Value};

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
        Some(section.endpoint(name, &base_url))
    }

    /// The profile of `ag-ui` that an endpoint's clients get.
    pub fn endpoint_profile(&self, name: &str) -> Option<&str> {
        self.text(&format!("engines.responses.{name}.profile"))
    }

    /// Whether clients of an endpoint receive the ids of responses.
    pub fn endpoint_sends_state(&self, name: &str) -> bool {
        let state = self.value(&format!("engines.responses.{name}.client_state"));
        state == Some(&Value::Switch(true))
    }
}

/// One table of the file; what it does not set has the default of the table of keys.
struct EndpointSection<'a> {
    config: &'a Config,
    path: String,
}

impl EndpointSection<'_> {
    fn endpoint(&self, name: &str, base_url: &str) -> Result<Endpoint, EndpointError> {
        let named = self.text("provider");
        let named = named.as_deref().and_then(Provider::find);
        let provider = named.unwrap_or_else(|| Provider::of(base_url));
        let text = |key: &str| self.text(key);
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
            headers: (self.value("headers").table().cloned()).unwrap_or_default(),
            // Hugging Face keeps no responses, whatever the config asks for.
            is_stateful: self.is_on("stateful") && provider.keeps_responses(),
            max_retries: match *self.value("max_retries") {
                Value::Count(it) => it,
                _ => 0,
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

    /// Unlike those with a fixed name, the keys of an endpoint have no default among the settings.
    fn value(&self, key: &str) -> Cow<'_, Value> {
        let default = || {
            let row = RESPONSES.keys().find(|it| it.name == key);
            row.map_or(Value::Unset, KeySpec::value)
        };
        match self.config.value(&format!("{}.{key}", self.path)) {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(default()),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.value(key).text().map(str::to_owned)
    }

    /// A switch that is on unless it is turned off.
    fn is_on(&self, key: &str) -> bool {
        *self.value(key) != Value::Switch(false)
    }

    fn seconds(&self, key: &str) -> Duration {
        // As everywhere, 0 means no timeout.
        let limit = self.value(key).seconds().filter(|it| !it.is_zero());
        limit.unwrap_or(A_YEAR)
    }
}

/// Effectively no timeout.
const A_YEAR: Duration = Duration::from_secs(366 * 86_400);
