//! A field that is misspelled is refused and never ignored, wherever JSON of ours comes in; what the
//! bridge's own apps send is known.

use serde_json::{Value, json};

use crate::test_server::{Answer, TestServer};

const HINT: &str = "known here: prompt, text, engine, provider, session, sessionId, session_id, resume, \
    fork, cd, cwd, workingDir, model, effort, permissions, allow, allowedTools, allowed_tools, deny, outputStyle, \
    output_style, verbosity, speed, askTimeout, ask_timeout, askDefault, ask_default";

async fn sessions(test_server: &TestServer) -> Value {
    test_server.get("/api/sessions").await.json()["sessions"].clone()
}

/// Every control with its example, from the document that the server itself gives.
pub(crate) async fn controls(test_server: &TestServer) -> Vec<(Value, String)> {
    let document = test_server.get("/api/openapi.json").await.json();
    let controls = document["paths"]["/ws"]["get"]["x-controls"].clone();
    let example = |it: &Value| serde_json::from_str(it["example"].as_str().unwrap()).unwrap();
    let controls = controls.as_array().unwrap().iter();
    controls
        .map(|it| (example(it), it["x-role"].as_str().unwrap().to_owned()))
        .collect()
}

#[tokio::test]
async fn a_misspelled_field_of_a_prompt_is_refused_and_nothing_is_stored() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "admin").await;
    for (field, near) in [
        ("permissionMode", Some("permissions")),
        ("permission", Some("permissions")),
        ("working_dir", Some("workingDir")),
        ("allowedTool", Some("allowedTools")),
        ("askTimeOut", Some("askTimeout")),
        ("zzz", None),
    ] {
        let message = match near {
            Some(near) => format!("unknown field `{field}`; did you mean `{near}`?"),
            None => format!("unknown field `{field}`"),
        };
        let prompt = json!({ "prompt": "x", "engine": "replay:tools", (field): "plan" });
        let refused = test_server.post("/api/runs", &prompt).await;
        let expected =
            json!({ "error": { "code": "bad_request", "message": message, "hint": HINT } });
        assert_eq!((refused.status, refused.json()), (400, expected));
        let mut control = prompt;
        control["control"] = "run.submit".into();
        let refused = socket.call(control).await;
        assert_eq!(
            (&refused["type"], &refused["code"], &refused["message"]),
            (
                &json!("bridge.error"),
                &json!("bad_request"),
                &json!(message)
            )
        );
    }
    assert_eq!(sessions(&test_server).await, json!([]));
}

#[tokio::test]
async fn every_control_refuses_fields_that_it_does_not_know() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("?subscribe=none", "admin").await;
    let controls = controls(&test_server).await;
    assert!(controls.len() > 15, "{controls:?}");
    for (mut control, _) in controls {
        control["nonsense"] = json!(1);
        let refused = socket.call(control.clone()).await;
        assert_eq!(
            (&refused["type"], &refused["code"], &refused["message"]),
            (
                &json!("bridge.error"),
                &json!("bad_request"),
                &json!("unknown field `nonsense`")
            ),
            "{control}"
        );
    }
    assert_eq!(sessions(&test_server).await, json!([]));
    let projects = socket.call(json!({ "control": "projects" })).await;
    assert_eq!(projects["items"], json!([]));
    let status = socket.call(json!({ "control": "bridge.status" })).await;
    assert_eq!(status["provider"], json!(null));
}

#[tokio::test]
async fn an_answer_with_a_field_too_many_answers_nothing() {
    let test_server = TestServer::new().await;
    let id = test_server.ask_agent("ask").await;
    let waiting = test_server.until(&id, |it| it["state"] == "waiting").await;
    let ask = waiting["asks"][0]["id"].as_str().unwrap();
    let answer = json!({ "decision": "allow", "inputs": { "command": "true" } });
    let refused = test_server.post(&format!("/api/asks/{ask}"), &answer).await;
    let expected = json!({ "error": {
        "code": "bad_request", "message": "unknown field `inputs`; did you mean `input`?",
        "hint": "known here: decision, message, input",
    } });
    assert_eq!((refused.status, refused.json()), (400, expected));
    let mut socket = test_server.socket("", "approve").await;
    let settle =
        json!({ "control": "ask.settle", "askId": ask, "decision": "allow", "reason": "" });
    assert_eq!(
        socket.call(settle).await["message"],
        "unknown field `reason`"
    );
    assert_eq!(
        test_server.get(&format!("/api/sessions/{id}")).await.json()["state"],
        "waiting"
    );
    test_server.stop().await;
}

