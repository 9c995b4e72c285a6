//! Special cases, one per test.

mod adapters;
mod live;

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use model::{End, Event, Frame, Reader};

use super::{Acp, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::{config, read_lines};

fn reader(config: &ReaderConfig) -> Box<dyn Reader> {
    machine::<Acp>(config)
}

fn check(lines: &[&str], expect: Expect) {
    expect.assert_eq(&read_lines(reader(&config()), lines, &End::default()));
}

fn update(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

fn chunk(voice: &str, text: &str) -> String {
    update(&format!(
        r#"{{"sessionUpdate":"{voice}","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn prompt(id: u32, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"s","prompt":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn stop(id: u32, reason: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"{reason}"}}}}"#)
}

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;

#[test]
fn a_cancelled_prompt_is_aborted() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"sleep","kind":"execute","status":"in_progress"}"#,
            ),
            CANCEL,
            &stop(1, "cancelled"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"kind":"shell","title":"sleep"},"id":"c","kind":"tool","name":"execute"}
            notice.raised {"code":"cancel","detail":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}},"level":"info","text":"the client asked for a stop"}
            item.closed why="left_open" {"item":{"class":{"kind":"shell","title":"sleep"},"id":"c","kind":"tool","name":"execute"},"status":"cancelled"}
            run.ended {"detail":{"stopReason":"cancelled"},"error":{"code":"aborted","message":"aborted"},"outcome":"aborted","stop_reason":"cancelled"}
        "#]],
    );
    check(
        &[&prompt(1, "go"), CANCEL],
        expect![[r#"
        session.bound {"how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        notice.raised {"code":"cancel","detail":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}},"level":"info","text":"the client asked for a stop"}
        run.ended why="abort" {"error":{"code":"aborted","message":"aborted"},"outcome":"aborted"}
    "#]],
    );
}

#[test]
fn a_prompt_that_its_client_cancelled_is_aborted_whatever_the_agent_calls_it() {
    check(
        &[
            &prompt(1, "go"),
            CANCEL,
            &stop(1, "end_turn"),
            &prompt(2, "on"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            notice.raised {"code":"cancel","detail":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}},"level":"info","text":"the client asked for a stop"}
            run.ended {"detail":{"stopReason":"end_turn"},"error":{"code":"aborted","message":"aborted"},"outcome":"aborted","stop_reason":"end_turn"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-2","kind":"message","role":"user","text":"on"},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
    let completed = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","_meta":{"outcome":"completed"}}}"#;
    check(
        &[&prompt(1, "go"), CANCEL, completed],
        expect![[r#"
        session.bound {"how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
        notice.raised {"code":"cancel","detail":{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}},"level":"info","text":"the client asked for a stop"}
        run.ended {"detail":{"_meta":{"outcome":"completed"},"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
    "#]],
    );
}

#[test]
fn stop_reasons() {
    let lines = [
        prompt(1, "a"),
        stop(1, "max_tokens"),
        prompt(2, "b"),
        stop(2, "refusal"),
        prompt(3, "c"),
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_turn_requests","_meta":{"code":"error_max_turns","message":"5 turns"}}}"#.to_owned(),
        prompt(4, "d"),
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"log in"}}"#.to_owned(),
        prompt(5, "e"),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"gone","data":{"code":"missing_end","outcome":"lost"}}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"a"},"status":"ok"}
            run.ended {"detail":{"stopReason":"max_tokens"},"error":{"code":"limit","message":"a limit was reached"},"outcome":"limit","stop_reason":"max_tokens"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-2","kind":"message","role":"user","text":"b"},"status":"ok"}
            run.ended {"detail":{"stopReason":"refusal"},"error":{"code":"refused","message":"the model refused"},"outcome":"refused","stop_reason":"refusal"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-3","kind":"message","role":"user","text":"c"},"status":"ok"}
            run.ended {"detail":{"_meta":{"code":"error_max_turns","message":"5 turns"},"stopReason":"max_turn_requests"},"error":{"code":"error_max_turns","message":"5 turns"},"outcome":"limit","stop_reason":"max_turn_requests"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-4","kind":"message","role":"user","text":"d"},"status":"ok"}
            run.ended {"detail":{"code":-32000,"message":"log in"},"error":{"code":"auth","message":"log in","native":"authentication_required"},"outcome":"failed"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-5","kind":"message","role":"user","text":"e"},"status":"ok"}
            run.ended {"detail":{"code":-32603,"data":{"code":"missing_end","outcome":"lost"},"message":"gone"},"error":{"code":"missing_end","message":"gone"},"outcome":"lost"}
        "#]],
    );
}

#[test]
fn a_prompt_during_a_run_waits_for_its_turn() {
    check(
        &[
            &prompt(1, "one"),
            &prompt(2, "two"),
            &chunk("agent_message_chunk", "1"),
            &stop(1, "end_turn"),
            &chunk("agent_message_chunk", "2"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"one"},"status":"ok"}
            item.delta {"channel":"text","item":"text-1","text":"1"}
            item.closed {"item":{"id":"text-1","kind":"message","role":"assistant","text":"1"},"status":"ok"}
            run.ended {"answer":"1","detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-2","kind":"message","role":"user","text":"two"},"status":"ok"}
            item.delta {"channel":"text","item":"text-2","text":"2"}
            item.closed {"item":{"id":"text-2","kind":"message","role":"assistant","text":"2"},"status":"ok"}
            run.ended {"answer":"2","detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn a_loaded_session_is_history() {
    check(
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#,
            &chunk("user_message_chunk", "one"),
            &chunk("agent_message_chunk", "1"),
            &chunk("user_message_chunk", "two"),
            &chunk("agent_message_chunk", "2"),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            &prompt(2, "three"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"resume","native":"s"}
            run.started {"cause":"prompt"}
            item.delta {"channel":"text","item":"text-1","text":"one"}
            item.closed {"item":{"id":"text-1","kind":"message","role":"user","text":"one"},"status":"ok"}
            item.delta {"channel":"text","item":"text-2","text":"1"}
            item.closed {"item":{"id":"text-2","kind":"message","role":"assistant","text":"1"},"status":"ok"}
            run.ended {"answer":"1","outcome":"completed"}
            run.started {"cause":"prompt"}
            item.delta {"channel":"text","item":"text-3","text":"two"}
            item.closed {"item":{"id":"text-3","kind":"message","role":"user","text":"two"},"status":"ok"}
            item.delta {"channel":"text","item":"text-4","text":"2"}
            session.bound extra={"result":{}} {"cwd":"/w","how":"repeat","native":"s"}
            item.closed {"item":{"id":"text-4","kind":"message","role":"assistant","text":"2"},"status":"ok"}
            run.ended {"answer":"2","outcome":"completed"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"three"},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn a_prompt_that_is_repeated_counts_once() {
    check(
        &[
            &prompt(1, "hello there"),
            &chunk("user_message_chunk", "hello "),
            &chunk("user_message_chunk", "there"),
            &chunk("user_message_chunk", "and more"),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"hello there"},"status":"ok"}
            item.delta {"channel":"text","item":"text-1","text":"and more"}
            item.closed {"item":{"id":"text-1","kind":"message","role":"user","text":"and more"},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn a_chunk_continues_until_role_or_message_changes() {
    let with_id = |id: &str, text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    check(
        &[
            &chunk("agent_thought_chunk", "h"),
            &chunk("agent_thought_chunk", "m"),
            &with_id("a", "x"),
            &with_id("a", "y"),
            &with_id("b", "z"),
            &update(
                r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"resource_link","name":"a.py","uri":"file:///w/a.py"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"completed"}"#,
            ),
            &with_id("b", "after"),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.delta {"channel":"text","item":"text-1","text":"h"}
            item.delta {"channel":"text","item":"text-1","text":"m"}
            item.closed {"item":{"id":"text-1","kind":"reasoning","text":"hm"},"status":"ok"}
            item.delta {"channel":"text","item":"a","text":"x"}
            item.delta {"channel":"text","item":"a","text":"y"}
            item.closed {"item":{"id":"a","kind":"message","role":"assistant","text":"xy"},"status":"ok"}
            item.delta {"channel":"text","item":"b","text":"z"}
            item.closed {"item":{"id":"b","kind":"message","parts":[{"image":{"data":"aGk=","media_type":"image/png"}},{"other":{"name":"a.py","type":"resource_link","uri":"file:///w/a.py"}}],"role":"assistant","text":"z"},"status":"ok"}
            item.opened {"class":{"kind":"other","title":"t"},"id":"c","kind":"tool","name":"tool"}
            item.closed {"item":{"class":{"kind":"other","title":"t"},"id":"c","kind":"tool","name":"tool","result":{"content":""}},"status":"ok"}
            item.delta {"channel":"text","item":"b~2","text":"after"}
            item.closed {"item":{"id":"b~2","kind":"message","role":"assistant","text":"after"},"status":"ok"}
            run.ended {"answer":"after","detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

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
        session.bound {"how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.opened {"class":{"command":"rm","kind":"shell","title":"rm"},"id":"c","input":{"command":"rm"},"kind":"tool","name":"execute"}
        ask.opened {"id":"0","input":{"command":"rm"},"item":"c","kind":"permission","title":"rm","tool":"execute"}
        ask.settled {"decision":"denied","id":"0"}
        item.closed {"item":{"class":{"command":"rm","kind":"shell","title":"rm"},"id":"c","input":{"command":"rm"},"kind":"tool","name":"execute","result":{"content":"not allowed","is_error":true}},"status":"denied"}
        run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]],
    );
    let cancelled = permission(r#"{"outcome":"cancelled"}"#);
    check(
        &cancelled.each_ref().map(|it| &**it)[..2],
        expect![[r#"
        session.bound {"how":"init","native":"s"}
        run.started {"cause":"prompt"}
        item.opened {"class":{"command":"rm","kind":"shell","title":"rm"},"id":"c","input":{"command":"rm"},"kind":"tool","name":"execute"}
        ask.opened {"id":"0","input":{"command":"rm"},"item":"c","kind":"permission","title":"rm","tool":"execute"}
        ask.settled {"decision":"withdrawn","id":"0"}
        item.closed why="missing_end" {"item":{"class":{"command":"rm","kind":"shell","title":"rm"},"id":"c","input":{"command":"rm"},"kind":"tool","name":"execute"},"status":"lost"}
        run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            notice.raised {"code":"request","detail":{"id":1,"jsonrpc":"2.0","method":"fs/read_text_file","params":{"path":"/w/a","sessionId":"s"}},"level":"info","text":"the agent asked: fs/read_text_file"}
            ask.opened {"id":"2","input":{"message":"Which?","mode":"form"},"kind":"question","title":"Which?","tool":"elicitation"}
            ask.settled {"decision":"allowed","id":"2","input":{"a":1}}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn bare_updates() {
    check(
        &[
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#,
            r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}}"#,
        ],
        expect![[r#"
            run.started {"cause":"prompt"}
            item.delta {"channel":"text","item":"text-1","text":"a"}
            session.bound {"how":"init","native":"s"}
            item.delta {"channel":"text","item":"text-1","text":"b"}
            item.closed why="missing_end" {"item":{"id":"text-1","kind":"message","role":"assistant","text":"ab"},"status":"ok"}
            run.ended why="missing_end" {"answer":"ab","error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
        "#]],
    );
}

#[test]
fn the_draft_of_version_2() {
    check(
        &[
            &prompt(1, "go"),
            r#"{"jsonrpc":"2.0","id":1,"result":{"messageId":"u1"}}"#,
            &update(r#"{"sessionUpdate":"state_update","state":"running"}"#),
            &update(
                r#"{"sessionUpdate":"agent_message","messageId":"m1","content":[{"type":"text","text":"whole"}]}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":{"type":"text","text":"line"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"cancelled"}"#,
            ),
            &update(r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.closed {"item":{"id":"m1","kind":"message","role":"assistant","text":"whole"},"status":"ok"}
            item.opened why="never_opened" {"class":{"command":"make","kind":"shell","title":"make"},"id":"c","input":{"command":"make"},"kind":"tool","name":"execute"}
            item.delta {"channel":"output","item":"c","text":"line"}
            item.closed {"item":{"class":{"command":"make","kind":"shell","title":"make"},"id":"c","input":{"command":"make"},"kind":"tool","name":"execute","result":{"content":"line","is_error":true}},"status":"cancelled"}
            run.ended {"answer":"whole","detail":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.opened {"class":{"diffs":[{"new":"x","path":"/w/a"}],"kind":"write","paths":[{"line":3,"path":"/w/a"}],"title":"Edit"},"id":"c","kind":"tool","name":"Write"}
            item.updated {"class":{"diffs":[{"new":"x","path":"/w/a"}],"kind":"write","paths":[{"path":"/w/b"}],"title":"Edit"},"id":"c","kind":"tool","name":"Write"}
            item.closed {"item":{"class":{"diffs":[{"new":"x","path":"/w/a"}],"kind":"write","paths":[{"path":"/w/b"}],"title":"Edit"},"id":"c","kind":"tool","name":"Write","result":{"content":[{"terminalId":"t1","type":"terminal"}],"structured":{"ok":true}}},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
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
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.opened {"class":{"kind":"task","title":"Count"},"id":"t","input":{"prompt":"count","subagent_type":"explorer"},"kind":"tool","name":"Task"}
            item.opened {"call":"t","id":"agent:t","kind":"subagent","name":"explorer","prompt":"count"}
            item.delta path=["t"] {"channel":"text","item":"text-1","text":"inside"}
            item.delta {"channel":"text","item":"text-2","text":"outside"}
            item.closed path=["t"] {"item":{"id":"text-1","kind":"message","role":"assistant","text":"inside"},"status":"ok"}
            item.closed {"item":{"call":"t","id":"agent:t","kind":"subagent","name":"explorer","prompt":"count"},"status":"ok"}
            item.closed {"item":{"class":{"kind":"task","title":"Count"},"id":"t","input":{"prompt":"count","subagent_type":"explorer"},"kind":"tool","name":"Task","result":{"content":"3"}},"status":"ok"}
            item.closed {"item":{"id":"text-2","kind":"message","role":"assistant","text":"outside"},"status":"ok"}
            run.ended {"answer":"outside","detail":{"stopReason":"end_turn"},"outcome":"completed","stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn the_rest_of_the_updates() {
    check(
        &[
            &update(
                r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"d"}]}"#,
            ),
            &update(r#"{"sessionUpdate":"current_mode_update","currentModeId":"plan"}"#),
            &update(
                r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","category":"model","type":"select","currentValue":"m2","options":[]}]}"#,
            ),
            &update(r#"{"sessionUpdate":"session_info_update","title":"A title"}"#),
            &update(
                r#"{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"completed"},{"content":"b","priority":"low","status":"pending"}]}"#,
            ),
            &update(r#"{"sessionUpdate":"notice","severity":"warning","title":"careful"}"#),
            &update(
                r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}"#,
            ),
            &update(
                r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"k","content":{"type":"text","text":"short"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}"#,
            ),
            &update(
                r#"{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.5,"currency":"USD"}}"#,
            ),
            &update(r#"{"sessionUpdate":"brand_new","x":1}"#),
            r#"{"jsonrpc":"2.0","method":"_vendor/thing","params":{}}"#,
            r#"{"jsonrpc":"2.0"}"#,
            "nonsense",
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            session.bound {"commands":["init"],"how":"repeat","native":"s"}
            session.bound {"commands":["init"],"how":"repeat","native":"s","permission_mode":"plan"}
            session.bound {"commands":["init"],"how":"repeat","model":"m2","native":"s","permission_mode":"plan"}
            notice.raised {"code":"session_info","detail":{"sessionUpdate":"session_info_update","title":"A title"},"level":"info","text":"A title"}
            run.started extra={"entries":[{"content":"a","priority":"high","status":"completed"},{"content":"b","priority":"low","status":"pending"}]} {"cause":"prompt"}
            item.opened {"entries":[{"status":"completed","text":"a"},{"status":"pending","text":"b"}],"id":"plan","kind":"plan"}
            notice.raised {"code":"notice","detail":{"sessionUpdate":"notice","severity":"warning","title":"careful"},"level":"warning","text":"careful"}
            item.opened {"id":"k","kind":"compaction"}
            item.closed {"item":{"id":"k","kind":"compaction","summary":"short"},"status":"ok"}
            usage.reported {"basis":"cumulative","detail":{"cost":{"amount":0.5,"currency":"USD"},"sessionUpdate":"usage_update","size":100,"used":10},"model":"m2","scope":"call","tokens":{"cache_read":0,"cache_write":0,"input":10}}
            frame.unmapped {"raw":{"sessionUpdate":"brand_new","x":1},"what":"update `brand_new`"}
            frame.unmapped {"raw":{"jsonrpc":"2.0"},"what":"no message of ACP"}
            notice.raised {"code":"bad_line","detail":"nonsense","level":"warning","text":"not JSON: nonsense"}
            item.closed why="left_open" {"item":{"entries":[{"status":"completed","text":"a"},{"status":"pending","text":"b"}],"id":"plan","kind":"plan"},"status":"ok"}
            run.ended {"detail":{"stopReason":"end_turn"},"models":[{"context_window":100,"model":"m2","tokens":{"cache_read":0,"cache_write":0,"input":0}}],"outcome":"completed","session_cost_usd":0.5,"stop_reason":"end_turn"}
        "#]],
    );
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let mut config = config();
    config.expected_session = Some("mine".to_owned());
    let lines = [chunk("agent_message_chunk", "hi"), stop(1, "end_turn")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expect![[r#"
        run.started why="wrong_session" {"cause":"prompt"}
        session.bound {"how":"mismatch","native":"s"}
        run.ended why="wrong_session" {"error":{"code":"wrong_session","message":"session `mine` was asked for, the agent answered as `s`"},"outcome":"failed"}
        notice.raised {"code":"ignored","level":"warning","text":"1 lines after the end were ignored"}
    "#]].assert_eq(&read_lines(reader(&config), &lines, &End::default()));
}

/// Reads so many updates of one call and counts the bytes of what is told of them.
fn n_bytes_emitted(updates: impl Iterator<Item = String>) -> usize {
    let mut reader = reader(&config());
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

#[test]
fn only_its_own_messages_are_recognised() {
    assert!(recognises(&prompt(1, "go")));
    assert!(recognises(&stop(1, "end_turn")));
    assert!(recognises(&chunk("agent_message_chunk", "x")));
    assert!(recognises(r#"{"sessionUpdate":"plan","entries":[]}"#));
    assert!(recognises(
        r#"{"t": 0.01, "dir": "in", "msg": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}}"#
    ));
    for recording in [
        include_str!("../../../../../fixtures/acp/opencode.duplex.jsonl"),
        include_str!("../../../../../fixtures/acp/gemini.duplex.jsonl"),
        include_str!("../../../../../fixtures/acp/everything.acp.jsonl"),
    ] {
        assert!(recording.lines().take(1).all(recognises));
    }
    for recording in [
        include_str!("../../../../../fixtures/openhands/real-fix-bug.jsonl"),
        include_str!("../../../../../fixtures/claude/control_permissions.duplex.jsonl"),
    ] {
        assert!(!recording.lines().any(recognises));
    }
    for other in [
        r#"{"method":"initialize","id":0,"params":{"clientInfo":{"name":"codex"}}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"kind":"MessageEvent","source":"user"}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        "x",
    ] {
        assert!(!recognises(other), "{other}");
    }
}

#[test]
fn the_error_for_a_cancelled_request_is_an_abort() {
    check(
        &[
            &prompt(1, "go"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"Request cancelled"}}"#,
        ],
        expect![[r#"
            session.bound {"how":"init","native":"s"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"prompt-1","kind":"message","role":"user","text":"go"},"status":"ok"}
            run.ended {"detail":{"code":-32800,"message":"Request cancelled"},"error":{"code":"aborted","message":"Request cancelled"},"outcome":"aborted"}
        "#]],
    );
}
