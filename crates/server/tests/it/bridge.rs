//! The bridge: what its clients say, what they are told, and what never becomes a prompt.

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::test_server::{Socket, TestServer};

async fn n_sessions(test_server: &TestServer) -> usize {
    let page = test_server.get("/api/sessions").await.json();
    page["sessions"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_run_is_submitted_and_its_events_come_with_their_cursors() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let reply = socket
        .call(json!({
            "control": "run.submit", "threadDocId": "t1", "text": "hello",
            "provider": "replay:tools", "resumeId": "new",
        }))
        .await;
    let id = reply["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(
        reply,
        json!({
            "type": "bridge.run_submit", "threadDocId": "t1", "sessionId": id, "number": 1,
            "position": 0, "cursor": 0, "provider": "replay:tools", "resumeId": "new", "len": 5,
        })
    );
    let mut socket = test_server.socket("", "watch").await;
    socket
        .send(&json!({ "control": "subscribe", "sessionId": id }))
        .await;
    let started = socket.next_of("thread.started").await;
    assert_eq!(started["sessionId"], id);
    socket.next_of("turn.completed").await;
    let end = socket.next_of("bridge.run_ended").await;
    assert!(end["cursor"].as_u64().unwrap() > 10, "{end}");
}

#[tokio::test]
async fn every_client_sees_new_sessions_and_all_events() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    assert_eq!(
        socket.call(json!({ "control": "echo", "tag": "t" })).await["tag"],
        "t"
    );
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    let session = socket.next_of("bridge.session").await;
    assert_eq!(session["session"]["id"], id);
    assert_eq!(socket.next_of("turn.completed").await["sessionId"], id);
}

#[tokio::test]
async fn unreadable_controls_are_reported_and_never_become_prompts() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "admin").await;
    let deep = format!(
        "{{\"control\":\"run.submit\",\"x\":{}1{}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let messages = [
        "",
        " ",
        "hello",
        "fix the test",
        "{",
        "{}",
        "[]",
        "null",
        "true",
        "1",
        "\"run\"",
        "{\"control\":1}",
        "{\"control\":null}",
        "{\"control\":\"\"}",
        "{\"control\":\"run\"}",
        "{\"control\":\"run.Submit\",\"text\":\"x\"}",
        "{\"control\":\"run.submit \"}",
        "{\"control\":\"run.submit\",\"text\":1}",
        "{\"control\":\"run.submit\",\"text\":[\"x\"]}",
        "{\"control\":\"run.submit\",\"text\":\"\"}",
        "{\"control\":\"run.submit\"}",
        "{\"control\":\"run.submit\",\"text\":\"a\",\"prompt\":\"b\"}",
        "{\"control\":\"run.submit\",\"text\":\"x\",\"provider\":\"none\"}",
        "{\"control\":\"run.submit\",\"text\":\"x\",\"resumeId\":\"--help\"}",
        "{\"control\":\"run.submit\",\"text\":\"x\",\"permissions\":\"x\"}",
        "{\"control\":\"run.submit\",\"text\":\"x\"",
        "{\"cd\":\"/\",\"resume\":\"last\"}\nhello",
        "{\"control\":\"run.abort\"}",
        "{\"control\":\"interrupt\"}",
        "{\"Control\":\"run.submit\",\"text\":\"x\"}",
        "{\"control\":\"ask.settle\",\"askId\":\"x\"}",
        "{\"control\":\"thread\",\"id\":\"none\"}",
        "{\"control\":\"subscribe\",\"sessionId\":\"none\"}",
        "{\"control\":\"subscribe\",\"since\":\"x\"}",
        "{\"control\":\"queue.remove\",\"sessionId\":\"x\"}",
        "{\"control\":\"project.save\"}",
        "{\"control\":\"claude.session.resume\"}",
        "{\"control\":\"provider.select\",\"provider\":\"x\"}",
        "{\"text\":\"x\"}",
        "\u{feff}{\"control\":\"run.submit\",\"text\":\"x\"}",
        &deep,
    ];
    for message in messages {
        socket.send_text(message).await;
        let reply = socket.next().await.unwrap();
        assert_eq!(reply["type"], "bridge.error", "{message}: {reply}");
        let has_words = reply["code"].is_string() && reply["message"].is_string();
        assert!(has_words, "{message}: {reply}");
    }
    let binary = Message::binary(&b"{\"control\":\"run.submit\",\"text\":\"x\"}"[..]);
    socket.socket.send(binary).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["type"], "bridge.error");
    assert_eq!(n_sessions(&test_server).await, 0);
    // More than a message may have ends the connection, and nothing else.
    let long = format!(
        "{{\"control\":\"run.submit\",\"text\":\"{}\"}}",
        "x".repeat(2 << 20)
    );
    socket.socket.send(Message::text(long)).await.ok();
    assert_eq!(socket.next().await, None);
    assert_eq!(n_sessions(&test_server).await, 0);
}

