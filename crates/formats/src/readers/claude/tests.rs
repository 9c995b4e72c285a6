//! What Claude Code's lines become, one rule per test.

mod turns;
mod usage;
mod work;

use expect_test::Expect;
use model::End;
use serde_json::{Value, json};

use super::Claude;
use crate::readers::test_support::{exit, read_lines};
use crate::readers::{ReaderConfig, machine};

/// Reads lines of a process that exits with 0.
fn check(lines: &[Value], expect: Expect) {
    check_with(&ReaderConfig::default(), lines, &exit(0), expect);
}

fn check_with(config: &ReaderConfig, lines: &[Value], end: &End, expect: Expect) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expect.assert_eq(&read_lines(machine::<Claude>(config), &lines, end));
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "cwd": "/w"})
}

fn system(subtype: &str, mut fields: Value) -> Value {
    fields["type"] = json!("system");
    fields["subtype"] = json!(subtype);
    fields["session_id"] = json!("s1");
    fields
}

/// A line with one block of a model's response.
fn assistant(response: &str, block: Value) -> Value {
    json!({"type": "assistant", "session_id": "s1", "message": {"id": response, "content": [block]}})
}

fn text(response: &str, text: &str) -> Value {
    assistant(response, json!({"type": "text", "text": text}))
}

fn call(id: &str, name: &str, input: Value) -> Value {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    assistant("m1", block)
}

/// A user line with the result of a call.
fn output(call: &str, content: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": content});
    json!({"type": "user", "session_id": "s1", "message": {"content": [block]}})
}

/// The same for a call that failed, with what the agent notes about it.
fn failure(call: &str, content: &str, note: Value) -> Value {
    let mut line = output(call, content);
    line["message"]["content"][0]["is_error"] = json!(true);
    line["tool_result_meta"] = json!([note]);
    line
}

fn result(answer: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": answer, "session_id": "s1"})
}

/// Inside of the sub-agent of a call.
fn inside(call: &str, mut line: Value) -> Value {
    line["parent_tool_use_id"] = json!(call);
    line
}

/// A line to the agent, from a recording of both directions.
fn sent(line: Value) -> Value {
    json!({"dir": "in", "msg": line})
}

fn prompt(text: &str) -> Value {
    sent(json!({"type": "user", "message": {"role": "user", "content": text}}))
}
