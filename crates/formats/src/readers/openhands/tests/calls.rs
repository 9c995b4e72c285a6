//! Tool calls: actions and their observations, cards, sub-agents.

use super::*;

#[test]
fn a_result_without_a_call_still_counts() {
    check(
        &[
            r#"{"kind":"ObservationEvent","id":"o","source":"environment","tool_name":"terminal","tool_call_id":"c","action_id":"a","observation":{"kind":"TerminalObservation","content":[{"type":"text","text":"hi"}],"command":"x","exit_code":2}}"#,
        ],
        expect![[r#"
            run.started prompt (never_opened)
            + tool c class={shell terminal} name=terminal (never_opened)
            - ok tool c class={shell terminal exit_code=2} name=terminal result={content="hi" structured={"command":"x","content":[{"text":"hi","type":"text"}],"exit_code":2,"kind":"TerminalObservation"}}
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn arguments_that_hold_more_than_the_action_are_the_input() {
    let action = ACTION.replace(
        r#"{\"command\":\"ls\"}"#,
        r#"{\"command\":\"ls\",\"description\":\"List\",\"summary\":\"s\"}"#,
    );
    check(
        &[&action],
        expect![[r#"
            run.started prompt
            + tool c class={shell ls command=ls} group=r input={"command":"ls","description":"List","summary":"s"} name=terminal
            - lost tool c class={shell ls command=ls} group=r input={"command":"ls","description":"List","summary":"s"} name=terminal (missing_end)
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
    let broken = ACTION
        .replace(r#""action":{"kind":"TerminalAction","command":"ls"},"#, "")
        .replace(r#"{\"command\":\"ls\"}"#, r#"{\"command\":"#);
    check(
        &[&broken],
        expect![[r#"
            run.started prompt
            + tool c class={shell terminal} group=r input="{\"command\":" name=terminal
            - lost tool c class={shell terminal} group=r input="{\"command\":" name=terminal (missing_end)
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn a_sender_that_is_a_call_is_its_sub_agent() {
    let task = ACTION
        .replace("terminal", "task")
        .replace("TerminalAction", "TaskAction")
        .replace(r#"{\"command\":\"ls\"}"#, "{}")
        .replace(
            r#""command":"ls""#,
            r#""prompt":"count","subagent_type":"explorer""#,
        );
    let inside = SAID.replace(r#""source":"agent""#, r#""source":"agent","sender":"c""#);
    let other = SAID.replace(
        r#""source":"agent""#,
        r#""source":"agent","sender":"reviewer""#,
    );
    let result = r#"{"kind":"ObservationEvent","id":"o","source":"environment","tool_name":"task","tool_call_id":"c","action_id":"a","observation":{"kind":"TaskObservation","content":[{"type":"text","text":"3"}],"task_id":"t","subagent":"explorer","status":"done"}}"#;
    check(
        &[&task, &inside, result, &other],
        expect![[r#"
            run.started prompt
            + tool c class={task count} group=r input={"prompt":"count","subagent_type":"explorer"} name=task
            + subagent agent:c call=c name=explorer prompt=count
            [c] + message m "" group=r role=assistant
            [c] - ok message m done group=r role=assistant
            - ok subagent agent:c call=c name=explorer prompt=count
            - ok tool c class={task count} group=r input={"prompt":"count","subagent_type":"explorer"} name=task result={content="3" structured={"content":[{"text":"3","type":"text"}],"kind":"TaskObservation","status":"done","subagent":"explorer","task_id":"t"}}
            + message m~2 "" group=r role=assistant extra={"sender":"reviewer"}
            - ok message m~2 done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_rejected_call_is_denied_and_its_question_settled() {
    let waiting = RUNNING.replace("running", "waiting_for_confirmation");
    let rejected = r#"{"kind":"UserRejectObservation","id":"x","source":"environment","tool_name":"terminal","tool_call_id":"c","action_id":"a","rejection_reason":"no"}"#;
    check(
        &[USER, ACTION, &waiting, rejected, SAID],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal
            ask permission c ls input={"command":"ls"} item=c tool=terminal
            ask.settled c denied
            - denied tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal result={content="no" is_error=true}
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done denials=[{input={"command":"ls"} item=c tool=terminal}]
        "#]],
    );
}

#[test]
fn a_last_card_that_comes_twice_counts_once() {
    let card = r#"{"kind":"ACPToolCallEvent","id":"k","source":"agent","tool_call_id":"c","title":"pytest","status":"completed","tool_kind":"execute","raw_input":{"command":"pytest"},"content":[{"type":"content","content":{"type":"text","text":"ok"}}],"is_error":false}"#;
    check(
        &[card, card, SAID],
        expect![[r#"
            run.started prompt
            + tool c class={shell pytest command=pytest} input={"command":"pytest"} name=execute (never_opened)
            - ok tool c class={shell pytest command=pytest} input={"command":"pytest"} name=execute result={content="ok"}
            notice debug late_card "a card after the last one of its call" item=c
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}
