//! Tool calls and the questions about them.

use super::*;

fn permission(option: &str) -> [String; 3] {
    [
        r#"{"t":0,"dir":"out","msg":{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"rm","kind":"execute","rawInput":{"command":"rm"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}}"#.to_owned(),
        format!(r#"{{"t":0,"dir":"in","msg":{{"jsonrpc":"2.0","id":0,"result":{{"outcome":{option}}}}}}}"#),
        format!(r#"{{"t":0,"dir":"out","msg":{}}}"#, update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[{"type":"content","content":{"type":"text","text":"not allowed"}}]}"#)),
    ]
}

#[test]
fn permissions() {
    let denied = permission(r#"{"outcome":"selected","optionId":"n"}"#);
    check(
        &denied.each_ref().map(|it| &**it),
        expect![[r#"
            session s init
            run.started prompt
            + tool c class={shell rm command=rm} input={"command":"rm"} name=execute
            ask permission 0 rm input={"command":"rm"} item=c tool=execute
            ask.settled 0 denied
            - denied tool c class={shell rm command=rm} input={"command":"rm"} name=execute result={content="not allowed" is_error=true}
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
    let cancelled = permission(r#"{"outcome":"cancelled"}"#);
    check(
        &cancelled.each_ref().map(|it| &**it)[..2],
        expect![[r#"
            session s init
            run.started prompt
            + tool c class={shell rm command=rm} input={"command":"rm"} name=execute
            ask permission 0 rm input={"command":"rm"} item=c tool=execute
            ask.settled 0 withdrawn
            - lost tool c class={shell rm command=rm} input={"command":"rm"} name=execute (missing_end)
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn both_sides_count_their_requests_apart() {
    check(
        &[
            r#"{"t":0,"dir":"in","msg":{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}}"#,
            r#"{"t":1,"dir":"out","msg":{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/w/a"}}}"#,
            r#"{"t":2,"dir":"in","msg":{"jsonrpc":"2.0","id":1,"result":{"content":"x"}}}"#,
            r#"{"t":3,"dir":"out","msg":{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"Which?","mode":"form"}}}"#,
            r#"{"t":4,"dir":"in","msg":{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"a":1}}}}"#,
            r#"{"t":5,"dir":"out","msg":{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}}"#,
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            notice info request "the agent asked: fs/read_text_file"
            notice debug response "the client answered"
            ask question 2 "Which?" input={"message":"Which?","mode":"form"} tool=elicitation
            ask.settled 2 allowed input={"a":1}
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_list_that_is_there_replaces_the_one_before() {
    check(
        &[
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit","kind":"edit","status":"in_progress","locations":[{"path":"/w/a","line":3}],"content":[{"type":"diff","path":"/w/a","oldText":null,"newText":"x"}],"_meta":{"claudeCode":{"toolName":"Write"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/w/b"}]}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"terminal","terminalId":"t1"}],"rawOutput":{"ok":true}}"#,
            ),
            &update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"late"}"#),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + tool c class={write Edit diffs=[{new=x path=/w/a}] paths=[{line=3 path=/w/a}]} name=Write
            ~ tool c class={write Edit diffs=[{new=x path=/w/a}] paths=[{path=/w/b}]} name=Write
            - ok tool c class={write Edit diffs=[{new=x path=/w/a}] paths=[{path=/w/b}]} name=Write result={content=[{"terminalId":"t1","type":"terminal"}] structured={"ok":true}}
            notice debug late_update "an update after the end of its call" item=c
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn what_a_sub_agent_does_is_inside_its_call() {
    check(
        &[
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Count","name":"Task","kind":"think","status":"in_progress","rawInput":{"subagent_type":"explorer","prompt":"count"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"inside"},"_meta":{"parentToolUseId":"t"}}"#,
            ),
            &chunk("agent_message_chunk", "outside"),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":"3"}"#,
            ),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + tool t class={task Count} input={"prompt":"count","subagent_type":"explorer"} name=Task
            + subagent agent:t call=t name=explorer prompt=count
            [t] + message text-1 "" role=assistant
            [t] . text-1 text inside
            + message text-2 "" role=assistant
            . text-2 text outside
            [t] - ok message text-1 inside role=assistant
            - ok subagent agent:t call=t name=explorer prompt=count
            - ok tool t class={task Count} input={"prompt":"count","subagent_type":"explorer"} name=Task result={content="3"}
            - ok message text-2 outside role=assistant
            run.ended completed answer=outside stop_reason=end_turn
        "#]],
    );
}

/// Reads so many updates of one call and counts the bytes of what is told of them.
fn n_bytes_emitted(updates: impl Iterator<Item = String>) -> usize {
    let mut reader = reader(&ReaderConfig::default());
    let mut n_bytes = 0;
    let mut sink = |event: &Event<'_>| n_bytes += serde_json::to_string(event).unwrap().len();
    let input = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let opened = update(&format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"in_progress","rawInput":{input}}}"#
    ));
    for line in std::iter::once(opened).chain(updates) {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    n_bytes
}

#[test]
fn many_updates_of_one_call_cost_linear_time() {
    let content = |text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]}}"#
        ))
    };
    let title = |n: usize| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"step {n}"}}"#
        ))
    };
    // What is printed is told once, however often it is sent.
    let mut printed = String::new();
    let cumulative = (0..2000).map(|n| {
        write!(printed, "line {n};").unwrap();
        content(&printed)
    });
    let n_cumulative = n_bytes_emitted(cumulative);
    assert!(n_cumulative < 1_000_000, "{n_cumulative}");
    let n_replaced = n_bytes_emitted((0..35_000).map(|n| content(&format!("{n}"))));
    assert!(n_replaced < 10_000_000, "{n_replaced}");
    // A description that never stands still is told so many times and then at the end.
    let n_described = n_bytes_emitted((0..35_000).map(title));
    assert!(n_described < 40_000_000, "{n_described}");
}
