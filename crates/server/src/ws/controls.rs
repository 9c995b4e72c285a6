//! Controls as they come, and replies as they go. An unreadable control only gets an error; it
//! never becomes a prompt.

use axum::http::StatusCode;
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
pub(super) struct SocketReply {
    pub(super) reply: Value,
    /// A session that a prompt of this client went to.
    pub(super) session: Option<String>,
}

impl Control {
    pub(super) fn reply(&self, kind: &str, reply: Value) -> SocketReply {
        answer(self.request.clone(), kind, reply)
    }

    pub(super) fn failed(&self, err: &ApiError) -> SocketReply {
        SocketReply {
            reply: failed(self.request.clone(), Some(self.verb.name), err),
            session: None,
        }
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

/// Reads a message; an error is what to tell about it.
pub(super) fn read(text: &str) -> Result<Control, Box<SocketReply>> {
    let refuse_with = |request: Option<Value>, err: &ApiError| {
        Err(Box::new(SocketReply {
            reply: failed(request, None, err),
            session: None,
        }))
    };
    let refuse = |request: Option<Value>, words: String, hint: Option<String>| {
        let mut err = ApiError::bad(words);
        err.code = "bad_message";
        err.hint = hint;
        refuse_with(request, &err)
    };
    let mut fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return refuse(None, "a message is a JSON object".to_owned(), None),
        Err(err) => return refuse(None, format!("a message is JSON: {err}"), None),
    };
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
            None => refuse_with(request, &unknown(&name)),
        },
        _ => {
            let hint = fields.get("type").and_then(Value::as_str).map(hint);
            refuse(request, "a message names its `control`".to_owned(), hint)
        }
    }
}

fn unknown(name: &str) -> ApiError {
    let name: String = name.chars().take(80).collect();
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "unknown_control",
        format!("no control is called `{name}`"),
    )
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

fn answer(request: Option<Value>, kind: &str, mut reply: Value) -> SocketReply {
    if let Value::Object(fields) = &mut reply {
        fields.insert("type".to_owned(), kind.into());
        if let Some(request) = request {
            fields.insert("requestId".to_owned(), request);
        }
    }
    SocketReply {
        reply,
        session: None,
    }
}

/// An error as the bridge tells it.
pub(super) fn failed(request: Option<Value>, control: Option<&str>, err: &ApiError) -> Value {
    log::control_refused(control, err);
    let mut reply = json!({ "code": err.code, "message": err.message });
    if let Some(hint) = &err.hint {
        reply["hint"] = hint.as_str().into();
    }
    answer(request, "bridge.error", reply).reply
}
