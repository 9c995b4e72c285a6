//! The writer by itself: canonical events in, whole output compared.

use expect_test::{Expect, expect};
use model::End;

use crate::convert::Converter;
use crate::framing::Framing;
use crate::readers::{ReaderConfig, linkspan};
use crate::registry;
use crate::writers::WriterConfig;

const BOUND: &str = r#"session.bound {"native":"n1","how":"init","model":"m1","cwd":"/w","permission_mode":"default","tools":["Bash"]}"#;
const STARTED: &str = r#"run.started {"cause":"prompt"}"#;
const ENDED: &str = r#"run.ended {"outcome":"completed","answer":"ok"}"#;

/// Converts `name data` lines; a line may begin with `@id`, the sub-agent it happened in.
fn convert(profile: Option<&str>, lines: &[&str]) -> (String, Converter) {
    let config = WriterConfig {
        profile: profile.map(str::to_owned),
        ..WriterConfig::default()
    };
    let writer = registry::writer("takopi", &config).unwrap();
    let reader = Box::new(linkspan::Linkspan::new(&ReaderConfig::default()));
    let mut converter = Converter::new(Framing::Lines, reader, writer);
    let mut out = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let (path, line) = match line.strip_prefix('@').and_then(|it| it.split_once(' ')) {
            Some((id, line)) => (format!(r#""path":["{id}"],"#), line),
            None => (String::new(), *line),
        };
        let (name, data) = line.split_once(' ').unwrap();
        let seq = n + 1;
        let event = format!(
            r#"{{"v":1,"seq":{seq},"session":"s1","engine":"claude",{path}"origin":"agent","type":"{name}","data":{data}}}"#
        );
        converter.push(event.as_bytes(), &mut out);
        converter.push(b"\n", &mut out);
    }
    (String::from_utf8(out).unwrap(), converter)
}

fn check_profile(profile: Option<&str>, lines: &[&str], expect: Expect) {
    let (mut text, mut converter) = convert(profile, lines);
    let mut rest = Vec::new();
    converter.end(&End::default(), &mut rest);
    text.push_str(&String::from_utf8(rest).unwrap());
    for (what, n) in converter.losses().iter() {
        text.push_str(&format!("lost: {n} {what}\n"));
    }
    expect.assert_eq(&text);
}

fn check(lines: &[&str], expect: Expect) {
    check_profile(None, lines, expect);
}

#[test]
fn a_run_is_started_actions_and_one_completed() {
    check(
        &[
            BOUND,
            STARTED,
            r#"item.opened {"kind":"tool","id":"t1","group":"g1","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls"}}"#,
            r#"item.closed {"status":"ok","item":{"kind":"tool","id":"t1","group":"g1","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls","exit_code":0},"result":{"content":"a\nb"}}}"#,
            ENDED,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"tool_name":"Bash","tool_input":{"command":"ls"},"message_id":"g1"}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"tool_name":"Bash","tool_input":{"command":"ls"},"message_id":"g1","tool_use_id":"t1","content":"a\nb","is_error":false,"exit_code":0}},"phase":"completed","ok":true}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
        "#]],
    );
}

