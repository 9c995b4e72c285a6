//! What a client sees of a session: the same live, when it is loaded again, and in a file.

use formats::{AcpAgent, AcpClient};
use model::Event;
use serde_json::{Value, json};

use crate::fixtures::{convert, recordings};

const SESSION: &str = "s";

const CLIENT: AcpClient = AcpClient {
    has_notices: true,
    has_compactions: true,
};

/// What the client is told, and how the turns ended.
fn written(events: &str, is_history: bool) -> (Vec<Value>, Vec<String>) {
    let mut agent = AcpAgent::new(SESSION, "/workspace", None, CLIENT);
    agent.set_history(is_history);
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    for line in events.lines() {
        let event = Event::from_json(line).unwrap();
        ends.extend(agent.event(&event, &mut out));
        if !is_history {
            // A client that is watching hears every piece at once.
            agent.flush(&mut out);
        }
    }
    agent.flush(&mut out);
    let text = String::from_utf8(out).unwrap();
    let updates = text.lines().map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["method"], "session/update");
        assert_eq!(message["params"]["sessionId"], SESSION);
        message["params"]["update"].clone()
    });
    (joined(updates), ends)
}

/// Pieces of one text as one, without what the user said and what a tool had printed in between.
fn joined(updates: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for update in updates {
        let is_interim =
            update["sessionUpdate"] == "tool_call_update"
                && update.as_object().unwrap().keys().all(|it| {
                    matches!(&**it, "sessionUpdate" | "toolCallId" | "content" | "_meta")
                });
        if update["sessionUpdate"] == "user_message_chunk" || is_interim {
            continue;
        }
        if let Some(last) = joined.last_mut()
            && update["content"]["type"] == "text"
            && last["content"]["type"] == "text"
            && ["sessionUpdate", "messageId", "_meta"]
                .iter()
                .all(|it| last[it] == update[it])
        {
            let more = update["content"]["text"].as_str().unwrap();
            let text = last["content"]["text"].as_str().unwrap().to_owned() + more;
            last["content"]["text"] = Value::from(text);
            continue;
        }
        joined.push(update);
    }
    joined
}

#[test]
fn a_loaded_session_equals_the_live_one_and_the_file() {
    let mut n_updates = 0;
    for format in ["claude", "codex"] {
        for recording in recordings(format) {
            let name = &recording.name;
            let events = convert(format, "linkspan", None, &recording.bytes, &recording.end);
            let (live, ends) = written(&events, false);
            let (loaded, loaded_ends) = written(&events, true);
            assert_eq!(live, loaded, "{format}/{name}");
            assert_eq!(ends, loaded_ends, "{format}/{name}");
            let file = convert(format, "acp", None, &recording.bytes, &recording.end);
            let file = file.lines().map(|it| serde_json::from_str(it).unwrap());
            let updates = file.filter(|it: &Value| it["method"] == "session/update");
            let file = joined(updates.map(|it| it["params"]["update"].clone()));
            let is_told = |it: &&Value| it["sessionUpdate"] != "current_mode_update";
            let of = |it: &[Value]| it.iter().filter(is_told).cloned().collect::<Vec<_>>();
            assert_eq!(of(&live), of(&file), "{format}/{name}");
            n_updates += live.len();
        }
    }
    assert!(n_updates > 800, "only {n_updates} updates were compared");
}

#[test]
fn replayed_asks_are_not_asked_again() {
    let ask = r#"{"v":1,"seq":1,"session":"s","run":"r1","engine":"claude","origin":"agent","type":"run.started","data":{"cause":"prompt"}}
{"v":1,"seq":2,"session":"s","run":"r1","engine":"claude","origin":"agent","type":"ask.opened","data":{"id":"q1","kind":"permission","tool":"Bash","title":"ls","input":{"command":"ls"}}}"#;
    let requests = |is_history| {
        let mut agent = AcpAgent::new(SESSION, "/w", None, CLIENT);
        agent.set_history(is_history);
        let mut out = Vec::new();
        for line in ask.lines() {
            agent.event(&Event::from_json(line).unwrap(), &mut out);
        }
        assert_eq!(out, b"");
        agent.take_requests()
    };
    assert_eq!(requests(true), []);
    let asked = requests(false);
    let [request] = &*asked else {
        panic!("{asked:?}")
    };
    assert_eq!((&*request.ask, &*request.id), ("q1", "s/q1"));
    let options = json!([
        {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject", "name": "Reject", "kind": "reject_once"}
    ]);
    let call = json!({"toolCallId": "q1", "title": "ls", "status": "pending", "rawInput": {"command": "ls"}});
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let expected = json!({"jsonrpc": "2.0", "id": "s/q1", "method": "session/request_permission", "params": params});
    let sent: Value = serde_json::from_slice(&request.line).unwrap();
    assert_eq!(sent, expected);
}

/// The bytes of all updates about a call that prints so many lines, two in a millisecond.
fn cost_of_output(n_lines: usize) -> usize {
    let mut agent = AcpAgent::new(SESSION, "/w", None, CLIENT);
    let mut out = Vec::new();
    let mut event = |seq: usize, kind: &str, data: Value| {
        let at = model::Timestamp::from_millis(i64::try_from(seq / 2).unwrap());
        let line = json!({"v": 1, "seq": seq, "at": at, "session": "s", "run": "r1", "engine": "codex", "origin": "agent", "type": kind, "data": data});
        agent.event(&Event::from_json(&line.to_string()).unwrap(), &mut out);
    };
    event(1, "run.started", json!({"cause": "prompt"}));
    let tool = json!({"kind": "tool", "id": "t", "name": "shell", "class": {"kind": "shell", "title": "make"}, "input": {"command": "make"}});
    event(2, "item.opened", tool);
    for seq in 0..n_lines {
        let text = format!("line {seq} of what it prints\n");
        let delta = json!({"item": "t", "channel": "output", "text": text});
        event(seq + 3, "item.delta", delta);
    }
    out.len()
}

#[test]
fn output_costs_what_it_is_long() {
    let (short, long) = (cost_of_output(4_000), cost_of_output(40_000));
    assert!(short > 16_000, "{short} bytes: nothing was shown meanwhile");
    assert!(long < 12 * short, "{short} bytes, then {long}");
}
