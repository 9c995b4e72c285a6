//! What no recording shows by itself.

mod server;

use expect_test::{Expect, expect};
use model::{End, Exit};

use super::{OpenCode, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::{exit, read_lines};

fn check_end(lines: &[&str], end: &End, expect: Expect) {
    let reader = machine::<OpenCode>(&ReaderConfig::default());
    expect.assert_eq(&read_lines(reader, lines, end));
}

fn check(lines: &[&str], expect: Expect) {
    check_end(lines, &End::default(), expect);
}

const START: &str = r#"{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{}}"#;
const STOP: &str = r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}"#;
const CALLS: &str = r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls"}}"#;
const ERROR: &str =
    r#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"rl"}}}"#;

#[test]
fn the_last_step_decides_how_a_file_ends() {
    check(
        &[START, STOP],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=stop
        "#]],
    );
    check(
        &[START, CALLS],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended lost error={missing_end "the stream ended without a result"} stop_reason=tool-calls (missing_end)
        "#]],
    );
    check(
        &[START, CALLS, START],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            notice debug step_start "a step begins"
            run.ended lost error={missing_end "the stream ended without a result"} stop_reason=tool-calls (missing_end)
        "#]],
    );
    let length = STOP.replace("stop", "length");
    check(
        &[START, &length],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended limit error={length "the model reached its output limit"} stop_reason=length
        "#]],
    );
    let filter = STOP.replace("stop", "content-filter");
    check(
        &[START, &filter],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended refused error={content_filter "the model refused"} stop_reason=content-filter
        "#]],
    );
    let denied = r#"{"type":"tool_use","part":{"callID":"c","tool":"bash","state":{"status":"error","input":{"command":"ls"},"error":"The user rejected permission to use this specific tool call."}}}"#;
    check(
        &[START, denied, CALLS],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            + tool c class={shell ls command=ls} input={"command":"ls"} name=bash (never_opened)
            - denied tool c class={shell ls command=ls} input={"command":"ls"} name=bash result={content="The user rejected permission to use this specific tool call." is_error=true}
            notice debug step_finish "a step ends"
            run.ended completed denials=[{input={"command":"ls"} item=c tool=bash}] stop_reason=tool-calls
        "#]],
    );
}

