//! The schemas of what the server takes and gives, derived from the types: `openapi/schemas.json`,
//! and the same in TypeScript for the page and the npm package: `web/types.d.ts`, `types/wire.d.ts` of the package.
//!
//! They are derived in tests only; the server carries the file. The canonical events come from
//! `docs/linkspan.schema.json`, which the crate `model` derives, and ThreadEvents from the schema that judges them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect_file;
use journal::State;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::ag_ui::AbortBody;
use crate::api::{asks, engines, me, runs, sessions};
use crate::error::ErrorBody;

/// An object of any fields.
pub(crate) type AnyFields = BTreeMap<String, Value>;

/// A type that stands for a value whose own type has no schema: one of another crate, or a name.
macro_rules! stand_in {
    ($name:ident, $schema:expr) => {
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let schema: Value = $schema;
                schema.try_into().expect("an object is a schema")
            }
        }
    };
}

stand_in!(Time, json!({ "type": "string", "format": "date-time" }));
stand_in!(StateName, one_of(State::ALL.map(State::name)));
stand_in!(
    RunOptionsFields,
    json!({
        "type": "object",
        "properties": derived("../runner/src/options.schema.json")["properties"],
    })
);
stand_in!(AnswerName, one_of(["allow", "allow_always", "deny"]));
stand_in!(AskRef, json!({ "$ref": "#/components/schemas/Ask" }));
stand_in!(
    OutcomeRef,
    json!({ "$ref": "#/components/schemas/Outcome" })
);

/// A schema that another crate derives. Read when the test runs: it may just have been rewritten.
fn derived(path: &str) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    let names: Vec<&str> = names.into_iter().collect();
    json!({ "type": "string", "enum": names })
}

/// Everything by name: events, bodies that are taken, bodies that are given.
fn schemas() -> Map<String, Value> {
    let mut all = events();
    for (name, schema) in bodies() {
        let other = all.insert(name.clone(), schema);
        assert_eq!(other, None, "two types are called `{name}`");
    }
    all
}

/// The bodies and what they are made of. Events travel in streams, which the description cannot say more about;
/// validators refuse a schema that nothing refers to.
fn served() -> Map<String, Value> {
    let mut all = schemas();
    let mut served = Map::new();
    let mut names: Vec<String> = bodies().into_iter().map(|(name, _)| name).collect();
    while let Some(name) = names.pop() {
        let Some(schema) = all.remove(&name) else {
            continue;
        };
        let text = schema.to_string();
        let named = text.split("#/components/schemas/").skip(1);
        names.extend(
            named
                .filter_map(|it| it.split('"').next())
                .map(str::to_owned),
        );
        served.insert(name, schema);
    }
    served
}

fn bodies() -> Vec<(String, Value)> {
    let settings = || {
        SchemaSettings::draft2020_12().with(|it| {
            it.definitions_path = "/components/schemas".into();
        })
    };
    let mut taken = settings().for_deserialize().into_generator();
    taken.subschema_for::<runs::SubmitFields>();
    taken.subschema_for::<asks::AskReply>();
    taken.subschema_for::<AbortBody>();
    let mut given = settings().for_serialize().into_generator();
    given.subschema_for::<ErrorBody>();
    given.subschema_for::<sessions::SessionPage>();
    given.subschema_for::<sessions::SessionDetail>();
    given.subschema_for::<sessions::Aborted>();
    given.subschema_for::<asks::AskList>();
    given.subschema_for::<engines::EngineList>();
    given.subschema_for::<me::Me>();
    given.subschema_for::<runs::Accepted>();
    let definitions = [taken.take_definitions(true), given.take_definitions(true)];
    definitions.into_iter().flatten().collect()
}

/// The canonical events, as `model` derives them.
fn events() -> Map<String, Value> {
    let text = derived("../../docs/linkspan.schema.json").to_string();
    let text = text.replace("#/$defs/", "#/components/schemas/");
    let mut event: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let Some(Value::Object(mut all)) = event.remove("$defs") else {
        panic!("the schema of an event has definitions");
    };
    event.remove("$schema");
    all.insert("Event".to_owned(), event.into());
    all
}

#[test]
fn the_schemas_are_those_that_are_served() {
    let text = serde_json::to_string_pretty(&served()).unwrap() + "\n";
    expect_file!["openapi/schemas.json"].assert_eq(&text);
}

#[test]
fn the_page_has_the_same_types() {
    let mut text =
        "// Derived from the types of the server by its test `the_page_has_the_same_types`.\n\n\
         /** What travels between the server and the page. */\n\
         declare namespace Wire {\n"
            .to_owned();
    for (name, schema) in &schemas() {
        text.push_str(&comment(schema, "  "));
        writeln!(text, "  type {name} = {};\n", typescript(schema, "  ")).unwrap();
    }
    text.truncate(text.trim_end().len());
    text.push_str("\n}\n");
    expect_file!["../../../web/types.d.ts"].assert_eq(&text);
}

