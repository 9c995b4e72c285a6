//! `/api` from outside: prompts in, sessions and events out, errors that say what is wrong.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::test_server::TestServer;

fn lines(body: &str) -> Vec<Value> {
    body.lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect()
}

#[tokio::test]
async fn a_prompt_becomes_a_session_that_can_be_read_in_every_format() {
    let test_server = TestServer::new().await;
    let cwd = test_server.dir.path().canonicalize().unwrap();
    let prompt = json!({ "prompt": "hello\nthere", "engine": "replay:tools", "cwd": cwd });
    let id = test_server.submit(prompt).await;
    let session = test_server.ended(&id, 1).await;
    let run = &session["runs"][0];
    assert_eq!(
        (
            &session["title"],
            &session["state"],
            &run["outcome"],
            &run["id"]
        ),
        (
            &json!("hello"),
            &json!("idle"),
            &json!("completed"),
            &json!("r1")
        )
    );
    assert!(run["cost_usd"].as_f64().unwrap() > 0.0);
    let by_native = test_server
        .get(&format!(
            "/api/sessions/{}",
            session["native"].as_str().unwrap()
        ))
        .await;
    assert_eq!(by_native.json(), session);
    let events = lines(
        &test_server
            .get(&format!("/api/sessions/{id}/events"))
            .await
            .body,
    );
    let numbers: Vec<u64> = events
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    let head = session["head"].as_u64().unwrap();
    assert_eq!(numbers, (1..=head).collect::<Vec<_>>());
    assert!(events.iter().all(|it| it["session"] == id));
    let page = lines(
        &test_server
            .get(&format!("/api/sessions/{id}/events?after=3&limit=2"))
            .await
            .body,
    );
    assert_eq!(page, events[3..5]);
    for (format, kind) in [
        ("thread", "application/x-ndjson"),
        ("takopi", "application/x-ndjson"),
        ("openhands", "application/x-ndjson"),
        ("acp", "application/x-ndjson"),
        ("ag-ui", "text/event-stream"),
        ("text", "text/plain"),
        ("markdown", "text/markdown"),
        ("html", "text/html"),
    ] {
        let answer = test_server
            .get(&format!("/api/sessions/{id}/events?format={format}"))
            .await;
        assert_eq!(answer.status, 200, "{format}");
        assert!(
            answer.head.contains(&format!("content-type: {kind}")),
            "{}",
            answer.head
        );
        assert!(!answer.body.is_empty(), "{format}");
    }
}

