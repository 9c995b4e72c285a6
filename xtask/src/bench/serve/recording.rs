//! A session of Codex in which every line becomes one event in every format: commands, one after the
//! other, each begun and ended.

use serde_json::{Value, json};

/// As many lines as there are to be events; the frame around them is a handful more.
pub(super) fn codex(n_events: usize) -> String {
    let first = [
        json!({"type": "thread.started", "thread_id": "01991a2b-0000-7000-8000-000000000000"}),
        json!({"type": "turn.started"}),
    ];
    let last = json!({"type": "turn.completed", "usage": {
        "input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 100,
    }});
    let calls = (0..n_events.div_ceil(2)).flat_map(call);
    let lines = first.into_iter().chain(calls).chain([last]);
    lines.map(|it| format!("{it}\n")).collect()
}

fn call(n: usize) -> [Value; 2] {
    let command = format!("grep -rn 'fn main' crates/part-{n}/src");
    let item = |output: String, exit_code: Option<i32>, status: &str| {
        json!({
            "id": format!("item_{n}"), "type": "command_execution", "command": command,
            "aggregated_output": output, "exit_code": exit_code, "status": status,
        })
    };
    let output = format!("crates/part-{n}/src/main.rs:12:fn main() -> ExitCode {{\n").repeat(4);
    [
        json!({"type": "item.started", "item": item(String::new(), None, "in_progress")}),
        json!({"type": "item.completed", "item": item(output, Some(0), "completed")}),
    ]
}
