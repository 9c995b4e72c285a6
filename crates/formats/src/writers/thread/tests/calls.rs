//! Tool calls and sub-agents as ThreadItems.

use super::*;

#[test]
fn ids_never_meet_those_of_calls() {
    check(
        vec![
            bound("n1"),
            started(),
            message("g", "a"),
            Body::ItemOpened(tool("item_0", shell("ls"), None)),
            Body::ItemOpened(tool("item_5", shell("pwd"), None)),
            closed(Status::Ok, tool("item_5", shell("pwd"), Some(r#""/""#))),
            closed(Status::Ok, tool("item_0", shell("ls"), Some(r#""x""#))),
            message("g", "b"),
            ended(Outcome::Completed),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"a"}}
            {"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.started","item":{"id":"item_5","type":"command_execution","command":"pwd","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"item_5","type":"command_execution","command":"pwd","aggregated_output":"/","exit_code":0,"status":"completed"}}
            {"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"x","exit_code":0,"status":"completed"}}
            {"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"b"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_streamed_call_starts_when_its_input_is_known() {
    let mut early = tool("t1", Class::plain(ToolKind::Shell, Text::new("Bash")), None);
    if let Item::Tool(tool) = &mut early {
        tool.input = None;
    }
    check(
        vec![
            bound("n1"),
            started(),
            Body::ItemOpened(early.clone()),
            Body::ItemUpdated(tool("t1", shell("ls"), None)),
            Body::ItemDelta(Delta {
                item: ItemId::new("t1"),
                channel: Channel::Output,
                text: Text::new("half of the outp"),
            }),
            closed(Status::Cancelled, tool("t1", shell("ls"), None)),
            Body::ItemOpened({
                *early.id_mut() = ItemId::new("t2");
                early.clone()
            }),
            closed(Status::Lost, early),
            ended(Outcome::Aborted),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"t1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"t1","type":"command_execution","command":"ls","aggregated_output":"half of the outp","exit_code":null,"status":"failed"}}
            {"type":"item.started","item":{"id":"t2","type":"command_execution","command":"Tool","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"t2","type":"command_execution","command":"Tool","aggregated_output":"","exit_code":null,"status":"failed"}}
            {"type":"turn.failed","error":{"message":"aborted"}}
        "#]],
    );
}

#[test]
fn how_calls_end() {
    let class = |kind: ToolKind| {
        let mut class = Class::plain(kind, Text::new("title"));
        class.paths = vec![model::Location {
            path: Text::new("/w/a"),
            line: None,
        }];
        class.query = Some(Text::new("words"));
        class.mcp = Some(Mcp {
            server: Cow::Borrowed("srv"),
            tool: Cow::Borrowed("do"),
        });
        class
    };
    let mut failed = shell("make");
    failed.exit_code = Some(2);
    let mut bodies = vec![bound("n1"), started()];
    let calls = [
        (Status::Error, failed, Some(r#""boom""#)),
        (Status::Error, shell("make"), None),
        (Status::Denied, shell("rm"), Some(r#""no""#)),
        (
            Status::Denied,
            class(ToolKind::Write),
            Some(r#""not allowed""#),
        ),
        (Status::Ok, class(ToolKind::Delete), Some(r#""gone""#)),
        (Status::Error, class(ToolKind::Mcp), Some(r#""bad""#)),
        (Status::Lost, class(ToolKind::Mcp), None),
        (
            Status::Ok,
            class(ToolKind::Mcp),
            Some(
                r#"[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"x"}]"#,
            ),
        ),
        (Status::Error, class(ToolKind::Todo), Some(r#""no list""#)),
        (Status::Ok, class(ToolKind::Todo), Some(r#""list""#)),
        (
            Status::Error,
            class(ToolKind::WebSearch),
            Some(r#""offline""#),
        ),
        (Status::Cancelled, class(ToolKind::Task), None),
        (
            Status::Ok,
            class(ToolKind::Fetch),
            Some(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#),
        ),
    ];
    let ids: Vec<String> = (0..calls.len()).map(|n| format!("t{n}")).collect();
    for ((status, class, result), id) in calls.into_iter().zip(&ids) {
        bodies.push(closed(status, tool(id, class, result)));
    }
    bodies.push(ended(Outcome::Failed));
    check(
        bodies,
        expect![[r#"
        {"type":"thread.started","thread_id":"n1"}
        {"type":"turn.started"}
        {"type":"item.started","item":{"id":"t0","type":"command_execution","command":"make","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t0","type":"command_execution","command":"make","aggregated_output":"boom","exit_code":2,"status":"failed"}}
        {"type":"item.started","item":{"id":"t1","type":"command_execution","command":"make","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t1","type":"command_execution","command":"make","aggregated_output":"","exit_code":1,"status":"failed"}}
        {"type":"item.started","item":{"id":"t2","type":"command_execution","command":"rm","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t2","type":"command_execution","command":"rm","aggregated_output":"no","exit_code":null,"status":"declined"}}
        {"type":"item.started","item":{"id":"t3","type":"file_change","changes":[{"path":"/w/a","kind":"update"}],"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t3","type":"file_change","changes":[{"path":"/w/a","kind":"update"}],"status":"failed"}}
        {"type":"item.completed","item":{"id":"item_0","type":"error","message":"not allowed"}}
        {"type":"item.started","item":{"id":"t4","type":"file_change","changes":[{"path":"/w/a","kind":"delete"}],"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t4","type":"file_change","changes":[{"path":"/w/a","kind":"delete"}],"status":"completed"}}
        {"type":"item.started","item":{"id":"t5","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":null,"error":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t5","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":null,"error":{"message":"bad"},"status":"failed"}}
        {"type":"item.started","item":{"id":"t6","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":null,"error":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t6","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":null,"error":{"message":"lost"},"status":"failed"}}
        {"type":"item.started","item":{"id":"t7","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":null,"error":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t7","type":"mcp_tool_call","server":"srv","tool":"do","arguments":{"a":1,"prompt":"go"},"result":{"content":[{"type":"text","text":"t"},{"type":"image","data":"AA","mimeType":"image/png"},{"type":"x"}],"structured_content":null},"error":null,"status":"completed"}}
        {"type":"item.completed","item":{"id":"item_1","type":"error","message":"no list"}}
        {"type":"item.started","item":{"id":"t10","type":"web_search","query":"words","action":{"type":"search","query":"words"}}}
        {"type":"item.completed","item":{"id":"t10","type":"web_search","query":"words","action":{"type":"search","query":"words"}}}
        {"type":"item.completed","item":{"id":"item_2","type":"error","message":"offline"}}
        {"type":"item.started","item":{"id":"t11","type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"n1","receiver_thread_ids":["t11"],"prompt":"go","agents_states":{"t11":{"status":"pending_init","message":null}},"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t11","type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"n1","receiver_thread_ids":["t11"],"prompt":"go","agents_states":{"t11":{"status":"interrupted","message":null}},"status":"failed"}}
        {"type":"item.started","item":{"id":"t12","type":"command_execution","command":"Tool","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"t12","type":"command_execution","command":"Tool","aggregated_output":"a\nb","exit_code":0,"status":"completed"}}
        {"type":"turn.failed","error":{"message":"failed"}}
    "#]],
    );
}

#[test]
fn a_move_has_two_ends() {
    let mut class = Class::plain(ToolKind::Move, Text::new("Move a"));
    class.paths = ["/w/a", "/w/b"]
        .map(|path| model::Location {
            path: Text::new(path),
            line: None,
        })
        .into();
    check(
        vec![
            bound("n1"),
            started(),
            closed(Status::Ok, tool("t", class, Some("null"))),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"t","type":"file_change","changes":[{"path":"/w/a","kind":"delete"},{"path":"/w/b","kind":"add"}],"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"t","type":"file_change","changes":[{"path":"/w/a","kind":"delete"},{"path":"/w/b","kind":"add"}],"status":"completed"}}
            {"type":"turn.failed","error":{"message":"the stream stopped before the run ended"}}
        "#]],
    );
}

#[test]
fn a_background_agent_is_waited_for() {
    let agent = |report: Option<&'static str>| {
        Item::Subagent(Subagent {
            id: ItemId::new("a"),
            call: ItemId::new("t1"),
            name: Cow::Borrowed("general-purpose"),
            description: None,
            prompt: None,
            background: true,
            report: report.map(Text::new),
            detail: None,
        })
    };
    let task = |result| {
        tool(
            "t1",
            Class::plain(ToolKind::Task, Text::new("Count")),
            result,
        )
    };
    check(
        vec![
            bound("n1"),
            started(),
            Body::ItemOpened(task(None)),
            Body::ItemOpened(agent(None)),
            closed(Status::Ok, task(Some(r#""launched""#))),
            closed(Status::Ok, agent(Some("4 files"))),
            ended(Outcome::Completed),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"t1","type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"n1","receiver_thread_ids":["t1"],"prompt":"go","agents_states":{"t1":{"status":"pending_init","message":null}},"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"t1","type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"n1","receiver_thread_ids":["t1"],"prompt":"go","agents_states":{"t1":{"status":"running","message":"launched"}},"status":"completed"}}
            {"type":"item.completed","item":{"id":"item_0","type":"collab_tool_call","tool":"wait","sender_thread_id":"n1","receiver_thread_ids":["t1"],"prompt":null,"agents_states":{"t1":{"status":"completed","message":"4 files"}},"status":"completed"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}
