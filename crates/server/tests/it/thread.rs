//! ThreadEvents over the socket: their ids, how much of an output they hold, when they begin, and every
//! control of the manual.

use std::fs;

use serde_json::{Value, json};

use crate::test_server::{Socket, TestServer};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The events up to the end of `n` turns, and what the bridge says at the end of the last.
async fn turns(socket: &mut Socket, n: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let mut n_ended = 0;
    while n_ended < n {
        let message = socket.next().await.expect("the server hung up");
        n_ended += usize::from(message["type"] == "bridge.run_ended");
        if !message["cursor"].is_null() && message["type"] != "bridge.caught_up" {
            events.push(message);
        }
    }
    events
}

/// Two prompts in one session.
async fn two_prompts(test_server: &TestServer) -> String {
    let id = test_server.ask_agent("one").await;
    test_server.ended(&id, 1).await;
    test_server
        .submit(json!({ "prompt": "two", "session": id }))
        .await;
    test_server.ended(&id, 2).await;
    id
}

#[tokio::test]
async fn an_event_has_the_same_item_id_from_every_cursor() {
    let test_server = TestServer::new().await;
    let mut live = test_server.socket("", "watch").await;
    let id = two_prompts(&test_server).await;
    let told = turns(&mut live, 2).await;
    let ids: Vec<&str> = told
        .iter()
        .filter_map(|it| it["item"]["id"].as_str())
        .collect();
    assert_eq!(ids, ["item_0", "item_1"]);
    for at in 0..told.len() - 1 {
        let mut socket = test_server.socket("?subscribe=none", "watch").await;
        let since = &told[at]["cursor"];
        socket
            .send(&json!({ "control": "subscribe", "sessionId": id, "since": since }))
            .await;
        let n = told[at + 1..]
            .iter()
            .filter(|it| it["type"] == "bridge.run_ended")
            .count();
        assert_eq!(turns(&mut socket, n).await, told[at + 1..], "since {since}");
    }
    // Another server on the same journal, as after a restart.
    let journal = test_server.journal.clone();
    let other = TestServer::with(|config| config.hub.journal = journal).await;
    let path = format!("/api/sessions/{id}/events?format=thread&after=");
    let bare = |it: &Value| {
        let mut it = it.clone();
        let fields = it.as_object_mut().unwrap();
        fields.remove("cursor");
        fields.remove("sessionId");
        it
    };
    let rows = told.iter().filter(|it| it["type"] != "bridge.run_ended");
    let rows: Vec<Value> = rows.map(bare).collect();
    for test_server in [&test_server, &other] {
        let lines = test_server.get(&path).await.body;
        let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap());
        assert_eq!(lines.collect::<Vec<Value>>(), rows);
    }
    other.stop().await;
    test_server.stop().await;
}

/// Plays a recording in which a tool prints a lot and another one gives a picture.
async fn play(test_server: &TestServer, output: &str) -> String {
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "n", "cwd": "/w", "model": "m" }),
        json!({ "type": "assistant", "session_id": "n", "message": { "id": "m1", "content": [
            { "type": "tool_use", "id": "toolu_1", "name": "Read", "input": { "file_path": "/w/a" } },
            { "type": "tool_use", "id": "toolu_2", "name": "Read", "input": { "file_path": "/w/b.png" } },
        ] } }),
        json!({ "type": "user", "session_id": "n", "message": { "content": [
            { "type": "tool_result", "tool_use_id": "toolu_1", "content": output },
        ] } }),
        json!({ "type": "user", "session_id": "n", "message": { "content": [
            { "type": "tool_result", "tool_use_id": "toolu_2", "content": [
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } },
            ] },
        ] } }),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "session_id": "n",
            "result": "done", "total_cost_usd": 0.5,
            "usage": { "input_tokens": 10, "cache_read_input_tokens": 200, "output_tokens": 7 },
            "model_usage_since_last_result": { "m": {
                "inputTokens": 10, "outputTokens": 7, "cacheReadInputTokens": 200,
                "cacheCreationInputTokens": 0, "costUSD": 0.5, "contextWindow": 1000,
            } },
        }),
    ];
    let path = test_server.dir.path().join("long.jsonl");
    let lines = lines.map(|it| it.to_string());
    fs::write(&path, lines.join("\n")).unwrap();
    let engine = format!("replay:{}", path.display());
    let fields = json!({ "prompt": "x", "engine": engine, "cwd": test_server.dir.path() });
    let id = test_server.submit(fields).await;
    test_server.ended(&id, 1).await;
    id
}