#[tokio::test]
async fn the_list_is_paged_and_filtered() {
    let test_server = TestServer::new().await;
    for n in 0..5 {
        let engine = if n % 2 == 0 {
            "replay:tools"
        } else {
            "replay:failure"
        };
        let id = test_server
            .submit(json!({ "prompt": format!("prompt {n}"), "engine": engine }))
            .await;
        test_server.ended(&id, 1).await;
    }
    let mut titles = Vec::new();
    let mut path = "/api/sessions?limit=2".to_owned();
    loop {
        let page = test_server.get(&path).await.json();
        let sessions = page["sessions"].as_array().unwrap();
        titles.extend(
            sessions
                .iter()
                .map(|it| it["title"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/api/sessions?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(
        titles,
        ["prompt 4", "prompt 3", "prompt 2", "prompt 1", "prompt 0"]
    );
    let count = async |query: &str| {
        let page = test_server
            .get(&format!("/api/sessions?{query}"))
            .await
            .json();
        page["sessions"].as_array().unwrap().len()
    };
    assert_eq!(count("engine=replay:failure").await, 2);
    assert_eq!(count("text=PROMPT%203").await, 1);
    assert_eq!(count("state=idle").await, 5);
    assert_eq!(count("state=running").await, 0);
}

#[tokio::test]
async fn errors_are_json() {
    let test_server = TestServer::new().await;
    let long = "x".repeat((1 << 20) + 1);
    let runs = [
        (json!({}), 400, "empty_prompt"),
        (json!({ "prompt": " " }), 400, "empty_prompt"),
        (json!({ "prompt": 1 }), 400, "bad_request"),
        (json!({ "prompt": long }), 413, "prompt_too_long"),
        (
            json!({ "prompt": "x", "engine": "none" }),
            400,
            "bad_engine",
        ),
        (
            json!({ "prompt": "x", "engine": "acp:/nowhere/agent" }),
            400,
            "bad_engine",
        ),
        (
            json!({ "prompt": "x", "engine": "replay:nosuch.jsonl" }),
            400,
            "bad_recording",
        ),
        (
            json!({ "prompt": "x", "engine": "replay:tools", "effort": "high" }),
            400,
            "bad_engine",
        ),
        (
            json!({ "prompt": "x", "engine": "replay:tools", "cwd": "src/none" }),
            400,
            "bad_directory",
        ),
        (
            json!({ "prompt": "x", "session": "none" }),
            404,
            "no_such_session",
        ),
        (
            json!({ "prompt": "x", "session": "a", "fork": "b" }),
            400,
            "bad_request",
        ),
        (
            json!({ "prompt": "x", "permissions": "yes" }),
            400,
            "bad_request",
        ),
        (json!({ "prompt": "x", "speed": -1 }), 400, "bad_request"),
    ];
    for (body, status, code) in runs {
        let answer = test_server.post("/api/runs", &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
    }
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    for (path, status, code) in [
        ("/api/sessions/none".to_owned(), 404, "no_such_session"),
        ("/api/sessions?state=x".to_owned(), 400, "bad_request"),
        ("/api/sessions?limit=x".to_owned(), 400, "bad_request"),
        ("/api/sessions?after=x".to_owned(), 400, "bad_request"),
        (
            format!("/api/sessions/{id}/events?format=none"),
            400,
            "unknown_format",
        ),
        (
            format!("/api/sessions/{id}/events?profile=none"),
            400,
            "unknown_format",
        ),
        (
            format!("/api/sessions/{id}/events?after=x"),
            400,
            "bad_request",
        ),
        ("/nowhere".to_owned(), 404, "not_found"),
        ("/assets/none.js".to_owned(), 404, "not_found"),
        ("/assets/../index.html".to_owned(), 404, "not_found"),
        ("/ws?format=none".to_owned(), 400, "unknown_format"),
        ("/ws".to_owned(), 400, "bad_request"),
    ] {
        let answer = test_server.get(&path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{path}"
        );
    }
    let answer = test_server.post("/api/sessions", &json!({})).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (405, "method_not_allowed")
    );
    let answer = test_server
        .post("/api/asks/none", &json!({ "decision": "allow" }))
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "no_such_ask")
    );
    let answer = test_server
        .post(
            &format!("/api/asks/{id}:1"),
            &json!({ "decision": "allow" }),
        )
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "no_such_ask")
    );
}

