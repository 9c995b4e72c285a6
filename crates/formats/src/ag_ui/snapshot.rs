//! A snapshot of a thread for clients that join late, bounded in size.
//!
//! `@ag-ui/client` 1.0.0 refuses an event of more than 10 MiB, and then the whole thread. So what tools
//! have answered is cut, and what is oldest is left out.

use std::collections::HashSet;

use model::{MessageContent, ThreadMessage};
use serde_json::Value;

use super::messages::to_json;

/// Bytes of all messages, as JSON.
const MAX_ALL: usize = 4 << 20;
/// Bytes of what a tool has answered: enough to see what it was.
const MAX_RESULT: usize = 16 << 10;
/// Bytes of any other text.
const MAX_TEXT: usize = 256 << 10;

/// The snapshot of a thread.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) messages: Vec<Value>,
    /// Something was left out.
    pub(crate) is_cut: bool,
}

impl Snapshot {
    pub(crate) fn of<'a>(messages: impl DoubleEndedIterator<Item = &'a ThreadMessage>) -> Self {
        let (mut kept, mut is_cut, mut n_bytes) = (Vec::new(), false, 0);
        // Newest first: those are what a client joins for.
        for message in messages.rev() {
            let mut json = to_json(message);
            is_cut |= shorten(message, &mut json);
            // With the comma behind it.
            n_bytes += json.to_string().len() + 1;
            if n_bytes > MAX_ALL {
                is_cut = true;
                break;
            }
            kept.push((message, json));
        }
        kept.reverse();
        Self {
            messages: answers_of_calls(kept),
            is_cut,
        }
    }
}

/// Results without a call in the snapshot are omitted: clients cannot place them.
fn answers_of_calls(kept: Vec<(&ThreadMessage, Value)>) -> Vec<Value> {
    let mut calls = HashSet::new();
    let mut messages = Vec::with_capacity(kept.len());
    for (message, json) in kept {
        match &message.content {
            MessageContent::Assistant { tool_calls, .. } => {
                calls.extend(tool_calls.iter().map(|it| it.id.as_str()));
            }
            MessageContent::Tool { call, .. } if !calls.contains(call.as_str()) => continue,
            MessageContent::Tool { .. }
            | MessageContent::Instructions(_)
            | MessageContent::User(_)
            | MessageContent::Reasoning { .. }
            | MessageContent::Activity => (),
        }
        messages.push(json);
    }
    messages
}

/// True when something was left out of a message.
fn shorten(message: &ThreadMessage, json: &mut Value) -> bool {
    let max = match &message.content {
        MessageContent::Tool { .. } => MAX_RESULT,
        MessageContent::Instructions(_)
        | MessageContent::User(_)
        | MessageContent::Assistant { .. }
        | MessageContent::Reasoning { .. }
        | MessageContent::Activity => MAX_TEXT,
    };
    let mut is_cut = false;
    for name in ["content", "error"] {
        if let Some(Value::String(text)) = json.get_mut(name) {
            is_cut |= cut(text, max);
        }
    }
    // Half of either is worse than none: one is JSON, the other one is sealed.
    let calls = json.get_mut("toolCalls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        if let Value::String(arguments) = &mut call["function"]["arguments"]
            && arguments.len() > MAX_TEXT
        {
            "{}".clone_into(arguments);
            is_cut = true;
        }
    }
    let sealed = json.get("encryptedValue").and_then(Value::as_str);
    if sealed.is_some_and(|it| it.len() > MAX_TEXT)
        && let Some(message) = json.as_object_mut()
    {
        message.remove("encryptedValue");
        is_cut = true;
    }
    is_cut
}

fn cut(text: &mut String, max: usize) -> bool {
    let n_left = text.len().saturating_sub(max);
    if n_left == 0 {
        return false;
    }
    text.truncate(text.floor_char_boundary(max));
    text.push_str(&format!("\n… {n_left} bytes more"));
    true
}

#[cfg(test)]
mod tests {
    use model::{Content, ToolCall};

    use super::*;

    fn message(id: &str, content: MessageContent) -> ThreadMessage {
        ThreadMessage {
            id: id.to_owned(),
            content,
        }
    }

    fn call(id: &str) -> ThreadMessage {
        let call = ToolCall {
            id: id.to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
        };
        let content = MessageContent::Assistant {
            content: None,
            tool_calls: vec![call],
        };
        message(&format!("{id}:call"), content)
    }

    fn result(id: &str, text: String) -> ThreadMessage {
        let content = MessageContent::Tool {
            call: id.to_owned(),
            content: Content::Text(text),
            error: None,
        };
        message(id, content)
    }

    fn user(id: &str, n_bytes: usize) -> ThreadMessage {
        message(id, MessageContent::User(Content::Text("x".repeat(n_bytes))))
    }

    #[test]
    fn a_snapshot_that_fits_is_unchanged() {
        let messages = [user("1", 10), call("c"), result("c", "ok".to_owned())];
        let snapshot = Snapshot::of(messages.iter());
        let whole = messages.iter().map(to_json).collect();
        let expected = Snapshot {
            messages: whole,
            is_cut: false,
        };
        assert_eq!(snapshot, expected);
    }

    #[test]
    fn tool_results_are_truncated_at_a_character_boundary() {
        let messages = [call("c"), result("c", "ä".repeat(MAX_RESULT))];
        let snapshot = Snapshot::of(messages.iter());
        let expected = format!("{}\n… {MAX_RESULT} bytes more", "ä".repeat(MAX_RESULT / 2));
        assert_eq!(snapshot.messages[1]["content"], expected);
        assert!(snapshot.is_cut);
    }

    #[test]
    fn the_oldest_is_left_out() {
        let messages: Vec<ThreadMessage> =
            (0..20).map(|n| user(&n.to_string(), MAX_TEXT)).collect();
        let snapshot = Snapshot::of(messages.iter());
        let newest: Vec<Value> = messages[5..].iter().map(to_json).collect();
        let expected = Snapshot {
            messages: newest,
            is_cut: true,
        };
        assert_eq!(snapshot, expected);
    }

    #[test]
    fn no_answer_stands_without_its_call() {
        let messages = [
            result("old", "late".to_owned()),
            call("c"),
            result("c", "ok".to_owned()),
        ];
        let kept = messages.iter().map(|it| (it, to_json(it))).collect();
        let expected: Vec<Value> = messages[1..].iter().map(to_json).collect();
        assert_eq!(answers_of_calls(kept), expected);
    }
}
