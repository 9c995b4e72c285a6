//! Agents that are being talked with: handshakes, sessions that go on, names.

use expect_test::expect;
use model::{End, Event, Frame};

use super::{chunk, prompt, reader, stop};
use crate::readers::test_support::{config, read_lines};
use crate::readers::{ReaderConfig, RunEnds};

const LOAD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#;

fn live() -> ReaderConfig {
    ReaderConfig {
        run_ends: RunEnds::AtResult,
        engine: Some("gemini".to_owned()),
        ..config()
    }
}

#[test]
fn a_live_session_that_is_loaded_begins_no_run() {
    let lines = [
        LOAD,
        &chunk("user_message_chunk", "before"),
        &chunk("agent_message_chunk", "said"),
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        &chunk("agent_message_chunk", "and told too late"),
        &prompt(2, "go"),
        &chunk("agent_message_chunk", "now"),
        &stop(2, "end_turn"),
    ];
    expect![[r#"
        session.bound {"how":"resume","native":"s"}
        session.bound {"cwd":"/w","how":"repeat","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.delta {"channel":"text","item":"text-1","text":"now"}
        item.closed {"item":{"id":"text-1","kind":"message","role":"assistant","text":"now"},"status":"ok"}
        run.ended {"answer":"now","detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
    "#]].assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}

#[test]
fn a_session_that_is_refused_is_why_the_run_failed() {
    let lines = [
        LOAD,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Internal error","data":{"details":"no such session"}}}"#,
    ];
    expect![[r#"
        notice.raised {"code":"request_failed","detail":{"error":{"code":-32602,"data":{"details":"no such session"},"message":"Internal error"},"id":1,"jsonrpc":"2.0"},"level":"error","text":"Internal error"}
        run.started why="missing_end" {"cause":"prompt"}
        run.ended why="missing_end" {"error":{"code":"failed","message":"Internal error: no such session"},"outcome":"failed"}
    "#]].assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}

#[test]
fn a_session_after_a_login_was_not_refused() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"log in"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"authenticate","params":{"methodId":"key"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{"sessionId":"s"}}"#,
        &prompt(4, "go"),
    ];
    expect![[r#"
        notice.raised {"code":"request_failed","detail":{"error":{"code":-32000,"message":"log in"},"id":1,"jsonrpc":"2.0"},"level":"error","text":"log in"}
        session.bound extra={"result":{"sessionId":"s"}} {"cwd":"/w","how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]].assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}

#[test]
fn a_fork_is_another_session_than_the_one_asked_for() {
    let config = ReaderConfig {
        expected_session: Some("old".to_owned()),
        ..live()
    };
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"session/fork","params":{"sessionId":"old","cwd":"/w","mcpServers":[]}}"#,
        &chunk("user_message_chunk", "before"),
        r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
        &prompt(2, "go"),
        &stop(2, "end_turn"),
    ];
    expect![[r#"
        session.bound {"how":"fork","native":"s"}
        session.bound extra={"result":{"sessionId":"s"}} {"cwd":"/w","how":"repeat","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
    "#]].assert_eq(&read_lines(reader(&config), &lines, &End::default()));
}

#[test]
fn an_agent_is_called_by_its_name() {
    let mut engines = Vec::new();
    let mut sink = |event: &Event<'_>| engines.push(event.engine.to_string());
    let line = prompt(1, "go");
    reader(&live()).frame(Frame::Data(line.as_bytes()), &mut sink);
    assert_eq!(engines, ["gemini"; 4]);
}

#[test]
fn a_denied_call_without_further_lines_is_denied() {
    let lines = [
        &*prompt(1, "go"),
        r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"n","kind":"reject_once"}],"toolCall":{"toolCallId":"c","title":"ls","kind":"execute"}}}"#,
        r#"{"dir":"in","msg":{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"n"}}}}"#,
        &stop(1, "end_turn"),
    ];
    expect![[r#"
        session.bound {"how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.opened {"class":{"kind":"shell","title":"ls"},"id":"c","kind":"tool","name":"execute"}
        ask.opened {"id":"0","item":"c","kind":"permission","title":"ls","tool":"execute"}
        ask.settled {"decision":"denied","id":"0"}
        item.closed {"item":{"class":{"kind":"shell","title":"ls"},"id":"c","kind":"tool","name":"execute"},"status":"denied"}
        run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
    "#]].assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}
