//! What is approved is what runs, at every entry point of the server: whatever command an agent asks to
//! run, an approver sees it to the letter.

use std::fs;
use std::path::Path;

use formats::{display_safe, visible};
use serde_json::{Value, json};

use crate::ag_ui;
use crate::test_server::{Socket, TestServer};

const ROUNDS: usize = 40;
/// Characters that the row of `thread` shows at least; the message beside it has all of it.
const SHOWN: usize = 1000;

/// Asks whatever the file `question` beside it says, and ends with any answer.
const AGENT: &str = r#"#!/bin/sh
while read -r line; do
  case $line in
  *'"type":"user"'*) cat "$(dirname "$0")/question" ;;
  *control_response*)
    echo '{"type":"result","subtype":"success","is_error":false,"session_id":"native-'$$'","result":"done"}'
    ;;
  esac
done
"#;

/// Pieces of commands, hostile and harmless; `CWD` is the directory that the agent works in.
const PIECES: &[&str] = &[
    "rm -rf ",
    "CWD",
    "CWD/etc",
    "cd / && ",
    "bash -lc ",
    "/bin/bash -lc 'ls'",
    "; ",
    "echo \"a  b\"",
    "$(id)",
    "`id`",
    "```\n",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\u{0}",
    "\u{7}",
    "\x1b[2K",
    "\u{202e}",
    "\u{200b}",
    "\u{e0041}",
    "\u{2028}",
    "\u{85}",
    "\u{a0}",
    "<b>",
    "&amp;",
    "[a](b)",
    "**x**",
    "\\u{202e}",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "\u{6587}",
    "x",
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn command(&mut self, cwd: &str) -> String {
        let n = 1 + self.below(10);
        let pieces = (0..n).map(|_| PIECES[self.below(PIECES.len())]);
        // The first word keeps it from being nothing but blanks.
        format!("true {}", pieces.collect::<String>()).replace("CWD", cwd)
    }
}

fn commands(cwd: &str) -> Vec<String> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut commands: Vec<String> = (0..ROUNDS).map(|_| random.command(cwd)).collect();
    commands.push(format!("cd / && rm -rf {cwd}/etc"));
    commands.push(format!("ls; {}", "x".repeat(20_000)));
    commands.push(format!("ls\n{}rm -rf /", "\n".repeat(300)));
    commands
}

fn question(command: &str) -> String {
    let input = json!({ "command": command });
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": [] }),
        json!({ "type": "assistant", "session_id": "s", "message": { "id": "m", "role": "assistant",
            "content": [{ "type": "tool_use", "id": "t", "name": "Bash", "input": input }] } }),
        json!({ "type": "control_request", "request_id": "q", "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": "t",
        } }),
    ];
    lines.map(|it| format!("{it}\n")).concat()
}

fn agent(dir: &Path) {
    // Its rights are those of the one that is there.
    fs::write(dir.join("agent"), AGENT).unwrap();
}

/// A title shows the whole command, and nothing in it is hidden.
fn check_title(title: &Value, command: &str, place: &str) {
    let title = title
        .as_str()
        .unwrap_or_else(|| panic!("{place}: no title"));
    let shown = visible(command);
    assert!(
        title.contains(&*shown),
        "{place}: {title:?} has no {shown:?}"
    );
    assert_eq!(visible(title), title, "{place}");
}

/// The row and the message that a client of `thread` gets.
async fn check_bridge(socket: &mut Socket, session: &str, command: &str) {
    let is_row = |it: &Value| {
        it["type"] == "item.started" && it["item"]["id"].as_str().unwrap_or("").starts_with("ask_")
    };
    let mut row = None;
    loop {
        let message = socket.next().await.expect("the server hung up");
        if message["sessionId"] != session {
            continue;
        }
        if is_row(&message) {
            row = message["item"]["text"].as_str().map(str::to_owned);
        }
        if message["type"] == "bridge.ask" {
            assert_eq!(message["command"], command);
            assert_eq!(message["input"], json!({ "command": command }));
            check_title(&message["title"], command, "bridge.ask");
            break;
        }
    }
    let row = row.expect("there is a row before the message");
    let shown: String = display_safe(command).chars().take(SHOWN).collect();
    assert!(row.contains(&shown), "{row:?} has no {shown:?}");
    assert_eq!(display_safe(&row), row, "nothing in it is hidden");
}

#[tokio::test]
async fn a_command_is_shown_to_the_letter_at_every_entry_point() {
    let test_server = TestServer::with(|it| agent(it.data_dir.parent().unwrap())).await;
    let dir = test_server.dir.path().canonicalize().unwrap();
    let mut app = test_server.socket("", "watch").await;
    for (n, command) in commands(dir.to_str().unwrap()).iter().enumerate() {
        fs::write(dir.join("question"), question(command)).unwrap();
        let mut input = ag_ui::input(&format!("t{n}"), "r", json!([ag_ui::user("1", "go")]));
        input["forwardedProps"] = json!({ "linkspan": { "cwd": dir } });

        // The stream of an AG-UI client ends with the question.
        let events = test_server.run("claude", &input).await;
        let interrupt = &ag_ui::end(&events)["outcome"]["interrupts"][0];
        check_title(&interrupt["message"], command, "AG-UI");
        let asked = json!({ "command": command });
        assert_eq!(interrupt["metadata"]["linkspan"]["input"], asked);

        // The list of questions, that of the session, and its stored event.
        let asks = test_server.get("/api/asks").await.json();
        let ask = &asks["asks"][0];
        check_title(&ask["data"]["title"], command, "GET /api/asks");
        assert_eq!(ask["data"]["input"], asked);
        let session = ask["session"].as_str().unwrap();
        let detail = test_server
            .get(&format!("/api/sessions/{session}"))
            .await
            .json();
        assert_eq!(detail["asks"], asks["asks"]);
        let events = test_server
            .get(&format!("/api/sessions/{session}/events"))
            .await;
        let event = events.body.lines().find(|it| it.contains("\"ask.opened\""));
        let event: Value = serde_json::from_str(event.unwrap()).unwrap();
        assert_eq!(event["data"], ask["data"]);

        check_bridge(&mut app, session, command).await;
        let path = format!("/api/asks/{}", ask["id"].as_str().unwrap());
        let answered = test_server
            .post(&path, &json!({ "decision": "deny" }))
            .await;
        assert_eq!(answered.status, 200, "{answered:?}");
        test_server.ended(session, 1).await;
    }
    test_server.stop().await;
}
