//! The other shapes.

use expect_test::{Expect, expect};
use model::{Body, Class, Item, Outcome, Raw, Role, Status, Text, ToolKind, ToolResult};

use super::{LS, Script, tool};

#[test]
fn external_is_as_proposed() {
    Script::run("external")
        .call("g1", "t1", "Bash", LS)
        .result("t1", "Bash", LS, Status::Ok, r#""out""#)
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[],"action":{"kind":"ExternalToolAction","tool":"Bash","args":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ObservationEvent","id":"#2","source":"environment","tool_name":"Bash","tool_call_id":"t1","action_id":"#1","observation":{"kind":"ExternalToolObservation","tool":"Bash","result":"out","content":[{"type":"text","text":"out"}],"is_error":false}}
            {"kind":"ConversationErrorEvent","id":"#3","source":"environment","code":"lost","detail":"the stream ended before the run did"}
            {"kind":"ConversationStateUpdateEvent","id":"#4","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}

#[test]
fn acp_is_cards_and_a_closing_pair() {
    let edit = r#"{"file_path":"/w/a","old_string":"x","new_string":"y"}"#;
    Script::run("acp")
        .think(Some("g1"), "Look.", None)
        .say("g1", "First.")
        .call("g1", "t1", "Edit", edit)
        .result("t1", "Edit", edit, Status::Ok, r#""done""#)
        .say("g2", "Last.")
        .call("g2", "t2", "Bash", LS)
        .close(
            Status::Lost,
            Item::Tool(Box::new(tool(Some("g2"), "t2", "Bash", Some(LS)))),
        )
        .ended(Outcome::Completed, None)
        .check(expect![[r##"
            {"kind":"ACPToolCallEvent","id":"#1","source":"agent","tool_call_id":"t1","title":"Edit /w/a","status":"in_progress","tool_kind":"edit","raw_input":{"file_path":"/w/a","old_string":"x","new_string":"y"},"content":[{"type":"diff","path":"/w/a","old_text":"x","new_text":"y"}],"is_error":false}
            {"kind":"ACPToolCallEvent","id":"#2","source":"agent","tool_call_id":"t1","title":"Edit /w/a","status":"completed","tool_kind":"edit","raw_input":{"file_path":"/w/a","old_string":"x","new_string":"y"},"raw_output":"done","content":[{"type":"diff","path":"/w/a","old_text":"x","new_text":"y"}],"is_error":false}
            {"kind":"ACPToolCallEvent","id":"#3","source":"agent","tool_call_id":"t2","title":"ls","status":"in_progress","tool_kind":"execute","raw_input":{"command":"ls"},"is_error":false}
            {"kind":"ACPToolCallEvent","id":"#4","source":"agent","tool_call_id":"t2","title":"ls","status":"failed","tool_kind":"execute","raw_input":{"command":"ls"},"is_error":true}
            {"kind":"ActionEvent","id":"#5","source":"agent","thought":[],"reasoning_content":"Look.","action":{"kind":"FinishAction","message":"First.\n\nLast."},"tool_name":"finish","tool_call_id":"#5","tool_call":{"id":"#5","name":"finish","arguments":"{\"message\":\"First.\\n\\nLast.\"}","origin":"completion"},"llm_response_id":"g2"}
            {"kind":"ObservationEvent","id":"#6","source":"environment","tool_name":"finish","tool_call_id":"#5","action_id":"#5","observation":{"kind":"FinishObservation","content":[{"type":"text","text":"First.\n\nLast."}],"is_error":false}}
            {"kind":"ConversationStateUpdateEvent","id":"#7","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn message_is_one_text_per_turn() {
    let script = || {
        Script::run("message")
            .message(Role::User, None, "Hi.")
            .think(Some("g1"), "Hm.", None)
            .say("g1", "First, ")
            .say("g1", "this.")
            .call("g1", "t1", "Bash", LS)
            .result("t1", "Bash", LS, Status::Ok, r#""out""#)
            .inside(Some("t9"))
            .say("g3", "I am a sub-agent.")
            .inside(None)
            .say("g2", "Then that.")
            .ended(Outcome::Completed, None)
    };
    script().check(expect![[r##"
        {"kind":"MessageEvent","id":"#1","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Hi."}]}}
        {"kind":"MessageEvent","id":"#2","source":"agent","llm_response_id":"g2","llm_message":{"role":"assistant","content":[{"type":"text","text":"First, this.\n\nThen that."}]}}
        {"kind":"ConversationStateUpdateEvent","id":"#3","source":"environment","key":"execution_status","value":"finished"}
    "##]]);
    script().check_losses(expect![[r#"
        message of a sub-agent
        reasoning
        tool call"#]]);
}

#[test]
fn native_tools_are_openhands_own() {
    #[track_caller]
    fn check(name: &str, input: &str, structured: Option<&str>, expected: Expect) {
        let mut tool = tool(Some("g1"), "t1", name, Some(input));
        let open = Item::Tool(Box::new(tool.clone()));
        tool.result = Some(ToolResult {
            content: Raw::of(&"out"),
            is_error: false,
            structured: structured.map(|it| Raw::parse(it.to_owned())),
            meta: None,
        });
        let script = Script::run("native")
            .event(Body::ItemOpened(open))
            .close(Status::Ok, Item::Tool(Box::new(tool)));
        let lines = String::from_utf8(script.out).unwrap();
        let mut lines = lines.lines();
        let (_, action) = lines.next().unwrap().split_once("\"action\":").unwrap();
        let (action, _) = action.split_once(",\"tool_name\"").unwrap();
        let (_, observation) = lines.next().unwrap().split_once("vation\":").unwrap();
        let observation = observation.strip_suffix('}').unwrap();
        expected.assert_eq(&format!("{action}\n{observation}\n"));
    }
    check(
        "Bash",
        r#"{"command":"ls","timeout":1500}"#,
        None,
        expect![[r#"
            {"kind":"TerminalAction","command":"ls","timeout":1.5}
            {"kind":"TerminalObservation","command":"ls","exit_code":0,"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Read",
        r#"{"file_path":"/w/a","offset":3,"limit":2}"#,
        None,
        expect![[r#"
            {"kind":"FileEditorAction","command":"view","path":"/w/a","view_range":[3,4]}
            {"kind":"FileEditorObservation","command":"view","path":"/w/a","prev_exist":true,"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Read",
        r#"{"file_path":"/w/a","offset":3}"#,
        None,
        expect![[r#"
            {"kind":"FileEditorAction","command":"view","path":"/w/a","view_range":[3,-1]}
            {"kind":"FileEditorObservation","command":"view","path":"/w/a","prev_exist":true,"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Edit",
        r#"{"file_path":"/w/a","old_string":"x","new_string":"y"}"#,
        Some(r#"{"originalFile":"axa\n"}"#),
        expect![[r#"
            {"kind":"FileEditorAction","command":"str_replace","path":"/w/a","old_str":"x","new_str":"y"}
            {"kind":"FileEditorObservation","command":"str_replace","path":"/w/a","prev_exist":true,"old_content":"axa\n","new_content":"aya\n","content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Write",
        r#"{"file_path":"/w/a","content":"x"}"#,
        None,
        expect![[r#"
            {"kind":"FileEditorAction","command":"create","path":"/w/a","file_text":"x"}
            {"kind":"FileEditorObservation","command":"create","path":"/w/a","prev_exist":true,"new_content":"x","content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "TodoWrite",
        r#"{"todos":[{"content":"A","status":"completed"},{"content":"B","status":"in_progress"},{"content":"C","status":"pending"}]}"#,
        None,
        expect![[r#"
            {"kind":"TaskTrackerAction","command":"plan","task_list":[{"title":"A","notes":"","status":"done"},{"title":"B","notes":"","status":"in_progress"},{"title":"C","notes":"","status":"todo"}]}
            {"kind":"TaskTrackerObservation","command":"plan","task_list":[{"title":"A","notes":"","status":"done"},{"title":"B","notes":"","status":"in_progress"},{"title":"C","notes":"","status":"todo"}],"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Glob",
        r#"{"pattern":"**/*.py","path":"/w"}"#,
        Some(r#"{"filenames":["/w/a.py"],"truncated":true}"#),
        expect![[r#"
            {"kind":"GlobAction","pattern":"**/*.py","path":"/w"}
            {"kind":"GlobObservation","files":["/w/a.py"],"pattern":"**/*.py","search_path":"/w","truncated":true,"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "Grep",
        r#"{"pattern":"x","glob":"*.py"}"#,
        None,
        expect![[r#"
            {"kind":"GrepAction","pattern":"x","include":"*.py"}
            {"kind":"GrepObservation","matches":[],"pattern":"x","search_path":".","include_pattern":"*.py","truncated":false,"content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
    check(
        "NotebookEdit",
        r#"{"notebook_path":"/w/n.ipynb","new_source":"x"}"#,
        None,
        expect![[r#"
            {"kind":"MCPToolAction","data":{"notebook_path":"/w/n.ipynb","new_source":"x"}}
            {"kind":"MCPToolObservation","tool_name":"NotebookEdit","content":[{"type":"text","text":"out"}],"is_error":false}
        "#]],
    );
}

#[test]
fn held_text_is_bounded() {
    let long = "x".repeat(3 * 1024 * 1024);
    let script = Script::run("message").say("g1", &long).say("g2", &long);
    assert!(script.out.len() > 2 * long.len());
}

#[test]
fn titles_of_classes_reach_the_cards() {
    let class = Class::plain(ToolKind::Mode, Text::new("Leave plan mode"));
    let mut tool = tool(None, "t1", "ExitPlanMode", Some("{}"));
    tool.class = class;
    Script::run("acp")
        .event(Body::ItemOpened(Item::Tool(Box::new(tool))))
        .check(expect![[r##"
            {"kind":"ACPToolCallEvent","id":"#1","source":"agent","tool_call_id":"t1","title":"Leave plan mode","status":"in_progress","tool_kind":"switch_mode","raw_input":{},"is_error":false}
            {"kind":"ACPToolCallEvent","id":"#2","source":"agent","tool_call_id":"t1","title":"Leave plan mode","status":"failed","tool_kind":"switch_mode","raw_output":"the stream ended","is_error":true}
            {"kind":"ConversationErrorEvent","id":"#3","source":"environment","code":"lost","detail":"the stream ended before the run did"}
            {"kind":"ConversationStateUpdateEvent","id":"#4","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}
