//! What no recording shows by itself.

use expect_test::{Expect, expect};
use model::{End, Exit};

use super::{OpenCode, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_summary::summarize;

fn check_end(lines: &[&str], end: &End, expect: Expect) {
    let reader = machine::<OpenCode>(&ReaderConfig::default());
    expect.assert_eq(&summarize(reader, lines, end));
}

fn check(lines: &[&str], expect: Expect) {
    check_end(lines, &End::default(), expect);
}

fn exit(code: i32) -> End {
    End {
        exit: Some(Exit::Code(code)),
        aborted: false,
    }
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
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Completed
    "#]],
    );
    check(
        &[START, CALLS],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Lost missing_end: the stream ended without a result  (MissingEnd)
    "#]],
    );
    check(
        &[START, CALLS, START],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        Debug step_start: a step begins
        ended Lost missing_end: the stream ended without a result  (MissingEnd)
    "#]],
    );
    let length = STOP.replace("stop", "length");
    check(
        &[START, &length],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Limit length: the model reached its output limit
    "#]],
    );
    let filter = STOP.replace("stop", "content-filter");
    check(
        &[START, &filter],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Refused content_filter: the model refused
    "#]],
    );
    let denied = r#"{"type":"tool_use","part":{"callID":"c","tool":"bash","state":{"status":"error","input":{"command":"ls"},"error":"The user rejected permission to use this specific tool call."}}}"#;
    check(
        &[START, denied, CALLS],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        + Shell c "ls"  (NeverOpened)
        - Denied Shell c "ls" = "The user rejected permission to use this specific tool call."
        Debug step_finish: a step ends
        ended Completed denials=1
    "#]],
    );
}

