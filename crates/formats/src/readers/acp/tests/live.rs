//! Agents that are being talked with: handshakes, sessions that go on, names.

use expect_test::expect;
use model::{End, Event, Frame};

use super::{chunk, prompt, reader, stop};
use crate::readers::test_support::read_lines;
use crate::readers::{ReaderConfig, RunEnds};

const LOAD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#;

fn live() -> ReaderConfig {
    ReaderConfig {
        run_ends: RunEnds::AtResult,
        engine: Some("gemini".to_owned()),
        ..ReaderConfig::default()
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
        notice debug request "the client asked: session/load"
        session s resume
        session s repeat cwd=/w
        notice debug outside_of_runs "2 updates outside of any run were not told"
        notice debug outside_of_runs "1 updates outside of any run were not told"
        run.started prompt
        + message prompt-1 "" role=user
        - ok message prompt-1 go role=user
        + message text-1 "" role=assistant
        . text-1 text now
        - ok message text-1 now role=assistant
        run.ended completed answer=now stop_reason=end_turn
    "#]]
    .assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}

#[test]
fn a_session_that_is_refused_is_why_the_run_failed() {
    let lines = [
        LOAD,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Internal error","data":{"details":"no such session"}}}"#,
    ];
    expect![[r#"
        notice debug request "the client asked: session/load"
        notice error request_failed "Internal error"
        run.started prompt (missing_end)
        run.ended failed error={failed "Internal error: no such session"} (missing_end)
    "#]]
    .assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
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
        notice debug request "the client asked: session/new"
        notice error request_failed "log in"
        notice debug request "the client asked: authenticate"
        notice debug response "the agent answered"
        notice debug request "the client asked: session/new"
        session s init cwd=/w extra={"result":{"sessionId":"s"}}
        run.started prompt
        + message prompt-1 "" role=user
        - ok message prompt-1 go role=user
        run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
    "#]]
    .assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
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
        notice debug request "the client asked: session/fork"
        session s fork
        session s repeat cwd=/w extra={"result":{"sessionId":"s"}}
        notice debug outside_of_runs "1 updates outside of any run were not told"
        run.started prompt
        + message prompt-1 "" role=user
        - ok message prompt-1 go role=user
        run.ended completed stop_reason=end_turn
    "#]]
    .assert_eq(&read_lines(reader(&config), &lines, &End::default()));
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
        session s init
        run.started prompt
        + message prompt-1 "" role=user
        - ok message prompt-1 go role=user
        + tool c class={shell ls} name=execute
        ask permission 0 ls item=c tool=execute
        ask.settled 0 denied
        - denied tool c class={shell ls} name=execute
        run.ended completed stop_reason=end_turn
    "#]]
    .assert_eq(&read_lines(reader(&live()), &lines, &End::default()));
}