#[test]
fn kinds_and_titles_come_from_the_classification() {
    let tool = |id: &str, class: &str| {
        format!(
            r#"item.opened {{"kind":"tool","id":"{id}","name":"Name","input":{{}},"class":{class}}}"#
        )
    };
    let lines: Vec<String> = [
        r#"{"kind":"shell","title":"title"}"#,
        r#"{"kind":"read","title":"Read a.py (1 - 2)","paths":[{"path":"/w/a.py"}]}"#,
        r#"{"kind":"edit","title":"Edit a.py","paths":[{"path":"/w/a.py"}],"change":"update"}"#,
        r#"{"kind":"write","title":"Write a.py","paths":[{"path":"/other/a.py"}],"change":"add"}"#,
        r#"{"kind":"delete","title":"Delete a.py","paths":[{"path":"/w"}],"change":"delete"}"#,
        r#"{"kind":"move","title":"Move","paths":[{"path":"/w/a"},{"path":"/w/b"}]}"#,
        r#"{"kind":"write","title":"Write"}"#,
        r#"{"kind":"search","title":"grep x","query":"x"}"#,
        r#"{"kind":"fetch","title":"Fetch u","query":"u"}"#,
        r#"{"kind":"web_search","title":"Search \"q\"","query":"q"}"#,
        r#"{"kind":"mcp","title":"list","mcp":{"server":"gh","tool":"list"}}"#,
        r#"{"kind":"task","title":"look around"}"#,
        r#"{"kind":"todo","title":"Update todos"}"#,
        r#"{"kind":"ask","title":"Ask"}"#,
        r#"{"kind":"think","title":"Think"}"#,
        r#"{"kind":"mode","title":"Leave plan mode"}"#,
        r#"{"kind":"other","title":"Name"}"#,
    ]
    .iter()
    .enumerate()
    .map(|(n, class)| tool(&format!("t{n}"), class))
    .collect();
    let mut all = vec![BOUND, STARTED];
    all.extend(lines.iter().map(String::as_str));
    let (text, _) = convert(None, &all);
    let headings: Vec<String> = text
        .lines()
        .skip(1)
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let action = &value["action"];
            let changes = &action["detail"]["changes"];
            let changes = if changes.is_null() {
                String::new()
            } else {
                changes.to_string()
            };
            let heading = format!("{} {} {changes}", action["kind"], action["title"]);
            heading.trim_end().to_owned()
        })
        .collect();
    expect![[r#"
        "command" "title"
        "tool" "Read a.py"
        "file_change" "a.py" [{"kind":"update","path":"/w/a.py"}]
        "file_change" "/other/a.py" [{"kind":"add","path":"/other/a.py"}]
        "file_change" "." [{"kind":"delete","path":"/w"}]
        "file_change" "a, b" [{"kind":"update","path":"/w/a"},{"kind":"update","path":"/w/b"}]
        "file_change" "Write"
        "tool" "grep x"
        "web_search" "u"
        "web_search" "q"
        "tool" "Name"
        "subagent" "look around"
        "note" "Update todos"
        "note" "Ask"
        "note" "Think"
        "tool" "Leave plan mode"
        "tool" "Name"
    "#]]
    .assert_eq(&(headings.join("\n") + "\n"));
}

#[test]
fn a_call_inside_a_sub_agent_names_its_parent() {
    check(
        &[
            BOUND,
            STARTED,
            r#"@t1 item.opened {"kind":"tool","id":"t2","name":"Glob","input":{"pattern":"*"},"class":{"kind":"search","title":"Find `*`"}}"#,
            r#"@t1 item.closed {"status":"error","item":{"kind":"tool","id":"t2","name":"Glob","input":{"pattern":"*"},"class":{"kind":"search","title":"Find `*` again"},"result":{"content":[{"type":"text","text":"bad"}],"is_error":true}}}"#,
            r#"@t1 item.closed {"status":"ok","item":{"kind":"message","id":"m","role":"assistant","text":"child"}}"#,
            ENDED,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t2","kind":"tool","title":"Find `*`","detail":{"tool_name":"Glob","tool_input":{"pattern":"*"},"parent_tool_use_id":"t1"}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t2","kind":"tool","title":"Find `*`","detail":{"tool_name":"Glob","tool_input":{"pattern":"*"},"parent_tool_use_id":"t1","tool_use_id":"t2","content":[{"type":"text","text":"bad"}],"is_error":true}},"phase":"completed","ok":false}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
            lost: 1 sub-agent message
        "#]],
    );
}

#[test]
fn a_streamed_input_is_sent_when_complete() {
    check(
        &[
            BOUND,
            STARTED,
            r#"item.opened {"kind":"tool","id":"t1","name":"Bash","class":{"kind":"shell","title":"Bash"}}"#,
            r#"item.delta {"item":"t1","channel":"input","text":"{\"command\":\"ls\"}"}"#,
            r#"item.updated {"kind":"tool","id":"t1","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls"}}"#,
            r#"item.updated {"kind":"tool","id":"t1","name":"Bash","input":{"command":"ls -l"},"class":{"kind":"shell","title":"ls -l","command":"ls -l"}}"#,
            r#"item.closed {"status":"ok","item":{"kind":"tool","id":"t1","name":"Bash","input":{"command":"ls -l"},"class":{"kind":"shell","title":"ls -l","command":"ls -l"},"result":{"content":""}}}"#,
            ENDED,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"tool_name":"Bash","tool_input":{"command":"ls"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"tool_name":"Bash","tool_input":{"command":"ls -l"}}},"phase":"updated"}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"tool_name":"Bash","tool_input":{"command":"ls -l"},"tool_use_id":"t1","content":"","is_error":false}},"phase":"completed","ok":true}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
        "#]],
    );
}

