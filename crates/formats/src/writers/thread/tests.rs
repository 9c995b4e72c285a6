mod calls;
mod served;

use std::borrow::Cow;

use expect_test::{Expect, expect};
use model::{
    Binding, Body, Cause, Channel, Class, Delta, End, Event, Frame, Item, ItemClosed, ItemId,
    Level, Mcp, Message, Notice, Origin, Outcome, Plan, PlanEntry, PlanStatus, Raw, RunEnded,
    RunId, RunStarted, SessionBound, SessionId, Status, Subagent, Text, Tool, ToolKind, ToolResult,
    Writer,
};

use super::*;
use crate::ReaderConfig;
use crate::registry::find_reader;

fn writer(profile: Option<&str>) -> Thread {
    Thread::new(&WriterConfig {
        profile: profile.map(str::to_owned),
        ..WriterConfig::default()
    })
}

/// Bodies in, lines out; the writer's end included.
fn check(bodies: Vec<Body<'_>>, expect: Expect) {
    check_at(bodies.into_iter().map(|it| (vec![], it)).collect(), expect);
}

fn check_at(bodies: Vec<(Vec<&'static str>, Body<'_>)>, expect: Expect) {
    let mut writer = writer(None);
    let mut out = Vec::new();
    for (seq, (path, body)) in bodies.into_iter().enumerate() {
        writer.event(&event(seq as u64 + 1, path, body), &mut out);
    }
    writer.end(&mut out);
    expect.assert_eq(&String::from_utf8(out).unwrap());
}

fn check_claude(profile: Option<&str>, lines: &str, expect: Expect) {
    let (_, new_reader) = find_reader("claude").unwrap();
    let mut reader = new_reader(&ReaderConfig::default());
    let mut writer = writer(profile);
    let mut out = Vec::new();
    let mut sink = |event: &Event<'_>| writer.event(event, &mut out);
    for line in lines.lines() {
        reader.frame(Frame::Data(line.trim().as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    writer.end(&mut out);
    expect.assert_eq(&String::from_utf8(out).unwrap());
}

fn event<'a>(seq: u64, path: Vec<&'static str>, body: Body<'a>) -> Event<'a> {
    Event {
        seq,
        at: None,
        session: SessionId::new("s1"),
        run: Some(RunId::new("r1")),
        engine: Cow::Borrowed("claude"),
        path: path.into_iter().map(ItemId::new).collect(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Cow::Borrowed(&[]),
        body,
    }
}

fn bound(native: &str) -> Body<'_> {
    Body::SessionBound(SessionBound {
        native: SessionId::new(native),
        how: Binding::Init,
        model: None,
        cwd: None,
        permission_mode: None,
        version: None,
        tools: Vec::new(),
        mcp_servers: Vec::new(),
        commands: Vec::new(),
    })
}

fn started() -> Body<'static> {
    Body::RunStarted(RunStarted::new(Cause::Prompt))
}

fn ended(outcome: Outcome) -> Body<'static> {
    Body::RunEnded(RunEnded::new(outcome, None))
}

fn message<'a>(group: &'a str, text: &'a str) -> Body<'a> {
    closed(
        Status::Ok,
        Item::Message(Message {
            id: ItemId::new("m"),
            role: Role::Assistant,
            group: Some(Cow::Borrowed(group)),
            text: Text::new(text),
            parts: Vec::new(),
        }),
    )
}

fn closed(status: Status, item: Item<'_>) -> Body<'_> {
    Body::ItemClosed(ItemClosed { status, item })
}

fn warning(text: &str) -> Body<'_> {
    Body::NoticeRaised(Notice {
        level: Level::Warning,
        code: Cow::Borrowed("bad_line"),
        text: Text::new(text),
        item: None,
        detail: None,
    })
}

fn tool<'a>(id: &'a str, class: Class<'a>, result: Option<&str>) -> Item<'a> {
    Item::Tool(Box::new(Tool {
        id: ItemId::new(id),
        group: None,
        name: Cow::Borrowed("Tool"),
        input: Some(Raw::parse(r#"{"a":1,"prompt":"go"}"#.to_owned())),
        class,
        server_side: false,
        result: result.map(|json| ToolResult {
            content: Raw::parse(json.to_owned()),
            is_error: false,
            structured: None,
            meta: None,
        }),
    }))
}

fn shell(command: &str) -> Class<'_> {
    let mut class = Class::plain(ToolKind::Shell, Text::new(command));
    class.command = Some(Text::new(command));
    class
}

const SEED_EXAMPLE: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"5c0d3cff-...","tools":["Grep"]}
    {"type":"assistant","session_id":"5c0d3cff-...","message":{"id":"m1","content":[{"type":"text","text":"I'll search ..."}]}}
    {"type":"assistant","session_id":"5c0d3cff-...","message":{"id":"m1","content":[{"type":"tool_use","id":"toolu_...","name":"Grep","input":{"pattern":"x"}}]}}
    {"type":"user","session_id":"5c0d3cff-...","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_...","content":"Found 6 files\n..."}]}}
    {"type":"assistant","session_id":"5c0d3cff-...","message":{"id":"m2","content":[{"type":"text","text":"Perfect! I found ..."}]}}
    {"type":"result","subtype":"success","is_error":false,"session_id":"5c0d3cff-...","result":"Perfect! I found ...","usage":{"input_tokens":10,"cache_read_input_tokens":2,"output_tokens":7}}"#;

