//! The JSON Schema of the canonical events, derived from the types: `docs/linkspan.schema.json`.
//!
//! It is derived in tests only, so that no release carries it. It describes what linkspan writes; a
//! reader of the format may meet fields that a later version has added.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, iter};

use expect_test::expect_file;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::{Event, Raw, Text, Timestamp, VERSION};

/// ExtraFields that no rule reads, by name.
pub(crate) type ExtraFields = BTreeMap<String, Raw<'static>>;

macro_rules! inline_schema {
    ($name:ty, $schema:tt) => {
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

inline_schema!(Raw<'_>, {});
inline_schema!(Text<'_>, { "type": "string" });
inline_schema!(Timestamp, { "type": "string", "format": "date-time" });

/// The version is no field of an event, but stands on every line.
pub(crate) fn add_version(schema: &mut Schema) {
    schema.insert("title".to_owned(), "linkspan event".into());
    schema.get_mut("properties").expect("an event has fields")["v"] = json!({
        "description": "The version of the format.", "const": VERSION,
    });
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    required.expect("some are required").insert(0, "v".into());
}

fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .with_transform(RecursiveTransform(absent_is_not_null))
        .into_generator()
        .into_root_schema_for::<Event<'_>>()
}

/// What is optional is left out, never `null`, and defaults are for readers.
fn absent_is_not_null(schema: &mut Schema) {
    schema.remove("default");
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|it| it.contains(&name.into()))
    };
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if is_required(name) {
            continue;
        }
        if let Some(types) = property["type"].as_array().filter(|it| it.len() == 2) {
            property["type"] = types[0].clone();
        }
        if let Some(any) = property.get("anyOf").and_then(Value::as_array).cloned() {
            let fields = property.as_object_mut().expect("it has a field");
            fields.remove("anyOf");
            fields.extend(any[0].as_object().expect("a reference").clone());
        }
    }
}

#[test]
fn the_schema_is_the_one_in_the_docs() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_file!["../../../docs/linkspan.schema.json"].assert_eq(&text);
}

#[test]
fn every_golden_event_is_valid_and_every_kind_of_event_occurs() {
    let validator = jsonschema::validator_for(schema().as_value()).unwrap();
    let mut seen = BTreeMap::new();
    for path in events_files(Path::new("../../fixtures")) {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            if let Err(err) = validator.validate(&event) {
                panic!(
                    "{}: {err} at {}: {line}",
                    path.display(),
                    err.instance_path()
                );
            }
            *seen.entry(event["type"].to_string()).or_insert(0) += 1;
        }
    }
    let kinds = schema()
        .get("oneOf")
        .and_then(Value::as_array)
        .unwrap()
        .clone();
    for kind in &kinds {
        let name = kind["properties"]["type"]["const"].to_string();
        assert!(seen.contains_key(&name), "no golden file has {name}");
    }
    assert_eq!(seen.len(), kinds.len());
}

fn events_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(events_files(&path)),
            false if path.to_string_lossy().ends_with(".events.jsonl") => files.push(path),
            false => (),
        }
    }
    files
}

#[test]
fn broken_events_are_refused() {
    let validator = jsonschema::validator_for(schema().as_value()).unwrap();
    let good = json!({
        "v": VERSION, "seq": 1, "session": "s", "engine": "claude", "origin": "agent",
        "type": "item.closed",
        "data": { "status": "ok", "item": { "kind": "message", "id": "m", "role": "user", "text": "hi" } },
    });
    assert!(validator.is_valid(&good));
    let broken: [(&str, Value); 9] = [
        ("/v", json!(VERSION + 1)),
        ("/seq", json!("1")),
        ("/seq", json!(-1)),
        ("/session", Value::Null),
        ("/origin", json!("nobody")),
        ("/type", json!("item.closing")),
        ("/type", json!("run.started")),
        ("/data/status", json!("fine")),
        ("/data/item/kind", json!("note")),
    ];
    for (at, value) in broken {
        let mut event = good.clone();
        *event.pointer_mut(at).unwrap() = value.clone();
        assert!(!validator.is_valid(&event), "{at} may be {value}");
    }
    for (parent, name) in iter::zip(
        ["", "", "/data", "/data/item"],
        ["v", "type", "item", "text"],
    ) {
        let mut event = good.clone();
        let fields = event.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        fields.remove(name);
        assert!(
            !validator.is_valid(&event),
            "{parent}/{name} may be missing"
        );
    }
}
