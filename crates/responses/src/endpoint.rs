//! The address of a model, its provider, and the requests that it takes.
//!
//! The base address tells the provider unless the config names one; default models and headers are those of the
//! providers' own manuals.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, fs, io};

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// A key longer than this is a mistake, such as the wrong file.
const MAX_KEY: u64 = 64 * 1024;

/// One endpoint of the config.
#[derive(Clone)]
pub struct Endpoint {
    /// What the config calls it.
    pub name: String,
    pub base_url: Url,
    pub provider: Provider,
    pub model: Option<String>,
    pub key: Key,
    pub headers: BTreeMap<String, String>,
    /// The provider keeps conversations, and is asked to continue them.
    pub is_stateful: bool,
    pub max_retries: u32,
    pub limits: Limits,
    pub azure: Azure,
    pub openclaw: OpenClaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    OpenAi,
    Azure,
    HuggingFace,
    OpenClaw,
    /// Any other provider that follows the specification.
    Custom,
}

/// Where the key is. It is read when it is needed, and shown nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    None,
    Variable(String),
    File(PathBuf),
}

/// How long an endpoint may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    /// Until the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Azure {
    pub api_version: Option<String>,
    /// What Azure calls a model.
    pub deployment_name: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct OpenClaw {
    pub agent_id: Option<String>,
    pub session_key: Option<String>,
    /// Tools as `{type, function: {…}}`.
    pub nested_tools: bool,
}

/// Why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("`{0}` is no address of an endpoint")]
    BadUrl(String),
    #[error("the address of an endpoint may not hold a password")]
    Password,
    #[error("the variable `{0}`, which has the key, is not set")]
    NoVariable(String),
    #[error("cannot read the key from `{}`", path.display())]
    NoFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the key is empty, or holds what a header cannot")]
    BadKey,
    #[error("`{0}` is no header")]
    BadHeader(String),
    #[error("endpoint `{0}` has no model")]
    NoModel(String),
}

impl EndpointError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::BadUrl(_) => Some("write it as `https://api.openai.com/v1`"),
            Self::Password => Some("put the key into a variable, and its name into `api_key_env`"),
            Self::NoVariable(_) => Some("export it before linkspan is started"),
            Self::NoModel(_) => {
                Some("set `model` in `[engines.responses.NAME]`, or pass `--model`")
            }
            Self::NoFile { .. } | Self::BadKey | Self::BadHeader(_) => None,
        }
    }
}

impl Provider {
    const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Azure,
        Self::HuggingFace,
        Self::OpenClaw,
        Self::Custom,
    ];

    /// The names of the config, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["openai", "azure", "huggingface", "openclaw", "custom"];

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whose address this is.
    pub fn of(base_url: &str) -> Self {
        let url = base_url.to_ascii_lowercase();
        let has = |part: &str| url.contains(part);
        match () {
            () if has("api.openai.com") => Self::OpenAi,
            () if has("openai.azure.com") => Self::Azure,
            () if has("huggingface.co") => Self::HuggingFace,
            () if has(":18789") || has("openclaw") => Self::OpenClaw,
            () => Self::Custom,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it can continue a response.
    pub fn keeps_responses(self) -> bool {
        match self {
            Self::OpenAi | Self::Azure | Self::OpenClaw | Self::Custom => true,
            Self::HuggingFace => false,
        }
    }

    fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-4o"),
            Self::HuggingFace => Some("meta-llama/Llama-3.3-70B-Instruct"),
            Self::OpenClaw => Some("openclaw"),
            Self::Azure | Self::Custom => None,
        }
    }
}