#[test]
fn the_seeds_example() {
    check_claude(
        None,
        SEED_EXAMPLE,
        expect![[r#"
        {"type":"thread.started","thread_id":"5c0d3cff-..."}
        {"type":"turn.started"}
        {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I'll search ..."}}
        {"type":"item.started","item":{"id":"toolu_...","type":"command_execution","command":"Grep","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"toolu_...","type":"command_execution","command":"Grep","aggregated_output":"Found 6 files\n...","exit_code":0,"status":"completed"}}
        {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Perfect! I found ..."}}
        {"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"cache_write_input_tokens":0,"output_tokens":7,"reasoning_output_tokens":0},"usage_scope":"run"}
    "#]],
    );
}

#[test]
fn the_seeds_example_in_its_own_shapes() {
    check_claude(
        Some("seed"),
        SEED_EXAMPLE,
        expect![[r#"
        {"type":"thread.started","thread_id":"5c0d3cff-..."}
        {"type":"turn.started"}
        {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I'll search ..."}}
        {"type":"item.started","item":{"id":"toolu_...","type":"command_execution","command":"Grep","aggregated_output":"","status":"in_progress"}}
        {"type":"item.completed","item":{"id":"toolu_...","type":"command_execution","command":"Grep","aggregated_output":"Found 6 files\n...","exit_code":0,"status":"completed"}}
        {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Perfect! I found ..."}}
        {"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"cache_write_input_tokens":0,"output_tokens":7,"reasoning_output_tokens":0},"usage_scope":"run"}
    "#]],
    );
}

#[test]
fn a_bad_line_does_not_fail_the_turn() {
    let lines = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\nnot json\n{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\",\"result\":\"ok\"}";
    check_claude(
        None,
        lines,
        expect![[r#"
            {"type":"thread.started","thread_id":"s"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"error","message":"not JSON: not json"}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"ok"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
    check_claude(
        Some("seed"),
        lines,
        expect![[r#"
            {"type":"thread.started","thread_id":"s"}
            {"type":"turn.started"}
            {"type":"error","message":"not JSON: not json"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"ok"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn adjacent_texts_of_one_response_are_one_message() {
    check(
        vec![
            bound("n1"),
            started(),
            message("g1", "one "),
            message("g1", "two"),
            message("g2", "three"),
            message("g2", ""),
            warning("between"),
            message("g2", "four"),
            ended(Outcome::Completed),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"one two"}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"three"}}
            {"type":"item.completed","item":{"id":"item_2","type":"error","message":"between"}}
            {"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"four"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_sub_agents_text_is_kept_apart() {
    check_at(
        vec![
            (vec![], bound("n1")),
            (vec![], started()),
            (vec![], message("g1", "outer")),
            (vec!["t1"], message("g1", "inner")),
            (vec![], ended(Outcome::Completed)),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"outer"}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"inner"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_session_known_late_is_announced_between_turns() {
    check(
        vec![
            started(),
            message("g", "hi"),
            bound("n1"),
            ended(Outcome::Completed),
            started(),
            ended(Outcome::Aborted),
            bound("n2"),
            started(),
            ended(Outcome::Lost),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"s1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hi"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"turn.failed","error":{"message":"aborted"}}
            {"type":"thread.started","thread_id":"n2"}
            {"type":"turn.started"}
            {"type":"turn.failed","error":{"message":"the stream stopped before the run ended"}}
        "#]],
    );
}

#[test]
fn a_session_known_before_the_first_text_is_the_thread() {
    check(
        vec![
            started(),
            warning("early"),
            bound("n1"),
            message("g", "hi"),
            ended(Outcome::Refused),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"error","message":"early"}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"hi"}}
            {"type":"turn.failed","error":{"message":"the model refused"}}
        "#]],
    );
}

#[test]
fn warnings_between_turns_wait_for_the_next() {
    let mut bodies = vec![
        bound("n1"),
        warning("before"),
        started(),
        ended(Outcome::Limit),
    ];
    bodies.push(warning("after"));
    check(
        bodies,
        expect![[r#"
        {"type":"thread.started","thread_id":"n1"}
        {"type":"turn.started"}
        {"type":"item.completed","item":{"id":"item_0","type":"error","message":"before"}}
        {"type":"turn.failed","error":{"message":"a limit was reached"}}
    "#]],
    );
}

#[test]
fn a_plan_is_a_todo_list() {
    let plan = |status| {
        Item::Plan(Plan {
            id: ItemId::new("p"),
            entries: vec![PlanEntry {
                key: None,
                text: Text::new("tests"),
                status,
                doing: None,
            }],
        })
    };
    check(
        vec![
            bound("n1"),
            started(),
            Body::ItemOpened(plan(PlanStatus::Pending)),
            Body::ItemUpdated(plan(PlanStatus::InProgress)),
            Body::ItemUpdated(plan(PlanStatus::Completed)),
            closed(Status::Ok, plan(PlanStatus::Completed)),
            ended(Outcome::Completed),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"tests","completed":false}]}}
            {"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[{"text":"tests","completed":true}]}}
            {"type":"item.completed","item":{"id":"item_0","type":"todo_list","items":[{"text":"tests","completed":true}]}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn an_answer_without_a_message_is_written() {
    let mut end = RunEnded::new(Outcome::Completed, None);
    end.answer = Some(Text::new("only here"));
    check(
        vec![bound("n1"), started(), Body::RunEnded(end)],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"only here"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_stream_that_stops_inside_a_run_is_closed() {
    check(
        vec![
            bound("n1"),
            started(),
            Body::ItemOpened(tool("t1", shell("ls"), None)),
            message("g", "a"),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"n1"}
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"t1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"a"}}
            {"type":"item.completed","item":{"id":"t1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"failed"}}
            {"type":"turn.failed","error":{"message":"the stream stopped before the run ended"}}
        "#]],
    );
}

#[test]
fn unsupported_items_are_counted() {
    let mut writer = writer(None);
    let mut out = Vec::new();
    let mut user = message("g", "hello");
    if let Body::ItemClosed(ItemClosed {
        item: Item::Message(message),
        ..
    }) = &mut user
    {
        message.role = Role::User;
    }
    for body in [bound("n1"), started(), user, ended(Outcome::Completed)] {
        writer.event(&event(1, vec![], body), &mut out);
    }
    let losses: Vec<_> = writer.losses().iter().collect();
    assert_eq!(losses, [("session detail", 1), ("user message", 1)]);
}

#[test]
fn ids_continue_over_turns() {
    check(
        vec![
            bound("t"),
            started(),
            message("a", "one"),
            ended(Outcome::Completed),
            started(),
            message("b", "two"),
            warning("odd"),
            ended(Outcome::Aborted),
        ],
        expect![[r#"
            {"type":"thread.started","thread_id":"t"}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"one"}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
            {"type":"turn.started"}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"two"}}
            {"type":"item.completed","item":{"id":"item_2","type":"error","message":"odd"}}
            {"type":"turn.failed","error":{"message":"aborted"}}
        "#]],
    );
}

#[test]
fn codex_counting_anew_is_counted_on() {
    let call = |id| closed(Status::Ok, tool(id, shell("ls"), Some("\"\"")));
    let mut writer = writer(None);
    let mut out = Vec::new();
    for id in [
        "item_0", "item_4", "item_0~2", "item_4~2", "item_9", "call_1",
    ] {
        writer.event(&event(1, vec![], call(id)), &mut out);
    }
    let out = String::from_utf8(out).unwrap();
    let ids = out.lines().filter(|it| it.contains("item.completed"));
    let ids: Vec<&str> = ids.map(|it| it.split('"').nth(9).unwrap()).collect();
    assert_eq!(
        ids,
        ["item_0", "item_4", "item_5", "item_6", "item_9", "call_1"]
    );
}

#[test]
fn an_error_that_the_agent_reports_is_an_error_line() {
    for profile in [None, Some("seed")] {
        let mut writer = writer(profile);
        let mut out = Vec::new();
        let boom = Body::NoticeRaised(Notice {
            level: Level::Error,
            code: Cow::Borrowed("error"),
            text: Text::new("boom"),
            item: None,
            detail: None,
        });
        for body in [started(), boom, ended(Outcome::Failed)] {
            writer.event(&event(1, vec![], body), &mut out);
        }
        expect![[r#"
            {"type":"thread.started","thread_id":"s1"}
            {"type":"turn.started"}
            {"type":"error","message":"boom"}
            {"type":"turn.failed","error":{"message":"failed"}}
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}

/// Two runs with their own tokens, models and cost: `thread` is read back as it was told.
#[test]
fn each_run_keeps_its_tokens_and_its_cost_when_it_is_read_back() {
    let run = |n: u64, outcome| {
        let tokens = model::Tokens {
            input: 10 * n,
            cache_read: 200 * n,
            cache_write: 3,
            output: Some(7 * n),
            reasoning: Some(0),
        };
        let error = (outcome != Outcome::Completed)
            .then(|| model::RunError::new("turn_failed", Text::new("no")));
        let mut ended = RunEnded::new(outcome, error);
        ended.usage = Some(model::Usage {
            scope: model::Scope::Run,
            basis: model::Basis::Delta,
            tokens,
            model: None,
            cost_usd: None,
            detail: None,
        });
        ended.models = vec![model::ModelUsage {
            model: Cow::Borrowed("m"),
            tokens,
            cost_usd: Some(0.25),
            context_window: Some(200_000),
        }];
        ended.session_cost_usd = Some(0.25 * n as f64);
        ended.duration_ms = Some(1000 * n);
        ended
    };
    let told = [
        run(5, Outcome::Completed),
        run(2, Outcome::Failed),
        run(1, Outcome::Completed),
    ];
    let mut writer = writer(None);
    let mut out = Vec::new();
    for ended in &told {
        writer.event(&event(1, vec![], started()), &mut out);
        let ended = Body::RunEnded(ended.clone());
        writer.event(&event(2, vec![], ended), &mut out);
    }
    let mut reader = find_reader("codex").unwrap().1(&ReaderConfig::default());
    let mut read: Vec<RunEnded<'static>> = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body {
            let mut ended = ended.clone();
            // Which code a reason gets is up to the reader.
            (ended.detail, ended.error) = (None, None);
            let json = serde_json::to_string(&ended).unwrap();
            let json: &'static str = json.leak();
            read.push(serde_json::from_str(json).unwrap());
        }
    };
    for line in String::from_utf8(out).unwrap().lines() {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    let told = told.map(|it| RunEnded { error: None, ..it });
    assert_eq!(read, told);
}
