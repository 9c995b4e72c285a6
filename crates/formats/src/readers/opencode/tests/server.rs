//! What `opencode serve` sends.

use model::{Body, Event, Frame, Item, ItemClosed};

use super::*;

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
            session ses_1 init
            run.started prompt
            + message p "" group=m1 role=assistant
            . p text one
            . p text " \"two\""
            . p text " é"
            . p text "!"
            . p text "?" extra={"time":{"end":2,"start":1}}
            - ok message p "one \"two\" é!?" group=m1 role=assistant
            notice debug part_again "a part that had ended was told again"
            run.ended completed answer="one \"two\" é!?"
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
            session ses_1 init
            run.started prompt
            + message p "" group=m1 role=assistant (never_opened)
            . p text end
            - ok message p end group=m1 role=assistant
            notice debug server_event message.updated
            notice debug part_again "a part that had ended was told again"
            unmapped "piece of a part"
            run.ended completed answer=end
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
            session ses_1 init
            run.started prompt
            + tool c class={shell bash} group=m1 name=bash
            ~ tool c class={shell "seq 2" command="seq 2"} group=m1 input={"command":"seq 2"} name=bash
            . c output "1\n"
            . c output "2\n"
            - ok tool c class={shell "seq 2" command="seq 2" exit_code=0} group=m1 input={"command":"seq 2"} name=bash result={content="1\n2\n" structured={"exit":0}}
            notice debug part_again "a part that had ended was told again"
            + tool d class={shell bash} group=m1 input={} name=bash
            - cancelled tool d class={shell bash} group=m1 input={} name=bash result={content="Tool execution aborted" is_error=true}
            run.ended completed
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
            session ses_1 init
            run.started prompt
            + tool c class={edit "Edit /a" paths=[{path=/a}]} group=m1 input={"filePath":"/a"} name=edit
            ask permission per_1 "Edit /a" description=/a input={"filePath":"/a"} item=c tool=edit
            ask.settled per_1 allowed_always
            notice debug server_event permission.replied
            ask permission per_2 "ls -l" item=x tool=bash
            ask.settled per_2 denied
            ask permission per_3 "webfetch: https://x" description=https://x tool=webfetch
            ask question q_1 "Which?" input=[{"question":"Which?"}] tool=question
            ask.settled q_1 allowed input=[["A"]]
            ask question q_2 question input=[] tool=question
            ask.settled q_2 denied
            ask.settled per_3 lost (left_open)
            - lost tool c class={edit "Edit /a" paths=[{path=/a}]} group=m1 input={"filePath":"/a"} name=edit (left_open)
            run.ended completed
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
            session ses_1 init
            run.started prompt
            + tool c class={task look} group=m1 input={"description":"look","prompt":"go","subagent_type":"explore"} name=task
            notice debug server_event session.created
            + subagent agent:c call=c description=look name=explore prompt=go
            [c] notice debug server_event message.updated
            [c] + message p8 "" group=m9 role=harness
            [c] - ok message p8 go group=m9 role=harness
            [c] + message p9 "" group=m8 role=assistant extra={"time":{"end":1}}
            [c] - ok message p9 done group=m8 role=assistant
            [c] usage call delta tokens={cache_read=0 cache_write=0 input=1 output=5 reasoning=3} extra={"reason":"stop"}
            notice debug server_event session.idle
            - ok subagent agent:c call=c description=look name=explore prompt=go report=found
            - ok tool c class={task look} group=m1 input={"description":"look","prompt":"go","subagent_type":"explore"} name=task result={content="<task_result>\nfound\n</task_result>" structured={"sessionId":"ses_2"}}
            run.ended completed
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
            session ses_1 init
            run.started prompt
            + message p "" group=m1 role=assistant extra={"time":{"end":1}}
            - ok message p a group=m1 role=assistant
            unmapped "event of another session"
            unmapped "event of another session"
            run.ended completed answer=a
        "#]],
    );
    let reader = machine::<OpenCode>(&ReaderConfig {
        expected_session: Some("ses_7".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = read_lines(
        reader,
        &[&text, &idle(), &other(&text), &other(&idle())],
        &End::default(),
    );
    expect![[r#"
        unmapped "event of another session"
        unmapped "event of another session"
        session ses_7 resume
        run.started prompt
        + message p "" group=m1 role=assistant extra={"time":{"end":1}}
        - ok message p a group=m1 role=assistant
        run.ended completed answer=a
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
            session ses_1 init
            run.started prompt
            notice debug server_event session.status
            notice warning api_retry overloaded
            notice error APIError why
            run.ended failed error={failed why native=APIError}
        "#]],
    );
    check(
        &[&busy, &error("MessageAbortedError"), &idle()],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug server_event session.status
            notice debug aborted why
            run.ended aborted error={aborted why}
        "#]],
    );
    let message = event(
        "message.updated",
        r#""info":{"id":"m","role":"assistant","error":{"name":"ContextOverflowError","message":"too long"}}"#,
    );
    check(
        &[&message, &idle()],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug server_event message.updated
            run.ended limit error={context_too_long "too long" native=ContextOverflowError}
        "#]],
    );
    check(
        &[&busy],
        expect![[r#"
            session ses_1 init
            run.started prompt
            notice debug server_event session.status
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
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
            session ses_1 init
            run.started prompt
            notice debug server_event message.updated
            + message f1 "" group=m1 role=user
            - ok message f1 "" group=m1 parts=[{image={data="AAAA" media_type=image/png}}] role=user
            + message f2 "" group=m1 role=user
            - ok message f2 "" group=m1 parts=[{other={e properties={part={f2 messageID=m1 mime=text/plain sessionID=ses_1 type=file url=file:///a} sessionID=ses_1} type=message.part.updated}}] role=user
            + message s1 "" group=m1 role=harness
            - ok message s1 "read it" group=m1 role=harness
            + compaction compaction trigger=auto
            - ok compaction compaction trigger=auto extra={"x":1}
            + plan plan entries=[{in_progress A}]
            notice debug part patch
            unmapped "part `novel`"
            - ok plan plan entries=[{in_progress A}] extra={"directory":"/w"} (left_open)
            run.ended completed
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
    let mut reader = machine::<OpenCode>(&ReaderConfig::default());
    let (mut n_pieces, mut closed) = (0, Vec::new());
    let mut sink = |event: &Event<'_>| match &event.body {
        Body::ItemDelta(_) => n_pieces += 1,
        Body::ItemClosed(ItemClosed {
            item: Item::Message(message),
            ..
        }) => closed.push(message.text.to_string()),
        _ => (),
    };
    for line in &lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    assert_eq!((n_pieces, closed), (2000, vec![text]));
}
