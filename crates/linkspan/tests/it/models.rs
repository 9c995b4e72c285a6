//! `linkspan run --engine responses:NAME`: a model behind an endpoint, played by a script.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use scripted_model::{Scenario, Server};
use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, ran};

const CANARY: &str = "sk-canary-9b1f47d0";

struct World {
    folder: Folder,
    model: Server,
}

impl World {
    fn new(name: &str, turns: Value) -> Self {
        let scenario = json!({ "lanes": { "main": turns } }).to_string();
        let model = Server::start(Scenario::from_json(&scenario).unwrap()).unwrap();
        let folder = Folder::new(name);
        let endpoint = format!(
            "[engines.responses.local]\nbase_url = \"{}\"\nmodel = \"m1\"\napi_key_env = \"MODEL_KEY\"\nmax_retries = 0\n",
            model.url()
        );
        folder.file("config.toml", &endpoint);
        Self { folder, model }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let config = self.folder.path("config.toml");
        let output = linkspan(args)
            .args(["--config", &config])
            .env("LINKSPAN_DATA_DIR", self.folder.path("data"))
            .env("MODEL_KEY", CANARY)
            .output()
            .unwrap();
        ran(output)
    }

    fn requests(&self) -> Vec<Value> {
        let requests = self.model.requests();
        let bodies = requests.iter().map(|it| serde_json::from_str(&it.body));
        bodies.map(Result::unwrap).collect()
    }
}

/// The agent's own name for the session, and how the run ended.
fn session(lines: &str) -> (String, String) {
    let events = lines
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let mut found = (String::new(), String::new());
    for event in events {
        match event["type"].as_str() {
            Some("session.bound") => found.0 = event["data"]["native"].as_str().unwrap().to_owned(),
            Some("run.ended") => found.1 = event["data"]["outcome"].as_str().unwrap().to_owned(),
            _ => (),
        }
    }
    found
}

#[test]
fn a_model_answers_and_the_next_prompt_continues() {
    let answer = |text: &str| json!({ "blocks": [{ "text": text }] });
    let turns = json!([answer("one"), answer("two"), answer("three")]);
    let world = World::new("models-chain", turns);
    let run = ["run", "--engine", "responses:local", "--to", "linkspan"];
    let first = world.run(&[&run[..], &["first"]].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let (native, outcome) = session(&first.stdout);
    assert_eq!(outcome, "completed");
    for prompt in ["second", "third"] {
        let next = world.run(&[&run[..], &["--resume", &native, prompt]].concat());
        assert_eq!(next.code, Some(0), "{next:?}");
    }
    let requests = world.requests();
    let said = |text: &str| json!([{ "type": "message", "role": "user", "content": text }]);
    let inputs: Vec<Value> = requests.iter().map(|it| it["input"].clone()).collect();
    assert_eq!(inputs, [said("first"), said("second"), said("third")]);
    assert_eq!(requests[0].get("previous_response_id"), None);
    assert_eq!(requests[1]["previous_response_id"], native);
    assert_ne!(requests[2]["previous_response_id"], native);
    let sessions = world.run_plain(&["sessions", "--json"]);
    assert_eq!(sessions.stdout.lines().count(), 1, "{sessions:?}");
    assert!(!format!("{first:?}{sessions:?}").contains(CANARY));
}

impl World {
    /// A command that takes no config.
    fn run_plain(&self, args: &[&str]) -> Ran {
        let output = linkspan(args)
            .env("LINKSPAN_DATA_DIR", self.folder.path("data"))
            .output()
            .unwrap();
        ran(output)
    }
}

#[test]
fn a_conversation_has_one_name_at_its_provider() {
    let answer = |text: &str| json!({ "blocks": [{ "text": text }] });
    let turns = json!([answer("one"), answer("two"), answer("three")]);
    let world = World::new("models-openclaw", turns);
    let config = format!(
        "[engines.responses.claw]\nbase_url = \"{}\"\nprovider = \"openclaw\"\nmax_retries = 0\n",
        world.model.url()
    );
    world.folder.file("config.toml", &config);
    let run = ["run", "--engine", "responses:claw", "--to", "linkspan"];
    let first = world.run(&[&run[..], &["first"]].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let other = world.run(&[&run[..], &["unrelated"]].concat());
    assert_eq!(other.code, Some(0), "{other:?}");
    let (native, _) = session(&first.stdout);
    let next = world.run(&[&run[..], &["--resume", &native, "second"]].concat());
    assert_eq!(next.code, Some(0), "{next:?}");
    let requests = world.requests();
    let users: Vec<&str> = requests
        .iter()
        .map(|it| it["user"].as_str().unwrap())
        .collect();
    let [first, other, next] = users[..] else {
        panic!("{users:?}");
    };
    assert_eq!(first, next);
    assert_ne!(first, other);
    // It is the session that `linkspan sessions` lists.
    let sessions = world.run_plain(&["sessions", "--json"]);
    assert!(
        sessions.stdout.contains(&format!("\"id\":\"{first}\"")),
        "{sessions:?}"
    );
}

#[test]
fn an_editor_talks_with_a_model() {
    let answer = |text: &str| json!({ "blocks": [{ "text": text }] });
    let world = World::new("models-acp", json!([answer("one"), answer("two")]));
    let config = world.folder.path("config.toml");
    let mut child = linkspan(&["acp", "--engine", "responses:local", "--config", &config])
        .env("LINKSPAN_DATA_DIR", world.folder.path("data"))
        .env("MODEL_KEY", CANARY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").unwrap();
        let mut said = String::new();
        for line in lines.by_ref() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if message["id"] == id {
                return (message, said);
            }
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                said.push_str(update["content"]["text"].as_str().unwrap());
            }
        }
        panic!("no answer to {method}");
    };
    let (hello, _) = ask(1, "initialize", json!({"protocolVersion": 1}));
    let capabilities = &hello["result"]["agentCapabilities"]["promptCapabilities"];
    assert_eq!(capabilities["image"], false);
    let cwd = world.folder.path("");
    let (opened, _) = ask(2, "session/new", json!({"cwd": cwd, "mcpServers": []}));
    let id = opened["result"]["sessionId"].clone();
    let prompt = |text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    for (n, text, answer) in [(3, "first", "one"), (4, "second", "two")] {
        let (end, said) = ask(n, "session/prompt", prompt(text));
        assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
        assert!(end["result"]["usage"]["totalTokens"].is_u64(), "{end}");
        assert_eq!(said, answer);
    }
    drop(stdin);
    child.wait().unwrap();
    let requests = world.requests();
    let said = |text: &str| json!([{ "type": "message", "role": "user", "content": text }]);
    assert_eq!(requests[1]["input"], said("second"));
    assert!(
        requests[1]["previous_response_id"].is_string(),
        "{}",
        requests[1]
    );
}