#[test]
fn calls_without_a_result_end_not_ok() {
    check(
        &[
            BOUND,
            STARTED,
            r#"item.opened {"kind":"tool","id":"t1","name":"Bash","input":{"command":"a"},"class":{"kind":"shell","title":"a","command":"a"}}"#,
            r#"item.opened {"kind":"tool","id":"t2","name":"Bash","class":{"kind":"shell","title":"Bash"}}"#,
            r#"item.delta {"item":"t2","channel":"input","text":"{\"comm"}"#,
            r#"item.closed {"status":"cancelled","item":{"kind":"tool","id":"t1","name":"Bash","input":{"command":"a"},"class":{"kind":"shell","title":"a","command":"a"}}}"#,
            r#"run.ended {"outcome":"aborted","answer":"half"}"#,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"a","detail":{"tool_name":"Bash","tool_input":{"command":"a"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"a","detail":{"tool_name":"Bash","tool_input":{"command":"a"},"tool_use_id":"t1"}},"phase":"completed","ok":false,"message":"stopped before it had a result"}
            {"type":"action","engine":"claude","action":{"id":"t2","kind":"command","title":"Bash","detail":{"tool_name":"Bash","tool_input":"{\"comm","tool_use_id":"t2"}},"phase":"completed","ok":false,"message":"stopped before it had a result"}
            {"type":"completed","engine":"claude","ok":false,"answer":"half","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`","error":"the run was stopped"}
        "#]],
    );
}

#[test]
fn bad_lines_and_denials_are_warnings_before_the_end() {
    check(
        &[
            r#"notice.raised {"level":"warning","code":"bad_line","text":"not JSON","detail":"x"}"#,
            BOUND,
            STARTED,
            r#"notice.raised {"level":"error","code":"api_error","text":"overloaded"}"#,
            r#"notice.raised {"level":"info","code":"status","text":"requesting"}"#,
            r#"notice.raised {"level":"debug","code":"thinking_tokens","text":"12"}"#,
            r#"notice.raised {"level":"warning","code":"permission_denied","text":"not allowed","item":"t1"}"#,
            r#"notice.raised {"level":"warning","code":"permission_denied","text":"nor this","item":"t2"}"#,
            r#"run.ended {"outcome":"completed","answer":"ok","denials":[{"tool":"Bash","item":"t1","input":{"command":"rm"}}]}"#,
        ],
        expect![[r#"
            {"type":"action","engine":"claude","action":{"id":"claude.note.1","kind":"warning","title":"not JSON","detail":{"code":"bad_line","data":"x"}},"phase":"completed","ok":false,"message":"not JSON","level":"warning"}
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"claude.note.2","kind":"warning","title":"overloaded","detail":{"code":"api_error"}},"phase":"completed","ok":false,"message":"overloaded","level":"error"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.3","kind":"warning","title":"permission denied: Bash","detail":{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"rm"}}},"phase":"completed","ok":false,"message":"permission denied: Bash","level":"warning"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.4","kind":"warning","title":"nor this","detail":{"code":"permission_denied","tool_use_id":"t2"}},"phase":"completed","ok":false,"message":"nor this","level":"warning"}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
            lost: 1 debug notice
            lost: 1 info notice
        "#]],
    );
}