#[tokio::test]
async fn a_run_is_stopped_by_either_verb() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let cwd = test_server.dir.path();
    for verb in ["run.abort", "interrupt"] {
        let control =
            json!({ "control": "run.submit", "prompt": "wait", "engine": "claude", "cwd": cwd });
        let reply = socket.call(control).await;
        let id = reply["sessionId"].as_str().unwrap();
        test_server.until(id, |it| it["state"] == "running").await;
        let reply = socket.call(json!({ "control": verb })).await;
        assert_eq!(
            reply,
            json!({ "type": "bridge.run_abort", "sessionId": id, "aborted": true })
        );
        let session = test_server.ended(id, 1).await;
        assert_eq!(session["runs"][0]["outcome"], "aborted");
    }
    test_server.stop().await;
}

#[tokio::test]
async fn prompts_start_a_new_session_by_default() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let cwd = test_server.dir.path().canonicalize().unwrap();
    let submit = async |socket: &mut crate::test_server::Socket, more: Value| {
        let mut control = json!({ "control": "run.submit", "text": "x", "cwd": cwd });
        control
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let reply = socket.call(control).await;
        let id = reply["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{reply}"))
            .to_owned();
        let n = reply["number"].as_u64().unwrap();
        test_server.ended(&id, usize::try_from(n).unwrap()).await;
        id
    };
    let select = json!({ "control": "provider.select", "provider": "claude_code" });
    assert_eq!(socket.call(select).await["provider"], "claude");
    let first = submit(&mut socket, json!({})).await;
    let second = submit(&mut socket, json!({})).await;
    assert_ne!(first, second);
    assert_eq!(
        submit(&mut socket, json!({ "resumeId": "last" })).await,
        second
    );
    assert_eq!(
        submit(&mut socket, json!({ "resumeId": first })).await,
        first
    );
    let resume = json!({ "control": "claude.session.resume", "enabled": true, "cwd": cwd });
    assert_eq!(socket.call(resume).await["enabled"], true);
    assert_eq!(submit(&mut socket, json!({})).await, first);
    assert_ne!(
        submit(&mut socket, json!({ "resumeId": "new" })).await,
        first
    );
    let resume = json!({ "control": "claude.session.resume", "enabled": false, "cwd": cwd });
    assert_eq!(socket.call(resume).await["enabled"], false);
    let fresh = submit(&mut socket, json!({})).await;
    assert!(fresh != first && fresh != second);
    test_server.stop().await;
}

#[tokio::test]
async fn projects_history_and_threads_are_remembered() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let project =
        json!({ "id": "p", "name": "P", "workingDir": test_server.dir.path(), "todos": [] });
    let saved = socket
        .call(json!({ "control": "project.save", "project": project }))
        .await;
    assert_eq!(
        saved,
        json!({ "type": "bridge.projects", "items": [project] })
    );
    let control = json!({
        "control": "run.submit", "text": "x", "projectId": "p", "provider": "replay:tools",
    });
    let id = socket.call(control).await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let session = test_server.ended(&id, 1).await;
    assert_eq!(session["title"], "x");
    let history = socket
        .call(json!({ "control": "history", "limit": 5 }))
        .await;
    assert_eq!(history["items"][0]["id"], id);
    let thread = socket.call(json!({ "control": "thread", "id": id })).await;
    let items = thread["thread"]["items"].as_array().unwrap();
    assert_eq!(items[0]["type"], "thread.started");
    assert_eq!(items.last().unwrap()["type"], "turn.completed");
    let status = socket.call(json!({ "control": "bridge.status" })).await;
    assert_eq!(
        (&status["last_thread_id"], &status["running"]),
        (&json!(id), &json!(0))
    );
    let gone = socket
        .call(json!({ "control": "project.delete", "id": "p" }))
        .await;
    assert_eq!(gone["items"], json!([]));
    test_server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_sends_a_close_frame() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("?format=acp", "watch").await;
    let id = test_server.ask_agent("wait").await;
    test_server.until(&id, |it| it["state"] == "running").await;
    let journal = test_server.journal.clone();
    test_server.stop().await;
    while socket.next().await.is_some() {}
    let runs = journal
        .runs(&model::SessionId::new(&*id), None, 9)
        .await
        .unwrap();
    assert_eq!(runs[0].end.unwrap().outcome, model::Outcome::Aborted);
}