#[test]
fn the_npm_package_has_the_same_types() {
    let mut text = "// Derived from the types of the server and the schema of ThreadEvents by the server's test\n\
         // `the_npm_package_has_the_same_types`.\n"
        .to_owned();
    for (name, schema) in schemas().into_iter().chain(thread_events()) {
        text.push('\n');
        text.push_str(&comment(&schema, ""));
        writeln!(text, "export type {name} = {};", typescript(&schema, "")).unwrap();
    }
    expect_file!["../../../packages/npm/linkspan/types/wire.d.ts"].assert_eq(&text);
}

/// ThreadEvents and what they are made of, by the names of the package.
fn thread_events() -> Map<String, Value> {
    let mut text = derived("../../docs/thread.schema.json").to_string();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let names = schema["$defs"].as_object().unwrap().keys();
    for name in names {
        text = text.replace(
            &format!("#/$defs/{name}\""),
            &format!("{}\"", thread_name(name)),
        );
    }
    let mut event: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let Some(Value::Object(definitions)) = event.remove("$defs") else {
        panic!("the schema of a ThreadEvent has definitions");
    };
    let mut all: Map<String, Value> = definitions
        .into_iter()
        .map(|(name, schema)| (thread_name(&name), schema))
        .collect();
    all.insert("ThreadEvent".to_owned(), event.into());
    all
}

/// `event_turn_started` is `TurnStartedEvent`, `item_todo_list` is `TodoListItem`, and the rest begins with `Thread`.
fn thread_name(name: &str) -> String {
    let camel = |it: &str| -> String {
        let words = it
            .split('_')
            .map(|word| word[..1].to_uppercase() + &word[1..]);
        words.collect()
    };
    match name.split_once('_') {
        Some(("event", rest)) => camel(rest) + "Event",
        Some(("item", rest)) => camel(rest) + "Item",
        _ => "Thread".to_owned() + &camel(name),
    }
}

fn comment(schema: &Value, indent: &str) -> String {
    match schema["description"].as_str() {
        Some(text) => format!("{indent}/** {} */\n", text.replace('\n', " ")),
        None => String::new(),
    }
}

/// A schema as a type: the alternatives, the fields and the named type that it consists of.
fn typescript(schema: &Value, indent: &str) -> String {
    // Told apart by a field, one `if` for each of its values.
    if let Some(cases) = schema["allOf"].as_array() {
        let cases: Vec<_> = cases
            .iter()
            .map(|it| typescript(&it["then"], indent))
            .collect();
        return cases.join(" | ");
    }
    let alternatives = ["oneOf", "anyOf"]
        .iter()
        .find_map(|it| schema[it].as_array());
    let alternatives = alternatives.map(|it| {
        let each: Vec<_> = it.iter().map(|it| typescript(it, indent)).collect();
        each.join(" | ")
    });
    let fields = schema.get("properties").map(|_| fields(schema, indent));
    let named = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    let parts: Vec<String> = [fields, named.map(str::to_owned)]
        .into_iter()
        .flatten()
        .collect();
    match (parts.is_empty(), alternatives) {
        (true, Some(alternatives)) => alternatives,
        (true, None) => plain(schema, indent),
        (false, Some(alternatives)) => format!("{} & ({alternatives})", parts.join(" & ")),
        (false, None) => parts.join(" & "),
    }
}

fn fields(schema: &Value, indent: &str) -> String {
    let mut text = "{\n".to_owned();
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().unwrap() {
        let inner = format!("{indent}  ");
        let mark = match required.is_some_and(|it| it.contains(&json!(name))) {
            true => "",
            false => "?",
        };
        let it = typescript(field, &inner);
        text.push_str(&comment(field, &inner));
        writeln!(text, "{inner}{name}{mark}: {it};").unwrap();
    }
    text + indent + "}"
}

fn plain(schema: &Value, indent: &str) -> String {
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        return values.join(" | ");
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let kind = |kind: &Value| match kind.as_str() {
        None => "unknown".to_owned(),
        Some("integer") => "number".to_owned(),
        Some("array") => {
            let item = typescript(&schema["items"], indent);
            match item.contains(['|', '&']) {
                true => format!("({item})[]"),
                false => format!("{item}[]"),
            }
        }
        Some("object") => {
            let value = typescript(&schema["additionalProperties"], indent);
            format!("Record<string, {value}>")
        }
        Some(other) => other.to_owned(),
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join(" | ")
}
