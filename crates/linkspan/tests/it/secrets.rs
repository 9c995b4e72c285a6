//! Keys in the environment stay there, also when an agent prints them.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use scripted_model::{Scenario, Server};
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran, run};
use crate::served::{Served, serve};

/// Each is known by its value, wherever it turns up.
const CANARIES: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "canary-anthropic-0001"),
    ("OPENAI_API_KEY", "canary-openai-0002"),
    ("GEMINI_API_KEY", "canary-gemini-0003"),
    ("LINKSPAN_TOKEN", "canary-linkspan-0123456789abcdef-0004"),
    ("GITHUB_TOKEN", "canary-github-0005"),
    ("AWS_SECRET", "canary-aws-0006"),
    ("DB_PASSWORD", "canary-db-0007"),
    ("lower_case_token", "canary-lower-0008"),
    ("GITHUB_PAT", "canary-pat-0013"),
    ("SENTRY_DSN", "https://canary-0014@sentry.io/1"),
    ("CLOUD_CREDENTIALS", "canary-credentials-0015"),
    ("DATABASE_URL", "postgres://app:canary-0016@db:5432/x"),
    // No variable of these would be known by its name.
    ("UNKNOWN_1", "sk-canary-0123456789-0017"),
    ("UNKNOWN_2", "ghp_canary0123456789abcdef0018"),
    ("UNKNOWN_3", "xoxb-canary-0123456789-0019"),
    (
        "UNKNOWN_4",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.canary0020",
    ),
];
/// One that only the config knows.
const CONFIGURED: &str = "canary-configured-0009";
/// The secrets of an endpoint: its key, a header, and OpenClaw's session.
const ENDPOINT: [&str; 3] = [
    "canary-endpoint-key-0010",
    "canary-endpoint-header-0011",
    "canary-endpoint-session-0012",
];

/// A machine with an agent that says every key it was ever told on stderr, and fails.
fn leaky(name: &str) -> Folder {
    let keys: Vec<&str> = CANARIES.iter().map(|it| it.1).collect();
    let script = format!(
        "read -r line\nfor it in {} $MINE_TOKEN; do echo \"cannot log in with $it, sorry\" >&2; done\nexit 1",
        keys.join(" ")
    );
    let config = format!("[engines.claude]\nenv = {{ MINE_TOKEN = '{CONFIGURED}' }}\n");
    machine(name, &[("claude", &script)], &config)
}

fn surround(command: &mut Command, folder: &Folder) {
    let path = std::env::var("PATH").unwrap();
    command
        .env("PATH", format!("{}:{path}", folder.path("bin")))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .envs(CANARIES.iter().copied())
        .current_dir(folder.path(""));
}

fn check(what: &str, text: &str) {
    for (_, canary) in CANARIES {
        assert!(!text.contains(canary), "{canary} in {what}: {text}");
    }
    for canary in ENDPOINT.iter().chain([&CONFIGURED]) {
        assert!(!text.contains(canary), "{canary} in {what}: {text}");
    }
}

