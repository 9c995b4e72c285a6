//! Controls as they come, and replies as they go. An unreadable control only gets an error; it
//! never becomes a prompt.

use runner::nearest;
use serde_json::{Map, Value, json};

use super::table::{self, ControlInfo};
use crate::error::{ApiError, Result};
use crate::fields::{self, Fields};
use crate::log;

/// A control that could be read.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) verb: &'static ControlInfo,
    /// The client's own id for matching the reply.
    pub(super) request: Option<Value>,
    fields: Map<String, Value>,
}

/// A reply to a client.
#[derive(Debug)]
pub(super) struct ControlReply {
    pub(super) reply: Value,
    /// Of `run.submit`.
    pub(super) prompted: Option<PromptedSession>,
}

/// A session that a prompt of this client went to.
#[derive(Debug)]
pub(super) struct PromptedSession {
    pub(super) session: String,
    /// The last event before the prompt.
    pub(super) after: u64,
}

impl Control {
    pub(super) fn reply(&self, fields: Value) -> Value {
        reply(self.request.clone(), self.verb.reply, fields)
    }

    pub(super) fn failed(&self, err: &ApiError) -> Value {
        failed(self.request.clone(), Some(self.verb.name), err)
    }

    /// The fields, if they are those of `T` and no others.
    pub(super) fn read<T: Fields>(&self) -> Result<T> {
        fields::from_map(&self.fields)
    }

    /// The fields, if they are those of `A` and `B` and no others.
    pub(super) fn read_both<A: Fields, B: Fields>(&self) -> Result<(A, B)> {
        fields::both_from_map(&self.fields)
    }
}

/// Reads a message, or returns the reply that refuses it.
pub(super) fn read(text: &str) -> Result<Control, Value> {
    let refuse = |request: Option<Value>, message: &str, hint: Option<String>| {
        let err = ApiError::bad(message).code("bad_message");
        Err(failed(request, None, &ApiError { hint, ..err }))
    };
    let mut fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return refuse(None, "a message is a JSON object", None),
        Err(err) => return refuse(None, &format!("a message is JSON: {err}"), None),
    };
    // Taken out, because what is left must be fields of the control and no others.
    let request = fields
        .remove("requestId")
        .or_else(|| fields.remove("request_id"));
    match fields.remove("control") {
        Some(Value::String(name)) => match table::find(&name) {
            Some(verb) => Ok(Control {
                verb,
                request,
                fields,
            }),
            None => Err(failed(request, None, &unknown(&name))),
        },
        _ => {
            let hint = fields.get("type").and_then(Value::as_str).map(hint);
            refuse(request, "a message names its `control`", hint)
        }
    }
}

fn unknown(name: &str) -> ApiError {
    let name: String = name.chars().take(80).collect();
    let names = table::CONTROLS.iter().map(|it| it.name);
    let near =
        nearest(&name, names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    ApiError::bad(format!("no control is called `{name}`{near}"))
        .code("unknown_control")
        .hint(format!("the controls are {}", table::names()))
}

/// A hint for clients that use event names as controls.
fn hint(named: &str) -> String {
    let named: String = named.chars().take(80).collect();
    match table::find(&named) {
        Some(verb) => format!(
            "say `\"control\": \"{}\"`; `type` is for what the server sends",
            verb.name
        ),
        None => format!(
            "`type` is for what the server sends; the controls are {}",
            table::names()
        ),
    }
}

fn reply(request: Option<Value>, kind: &str, mut reply: Value) -> Value {
    reply["type"] = kind.into();
    if let Some(request) = request {
        reply["requestId"] = request;
    }
    reply
}

/// An error as the bridge sends it.
pub(super) fn failed(request: Option<Value>, control: Option<&str>, err: &ApiError) -> Value {
    log::control_refused(control, err);
    let mut fields = json!({ "code": err.code, "message": err.message });
    if let Some(hint) = &err.hint {
        fields["hint"] = hint.as_str().into();
    }
    reply(request, "bridge.error", fields)
}
