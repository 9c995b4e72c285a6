//! What calls of all agents are classified as.

use expect_test::{Expect, expect};

use super::*;

fn check(name: &str, input: &str, expect: Expect) {
    let raw: Raw<'_> = serde_json::from_str(input).unwrap();
    let class = classify(name, Some(&raw), Some("/w"));
    expect.assert_eq(&serde_json::to_string(&class).unwrap());
}

#[test]
fn shell_commands() {
    check(
        "Bash",
        r#"{"command":"cat /w/a \"b\""}"#,
        expect![[r#"{"kind":"shell","title":"cat /w/a \"b\"","command":"cat /w/a \"b\""}"#]],
    );
    check(
        "execute_bash",
        r#"{"command":"ls"}"#,
        expect![[r#"{"kind":"shell","title":"ls","command":"ls"}"#]],
    );
    check(
        "Bash",
        "{}",
        expect![[r#"{"kind":"shell","title":"Bash"}"#]],
    );
    check(
        "shell",
        r#"{"command":["git","status"]}"#,
        expect![[r#"{"kind":"shell","title":"git status","command":"git status"}"#]],
    );
    check(
        "shell",
        r#"{"command":["bash","-lc","echo 'it is' > a"]}"#,
        expect![[
            r#"{"kind":"shell","title":"bash -lc 'echo '\\''it is'\\'' > a'","command":"bash -lc 'echo '\\''it is'\\'' > a'"}"#
        ]],
    );
    check(
        "shell",
        r#"{"command":["ls",7]}"#,
        expect![[r#"{"kind":"shell","title":"[\"ls\",7]","command":"[\"ls\",7]"}"#]],
    );
}

#[test]
fn patches() {
    check(
        "file_change",
        r#"{"changes":[{"path":"/w/a","kind":"add"},{"path":"/w/b","kind":"delete"},{"path":"/w/c","kind":"update"}]}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a and 2 more","paths":[{"path":"/w/a"},{"path":"/w/b"},{"path":"/w/c"}]}"#
        ]],
    );
    check(
        "file_change",
        r#"{"changes":[{"path":"/w/a","kind":{"type":"add"},"diff":"x\n"},{"path":"/w/b","kind":{"type":"add"},"diff":""}]}"#,
        expect![[
            r#"{"kind":"write","title":"Write a and b","paths":[{"path":"/w/a"},{"path":"/w/b"}],"diffs":[{"path":"/w/a","new":"x\n"},{"path":"/w/b","new":""}],"change":"add"}"#
        ]],
    );
    check(
        "file_change",
        r#"{"changes":[{"path":"/w/a","kind":{"type":"delete"},"diff":"x\n"}]}"#,
        expect![[
            r#"{"kind":"delete","title":"Delete a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x\n","new":""}],"change":"delete"}"#
        ]],
    );
    check(
        "file_change",
        r#"{"changes":[{"path":"/w/a","kind":{"type":"update"},"diff":"@@ -1,2 +1,2 @@\n x\n-y\n+z\n@@ -9 +9 @@\n-p\n+q\n\\ No newline at end of file\n"}]}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x\ny\n","new":"x\nz\n"},{"path":"/w/a","old":"p\n","new":"q\n"}],"change":"update"}"#
        ]],
    );
}

#[test]
fn files() {
    check(
        "Read",
        r#"{"file_path":"/w/src/a.py","offset":10,"limit":5}"#,
        expect![[
            r#"{"kind":"read","title":"Read src/a.py (10 - 14)","paths":[{"path":"/w/src/a.py","line":10}]}"#
        ]],
    );
    check(
        "Edit",
        r#"{"file_path":"/w/a.py","old_string":"a","new_string":"b","replace_all":false}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a.py","paths":[{"path":"/w/a.py"}],"diffs":[{"path":"/w/a.py","old":"a","new":"b"}]}"#
        ]],
    );
    check(
        "MultiEdit",
        r#"{"file_path":"/w/a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"a","new":"b"},{"path":"/w/a","old":"c","new":"d"}]}"#
        ]],
    );
    check(
        "Write",
        r#"{"file_path":"/other/n.txt","content":"x\ny"}"#,
        expect![[
            r#"{"kind":"write","title":"Write /other/n.txt","paths":[{"path":"/other/n.txt"}],"diffs":[{"path":"/other/n.txt","new":"x\ny"}]}"#
        ]],
    );
    check(
        "NotebookEdit",
        r#"{"notebook_path":"/w/nb.ipynb","cell_id":"c1","new_source":"print(2)"}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit nb.ipynb","paths":[{"path":"/w/nb.ipynb"}],"diffs":[{"path":"/w/nb.ipynb","old":"","new":"print(2)"}]}"#
        ]],
    );
    check(
        "file_editor",
        r#"{"command":"view","path":"/w/a.py","view_range":[3,9]}"#,
        expect![[
            r#"{"kind":"read","title":"Read a.py (3 - 9)","paths":[{"path":"/w/a.py","line":3}]}"#
        ]],
    );
    check(
        "str_replace_editor",
        r#"{"command":"insert","path":"/w/a.py","insert_line":4,"new_str":"x"}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a.py","paths":[{"path":"/w/a.py","line":4}],"diffs":[{"path":"/w/a.py","old":"","new":"x"}]}"#
        ]],
    );
    check(
        "write_file",
        r#"{"file_path":"/w/a","content":""}"#,
        expect![[
            r#"{"kind":"write","title":"Write a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","new":""}]}"#
        ]],
    );
}

