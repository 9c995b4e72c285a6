//! One client of an AG-UI server: the run it asked for, under the names it gave.
//!
//! The client knows the thread and the run by its own ids, has sent the prompt itself, and gets a
//! question as the end of its run: AG-UI asks between runs. What was open then continues in the next one.

use model::{
    Ask, AskKind, Body, Event, Item, ItemClosed, Level, MessageContent, Role, RunError, Text,
    ThreadMessage, Writer,
};
use serde_json::{Value, json};

use super::items::Items;
use super::subagents::StartedSubagents;
use super::{AgUi, AgUiProfile, EventLane, Outcome, Run, RunEnded, wire};
use crate::ag_ui::Snapshot;
use crate::wire::scanner;
use crate::writers::{WriterConfig, json};

/// What a client of one run is called, and what it understands.
#[derive(Clone, Debug)]
pub struct AgUiEndpointConfig {
    pub thread: String,
    pub run: String,
    /// A profile of the format.
    pub profile: Option<String>,
    /// The client does not know the messages so far, the prompt included.
    pub is_late: bool,
}

/// A question, as a client answers it.
#[derive(Clone, Debug)]
pub struct Interrupt<'a> {
    /// By which it is answered.
    pub id: String,
    pub ask: &'a Ask<'a>,
}

/// Tells one client of one run.
#[derive(Clone, Debug)]
pub struct AgUiEndpoint {
    config: AgUiEndpointConfig,
    writer: AgUi,
    /// What is open; kept over a question, because it continues after it.
    items: Option<Items>,
    is_over: bool,
}

impl AgUiEndpoint {
    pub fn new(config: AgUiEndpointConfig) -> Self {
        let writer = AgUi::new(&WriterConfig {
            profile: config.profile.clone(),
            live: true,
            ..WriterConfig::default()
        });
        Self {
            config,
            writer,
            items: None,
            is_over: false,
        }
    }

    /// The run begins, before anything is known of it; also behind a question.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let AgUiEndpointConfig { thread, run, .. } = &self.config;
        EventLane::new(out).emit(wire::Body::RunStarted {
            thread_id: thread,
            run_id: run,
            protocol_version: wire::PROTOCOL_VERSION,
        });
        let items = self.items.take();
        self.writer.run = Some(Run {
            thread: thread.clone(),
            id: run.clone(),
            items: items.unwrap_or_else(|| Items::new(self.writer.shape)),
            subagents: StartedSubagents::default(),
        });
        self.is_over = false;
    }

    /// What the thread holds, as far as a client takes it.
    pub fn snapshot(&self, messages: &[ThreadMessage], out: &mut Vec<u8>) {
        // Clients that know `THINKING_*` know no message that is a thought.
        let is_known = |it: &&ThreadMessage| match self.writer.shape {
            AgUiProfile::Current => true,
            AgUiProfile::Thinking => !matches!(it.content, MessageContent::Reasoning { .. }),
        };
        let Snapshot { messages, is_cut } = Snapshot::of(messages.iter().filter(is_known));
        own(
            out,
            &json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages }),
        );
        if is_cut {
            let words =
                "the thread is longer than what can be told at once: the rest is in the session";
            self.warn("history_cut", words, out);
        }
    }

    /// A change of the state that the client keeps for the server.
    pub fn remember(&self, has_state: bool, key: &str, value: Value, out: &mut Vec<u8>) {
        // A patch changes nothing else; where there is no state, there is nothing to patch.
        let event = match has_state {
            true => json!({
                "type": "STATE_DELTA",
                "delta": [{ "op": "add", "path": format!("/{key}"), "value": value }],
            }),
            false => json!({ "type": "STATE_SNAPSHOT", "snapshot": { key: value } }),
        };
        own(out, &event);
    }

    /// A warning of the server itself.
    pub fn warn(&self, code: &str, text: &str, out: &mut Vec<u8>) {
        let text = Text::new(text);
        EventLane::new(out).emit(wire::Body::Custom(wire::Custom::Notice(wire::Notice {
            level: Level::Warning,
            code,
            text: &text,
            item_id: None,
            detail: None,
        })));
    }

    /// Writes the next event; nothing is written after the end of the run.
    pub fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        // The run has begun already, with the client's own ids.
        let has_begun = matches!(event.body, Body::RunStarted(_));
        if self.is_over || has_begun || (!self.config.is_late && is_prompt(event)) {
            return;
        }
        self.is_over = matches!(event.body, Body::RunEnded(_));
        self.writer.event(event, out);
    }

    /// The agent waits for answers: the run is over for the client, and continues when it has answered.
    pub fn interrupt(&mut self, interrupts: &[Interrupt<'_>], out: &mut Vec<u8>) {
        let Some(mut run) = self.writer.run.take() else {
            return;
        };
        let mut lane = EventLane::new(out);
        run.items.suspend(&mut lane);
        // The verifier of the client refuses a run that ends with one open.
        run.subagents.close_left_open(&mut lane);
        // The deltas that follow the answer belong to items of this run.
        self.items = Some(run.items);
        self.is_over = true;
        let interrupts: Value = interrupts.iter().map(interrupt).collect();
        let AgUiEndpointConfig { thread, run, .. } = &self.config;
        own(
            lane.out,
            &json!({
                "type": "RUN_FINISHED", "threadId": thread, "runId": run,
                "outcome": { "type": "interrupt", "interrupts": interrupts },
            }),
        );
    }

    /// Nothing will come of the run.
    pub fn fail(&mut self, code: &str, message: &str, out: &mut Vec<u8>) {
        let error = RunError::new(code, Text::new(message));
        self.end(&RunEnded::new(Outcome::Failed, Some(error)), out);
    }

    /// The run was taken back.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        self.end(&RunEnded::new(Outcome::Aborted, None), out);
    }

    /// There is nothing to run.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.end(&RunEnded::new(Outcome::Completed, None), out);
    }

    /// The end was written.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn end(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.writer.finish(ended, "", &mut EventLane::new(out));
        }
    }
}