/// What comes until a run has ended.
async fn until_run_ended(socket: &mut Socket) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = socket.next().await.expect("the server hung up");
        messages.push(message);
        let kind = &messages[messages.len() - 1]["type"];
        if kind == "bridge.run_ended" {
            return messages;
        }
    }
}

#[tokio::test]
async fn asks_come_in_any_format_to_those_who_want_them() {
    let test_server = TestServer::new().await;
    for format in formats::registry::live_formats().map(|it| it.name) {
        let query = format!("?format={format}&asks=true&subscribe=own");
        let mut socket = test_server.socket(&query, "approve").await;
        let cwd = test_server.dir.path();
        let submit =
            json!({ "control": "run.submit", "prompt": "ask", "engine": "claude", "cwd": cwd });
        let id = socket.call(submit).await["sessionId"].clone();
        let ask = socket.next_of("bridge.ask").await;
        assert_eq!(
            (&ask["sessionId"], &ask["tool"]),
            (&id, &json!("Bash")),
            "{format}"
        );
        // Whoever comes later is shown it, too.
        let mut late = test_server.socket(&query, "approve").await;
        late.send(&json!({ "control": "subscribe", "sessionId": id, "since": ask["cursor"] }))
            .await;
        let shown = late.next_of("bridge.ask").await;
        assert_eq!(shown["askId"], ask["askId"], "{format}");
        assert_eq!(shown["replayed"], true, "{format}");
        let settle = json!({ "control": "ask.settle", "askId": ask["askId"], "decision": "allow" });
        socket.send(&settle).await;
        let messages = until_run_ended(&mut socket).await;
        let settled = messages
            .iter()
            .find(|it| it["type"] == "bridge.ask_settled" && !it["cursor"].is_null());
        assert_eq!(settled.unwrap()["decision"], "allowed", "{format}");
        let end = &messages[messages.len() - 1];
        let end = (&end["sessionId"], &end["outcome"], &end["answer"]);
        assert_eq!(
            end,
            (&id, &json!("completed"), &json!("allowed")),
            "{format}"
        );
    }
    test_server.stop().await;
}

#[tokio::test]
async fn clients_of_other_formats_than_thread_get_no_messages_unasked() {
    let test_server = TestServer::new().await;
    let mut quiet = test_server.socket("?format=takopi", "watch").await;
    let mut loud = test_server
        .socket("?format=takopi&asks=true", "watch")
        .await;
    test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    let events = |messages: Vec<Value>| -> Vec<Value> {
        let events = messages.into_iter();
        let events = events.filter(|it| it["type"] == "bridge.event");
        events.map(|it| it["data"].clone()).collect()
    };
    let heard = events(until_run_ended(&mut loud).await);
    assert!(heard.len() > 3, "{heard:?}");
    for expected in &heard {
        let message = loop {
            let message = quiet.next().await.unwrap();
            assert_ne!(message["type"], "bridge.run_ended");
            if message["type"] == "bridge.event" {
                break message;
            }
        };
        assert_eq!(message["data"], *expected);
    }
    // What comes next is the reply, and nothing about the end.
    assert_eq!(
        quiet.call(json!({ "control": "echo", "tag": 1 })).await["tag"],
        1
    );
    test_server.stop().await;
}

#[tokio::test]
async fn a_client_that_wants_its_own_hears_of_no_other_session() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("?subscribe=own", "prompt").await;
    let other = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&other, 1).await;
    let submit = json!({ "control": "run.submit", "prompt": "x", "engine": "replay:tools" });
    let mut own = Vec::new();
    // More sessions than may be subscribed to.
    for _ in 0..70 {
        own.push(socket.call(submit.clone()).await["sessionId"].clone());
        let messages = until_run_ended(&mut socket).await;
        let of_other = |it: &&Value| {
            let id = it.get("sessionId").unwrap_or(&it["session"]["id"]);
            !it["type"].is_null() && !own.contains(id)
        };
        assert_eq!(messages.iter().find(of_other), None);
    }
    test_server.stop().await;
}

#[tokio::test]
async fn an_unknown_control_is_answered_with_the_one_that_was_meant() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    let reply = socket.call(json!({ "control": "run.submt" })).await;
    assert_eq!(reply["code"], "unknown_control");
    assert_eq!(
        reply["message"],
        "no control is called `run.submt`; did you mean `run.submit`?"
    );
    let reply = socket.call(json!({ "control": "xyz" })).await;
    assert_eq!(reply["message"], "no control is called `xyz`");
    test_server.stop().await;
}
