//! An app that knows ThreadEvents and nothing else: what it shows, by the rules of its own parser, when an
//! agent asks.
//!
//! The rules: messages and reasoning are text in any phase; a command is a row with its status and the
//! first 240 characters of its output; whatever has `changes` is a change of files; other items are a row
//! that says little; what is no ThreadEvent is raw JSON in grey.

use serde_json::{Value, json};

use crate::test_server::{Socket, TestServer};

#[derive(Debug, PartialEq)]
enum Row {
    Thread,
    Turn(String),
    Text(String),
    Command(String, String),
    Files,
    Todo,
    /// An item that the parser does not know.
    Lifecycle,
    /// Not shown as anything.
    Json,
}

fn row(line: &Value) -> Row {
    let event = line.get("msg").unwrap_or(line);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let kind = text(&event["type"]);
    if kind.starts_with("thread.") {
        return Row::Thread;
    }
    if let Some(phase) = kind.strip_prefix("turn.") {
        return Row::Turn(phase.to_owned());
    }
    if !kind.starts_with("item.") {
        return Row::Json;
    }
    let item = &event["item"];
    match item["type"].as_str().unwrap_or_default() {
        "agent_message" | "reasoning" => Row::Text(text(&item["text"])),
        "command_execution" => Row::Command(text(&item["command"]), text(&item["status"])),
        "todo_list" => Row::Todo,
        _ if item["changes"].is_array() => Row::Files,
        _ => Row::Lifecycle,
    }
}

/// The rows up to the one that is wanted; what is not shown is left out.
async fn rows(socket: &mut Socket, is_last: impl Fn(&Row) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let line = socket.next().await.expect("the server hung up");
        let row = row(&line);
        let is_done = is_last(&row);
        if row != Row::Json {
            rows.push(row);
        }
        if is_done {
            return rows;
        }
    }
}

fn is_question(row: &Row) -> bool {
    matches!(row, Row::Text(text) if text.starts_with("**Permission needed"))
}

#[tokio::test]
async fn an_unchanged_app_is_shown_what_is_asked_and_what_came_of_it() {
    let test_server = TestServer::new().await;
    let mut app = test_server.socket("", "prompt").await;
    app.send(&json!({
        "control": "run.submit", "threadDocId": "t1", "text": "ask",
        "provider": "claude_code", "workingDir": test_server.dir.path(),
    }))
    .await;
    let shown = rows(&mut app, is_question).await;
    let asks = test_server.get("/api/asks").await.json();
    let ask = asks["asks"][0]["id"].as_str().unwrap();
    let session = asks["asks"][0]["session"].as_str().unwrap();
    let base = format!("http://{}", test_server.address);
    let question = format!(
        "**Permission needed: Bash**\n\n```\nls\n```\n\nAnswer at {base}/#/s/{session} or with \
         `{{\"control\":\"ask.settle\",\"askId\":\"{ask}\",\"decision\":\"allow\"}}` (or `\"deny\"`)."
    );
    let running = Row::Command("ls".to_owned(), "in_progress".to_owned());
    let expected = [
        Row::Thread,
        Row::Turn("started".to_owned()),
        running,
        Row::Text(question.clone()),
    ];
    assert_eq!(shown, expected);

    // Somebody who opens the app now is shown the same question.
    let mut late = test_server.socket("", "prompt").await;
    let shown = rows(&mut late, is_question).await;
    assert_eq!(shown, [Row::Text(question)]);

    let path = format!("/api/asks/{ask}");
    // What cannot be the input of a call answers nothing: the question still waits.
    for input in [json!("ls"), json!(5), json!(["ls"]), json!(true)] {
        let wrong = json!({ "decision": "allow", "input": input });
        let refused = test_server.post(&path, &wrong).await;
        let expected = json!({ "error": {
            "code": "bad_input", "message": "the input of the answer is not a JSON object",
        } });
        assert_eq!((refused.status, refused.json()), (400, expected), "{input}");
    }
    let answered = test_server
        .post(&path, &json!({ "decision": "allow" }))
        .await;
    assert_eq!(answered.status, 200);
    for socket in [&mut app, &mut late] {
        let end = Row::Turn("completed".to_owned());
        let shown = rows(socket, |it| *it == end).await;
        let settled = Row::Text("Allowed: Bash: ls".to_owned());
        assert_eq!(shown[0], settled, "{shown:?}");
        assert_eq!(shown.last(), Some(&end));
    }
    test_server.stop().await;
}