#[tokio::test]
async fn errors_name_the_value_and_what_would_do() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    let formats =
        "formats: claude, takopi, thread, openhands, acp, ag-ui, linkspan, text, markdown, html";
    let events = format!("/api/sessions/{id}/events");
    let cases = [
        (
            format!("/api/sessions/{}", &id[..8]),
            format!("no session matches `{}`", &id[..8]),
            Some("`GET /api/sessions` lists them; the whole id is needed"),
        ),
        (
            format!("{events}?format=nosuch"),
            "there is no format `nosuch`".to_owned(),
            Some(formats),
        ),
        (
            format!("{events}?format=codex"),
            "`codex` can be read, but not written".to_owned(),
            Some(formats),
        ),
        (
            format!("{events}?format=ag-ui&profile=nosuch"),
            "`ag-ui` has no profile `nosuch`".to_owned(),
            Some("profiles: thinking"),
        ),
        (
            format!("{events}?limit=x"),
            "`limit` cannot be read: expected a whole number, not `x`".to_owned(),
            None,
        ),
        (
            "/api/sessions?limit=-1".to_owned(),
            "`limit` cannot be read: expected a whole number, not `-1`".to_owned(),
            None,
        ),
    ];
    for (path, message, hint) in cases {
        let error = test_server.get(&path).await.json()["error"].clone();
        let expected = match hint {
            Some(hint) => json!({ "code": error["code"], "message": message, "hint": hint }),
            None => json!({ "code": error["code"], "message": message }),
        };
        assert_eq!(error, expected, "{path}");
    }
    let bad = json!({ "prompt": "x", "engine": "replay:tools", "speed": "fast" });
    let answer = test_server.post("/api/runs", &bad).await.json();
    let message = answer["error"]["message"].as_str().unwrap();
    let expected = "`speed` cannot be read: invalid type: string \"fast\", expected a number";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn what_an_engine_does_not_take_is_refused_and_leaves_nothing() {
    let test_server = TestServer::new().await;
    let transcript = test_server.dir.path().join("secret.jsonl");
    let file = "the session id is a file or an address to Claude Code, no session";
    let flag = |what: &str| format!("the {what} begins with `-`: `--x`");
    for (fields, message) in [
        (json!({ "model": "--x" }), flag("model")),
        (json!({ "deny": ["--x"] }), flag("tool")),
        (json!({ "allow": ["Read", "--x"] }), flag("tool")),
        (
            json!({ "resume": " a" }),
            "the session id begins or ends with a space: ` a`".to_owned(),
        ),
        (json!({ "fork": "a.jsonl" }), format!("{file}: `a.jsonl`")),
        (
            json!({ "resume": "http://a" }),
            format!("{file}: `http://a`"),
        ),
        (json!({ "fork": transcript }), file.to_owned()),
        (json!({ "resume": transcript }), file.to_owned()),
    ] {
        let mut body = json!({ "prompt": "hello", "engine": "claude" });
        let all = body.as_object_mut().unwrap();
        all.extend(fields.as_object().unwrap().clone());
        let answer = test_server.post("/api/runs", &body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "bad_request")
        );
        let said = answer.json()["error"]["message"].clone();
        let said = said.as_str().unwrap();
        assert!(said.starts_with(&message), "{fields}: {said}");
    }
    let listed = json!({ "prompt": "hello", "engine": "replay:tools", "allow": ["Bash"] });
    let answer = test_server.post("/api/runs", &listed).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_engine"));
    let sessions = test_server.get("/api/sessions").await.json();
    assert_eq!(sessions["sessions"], json!([]));
}

#[tokio::test]
async fn a_session_is_removed_by_an_admin_when_nothing_runs_in_it() {
    let test_server = TestServer::new().await;
    let id = test_server.ask_agent("wait").await;
    test_server.until(&id, |it| it["state"] == "running").await;
    let path = format!("/api/sessions/{id}");
    let delete = async |role: &str| {
        test_server
            .request("DELETE", &path, &test_server.bearer(role), "")
            .await
    };
    for role in ["watch", "prompt", "approve"] {
        assert_eq!(delete(role).await.code(), "forbidden", "{role}");
    }
    assert_eq!(delete("admin").await.code(), "session_busy");
    test_server.post(&format!("{path}/abort"), &json!({})).await;
    test_server.ended(&id, 1).await;
    // Its agent is still there, and has to go first.
    let mut open = test_server.socket("", "watch").await;
    open.call(json!({ "control": "echo" })).await;
    let removed = delete("admin").await;
    assert_eq!(
        (removed.status, removed.json()),
        (200, json!({ "removed": true }))
    );
    open.next_of("bridge.sessions_changed").await;
    assert_eq!(
        test_server.get("/api/sessions").await.json()["sessions"],
        json!([])
    );
    assert_eq!(delete("admin").await.code(), "no_such_session");
    let again = json!({ "prompt": "more", "session": id });
    let refused = test_server.post("/api/runs", &again).await;
    assert_eq!(refused.code(), "no_such_session");
}