/// Nothing that was written holds one.
fn check_files(folder: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_files(path.to_str().unwrap());
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        check(path.to_str().unwrap(), &String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_run_repeats_no_key() {
    let folder = leaky("secrets-run");
    let data = folder.path("data");
    for to in ["linkspan", "text", "thread"] {
        let mut command = linkspan(&["run", "--engine", "claude", "--to", to, "hello"]);
        surround(&mut command, &folder);
        command.args(["--data-dir", &data]).stdin(Stdio::null());
        let ran = ran(command.output().unwrap());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let said = "cannot log in with [redacted], sorry";
        assert!(ran.stdout.contains(said), "{to}: {}", ran.stdout);
        check(to, &ran.stdout);
        check("stderr", &ran.stderr);
    }
    let mut command = linkspan(&["config", "--json"]);
    surround(&mut command, &folder);
    check("config", &ran(command.output().unwrap()).shown());
    check_files(&data);
}

#[test]
fn a_server_repeats_no_key() {
    let folder = leaky("secrets-serve");
    let token = CANARIES
        .iter()
        .find(|it| it.0 == "LINKSPAN_TOKEN")
        .unwrap()
        .1;
    let mut command = serve(&folder);
    surround(&mut command, &folder);
    let served = Served::spawn(&mut command, || token.to_owned());
    let prompt = json!({ "prompt": "hello", "engine": "claude" });
    let session = served.submit(&prompt);
    let began = Instant::now();
    let is_over = |events: &[String]| events.iter().any(|it| it.contains("run.ended"));
    while !is_over(&served.events(&session)) {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(10));
    }
    let said = "cannot log in with [redacted], sorry";
    let events = served.events(&session).join("\n");
    assert!(events.contains(said), "{events}");
    check("events", &events);
    for (method, path, body) in [
        ("GET", "/api/metrics", ""),
        ("GET", "/api/sessions", ""),
        ("GET", "/api/engines", ""),
        ("GET", "/api/openapi.json", ""),
        ("GET", &*format!("/api/sessions/{session}"), ""),
        ("GET", "/api/sessions/none", ""),
        ("GET", "/nowhere", ""),
        ("POST", "/api/runs", "{"),
        ("POST", "/api/runs", r#"{"prompt":"x","engine":"emacs"}"#),
        ("GET", "/", ""),
    ] {
        check(path, &served.body(method, path, body));
    }
    let shown = run(&["show", &session, "--data-dir", &folder.path("data")], b"");
    check("show", &shown.shown());
    check("what it says", &served.stop());
    check_files(&folder.path("data"));
}

#[test]
fn secrets_echoed_by_an_endpoint_are_redacted() {
    let all = ENDPOINT.join(" and ");
    let turns = json!([
        // In one piece, as a gateway would say it: no model knows a key, to spell it word by word.
        { "blocks": [{ "text": format!("Your keys are {all}.") }], "chunk": 1000 },
        { "blocks": [{ "text": "half" }], "failed": { "code": "server_error", "message": all } },
        { "status": 401, "body": { "error": { "code": ENDPOINT[0], "message": all } } },
        { "status": 400, "body": { "error": all } },
    ]);
    let scenario = json!({ "lanes": { "main": turns } }).to_string();
    let model = Server::start(Scenario::from_json(&scenario).unwrap()).unwrap();
    let config = format!(
        "[engines.responses.leaky]\nbase_url = '{}'\nprovider = 'openclaw'\napi_key_env = 'MODEL_KEY'\n\
         max_retries = 0\nheaders = {{ X-Gateway-Token = '{}' }}\nopenclaw.session_key = '{}'\n",
        model.url(),
        ENDPOINT[1],
        ENDPOINT[2],
    );
    let folder = machine("secrets-endpoint", &[], &config);
    let served = Served::from(serve(&folder).env("MODEL_KEY", ENDPOINT[0]), &folder);
    for n in 1..=3 {
        let messages = json!([{ "id": "m", "role": "user", "content": "hi" }]);
        let input = json!({ "threadId": "t", "runId": format!("r{n}"), "messages": messages });
        let told = served.body("POST", "/ag-ui/responses:leaky", &input.to_string());
        assert!(told.contains("********"), "{told}");
        check("the stream", &told);
    }
    let sessions = served.body("GET", "/api/sessions", "");
    check("the sessions", &sessions);
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let session = sessions["sessions"][0]["id"].as_str().unwrap();
    check("the events", &served.events(session).join("\n"));
    check("the engines", &served.body("GET", "/api/engines", ""));
    check_files(&folder.path("data"));
    check("what it says", &served.stop());
    check_files(&folder.path("data"));
    let mut command = linkspan(&[
        "run",
        "--engine",
        "responses:leaky",
        "--to",
        "linkspan",
        "hi",
    ]);
    surround(&mut command, &folder);
    command.env("MODEL_KEY", ENDPOINT[0]);
    command
        .args(["--data-dir", &folder.path("data")])
        .stdin(Stdio::null());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    check("the run", &ran.shown());
    check_files(&folder.path("data"));
    // They were sent, and to nobody else; the model's own log leaves the key out.
    let sent = format!("{:?}", model.requests());
    assert_eq!(model.requests().len(), 4);
    for part in ["authorization", ENDPOINT[1], ENDPOINT[2]] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
}
