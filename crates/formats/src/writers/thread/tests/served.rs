//! What a server adds for its clients: rows for asks, and links.

use super::*;

fn served() -> Thread {
    Thread::new(&WriterConfig {
        served: Some(ServedThread {
            base: "http://h".to_owned(),
            max_output: Some(8),
        }),
        ..WriterConfig::default()
    })
}

fn check_served(bodies: Vec<Body<'_>>, expect: Expect) {
    let mut writer = served();
    let mut out = Vec::new();
    for (seq, body) in bodies.into_iter().enumerate() {
        writer.event(&event(seq as u64 + 1, vec![], body), &mut out);
    }
    expect.assert_eq(&String::from_utf8(out).unwrap());
}

fn ask(command: &str) -> Body<'static> {
    let input = serde_json::json!({ "command": command }).to_string();
    Body::AskOpened(model::Ask {
        id: model::AskId::new("q1"),
        kind: model::AskKind::Permission,
        item: Some(ItemId::new("toolu_1")),
        tool: Cow::Borrowed("Bash"),
        title: Text::new(command.to_owned()),
        description: None,
        input: Some(Raw::parse(input)),
        suggestions: None,
        deadline: None,
    })
}

fn settled(decision: model::Decision) -> Body<'static> {
    Body::AskSettled(model::AskSettled {
        id: model::AskId::new("q1"),
        decision,
        message: Some(Text::new("fine")),
        input: None,
        remembered: None,
    })
}

#[test]
fn a_server_shows_asks() {
    check_served(
        vec![
            bound("t"),
            started(),
            ask("echo ``` /w"),
            settled(model::Decision::Allowed),
            ended(Outcome::Completed),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"t"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"ask_3","type":"agent_message","text":"**Permission needed: Bash**\n\n````\necho ``` /w\n````\n\nAnswer at http://h/#/s/s1 or with `{\"control\":\"ask.settle\",\"askId\":\"s1:3\",\"decision\":\"allow\"}` (or `\"deny\"`).","phase":"commentary","ask_id":"s1:3"}}
            {"type":"item.completed","item":{"id":"ask_3","type":"agent_message","text":"Allowed: Bash: echo ``` /w (fine)","phase":"commentary","ask_id":"s1:3"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn the_row_of_a_question_names_the_replacement() {
    let changed = |input: &'static str| {
        Body::AskSettled(model::AskSettled {
            id: model::AskId::new("q1"),
            decision: model::Decision::Allowed,
            message: None,
            input: Some(Raw::parse(input.to_owned())),
            remembered: None,
        })
    };
    let row = |input: &'static str| {
        let mut writer = served();
        let mut out = Vec::new();
        for body in [started(), ask("touch a"), changed(input)] {
            writer.event(&event(3, vec![], body), &mut out);
        }
        let out = String::from_utf8(out).unwrap();
        let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        last["item"]["text"].as_str().unwrap().to_owned()
    };
    let same = "Allowed: Bash: touch a";
    assert_eq!(row(r#"{"command":"touch a"}"#), same);
    let other = format!("{same}\n\nChanged on approval; this runs instead:\n\n```\nrm -r b\n```");
    assert_eq!(row(r#"{"command":"rm -r b"}"#), other);
}

#[test]
fn a_question_is_no_message_of_the_agent_when_it_is_read_back() {
    let mut writer = served();
    let mut out = Vec::new();
    let bodies = [
        started(),
        ask("ls"),
        settled(model::Decision::Denied),
        ended(Outcome::Completed),
    ];
    for body in bodies {
        writer.event(&event(2, vec![], body), &mut out);
    }
    let mut reader = find_reader("codex").unwrap().1(&ReaderConfig::default());
    let mut read = Vec::new();
    let mut sink = |event: &Event<'_>| match &event.body {
        Body::NoticeRaised(it) => read.push(it.code.to_string()),
        Body::RunEnded(it) => read.push(format!("{:?} {:?}", it.outcome, it.answer)),
        other => read.push(other.name().to_owned()),
    };
    for line in String::from_utf8(out).unwrap().lines() {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    assert_eq!(
        read,
        [
            "session.bound",
            "run.started",
            "ask",
            "ask",
            "usage.reported",
            "Completed None"
        ]
    );
}

#[test]
fn a_server_cuts_outputs_and_links_pictures_and_files() {
    let mut edit = Class::plain(ToolKind::Write, Text::new("Write a b.txt"));
    edit.change = Some(model::Change::Add);
    edit.paths = vec![model::Location {
        path: Text::new("/w/a b.txt"),
        line: None,
    }];
    let picture = r#"[{"type":"text","text":"see"},{"type":"image","source":{"media_type":"image/png","data":"TWFuTQ=="}}]"#;
    let mcp = || {
        let mut class = Class::plain(ToolKind::Mcp, Text::new("t"));
        class.mcp = Some(Mcp {
            server: Cow::Borrowed("s"),
            tool: Cow::Borrowed("t"),
        });
        class
    };
    check_served(
        vec![
            bound("t"),
            started(),
            closed(
                Status::Ok,
                tool("c/1", shell("cat"), Some("\"0123456789\"")),
            ),
            closed(Status::Ok, tool("c2", edit, Some("\"\""))),
            closed(Status::Ok, tool("c3", mcp(), Some(picture))),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"t"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"c/1","type":"command_execution","command":"cat","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"c/1","type":"command_execution","command":"cat","aggregated_output":"01234567… [10 bytes, all of it: http://h/api/sessions/s1/items/c%2F1/output?at=3]","exit_code":0,"status":"completed","output_bytes":10,"output_url":"http://h/api/sessions/s1/items/c%2F1/output?at=3"}}
            {"type":"item.started","item":{"id":"c2","type":"file_change","changes":[{"path":"/w/a b.txt","kind":"add"}],"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"c2","type":"file_change","changes":[{"path":"/w/a b.txt","kind":"add","url":"http://h/api/sessions/s1/file?path=%2Fw%2Fa%20b.txt"}],"status":"completed"}}
            {"type":"item.started","item":{"id":"c3","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1,"prompt":"go"},"result":null,"error":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"c3","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1,"prompt":"go"},"result":{"content":[{"type":"text","text":"see"},{"type":"resource_link","uri":"http://h/api/sessions/s1/items/c3/output?at=5&block=1","name":"image","mimeType":"image/png"}],"structured_content":null},"error":null,"status":"completed"}}
        "#]],
    );
}