#[tokio::test]
async fn prompts_wait_in_line_and_can_be_taken_back() {
    let test_server = TestServer::new().await;
    let id = test_server.ask_agent("wait").await;
    test_server.until(&id, |it| it["state"] == "running").await;
    let second = test_server
        .post("/api/runs", &json!({ "prompt": "second", "session": id }))
        .await
        .json();
    let third = test_server
        .post("/api/runs", &json!({ "prompt": "third", "session": id }))
        .await
        .json();
    assert_eq!(
        (&second["position"], &third["position"]),
        (&json!(1), &json!(2))
    );
    let queue = test_server
        .until(&id, |it| it["queue"].as_array().unwrap().len() == 2)
        .await["queue"]
        .clone();
    let prompts: Vec<&Value> = queue
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["prompt"])
        .collect();
    assert_eq!(prompts, ["second", "third"]);
    let path = format!("/api/sessions/{id}/queue/{}", second["number"]);
    let token = test_server.bearer("first");
    assert_eq!(
        test_server
            .request("DELETE", &path, &token, "")
            .await
            .status,
        200
    );
    assert_eq!(
        test_server
            .request("DELETE", &path, &token, "")
            .await
            .code(),
        "no_such_prompt"
    );
    let aborted = test_server
        .post(&format!("/api/sessions/{id}/abort"), &json!({}))
        .await;
    assert_eq!(aborted.json(), json!({ "aborted": true }));
    let session = test_server.ended(&id, 2).await;
    let outcomes: Vec<&Value> = session["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["outcome"])
        .collect();
    assert_eq!(outcomes, ["completed", "aborted"]);
    let aborted = test_server
        .post(&format!("/api/sessions/{id}/abort"), &json!({}))
        .await;
    assert_eq!(aborted.json(), json!({ "aborted": false }));
    test_server.stop().await;
}

#[tokio::test]
async fn files_stay_below_the_session_s_directory() {
    let test_server = TestServer::new().await;
    let work = test_server.dir.path().canonicalize().unwrap().join("work");
    fs::create_dir_all(work.join("sub")).unwrap();
    fs::write(work.join("sub/note.txt"), "words\n").unwrap();
    fs::write(work.join("page.html"), "<script>alert(1)</script>").unwrap();
    fs::write(work.join("image.bin"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(work.join("binary"), b"\0\x01\xff").unwrap();
    symlink("../data/token", work.join("out")).unwrap();
    symlink("/etc/passwd", work.join("absolute")).unwrap();
    symlink("sub/note.txt", work.join("inside")).unwrap();
    symlink(work.join("sub/note.txt"), work.join("inside-absolute")).unwrap();
    symlink("..", work.join("up")).unwrap();
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "claude", "cwd": work }))
        .await;
    test_server.ended(&id, 1).await;
    let read = async |path: &str| {
        test_server
            .get(&format!("/api/sessions/{id}/file?path={path}"))
            .await
    };
    let absolute = work.join("sub/note.txt");
    for path in [
        "sub/note.txt",
        "inside",
        "inside-absolute",
        "./sub/../sub/note.txt",
        absolute.to_str().unwrap(),
    ] {
        let answer = read(path).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "words\n"),
            "{path}"
        );
        assert!(answer.head.contains("content-disposition: attachment"));
    }
    assert!(
        read("page.html")
            .await
            .head
            .contains("content-type: text/plain")
    );
    assert!(
        read("image.bin")
            .await
            .head
            .contains("content-type: image/png")
    );
    for (path, status) in [
        ("binary", 415),
        ("sub", 422),
        (".", 422),
        ("", 404),
        ("none", 404),
        ("out", 404),
        ("absolute", 404),
        ("up/data/token", 404),
        ("../data/token", 404),
        ("/etc/passwd", 404),
        ("sub/../../data/token", 404),
        ("%2e%2e/data/token", 404),
        ("/proc/self/environ", 404),
        ("note.txt%00", 404),
        ("..%5cdata%5ctoken", 404),
    ] {
        let answer = read(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(!answer.body.contains("lsp_"), "{path}");
    }
}

