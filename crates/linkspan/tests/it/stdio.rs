//! `linkspan stdio` as the program that starts it meets it: controls in, replies and events out.

mod client;
mod ends;

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use self::client::{Client, is_working, made, of_type, session};
use crate::acp::client::answers;
use crate::program::{Folder, run};
use crate::served::Served;

fn play(client: &mut Client, recording: &str) -> String {
    let prompt = json!({ "control": "run.submit", "prompt": "go", "engine": recording });
    session(&client.call(prompt))
}

/// The messages that belong to a session's log, in the order in which they came.
fn of_session<'a>(client: &'a Client, id: &str) -> Vec<&'a Value> {
    let is_of = |it: &&Value| it["sessionId"] == id && it.get("cursor").is_some();
    let messages = client.heard.iter().filter(is_of);
    messages
        .filter(|it| {
            !matches!(
                it["type"].as_str(),
                Some("bridge.run_submit" | "bridge.caught_up")
            )
        })
        .collect()
}

#[test]
fn a_prompt_is_answered_with_its_session_and_its_events_follow() {
    let folder = made("stdio-whole");
    let mut client = Client::new(&folder, &[]);
    let pid = client.child.id();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        client.ready,
        json!({ "type": "bridge.ready", "version": version, "protocol": 1, "pid": pid })
    );
    let reply = client.call(json!({
        "control": "run.submit", "prompt": "go", "engine": "replay:tools",
    }));
    let id = session(&reply);
    assert_eq!(
        reply,
        json!({
            "type": "bridge.run_submit", "threadDocId": reply["threadDocId"], "sessionId": id,
            "number": 1, "position": 0, "cursor": 0, "provider": "replay:tools",
            "resumeId": null, "len": 2,
        })
    );
    let mut end = client.until_type("bridge.run_ended");
    let types: Vec<&str> = of_session(&client, &id)
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    let first_and_last = (types[..2].to_vec(), types[types.len() - 2..].to_vec());
    assert_eq!(
        first_and_last,
        (
            vec!["thread.started", "turn.started"],
            vec!["turn.completed", "bridge.run_ended"]
        )
    );
    // `7.1` is a part of event 7, and comes before all of it.
    let cursors: Vec<(u64, u64)> = of_session(&client, &id)
        .iter()
        .map(|it| match &it["cursor"] {
            Value::String(text) => {
                let (seq, part) = text.split_once('.').unwrap();
                (seq.parse().unwrap(), part.parse().unwrap())
            }
            cursor => (cursor.as_u64().unwrap(), u64::MAX),
        })
        .collect();
    assert!(cursors.is_sorted_by(|a, b| a < b), "{cursors:?}");
    for name in ["sessionId", "cursor", "runId"] {
        end.as_object_mut().unwrap().remove(name);
    }
    expect![[r#"{"answer":"Everything is done: created notes/new.txt and edited src/calc.py.","cost_usd":0.001365,"denials":[],"duration_ms":922,"error":null,"model_usage":[{"cache_write_input_tokens":21,"cached_input_tokens":300,"context_window":1000000,"cost_usd":0.001365,"input_tokens":75,"model":"claude-opus-5-5","output_tokens":45,"reasoning_output_tokens":0}],"outcome":"completed","session_cost_usd":0.001365,"stopReason":"end_turn","type":"bridge.run_ended","usage":{"cache_write_input_tokens":21,"cached_input_tokens":300,"input_tokens":75,"output_tokens":45,"reasoning_output_tokens":0},"usage_scope":"run"}"#]]
        .assert_eq(&end.to_string());
    let (code, last) = client.leave();
    assert_eq!(code, Some(0));
    // No more events: only what the session is like now, and that all of it was sent.
    let is_state = |it: &Value| match it["type"].as_str() {
        Some("bridge.session") => it["session"]["id"] == id,
        Some("bridge.caught_up") => it["sessionId"] == id,
        _ => false,
    };
    assert!(last.iter().all(is_state), "{last:?}");
}

#[test]
fn every_format_has_its_events_and_the_messages_of_the_bridge() {
    let folder = made("stdio-formats");
    let mut found = String::new();
    for format in ["takopi", "thread", "openhands", "acp", "ag-ui", "linkspan"] {
        let mut client = Client::new(&folder, &["--to", format]);
        let id = play(&mut client, "replay:tools");
        client.until_type("bridge.run_ended");
        let kinds = |it: &&Value| match it["type"].as_str() {
            Some("bridge.event" | "bridge.run_ended") => it["type"].clone(),
            _ => json!("event"),
        };
        let is_event = |it: &&Value| it["sessionId"] == id || it["session"] == id;
        let is_log = |it: &&Value| {
            let own = ["bridge.run_submit", "bridge.caught_up", "bridge.session"];
            !own.iter().any(|own| it["type"] == *own)
        };
        let mut kinds: Vec<Value> = client
            .heard
            .iter()
            .filter(is_event)
            .filter(is_log)
            .map(|it| kinds(&it))
            .collect();
        kinds.dedup();
        writeln!(found, "{format}: {}", Value::from(kinds)).unwrap();
    }
    expect![[r#"
        takopi: ["bridge.event","bridge.run_ended"]
        thread: ["event","bridge.run_ended"]
        openhands: ["bridge.event","bridge.run_ended"]
        acp: ["bridge.event","bridge.run_ended"]
        ag-ui: ["bridge.event","bridge.run_ended"]
        linkspan: ["event","bridge.run_ended"]
    "#]]
    .assert_eq(&found);
}

#[test]
fn an_ask_is_pushed_and_its_answer_reaches_the_agent() {
    let folder = made("stdio-asks");
    // In a format that has no word for an ask.
    let mut client = Client::new(&folder, &["--to", "takopi"]);
    let id = client.submit("ask me");
    let ask = client.until_type("bridge.ask");
    let ask_id = ask["askId"].as_str().unwrap().to_owned();
    let mut shown = ask.clone();
    for name in ["cursor", "seq", "runId", "itemId"] {
        let value = shown.as_object_mut().unwrap().remove(name);
        assert!(value.is_some_and(|it| !it.is_null()), "{name}: {ask}");
    }
    expect![[r#"{"answer":{"control":{"askId":"ASK","control":"ask.settle","decision":"allow"},"decisions":["allow","allow_always","deny"]},"askId":"ASK","command":"ls","deadline":null,"description":null,"input":{"command":"ls"},"kind":"permission","sessionId":"SESSION","suggestions":null,"title":"ls","tool":"Bash","type":"bridge.ask"}"#]]
        .assert_eq(&shown.to_string().replace(&ask_id, "ASK").replace(&id, "SESSION"));
    let settle = json!({
        "control": "ask.settle", "askId": ask_id, "decision": "deny", "message": "not here",
    });
    let reply = client.call(settle.clone());
    assert_eq!(
        reply,
        json!({ "type": "bridge.ask_settled", "askId": ask_id, "decision": "deny" })
    );
    let mut settled = client.until_type("bridge.ask_settled");
    settled.as_object_mut().unwrap().remove("cursor");
    assert_eq!(
        settled,
        json!({
            "type": "bridge.ask_settled", "sessionId": id, "askId": ask_id, "decision": "denied",
            "by": "client", "why": null, "message": "not here", "input": null,
        })
    );
    client.until_type("bridge.run_ended");
    let expected = [json!({ "behavior": "deny", "message": "not here" })];
    assert_eq!(answers(&folder), expected);
    assert_eq!(client.call(settle)["code"], "already_settled");
}

#[test]
fn the_list_of_allowed_tools_is_the_whole_list() {
    let folder = made("stdio-allowed");
    let mut client = Client::new(&folder, &[]);
    // The scripted agent asks whatever its command line allows: the list answers, or nobody does.
    for (allowed, is_answered) in [(json!(["Bash"]), true), (json!([]), false)] {
        let prompt = json!({
            "control": "run.submit", "prompt": "ask me", "engine": "claude",
            "permissions": "ask", "allowedTools": allowed,
        });
        client.call(prompt);
        client.until_type("bridge.ask");
        if is_answered {
            let settled = client.until_type("bridge.ask_settled");
            let settled = (&settled["decision"], &settled["by"]);
            assert_eq!(settled, (&json!("allowed"), &json!("client")));
            client.until_type("bridge.run_ended");
        }
        let waiting = client.call(json!({ "control": "asks" }))["asks"].clone();
        let waiting = waiting.as_array().unwrap().len();
        assert_eq!(waiting, usize::from(!is_answered), "{allowed}");
    }
}

#[test]
fn sessions_run_side_by_side_and_each_is_aborted_by_its_name() {
    let folder = made("stdio-two");
    let mut client = Client::new(&folder, &["--to", "linkspan"]);
    let ids = [client.submit("hang"), client.submit("hang")];
    for id in &ids {
        let is_there = |it: &Value| it["session"] == *id && is_working(it);
        if !client.heard.iter().any(is_there) {
            client.until(is_there);
        }
    }
    for id in &ids {
        let abort = json!({ "control": "run.abort", "sessionId": id });
        let expected = json!({ "type": "bridge.run_abort", "sessionId": id, "aborted": true });
        assert_eq!(client.call(abort), expected);
        let end = client.until(|it| it["type"] == "bridge.run_ended" && it["sessionId"] == *id);
        assert_eq!(end["outcome"], "aborted");
    }
}

#[test]
fn a_second_prompt_goes_on_in_the_session_and_repeats_nothing() {
    let folder = made("stdio-resumed");
    let mut client = Client::new(&folder, &[]);
    let id = client.submit("one");
    let first = client.until_type("bridge.run_ended");
    assert_eq!(client.leave().0, Some(0));
    // A process of its own, as a script that goes on another day.
    let mut client = Client::new(&folder, &[]);
    let prompt = json!({
        "control": "run.submit", "prompt": "two", "engine": "claude", "session": id,
    });
    let reply = client.call(prompt);
    assert_eq!(reply["cursor"], first["cursor"]);
    client.until_type("bridge.run_ended");
    let ends = of_type(&client.heard, "bridge.run_ended").len();
    assert_eq!(ends, 1, "{:#?}", client.heard);
}

#[test]
fn what_cannot_be_read_is_answered_and_nothing_else_is_lost() {
    let folder = made("stdio-garbage");
    let mut client = Client::new(&folder, &[]);
    let long = format!(
        "{{\"control\":\"echo\",\"payload\":\"{}\"}}",
        "x".repeat(5 << 20)
    );
    let lines: [&[u8]; 8] = [
        b"hello",
        b"{",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"{\"type\":\"run.submit\"}",
        b"{\"control\":\"run.submt\",\"prompt\":\"x\",\"requestId\":7}",
        long.as_bytes(),
    ];
    for line in lines {
        client.write(line);
        // What is empty asks for nothing.
        client.write(b"");
        client.write(b"{\"control\":\"echo\",\"tag\":\"after\"}");
    }
    for _ in lines {
        client.until(|it| it["tag"] == "after");
    }
    let refused = of_type(&client.heard, "bridge.error").into_iter().cloned();
    let mut shown = String::new();
    for mut it in refused {
        // All controls are in some of them.
        it.as_object_mut().unwrap().remove("hint");
        writeln!(shown, "{it}").unwrap();
    }
    expect![[r#"
        {"code":"bad_message","message":"a message is JSON: expected value at line 1 column 1","type":"bridge.error"}
        {"code":"bad_message","message":"a message is JSON: EOF while parsing an object at line 1 column 1","type":"bridge.error"}
        {"code":"bad_message","message":"a message is a JSON object","type":"bridge.error"}
        {"code":"bad_message","message":"a message names its `control`","type":"bridge.error"}
        {"code":"bad_message","message":"a message is JSON: it is not UTF-8","type":"bridge.error"}
        {"code":"bad_message","message":"a message names its `control`","type":"bridge.error"}
        {"code":"unknown_control","message":"no control is called `run.submt`; did you mean `run.submit`?","requestId":7,"type":"bridge.error"}
        {"code":"too_long","message":"the message has 5242911 bytes; 4194304 are read","type":"bridge.error"}
    "#]]
    .assert_eq(&shown);
    // No line became a prompt.
    assert_eq!(
        client.call(json!({ "control": "sessions" }))["sessions"],
        json!([])
    );
}

#[test]
fn a_server_beside_it_shows_the_same_session_and_may_answer() {
    let folder = made("stdio-beside");
    let served = Served::start(&folder);
    let mut client = Client::new(&folder, &["--to", "linkspan"]);
    // What others do is not its business.
    let other = served.submit(&json!({ "prompt": "x", "engine": "replay:tools" }));
    served.idle(&other);
    let id = client.submit("ask me");
    let ask = client.until_type("bridge.ask");
    let ask_id = ask["askId"].as_str().unwrap();
    let answer = served.request(
        "POST",
        &format!("/api/asks/{ask_id}"),
        r#"{"decision":"allow"}"#,
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    let settled = client.until_type("bridge.ask_settled");
    assert_eq!(
        (&settled["decision"], &settled["by"]),
        (&json!("allowed"), &json!("client"))
    );
    client.until_type("bridge.run_ended");
    let heard: Vec<&Value> = client
        .heard
        .iter()
        .filter(|it| it["session"] == id)
        .collect();
    let stored = served.events(&id);
    let stored: Vec<Value> = stored
        .iter()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(heard, stored.iter().collect::<Vec<_>>());
    let foreign = client
        .heard
        .iter()
        .filter(|it| it.to_string().contains(&other));
    assert_eq!(foreign.count(), 0);
}

/// More than a follower may be behind.
fn long_recording(folder: &Folder, n_messages: usize) -> String {
    let mut text = String::from(
        "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n",
    );
    let words = "x".repeat(4096);
    for n in 0..n_messages {
        writeln!(text, r#"{{"type":"assistant","session_id":"s","message":{{"id":"m{n}","role":"assistant","content":[{{"type":"text","text":"{words}"}}]}}}}"#).unwrap();
    }
    text.push_str("{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s\"}\n");
    folder.file("long.jsonl", &text)
}

#[test]
fn a_client_that_reads_late_misses_nothing() {
    let folder = made("stdio-late");
    let recording = long_recording(&folder, 4000);
    let served = Served::start(&folder);
    let mut command = crate::program::linkspan(&["stdio", "--to", "linkspan"]);
    command.args(["--data-dir", &folder.path("data")]);
    let mut child = crate::acp::client::at_home(&mut command, &folder)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let control = json!({
        "control": "run.submit", "prompt": "go", "engine": format!("replay:{recording}"),
    });
    std::io::Write::write_all(&mut stdin, format!("{control}\n").as_bytes()).unwrap();
    // It is all stored before a line is read.
    let began = std::time::Instant::now();
    let id = loop {
        if let [id] = &served.sessions()[..] {
            break id.clone();
        }
        assert!(began.elapsed() < crate::served::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    served.idle(&id);
    let stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let lines = std::io::BufRead::lines(stdout);
    let lines = lines.map(|it| serde_json::from_str::<Value>(&it.unwrap()).unwrap());
    let mut seqs = Vec::new();
    for message in lines {
        seqs.extend(message["seq"].as_u64().filter(|_| message["session"] == id));
        if message["type"] == "bridge.run_ended" {
            break;
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(seqs.len() > 4000, "{}", seqs.len());
    drop(stdin);
    assert_eq!(client::exit_code(&mut child), Some(0));
}

#[test]
fn formats_that_are_no_stream_are_refused() {
    let folder = made("stdio-usage");
    let data = folder.path("data");
    let mut shown = String::new();
    for args in [["--to", "text"], ["--to", "thred"], ["--profile", "sed"]] {
        let ran = run(&[&["stdio", "--data-dir", &data], &args[..]].concat(), b"");
        shown += &ran.shown();
    }
    expect![[r#"
        linkspan: invalid value 'text' for '--to <FORMAT>'

        hint: possible values: claude, takopi, thread, openhands, acp, ag-ui, linkspan
        exit 2
        linkspan: there is no format `thred`

        hint: did you mean `thread`? can be written: claude, takopi, thread, openhands, acp, ag-ui, linkspan, text, markdown, html
        exit 2
        linkspan: `thread` has no profile `sed`

        hint: did you mean `seed`? profiles of `thread`: seed, full
        exit 2
    "#]]
    .assert_eq(&shown);
}
