//! A `linkspan run` that has ended, and what must be true of each.

use std::fmt::Write;

use serde_json::Value;

pub(crate) struct FinishedRun {
    pub(crate) prompt: String,
    pub(crate) code: Option<i32>,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl FinishedRun {
    /// Sees that it ended in this way, with one end, one prompt, and no gap in its numbers.
    pub(crate) fn ended(&self, outcome: &str, code: i32) -> &Self {
        let numbers: Vec<u64> = self
            .events
            .iter()
            .map(|it| it["seq"].as_u64().unwrap_or(0))
            .collect();
        // A session that is resumed goes on counting.
        let first = numbers.first().copied().unwrap_or(1);
        let expected: Vec<u64> = (first..).take(numbers.len()).collect();
        assert_eq!(numbers, expected, "the numbers of the events have a gap");
        let ends: Vec<&str> = self
            .of("run.ended")
            .map(|it| text(&it["outcome"]))
            .collect();
        assert_eq!((ends, self.code), (vec![outcome], Some(code)));
        // A process may still say something on stderr while it goes.
        let of_the_run = |it: &&Value| !it["run"].is_null();
        let last = self.events.iter().rfind(of_the_run);
        let last = last.map(|it| text(&it["type"]));
        assert_eq!(last, Some("run.ended"), "something follows the end");
        let prompts: Vec<&str> = self.messages("user").collect();
        assert!(
            prompts == [self.prompt.as_str()],
            "not the prompt, once: {} messages",
            prompts.len()
        );
        self
    }

    /// The data of all events of this type.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let events = self.events.iter().filter(move |it| it["type"] == kind);
        events.map(|it| &it["data"])
    }

    pub(crate) fn end(&self) -> &Value {
        self.of("run.ended").last().unwrap_or(&Value::Null)
    }

    pub(crate) fn answer(&self) -> &str {
        text(&self.end()["answer"])
    }

    /// What the one end says went wrong.
    pub(crate) fn error(&self) -> &str {
        text(&self.end()["error"]["message"])
    }

    /// The agent's own id of the session.
    pub(crate) fn session(&self) -> &str {
        let bound = self.of("session.bound").last();
        let native = bound.map(|it| text(&it["native"])).unwrap_or_default();
        assert_ne!(native, "", "the session has no id");
        native
    }

    /// What was said by the user or the agent itself, not by its sub-agents.
    fn messages(&self, role: &str) -> impl Iterator<Item = &str> {
        let root = self.events.iter().filter(|it| it["path"].is_null());
        let closed = root.filter(|it| it["type"] == "item.closed");
        let items = closed.map(|it| &it["data"]["item"]);
        items
            .filter(move |it| it["kind"] == "message" && it["role"] == role)
            .map(|it| text(&it["text"]))
    }

    /// All calls of tools, as they ended: status and item.
    pub(crate) fn calls(&self) -> Vec<(&str, &Value)> {
        let closed = self
            .of("item.closed")
            .filter(|it| it["item"]["kind"] == "tool");
        closed
            .map(|it| (text(&it["status"]), &it["item"]))
            .collect()
    }

    pub(crate) fn shown(&self) -> String {
        let mut shown = String::new();
        for event in &self.events {
            let line: String = event.to_string().chars().take(2_000).collect();
            writeln!(shown, "{line}").unwrap();
        }
        let code = self.code.map_or("a signal".to_owned(), |it| it.to_string());
        writeln!(shown, "stderr: {}\nexit {code}\n", self.stderr.trim()).unwrap();
        shown
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
