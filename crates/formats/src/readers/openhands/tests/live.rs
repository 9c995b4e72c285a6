//! What only a conversation that linkspan runs itself shows.

use super::*;

#[test]
fn an_answer_that_is_sent_settles_its_question() {
    let waiting = r#"{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"execution_status","value":"waiting_for_confirmation"}"#;
    let sent = |msg: &str| format!(r#"{{"dir":"in","msg":{msg}}}"#);
    let check = |answer: &str, expect: Expect| {
        let lines = [
            sent(r#"{"type":"open","permissions":{}}"#),
            sent(r#"{"type":"prompt","text":"go"}"#),
            USER.to_owned(),
            ACTION.to_owned(),
            waiting.to_owned(),
            sent(answer),
            sent(answer),
            sent(r#"{"type":"interrupt"}"#),
            sent(r#"{"type":"dance"}"#),
            RUNNING.to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let emitted = read_lines(reader(&ReaderConfig::default()), &lines, &End::default());
        let about = |it: &&str| it.starts_with("ask") || it.starts_with("unmapped");
        let emitted: Vec<&str> = emitted.lines().filter(about).collect();
        expect.assert_eq(&emitted.join("\n"));
    };
    check(
        r#"{"type":"answer","call":"c","allow":true}"#,
        expect![[r#"
            ask permission c ls input={"command":"ls"} item=c suggestions=[{"rules":[{"toolName":"terminal"}]}] tool=terminal
            ask.settled c allowed
            unmapped "message to the agent""#]],
    );
    check(
        r#"{"type":"answer","call":"c","allow":true,"always":true}"#,
        expect![[r#"
            ask permission c ls input={"command":"ls"} item=c suggestions=[{"rules":[{"toolName":"terminal"}]}] tool=terminal
            ask.settled c allowed_always
            unmapped "message to the agent""#]],
    );
    check(
        r#"{"type":"answer","call":"c","allow":false,"reason":"no"}"#,
        expect![[r#"
            ask permission c ls input={"command":"ls"} item=c suggestions=[{"rules":[{"toolName":"terminal"}]}] tool=terminal
            ask.settled c denied no
            unmapped "message to the agent""#]],
    );
}

#[test]
fn a_summary_that_openhands_made_up_is_no_title() {
    let with =
        |summary: &str| ACTION.replace(r#""source""#, &format!(r#""summary":{summary},"source""#));
    let titles = [r#""look around""#, r#""terminal: {\"command\": \"ls\"}""#].map(|summary| {
        let action = with(summary);
        let emitted = read_lines(
            reader(&ReaderConfig::default()),
            &[USER, &action],
            &End::default(),
        );
        let mut calls = emitted.lines().filter(|it| it.starts_with("+ tool"));
        calls.next().unwrap().to_owned()
    });
    expect![[r#"
        + tool c class={shell "look around" command=ls} group=r input={"command":"ls"} name=terminal
        + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal"#]]
    .assert_eq(&titles.join("\n"));
}

#[test]
fn what_was_used_before_a_resumed_run_is_not_its_own() {
    let stats = |n: u32| {
        format!(
            r#"{{"usage_to_metrics":{{"agent":{{"model_name":"m","accumulated_cost":{n},"accumulated_token_usage":{{"prompt_tokens":{n},"completion_tokens":{n}}}}}}}}}"#
        )
    };
    let state = |key: &str, value: &str| {
        format!(
            r#"{{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"{key}","value":{value}}}"#
        )
    };
    let snapshot = format!(r#"{{"id":"x","stats":{}}}"#, stats(3));
    let lines = [
        &state("full_state", &snapshot),
        USER,
        SAID,
        &state("stats", &stats(5)),
        FINISHED,
    ];
    let emitted = read_lines(reader(&ReaderConfig::default()), &lines, &End::default());
    let ended = emitted.lines().last().unwrap();
    expect!["run.ended completed answer=done models=[{cost_usd=2.0 model=m tokens={cache_read=0 cache_write=0 input=2 output=2}}] session_cost_usd=5.0 usage={run delta tokens={cache_read=0 cache_write=0 input=2 output=2}}"].assert_eq(ended);
}