#[test]
fn the_exit_code_decides() {
    check_end(
        &[START, CALLS],
        &exit(0),
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Completed  (ProcessExit)
    "#]],
    );
    check_end(
        &[START, STOP],
        &exit(3),
        expect![[r#"
            bound ses_1 Init -
            started
            Debug step_start: a step begins
            Debug step_finish: a step ends
            ended Failed crashed: opencode failed (rc=3)  (ProcessExit)
        "#]],
    );
    check_end(
        &[START, STOP, ERROR],
        &exit(0),
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        Error APIError: rl
        ended Completed  (ProcessExit)
    "#]],
    );
    check_end(
        &[START, STOP, ERROR],
        &exit(1),
        expect![[r#"
            bound ses_1 Init -
            started
            Debug step_start: a step begins
            Debug step_finish: a step ends
            Error APIError: rl
            ended Failed failed: rl  (ProcessExit)
        "#]],
    );
    check_end(
        &[START, ERROR],
        &exit(0),
        expect![[r#"
            bound ses_1 Init -
            started
            Debug step_start: a step begins
            Error APIError: rl
            ended Failed failed: rl  (ProcessExit)
        "#]],
    );
    check_end(
        &[START],
        &exit(0),
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        ended Failed missing_result: opencode finished without a result event  (ProcessExit)
    "#]],
    );
    check_end(
        &[],
        &exit(1),
        expect![[r#"
            started  (ProcessExit)
            ended Failed crashed: opencode failed (rc=1)  (ProcessExit)
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
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        ended Aborted aborted: aborted  (Abort)
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
        bound ses_1 Init -
        started
        + Assistant text ""
        - Ok Assistant text "a"
        + Assistant text~2 ""
        - Ok Assistant text~2 "b"
        + Assistant text~3 ""
        - Ok Assistant text~3 "c"
        Debug step_finish: a step ends
        ended Completed answer="bc"
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
        bound ses_1 Init -
        started
        + Assistant p ""
        - Ok Assistant p "a"
        Debug part_again: a part that had ended was told again
        + Search c "glob *"  (NeverOpened)
        - Ok Search c "glob *" = "x"
        Debug part_again: a part that had ended was told again
        Debug step_finish: a step ends
        ended Completed answer="a"
    "#]],
    );
}

#[test]
fn another_session_is_another_run_or_a_failure() {
    let other = START.replace("ses_1", "ses_2");
    check(
        &[START, STOP, &other],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug step_start: a step begins
        Debug step_finish: a step ends
        ended Completed
        bound ses_2 Init -
        started
        Debug step_start: a step begins
        ended Lost missing_end: the stream ended without a result  (MissingEnd)
    "#]],
    );
    check(
        &[START, &other, STOP],
        expect![[r#"
            bound ses_1 Init -
            started
            Debug step_start: a step begins
            Warning other_session: lines of another session, `ses_2`
            Debug step_start: a step begins
            Debug step_finish: a step ends
            ended Completed
        "#]],
    );
    let reader = machine::<OpenCode>(&ReaderConfig {
        expected_session: Some("ses_9".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = summarize(reader, &[START, STOP], &End::default());
    expect![[r#"
        started  (WrongSession)
        bound ses_1 Mismatch -
        ended Failed wrong_session: session `ses_9` was asked for, the agent answered as `ses_1`  (WrongSession)
        Warning ignored: 1 lines after the end were ignored
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
            Warning bad_line: not JSON: xx
            Warning bad_line: not an OpenCode event: no object
            unmapped type `novel`
            unmapped type `novel.event`
            unmapped message to the agent
            bound ses_1 Init -
            started
            Debug step_start: a step begins
            ended Lost missing_end: the stream ended without a result  (MissingEnd)
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
        bound ses_1 Init -
        started
        + Write write "Write /a"  (NeverOpened)
        - Ok Write write "Write /a" Update = "ok"
        + Edit apply_patch "apply_patch"  (NeverOpened)
        - Ok Edit apply_patch "apply_patch" Update = "ok"
        + Shell bash "false"  (NeverOpened)
        - Error Shell bash "false" exit=1 = "ok"
        + Other skill "T"  (NeverOpened)
        - Ok Other skill "T" = "ok"
        Debug step_finish: a step ends
        ended Completed
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
            bound ses_1 Init -
            started
            + Read c "Read /a.png"  (NeverOpened)
            - Ok Read c "Read /a.png" = [{"type":"text","text":"Image read"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"file","mime":"application/pdf","url":"file:///b"}]
            Debug step_finish: a step ends
            ended Completed
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
fn texts_grow_by_snapshots_and_by_pieces() {
    let snapshot = |text: &str| part(&format!(r#""id":"p","type":"text","text":"{text}""#));
    let with_delta = event(
        "message.part.updated",
        r#""delta":"!","part":{"id":"p","messageID":"m1","type":"text","text":"one \"two\" é!"}"#,
    );
    let whole =
        part(r#""id":"p","type":"text","text":"one \"two\" é!?","time":{"start":1,"end":2}"#);
    check(
        &[
            &snapshot("one"),
            &snapshot(r#"one \"two\""#),
            &snapshot(r#"one \"two\""#),
            &snapshot(r#"one \"two\" é"#),
            &with_delta,
            &whole,
            &whole,
            &idle(),
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            + Assistant p ""
              p Text "one"
              p Text " \"two\""
              p Text " é"
              p Text "!"
              p Text "?"
            - Ok Assistant p "one \"two\" é!?"
            Debug part_again: a part that had ended was told again
            ended Completed answer="one \"two\" é!?"
        "#]],
    );
}

#[test]
fn a_stream_joined_late_still_shows_its_text() {
    let delta = r#""messageID":"m1","partID":"p","field":"text","delta":"end""#;
    check(
        &[
            &event("message.part.delta", delta),
            &event(
                "message.updated",
                r#""info":{"id":"m1","role":"assistant","time":{"completed":5}}"#,
            ),
            &event("message.part.delta", delta),
            &event(
                "message.part.delta",
                r#""partID":"q","field":"novel","delta":"x""#,
            ),
            &idle(),
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            + Assistant p ""  (NeverOpened)
              p Text "end"
            - Ok Assistant p "end"
            Debug server_event: message.updated
            Debug part_again: a part that had ended was told again
            unmapped piece of a part
            ended Completed answer="end"
        "#]],
    );
}

#[test]
fn a_tool_goes_from_pending_to_done() {
    let state = |state: &str| {
        part(&format!(
            r#""id":"p","type":"tool","tool":"bash","callID":"c","state":{state}"#
        ))
    };
    check(
        &[
            &state(r#"{"status":"pending","input":{},"raw":""}"#),
            &state(r#"{"status":"running","input":{"command":"seq 2"}}"#),
            &state(
                r#"{"status":"running","input":{"command":"seq 2"},"metadata":{"output":"1\n"}}"#,
            ),
            &state(
                r#"{"status":"running","input":{"command":"seq 2"},"metadata":{"output":"1\n2\n"}}"#,
            ),
            &state(
                r#"{"status":"running","input":{"command":"seq 2"},"metadata":{"output":"cut"}}"#,
            ),
            &state(
                r#"{"status":"completed","input":{"command":"seq 2"},"output":"1\n2\n","metadata":{"exit":0}}"#,
            ),
            &state(
                r#"{"status":"completed","input":{"command":"seq 2"},"output":"1\n2\n","metadata":{"exit":0},"time":{"compacted":1}}"#,
            ),
            &state(r#"{"status":"running","input":{}}"#).replace("\"c\"", "\"d\""),
            &state(r#"{"status":"error","input":{},"error":"Tool execution aborted"}"#)
                .replace("\"c\"", "\"d\""),
            &idle(),
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            + Shell c "bash"
            ~ Shell c "seq 2"
              c Output "1\n"
              c Output "2\n"
            - Ok Shell c "seq 2" exit=0 = "1\n2\n"
            Debug part_again: a part that had ended was told again
            + Shell d "bash"
            - Cancelled Shell d "bash" = "Tool execution aborted"
            ended Completed
        "#]],
    );
}

#[test]
fn permissions_and_questions_are_asked_and_settled() {
    check(
        &[
            &part(
                r#""id":"p","type":"tool","tool":"edit","callID":"c","state":{"status":"running","input":{"filePath":"/a"}}"#,
            ),
            &event(
                "permission.asked",
                r#""id":"per_1","permission":"edit","patterns":["/a"],"tool":{"callID":"c"}"#,
            ),
            &event(
                "permission.replied",
                r#""requestID":"per_1","reply":"always""#,
            ),
            &event(
                "permission.replied",
                r#""requestID":"per_1","reply":"always""#,
            ),
            &event(
                "permission.updated",
                r#""id":"per_2","type":"bash","title":"ls -l","callID":"x""#,
            ),
            &event(
                "permission.replied",
                r#""permissionID":"per_2","response":"reject""#,
            ),
            &event(
                "permission.asked",
                r#""id":"per_3","permission":"webfetch","patterns":["https://x"]"#,
            ),
            &event(
                "question.asked",
                r#""id":"q_1","questions":[{"question":"Which?"}]"#,
            ),
            &event("question.replied", r#""requestID":"q_1","answers":[["A"]]"#),
            &event("question.asked", r#""id":"q_2","questions":[]"#),
            &event("question.rejected", r#""requestID":"q_2""#),
            &idle(),
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            + Edit c "Edit /a"
            ask per_1 Permission edit "Edit /a"
            settled per_1 AllowedAlways
            Debug server_event: permission.replied
            ask per_2 Permission bash "ls -l"
            settled per_2 Denied
            ask per_3 Permission webfetch "webfetch: https://x"
            ask q_1 Question question "Which?"
            settled q_1 Allowed
            ask q_2 Question question "question"
            settled q_2 Denied
            settled per_3 Lost  (LeftOpen)
            - Lost Edit c "Edit /a"  (LeftOpen)
            ended Completed
        "#]],
    );
}

#[test]
fn sub_sessions_are_sub_agents() {
    let child = |kind: &str, properties: &str| event(kind, properties).replace("ses_1", "ses_2");
    let task = |status: &str, more: &str| {
        part(&format!(
            r#""id":"p","type":"tool","tool":"task","callID":"c","state":{{"status":"{status}","input":{{"description":"look","prompt":"go","subagent_type":"explore"}}{more}}}"#
        ))
    };
    let created = r#"{"type":"session.created","properties":{"sessionID":"ses_2","info":{"id":"ses_2","parentID":"ses_1"}}}"#;
    check(
        &[
            r#"{"type":"session.created","properties":{"sessionID":"ses_1","info":{"id":"ses_1"}}}"#,
            &task("running", ""),
            created,
            &child("message.updated", r#""info":{"id":"m9","role":"user"}"#),
            &child(
                "message.part.updated",
                r#""part":{"id":"p8","messageID":"m9","type":"text","text":"go"}"#,
            ),
            &task("running", r#","metadata":{"sessionId":"ses_2"}"#),
            &child(
                "message.part.updated",
                r#""part":{"id":"p9","messageID":"m8","type":"text","text":"done","time":{"end":1}}"#,
            ),
            &child(
                "message.part.updated",
                r#""part":{"type":"step-finish","reason":"stop","tokens":{"input":1,"output":2,"reasoning":3}}"#,
            ),
            &child("session.idle", r#""x":1"#),
            &task(
                "completed",
                r#","output":"<task_result>\nfound\n</task_result>","metadata":{"sessionId":"ses_2"}"#,
            ),
            &idle(),
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            + Task c "look"
            Debug server_event: session.created
            + subagent agent:c explore None
            [c] Debug server_event: message.updated
            [c] + Harness p8 ""
            [c] - Ok Harness p8 "go"
            [c] + Assistant p9 ""
            [c] - Ok Assistant p9 "done"
            [c] usage Call Tokens { input: 1, cache_read: 0, cache_write: 0, output: Some(5), reasoning: Some(3) }
            Debug server_event: session.idle
            - Ok subagent agent:c explore Some("found")
            - Ok Task c "look" = "<task_result>\nfound\n</task_result>"
            ended Completed
        "#]],
    );
}

#[test]
fn other_sessions_of_the_server_do_not_count() {
    let other = |it: &str| it.replace("ses_1", "ses_7");
    let text = part(r#""id":"p","type":"text","text":"a","time":{"end":1}"#);
    check(
        &[&text, &other(&text), &other(&idle()), &idle()],
        expect![[r#"
            bound ses_1 Init -
            started
            + Assistant p ""
            - Ok Assistant p "a"
            unmapped event of another session
            unmapped event of another session
            ended Completed answer="a"
        "#]],
    );
    let reader = machine::<OpenCode>(&ReaderConfig {
        expected_session: Some("ses_7".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = summarize(
        reader,
        &[&text, &idle(), &other(&text), &other(&idle())],
        &End::default(),
    );
    expect![[r#"
        unmapped event of another session
        unmapped event of another session
        bound ses_7 Resume -
        started
        + Assistant p ""
        - Ok Assistant p "a"
        ended Completed answer="a"
    "#]]
    .assert_eq(&shown);
}

#[test]
fn how_a_session_fails() {
    let error = |name: &str| {
        event(
            "session.error",
            &format!(r#""error":{{"name":"{name}","data":{{"message":"why"}}}}"#),
        )
    };
    let busy = event("session.status", r#""status":{"type":"busy"}"#);
    let retry = event(
        "session.status",
        r#""status":{"type":"retry","attempt":1,"message":"overloaded"}"#,
    );
    check(
        &[&busy, &retry, &error("APIError"), &idle()],
        expect![[r#"
            bound ses_1 Init -
            started
            Debug server_event: session.status
            Warning api_retry: overloaded
            Error APIError: why
            ended Failed failed: why
        "#]],
    );
    check(
        &[&busy, &error("MessageAbortedError"), &idle()],
        expect![[r#"
            bound ses_1 Init -
            started
            Debug server_event: session.status
            Debug aborted: why
            ended Aborted aborted: why
        "#]],
    );
    let message = event(
        "message.updated",
        r#""info":{"id":"m","role":"assistant","error":{"name":"ContextOverflowError","message":"too long"}}"#,
    );
    check(
        &[&message, &idle()],
        expect![[r#"
            bound ses_1 Init -
            started
            Debug server_event: message.updated
            ended Limit context_too_long: too long
        "#]],
    );
    check(
        &[&busy],
        expect![[r#"
        bound ses_1 Init -
        started
        Debug server_event: session.status
        ended Lost missing_end: the stream ended without a result  (MissingEnd)
    "#]],
    );
}

#[test]
fn plans_compactions_files_and_the_rest() {
    check(
        &[
            &event("message.updated", r#""info":{"id":"m1","role":"user"}"#),
            &part(
                r#""id":"f1","type":"file","mime":"image/png","url":"data:image/png;base64,AAAA""#,
            ),
            &part(r#""id":"f2","type":"file","mime":"text/plain","url":"file:///a""#),
            &part(r#""id":"s1","type":"text","synthetic":true,"text":"read it""#),
            &part(r#""id":"c1","type":"compaction","auto":true"#),
            &event("session.compacted", r#""x":1"#),
            &event(
                "todo.updated",
                r#""todos":[{"content":"A","status":"in_progress"}]"#,
            ),
            &part(r#""id":"x1","type":"patch","files":[]"#),
            &part(r#""id":"x2","type":"novel""#),
            r#"{"directory":"/w","payload":{"type":"session.idle","properties":{"sessionID":"ses_1"}}}"#,
        ],
        expect![[r#"
            bound ses_1 Init -
            started
            Debug server_event: message.updated
            + User f1 ""
            - Ok User f1 ""
            + User f2 ""
            - Ok User f2 ""
            + Harness s1 ""
            - Ok Harness s1 "read it"
            + compaction compaction Some("auto")
            - Ok compaction compaction Some("auto")
            + plan plan A:InProgress
            Debug part: patch
            unmapped part `novel`
            - Ok plan plan A:InProgress  (LeftOpen)
            ended Completed
        "#]],
    );
}

#[test]
fn a_long_text_in_many_snapshots_is_shown_once() {
    let mut text = String::new();
    let lines: Vec<String> = (0..2000)
        .map(|n| {
            text.push_str(&format!("word {n} "));
            part(&format!(r#""id":"p","type":"text","text":"{text}""#))
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(|it| &**it).collect();
    let reader = machine::<OpenCode>(&ReaderConfig::default());
    let shown = summarize(reader, &lines, &End::default());
    let pieces = shown.lines().filter(|it| it.starts_with("  p Text"));
    assert_eq!(pieces.count(), 2000);
    assert!(shown.contains(&format!("{text:?}")));
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