#[test]
fn the_exit_code_decides() {
    check_end(
        &[START, CALLS],
        &exit(0),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=tool-calls (process_exit)
        "#]],
    );
    check_end(
        &[START, STOP],
        &exit(3),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended failed error={crashed "opencode failed (rc=3)"} stop_reason=stop (process_exit)
        "#]],
    );
    check_end(
        &[START, STOP, ERROR],
        &exit(0),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            notice error APIError rl
            run.ended completed stop_reason=stop (process_exit)
        "#]],
    );
    check_end(
        &[START, STOP, ERROR],
        &exit(1),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            notice error APIError rl
            run.ended failed error={failed rl native=APIError} stop_reason=stop (process_exit)
        "#]],
    );
    check_end(
        &[START, ERROR],
        &exit(0),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice error APIError rl
            run.ended failed error={failed rl native=APIError} (process_exit)
        "#]],
    );
    check_end(
        &[START],
        &exit(0),
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            run.ended failed error={missing_result "opencode finished without a result event"} (process_exit)
        "#]],
    );
    check_end(
        &[],
        &exit(1),
        expect![[r#"
            run.started prompt (process_exit)
            run.ended failed error={crashed "opencode failed (rc=1)"} (process_exit)
        "#]],
    );
    let aborted = End {
        exit: Some(Exit::Signal(15)),
        aborted: true,
    };
    check_end(
        &[START],
        &aborted,
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            run.ended aborted error={aborted aborted} (abort)
        "#]],
    );
}

#[test]
fn the_text_of_the_last_message_is_the_answer() {
    let text = |message: &str, text: &str| {
        format!(
            r#"{{"type":"text","sessionID":"ses_1","part":{{"messageID":"{message}","text":"{text}"}}}}"#
        )
    };
    let (a, b, c) = (text("m1", "a"), text("m2", "b"), text("m2", "c"));
    check(
        &[&a, &b, &c, STOP],
        expect![[r#"
            session ses_1 init
            run.started prompt
            + message text "" group=m1 role=assistant
            - ok message text a group=m1 role=assistant
            + message text~2 "" group=m2 role=assistant
            - ok message text~2 b group=m2 role=assistant
            + message text~3 "" group=m2 role=assistant
            - ok message text~3 c group=m2 role=assistant
            notice debug step_finish "a step ends"
            run.ended completed answer=bc stop_reason=stop
        "#]],
    );
}

#[test]
fn a_repeated_line_counts_once() {
    let text = r#"{"type":"text","sessionID":"ses_1","part":{"id":"p","text":"a"}}"#;
    let tool = r#"{"type":"tool_use","sessionID":"ses_1","part":{"callID":"c","tool":"glob","state":{"status":"completed","input":{"pattern":"*"},"output":"x"}}}"#;
    check(
        &[text, text, tool, tool, STOP],
        expect![[r#"
            session ses_1 init
            run.started prompt
            + message p "" role=assistant
            - ok message p a role=assistant
            notice debug part_again "a part that had ended was told again"
            + tool c class={search "glob *" query="*"} input={"pattern":"*"} name=glob (never_opened)
            - ok tool c class={search "glob *" query="*"} input={"pattern":"*"} name=glob result={content="x"}
            notice debug part_again "a part that had ended was told again"
            notice debug step_finish "a step ends"
            run.ended completed answer=a stop_reason=stop
        "#]],
    );
}

#[test]
fn another_session_is_another_run_or_a_failure() {
    let other = START.replace("ses_1", "ses_2");
    check(
        &[START, STOP, &other],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=stop
            session ses_2 init
            run.started prompt
            notice debug step_start "a step begins"
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
    check(
        &[START, &other, STOP],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins"
            notice warning other_session "lines of another session, `ses_2`"
            notice debug step_start "a step begins"
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=stop
        "#]],
    );
    let reader = machine::<OpenCode>(&ReaderConfig {
        expected_session: Some("ses_9".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = read_lines(reader, &[START, STOP], &End::default());
    expect![[r#"
        run.started prompt (wrong_session)
        session ses_1 mismatch
        run.ended failed error={wrong_session "session `ses_9` was asked for, the agent answered as `ses_1`"} (wrong_session)
        notice warning ignored "1 lines after the end were ignored"
    "#]].assert_eq(&shown);
}

#[test]
fn odd_lines_are_kept() {
    check(
        &[
            "xx",
            "[]",
            r#"{"type":"novel","sessionID":"ses_1"}"#,
            r#"{"type":"novel.event","properties":{"sessionID":"ses_1"}}"#,
            r#"{"t":1,"dir":"in","msg":{"type":"text"}}"#,
            r#"{"type":"step_start","part":{"sessionID":"ses_1","snapshot":"abc"}}"#,
        ],
        expect![[r#"
            notice warning bad_line "not JSON: xx"
            notice warning bad_line "not an OpenCode event: no object"
            unmapped "type `novel`"
            unmapped "type `novel.event`"
            unmapped "message to the agent"
            session ses_1 init
            run.started prompt
            notice debug step_start "a step begins" extra={"snapshot":"abc"}
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn results_sent_only_at_the_end_of_a_call() {
    let tool = |tool: &str, input: &str, metadata: &str| {
        format!(
            r#"{{"type":"tool_use","sessionID":"ses_1","part":{{"tool":"{tool}","callID":"{tool}","state":{{"status":"completed","input":{input},"output":"ok","title":"T","metadata":{metadata}}}}}}}"#
        )
    };
    let write = tool(
        "write",
        r#"{"filePath":"/a","content":"x"}"#,
        r#"{"exists":true}"#,
    );
    let patch = tool(
        "apply_patch",
        r#"{"patchText":"p"}"#,
        r#"{"files":[{"filePath":"/a","patch":"--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"},{"file":"/b","before":"1","after":"2"}]}"#,
    );
    let bash = tool("bash", r#"{"command":"false"}"#, r#"{"exit":1}"#);
    let skill = tool("skill", r#"{"name":"s"}"#, "{}");
    check(
        &[&write, &patch, &bash, &skill, STOP],
        expect![[r#"
            session ses_1 init
            run.started prompt
            + tool write class={write "Write /a" diffs=[{new=x path=/a}] paths=[{path=/a}]} input={"content":"x","filePath":"/a"} name=write extra={"title":"T"} (never_opened)
            - ok tool write class={write "Write /a" change=update diffs=[{new=x path=/a}] paths=[{path=/a}]} input={"content":"x","filePath":"/a"} name=write result={content="ok" structured={"exists":true}}
            + tool apply_patch class={edit apply_patch} input={"patchText":"p"} name=apply_patch extra={"title":"T"} (never_opened)
            - ok tool apply_patch class={edit apply_patch change=update diffs=[{new="x\nz\n" old="x\ny\n" path=/a} {new=2 old=1 path=/b}] paths=[{path=/a} {path=/b}]} input={"patchText":"p"} name=apply_patch result={content="ok" structured={"files":[{"filePath":"/a","patch":"--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"},{"after":"2","before":"1","file":"/b"}]}}
            + tool bash class={shell false command=false} input={"command":"false"} name=bash extra={"title":"T"} (never_opened)
            - error tool bash class={shell false command=false exit_code=1} input={"command":"false"} name=bash result={content="ok" is_error=true structured={"exit":1}}
            + tool skill class={other T} input={"name":"s"} name=skill extra={"title":"T"} (never_opened)
            - ok tool skill class={other T} input={"name":"s"} name=skill result={content="ok" structured={}}
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=stop
        "#]],
    );
    let reader = machine::<OpenCode>(&ReaderConfig::default());
    let mut diffs = String::new();
    let mut reader: Box<dyn model::Reader> = reader;
    reader.frame(
        model::Frame::Data(patch.as_bytes()),
        &mut |event: &model::Event<'_>| {
            if let model::Body::ItemClosed(closed) = &event.body
                && let model::Item::Tool(tool) = &closed.item
            {
                diffs = serde_json::to_string(&tool.class.diffs).unwrap();
            }
        },
    );
    expect![[r#"[{"path":"/a","old":"x\ny\n","new":"x\nz\n"},{"path":"/b","old":"1","new":"2"}]"#]]
        .assert_eq(&diffs);
}

#[test]
fn pictures_that_a_tool_reads_are_blocks_of_its_result() {
    check(
        &[
            r#"{"type":"tool_use","sessionID":"ses_1","part":{"callID":"c","tool":"read","state":{"status":"completed","input":{"filePath":"/a.png"},"output":"Image read","attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"},{"type":"file","mime":"application/pdf","url":"file:///b"}]}}}"#,
            STOP,
        ],
        expect![[r#"
            session ses_1 init
            run.started prompt
            + tool c class={read "Read /a.png" paths=[{path=/a.png}]} input={"filePath":"/a.png"} name=read (never_opened)
            - ok tool c class={read "Read /a.png" paths=[{path=/a.png}]} input={"filePath":"/a.png"} name=read result={content=[{"text":"Image read","type":"text"},{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"},{"mime":"application/pdf","type":"file","url":"file:///b"}]}
            notice debug step_finish "a step ends"
            run.ended completed stop_reason=stop
        "#]],
    );
}

/// An event of the server about `ses_1`.
fn event(kind: &str, properties: &str) -> String {
    format!(r#"{{"id":"e","type":"{kind}","properties":{{"sessionID":"ses_1",{properties}}}}}"#)
}

fn idle() -> String {
    r#"{"type":"session.idle","properties":{"sessionID":"ses_1"}}"#.to_owned()
}

fn part(json: &str) -> String {
    event(
        "message.part.updated",
        &format!(r#""part":{{"messageID":"m1","sessionID":"ses_1",{json}}}"#),
    )
}

#[test]
fn its_own_frames_are_recognised() {
    for own in [START, STOP, ERROR, &idle()] {
        assert!(recognises(own), "{own}");
        assert!(recognises(&format!(r#"{{"t":1,"dir":"out","msg":{own}}}"#)));
    }
    for recording in [
        include_str!("../../../../../fixtures/opencode/text.jsonl"),
        include_str!("../../../../../fixtures/opencode/tools.jsonl"),
        include_str!("../../../../../fixtures/opencode/errors.jsonl"),
        include_str!("../../../../../fixtures/opencode/serve_events.jsonl"),
    ] {
        assert!(recording.lines().all(recognises));
        assert!(!recording.lines().any(crate::readers::gemini::recognises));
    }
    for other in [
        r#"{"type":"tool_use","timestamp":"2026-11-15T18:17:21.759Z","tool_name":"x","tool_id":"y"}"#,
        r#"{"type":"error","message":"x"}"#,
        r#"{"type":"response.created","response":{}}"#,
        r#"{"type":"assistant","message":{},"session_id":"s"}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#,
        r#"{"type":"RUN_STARTED","threadId":"t"}"#,
        "{}",
        "x",
    ] {
        assert!(!recognises(other), "{other}");
    }
}
