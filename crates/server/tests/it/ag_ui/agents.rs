//! Coding agents behind the endpoint: prompts, questions, aborts.

use std::path::Path;

use runner::config::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{end, events, input, texts, types, user};
use crate::test_server::TestServer;

#[tokio::test]
async fn a_recording_is_a_run_under_the_clients_own_names() {
    let test_server = TestServer::new().await;
    let request = input("thread-1", "run-1", json!([user("m1", "go")]));
    let events = test_server.run("replay:tools", &request).await;
    let started = json!({
        "type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0",
    });
    assert_eq!(events[0], started);
    let finished = end(&events);
    assert_eq!(finished["threadId"], "thread-1");
    assert_eq!(finished["runId"], "run-1");
    assert_eq!(finished["outcome"]["type"], "success");
    let users = events.iter().filter(|it| it["role"] == "user").count();
    assert_eq!(users, 0, "the client knows what it said");
    assert!(types(&events).contains(&"TOOL_CALL_RESULT"));
}

#[tokio::test]
async fn without_a_name_the_default_engine_runs() {
    let test_server = TestServer::with(|config| {
        let settings = "default_engine = \"replay:tools\"";
        let file = Some((Path::new("test.toml"), settings));
        config.hub.settings = Config::parse(file, |_| None).unwrap();
    })
    .await;
    let request = input("t", "r1", json!([user("m1", "go")]));
    let answer = test_server.post("/ag-ui", &request).await;
    let told = events(&answer);
    assert_eq!(end(&told)["outcome"]["type"], "success");
    // The thread is the same by either address.
    assert_eq!(test_server.run("replay:tools", &request).await, told);
}

