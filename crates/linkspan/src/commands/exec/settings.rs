//! `--config KEY=VALUE`: those of linkspan, those that it knows of Codex, and the rest.

use runner::Mode;
use serde_json::Value;

use crate::exit::{Failure, printable};

/// Settings of Codex that other engines may ignore without changing the task.
pub(super) const MAY_BE_IGNORED: &[&str] = &[
    "web_search",
    "features.web_search_request",
    "tools.web_search",
    "sandbox_workspace_write.network_access",
];

#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct CodexSettings {
    pub(super) engine: Option<String>,
    pub(super) permissions: Option<Mode>,
    pub(super) allowed_tools: Vec<String>,
    pub(super) approval_policy: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) others: Vec<OtherSetting>,
}

/// A setting that only Codex knows, as it was given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherSetting {
    pub(super) text: String,
}

impl OtherSetting {
    pub(super) fn key(&self) -> &str {
        self.text.split_once('=').map_or(&*self.text, |it| it.0)
    }
}

impl CodexSettings {
    /// Later ones win.
    pub(in crate::commands) fn read(given: &[String]) -> Result<Self, Failure> {
        let mut it = Self::default();
        for text in given {
            let Some((key, value)) = text.split_once('=') else {
                return Err(Failure::usage(
                    format!("`--config {}` has no value", printable(text)),
                    "say it as `--config KEY=VALUE`",
                ));
            };
            it.set(key.trim(), value, text)?;
        }
        Ok(it)
    }

    fn set(&mut self, key: &str, value: &str, text: &str) -> Result<(), Failure> {
        match key {
            "linkspan.engine" => self.engine = Some(string(value)),
            "linkspan.permissions" => {
                let mode = Mode::try_from(string(value)).map_err(|err| {
                    Failure::usage(
                        format!("`{key}`: {}", printable(&err)),
                        "see `linkspan run --help`",
                    )
                })?;
                self.permissions = Some(mode);
            }
            "linkspan.allowed_tools" => {
                let list: Result<Vec<String>, _> = serde_json::from_str(value);
                self.allowed_tools = list.map_err(|_| {
                    Failure::usage(
                        format!("`{key}` is a list of names, not `{}`", printable(value)),
                        "say it as `linkspan.allowed_tools=[\"Bash\"]`",
                    )
                })?;
            }
            key if key.starts_with("linkspan.") => {
                return Err(Failure::usage(
                    format!("there is no setting `{}`", printable(key)),
                    "there are `linkspan.engine`, `linkspan.permissions` and `linkspan.allowed_tools`",
                ));
            }
            "approval_policy" => self.approval_policy = Some(string(value)),
            "model_reasoning_effort" => self.effort = Some(string(value)),
            _ => {
                let text = text.to_owned();
                self.others.push(OtherSetting { text });
            }
        }
        Ok(())
    }
}

/// A value of TOML that is a string: quoted, or as it is, as Codex takes it.
fn string(value: &str) -> String {
    match serde_json::from_str(value) {
        Ok(Value::String(text)) => text,
        _ => value.trim().trim_matches('\'').to_owned(),
    }
}