async fn subscribed(test_server: &TestServer, query: &str, id: &str) -> Vec<Value> {
    let mut socket = test_server.socket(query, "watch").await;
    let subscribe = json!({ "control": "subscribe", "sessionId": id, "since": 0 });
    socket.send(&subscribe).await;
    turns(&mut socket, 1).await
}

fn completed<'a>(events: &'a [Value], id: &str) -> &'a Value {
    let mut items = events.iter().filter(|it| it["type"] == "item.completed");
    &items.find(|it| it["item"]["id"] == id).unwrap()["item"]
}

#[tokio::test]
async fn long_outputs_are_cut_with_a_link_to_the_whole_and_pictures_are_links() {
    let test_server = TestServer::new().await;
    let output = "0123456789".repeat(2779);
    let id = play(&test_server, &output).await;
    let events = subscribed(&test_server, "?subscribe=none", &id).await;
    let cut = completed(&events, "toolu_1");
    let url = cut["output_url"].as_str().unwrap();
    let base = format!("http://{}", test_server.address);
    let path = url.strip_prefix(&base).unwrap();
    let begin = format!("/api/sessions/{id}/items/toolu_1/output?at=");
    assert!(path.starts_with(&begin), "{path}");
    let expected = json!({
        "id": "toolu_1", "type": "command_execution", "command": "Read",
        "aggregated_output": format!("{}… [27790 bytes, all of it: {url}]", &output[..8192]),
        "exit_code": 0, "status": "completed", "output_bytes": 27790, "output_url": url,
    });
    assert_eq!(*cut, expected);
    let whole = test_server.get(path).await;
    assert_eq!((whole.status, &*whole.body), (200, &*output));
    // By its item alone, and not without a token.
    let found = test_server.get(begin.split('?').next().unwrap()).await;
    assert_eq!(found.body, output);
    assert_eq!(test_server.request("GET", path, "", "").await.status, 401);
    let none = format!("/api/sessions/{id}/items/toolu_9/output");
    assert_eq!(test_server.get(&none).await.code(), "no_such_output");

    let shown = completed(&events, "toolu_2");
    let url = shown["attachments"][0]["url"].as_str().unwrap();
    let expected = json!({
        "id": "toolu_2", "type": "command_execution", "command": "Read",
        "aggregated_output": format!("[image/png, 70 bytes: {url}]"),
        "exit_code": 0, "status": "completed",
        "attachments": [{ "media_type": "image/png", "bytes": 70, "url": url }],
    });
    assert_eq!(*shown, expected);
    let picture = test_server.get(url.strip_prefix(&base).unwrap()).await;
    assert_eq!(picture.status, 200);
    assert!(picture.head.contains("content-type: image/png"));
    assert!(picture.head.contains("content-length: 70"));

    // More for who wants it.
    for query in ["output=full&", "output=32768&", "profile=full&"] {
        let events = subscribed(&test_server, &format!("?{query}subscribe=none"), &id).await;
        let item = completed(&events, "toolu_1");
        assert_eq!(item["aggregated_output"], output, "{query}");
    }
    let live = format!("/api/sessions/{id}/events?format=thread&output=full");
    assert!(test_server.get(&live).await.body.contains(&output));
    let refused = test_server.try_socket("?output=much", &[]).await;
    assert!(refused.is_err());
    test_server.stop().await;
}

