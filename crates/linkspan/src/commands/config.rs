//! `linkspan config`: every setting and where its value came from.

use runner::config::{Config, File, Origin, Setting, Value};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::cli::ConfigArgs;
use crate::exit::{self, Failure, printable};
use crate::settings::{self, Settings};
use crate::table;

pub(crate) fn run(args: &ConfigArgs) -> Result<(), Failure> {
    let Settings { config, file } = settings::load(&args.file)?;
    let text = if args.json {
        lines(&config)
    } else {
        page(&config, file.as_ref())
    };
    exit::print(text.as_bytes())
}

#[derive(Serialize)]
struct ConfigRow<'a> {
    key: &'a str,
    value: Json,
    origin: &'static str,
    place: Option<String>,
}

fn lines(config: &Config) -> String {
    let mut text = String::new();
    for setting in config.settings() {
        let row = ConfigRow {
            key: &setting.key,
            value: value(setting),
            origin: match setting.origin {
                Origin::Default => "default",
                Origin::File { .. } => "file",
                Origin::Variable(_) => "variable",
                Origin::Flag(_) => "flag",
            },
            place: match &setting.origin {
                Origin::Default => None,
                Origin::Variable(name) => Some((*name).to_owned()),
                Origin::File { .. } | Origin::Flag(_) => Some(setting.origin.to_string()),
            },
        };
        text.push_str(&serde_json::to_string(&row).expect("a row has only texts and numbers"));
        text.push('\n');
    }
    text
}

/// The value, but only the names of environment variables.
fn value(setting: &Setting) -> Json {
    match &setting.value {
        Value::Unset => Json::Null,
        Value::Text(it) => json!(it),
        Value::Switch(it) => json!(it),
        Value::List(it) => json!(it),
        Value::Seconds(it) => json!(it.as_secs_f64()),
        Value::Number(it) => json!(it),
        Value::Count(it) => json!(it),
        Value::Secret(_) => json!("set"),
        Value::Table(it) => it.keys().map(|name| (name.clone(), json!("set"))).collect(),
    }
}

fn page(config: &Config, file: Option<&File>) -> String {
    let heading = ["key", "value", "from"].map(str::to_owned);
    let rows = config.settings().iter().map(|it| {
        let origin = printable(&it.origin.to_string());
        [printable(&it.key), short(&it.value), origin]
    });
    let rows: Vec<[String; 3]> = [heading].into_iter().chain(rows).collect();
    let file = match file {
        Some(it) => {
            let missing = if it.path.exists() {
                ""
            } else {
                ", which does not exist"
            };
            format!("{}{missing}", printable(&it.path.to_string_lossy()))
        }
        None => "none, there is no home directory".to_owned(),
    };
    format!("{}\nfile: {file}\n", table::aligned(&rows))
}

fn short(value: &Value) -> String {
    match value {
        Value::Unset => "-".to_owned(),
        Value::Text(it) => printable(it),
        Value::Switch(it) => it.to_string(),
        Value::List(it) => json!(it).to_string(),
        Value::Seconds(it) => format!("{} s", it.as_secs_f64()),
        Value::Number(it) => it.to_string(),
        Value::Count(it) => it.to_string(),
        Value::Secret(_) => "set".to_owned(),
        Value::Table(it) => {
            let names: Vec<String> = it
                .keys()
                .map(|it| format!("{} set", printable(it)))
                .collect();
            names.join(", ")
        }
    }
}
