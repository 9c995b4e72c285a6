//! What is approved is what runs: whatever an agent asks to run or change, in whatever directory, the
//! question shows it to the letter, in every target that shows questions.

use formats::convert::Converter;
use formats::registry::{find_reader, writer};
use formats::{ReaderConfig, WriterConfig, display_safe, visible};
use model::End;
use serde_json::{Value, json};

const ROUNDS: usize = 150;

/// Pieces of commands, hostile and harmless.
const PIECES: &[&str] = &[
    "rm -rf ",
    "/srv/app",
    "/srv/app/etc",
    "cd / && ",
    "bash -lc ",
    "/bin/bash -lc 'ls'",
    " -lc ",
    "; ",
    "echo \"a  b\"",
    "$(id)",
    "`id`",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\u{202e}",
    "\u{200b}",
    "\u{200d}",
    "\u{e0041}",
    "\u{2028}",
    "\u{85}",
    "\u{a0}",
    "\x1b[2K",
    "<b>",
    "&amp;",
    "*x*",
    "[a](b)",
    "_y_",
    "#",
    "\\u{202e}",
    "\\n",
    "'",
    "|",
    "~",
    "!",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "\u{6587}",
    "x",
    "--",
    "1.",
];
const DIRECTORIES: &[&str] = &["/srv/app", "/", "/srv", "/srv/app/", "x", ""];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn text(&mut self) -> String {
        let n = 1 + self.below(8);
        (0..n).map(|_| self.pick(PIECES)).collect()
    }
}

/// Streams of agents that ask to do `input` with a tool, and the formats they are in.
fn streams(tool: &Tool, cwd: &str) -> Vec<(&'static str, String)> {
    let input = &tool.input;
    let lines = |lines: &[Value]| lines.iter().map(|it| format!("{it}\n")).collect::<String>();
    let name = tool.name;
    let claude = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": cwd, "model": "m", "tools": []}),
        json!({"type": "assistant", "session_id": "s", "message": {"id": "m1", "content": [{"type": "tool_use", "id": "t1", "name": name, "input": input}]}}),
        json!({"type": "control_request", "request_id": "q", "request": {"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": "t1"}}),
    ];
    let call =
        json!({"toolCallId": "t1", "title": tool.own_title, "kind": tool.kind, "rawInput": input});
    let acp = |call: &Value| {
        let mut update = call.clone();
        update["sessionUpdate"] = "tool_call".into();
        [
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
            json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": {
                "toolCallId": "t1", "title": tool.own_title, "kind": tool.kind, "rawInput": input},
                "options": [{"optionId": "y", "name": "y", "kind": "allow_once"}]}}),
        ]
    };
    // Qwen says only in the question what a call is to do.
    let mut silent = call.clone();
    silent["rawInput"] = json!({});
    vec![
        ("claude", lines(&claude)),
        ("acp", lines(&acp(&call))),
        ("acp", lines(&acp(&silent))),
    ]
}

struct Tool {
    name: &'static str,
    kind: &'static str,
    own_title: &'static str,
    input: Value,
}

fn written(from: &str, to: &str, bytes: &str) -> String {
    let (format, reader) = find_reader(from).unwrap();
    let config = WriterConfig {
        live: true,
        ..WriterConfig::default()
    };
    let writer = writer(to, &config).unwrap();
    let reader = reader(&ReaderConfig::default());
    let mut converter = Converter::new(format.framing, reader, writer);
    let mut out = Vec::new();
    converter.push(bytes.as_bytes(), &mut out);
    converter.end(&End::default(), &mut out);
    String::from_utf8(out).unwrap()
}

