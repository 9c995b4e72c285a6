//! `linkspan acp` as a client meets it: lines in, lines out, and nothing but messages.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine};

/// Speaks Claude Code's side of a conversation: what the prompt says is what it does.
const CLAUDE: &str = r#"
PATH=/usr/bin:/bin
echo $$ >> "$HOME/pids"
n=0
init() { echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w","permissionMode":"default","slash_commands":["compact"]}'; }
say() { echo '{"type":"assistant","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s-1"}'; }
result() { echo '{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"s-1"}'; }
while read -r line; do
  n=$((n+1))
  case $line in
    *'"initialize"'*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"commands":[{"name":"compact","description":"Free up context","argumentHint":"[focus]"}],"models":[{"value":"opus","displayName":"Opus","description":"the best"}]}}}';;
    *'"interrupt"'*) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s-1"}';;
    *'"control_response"'*) printf "%s\n" "$line" >> "$HOME/answers"; say Answered.; result;;
    *hang*) init; say Working.;;
    *'ask me'*) init
      echo '{"type":"assistant","message":{"id":"m-'$n'","role":"assistant","content":[{"type":"tool_use","id":"t-'$n'","name":"Bash","input":{"command":"ls"}}]},"session_id":"s-1"}'
      echo '{"type":"control_request","request_id":"q-'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t-'$n'"}}';;
    *die*) init; exit 3;;
    *'"user"'*) init; printf "%s\n" "$line" >> "$HOME/prompts"; say Hello.; result;;
  esac
done
"#;

fn made(name: &str) -> Folder {
    let folder = machine(name, &[("claude", CLAUDE)], "interrupt_grace = 1\n");
    fs::create_dir_all(folder.path("work")).unwrap();
    folder
}

struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<Value>,
    n_asked: u64,
    /// What came while an answer was waited for.
    heard: Vec<Value>,
}