#[tokio::test]
async fn the_next_run_of_a_thread_resumes_its_session() {
    let test_server = TestServer::new().await;
    let first = test_server
        .run("claude", &input("t", "r1", json!([user("m1", "hello")])))
        .await;
    assert_eq!(texts(&first), "done");
    let messages = json!([
        user("m1", "hello"),
        { "id": "a1", "role": "assistant", "content": "done" },
        user("m2", "and now"),
    ]);
    let second = test_server.run("claude", &input("t", "r2", messages)).await;
    assert_eq!(texts(&second), "done");
    let sessions = test_server.get("/api/sessions").await.json();
    let sessions = sessions["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1);
    let id = sessions[0]["id"].as_str().unwrap();
    let detail = test_server.get(&format!("/api/sessions/{id}")).await.json();
    assert_eq!(detail["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn settings_of_the_header_take_the_place_of_the_clients() {
    let test_server = TestServer::new().await;
    let mut request = input("t", "r1", json!([user("m1", "hello")]));
    request["forwardedProps"] = json!({ "linkspan": { "permissions": "nonsense" } });
    let ask = async |settings: &str| {
        let headers = format!(
            "{}Linkspan-Settings: {settings}\r\n",
            test_server.bearer("first")
        );
        let body = request.to_string();
        test_server
            .request("POST", "/ag-ui/claude", &headers, &body)
            .await
    };
    let answer = ask("{}").await;
    assert_eq!(answer.status, 200);
    let told = events(&answer);
    assert_eq!(texts(&told), "done");
    let notices = told.iter().filter(|it| it["name"] == "linkspan.notice");
    let codes: Vec<&Value> = notices.map(|it| &it["value"]["code"]).collect();
    assert_eq!(codes, ["settings_left_out"]);
    let refused = "`linkspan-settings` is not a JSON object";
    for (settings, message) in [("no", refused), ("[]", refused)] {
        let answer = ask(settings).await;
        let told = answer.json()["error"]["message"].clone();
        assert_eq!((answer.status, told), (400, json!(message)));
    }
    request["runId"] = json!("r2");
    let wrong = r#"{"permissions":"sometimes"}"#;
    let headers = format!(
        "{}Linkspan-Settings: {wrong}\r\n",
        test_server.bearer("first")
    );
    let body = request.to_string();
    let answer = test_server
        .request("POST", "/ag-ui/claude", &headers, &body)
        .await;
    assert_eq!(
        (answer.status, answer.code()),
        (400, "bad_input".to_owned())
    );
}

#[tokio::test]
async fn a_question_ends_the_run_and_its_answer_resumes_it() {
    let test_server = TestServer::new().await;
    let asked = test_server
        .run("claude", &input("t", "r1", json!([user("m1", "ask me")])))
        .await;
    let interrupt = end(&asked).clone();
    assert_eq!(interrupt["outcome"]["type"], "interrupt");
    let interrupts = interrupt["outcome"]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 1);
    assert_eq!(interrupts[0]["reason"], "tool_call");
    assert_eq!(
        interrupts[0]["metadata"]["linkspan"]["toolCallName"],
        "Bash"
    );
    let call = asked
        .iter()
        .find(|it| it["type"] == "TOOL_CALL_START")
        .unwrap();
    assert_eq!(interrupts[0]["toolCallId"], call["toolCallId"]);

    let silent = test_server
        .run("claude", &input("t", "r2", json!([user("m1", "ask me")])))
        .await;
    assert_eq!(end(&silent)["code"], "interrupt_open");

    let mut resume = input("t", "r3", json!([user("m1", "ask me")]));
    resume["resume"] = json!([{
        "interruptId": interrupts[0]["id"], "status": "resolved", "payload": { "approved": true },
    }]);
    let answer = test_server
        .request(
            "POST",
            "/ag-ui/claude",
            &test_server.bearer("prompt"),
            &resume.to_string(),
        )
        .await;
    assert_eq!(answer.status, 403);
    let resumed = test_server.run("claude", &resume).await;
    assert_eq!(resumed[0]["runId"], "r3");
    assert_eq!(end(&resumed)["outcome"]["type"], "success");
    assert_eq!(texts(&resumed), "allowed");

    let again = test_server.run("claude", &resume).await;
    assert_eq!(
        types(&again),
        types(&resumed),
        "the same answer again does no harm"
    );
}

#[tokio::test]
async fn a_late_client_gets_the_open_asks() {
    let test_server = TestServer::new().await;
    let asked = test_server
        .run("claude", &input("t", "r1", json!([user("m1", "ask me")])))
        .await;
    let late = test_server
        .run("claude", &input("t", "r2", json!([])))
        .await;
    assert_eq!(late[1]["type"], "MESSAGES_SNAPSHOT");
    assert_eq!(end(&late)["outcome"], end(&asked)["outcome"]);
    let mut resume = input("t", "r3", json!([]));
    resume["resume"] = json!([{
        "interruptId": end(&late)["outcome"]["interrupts"][0]["id"],
        "status": "resolved", "payload": { "approved": true },
    }]);
    assert_eq!(texts(&test_server.run("claude", &resume).await), "allowed");
}

#[tokio::test]
async fn a_refusal_reaches_the_agent() {
    let test_server = TestServer::new().await;
    let asked = test_server
        .run("claude", &input("t", "r1", json!([user("m1", "ask me")])))
        .await;
    let id = &end(&asked)["outcome"]["interrupts"][0]["id"];
    let mut resume = input("t", "r2", json!([]));
    resume["resume"] = json!([{ "interruptId": id, "status": "cancelled" }]);
    let resumed = test_server.run("claude", &resume).await;
    assert_eq!(texts(&resumed), "denied");
}

#[tokio::test]
async fn an_answer_to_nothing_is_refused_in_the_stream() {
    let test_server = TestServer::new().await;
    let mut resume = input("t", "r1", json!([]));
    resume["resume"] = json!([{ "interruptId": "s:1", "status": "resolved", "payload": true }]);
    let events = test_server.run("claude", &resume).await;
    assert_eq!(end(&events)["code"], "no_such_interrupt");
}

#[tokio::test]
async fn an_abort_is_the_outcome_cancelled() {
    let test_server = TestServer::new().await;
    let request = input("t", "r1", json!([user("m1", "wait for me")]));
    let run = test_server.run("claude", &request);
    let abort = async {
        loop {
            let answer = test_server
                .post("/ag-ui/claude/abort", &json!({ "threadId": "t" }))
                .await;
            if answer.json()["aborted"] == true {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let (events, ()) = tokio::join!(run, abort);
    assert_eq!(end(&events)["outcome"], json!({ "type": "cancelled" }));
}

/// Sends a request, waits until it is told this, and hangs up.
async fn leave(test_server: &TestServer, query: &str, run: &str, told: &str) {
    let body = input("t", run, json!([user("m1", "wait for me")])).to_string();
    let mut stream = TcpStream::connect(test_server.address).await.unwrap();
    let request = format!(
        "POST /ag-ui/claude{query} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n{body}",
        test_server.address,
        body.len(),
        test_server.bearer("first")
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(told) {
        let mut buf = [0; 1024];
        let n = stream.read(&mut buf).await.unwrap();
        seen.extend_from_slice(&buf[..n]);
    }
}

async fn only_session(test_server: &TestServer) -> Value {
    test_server.get("/api/sessions").await.json()["sessions"][0].clone()
}

#[tokio::test]
async fn a_disconnect_aborts_the_run_only_if_requested() {
    let test_server = TestServer::new().await;
    leave(&test_server, "", "r1", "linkspan.session").await;
    let session = only_session(&test_server).await;
    let id = session["id"].as_str().unwrap();
    assert_eq!(session["state"], "running");
    // Who comes back with the same run is told all of it.
    let request = input("t", "r1", json!([user("m1", "wait for me")]));
    let back = test_server.run("claude", &request);
    let abort = async {
        test_server
            .post("/ag-ui/claude/abort", &json!({ "threadId": "t" }))
            .await;
    };
    let (events, ()) = tokio::join!(back, abort);
    assert_eq!(end(&events)["outcome"]["type"], "cancelled");
    assert_eq!(
        test_server.ended(id, 1).await["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let other = TestServer::new().await;
    leave(&other, "?on_disconnect=abort", "r1", "linkspan.session").await;
    let id = only_session(&other).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ended = other.ended(&id, 1).await;
    assert_eq!(ended["runs"][0]["outcome"], "aborted");
}

#[tokio::test]
async fn a_client_that_leaves_takes_back_its_own_prompt_and_no_other() {
    let test_server = TestServer::new().await;
    leave(&test_server, "", "r1", "linkspan.session").await;
    let id = only_session(&test_server).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // One waits behind the run, the other one only looks at it.
    leave(&test_server, "?on_disconnect=abort", "r2", "RUN_STARTED").await;
    test_server
        .until(&id, |it| it["queue"].as_array().unwrap().is_empty())
        .await;
    let look = input("t", "r3", json!([]));
    let looked = test_server.run("claude?on_disconnect=abort", &look);
    let wait = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(wait, looked).await.is_err());
    let session = only_session(&test_server).await;
    assert_eq!(
        (&session["state"], &session["queue"]),
        (&json!("running"), &json!(0))
    );
    test_server
        .post("/ag-ui/claude/abort", &json!({ "threadId": "t" }))
        .await;
    let ended = test_server.ended(&id, 1).await;
    assert_eq!(ended["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn request_errors_name_the_field() {
    let test_server = TestServer::new().await;
    let rows = [
        (json!({ "threadId": "t" }), "`runId` is missing"),
        (
            input("t", "r", json!([{ "id": "1", "role": "user" }])),
            "`messages[0].content` is missing",
        ),
        (
            input("t", "r", json!([])),
            "`messages` is not the user's: there is no prompt",
        ),
        (
            input(
                "t",
                "r",
                json!([{ "id": "1", "role": "assistant", "content": "x" }]),
            ),
            "`messages[0]` is not the user's: there is no prompt",
        ),
    ];
    for (body, message) in rows {
        let answer = test_server.post("/ag-ui/claude", &body).await;
        assert_eq!(answer.status, 400);
        let expected = json!({ "error": { "code": "bad_input", "message": message } });
        assert_eq!(answer.json(), expected);
    }
    let answer = test_server
        .post("/ag-ui/nonsense", &input("t", "r", json!([])))
        .await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_engine"));
    let answer = test_server
        .post(
            "/ag-ui/claude?profile=nonsense",
            &input("t", "r", json!([])),
        )
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "unknown_format")
    );
}

#[tokio::test]
async fn unsupported_options_are_reported() {
    let test_server = TestServer::new().await;
    let mut request = input("t", "r1", json!([user("m1", "hello")]));
    request["tools"] = json!([{ "name": "f", "description": "", "parameters": {} }]);
    let events = test_server.run("claude", &request).await;
    let notice = events
        .iter()
        .find(|it| it["name"] == "linkspan.notice")
        .unwrap();
    assert_eq!(notice["value"]["code"], "tools_left_out");
    end(&events);
}

#[tokio::test]
async fn a_watcher_may_not_run_anything() {
    let test_server = TestServer::new().await;
    let body = input("t", "r1", json!([user("m1", "hello")])).to_string();
    let refused = test_server
        .request("POST", "/ag-ui/claude", &test_server.bearer("watch"), &body)
        .await;
    assert_eq!(refused.status, 403);
    let command = test_server
        .request(
            "POST",
            "/ag-ui/acp:sh",
            &test_server.bearer("prompt"),
            &body,
        )
        .await;
    assert_eq!(command.status, 403, "a command line is the owner's to name");
    let answer = test_server.get("/ag-ui/claude/capabilities").await;
    let capabilities = answer.json();
    assert_eq!(capabilities["humanInTheLoop"]["interrupts"], true);
    assert_eq!(capabilities["tools"]["clientProvided"], false);
    assert_eq!(events(&answer), Vec::<Value>::new());
}
