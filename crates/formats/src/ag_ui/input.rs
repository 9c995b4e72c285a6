//! `RunAgentInput`: what a client sends to begin a run, checked field by field.
//!
//! Shapes are those of npm `@ag-ui/core` 1.0.0. Clients before 1.0 are understood too: `null` where
//! they wrote it, `binary` parts. Errors name the path of the field.

use std::fmt;

use model::{ContextEntry, Thread, ToolDefinition};
use serde_json::{Map, Value};

use super::messages::message;
use crate::framing::clean;

/// Maximum number of messages, tools and so on in one request.
const MAX_LIST: usize = 10_000;
/// Bytes of an id.
const MAX_ID: usize = 512;

/// What a client wants to happen in a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct RunAgentInput {
    pub thread_id: String,
    /// Chosen by the client; the same id again means the same run.
    pub run_id: String,
    /// The whole history, the application's tools and its `forwardedProps`.
    pub thread: Thread,
    pub state: Option<Value>,
    /// Answers to what the last run has asked.
    pub resume: Vec<Resume>,
}

/// The answer to one interrupt.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    pub interrupt_id: String,
    pub status: ResumeStatus,
    pub payload: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeStatus {
    Resolved,
    /// The user walked away.
    Cancelled,
}

/// What is wrong with a request, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Such as `messages[2].content`; empty for the body itself.
    pub field: String,
    pub message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "the body {}", self.message),
            field => write!(f, "`{field}` {}", self.message),
        }
    }
}

impl std::error::Error for InputError {}

impl RunAgentInput {
    /// Reads the body of a request.
    pub fn from_json(body: &[u8]) -> Result<Self, InputError> {
        // JavaScript sends half of a surrogate pair where a string was cut in the middle of an emoji.
        let text = clean(body).text;
        let value: Value = serde_json::from_str(&text).map_err(|err| InputError {
            field: String::new(),
            message: format!("is not JSON: {err}"),
        })?;
        let top = &JsonPath {
            path: String::new(),
            value: &value,
        };
        top.object()?;
        Ok(Self {
            thread_id: id(top, "threadId")?,
            run_id: id(top, "runId")?,
            thread: thread(top)?,
            state: top.find("state").map(|it| it.value.clone()),
            resume: each(top, "resume", resume)?,
        })
    }
}

/// The thread of a request.
pub fn read_thread(body: &[u8]) -> Result<Thread, InputError> {
    RunAgentInput::from_json(body).map(|it| it.thread)
}

fn thread(top: &JsonPath<'_>) -> Result<Thread, InputError> {
    Ok(Thread {
        messages: top
            .needed("messages")?
            .list()?
            .iter()
            .map(message)
            .collect::<Result<_, _>>()?,
        tools: each(top, "tools", tool)?,
        context: each(top, "context", context)?,
        props: match top.find("forwardedProps") {
            Some(it) => it.object()?.clone(),
            None => Map::new(),
        },
    })
}

fn tool(it: &JsonPath<'_>) -> Result<ToolDefinition, InputError> {
    it.object()?;
    Ok(ToolDefinition {
        name: it.text("name")?.to_owned(),
        description: it.find_text("description")?.unwrap_or_default().to_owned(),
        parameters: it.find("parameters").map(|it| it.value.clone()),
    })
}

fn context(it: &JsonPath<'_>) -> Result<ContextEntry, InputError> {
    it.object()?;
    Ok(ContextEntry {
        description: it.text("description")?.to_owned(),
        value: it.text("value")?.to_owned(),
    })
}

fn resume(it: &JsonPath<'_>) -> Result<Resume, InputError> {
    it.object()?;
    let status = match it.text("status")? {
        "resolved" => ResumeStatus::Resolved,
        "cancelled" => ResumeStatus::Cancelled,
        _ => return Err(it.needed("status")?.wrong("is `resolved` or `cancelled`")),
    };
    Ok(Resume {
        interrupt_id: it.text("interruptId")?.to_owned(),
        status,
        payload: it.find("payload").map(|it| it.value.clone()),
    })
}

/// An id that may be kept and shown.
fn id(it: &JsonPath<'_>, name: &str) -> Result<String, InputError> {
    let id = it.text(name)?;
    match id.is_empty() || id.len() > MAX_ID || id.contains(char::is_control) {
        true => Err(it
            .needed(name)?
            .wrong("is not an id: 1 to 512 bytes, no control characters")),
        false => Ok(id.to_owned()),
    }
}

