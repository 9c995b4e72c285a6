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
    let text = match args.json {
        true => exit::json_lines(config.settings().iter().map(row)),
        false => page(&config, file.as_ref()),
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

fn row(setting: &Setting) -> ConfigRow<'_> {
    let (origin, place) = match &setting.origin {
        Origin::Default => ("default", None),
        Origin::File { .. } => ("file", Some(setting.origin.to_string())),
        Origin::Variable(name) => ("variable", Some((*name).to_owned())),
        Origin::Flag(_) => ("flag", Some(setting.origin.to_string())),
    };
    ConfigRow {
        key: &setting.key,
        value: value(setting),
        origin,
        place,
    }
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
    let rows = config.settings().iter().map(|it| {
        let origin = printable(&it.origin.to_string());
        [printable(&it.key), short(&it.value), origin]
    });
    let table = table::aligned(["key", "value", "from"], rows);
    let file = file.map(|it| (printable(&it.path.to_string_lossy()), it.path.exists()));
    let file = match file {
        Some((path, true)) => path,
        Some((path, false)) => format!("{path}, which does not exist"),
        None => "none, there is no home directory".to_owned(),
    };
    format!("{table}\nfile: {file}\n")
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
            let names = it.keys().map(|it| format!("{} set", printable(it)));
            names.collect::<Vec<_>>().join(", ")
        }
    }
}