/// What a person who sees the target reads, or a program that takes it apart.
fn titles(to: &str, out: &str) -> Vec<String> {
    let entities = |it: &str| {
        let it = it
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"");
        it.replace("&#39;", "'")
            .replace("&nbsp;", " ")
            .replace("&amp;", "&")
    };
    match to {
        "text" => out.lines().map(str::to_owned).collect(),
        // The page of a call has its command in a block, with its lines.
        "html" => vec![entities(out)],
        "markdown" => vec![out.to_owned(), entities(&unescaped(out))],
        _ => {
            let mut texts = Vec::new();
            for line in out.lines() {
                let json = line.strip_prefix("data: ").unwrap_or(line);
                if let Ok(value) = serde_json::from_str(json) {
                    gather(&value, &mut texts);
                }
            }
            texts
        }
    }
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|it| gather(it, texts)),
        Value::Object(map) => map.values().for_each(|it| gather(it, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

/// Markdown's own escapes taken back.
fn unescaped(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.chars().peekable();
    while let Some(it) = chars.next() {
        match chars.peek() {
            Some(next) if it == '\\' && next.is_ascii_punctuation() => text.extend(chars.next()),
            Some(_) | None => text.push(it),
        }
    }
    text
}

/// Every target shows the subject of the question to the letter; returns the question itself.
fn check_shown(from: &str, bytes: &str, subject: &str, cwd: &str) -> Value {
    let expected = visible(subject);
    for to in ["text", "markdown", "html", "acp", "ag-ui", "linkspan"] {
        let out = written(from, to, bytes);
        let texts = titles(to, &out);
        let block = display_safe(subject.trim());
        let is_page = matches!(to, "html" | "markdown");
        let has_block = |it: &String| is_page && it.contains(block.trim());
        assert!(
            (texts.iter()).any(|it| it.contains(&*expected) || has_block(it)),
            "{from} to {to} in `{cwd}`: {expected:?} is not shown in\n{out}\nof\n{bytes}",
        );
    }
    // The line that somebody decides by.
    let out = written(from, "linkspan", bytes);
    let asked = out
        .lines()
        .find(|it| it.contains("\"ask.opened\""))
        .unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let title = asked["data"]["title"].as_str().unwrap();
    assert!(title.contains(&*expected), "{title:?} has no {expected:?}");
    assert_eq!(visible(title), title, "nothing in it is hidden");
    asked
}

fn check(tool: &Tool, subject: &str, cwd: &str) {
    for (from, bytes) in streams(tool, cwd) {
        let asked = check_shown(from, &bytes, subject, cwd);
        let title = asked["data"]["title"].as_str().unwrap();
        assert_eq!(asked["data"]["input"], tool.input, "the whole is beside it");
        let out = written(from, "acp", &bytes);
        let request = out
            .lines()
            .find(|it| it.contains("request_permission"))
            .unwrap();
        let request: Value = serde_json::from_str(request).unwrap();
        let call = &request["params"]["toolCall"];
        assert_eq!(call["title"], title);
        assert_eq!(call["rawInput"], tool.input);
    }
}

#[test]
fn a_command_is_shown_to_the_letter() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut commands = vec![
        ("cd / && rm -rf /srv/app/etc".to_owned(), "/srv/app"),
        ("rm -rf /home; /bin/bash -lc ls".to_owned(), "/srv/app"),
        ("ls\nrm -rf /".to_owned(), ""),
    ];
    for _ in 0..ROUNDS {
        commands.push((random.text(), random.pick(DIRECTORIES)));
    }
    for (command, cwd) in commands {
        let tool = Tool {
            name: "Bash",
            kind: "execute",
            own_title: random.pick(&["run it", "ls", "bash", ""]),
            input: json!({ "command": command }),
        };
        check(&tool, &command, cwd);
    }
}

#[test]
fn a_path_is_shown_to_the_letter() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..ROUNDS {
        let path = format!(
            "{}{}",
            random.pick(&["/srv/app/", "/etc/", "../", "a"]),
            random.text()
        );
        let tool = Tool {
            name: "Edit",
            kind: "edit",
            own_title: random.pick(&["Edit", "Fix the bug", ""]),
            input: json!({ "file_path": path, "old_string": "a", "new_string": "b" }),
        };
        check(&tool, &path, random.pick(DIRECTORIES));
    }
}

/// What Codex and OpenCode say when they ask to run a command.
fn commands(command: &str, cwd: &str) -> [(&'static str, String); 2] {
    let codex = [
        json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u", "items": [], "status": "inProgress"}}}),
        json!({"method": "item/commandExecution/requestApproval", "id": 0, "params": {"threadId": "t", "turnId": "u", "itemId": "c", "command": command, "cwd": cwd}}),
    ];
    let opencode = json!({"type": "permission.asked", "properties": {"id": "per_1", "sessionID": "s", "permission": "bash", "patterns": ["ls *"], "metadata": {"command": command}}});
    let codex = codex.map(|it| format!("{it}\n")).concat();
    [("codex", codex), ("opencode", format!("{opencode}\n"))]
}

#[test]
fn codex_and_opencode_ask_for_what_they_run() {
    let mut random = Random(0x1405_7b7e_f767_814f);
    let mut cases = vec![
        ("/srv/evil/bash -lc ls".to_owned(), "/srv/evil"),
        ("cd / && rm -rf /srv/app/etc".to_owned(), "/srv/app"),
        ("/bin/bash -lc 'ls'".to_owned(), "/"),
    ];
    for _ in 0..ROUNDS {
        cases.push((random.text(), random.pick(DIRECTORIES)));
    }
    // What is nothing but blanks runs nothing, and is shown as a part of the input.
    cases.retain(|it| !it.0.trim().is_empty());
    for (command, cwd) in cases {
        for (from, bytes) in commands(&command, cwd) {
            let asked = check_shown(from, &bytes, &command, cwd);
            assert_eq!(asked["data"]["input"]["command"], command, "{from}");
        }
    }
}