#[tokio::test]
async fn the_end_of_a_run_prints_usage_and_cost() {
    let test_server = TestServer::new().await;
    let id = play(&test_server, "short").await;
    let events = subscribed(&test_server, "?subscribe=none", &id).await;
    let usage = json!({
        "input_tokens": 10, "cached_input_tokens": 200, "cache_write_input_tokens": 0,
        "output_tokens": 7, "reasoning_output_tokens": 0,
    });
    let mut of_model = usage.clone();
    of_model["model"] = "m".into();
    of_model["cost_usd"] = 0.5.into();
    of_model["context_window"] = 1000.into();
    let turn = events.iter().find(|it| it["type"] == "turn.completed");
    let turn = turn.unwrap();
    let expected = json!({
        "type": "turn.completed", "sessionId": id, "cursor": turn["cursor"], "usage": usage,
        "usage_scope": "run", "model_usage": [of_model], "cost_usd": 0.5, "session_cost_usd": 0.5,
        "duration_ms": turn["duration_ms"],
    });
    assert_eq!(*turn, expected);
    let ended = events.last().unwrap();
    let expected = json!({
        "type": "bridge.run_ended", "sessionId": id, "cursor": ended["cursor"],
        "runId": ended["runId"], "outcome": "completed", "answer": "done", "error": null,
        "usage": usage, "usage_scope": "run", "model_usage": [of_model], "cost_usd": 0.5,
        "session_cost_usd": 0.5, "duration_ms": turn["duration_ms"], "stopReason": null,
        "denials": [],
    });
    assert_eq!(*ended, expected);
    test_server.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_before_the_client_names_its_cursors() {
    let test_server = TestServer::new().await;
    let mut all = test_server.socket("", "watch").await;
    let mut waits = test_server.socket("?subscribe=none", "watch").await;
    let id = test_server.ask_agent("one").await;
    let mut told = turns(&mut all, 1).await;
    // A second prompt runs while the client subscribes in the middle of the first.
    test_server
        .submit(json!({ "prompt": "two", "session": id }))
        .await;
    waits.send(&json!({ "control": "echo" })).await;
    loop {
        let message = waits.next().await.unwrap();
        assert!(message["cursor"].is_null(), "{message}");
        if message["type"] == "bridge.echo" {
            break;
        }
    }
    let since = told[1]["cursor"].clone();
    let cursors = json!({ &*id: since });
    waits
        .send(&json!({ "control": "subscribe", "since": cursors }))
        .await;
    told.extend(turns(&mut all, 1).await);
    assert_eq!(turns(&mut waits, 2).await, told[2..]);
    assert!(
        test_server
            .try_socket("?subscribe=some", &[])
            .await
            .is_err()
    );
    test_server.stop().await;
}

#[tokio::test]
async fn sessions_created_while_disconnected_are_sent_from_their_start() {
    let test_server = TestServer::new().await;
    let mut all = test_server.socket("", "watch").await;
    let mut gone = test_server.socket("?subscribe=none", "watch").await;
    let at = gone.call(json!({ "control": "subscribe" })).await["at"].clone();
    drop(gone);
    let id = test_server.ask_agent("one").await;
    let told = turns(&mut all, 1).await;
    let mut back = test_server.socket("?subscribe=none", "watch").await;
    back.send(&json!({ "control": "subscribe", "since": {}, "newSince": at }))
        .await;
    let missed = turns(&mut back, 1).await;
    assert_eq!(missed, told);
    assert_eq!(missed[0]["sessionId"], id);
    let refused = back
        .call(json!({ "control": "subscribe", "newSince": "now" }))
        .await;
    assert_eq!(refused["code"], "bad_request");
    test_server.stop().await;
}

/// The lines of the manual: a control, and the type of its reply.
fn examples() -> Vec<(String, String)> {
    let manual = include_str!("../../../../docs/serve.md");
    let lines = manual.lines().filter(|it| it.starts_with("{\"control\""));
    let lines = lines.filter_map(|it| it.split_once(" → "));
    lines.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

#[tokio::test]
async fn every_example_of_the_manual_works() {
    let test_server = TestServer::new().await;
    let dir = test_server.dir.path().to_str().unwrap();
    let past = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&past, 1).await;
    let mut socket = test_server.socket("?subscribe=none", "approve").await;
    let examples = examples();
    assert!(examples.len() > 15, "{examples:?}");
    for (example, reply) in examples {
        let control: Value = serde_json::from_str(&example).unwrap();
        let control = control["control"].as_str().unwrap().to_owned();
        let (mut session, mut seq) = (past.clone(), 1);
        match &*control {
            "run.abort" | "queue.remove" => {
                session = test_server.ask_agent("wait").await;
                test_server
                    .until(&session, |it| it["state"] == "running")
                    .await;
                let next = json!({ "prompt": "next", "session": session });
                test_server.submit(next).await;
            }
            "interrupt" => {
                let submit = json!({
                    "control": "run.submit", "text": "wait", "provider": "claude",
                    "workingDir": dir, "resumeId": "new",
                });
                let reply = socket.call(submit).await;
                session = reply["sessionId"].as_str().unwrap().to_owned();
                test_server
                    .until(&session, |it| it["state"] == "running")
                    .await;
            }
            "ask.settle" => {
                session = test_server.ask_agent("ask").await;
                let waiting = test_server
                    .until(&session, |it| it["state"] == "waiting")
                    .await;
                seq = waiting["asks"][0]["seq"].as_u64().unwrap();
            }
            _ => (),
        }
        let line = example
            .replace("SESSION", &session)
            .replace("SEQ", &seq.to_string())
            .replace("DIR", dir);
        let answered = socket.call(serde_json::from_str(&line).unwrap()).await;
        assert_eq!(answered["type"], reply, "{line}: {answered}");
    }
    test_server.stop().await;
}

#[tokio::test]
async fn a_control_in_event_spelling_gets_a_hint() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    socket.send(&json!({ "type": "bridge.status" })).await;
    let reply = socket.next_of("bridge.error").await;
    let expected = json!({
        "type": "bridge.error", "code": "bad_message",
        "message": "a message names its `control`",
        "hint": "say `\"control\": \"bridge.status\"`; `type` is for what the server sends",
    });
    assert_eq!(reply, expected);
    socket.send(&json!({ "type": "nonsense" })).await;
    let reply = socket.next_of("bridge.error").await;
    let hint = reply["hint"].as_str().unwrap();
    assert!(hint.contains("run.submit, run.abort, interrupt"), "{hint}");
    test_server.stop().await;
}