#[test]
fn a_refused_key_fails_the_run_and_is_not_repeated() {
    let refused = json!([{ "status": 401, "message": format!("wrong key {CANARY}") }]);
    let world = World::new("models-401", refused);
    let ran = world.run(&["run", "--engine", "responses:local", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let shown = ran.shown();
    assert!(shown.contains("HTTP 401"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
}

#[test]
fn models_are_listed_and_their_secrets_are_not() {
    let world = World::new("models-list", json!([]));
    let engines = world.run(&["engines"]);
    let url = world.model.url();
    assert!(
        engines.stdout.contains(&format!("custom at {url}/")),
        "{engines:?}"
    );
    let config = world.run(&["config"]);
    assert!(
        config.stdout.contains("engines.responses.local.base_url"),
        "{config:?}"
    );
    assert!(!format!("{engines:?}{config:?}").contains(CANARY));
    let unknown = world.run(&["run", "--engine", "responses:other", "hello"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown
            .stderr
            .contains("the config has no endpoint `other`"),
        "{unknown:?}"
    );
}

#[test]
fn a_list_of_tools_is_refused_where_nothing_runs_them() {
    let world = World::new("models-lists", json!([{"blocks": [{"text": "Hi."}]}]));
    let refused = |engine: &str, what: &str| {
        format!(
            "linkspan: engine `{engine}` cannot run the tools that are allowed\n\n\
             hint: {what}: leave `--allow` out\nexit 2\n"
        )
    };
    for command in ["run", "acp"] {
        let args = [command, "--engine", "responses:local", "--allow", "shell"];
        let ran = world.run(&args);
        let what = "a model behind an endpoint runs no tools here";
        assert_eq!(ran.shown(), refused("responses", what), "{command}");
    }
    let ran = world.run(&["run", "--engine", "replay:tools", "--allow", "Bash"]);
    assert_eq!(ran.shown(), refused("replay", "a recording runs no tools"));
    assert_eq!(world.requests(), Vec::<Value>::new());
    // What may not run does not run.
    let ran = world.run(&[
        "run",
        "--engine",
        "responses:local",
        "--deny",
        "shell",
        "hi",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
}