#[tokio::test]
async fn the_page_is_served_whole_and_known_again() {
    let test_server = TestServer::new().await;
    let page = test_server.request("GET", "/", "", "").await;
    assert!(
        page.head.contains("content-type: text/html"),
        "{}",
        page.head
    );
    let tag = page
        .head
        .lines()
        .find_map(|it| it.strip_prefix("etag: "))
        .unwrap();
    let again = test_server
        .request("GET", "/", &format!("If-None-Match: {tag}\r\n"), "")
        .await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    for (name, kind) in [
        ("app.js", "text/javascript"),
        ("page.css", "text/css"),
        ("icon.svg", "image/svg+xml"),
        ("cards/tool.js", "text/javascript"),
    ] {
        let file = test_server
            .request("GET", &format!("/assets/{name}"), "", "")
            .await;
        assert_eq!(file.status, 200, "{name}");
        assert!(
            file.head.contains(&format!("content-type: {kind}")),
            "{name}: {}",
            file.head
        );
    }
}

#[tokio::test]
async fn figures_count_what_happened() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    let figures = test_server.get("/api/metrics").await.body;
    assert!(
        figures.contains("\nlinkspan_prompts_total 1\n"),
        "{figures}"
    );
    assert!(
        figures.contains("\nlinkspan_store_trouble 0\n"),
        "{figures}"
    );
}

#[tokio::test]
async fn metrics_count_running_queued_and_ended_runs() {
    let test_server = TestServer::new().await;
    let figure = async |name: &str| {
        let text = test_server.get("/api/metrics").await.body;
        let mut lines = text.lines().filter_map(|it| it.strip_prefix(name));
        let line = lines.find(|it| it.starts_with(' '));
        line.map(|it| it.trim().to_owned())
    };
    assert_eq!(figure("linkspan_runs_running").await.as_deref(), Some("0"));
    let done = test_server.ask_agent("hello").await;
    test_server.ended(&done, 1).await;
    let asking = test_server.ask_agent("ask").await;
    test_server
        .until(&asking, |it| it["state"] == "waiting")
        .await;
    let later = json!({ "prompt": "later", "session": asking });
    assert_eq!(test_server.post("/api/runs", &later).await.status, 202);
    for (name, value) in [
        ("linkspan_runs_running", "1"),
        ("linkspan_prompts_queued", "1"),
        ("linkspan_asks_waiting", "1"),
        (
            r#"linkspan_runs_total{engine="claude",outcome="completed"}"#,
            "1",
        ),
        (
            r#"linkspan_run_duration_seconds_count{engine="claude",outcome="completed"}"#,
            "1",
        ),
        (
            r#"linkspan_run_duration_seconds_bucket{engine="claude",outcome="completed",le="+Inf"}"#,
            "1",
        ),
        (
            r#"linkspan_first_event_seconds_count{engine="claude"}"#,
            "2",
        ),
        (
            r#"linkspan_first_event_seconds_bucket{engine="claude",le="3600"}"#,
            "2",
        ),
    ] {
        assert_eq!(figure(name).await.as_deref(), Some(value), "{name}");
    }
    let requests = figure("linkspan_http_request_duration_seconds_count").await;
    assert!(requests.unwrap().parse::<u64>().unwrap() > 10);
    test_server
        .post(&format!("/api/sessions/{asking}/abort"), &json!({}))
        .await;
    test_server.ended(&asking, 2).await;
    let text = test_server.get("/api/metrics").await.body;
    let aborted = r#"linkspan_runs_total{engine="claude",outcome="aborted"} 1"#;
    assert!(text.contains(aborted), "{text}");
}

#[tokio::test]
async fn a_program_without_a_version_does_not_block() {
    let test_server = TestServer::with(|config| {
        let dir = config.data_dir.parent().unwrap();
        let program = dir.join("mute");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let text = format!("[engines.claude]\nprogram = {program:?}\n");
        let file = Some((std::path::Path::new("test.toml"), &*text));
        config.hub.settings = runner::config::Config::parse(file, |_| None).unwrap();
    })
    .await;
    let began = std::time::Instant::now();
    let answer = test_server.get("/api/engines").await.json();
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(8), "{took:?}");
    let engines = answer["engines"].as_array().unwrap();
    let claude = engines.iter().find(|it| it["name"] == "claude").unwrap();
    assert_eq!(
        (&claude["installed"], &claude["version"]),
        (&json!(true), &json!(null))
    );
}