#[test]
fn looking_things_up() {
    check(
        "Grep",
        r#"{"pattern":"TODO","path":"/w/src"}"#,
        expect![[
            r#"{"kind":"search","title":"Grep TODO in src","paths":[{"path":"/w/src"}],"query":"TODO"}"#
        ]],
    );
    check(
        "Glob",
        r#"{"pattern":"**/*.rs"}"#,
        expect![[r#"{"kind":"search","title":"Glob **/*.rs","query":"**/*.rs"}"#]],
    );
    check(
        "LS",
        r#"{"path":"/w"}"#,
        expect![[r#"{"kind":"search","title":"LS .","paths":[{"path":"/w"}]}"#]],
    );
    check(
        "WebSearch",
        r#"{"query":"rust ndjson"}"#,
        expect![[
            r#"{"kind":"web_search","title":"Search \"rust ndjson\"","query":"rust ndjson"}"#
        ]],
    );
    check(
        "WebFetch",
        r#"{"url":"https://example.com","prompt":"sum up"}"#,
        expect![[
            r#"{"kind":"fetch","title":"Fetch https://example.com","query":"https://example.com"}"#
        ]],
    );
}

#[test]
fn the_rest() {
    check(
        "Agent",
        r#"{"description":"Count files","prompt":"count"}"#,
        expect![[r#"{"kind":"task","title":"Count files"}"#]],
    );
    check(
        "TaskCreate",
        r#"{"subject":"Search code"}"#,
        expect![[r#"{"kind":"todo","title":"TaskCreate Search code"}"#]],
    );
    check(
        "AskUserQuestion",
        r#"{"questions":[{"question":"Which color?"}]}"#,
        expect![[r#"{"kind":"ask","title":"Which color?"}"#]],
    );
    check(
        "ExitPlanMode",
        r#"{"plan":"do it"}"#,
        expect![[r#"{"kind":"mode","title":"ExitPlanMode"}"#]],
    );
    check(
        "mcp__github__create_issue",
        r#"{"title":"x"}"#,
        expect![[
            r#"{"kind":"mcp","title":"create_issue","mcp":{"server":"github","tool":"create_issue"}}"#
        ]],
    );
    check(
        "mcp__broken",
        "{}",
        expect![[r#"{"kind":"other","title":"mcp__broken"}"#]],
    );
    check("", "7", expect![[r#"{"kind":"other","title":"tool"}"#]]);
}

#[test]
fn calls_that_an_agent_describes_itself() {
    let check = |name: Option<&str>, kind: &str, title: &str, input: &str, expect: Expect| {
        let raw: Raw<'_> = serde_json::from_str(input).unwrap();
        let title = Some(Text::new(title));
        let class = classify_acp(name, Some(kind), title, Some(&raw), None);
        expect.assert_eq(&serde_json::to_string(&class).unwrap());
    };
    check(
        None,
        "execute",
        "run the tests",
        r#"{"command":"make"}"#,
        expect![[r#"{"kind":"shell","title":"run the tests","command":"make"}"#]],
    );
    check(
        Some("Write"),
        "edit",
        "",
        r#"{"file_path":"/w/a","content":"x"}"#,
        expect![[
            r#"{"kind":"write","title":"Write /w/a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","new":"x"}]}"#
        ]],
    );
    check(
        Some("my_search"),
        "search",
        "",
        r#"{"pattern":"x"}"#,
        expect![[r#"{"kind":"search","title":"search x","query":"x"}"#]],
    );
    check(
        Some("my_tool"),
        "other",
        " ",
        "{}",
        expect![[r#"{"kind":"other","title":"my_tool"}"#]],
    );
    check(
        None,
        "brand_new",
        "",
        "{}",
        expect![[r#"{"kind":"other","title":"brand_new"}"#]],
    );
    check(
        Some("delegate"),
        "think",
        "",
        r#"{"command":"spawn"}"#,
        expect![[r#"{"kind":"task","title":"delegate spawn"}"#]],
    );
}

#[test]
fn tools_of_opencode_and_gemini() {
    check(
        "edit",
        r#"{"filePath":"/w/a","oldString":"x","newString":"y"}"#,
        expect![[
            r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x","new":"y"}]}"#
        ]],
    );
    check(
        "task",
        r#"{"description":"count","prompt":"p","subagent_type":"general"}"#,
        expect![[r#"{"kind":"task","title":"count"}"#]],
    );
    check(
        "lsp",
        r#"{"operation":"hover","filePath":"/w/a.rs","line":3}"#,
        expect![[r#"{"kind":"search","title":"lsp a.rs","paths":[{"path":"/w/a.rs"}]}"#]],
    );
    check(
        "read_file",
        r#"{"file_path":"/w/a","start_line":3,"end_line":9}"#,
        expect![[r#"{"kind":"read","title":"Read a (3 - 9)","paths":[{"path":"/w/a","line":3}]}"#]],
    );
    check(
        "grep_search",
        r#"{"pattern":"x","dir_path":"/w/src"}"#,
        expect![[
            r#"{"kind":"search","title":"grep_search x in src","paths":[{"path":"/w/src"}],"query":"x"}"#
        ]],
    );
    check(
        "web_fetch",
        r#"{"prompt":"sum up https://example.com"}"#,
        expect![[
            r#"{"kind":"fetch","title":"Fetch https://example.com","query":"https://example.com"}"#
        ]],
    );
    check(
        "list_directory",
        r#"{"dir_path":"/w"}"#,
        expect![[r#"{"kind":"search","title":"list_directory .","paths":[{"path":"/w"}]}"#]],
    );
    check(
        "invoke_agent",
        r#"{"agent_name":"codebase_investigator","prompt":"look"}"#,
        expect![[r#"{"kind":"task","title":"look"}"#]],
    );
    check(
        "exit_plan_mode",
        "{}",
        expect![[r#"{"kind":"mode","title":"exit_plan_mode"}"#]],
    );
    check(
        "mcp_demo_echo",
        r#"{"text":"x"}"#,
        expect![[r#"{"kind":"mcp","title":"echo","mcp":{"server":"demo","tool":"echo"}}"#]],
    );
    check(
        "mcp_demo",
        "{}",
        expect![[r#"{"kind":"other","title":"mcp_demo"}"#]],
    );
}

#[test]
fn exit_codes_are_read_from_the_text() {
    assert_eq!(exit_code("Exit code 3\nboom"), Some(3));
    assert_eq!(exit_code("Exit code "), None);
    assert_eq!(exit_code("exit 3"), None);
}