pub(super) fn each<T>(
    it: &JsonPath<'_>,
    name: &str,
    read: fn(&JsonPath<'_>) -> Result<T, InputError>,
) -> Result<Vec<T>, InputError> {
    match it.find(name) {
        Some(list) => list.list()?.iter().map(read).collect(),
        None => Ok(Vec::new()),
    }
}

/// A value in the request, and how to get there.
#[derive(Clone, Debug)]
pub(super) struct JsonPath<'a> {
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> JsonPath<'a> {
    pub(super) fn wrong(&self, message: impl Into<String>) -> InputError {
        InputError {
            field: self.path.clone(),
            message: message.into(),
        }
    }

    fn expected(&self, what: &str) -> InputError {
        self.wrong(format!("is {}, expected {what}", kind(self.value)))
    }

    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, InputError> {
        let object = self.value.as_object();
        object.ok_or_else(|| self.expected("an object"))
    }

    pub(super) fn list(&self) -> Result<Vec<JsonPath<'a>>, InputError> {
        let list = self.value.as_array();
        let list = list.ok_or_else(|| self.expected("a list"))?;
        if list.len() > MAX_LIST {
            return Err(self.wrong(format!("has more than {MAX_LIST} entries")));
        }
        let place = |(n, value)| JsonPath {
            path: format!("{}[{n}]", self.path),
            value,
        };
        Ok(list.iter().enumerate().map(place).collect())
    }

    /// A field that is there; `null` is not.
    pub(super) fn find(&self, name: &str) -> Option<JsonPath<'a>> {
        // Clients before 1.0 send null for what later ones leave out.
        let value = self.value.get(name).filter(|it| !it.is_null())?;
        Some(JsonPath {
            path: self.inside(name),
            value,
        })
    }

    pub(super) fn needed(&self, name: &str) -> Result<JsonPath<'a>, InputError> {
        self.find(name).ok_or_else(|| InputError {
            field: self.inside(name),
            message: "is missing".to_owned(),
        })
    }

    pub(super) fn find_text(&self, name: &str) -> Result<Option<&'a str>, InputError> {
        self.find(name).map(|it| it.as_text()).transpose()
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str, InputError> {
        self.needed(name)?.as_text()
    }

    pub(super) fn as_text(&self) -> Result<&'a str, InputError> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.expected("a string"))
    }

    fn inside(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        let read = RunAgentInput::from_json(body.as_bytes());
        read.expect_err("it was taken").to_string()
    }

    fn with(fields: &str) -> String {
        format!(r#"{{"threadId":"t","runId":"r","messages":[],{fields}}}"#)
    }

    #[test]
    fn every_mistake_names_its_field() {
        let message = |it: &str| format!(r#"{{"threadId":"t","runId":"r","messages":[{it}]}}"#);
        let rows = [
            ("[]".to_owned(), "the body is a list, expected an object"),
            (r#"{"runId":"r"}"#.to_owned(), "`threadId` is missing"),
            (
                r#"{"threadId":"t","runId":7}"#.to_owned(),
                "`runId` is a number, expected a string",
            ),
            (
                r#"{"threadId":"","runId":"r"}"#.to_owned(),
                "`threadId` is not an id: 1 to 512 bytes, no control characters",
            ),
            (
                r#"{"threadId":"t","runId":"r"}"#.to_owned(),
                "`messages` is missing",
            ),
            (
                message(r#"{"id":"1","role":"user","content":5}"#),
                "`messages[0].content` is a number, expected a string or a list of parts",
            ),
            (
                message(r#"{"id":"1","role":"robot"}"#),
                "`messages[0].role` is `robot`, expected developer, system, user, assistant, tool, activity or reasoning",
            ),
            (
                message(r#"{"id":"1","role":"tool","content":"x"}"#),
                "`messages[0].toolCallId` is missing",
            ),
            (
                message(r#"{"id":"1","role":"user","content":[{"type":"image"}]}"#),
                "`messages[0].content[0].source` is missing",
            ),
            (
                message(
                    r#"{"id":"1","role":"assistant","toolCalls":[{"id":"c","function":{"name":"f"}}]}"#,
                ),
                "`messages[0].toolCalls[0].function.arguments` is missing",
            ),
            (
                with(r#""tools":{}"#),
                "`tools` is an object, expected a list",
            ),
            (with(r#""tools":[{}]"#), "`tools[0].name` is missing"),
            (
                with(r#""context":[{"description":"d"}]"#),
                "`context[0].value` is missing",
            ),
            (
                with(r#""resume":[{"interruptId":"i","status":"maybe"}]"#),
                "`resume[0].status` is `resolved` or `cancelled`",
            ),
            (
                with(r#""forwardedProps":[]"#),
                "`forwardedProps` is a list, expected an object",
            ),
        ];
        for (body, expected) in rows {
            assert_eq!(refused(&body), expected, "{body}");
        }
        assert!(refused("{").starts_with("the body is not JSON"));
    }

    #[test]
    fn nulls_of_earlier_clients_are_nothing() {
        let body = with(
            r#""tools":null,"context":null,"forwardedProps":null,"state":null,"resume":[{"interruptId":"i","status":"resolved","payload":null}]"#,
        );
        let read = RunAgentInput::from_json(body.as_bytes()).unwrap();
        let expected = RunAgentInput {
            thread_id: "t".to_owned(),
            run_id: "r".to_owned(),
            thread: Thread::default(),
            state: None,
            resume: vec![Resume {
                interrupt_id: "i".to_owned(),
                status: ResumeStatus::Resolved,
                payload: None,
            }],
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn half_an_emoji_does_not_cost_the_request() {
        let body = r#"{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"x\ud83d"}]}"#;
        let read = RunAgentInput::from_json(body.as_bytes()).unwrap();
        assert_eq!(read.thread.messages[0].text(), "x\u{fffd}");
    }
}