impl Client {
    fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut command = linkspan(&["acp", "--engine", "claude"]);
        Self::started(command.args(args), folder)
    }

    fn started(command: &mut Command, folder: &Folder) -> Self {
        let mut child = command
            .env_clear()
            .env("PATH", folder.path("bin"))
            .env("HOME", folder.path(""))
            // What root is offered does not depend on who runs the tests.
            .env("IS_SANDBOX", "1")
            .env("XDG_CONFIG_HOME", folder.path("config"))
            .current_dir(folder.path("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tx, said) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
                assert_eq!(message["jsonrpc"], "2.0", "{message}");
                if tx.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            said,
            n_asked: 0,
            heard: Vec::new(),
        }
    }

    /// One that has said hello.
    fn ready(folder: &Folder, args: &[&str]) -> Self {
        let mut client = Self::new(folder, args);
        client.ask("initialize", json!({"protocolVersion": 1}));
        client
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    fn next(&self) -> Value {
        let wait = Duration::from_secs(30);
        self.said.recv_timeout(wait).expect("nothing is said")
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.n_asked += 1;
        let id = self.n_asked;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&message.to_string());
        id
    }

    fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&message.to_string());
    }

    /// Waits for the answer to a request; all else is kept.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn new_session(&mut self, folder: &Folder) -> String {
        let params = json!({"cwd": folder.path("work"), "mcpServers": []});
        let answer = self.ask("session/new", params);
        let id = answer["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Waits until this is among the updates.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Closes stdin; the exit code.
    fn leave(mut self) -> i32 {
        drop(self.stdin.take());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it stays");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The updates of a run as short lines.
fn shown(messages: &[Value], session: &str) -> String {
    let mut text = String::new();
    for message in messages {
        let line = match message["params"].get("update") {
            Some(update) => update.to_string(),
            None => message.to_string(),
        };
        text.push_str(&line.replace(session, "SESSION"));
        text.push('\n');
    }
    text
}

fn check(messages: &[Value], session: &str, expect: Expect) {
    expect.assert_eq(&shown(messages, session));
}

#[test]
fn a_client_is_told_what_the_agent_can_do_and_says() {
    let folder = made("acp-whole");
    let mut client = Client::new(&folder, &[]);
    let hello = client.ask("initialize", json!({"protocolVersion": 99}));
    let mut hello = hello["result"].clone();
    hello["agentInfo"]["version"] = Value::from("V");
    expect![[r#"{"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true,"sse":true},"promptCapabilities":{"audio":false,"embeddedContext":true,"image":true},"sessionCapabilities":{"close":{},"delete":{},"fork":{},"list":{},"resume":{}}},"agentInfo":{"name":"linkspan","title":"linkspan (claude)","version":"V"},"authMethods":[{"description":"run `claude /login` in a terminal, then try again","id":"claude-login","name":"Log in with claude"}],"protocolVersion":1}"#]].assert_eq(&hello.to_string());
    let session = client.new_session(&folder);
    client.until(|it| it["params"]["update"]["sessionUpdate"] == "config_option_update");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    for message in &mut client.heard {
        if let Some(id) = message["params"]["update"].get_mut("messageId") {
            *id = Value::from("ID");
        }
    }
    check(
        &client.heard,
        &session,
        expect![[r#"
        {"availableCommands":[{"description":"Free up context","input":{"hint":"[focus]"},"name":"compact"}],"sessionUpdate":"available_commands_update"}
        {"configOptions":[{"category":"mode","currentValue":"default","id":"mode","name":"Permissions","options":[{"description":"asks before it changes files or runs commands","name":"Ask","value":"default"},{"description":"changes files without asking, and asks for the rest","name":"Accept edits","value":"acceptEdits"},{"description":"looks and plans, and changes nothing","name":"Plan","value":"plan"},{"description":"never asks; what was not allowed beforehand is denied","name":"Deny","value":"dontAsk"},{"description":"never asks, and may do anything","name":"Allow everything","value":"bypassPermissions"}],"type":"select"},{"category":"model","currentValue":"default","id":"model","name":"Model","options":[{"name":"Default","value":"default"},{"description":"the best","name":"Opus","value":"opus"}],"type":"select"},{"category":"thought_level","currentValue":"default","id":"effort","name":"Effort","options":[{"name":"Default","value":"default"},{"name":"low","value":"low"},{"name":"medium","value":"medium"},{"name":"high","value":"high"},{"name":"xhigh","value":"xhigh"},{"name":"max","value":"max"}],"type":"select"}],"sessionUpdate":"config_option_update"}
        {"sessionUpdate":"session_info_update","title":"hello"}
        {"content":{"text":"Hello.","type":"text"},"messageId":"ID","sessionUpdate":"agent_message_chunk"}
    "#]],
    );
    assert_eq!(client.leave(), 0);
}

#[test]
fn what_the_user_decides_reaches_the_agent() {
    let folder = made("acp-asks");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    for option in ["allow", "reject"] {
        let prompt = client.prompt(&session, "ask me");
        let request = client.until(|it| it["method"] == "session/request_permission");
        assert_eq!(
            request["params"]["toolCall"]["rawInput"],
            json!({"command": "ls"})
        );
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome});
        client.write(&answer.to_string());
        let answer = client.answer(prompt);
        assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    }
    let answers = fs::read_to_string(folder.path("answers")).unwrap();
    let answers: Vec<Value> = answers
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["response"]["response"].take())
        .collect();
    let expected = [
        json!({"behavior": "allow", "updatedInput": {"command": "ls"}}),
        json!({"behavior": "deny", "message": "the user rejected it"}),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn rules_and_modes_answer_without_the_user() {
    let folder = made("acp-rules");
    let mut client = Client::ready(&folder, &["--allow", "Bash"]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "ask me");
    client.answer(prompt);
    let asked = client.heard.iter().filter(|it| it.get("id").is_some());
    assert_eq!(asked.count(), 0);
    let mode = json!({"sessionId": session, "modeId": "nonsense"});
    let refused = client.ask("session/set_mode", mode);
    assert_eq!(
        refused["error"]["message"],
        "there is no mode `nonsense` to choose"
    );
    let effort = json!({"sessionId": session, "configId": "effort", "value": "high"});
    let options = client.ask("session/set_config_option", effort);
    let options = options["result"]["configOptions"]
        .as_array()
        .unwrap()
        .clone();
    let values: Vec<&Value> = options.iter().map(|it| &it["currentValue"]).collect();
    assert_eq!(values, ["default", "default", "high"]);
}

#[test]
fn a_cancelled_turn_ends_as_cancelled_and_the_next_one_works() {
    let folder = made("acp-cancel");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    // There is nothing to cancel yet.
    client.notify("session/cancel", json!({"sessionId": session}));
    let hanging = client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    let second = client.prompt(&session, "hello");
    let refused = client.answer(second);
    let message = "the session is at work on a prompt; cancel it or wait for its end";
    assert_eq!(
        refused["error"],
        json!({"code": -32600, "message": message})
    );
    client.notify("session/cancel", json!({"sessionId": session}));
    let cancelled = client.answer(hanging);
    assert_eq!(cancelled["result"], json!({"stopReason": "cancelled"}));
    let asked = client.prompt(&session, "ask me");
    client.until(|it| it["method"] == "session/request_permission");
    client.notify("$/cancel_request", json!({"requestId": asked}));
    let cancelled = client.answer(asked);
    assert_eq!(cancelled["result"], json!({"stopReason": "cancelled"}));
    let third = client.prompt(&session, "hello");
    let answer = client.answer(third);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn a_session_is_loaded_as_it_was_seen() {
    let folder = made("acp-load");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    for text in ["hello", "die", "hello"] {
        let prompt = client.prompt(&session, text);
        client.answer(prompt);
    }
    let is_told = |it: &&Value| {
        let kind = &it["params"]["update"]["sessionUpdate"];
        !matches!(
            kind.as_str(),
            Some("session_info_update" | "config_option_update" | "available_commands_update")
        )
    };
    let live = std::mem::take(&mut client.heard);
    let live: Vec<&Value> = live.iter().filter(is_told).collect();
    assert_eq!(client.leave(), 0);

    let mut client = Client::ready(&folder, &[]);
    let listed = client.ask("session/list", json!({"cwd": folder.path("work")}));
    let [listed] = &**listed["result"]["sessions"].as_array().unwrap() else {
        panic!("{listed}")
    };
    assert_eq!(listed["sessionId"], session);
    assert_eq!(listed["title"], "hello");
    let elsewhere = client.ask("session/list", json!({"cwd": "/elsewhere"}));
    assert_eq!(elsewhere["result"], json!({"sessions": []}));
    let old = json!({"sessionId": session, "cwd": folder.path("work"), "mcpServers": []});
    let loaded = client.ask("session/load", old.clone());
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "default");
    let told = std::mem::take(&mut client.heard);
    let user = |it: &&Value| it["params"]["update"]["sessionUpdate"] == "user_message_chunk";
    let prompts: Vec<&Value> = told
        .iter()
        .filter(user)
        .map(|it| &it["params"]["update"]["content"]["text"])
        .collect();
    assert_eq!(prompts, ["hello", "die", "hello"]);
    let told: Vec<&Value> = told.iter().filter(is_told).filter(|it| !user(it)).collect();
    assert_eq!(told, live);
    // It goes on.
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));

    // Somebody else cannot have it meanwhile, and resuming tells nothing.
    let mut other = Client::ready(&folder, &[]);
    let busy = other.ask("session/load", old.clone());
    assert_eq!(
        busy["error"]["message"],
        format!("session `{session}` is in use")
    );
    let closed = client.ask("session/close", json!({"sessionId": session}));
    assert_eq!(closed["result"], json!({}));
    let resumed = other.ask("session/resume", old);
    assert_eq!(resumed["result"]["modes"]["currentModeId"], "default");
    assert_eq!(other.heard, [] as [Value; 0]);

    // One that is removed is not there any more.
    let deleted = other.ask("session/delete", json!({"sessionId": session}));
    assert_eq!(deleted["result"], json!({}));
    let listed = other.ask("session/list", json!({}));
    assert_eq!(listed["result"], json!({"sessions": []}));
}

#[test]
fn an_agent_that_dies_is_an_error_and_the_next_prompt_starts_another() {
    let folder = made("acp-dies");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "die");
    let answer = client.answer(prompt);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn bad_clients_get_errors_and_hold_nobody_up() {
    let folder = made("acp-bad");
    let mut client = Client::new(&folder, &[]);
    let early = client.ask("session/list", json!({}));
    assert_eq!(
        early["error"],
        json!({"code": -32600, "message": "say `initialize` first"})
    );
    let wrong = client.ask("initialize", json!({"protocolVersion": "one"}));
    assert_eq!(wrong["error"]["code"], -32602);
    client.ask(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": null}),
    );
    let session = client.new_session(&folder);
    let cwd = folder.path("work");
    let relative = "cwd `work` is not absolute";
    let nowhere = "cwd `/nowhere/at/all` is no directory";
    let cases = [
        ("nonsense", json!({}), -32601, "unknown method `nonsense`"),
        ("session/new", json!({}), -32602, "missing field `cwd`"),
        (
            "session/new",
            json!({"cwd": "work", "mcpServers": []}),
            -32602,
            relative,
        ),
        (
            "session/new",
            json!({"cwd": "/nowhere/at/all", "mcpServers": []}),
            -32602,
            nowhere,
        ),
        (
            "session/new",
            json!([]),
            -32602,
            "invalid length 0, expected struct NewSession with 2 elements",
        ),
        (
            "session/load",
            json!({"sessionId": "x", "cwd": cwd, "mcpServers": []}),
            -32002,
            "no session is called `x`",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": "hi"}),
            -32602,
            "invalid type: string \"hi\", expected a sequence",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
            -32602,
            "the prompt is empty",
        ),
        (
            "session/prompt",
            json!({"sessionId": "x", "prompt": [{"type": "text", "text": "hi"}]}),
            -32002,
            "no session is called `x`",
        ),
        (
            "session/set_mode",
            json!({"sessionId": "x", "modeId": "plan"}),
            -32002,
            "no session is called `x`",
        ),
        (
            "session/close",
            json!({"sessionId": "x"}),
            -32002,
            "no session is called `x`",
        ),
        (
            "session/list",
            json!({"cursor": "x"}),
            -32602,
            "the cursor is none of ours",
        ),
        (
            "authenticate",
            json!({"methodId": "x"}),
            -32602,
            "unknown method `x`",
        ),
    ];
    for (method, params, code, message) in cases {
        let answer = client.ask(method, params);
        assert_eq!(
            answer["error"],
            json!({"code": code, "message": message}),
            "{method}"
        );
    }
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("{\"id\":[]}", -32600),
        ("\u{feff}hi", -32700),
    ] {
        client.write(line);
        let answer = client.until(|it| it["id"].is_null() && it.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    // Nobody answers these, and nothing breaks.
    client.notify("nonsense", json!({}));
    client.notify("session/cancel", json!({"sessionId": "x"}));
    client.write(r#"{"jsonrpc":"2.0","id":"x/y","result":{}}"#);
    client.write("");
    let long = "a".repeat(50 << 20);
    let prompt = client.prompt(&session, &long);
    let answer = client.answer(prompt);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn a_client_that_goes_away_takes_the_agent_with_it() {
    let folder = made("acp-gone");
    let mut client = Client::ready(&folder, &["--stats"]);
    let session = client.new_session(&folder);
    client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    assert_eq!(client.leave(), 0);
    let pids = fs::read_to_string(folder.path("pids")).unwrap();
    let is_there = |it: &&str| fs::exists(format!("/proc/{it}")).unwrap();
    assert_eq!(pids.lines().filter(is_there).count(), 0, "{pids}");
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let folder = made("acp-none");
    fs::remove_file(folder.path("bin/claude")).unwrap();
    let mut client = Client::ready(&folder, &[]);
    let params = json!({"cwd": folder.path("work"), "mcpServers": []});
    let answer = client.ask("session/new", params);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("npm install -g @anthropic-ai/claude-code"),
        "{message}"
    );
}

#[test]
fn images_and_embedded_files_reach_the_agent() {
    let folder = made("acp-images");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource", "resource": {"uri": "file:///w/a.txt", "text": "A"}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    ]);
    client.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    let said = fs::read_to_string(folder.path("prompts")).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    let text =
        "look at [a.txt](file:///w/a.txt)\n\n<context ref=\"file:///w/a.txt\">\nA\n</context>";
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let expected = json!([{"type": "image", "source": source}, {"type": "text", "text": text}]);
    assert_eq!(said["message"]["content"], expected);
}
