//! What takopi 0.22.3 was seen to emit, against `--profile upstream`.
//!
//! Every case of the engines below must come out the same, except those listed here: each follows a recommendation
//! of the format's description, each is compared with an expectation of its own, and each has a row
//! in `docs/takopi.md`.

use std::collections::BTreeSet;
use std::fs;

use expect_test::{Expect, expect};
use formats::convert::Converter;
use formats::registry::{find_reader, writer};
use formats::{ReaderConfig, WriterConfig};
use model::{End, Exit};
use serde::Deserialize;
use serde_json::Value;

use crate::fixtures::root;

/// A run of takopi's own runner, and what it emitted.
#[derive(Deserialize)]
struct Case {
    name: String,
    engine: String,
    /// The session that was to be resumed.
    resume: Option<String>,
    exit_code: i32,
    final_newline: bool,
    input: Vec<String>,
    expect: Vec<Value>,
}

const ENGINES: &[&str] = &["claude", "codex"];

/// Takopi's own test data, by engine.
const RECORDINGS: &[(&str, &str)] = &[
    ("claude", "claude_stream_json_session"),
    ("codex", "codex_exec_json_all_formats"),
    ("codex", "codex_exec_json_phase_and_unknown"),
];

/// A case that comes out differently on purpose.
struct Exception {
    name: &'static str,
    /// What differs and why, as `docs/takopi.md` says it.
    reason: &'static str,
    expect: Expect,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        name: "claude_stream_json_session.jsonl",
        reason: "The file contains two sessions. Takopi stops reading after the first `result`; here every run has its own `started` and `completed`.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"},"title":"claude-sonnet-4-5-20250929","meta":{"cwd":"/home/alex/demo-project","tools":["Task","Bash","Read","Edit","Write","WebFetch","WebSearch"],"permissionMode":"default","output_style":"default","apiKeySource":"ANTHROPIC_API_KEY","mcp_servers":[{"name":"github","status":"connected"},{"name":"sentry","status":"error"}]}}
            {"type":"action","engine":"claude","action":{"id":"toolu_01BASH_LS_EXAMPLE","kind":"command","title":"ls","detail":{"name":"Bash","input":{"command":"ls","timeout":600000}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"toolu_02","kind":"file_change","title":"notes.md","detail":{"name":"Write","input":{"file_path":"notes.md","content":"hello"},"changes":[{"path":"notes.md","kind":"update"}]}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"toolu_01BASH_LS_EXAMPLE","kind":"command","title":"ls","detail":{"name":"Bash","input":{"command":"ls","timeout":600000},"tool_use_id":"toolu_01BASH_LS_EXAMPLE","result_preview":"README.md\npyproject.toml\nsrc/\n","result_len":30,"is_error":false}},"phase":"completed","ok":true}
            {"type":"action","engine":"claude","action":{"id":"toolu_02","kind":"file_change","title":"notes.md","detail":{"name":"Write","input":{"file_path":"notes.md","content":"hello"},"changes":[{"path":"notes.md","kind":"update"}],"tool_use_id":"toolu_02","result_preview":"ok","result_len":2,"is_error":false}},"phase":"completed","ok":true}
            {"type":"completed","engine":"claude","ok":true,"answer":"I see README.md, pyproject.toml, and src/.","resume":{"engine":"claude","value":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"},"usage":{"total_cost_usd":0.012345,"duration_ms":2450,"duration_api_ms":2100,"num_turns":2,"usage":{"input_tokens":130,"output_tokens":76,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"service_tier":"standard"}}}
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"},"title":"claude-sonnet-4-5-20250929","meta":{"cwd":"/home/alex/demo-project","tools":["Bash","Read","Write"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"},"error":"claude run failed (error_during_execution)","usage":{"total_cost_usd":0.001,"duration_ms":1200,"duration_api_ms":800,"num_turns":1,"usage":{"input_tokens":40,"output_tokens":12,"service_tier":"standard"}}}
        "#]],
    },
    Exception {
        name: "claude: result missing duration_api_ms",
        reason: "Takopi drops a whole line because one field is missing, and then reports a missing result; here the fields that are present are used.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "claude: no init rc0",
        reason: "Takopi takes the session id from `init` only; here every line that names the session does, so there is a `started` and a resume token.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"}}
            {"type":"completed","engine":"claude","ok":false,"answer":"partial","resume":{"engine":"claude","value":"s1"},"error":"claude finished without a result event"}
        "#]],
    },
    Exception {
        name: "claude: no init rc1 resume",
        reason: "The agent never named its session. Both fall back to the requested session; here there is also a `started` for it.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"}}
            {"type":"action","engine":"claude","action":{"id":"claude.note.1","kind":"warning","title":"claude failed (rc=1).","detail":{}},"phase":"completed","ok":false,"message":"claude failed (rc=1).","level":"warning"}
            {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"s1"},"error":"claude failed (rc=1)."}
        "#]],
    },
    Exception {
        name: "claude: init without session",
        reason: "Takopi starts only with an `init` that names a session; here the first line that names one is enough.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"duration_api_ms":8,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "claude: mismatch on resume",
        reason: "Takopi throws an exception and emits nothing; here the run ends in one `completed` that is not ok and names both sessions.",
        expect: expect![[r#"
            {"type":"completed","engine":"claude","ok":false,"answer":"","error":"session `other` was asked for, the agent answered as `s1`"}
        "#]],
    },
    Exception {
        name: "claude: second init different",
        reason: "Takopi warns and continues as if nothing had happened; here the run fails, and what follows is a separate run.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"s1"},"error":"the agent changed its session from `s1` to `s2`"}
        "#]],
    },
    Exception {
        name: "claude: result session differs",
        reason: "Takopi returns the resume token of a session other than the one it started; here the run fails, and the token stays that of `started`.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":false,"answer":"","resume":{"engine":"claude","value":"s1"},"error":"the agent changed its session from `s1` to `s9`"}
        "#]],
    },
    Exception {
        name: "claude: result only (no init)",
        reason: "The `result` names the session, so `started` comes before `completed`; takopi emits no `started`.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"duration_api_ms":8,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "claude: last line w/o newline",
        reason: "Takopi loses a last line that does not end with a newline; here it is read.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"duration_api_ms":8,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "claude: unknown block poisons msg",
        reason: "Takopi drops a whole message, tool calls included, because of one unknown block; here the other blocks are used.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"command","title":"ls","detail":{"name":"Bash","input":{"command": "ls"}}},"phase":"started"}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"duration_api_ms":8,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "claude: edit/write/read/etc",
        reason: "Titles omit the agent's working directory, `/w`; takopi omits its own working directory, which was a different one.",
        expect: expect![[r#"
            {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"},"title":"m1","meta":{"cwd":"/w","tools":["Bash"],"permissionMode":"default","output_style":"default","apiKeySource":"none","mcp_servers":[]}}
            {"type":"action","engine":"claude","action":{"id":"t0","kind":"file_change","title":"a.txt","detail":{"name":"Write","input":{"file_path": "/w/a.txt", "content": "x"},"changes":[{"path":"/w/a.txt","kind":"update"}]}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t1","kind":"file_change","title":"b","detail":{"name":"Edit","input":{"path": "b"},"changes":[{"path":"b","kind":"update"}]}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t2","kind":"file_change","title":"MultiEdit","detail":{"name":"MultiEdit","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t3","kind":"file_change","title":"NotebookEdit","detail":{"name":"NotebookEdit","input":{"notebook_path": "n.ipynb"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t4","kind":"tool","title":"read: `/x/y`","detail":{"name":"Read","input":{"file_path": "/x/y"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t5","kind":"tool","title":"read","detail":{"name":"Read","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t6","kind":"tool","title":"glob: `*.rs`","detail":{"name":"Glob","input":{"pattern": "*.rs"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t7","kind":"tool","title":"grep: foo","detail":{"name":"Grep","input":{"pattern": "foo"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t8","kind":"web_search","title":"q","detail":{"name":"WebSearch","input":{"query": "q"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t9","kind":"web_search","title":"u","detail":{"name":"WebFetch","input":{"url": "u"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t10","kind":"note","title":"update todos","detail":{"name":"TodoWrite","input":{"todos": []}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t11","kind":"note","title":"read todos","detail":{"name":"TodoRead","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t12","kind":"note","title":"ask user","detail":{"name":"AskUserQuestion","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t13","kind":"subagent","title":"d","detail":{"name":"Task","input":{"description": "d", "prompt": "p"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t14","kind":"subagent","title":"p","detail":{"name":"Agent","input":{"prompt": "p"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t15","kind":"command","title":"KillShell","detail":{"name":"KillShell","input":{"shell_id": "1"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t16","kind":"tool","title":"BashOutput","detail":{"name":"BashOutput","input":{"bash_id": "1"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t17","kind":"tool","title":"ls: `/q`","detail":{"name":"LS","input":{"path": "/q"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t18","kind":"tool","title":"mcp__gh__list","detail":{"name":"mcp__gh__list","input":{"a": 1}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t19","kind":"tool","title":"Skill","detail":{"name":"Skill","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t20","kind":"tool","title":"ExitPlanMode","detail":{"name":"ExitPlanMode","input":{"plan": "x"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t21","kind":"command","title":"Shell","detail":{"name":"Shell","input":{}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t22","kind":"tool","title":"find: z","detail":{"name":"find","input":{"pattern": "z"}}},"phase":"started"}
            {"type":"action","engine":"claude","action":{"id":"t23","kind":"web_search","title":"fetch","detail":{"name":"web_fetch","input":{}}},"phase":"started"}
            {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"usage":{"total_cost_usd":0.5,"duration_ms":10,"duration_api_ms":8,"num_turns":1,"usage":{"input_tokens": 1, "output_tokens": 2}}}
        "#]],
    },
    Exception {
        name: "codex_exec_json_all_formats.jsonl",
        reason: "The file continues after `turn.completed`. Takopi stops reading there; here the second turn has its own `started` and `completed`.",
        expect: expect![[r#"
            {"type":"started","engine":"codex","resume":{"engine":"codex","value":"0199a213-81c0-7800-8aa1-bbab2a035a53"},"title":"Codex"}
            {"type":"action","engine":"codex","action":{"id":"turn_0","kind":"turn","title":"turn started","detail":{}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_0","kind":"note","title":"todo 0/3: Inspect repo structure","detail":{"done":0,"total":3}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_0","kind":"note","title":"todo 1/3: Run tests","detail":{"done":1,"total":3}},"phase":"updated"}
            {"type":"action","engine":"codex","action":{"id":"item_0","kind":"note","title":"todo 3/3: done","detail":{"done":3,"total":3}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_1","kind":"command","title":"pytest -q","detail":{}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_1","kind":"command","title":"pytest -q","detail":{"exit_code":0,"status":"completed"}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_2","kind":"command","title":"pytest -q","detail":{}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_2","kind":"command","title":"pytest -q","detail":{"exit_code":1,"status":"failed"}},"phase":"completed","ok":false}
            {"type":"action","engine":"codex","action":{"id":"item_3","kind":"file_change","title":"src/compute_answer.py, README.md","detail":{"changes":[{"path":"src/compute_answer.py","kind":"update"},{"path":"README.md","kind":"add"}],"status":"completed"}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_4","kind":"file_change","title":"src/compute_answer.py","detail":{"changes":[{"path":"src/compute_answer.py","kind":"update"}],"status":"failed"}},"phase":"completed","ok":false}
            {"type":"action","engine":"codex","action":{"id":"item_5","kind":"tool","title":"github.search_issues","detail":{"server":"github","tool":"search_issues","status":"in_progress","arguments":{"q":"exec --json"}}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_5","kind":"tool","title":"github.search_issues","detail":{"server":"github","tool":"search_issues","status":"completed","arguments":{"q":"exec --json"},"result_summary":{"content_blocks":1,"has_structured":true}}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_6","kind":"tool","title":"github.search_issues","detail":{"server":"github","tool":"search_issues","status":"in_progress","arguments":null}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_6","kind":"tool","title":"github.search_issues","detail":{"server":"github","tool":"search_issues","status":"failed","arguments":null,"error_message":"tool timeout"}},"phase":"completed","ok":false}
            {"type":"action","engine":"codex","action":{"id":"item_7","kind":"web_search","title":"codex exec --json schema","detail":{"query":"codex exec --json schema"}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_8","kind":"note","title":"Root cause: compute_answer() returned 0.","detail":{}},"phase":"completed","ok":true}
            {"type":"action","engine":"codex","action":{"id":"item_10","kind":"warning","title":"command output truncated","detail":{"message":"command output truncated"}},"phase":"completed","ok":false,"message":"command output truncated","level":"warning"}
            {"type":"completed","engine":"codex","ok":true,"answer":"Updated src/compute_answer.py and tests pass.","resume":{"engine":"codex","value":"0199a213-81c0-7800-8aa1-bbab2a035a53"},"usage":{"input_tokens":1840,"cached_input_tokens":256,"output_tokens":732}}
            {"type":"started","engine":"codex","resume":{"engine":"codex","value":"0199a213-81c0-7800-8aa1-bbab2a035a53"},"title":"Codex"}
            {"type":"action","engine":"codex","action":{"id":"turn_1","kind":"turn","title":"turn started","detail":{}},"phase":"started"}
            {"type":"completed","engine":"codex","ok":false,"answer":"","resume":{"engine":"codex","value":"0199a213-81c0-7800-8aa1-bbab2a035a53"},"error":"Aborted: required dependency `npm` is missing; cannot continue."}
        "#]],
    },
    Exception {
        name: "codex: no exit_code key",
        reason: "Takopi drops a command without `exit_code`; here the fields that are present are used.",
        expect: expect![[r#"
            {"type":"started","engine":"codex","resume":{"engine":"codex","value":"th1"},"title":"Codex"}
            {"type":"action","engine":"codex","action":{"id":"turn_0","kind":"turn","title":"turn started","detail":{}},"phase":"started"}
            {"type":"action","engine":"codex","action":{"id":"item_1","kind":"command","title":"ls","detail":{}},"phase":"started"}
            {"type":"completed","engine":"codex","ok":true,"answer":"","resume":{"engine":"codex","value":"th1"},"usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2}}
        "#]],
    },
    Exception {
        name: "codex: web dup id",
        reason: "A `web_search` has two ids. Takopi keeps the last one; here the first one is used, which is in the same sequence as the ids of other items.",
        expect: expect![[r#"
            {"type":"started","engine":"codex","resume":{"engine":"codex","value":"th1"},"title":"Codex"}
            {"type":"action","engine":"codex","action":{"id":"item_0","kind":"web_search","title":"q","detail":{"query":"q"}},"phase":"completed","ok":true}
            {"type":"completed","engine":"codex","ok":true,"answer":"","resume":{"engine":"codex","value":"th1"},"usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2}}
        "#]],
    },
    Exception {
        name: "codex: no turn completed rc0",
        reason: "Takopi treats exit code 0 as success; here a turn without `turn.completed` is not a success.",
        expect: expect![[r#"
            {"type":"started","engine":"codex","resume":{"engine":"codex","value":"th1"},"title":"Codex"}
            {"type":"action","engine":"codex","action":{"id":"turn_0","kind":"turn","title":"turn started","detail":{}},"phase":"started"}
            {"type":"completed","engine":"codex","ok":false,"answer":"f","resume":{"engine":"codex","value":"th1"},"error":"codex exec finished without a result event"}
        "#]],
    },
    Exception {
        name: "codex: mismatch",
        reason: "Takopi throws an exception and emits nothing; here the run ends in one `completed` that is not ok and names both sessions.",
        expect: expect![[r#"
            {"type":"completed","engine":"codex","ok":false,"answer":"","error":"session `zz` was asked for, the agent answered as `th1`"}
        "#]],
    },
];

#[test]
fn constructed_cases_come_out_as_takopi_has_them() {
    let mut failures = Vec::new();
    let mut used = BTreeSet::new();
    for case in cases() {
        let actual = convert(&case);
        match EXCEPTIONS.iter().find(|it| it.name == case.name) {
            Some(exception) => {
                used.insert(exception.name);
                assert!(
                    differs(&actual, &case.expect),
                    "{} is no exception",
                    case.name
                );
                exception.expect.assert_eq(&actual);
            }
            None if differs(&actual, &case.expect) => {
                failures.push(format!("{}\n{actual}", case.name));
            }
            None => (),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(used.len(), EXCEPTIONS.len(), "an exception names no case");
}

/// The recordings of OpenCode that takopi itself is tested with.
const OPENCODE_RECORDINGS: &[&str] = &[
    "opencode_run_json",
    "opencode_stream_error",
    "opencode_stream_success",
    "opencode_stream_success_no_reason",
];

const OPENCODE_EXCEPTIONS: &[Exception] = &[Exception {
    name: "opencode: no step_start",
    reason: "Takopi starts only with a `step_start`; here the first line that names the session is enough.",
    expect: expect![[r#"
        {"type":"started","engine":"opencode","resume":{"engine":"opencode","value":"ses_1"},"title":"opencode"}
        {"type":"completed","engine":"opencode","ok":true,"answer":"ab","resume":{"engine":"opencode","value":"ses_1"}}
    "#]],
}];

#[test]
fn opencode_cases_come_out_as_takopi_has_them() {
    let mut failures = Vec::new();
    let mut used = BTreeSet::new();
    for case in opencode_cases() {
        let actual = convert(&case);
        let exception = OPENCODE_EXCEPTIONS.iter().find(|it| it.name == case.name);
        match exception {
            Some(exception) => {
                used.insert(exception.name);
                let is_different = differs(&actual, &case.expect);
                assert!(is_different, "{} is no exception", case.name);
                exception.expect.assert_eq(&actual);
            }
            None if differs(&actual, &case.expect) => {
                failures.push(format!("{}\n{actual}", case.name));
            }
            None => (),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let n = OPENCODE_EXCEPTIONS.len();
    assert_eq!(used.len(), n, "an exception names no case");
}

fn opencode_cases() -> Vec<Case> {
    let folder = root().join("takopi");
    let json = fs::read_to_string(folder.join("expected/constructed_cases.json")).unwrap();
    let mut cases: Vec<Case> = serde_json::from_str(&json).unwrap();
    cases.retain(|case| case.engine == "opencode");
    cases.extend(OPENCODE_RECORDINGS.iter().map(|name| {
        let recording = fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        let events = folder.join(format!("expected/{name}.takopi.jsonl"));
        let events = fs::read_to_string(events).unwrap();
        let expect = events.lines().map(|it| serde_json::from_str(it).unwrap());
        Case {
            name: format!("{name}.jsonl"),
            engine: "opencode".to_owned(),
            resume: None,
            exit_code: 0,
            final_newline: true,
            input: recording.lines().map(str::to_owned).collect(),
            expect: expect.collect(),
        }
    }));
    cases
}

#[test]
fn every_exception_is_documented() {
    let page = fs::read_to_string(root().join("../docs/takopi.md")).unwrap();
    for exception in EXCEPTIONS.iter().chain(OPENCODE_EXCEPTIONS) {
        let row = format!("| {} | {} |", exception.name, exception.reason);
        assert!(page.contains(&row), "docs/takopi.md lacks the row\n{row}");
    }
}

fn cases() -> Vec<Case> {
    let folder = root().join("takopi");
    let json = fs::read_to_string(folder.join("expected/constructed_cases.json")).unwrap();
    let mut cases: Vec<Case> = serde_json::from_str(&json).unwrap();
    cases.retain(|case| ENGINES.contains(&&*case.engine));
    for (engine, name) in RECORDINGS {
        let recording = fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        let events = folder.join(format!("expected/{name}.takopi.jsonl"));
        let events = fs::read_to_string(events).unwrap();
        cases.push(Case {
            name: format!("{name}.jsonl"),
            engine: (*engine).to_owned(),
            resume: None,
            exit_code: 0,
            final_newline: true,
            input: recording.lines().map(str::to_owned).collect(),
            expect: events
                .lines()
                .map(|it| serde_json::from_str(it).unwrap())
                .collect(),
        });
    }
    cases
}

fn convert(case: &Case) -> String {
    let (format, reader) = find_reader(&case.engine).unwrap();
    let reader = reader(&ReaderConfig {
        expected_session: case.resume.clone(),
        ..ReaderConfig::default()
    });
    let config = WriterConfig {
        profile: Some("upstream".to_owned()),
        ..WriterConfig::default()
    };
    let writer = writer("takopi", &config).unwrap();
    let mut converter = Converter::new(format.framing, reader, writer);
    let mut input = case.input.join("\n");
    if case.final_newline {
        input.push('\n');
    }
    let mut out = Vec::new();
    converter.push(input.as_bytes(), &mut out);
    let end = End {
        exit: Some(Exit::Code(case.exit_code)),
        aborted: false,
    };
    converter.end(&end, &mut out);
    String::from_utf8(out).unwrap()
}

/// Compares as JSON; a key with `null` says as much as no key.
fn differs(actual: &str, expected: &[Value]) -> bool {
    let actual = actual.lines().map(|it| serde_json::from_str(it).unwrap());
    let actual: Vec<Value> = actual.map(without_nulls).collect();
    let expected: Vec<Value> = expected.iter().cloned().map(without_nulls).collect();
    actual != expected
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                fields
                    .map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