/// The user's messages come from the client, which already shows them.
fn is_prompt(event: &Event<'_>) -> bool {
    let (Body::ItemOpened(item)
    | Body::ItemUpdated(item)
    | Body::ItemClosed(ItemClosed { item, .. })) = &event.body
    else {
        return false;
    };
    event.path.is_empty() && matches!(item, Item::Message(it) if it.role == Role::User)
}

/// An event that is made here and nowhere else.
fn own(out: &mut Vec<u8>, event: &Value) {
    out.extend_from_slice(b"data: ");
    json(out, event);
    out.extend_from_slice(b"\n\n");
}

fn interrupt(it: &Interrupt<'_>) -> Value {
    let ask = it.ask;
    // AG-UI's own reasons: the first needs a schema of the answer, the second a call.
    let reason = match (ask.kind, &ask.item) {
        (AskKind::Question, _) => "input_required",
        (AskKind::Permission, Some(_)) => "tool_call",
        (AskKind::Permission, None) | (AskKind::Plan, _) => "confirmation",
    };
    let mut interrupt = json!({
        "id": it.id, "reason": reason, "message": ask.title,
        "responseSchema": schema(ask.kind),
        "metadata": { "linkspan": {
            "kind": ask.kind, "toolCallName": ask.tool,
        } },
    });
    if let Some(item) = &ask.item {
        interrupt["toolCallId"] = item.as_str().into();
    }
    let more = &mut interrupt["metadata"]["linkspan"];
    if let Some(description) = &ask.description {
        more["description"] = description.to_str().into();
    }
    if let Some(deadline) = ask.deadline {
        more["deadline"] = json!(deadline);
    }
    for (key, raw) in [("input", &ask.input), ("suggestions", &ask.suggestions)] {
        // What is too deep to be taken apart is left out: the tool call has it.
        let value = raw.as_ref().and_then(|it| scanner::from_str(it.get()).ok());
        if let Some(value) = value.filter(|it: &Value| !it.is_null()) {
            more[key] = value;
        }
    }
    interrupt
}