impl Endpoint {
    /// The address of the config, checked.
    pub fn parse_url(text: &str) -> Result<Url, EndpointError> {
        let bad = || EndpointError::BadUrl(plain(text));
        let url = Url::parse(text).map_err(|_| bad())?;
        // Addresses are shown in errors and in the config, and a password would be with them.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Password);
        }
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        match is_http && url.query().is_none() && url.fragment().is_none() {
            true => Ok(url),
            false => Err(bad()),
        }
    }

    /// Where requests go.
    pub fn url(&self) -> Url {
        let mut url = self.base_url.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        let root = match self.provider {
            // The config may have the address with or without this part.
            Provider::Azure if path.contains("/openai") => path,
            Provider::Azure => format!("{path}/openai"),
            _ if is_versioned(&path) => path,
            _ => format!("{path}/v1"),
        };
        url.set_path(&format!("{root}/responses"));
        if let Some(version) = &self.azure.api_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        url
    }

    /// The model of a request that names none.
    pub(crate) fn model(&self) -> Result<&str, EndpointError> {
        let deployment = self.azure.deployment_name.as_deref();
        // Azure knows a model by its deployment, whatever the model is called.
        let model = deployment.filter(|_| self.provider == Provider::Azure);
        model
            .or(self.model.as_deref())
            .or(self.provider.default_model())
            .ok_or_else(|| EndpointError::NoModel(self.name.clone()))
    }

    /// The headers of a request, and the key that is in them.
    pub(crate) fn headers(&self) -> Result<(HeaderMap, Option<String>), EndpointError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in &self.headers {
            let bad = || EndpointError::BadHeader(name.clone());
            let name = HeaderName::try_from(name).map_err(|_| bad())?;
            headers.insert(name, secret(value).ok_or_else(bad)?);
        }
        let routes = [
            ("x-openclaw-agent-id", &self.openclaw.agent_id),
            ("x-openclaw-session-key", &self.openclaw.session_key),
        ];
        for (name, value) in routes {
            if let Some(value) = value
                .as_ref()
                // No other provider should learn the key of an OpenClaw session.
                .filter(|_| self.provider == Provider::OpenClaw)
            {
                let bad = || EndpointError::BadHeader(name.to_owned());
                headers.insert(name, secret(value).ok_or_else(bad)?);
            }
        }
        let key = self.key.read()?;
        if let Some(key) = &key {
            let (name, value) = match self.provider {
                // Azure takes `Authorization` for its own login tokens, and keys in this header.
                Provider::Azure => (HeaderName::from_static("api-key"), key.clone()),
                _ => (AUTHORIZATION, format!("Bearer {key}")),
            };
            headers.insert(name, secret(&value).ok_or(EndpointError::BadKey)?);
        }
        Ok((headers, key))
    }
}

impl Key {
    fn read(&self) -> Result<Option<String>, EndpointError> {
        let key = match self {
            Self::None => return Ok(None),
            Self::Variable(name) => {
                env::var(name).map_err(|_| EndpointError::NoVariable(name.clone()))?
            }
            Self::File(path) => read(path).map_err(|source| EndpointError::NoFile {
                path: path.clone(),
                source,
            })?,
        };
        // Files end with a newline, which no header may hold.
        match key.trim() {
            "" => Err(EndpointError::BadKey),
            key => Ok(Some(key.to_owned())),
        }
    }
}

fn read(path: &PathBuf) -> io::Result<String> {
    // Before it is read, or a wrong file would fill the memory.
    if fs::metadata(path)?.len() > MAX_KEY {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    fs::read_to_string(path)
}

/// A URL without its possible secrets: only the scheme, the host and the path.
fn plain(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // The last `@` ends the password, which may hold others.
    let host = host.rsplit('@').next().unwrap_or_default();
    match scheme {
        "" => format!("{host}{path}"),
        scheme => format!("{scheme}://{host}{path}"),
    }
}

/// Whether a path ends with a version, such as `/v1`.
fn is_versioned(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let digits = last.strip_prefix('v').unwrap_or_default();
    digits.starts_with(|it: char| it.is_ascii_digit())
}

/// A value that is not shown, wherever the headers are.
fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

// Headers and the session's key may be secrets.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("base_url", &self.base_url.as_str())
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenClaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClaw")
            .field("agent_id", &self.agent_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests;