#[test]
fn thinking_is_a_note_and_text_before_the_answer_is_counted() {
    let lines = [
        BOUND,
        STARTED,
        r#"item.closed {"status":"ok","item":{"kind":"reasoning","id":"r1","group":"g1","text":"hm","signature":"sg"}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"reasoning","id":"r2","text":"unsigned"}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"reasoning","id":"r3","text":""}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"reasoning","id":"r4","text":"","encrypted":"x"}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"message","id":"m0","role":"user","text":"prompt"}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"message","id":"m1","role":"assistant","text":"first"}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"message","id":"m2","role":"assistant","text":"ok"}}"#,
        ENDED,
    ];
    check(
        &lines,
        expect![[r#"
        {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
        {"type":"action","engine":"claude","action":{"id":"claude.thinking.1","kind":"note","title":"hm","detail":{"message_id":"g1","signature":"sg"}},"phase":"completed","ok":true}
        {"type":"action","engine":"claude","action":{"id":"claude.thinking.2","kind":"note","title":"unsigned","detail":{}},"phase":"completed","ok":true}
        {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
        lost: 1 assistant message
        lost: 1 hidden thinking
        lost: 1 user message
    "#]],
    );
    check_profile(
        Some("upstream"),
        &lines,
        expect![[r#"
        {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
        {"type":"action","engine":"claude","action":{"id":"claude.thinking.1","kind":"note","title":"hm","detail":{"signature":"sg"}},"phase":"completed","ok":true}
        {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"}}
        lost: 1 assistant message
        lost: 1 hidden thinking
        lost: 1 thinking without signature
        lost: 1 user message
    "#]],
    );
}

#[test]
fn debug_adds_notes() {
    let lines = [
        r#"session.bound {"native":"n1","how":"init","model":"m1","tools":["Bash","Read"],"mcp_servers":[{"name":"gh","status":"connected"}]}"#,
        STARTED,
        r#"notice.raised {"level":"info","code":"status","text":"requesting"}"#,
        r#"frame.unmapped {"what":"type `weird`","raw":{"type":"weird"}}"#,
        r#"item.opened {"kind":"plan","id":"p1","entries":[{"text":"a","status":"in_progress"},{"text":"b","status":"pending"}]}"#,
        r#"item.updated {"kind":"plan","id":"p1","entries":[{"text":"a","status":"completed"},{"text":"b","status":"pending"}]}"#,
        r#"item.closed {"status":"ok","item":{"kind":"other","id":"o1","name":"thing","data":[1]}}"#,
        r#"item.closed {"status":"ok","item":{"kind":"compaction","id":"c1","trigger":"auto","tokens_before":9,"tokens_after":1}}"#,
        r#"run.ended {"outcome":"completed","answer":"ok","usage":{"scope":"run","basis":"cumulative","tokens":{"input":1,"output":2},"detail":{"input_tokens":1}},"detail":{"modelUsage":{"m1":{}}}}"#,
    ];
    check_profile(
        Some("debug"),
        &lines,
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"tools":["Bash","Read"],"mcp_servers":[{"name":"gh","status":"connected"}]}}
            {"type":"action","engine":"claude","action":{"id":"claude.note.1","kind":"note","title":"2 tools; MCP servers: gh (connected)","detail":{"tools":["Bash","Read"],"mcp_servers":[{"name":"gh","status":"connected"}]}},"phase":"completed","ok":true,"level":"debug"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.2","kind":"note","title":"requesting","detail":{"code":"status"}},"phase":"completed","ok":true,"level":"info"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.3","kind":"note","title":"unmapped: type `weird`","detail":{"raw":{"type":"weird"}}},"phase":"completed","ok":true,"level":"debug"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.4","kind":"note","title":"todo 0/2: a","detail":{"done":0,"total":2}},"phase":"completed","ok":true,"level":"info"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.5","kind":"note","title":"todo 1/2: b","detail":{"done":1,"total":2}},"phase":"completed","ok":true,"level":"info"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.6","kind":"note","title":"thing","detail":{"raw":[1]}},"phase":"completed","ok":true,"level":"info"}
            {"type":"action","engine":"claude","action":{"id":"c1","kind":"note","title":"conversation compacted","detail":{"trigger":"auto","tokens_before":9,"tokens_after":1}},"phase":"completed","ok":true}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`","usage":{"input_tokens":1},"modelUsage":{"m1":{}}}
        "#]],
    );
    check(
        &lines,
        expect![[r#"
        {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"tools":["Bash","Read"],"mcp_servers":[{"name":"gh","status":"connected"}]}}
        {"type":"action","engine":"claude","action":{"id":"c1","kind":"note","title":"conversation compacted","detail":{"trigger":"auto","tokens_before":9,"tokens_after":1}},"phase":"completed","ok":true}
        {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`","usage":{"input_tokens":1}}
        lost: 1 info notice
        lost: 1 other item
        lost: 2 plan update
        lost: 1 unmapped frame
    "#]],
    );
}

#[test]
fn every_run_of_a_stream_has_its_own_start_and_end() {
    check(
        &[
            BOUND,
            STARTED,
            ENDED,
            r#"session.bound {"native":"n1","how":"repeat","model":"m2"}"#,
            r#"notice.raised {"level":"warning","code":"bad_line","text":"not JSON"}"#,
            STARTED,
            ENDED,
            r#"session.bound {"native":"n2","how":"init","model":"m3"}"#,
            r#"notice.raised {"level":"warning","code":"bad_line","text":"not JSON"}"#,
            STARTED,
            r#"run.ended {"outcome":"failed","error":{"code":"x","message":"boom"}}"#,
            r#"session.bound {"native":"n2","how":"repeat","model":"m3"}"#,
            r#"notice.raised {"level":"warning","code":"bad_line","text":"too late"}"#,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.1","kind":"warning","title":"not JSON","detail":{"code":"bad_line"}},"phase":"completed","ok":false,"message":"not JSON","level":"warning"}
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m2","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n2"},"title":"m3"}
            {"type":"action","engine":"claude","action":{"id":"claude.note.1","kind":"warning","title":"not JSON","detail":{"code":"bad_line"}},"phase":"completed","ok":false,"message":"not JSON","level":"warning"}
            {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"n2"},"resume_line":"`claude --resume n2`","error":"boom"}
            lost: 1 notice outside a run
        "#]],
    );
}

#[test]
fn a_session_known_late_or_never_starts_late_or_never() {
    check(
        &[STARTED, ENDED],
        expect![[r#"
        {"type":"completed","engine":"claude","ok":true,"answer":"ok"}
    "#]],
    );
    check(
        &[
            r#"session.bound {"native":"n1","how":"init"}"#,
            r#"session.bound {"native":"n1","how":"repeat","model":"m1"}"#,
            STARTED,
            ENDED,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1"}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
        "#]],
    );
    check(
        &[
            STARTED,
            r#"session.bound {"native":"n1","how":"init"}"#,
            ENDED,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`"}
        "#]],
    );
}

#[test]
fn another_session_than_the_one_asked_for_gives_no_token() {
    check(
        &[
            r#"session.bound {"native":"n2","how":"mismatch","model":"m1"}"#,
            STARTED,
            r#"run.ended {"outcome":"failed","error":{"code":"wrong_session","message":"another session"}}"#,
        ],
        expect![[r#"
            {"type":"completed","engine":"claude","ok":false,"answer":"","error":"another session"}
        "#]],
    );
}

#[test]
fn a_refusal_is_an_answer_and_is_emitted() {
    check(
        &[
            STARTED,
            r#"run.ended {"outcome":"refused","answer":"I will not.","error":{"code":"refused","message":"the model refused"}}"#,
        ],
        expect![[r#"
            {"type":"completed","engine":"claude","ok":true,"answer":"I will not.","error":"the model refused"}
        "#]],
    );
}

#[test]
fn events_that_stop_early_still_end_in_completed() {
    check(
        &[BOUND],
        expect![[r#"
        {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","mcp_servers":[]}}
        {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"n1"},"resume_line":"`claude --resume n1`","error":"the events stop before the run ended"}
    "#]],
    );
    check(&[], expect![[""]]);
}

#[test]
fn a_session_that_only_the_result_names_is_started_before_it_is_completed() {
    check_profile(
        Some("upstream"),
        &[
            STARTED,
            r#"run.ended {"outcome":"completed","answer":"ok","detail":{"type":"result","is_error":false,"result":"ok","session_id":"n1"}}"#,
        ],
        expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"n1"}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"n1"},"usage":{}}
        "#]],
    );
}