/// What an answer looks like.
fn schema(kind: AskKind) -> Value {
    let answers = json!({ "type": "object", "description": "what runs instead, or the answers" });
    // AG-UI has no field for a denial: it is part of the payload, as `approved`.
    let mut properties = json!({
        "approved": { "type": "boolean" },
        "always": { "type": "boolean", "description": "remember it" },
        "message": { "type": "string", "description": "why not" },
    });
    properties["input"] = answers;
    let required = match kind {
        AskKind::Permission | AskKind::Plan => json!(["approved"]),
        AskKind::Question => json!(["approved", "input"]),
    };
    json!({ "type": "object", "properties": properties, "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> AgUiEndpoint {
        AgUiEndpoint::new(AgUiEndpointConfig {
            thread: "t".to_owned(),
            run: "r".to_owned(),
            profile: None,
            is_late: false,
        })
    }

    fn write_event(door: &mut AgUiEndpoint, kind: &str, data: &str, out: &mut Vec<u8>) {
        let line = format!(
            r#"{{"v":1,"seq":1,"session":"s","run":"r1","engine":"e","origin":"agent","type":"{kind}","data":{data}}}"#
        );
        door.event(&Event::from_json(&line).unwrap(), out);
    }

    fn take_events(out: &mut Vec<u8>) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(out)).unwrap();
        let lines = text.lines().filter_map(|it| it.strip_prefix("data: "));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn items_open_at_an_ask_continue_after_the_answer() {
        let (mut door, mut out) = (endpoint(), Vec::new());
        door.begin(&mut out);
        write_event(&mut door, "run.started", r#"{"cause":"prompt"}"#, &mut out);
        let message = |text: &str| {
            format!(r#"{{"kind":"message","id":"m1","role":"assistant","text":"{text}"}}"#)
        };
        write_event(&mut door, "item.opened", &message(""), &mut out);
        let delta = |text: &str| format!(r#"{{"item":"m1","channel":"text","text":"{text}"}}"#);
        write_event(&mut door, "item.delta", &delta("a"), &mut out);
        let ask: Ask<'_> = serde_json::from_str(
            r#"{"id":"q","kind":"permission","tool":"Bash","title":"ls","item":"c1"}"#,
        )
        .unwrap();
        let id = "s:5".to_owned();
        door.interrupt(&[Interrupt { id, ask: &ask }], &mut out);
        assert!(door.is_over());
        let before = take_events(&mut out);
        let types = [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ];
        let is_in_order = before.iter().zip(types).all(|(it, kind)| it.contains(kind));
        assert!(is_in_order && before.len() == types.len(), "{before:#?}");
        door.begin(&mut out);
        write_event(&mut door, "item.delta", &delta("b"), &mut out);
        let closed = format!(r#"{{"status":"ok","item":{}}}"#, message("ab"));
        write_event(&mut door, "item.closed", &closed, &mut out);
        write_event(
            &mut door,
            "run.ended",
            r#"{"outcome":"completed"}"#,
            &mut out,
        );
        assert_eq!(
            take_events(&mut out),
            [
                r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#,
                r#"{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}"#,
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"b"}"#,
                r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#,
                r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}"#,
            ]
        );
    }

    #[test]
    fn clients_without_reasoning_support_get_none() {
        let thought = ThreadMessage {
            id: "m".to_owned(),
            content: MessageContent::Reasoning {
                content: "Hm.".to_owned(),
                encrypted: None,
            },
        };
        let snapshot = |profile: Option<&str>| {
            let door = AgUiEndpoint::new(AgUiEndpointConfig {
                profile: profile.map(str::to_owned),
                ..endpoint().config
            });
            let mut out = Vec::new();
            door.snapshot(std::slice::from_ref(&thought), &mut out);
            take_events(&mut out)
        };
        assert_eq!(
            snapshot(None),
            [
                r#"{"messages":[{"content":"Hm.","id":"m","role":"reasoning"}],"type":"MESSAGES_SNAPSHOT"}"#
            ]
        );
        let none = r#"{"messages":[],"type":"MESSAGES_SNAPSHOT"}"#;
        assert_eq!(snapshot(Some("thinking")), [none]);
    }

    #[test]
    fn a_run_ends_once() {
        let (mut door, mut out) = (endpoint(), Vec::new());
        door.begin(&mut out);
        door.fail("gone", "nothing came of it", &mut out);
        door.cancel(&mut out);
        write_event(
            &mut door,
            "run.ended",
            r#"{"outcome":"completed"}"#,
            &mut out,
        );
        assert_eq!(take_events(&mut out).len(), 2);
    }
}
