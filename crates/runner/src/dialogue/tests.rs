//! Recorded conversations, replayed: the agent's lines are played, and what is sent to it is
//! compared with what its host sent then. The reader watches, as it does in a live run.

mod acp;
mod claude;
mod codex;
mod openhands;

use std::collections::HashMap;
use std::path::Path;

use formats::{ReaderConfig, RunEnds, registry};
use model::{Body, End, Event, Frame, Item, Raw, Reader, Role};
use serde_json::Value;

use super::{Dialogue, NotSettled, Outbox, may_hold, sent};
use crate::request::Answer;

/// A dialogue, its reader, and what both have produced so far.
struct DialogueTest {
    dialogue: Box<dyn Dialogue>,
    reader: Box<dyn Reader>,
    out: Outbox,
    sent: Vec<Value>,
    events: String,
    /// The inputs of the asks, by their ids.
    inputs: HashMap<String, Raw<'static>>,
}

impl DialogueTest {
    fn new(dialogue: impl Dialogue + 'static, format: &str, expect: Option<&str>) -> Self {
        let config = ReaderConfig {
            expected_session: expect.map(str::to_owned),
            run_ends: RunEnds::AtResult,
            ..ReaderConfig::default()
        };
        let (_, new) = registry::find_reader(format).unwrap();
        let mut stage = Self {
            dialogue: Box::new(dialogue),
            reader: new(&config),
            out: Outbox::default(),
            sent: Vec::new(),
            events: String::new(),
            inputs: HashMap::new(),
        };
        stage.act(|dialogue, out| dialogue.open(out));
        stage
    }

    /// The agent prints a line.
    fn receive(&mut self, line: &str) {
        self.read(line);
        self.act(|dialogue, out| dialogue.line(line, out));
    }

    /// The caller of the dialogue does something.
    fn act<T>(&mut self, act: impl FnOnce(&mut dyn Dialogue, &mut Outbox) -> T) -> T {
        let result = act(&mut *self.dialogue, &mut self.out);
        for line in std::mem::take(&mut self.out.lines) {
            assert!(!line.contains('\n'), "a line is one line: {line}");
            self.read(&sent(&line));
            self.sent.push(serde_json::from_str(&line).unwrap());
        }
        for warning in std::mem::take(&mut self.out.warnings) {
            self.events += &format!("warning {}: {}\n", warning.code, warning.text);
        }
        result
    }

    fn settle(&mut self, ask: &str, answer: &Answer) -> Result<(), NotSettled> {
        let input = self.inputs.get(ask).cloned();
        let input = input.as_ref().map(Raw::as_raw_value);
        self.act(|dialogue, out| dialogue.settle(ask, input, answer, out))
    }

    /// What was sent since the last time: methods and their parameters, or answers.
    fn take_sent(&mut self) -> String {
        let line = |it: Value| match it["method"].as_str() {
            Some(method) => format!("{method} {}\n", it["params"]),
            None => format!("{} {}{}\n", it["id"], it["result"], it["error"]),
        };
        self.sent.drain(..).map(line).collect()
    }

    fn failure(&self) -> String {
        let failure = self.out.failure.as_ref().unwrap();
        format!("{}: {}", failure.code, failure.message)
    }

    /// The process was ended.
    fn read_end(&mut self) {
        let events = &mut self.events;
        let mut sink = |event: &Event<'_>| write_event(event, events);
        self.reader.end(&End::default(), &mut sink);
    }

    fn read(&mut self, frame: &str) {
        let Self { events, inputs, .. } = self;
        let mut sink = |event: &Event<'_>| {
            write_event(event, events);
            if let Body::AskOpened(ask) = &event.body
                && let Some(input) = ask.input.clone()
            {
                inputs.insert(ask.id.to_string(), input.into_owned());
            }
        };
        self.reader.frame(Frame::Data(frame.as_bytes()), &mut sink);
    }
}

/// The events that a steering program acts on, one per line.
fn write_event(event: &Event<'_>, events: &mut String) {
    let line = match &event.body {
        Body::RunStarted(_) => "run started".to_owned(),
        Body::SessionBound(it) => format!("session {:?} {}", it.how, it.native),
        Body::ItemClosed(closed) => match &closed.item {
            Item::Message(it) if it.role == Role::User => format!("user: {}", it.text),
            Item::Tool(it) => format!("tool {} {:?}", it.name, closed.status),
            _ => return,
        },
        Body::AskOpened(it) => format!("ask {} {:?}: {}", it.id, it.kind, it.title),
        Body::AskSettled(it) => format!("settled {} {:?}", it.id, it.decision),
        Body::RunEnded(it) => match &it.error {
            Some(error) => format!(
                "run ended {:?} {}: {}",
                it.outcome, error.code, error.message
            ),
            None => format!("run ended {:?}", it.outcome),
        },
        _ => return,
    };
    events.push_str(&line);
    events.push('\n');
}

/// One message of a recording.
struct Step {
    is_sent: bool,
    line: String,
}

fn recording(name: &str) -> Vec<Step> {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        dir: &'a str,
        #[serde(borrow)]
        msg: &'a serde_json::value::RawValue,
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let step = |line| {
        let line: Line<'_> = serde_json::from_str(line).unwrap();
        Step {
            is_sent: line.dir == "in",
            line: line.msg.get().to_owned(),
        }
    };
    text.lines().map(step).collect()
}

#[test]
fn a_line_is_passed_over_only_if_no_spelling_of_the_string_is_in_it() {
    let holds = |line: &str| may_hold(line, &["\"id\"", "\"turn/completed\""]);
    let read = [
        r#"{"id":1}"#,
        r#"{"\u0069d":1}"#,
        r#"{"i\u0064":1}"#,
        r#"{"method":"turn/completed"}"#,
        r#"{"method":"turn\/completed"}"#,
        r#"{"method":"t\u0075rn/completed"}"#,
    ];
    let passed_over = [
        r#"{"method":"item/agentMessage/delta","params":{"itemId":"i1","delta":"id\n\"\\t"}}"#,
        r#"{"method":"turn/started"}"#,
        "",
    ];
    assert_eq!(
        (read.map(holds), passed_over.map(holds)),
        ([true; 6], [false; 3])
    );
    for line in read {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}