/// What the agent was started with.
async fn args(test_server: &TestServer, fields: Value) -> String {
    let mut fields = fields;
    fields["engine"] = "claude".into();
    fields["cwd"] = test_server.dir.path().to_str().into();
    fields["prompt"] = "x".into();
    let id = test_server.submit(fields).await;
    test_server.ended(&id, 1).await;
    fs::read_to_string(test_server.dir.path().join("args")).unwrap()
}

#[tokio::test]
async fn the_owner_sets_the_mode_of_prompts_that_name_none() {
    let test_server = TestServer::with_settings("[serve]\npermissions = \"plan\"\n").await;
    let planned = args(&test_server, json!({})).await;
    assert!(planned.contains("--permission-mode plan"), "{planned}");
    let asked = args(&test_server, json!({ "permissions": "ask" })).await;
    assert!(!asked.contains("--permission-mode plan"), "{asked}");
    // Over the socket and for AG-UI clients it is the same.
    fs::remove_file(test_server.dir.path().join("args")).unwrap();
    let mut socket = test_server.socket("", "prompt").await;
    let submit = json!({
        "control": "run.submit", "text": "x", "provider": "claude", "cwd": test_server.dir.path(),
    });
    let reply = socket.call(submit).await;
    test_server
        .ended(reply["sessionId"].as_str().unwrap(), 1)
        .await;
    let planned = fs::read_to_string(test_server.dir.path().join("args")).unwrap();
    assert!(planned.contains("--permission-mode plan"), "{planned}");
    test_server.stop().await;
}

#[tokio::test]
async fn a_list_of_tools_over_the_socket_is_the_list() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let submit = |tools: Value| {
        json!({
            "control": "run.submit", "text": "x", "provider": "claude",
            "cwd": test_server.dir.path(), "permissions": "deny", "allowedTools": tools,
        })
    };
    let refused = socket.call(submit(json!(["Bash"]))).await;
    assert_eq!(refused["code"], "forbidden");
    assert_eq!(
        test_server.get("/api/sessions").await.json()["sessions"],
        json!([])
    );
    let taken = socket.call(submit(json!([]))).await;
    test_server
        .ended(taken["sessionId"].as_str().unwrap(), 1)
        .await;
    let args = fs::read_to_string(test_server.dir.path().join("args")).unwrap();
    assert!(!args.contains("allowedTools"), "{args}");
    let mut socket = test_server.socket("", "approve").await;
    let taken = socket.call(submit(json!(["Read", "Grep"]))).await;
    test_server
        .ended(taken["sessionId"].as_str().unwrap(), 1)
        .await;
    let args = fs::read_to_string(test_server.dir.path().join("args")).unwrap();
    assert!(args.contains("--allowedTools=Read,Grep"), "{args}");
    test_server.stop().await;
}
