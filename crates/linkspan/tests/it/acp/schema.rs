//! What an agent may say: each message after the schema's definition of its own method.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

/// The methods that were asked for, by the id of the request.
pub(super) type SentRequests = Arc<Mutex<HashMap<u64, String>>>;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../peers/schemas/acp-schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Fails with what is wrong with a message.
pub(super) fn check(message: &Value, asked: &SentRequests) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let method = message["method"].as_str().map(str::to_owned);
    match (method, message["id"].as_u64()) {
        (Some(method), _) if message.get("id").is_some() => {
            valid(&method, "Request", &message["params"]);
        }
        (Some(method), _) => valid(&method, "Notification", &message["params"]),
        (None, _) if message.get("error").is_some() => {
            validator("Error").validate(&message["error"]).unwrap();
        }
        (None, Some(id)) => {
            let method = asked.lock().unwrap().remove(&id).expect("nobody asked");
            valid(&method, "Response", &message["result"]);
        }
        (None, None) => panic!("{message}"),
    }
}

fn valid(method: &str, kind: &str, value: &Value) {
    // A fork is answered like a new session; it is not in the stable schema.
    let method = match method {
        "session/fork" => "session/new",
        method => method,
    };
    // The side is the one that handles a method.
    let is_ours = |it: &Value| {
        it["x-side"]
            != if kind == "Response" {
                "client"
            } else {
                "agent"
            }
    };
    let mut definitions = SCHEMA["$defs"].as_object().unwrap().iter();
    let found = definitions
        .find(|(name, it)| it["x-method"] == method && is_ours(it) && name.ends_with(kind));
    let (name, _) = found.unwrap_or_else(|| panic!("{method} is no {kind} of an agent"));
    if let Err(err) = validator(name).validate(value) {
        panic!("{name}: {err}: {value}");
    }
}

fn validator(name: &str) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(name.to_owned()).or_insert_with(|| {
        let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": SCHEMA["$defs"]});
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    Arc::clone(validator)
}
