//! JSON-RPC 2.0 as the Agent Client Protocol uses it: one message per line, no batches.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL_ERROR: i32 = -32603;
pub(crate) const AUTH_REQUIRED: i32 = -32000;
pub(crate) const NOT_FOUND: i32 = -32002;

/// The id of a request, as its sender wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id(String);

/// A message of the client.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    /// An answer to a request of ours; `None` when it was refused.
    Answer { id: String, result: Option<Value> },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Params<'a>(Option<&'a RawValue>);

/// What went wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Error {
    pub(crate) code: i32,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Id {
    pub(crate) const NONE: &'static str = "null";

    /// Ids are strings, numbers or null; none of them has a line break in it.
    fn new(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_plain = !text.starts_with(['{', '[', 't', 'f']);
        is_plain.then(|| Self(text.to_owned()))
    }

    /// The id as it was written.
    pub(crate) fn json(&self) -> &str {
        &self.0
    }

    /// Whether it equals this id in any spelling.
    pub(crate) fn is(&self, id: &Value) -> bool {
        serde_json::from_str::<Value>(&self.0).is_ok_and(|it| it == *id)
    }
}

impl Error {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }
}

impl<'a> Message<'a> {
    /// Parses a line; the error comes with the id to respond to.
    pub(crate) fn read(line: &'a [u8]) -> Result<Option<Self>, (Option<Id>, Error)> {
        let text = std::str::from_utf8(line)
            .map_err(|_| (None, Error::new(PARSE_ERROR, "the message is no UTF-8")))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let refused = |message: &str| (None, Error::new(INVALID_REQUEST, message));
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(err) if err.is_data() => {
                return Err(refused("a message is an object with a method"));
            }
            Err(err) => {
                let message = format!("the message is no JSON: {err}");
                return Err((None, Error::new(PARSE_ERROR, message)));
            }
        };
        let id = line.id.map(Id::new);
        let params = Params(line.params);
        let method = line.method.map(|it| serde_json::from_str(it.get()));
        let Ok(method) = method.transpose() else {
            let error = Error::new(INVALID_REQUEST, "the method is a string");
            return Err((id.flatten(), error));
        };
        let method = method.map(|Name(it)| it);
        match (method, id) {
            (_, Some(None)) => Err(refused("the id is a string, a number or null")),
            (Some(method), Some(Some(id))) => Ok(Some(Self::Request { id, method, params })),
            (Some(method), None) => Ok(Some(Self::Notification { method, params })),
            (None, Some(Some(id))) if line.result.is_some() || line.error.is_some() => {
                let result = line
                    .result
                    .and_then(|it| serde_json::from_str(it.get()).ok());
                let id = serde_json::from_str(id.json()).unwrap_or_else(|_| id.json().to_owned());
                Ok(Some(Self::Answer { id, result }))
            }
            (None, id) => {
                let error = Error::new(INVALID_REQUEST, "the message has no method");
                Err((id.flatten(), error))
            }
        }
    }
}

impl Params<'_> {
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        let text = self.0.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|err| Error::params(error_text(&err)))
    }
}

/// What serde says, without where: the client wrote one line.
fn error_text(err: &serde_json::Error) -> String {
    let words = err.to_string();
    match words.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => words,
    }
}

/// A line with the answer to a request.
pub(crate) fn result(id: &Id, result: &impl Serialize) -> Vec<u8> {
    let result = model::json_string(result).expect("results are plain data with string keys");
    rest(id, &format!("\"result\":{result}"))
}

/// An error response; without an id it refers to no request.
pub(crate) fn refusal(id: Option<&Id>, error: &Error) -> Vec<u8> {
    let error = model::json_string(error).expect("errors are plain data with string keys");
    let id = id.map_or(Id::NONE, Id::json);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

/// A line whose rest somebody else has written.
pub(crate) fn rest(id: &Id, rest: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{rest}}}\n", id.json()).into_bytes()
}

/// A line that is no request.
pub(crate) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    message(None, method, params)
}

/// A request of ours, under a name.
pub(crate) fn request(id: &str, method: &str, params: &impl Serialize) -> Vec<u8> {
    message(Some(id), method, params)
}

fn message(id: Option<&str>, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Outbound<'a, P> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        method: &'a str,
        params: P,
    }
    let message = Outbound {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    model::json_line(&message).expect("messages are plain data with string keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match Message::read(line.as_bytes()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Message::Request { id, method, .. })) => format!("{} {method}", id.json()),
            Ok(Some(Message::Notification { method, .. })) => method.into_owned(),
            Ok(Some(Message::Answer { id, result })) => format!("{id}: {result:?}"),
            Err((id, error)) => {
                let line = refusal(id.as_ref(), &error);
                String::from_utf8(line).unwrap().trim_end().to_owned()
            }
        }
    }

    #[test]
    fn every_line_has_its_meaning_or_its_error() {
        let cases = [
            ("", "nothing"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
                "1 initialize",
            ),
            (r#"{"id":"a\"b","method":"x"}"#, r#""a\"b" x"#),
            (r#"{"id":null,"method":"x"}"#, "x"),
            (
                r#"{"method":"session/cancel","params":{}}"#,
                "session/cancel",
            ),
            (
                r#"{"id":"s/1","result":{"a":1}}"#,
                r#"s/1: Some(Object {"a": Number(1)})"#,
            ),
            (r#"{"id":7,"error":{"code":1}}"#, "7: None"),
            (
                r#"{"id":{},"method":"x"}"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id is a string, a number or null"}}"#,
            ),
            (
                r#"{"id":1,"method":5}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the method is a string"}}"#,
            ),
            (
                r#"{"id":4}"#,
                r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"the message has no method"}}"#,
            ),
            (
                "[]",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is an object with a method"}}"#,
            ),
            (
                "{",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is no JSON: EOF while parsing an object at line 1 column 1"}}"#,
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
