//! What adapters and agents say in places of their own: `_meta`, titles, questions.

use expect_test::expect;

use super::{check, prompt, stop, update};

fn question(call: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{call},"options":[{{"optionId":"y","name":"y","kind":"allow_once"}}]}}}}"#
    )
}

#[test]
fn the_terminal_of_codex_is_the_output_of_its_call() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"ls; exit 3","kind":"execute","status":"in_progress","rawInput":{"command":"ls; exit 3"},"content":[{"type":"terminal","terminalId":"c"}],"_meta":{"terminal_info":{"terminal_id":"c","cwd":"/w"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"a\n"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"b\n"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","_meta":{"terminal_exit":{"terminal_id":"c","exit_code":3,"signal":null}}}"#,
            ),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + tool c class={shell "ls; exit 3" command="ls; exit 3"} input={"command":"ls; exit 3"} name=execute
            . c output "a\n"
            . c output "b\n"
            - error tool c class={shell "ls; exit 3" command="ls; exit 3" exit_code=3} input={"command":"ls; exit 3"} name=execute result={content="a\nb\n" is_error=true}
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn the_input_of_a_question_becomes_that_of_its_call() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"Shell","kind":"execute","status":"pending","rawInput":{}}"#,
            ),
            &question(
                r#"{"toolCallId":"c","title":"touch made.txt","kind":"execute","rawInput":{"command":"touch made.txt"},"_meta":{"toolName":"run_shell_command"}}"#,
            ),
            r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#,
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}"#,
            ),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + tool c class={shell Shell} name=Shell
            ~ tool c class={shell Shell command="touch made.txt"} input={"command":"touch made.txt"} name=run_shell_command
            ask permission 7 "touch made.txt" input={"command":"touch made.txt"} item=c tool=run_shell_command
            ask.settled 7 allowed
            - ok tool c class={shell Shell command="touch made.txt"} input={"command":"touch made.txt"} name=run_shell_command result={content=""}
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_call_has_the_name_that_its_title_begins_with() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash: touch made.txt","kind":"execute","status":"in_progress","rawInput":{"command":"touch made.txt"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"done","status":"completed"}"#,
            ),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + tool c class={shell "bash: touch made.txt" command="touch made.txt"} input={"command":"touch made.txt"} name=bash
            ~ tool c class={shell done command="touch made.txt"} input={"command":"touch made.txt"} name=bash
            - ok tool c class={shell done command="touch made.txt"} input={"command":"touch made.txt"} name=bash result={content=""}
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_description_is_no_result() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"true","kind":"execute","status":"pending","rawInput":{"command":"true"},"content":[{"type":"content","content":{"type":"text","text":"x"}}],"_meta":{"claudeCode":{"toolName":"Bash"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":"(Bash completed with no output)"}"#,
            ),
            r#"{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}"#,
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + tool c class={shell true command=true} name=Bash
            ~ tool c class={shell true command=true} input={"command":"true"} name=Bash
            - ok tool c class={shell true command=true} input={"command":"true"} name=Bash result={content="(Bash completed with no output)"}
            notice debug auth_status "the agent told whether it is logged in"
            run.ended completed stop_reason=end_turn
        "#]],
    );
}