#[tokio::test]
async fn what_the_bridges_own_apps_send_is_known() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "prompt").await;
    let dir = test_server.dir.path();
    let project = json!({
        "id": "p", "name": "P", "workingDir": dir, "agentFile": "claude_code", "instructions": "",
        "repo": { "provider": "github", "remote": "a/b", "url": "", "branch": "main" },
        "todos": [{ "text": "t", "completed": false }], "approvals": "never", "model": "m",
        "sandbox": "danger-full-access", "createdAt": 1, "updatedAt": 2,
    });
    let controls = [
        json!({ "control": "project.save", "project": project }),
        json!({ "control": "run.submit", "threadDocId": "t1", "text": "x", "projectId": "p",
            "resumeId": "new", "provider": "claude_code" }),
        json!({ "control": "run.submit", "thread_id": "t1", "prompt": "x", "project_id": "p",
            "resume_id": "none", "provider": "replay:tools" }),
        json!({ "control": "run.abort", "threadDocId": "t1" }),
        json!({ "control": "interrupt" }),
        json!({ "control": "projects" }),
        json!({ "control": "provider.select", "provider": "claude_code" }),
        json!({ "control": "claude.session.resume", "enabled": true, "session_id": "s", "cwd": dir }),
        json!({ "control": "history", "limit": 5, "since_mtime": 1_700_000_000 }),
        json!({ "control": "bridge.status" }),
        json!({ "control": "echo", "payload": { "a": 1 }, "tag": "t" }),
        json!({ "control": "debug.ping" }),
        json!({ "control": "project.delete", "id": "p" }),
    ];
    for control in controls {
        let reply = socket.call(control.clone()).await;
        assert_ne!(reply["type"], "bridge.error", "{control}: {reply}");
    }
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    let thread = json!({ "control": "thread", "id": id, "path": "/tmp/x.jsonl" });
    assert_eq!(socket.call(thread).await["type"], "bridge.thread");
    test_server.stop().await;
}

#[tokio::test]
async fn a_bad_limit_is_refused_wherever_one_is_taken() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    for limit in ["-1", "1e20", "1.5", "many", "18446744073709551616"] {
        for path in ["/api/sessions", &format!("/api/sessions/{id}/events")] {
            let refused = test_server.get(&format!("{path}?limit={limit}")).await;
            assert_eq!((refused.status, &*refused.code()), (400, "bad_request"));
        }
    }
    let mut socket = test_server.socket("", "watch").await;
    let limits = [
        json!(-1),
        json!(1e20),
        json!(1.5),
        json!("many"),
        json!("5"),
        json!(true),
    ];
    for limit in limits {
        for control in ["history", "sessions"] {
            let control = json!({ "control": control, "limit": limit });
            let refused = socket.call(control.clone()).await;
            assert_eq!(refused["code"], "bad_request", "{control}: {refused}");
            let message = refused["message"].as_str().unwrap();
            assert!(message.starts_with("`limit` cannot be read: "), "{message}");
        }
    }
    for limit in [json!(0), json!(1), json!(4_000_000_000_u32), json!(null)] {
        let history = json!({ "control": "history", "limit": limit });
        let items = socket.call(history).await["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1);
    }
    test_server.stop().await;
}

/// A request of an AG-UI client, with something in it that is not in the protocol.
async fn run(test_server: &TestServer, thread: &str, props: Value) -> Answer {
    let input = json!({
        "threadId": thread, "runId": "r", "state": {}, "tools": [], "context": [],
        "messages": [{ "id": "1", "role": "user", "content": "x", "extra": 1 }],
        "forwardedProps": props, "parentRunId": "p", "extra": { "a": 1 },
    });
    test_server.post("/ag-ui/replay:tools", &input).await
}

#[tokio::test]
async fn an_ag_ui_client_may_send_what_it_likes_except_in_what_is_ours() {
    let test_server = TestServer::new().await;
    let answer = run(
        &test_server,
        "free",
        json!({ "a": 1, "linkspan": { "speed": 0 } }),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let n_sessions = sessions(&test_server).await.as_array().unwrap().len();
    for (own, message) in [
        (
            json!({ "permissionMode": "plan" }),
            "unknown field `permissionMode`; did you mean `permissions`?",
        ),
        (
            json!({ "permissions": 1 }),
            "`permissions` cannot be read: invalid type: integer `1`, expected a string",
        ),
        (
            json!({ "session": "s" }),
            "`session` is not taken here; an AG-UI client says it with `threadId`",
        ),
        (
            json!({ "engine": "claude" }),
            "`engine` is not taken here; an AG-UI client says it in the path",
        ),
        (json!(["plan"]), "it is not an object"),
    ] {
        let refused = run(&test_server, "refused", json!({ "linkspan": own })).await;
        let error = &refused.json()["error"];
        let expected = format!("`forwardedProps.linkspan`: {message}");
        assert_eq!(
            (refused.status, &error["code"], &error["message"]),
            (400, &json!("bad_input"), &json!(expected))
        );
    }
    assert_eq!(
        sessions(&test_server).await.as_array().unwrap().len(),
        n_sessions
    );
    let body = json!({ "threadId": "t", "thread": "t" });
    let refused = test_server.post("/ag-ui/replay:tools/abort", &body).await;
    assert_eq!((refused.status, &*refused.code()), (400, "bad_request"));
}
