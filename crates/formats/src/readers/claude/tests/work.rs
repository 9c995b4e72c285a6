//! Messages, calls and their results, hooks, sub-agents, compaction.

use expect_test::expect;

use super::*;

#[test]
fn each_line_is_one_block_of_a_response() {
    check(
        &[
            init(),
            assistant(
                "m1",
                json!({"type": "thinking", "thinking": "hm", "signature": "sig"}),
            ),
            assistant("m1", json!({"type": "redacted_thinking", "data": "xyz"})),
            text("m1", "One."),
            text("m2", "Two."),
            assistant("m2", json!({"type": "hologram", "x": 1})),
            result("Two."),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + reasoning m1.0 "" group=m1
            - ok reasoning m1.0 hm group=m1 signature=sig
            + reasoning m1.1 "" group=m1
            - ok reasoning m1.1 "" encrypted=xyz group=m1
            + message m1.2 "" group=m1 role=assistant
            - ok message m1.2 One. group=m1 role=assistant
            + message m2.0 "" group=m2 role=assistant
            - ok message m2.0 Two. group=m2 role=assistant
            unmapped "block `hologram`"
            run.ended completed answer=Two.
        "#]],
    );
}

fn partial(event: Value) -> Value {
    json!({"type": "stream_event", "session_id": "s1", "event": event})
}

#[test]
fn partial_messages_stream_what_their_line_repeats() {
    let delta = |index: u32, delta: Value| {
        partial(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let start = |index: u32, block: Value| {
        partial(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    check(
        &[
            init(),
            partial(json!({"type": "message_start", "message": {"id": "m1", "model": "m"}})),
            start(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "Look"})),
            delta(0, json!({"type": "text_delta", "text": "ing."})),
            text("m1", "Looking."),
            partial(json!({"type": "content_block_stop", "index": 0})),
            start(
                1,
                json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}),
            ),
            delta(
                1,
                json!({"type": "input_json_delta", "partial_json": "{\"command\":"}),
            ),
            delta(
                1,
                json!({"type": "input_json_delta", "partial_json": "\"ls\"}"}),
            ),
            partial(json!({"type": "content_block_stop", "index": 1})),
            call("t1", "Bash", json!({"command": "ls"})),
            partial(json!({"type": "message_stop"})),
            output("t1", "a\nb"),
            result("done"),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + message m1.0 "" group=m1 role=assistant
            . m1.0 text Look
            . m1.0 text ing.
            - ok message m1.0 Looking. group=m1 role=assistant
            + tool t1 class={shell Bash} group=m1 name=Bash
            . t1 input "{\"command\":"
            . t1 input "\"ls\"}"
            ~ tool t1 class={shell ls command=ls} group=m1 input={"command":"ls"} name=Bash
            - ok tool t1 class={shell ls command=ls exit_code=0} group=m1 input={"command":"ls"} name=Bash result={content="a\nb"}
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_streamed_text_that_its_line_contradicts_stays_and_is_followed_by_the_line() {
    check(
        &[
            partial(json!({"type": "message_start", "message": {"id": "m1"}})),
            partial(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Wrong"}}),
            ),
            text("m1", "Right"),
            result("Right"),
        ],
        expect![[r#"
            session s1 init
            run.started prompt
            + message m1.0 "" group=m1 role=assistant
            . m1.0 text Wrong
            - lost message m1.0 Wrong group=m1 role=assistant (left_open)
            notice warning text_differs "the streamed text is not the final text"
            + message m1.0~2 "" group=m1 role=assistant
            - ok message m1.0~2 Right group=m1 role=assistant
            run.ended completed answer=Right
        "#]],
    );
}

#[test]
fn a_result_tells_how_its_call_went() {
    let change = json!({"type": "create", "filePath": "/w/n", "content": "x"});
    let mut written = output("t2", "written");
    written["tool_use_result"] = change;
    check(
        &[
            call("t1", "Bash", json!({"command": "false"})),
            failure("t1", "Exit code 1", json!({"id": "t1"})),
            call("t2", "Write", json!({"file_path": "/w/n", "content": "x"})),
            written,
            output("t9", "of a call that was never seen"),
            call("t3", "Read", json!({"file_path": "/w/n"})),
            result("done"),
        ],
        expect![[r#"
            session s1 init
            run.started prompt
            + tool t1 class={shell false command=false} group=m1 input={"command":"false"} name=Bash
            - error tool t1 class={shell false command=false exit_code=1} group=m1 input={"command":"false"} name=Bash result={content="Exit code 1" is_error=true meta=[{"id":"t1"}]}
            + tool t2 class={write "Write /w/n" diffs=[{new=x path=/w/n}] paths=[{path=/w/n}]} group=m1 input={"content":"x","file_path":"/w/n"} name=Write
            - ok tool t2 class={write "Write /w/n" change=add diffs=[{new=x path=/w/n}] paths=[{path=/w/n}]} group=m1 input={"content":"x","file_path":"/w/n"} name=Write result={content="written" structured={"content":"x","filePath":"/w/n","type":"create"}}
            + tool t9 class={other "tool result"} name=unknown (never_opened)
            - ok tool t9 class={other "tool result"} name=unknown result={content="of a call that was never seen"}
            + tool t3 class={read "Read /w/n" paths=[{path=/w/n}]} group=m1 input={"file_path":"/w/n"} name=Read
            - lost tool t3 class={read "Read /w/n" paths=[{path=/w/n}]} group=m1 input={"file_path":"/w/n"} name=Read (left_open)
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn calls_that_did_not_run_were_denied_or_cancelled() {
    let bash = |id: &str| call(id, "Bash", json!({"command": "rm x"}));
    let refusal = "The user doesn't want to proceed with this tool use. STOP.";
    let mut done = result("done");
    done["permission_denials"] =
        json!([{"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm x"}}]);
    check(
        &[
            init(),
            bash("t1"),
            system(
                "permission_denied",
                json!({"tool_name": "Bash", "tool_use_id": "t1"}),
            ),
            failure("t1", "denied", json!({"id": "t1"})),
            bash("t2"),
            failure(
                "t2",
                "no",
                json!({"id": "t2", "non_execution_kind": "user-rejected", "permission_decision": {"decision": "reject"}}),
            ),
            bash("t3"),
            failure(
                "t3",
                refusal,
                json!({"id": "t3", "non_execution_kind": "user-rejected"}),
            ),
            bash("t4"),
            failure("t4", "boom", json!({"id": "another"})),
            done,
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + tool t1 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash
            notice warning permission_denied "permission denied: Bash" item=t1
            - denied tool t1 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash result={content="denied" is_error=true meta=[{"id":"t1"}]}
            + tool t2 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash
            - denied tool t2 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash result={content="no" is_error=true meta=[{"id":"t2","non_execution_kind":"user-rejected","permission_decision":{"decision":"reject"}}]}
            + tool t3 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash
            - cancelled tool t3 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash result={content="" is_error=true meta=[{"id":"t3","non_execution_kind":"user-rejected"}]}
            + tool t4 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash
            - error tool t4 class={shell "rm x" command="rm x"} group=m1 input={"command":"rm x"} name=Bash result={content="boom" is_error=true meta=[{"id":"another"}]}
            run.ended completed answer=done denials=[{input={"command":"rm x"} item=t1 tool=Bash}]
        "#]],
    );
}

#[test]
fn a_question_about_a_call_is_settled_by_its_answer_or_by_the_result() {
    let ask = |id: &str, tool: &str, call: &str| {
        json!({"type": "control_request", "request_id": id, "request": {
            "subtype": "can_use_tool", "tool_name": tool, "tool_use_id": call, "input": {"command": "ls"}}})
    };
    let answer = json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": "q1", "response": {"behavior": "deny", "message": "not now"}}});
    check(
        &[
            init(),
            call("t1", "Bash", json!({"command": "ls"})),
            ask("q1", "Bash", "t1"),
            sent(answer),
            failure("t1", "not now", json!({"id": "t1"})),
            call("t2", "Bash", json!({"command": "ls"})),
            ask("q2", "Bash", "t2"),
            output("t2", "a"),
            ask("q3", "AskUserQuestion", "t3"),
            json!({"type": "control_cancel_request", "request_id": "q3"}),
            ask("q4", "ExitPlanMode", "t4"),
            result("done"),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + tool t1 class={shell ls command=ls} group=m1 input={"command":"ls"} name=Bash
            ask permission q1 ls input={"command":"ls"} item=t1 tool=Bash
            ask.settled q1 denied "not now"
            - denied tool t1 class={shell ls command=ls} group=m1 input={"command":"ls"} name=Bash result={content="not now" is_error=true meta=[{"id":"t1"}]}
            + tool t2 class={shell ls command=ls} group=m1 input={"command":"ls"} name=Bash
            ask permission q2 ls input={"command":"ls"} item=t2 tool=Bash
            ask.settled q2 allowed
            - ok tool t2 class={shell ls command=ls exit_code=0} group=m1 input={"command":"ls"} name=Bash result={content="a"}
            ask question q3 AskUserQuestion input={"command":"ls"} item=t3 tool=AskUserQuestion
            ask.settled q3 withdrawn
            ask plan q4 ExitPlanMode input={"command":"ls"} item=t4 tool=ExitPlanMode
            ask.settled q4 lost (left_open)
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn hooks_are_notices_and_may_name_the_session() {
    check(
        &[
            system("hook_started", json!({"hook_name": "SessionStart:startup"})),
            system(
                "hook_response",
                json!({"hook_name": "SessionStart:startup", "outcome": "success"}),
            ),
            system(
                "hook_response",
                json!({"hook_name": "PreToolUse:Bash", "outcome": "error"}),
            ),
            result("done"),
        ],
        expect![[r#"
            notice info hook_started "hook SessionStart:startup started"
            notice info hook_response "hook SessionStart:startup: success"
            notice warning hook_response "hook PreToolUse:Bash: error"
            session s1 init
            run.started prompt
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_sub_agent_works_inside_of_the_call_that_started_it() {
    let task = json!({"subagent_type": "Explore", "description": "look", "prompt": "Look around."});
    check(
        &[
            init(),
            call("a1", "Task", task),
            inside("a1", text("m2", "Looking.")),
            inside("a1", call("b1", "Task", json!({"description": "deeper"}))),
            inside("b1", text("m3", "Deeper.")),
            inside("a1", output("b1", "found")),
            output("a1", "report"),
            result("done"),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + tool a1 class={task look} group=m1 input={"description":"look","prompt":"Look around.","subagent_type":"Explore"} name=Task
            + subagent agent:a1 call=a1 description=look name=Explore prompt="Look around."
            [a1] + message m2.0 "" group=m2 role=assistant
            [a1] - ok message m2.0 Looking. group=m2 role=assistant
            [a1] + tool b1 class={task deeper} group=m1 input={"description":"deeper"} name=Task
            [a1] + subagent agent:b1 call=b1 description=deeper name=agent
            [a1/b1] + message m3.0 "" group=m3 role=assistant
            [a1/b1] - ok message m3.0 Deeper. group=m3 role=assistant
            [a1] - ok subagent agent:b1 call=b1 description=deeper name=agent
            [a1] - ok tool b1 class={task deeper} group=m1 input={"description":"deeper"} name=Task result={content="found"}
            - ok subagent agent:a1 call=a1 description=look name=Explore prompt="Look around."
            - ok tool a1 class={task look} group=m1 input={"description":"look","prompt":"Look around.","subagent_type":"Explore"} name=Task result={content="report"}
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_background_sub_agent_outlives_its_call() {
    let mut launched = output("a1", "launched");
    launched["tool_use_result"] = json!({"isAsync": true});
    let task = |more: Value| {
        let mut task = json!({"task_id": "k1", "task_type": "local_agent", "tool_use_id": "a1"});
        task.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        task
    };
    check(
        &[
            init(),
            call("a1", "Task", json!({"prompt": "Look around."})),
            system(
                "task_started",
                task(json!({"subagent_type": "Explore", "is_backgrounded": true})),
            ),
            launched,
            inside("a1", text("m2", "Looking.")),
            system(
                "task_notification",
                task(json!({"status": "completed", "summary": "found"})),
            ),
            result("done"),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + tool a1 class={task "Look around."} group=m1 input={"prompt":"Look around."} name=Task
            + subagent agent:a1 background=true call=a1 name=Explore prompt="Look around."
            notice debug task_started "task started" item=agent:a1
            - ok tool a1 class={task "Look around."} group=m1 input={"prompt":"Look around."} name=Task result={content="launched" structured={"isAsync":true}}
            [a1] + message m2.0 "" group=m2 role=assistant
            [a1] - ok message m2.0 Looking. group=m2 role=assistant
            - ok subagent agent:a1 background=true call=a1 name=Explore prompt="Look around." report=found
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_compaction_is_an_item_with_the_summary_that_follows() {
    let mut summary =
        json!({"type": "user", "session_id": "s1", "message": {"content": "What was said."}});
    summary["isSynthetic"] = json!(true);
    check(
        &[
            init(),
            system("status", json!({"status": "compacting"})),
            system(
                "compact_boundary",
                json!({"compact_metadata": {"trigger": "auto", "pre_tokens": 900, "post_tokens": 90}}),
            ),
            summary,
            system("status", json!({"status": null, "permissionMode": "plan"})),
            result("done"),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + compaction compaction.0
            ~ compaction compaction.0 tokens_after=90 tokens_before=900 trigger=auto
            - ok compaction compaction.0 summary="What was said." tokens_after=90 tokens_before=900 trigger=auto
            session s1 repeat permission_mode=plan
            notice debug status idle
            run.ended completed answer=done
        "#]],
    );
}
