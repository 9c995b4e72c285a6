//! JSON-RPC between agents and their clients over pipes: one message per line, no batches.
//!
//! Both sides are here: what is read, strictly where the sender gets an error for it, and the shapes of
//! what is sent. Who waits for which answer is the caller's affair.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
// These two are ACP's own, in the range that JSON-RPC leaves to servers.
pub const AUTH_REQUIRED: i64 = -32000;
pub const NOT_FOUND: i64 = -32002;

/// What stands in `jsonrpc`, where it is not left out.
pub const VERSION: Option<&str> = Some("2.0");

/// The id of a request, as its sender wrote it.
#[derive(Clone, Debug, Serialize)]
pub struct Id(Box<RawValue>);

/// A message of the other side.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    /// An answer to a request of ours.
    Answer {
        id: Id,
        result: Result<Params<'a>, Error>,
    },
}

/// The parameters of a request, or its result.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a>(Option<&'a RawValue>);

/// What went wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Error {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A request, or a notification if it has no id.
#[derive(Debug, Serialize)]
pub struct Call<'a, I, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonrpc: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<I>,
    pub method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<P>,
}

/// An answer with a result.
#[derive(Debug, Serialize)]
pub struct Response<I, R> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonrpc: Option<&'static str>,
    pub id: I,
    pub result: R,
}

/// An answer with an error.
#[derive(Debug, Serialize)]
pub struct Failure<I, E> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonrpc: Option<&'static str>,
    pub id: I,
    pub error: E,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Nothing is a result, too: an answer that has it is not one without.
fn even_null<'de: 'a, 'a, D>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error>
where
    D: Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Id {
    /// Ids are strings, numbers or null; none of them has a line break in it.
    fn new(raw: &RawValue) -> Option<Self> {
        let is_plain = !raw.get().starts_with(['{', '[', 't', 'f']);
        is_plain.then(|| Self(raw.to_owned()))
    }

    /// The id as it was written.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// The text of an id, which is a string or else as it was written.
    pub fn text(&self) -> String {
        serde_json::from_str(self.json()).unwrap_or_else(|_| self.json().to_owned())
    }

    /// Whether it equals this id in any spelling.
    pub fn is(&self, id: &Value) -> bool {
        serde_json::from_str::<Value>(self.json()).is_ok_and(|it| it == *id)
    }
}

impl Error {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    pub fn no_method() -> Self {
        Self::new(INVALID_REQUEST, "the message has no method")
    }

    /// The message of the other side; some send only a number.
    pub fn text(self) -> String {
        let details = self.data.as_ref().and_then(|it| it["details"].as_str());
        match details {
            Some(details) => format!("{}: {details}", self.message),
            None if self.message.is_empty() => format!("error {}", self.code),
            None => self.message,
        }
    }
}

impl<'a> Message<'a> {
    /// Parses a line; the error comes with the id to respond to.
    pub fn read(line: &'a [u8]) -> Result<Option<Self>, (Option<Id>, Error)> {
        let text = std::str::from_utf8(line)
            .map_err(|_| (None, Error::new(PARSE_ERROR, "the message is no UTF-8")))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let refused = |message: &str| (None, Error::new(INVALID_REQUEST, message));
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            // JSON of another shape, such as a batch: a bad request, but no parse error.
            Err(err) if err.is_data() => {
                return Err(refused("a message is an object with a method"));
            }
            Err(err) => {
                let message = format!("the message is no JSON: {err}");
                return Err((None, Error::new(PARSE_ERROR, message)));
            }
        };
        // A null id reads as none, and makes a notification: no answer could be matched to it.
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
            (None, Some(Some(id))) => {
                let result = match line.error {
                    // An error of any shape must end the request that waits for it.
                    Some(error) => Err(serde_json::from_str(error.get()).unwrap_or_default()),
                    None => Ok(Params(line.result)),
                };
                Ok(Some(Self::Answer { id, result }))
            }
            (None, None) => Err((None, Error::no_method())),
        }
    }
}

impl<'a> Params<'a> {
    /// There is not even a null.
    pub fn is_missing(self) -> bool {
        self.0.is_none()
    }

    /// Fails on what does not fit; the sender gets the error.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, Error> {
        // A method whose parameters are all optional may be called without any.
        let text = self.0.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|err| Error::params(error_text(&err)))
    }

    /// Takes what does not fit for nothing.
    pub fn read_or_default<T: Deserialize<'a> + Default>(self) -> T {
        let read = self.0.and_then(|it| serde_json::from_str(it.get()).ok());
        read.unwrap_or_default()
    }
}

/// The message of serde without a position: the client wrote one line.
fn error_text(err: &serde_json::Error) -> String {
    let words = err.to_string();
    match words.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => words,
    }
}

/// A line with the answer to a request.
pub fn result(id: &Id, result: &impl Serialize) -> Vec<u8> {
    line(&Response {
        jsonrpc: VERSION,
        id,
        result,
    })
}

/// An error response; without an id it refers to no request.
pub fn refusal(id: Option<&Id>, error: &Error) -> Vec<u8> {
    line(&Failure {
        jsonrpc: VERSION,
        id,
        error,
    })
}

/// A response whose end, `"result":…` or `"error":…`, is JSON already; so is the id.
pub fn response(id: &str, end: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{end}}}\n")
}

/// A line that is no request.
pub fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    call(None, method, params)
}

/// A request of ours, under a name.
pub fn request(id: &str, method: &str, params: &impl Serialize) -> Vec<u8> {
    call(Some(id), method, params)
}

fn call(id: Option<&str>, method: &str, params: &impl Serialize) -> Vec<u8> {
    line(&Call {
        jsonrpc: VERSION,
        id,
        method,
        params: Some(params),
    })
}

fn line(message: &impl Serialize) -> Vec<u8> {
    model::json_line(message).expect("messages are plain data with string keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match Message::read(line.as_bytes()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Message::Request { id, method, .. })) => format!("{} {method}", id.json()),
            Ok(Some(Message::Notification { method, .. })) => method.into_owned(),
            Ok(Some(Message::Answer { id, result })) => {
                let result = result.map(|it| it.0.map(RawValue::get));
                format!("{}: {result:?}", id.text())
            }
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
                r#"s/1: Ok(Some("{\"a\":1}"))"#,
            ),
            (r#"{"id":7,"result":null}"#, r#"7: Ok(Some("null"))"#),
            (
                r#"{"id":7,"error":{"code":1}}"#,
                r#"7: Err(Error { code: 1, message: "", data: None })"#,
            ),
            (
                r#"{"id":{},"method":"x"}"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id is a string, a number or null"}}"#,
            ),
            (
                r#"{"id":1,"method":5}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the method is a string"}}"#,
            ),
            (r#"{"id":4}"#, "4: Ok(None)"),
            (
                r#"{"result":1}"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message has no method"}}"#,
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
