//! Claude Code's stream-json: an `init` before each turn and a `result` after it, results of calls that
//! were made, and pieces inside of their messages.

use serde_json::Value;

use super::Law;

impl Law {
    pub(super) fn claude(&mut self, message: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&message["type"]);
        let is_talk = matches!(&*kind, "assistant" | "user" | "stream_event" | "result");
        if is_talk && (!message["uuid"].is_string() || !message["session_id"].is_string()) {
            self.fail(&format!("{kind} without an id"));
        }
        if is_talk && !self.in_run {
            return self.fail(&format!("{kind} before its init"));
        }
        // Lines of a type that nobody knows are repeated, whatever is in them.
        let blocks = message["message"]["content"].as_array().filter(|_| is_talk);
        for block in blocks.into_iter().flatten() {
            let call = text(&block["tool_use_id"]);
            match block["type"].as_str().unwrap_or_default() {
                "tool_use" | "server_tool_use" if !self.used.insert(text(&block["id"])) => {
                    self.fail(&format!("the call {} is made twice", block["id"]));
                }
                it if it.ends_with("tool_result") && !self.used.contains(&call) => {
                    self.fail(&format!("the result of `{call}`, which was not called"));
                }
                _ => (),
            }
        }
        match &*kind {
            // It repeats within a turn.
            "system" if message["subtype"] == "init" && !self.in_run => self.start(),
            "stream_event" => self.stream_event(&message["event"]),
            "result" => self.end(),
            "" => self.fail("no type"),
            _ => (),
        }
    }

    fn stream_event(&mut self, event: &Value) {
        let block = format!("block {}", event["index"]);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.open("message".to_owned(), ""),
            "content_block_start" => {
                self.need("message");
                self.open(block, "");
            }
            "content_block_delta" => self.need(&block),
            "content_block_stop" => self.close(&block),
            "message_delta" => self.need("message"),
            "message_stop" => self.close("message"),
            other => self.fail(&format!("unknown stream event `{other}`")),
        }
    }
}
