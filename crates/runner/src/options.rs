//! The options of a run: one struct from every entry point down to the engine's command line.
//!
//! The server reads it from JSON, the command line from flags, and a queued prompt is stored with it. An
//! engine takes the options it has and refuses those whose promise it cannot keep. `docs/engines.md`
//! has the table of all of them.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ask_limit::{AskDefault, AskLimit};
use crate::config::Config;
use crate::engines;
use crate::permissions::{Mode, Permissions};

/// How a prompt is run. What is absent is up to the config, and then to the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunOptions {
    /// By the agent's own name for it.
    pub model: Option<String>,
    /// The reasoning effort, in the agent's own terms.
    pub effort: Option<String>,
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = tests::modes())))]
    pub permissions: Option<Mode>,
    /// Tools that may run without a question, instead of those of the config; an empty list allows
    /// nothing.
    #[serde(alias = "allowedTools", alias = "allowed_tools")]
    pub allow: Option<Vec<String>>,
    /// Tools that may not run at all.
    pub deny: Vec<String>,
    #[serde(alias = "output_style")]
    pub output_style: Option<String>,
    pub verbosity: Option<String>,
    /// Of a recording: 2 is twice as fast. 0 and absent do not wait at all.
    #[serde(deserialize_with = "speed")]
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub speed: Option<f64>,
    /// The timeout of asks, in seconds; 0 waits for ever.
    #[serde(
        alias = "ask_timeout",
        serialize_with = "to_seconds",
        deserialize_with = "from_seconds"
    )]
    #[cfg_attr(test, schemars(with = "Option<f64>", range(min = 0.0)))]
    pub ask_timeout: Option<Duration>,
    /// The answer to an ask that times out.
    #[serde(alias = "ask_default")]
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = tests::ask_defaults())))]
    pub ask_default: Option<AskDefault>,
}

impl RunOptions {
    /// What the agent may do. `engine` is a name as in `linkspan run --engine`; `unset` applies where neither
    /// the options nor the config name a mode.
    pub fn permissions(&self, config: &Config, engine: &str, unset: Mode) -> Permissions {
        // `acp:COMMAND` and the like have no section of their own for these.
        let family = engines::family(engine);
        let configured = || config.permissions(family, unset);
        Permissions {
            mode: self.permissions.unwrap_or_else(configured),
            allow: (self.allow.clone()).or_else(|| config.allowed_tools(family)),
            deny: self.deny.clone(),
        }
    }

    /// For how long asks may wait, and what is answered then.
    pub fn ask_limit(&self, config: &Config, engine: &str) -> Option<AskLimit> {
        config.ask_limit(engine, self.ask_timeout, self.ask_default)
    }

    /// How fast a recording is played.
    pub fn speed(&self) -> f64 {
        // A speed of 0 would wait for ever, so it means the same as none.
        self.speed.filter(|it| *it > 0.0).unwrap_or(f64::INFINITY)
    }

    /// Whether an agent that was started with these options can take a prompt with `other`: those that concern
    /// its process are equal.
    pub fn fit(&self, other: &Self) -> bool {
        let of_process = |it: &Self| Self {
            // These are linkspan's own business: the process does not know them.
            speed: None,
            ask_timeout: None,
            ask_default: None,
            ..it.clone()
        };
        of_process(self) == of_process(other)
    }
}

fn speed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let speed = Option::<f64>::deserialize(from)?;
    match speed.is_none_or(|it| it.is_finite() && it >= 0.0) {
        true => Ok(speed),
        false => Err(D::Error::custom("a speed is a number such as 2 or 0.5")),
    }
}

fn to_seconds<S: Serializer>(timeout: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    timeout.map(|it| it.as_secs_f64()).serialize(to)
}

fn from_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(from)?;
    let timeout = seconds.map(Duration::try_from_secs_f64).transpose();
    timeout.map_err(|_| D::Error::custom("a timeout is a number of seconds"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    use super::*;

    fn or_null<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
        let names = names.into_iter().map(Value::from);
        names.chain([Value::Null]).collect()
    }

    pub(super) fn modes() -> Value {
        or_null(Mode::names())
    }

    pub(super) fn ask_defaults() -> Value {
        or_null(AskDefault::NAMES.iter().copied())
    }

    /// The server describes its prompts with this file.
    #[test]
    fn the_schema_is_derived_from_the_struct() {
        let generator = SchemaSettings::draft2020_12().for_deserialize();
        let generator = generator.into_generator();
        let schema = generator.into_root_schema_for::<RunOptions>();
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        expect_file!["options.schema.json"].assert_eq(&text);
    }

    fn all() -> RunOptions {
        RunOptions {
            model: Some("m".to_owned()),
            effort: Some("high".to_owned()),
            permissions: Some(Mode::AcceptEdits),
            allow: Some(vec!["Bash".to_owned()]),
            deny: vec!["Edit".to_owned()],
            output_style: Some("Explanatory".to_owned()),
            verbosity: Some("low".to_owned()),
            speed: Some(0.5),
            ask_timeout: Some(Duration::from_millis(1500)),
            ask_default: Some(AskDefault::Allow),
        }
    }

    #[test]
    fn options_are_written_as_the_server_reads_them() {
        let json = json!({
            "model": "m", "effort": "high", "permissions": "accept-edits", "allow": ["Bash"],
            "deny": ["Edit"], "outputStyle": "Explanatory", "verbosity": "low", "speed": 0.5,
            "askTimeout": 1.5, "askDefault": "allow",
        });
        assert_eq!(serde_json::to_value(all()).unwrap(), json);
        assert_eq!(serde_json::from_value::<RunOptions>(json).unwrap(), all());
    }

    #[test]
    fn the_manual_has_every_option() {
        let manual = include_str!("../../../docs/engines.md");
        let json = serde_json::to_value(RunOptions::default()).unwrap();
        let missing: Vec<&String> = json
            .as_object()
            .unwrap()
            .keys()
            .filter(|it| !manual.contains(&format!("\n| `{it}` | `--")))
            .collect();
        assert_eq!(missing, Vec::<&String>::new());
    }

    #[test]
    fn nothing_is_chosen_where_nothing_is_said() {
        let none = RunOptions::default();
        let json = serde_json::to_value(&none).unwrap();
        assert_eq!(serde_json::from_value::<RunOptions>(json).unwrap(), none);
        assert_eq!(
            serde_json::from_value::<RunOptions>(json!({})).unwrap(),
            none
        );
    }

    #[test]
    fn modes_and_defaults_are_stored_by_their_names() {
        for name in Mode::names() {
            let mode: Mode = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((mode.name(), json!(mode)), (name, json!(name)));
        }
        for name in AskDefault::NAMES {
            let default: AskDefault = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((default.name(), json!(default)), (*name, json!(name)));
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        for (json, message) in [
            (
                json!({ "speed": -1 }),
                "a speed is a number such as 2 or 0.5",
            ),
            (
                json!({ "askTimeout": -1 }),
                "a timeout is a number of seconds",
            ),
            (
                json!({ "askDefault": "maybe" }),
                "there is no `maybe`, only `deny`, `allow`",
            ),
        ] {
            let refused = serde_json::from_value::<RunOptions>(json).unwrap_err();
            assert_eq!(refused.to_string(), message);
        }
    }

    #[test]
    fn options_of_the_prompt_alone_need_no_other_process() {
        let other = RunOptions {
            speed: None,
            ask_timeout: None,
            ask_default: None,
            ..all()
        };
        assert!(all().fit(&other));
        assert!(!all().fit(&RunOptions {
            effort: None,
            ..all()
        }));
    }
}
