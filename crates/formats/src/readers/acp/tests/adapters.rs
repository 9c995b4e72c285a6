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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"command":"ls; exit 3","kind":"shell","title":"ls; exit 3"},"id":"c","input":{"command":"ls; exit 3"},"kind":"tool","name":"execute"}
            item.delta {"channel":"output","item":"c","text":"a\n"}
            item.delta {"channel":"output","item":"c","text":"b\n"}
            item.closed {"item":{"class":{"command":"ls; exit 3","exit_code":3,"kind":"shell","title":"ls; exit 3"},"id":"c","input":{"command":"ls; exit 3"},"kind":"tool","name":"execute","result":{"content":"a\nb\n","is_error":true}},"status":"error"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"kind":"shell","title":"Shell"},"id":"c","kind":"tool","name":"Shell"}
            item.updated {"class":{"command":"touch made.txt","kind":"shell","title":"Shell"},"id":"c","input":{"command":"touch made.txt"},"kind":"tool","name":"run_shell_command"}
            ask.opened {"id":"7","input":{"command":"touch made.txt"},"item":"c","kind":"permission","title":"touch made.txt","tool":"run_shell_command"}
            ask.settled {"decision":"allowed","id":"7"}
            item.closed {"item":{"class":{"command":"touch made.txt","kind":"shell","title":"Shell"},"id":"c","input":{"command":"touch made.txt"},"kind":"tool","name":"run_shell_command","result":{"content":""}},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"command":"touch made.txt","kind":"shell","title":"bash: touch made.txt"},"id":"c","input":{"command":"touch made.txt"},"kind":"tool","name":"bash"}
            item.updated {"class":{"command":"touch made.txt","kind":"shell","title":"done"},"id":"c","input":{"command":"touch made.txt"},"kind":"tool","name":"bash"}
            item.closed {"item":{"class":{"command":"touch made.txt","kind":"shell","title":"done"},"id":"c","input":{"command":"touch made.txt"},"kind":"tool","name":"bash","result":{"content":""}},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"command":"true","kind":"shell","title":"true"},"id":"c","kind":"tool","name":"Bash"}
            item.updated {"class":{"command":"true","kind":"shell","title":"true"},"id":"c","input":{"command":"true"},"kind":"tool","name":"Bash"}
            item.closed {"item":{"class":{"command":"true","kind":"shell","title":"true"},"id":"c","input":{"command":"true"},"kind":"tool","name":"Bash","result":{"content":"(Bash completed with no output)"}},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}