#[tokio::test]
async fn the_bridge_pushes_a_question_whole_and_how_it_was_settled() {
    let test_server = TestServer::new().await;
    let mut watcher = test_server.socket("", "watch").await;
    let id = test_server.ask_agent("ask").await;
    let pushed = watcher.next_of("bridge.ask").await;
    let seq = pushed["seq"].as_u64().unwrap();
    let (ask, base) = (
        format!("{id}:{seq}"),
        format!("http://{}", test_server.address),
    );
    let mut expected = json!({
        "type": "bridge.ask", "sessionId": id, "cursor": seq, "askId": ask, "seq": seq,
        "runId": pushed["runId"], "itemId": pushed["itemId"], "kind": "permission", "tool": "Bash",
        "title": "ls", "description": null, "command": "ls", "input": { "command": "ls" },
        "suggestions": null, "deadline": null,
        "answer": {
            "page": format!("{base}/#/s/{id}"), "url": format!("{base}/api/asks/{ask}"),
            "decisions": ["allow", "allow_always", "deny"],
            "control": { "control": "ask.settle", "askId": ask, "decision": "allow" },
        },
    });
    assert_eq!(pushed, expected);

    // To whoever comes while it waits, and to whoever subscribes behind it.
    expected.as_object_mut().unwrap().remove("cursor");
    expected["replayed"] = true.into();
    let mut late = test_server.socket("", "approve").await;
    assert_eq!(late.next_of("bridge.ask").await, expected);
    let mut behind = test_server.socket("?subscribe=none", "watch").await;
    let subscribe = json!({ "control": "subscribe", "sessionId": id, "since": seq });
    behind.send(&subscribe).await;
    assert_eq!(behind.next_of("bridge.ask").await, expected);
    // Not to who sees the event itself.
    let mut before = test_server.socket("?subscribe=none", "watch").await;
    let subscribe = json!({ "control": "subscribe", "sessionId": id, "since": 0 });
    before.send(&subscribe).await;
    assert_eq!(before.next_of("bridge.ask").await, pushed);

    let settle = json!({
        "control": "ask.settle", "askId": ask, "decision": "deny", "message": "not now",
    });
    let reply = late.call(settle).await;
    assert_eq!(
        reply,
        json!({ "type": "bridge.ask_settled", "askId": ask, "decision": "deny" })
    );
    let settled = watcher.next_of("bridge.ask_settled").await;
    let expected = json!({
        "type": "bridge.ask_settled", "sessionId": id, "cursor": settled["cursor"], "askId": ask,
        "decision": "denied", "by": "client", "why": null, "message": "not now", "input": null,
    });
    assert_eq!(settled, expected);
    let ended = watcher.next_of("bridge.run_ended").await;
    let expected = json!({
        "type": "bridge.run_ended", "sessionId": id, "cursor": ended["cursor"],
        "runId": ended["runId"], "outcome": "completed", "answer": "denied", "error": null,
        "usage": null, "duration_ms": ended["duration_ms"], "stopReason": null, "denials": [],
    });
    assert_eq!(ended, expected);
    // Nothing waits any more.
    let mut after = test_server.socket("", "watch").await;
    after.send(&json!({ "control": "echo" })).await;
    loop {
        let message = after.next().await.unwrap();
        assert_ne!(message["type"], "bridge.ask");
        if message["type"] == "bridge.echo" {
            break;
        }
    }
    test_server.stop().await;
}
