//! What the SDK would see, event by event; ids are numbered, times and engine details left out.

mod profiles;

use std::borrow::Cow;

use expect_test::{Expect, expect};
use model::{
    Basis, Binding, Body, Cause, Channel, Compaction, Delta, Event, Item, ItemClosed, ItemId,
    Level, Message, Notice, Origin, Outcome, Part, Raw, Reasoning, Role, RunEnded, RunError, RunId,
    RunStarted, Scope, SessionBound, SessionId, Status, Subagent, Text, Timestamp, Tokens, Tool,
    ToolResult, Usage, Writer,
};

use super::OpenHands;
use crate::tools::classify;
use crate::writers::WriterConfig;

/// Plays events into a writer.
struct Script {
    writer: OpenHands,
    seq: u64,
    path: Vec<ItemId<'static>>,
    out: Vec<u8>,
}

impl Script {
    fn new(profile: &str) -> Self {
        let config = WriterConfig {
            profile: Some(profile.to_owned()),
            live: profile == "live",
            ..WriterConfig::default()
        };
        Self {
            writer: OpenHands::new(&config),
            seq: 0,
            path: Vec::new(),
            out: Vec::new(),
        }
    }

    /// A script in which a run has begun.
    fn run(profile: &str) -> Self {
        Self::new(profile).event(Body::RunStarted(RunStarted::new(Cause::Prompt)))
    }

    fn event(mut self, body: Body<'_>) -> Self {
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            at: Some(Timestamp::from_millis(self.seq as i64 * 1000)),
            session: SessionId::new("s1"),
            run: Some(RunId::new("r1")),
            engine: Cow::Borrowed("claude"),
            path: Cow::Borrowed(&self.path),
            origin: Origin::Agent,
            frame: None,
            native: None,
            why: None,
            extra: Cow::Borrowed(&[]),
            body,
        };
        self.writer.event(&event, &mut self.out);
        self
    }

    /// What follows happens inside this sub-agent.
    fn inside(mut self, call: Option<&'static str>) -> Self {
        self.path = call.map(ItemId::new).into_iter().collect();
        self
    }

    fn say(self, group: &'static str, text: &str) -> Self {
        self.message(Role::Assistant, Some(group), text)
    }

    fn message(self, role: Role, group: Option<&'static str>, text: &str) -> Self {
        self.close(
            Status::Ok,
            Item::Message(Message {
                id: ItemId::new("m"),
                role,
                group: group.map(Cow::Borrowed),
                text: Text::new(text.to_owned()),
                parts: Vec::new(),
            }),
        )
    }

    fn think(self, group: Option<&'static str>, text: &str, signature: Option<&str>) -> Self {
        self.close(
            Status::Ok,
            Item::Reasoning(Reasoning {
                id: ItemId::new("r"),
                group: group.map(Cow::Borrowed),
                text: Text::new(text.to_owned()),
                signature: signature.map(|it| Text::new(it.to_owned())),
                encrypted: None,
            }),
        )
    }

    fn call(self, group: &'static str, id: &str, name: &str, input: &str) -> Self {
        let tool = tool(Some(group), id, name, Some(input));
        self.event(Body::ItemOpened(Item::Tool(Box::new(tool))))
    }

    /// The result of a call that was opened with the same words.
    fn result(self, id: &str, name: &str, input: &str, status: Status, content: &str) -> Self {
        let mut tool = tool(Some("g"), id, name, Some(input));
        tool.result = Some(ToolResult {
            content: Raw::parse(content.to_owned()),
            is_error: status == Status::Error,
            structured: None,
            meta: None,
        });
        self.close(status, Item::Tool(Box::new(tool)))
    }

    fn close(self, status: Status, item: Item<'_>) -> Self {
        self.event(Body::ItemClosed(ItemClosed { status, item }))
    }

    fn ended(self, outcome: Outcome, error: Option<RunError<'_>>) -> Self {
        self.event(Body::RunEnded(RunEnded::new(outcome, error)))
    }

    fn check(mut self, expected: Expect) {
        self.writer.end(&mut self.out);
        expected.assert_eq(&readable(&String::from_utf8(self.out).unwrap()));
    }

    fn check_losses(mut self, expected: Expect) {
        self.writer.end(&mut self.out);
        let losses: Vec<String> = self
            .writer
            .losses
            .iter()
            .map(|it| it.0.to_owned())
            .collect();
        expected.assert_eq(&losses.join("\n"));
    }
}

fn tool<'a>(
    group: Option<&'a str>,
    id: &'a str,
    name: &'a str,
    input: Option<&'a str>,
) -> Tool<'a> {
    let input: Option<Raw<'_>> = input.map(|it| serde_json::from_str(it).unwrap());
    let class = classify(name, input.as_ref(), None);
    Tool {
        id: ItemId::new(id),
        group: group.map(Cow::Borrowed),
        name: Cow::Borrowed(name),
        input,
        class,
        server_side: false,
        result: None,
    }
}

/// Numbers the ids in the order they appear and takes out the times.
fn readable(lines: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let mut text = String::new();
    for line in lines.lines() {
        let at = line.find(",\"timestamp\":\"").unwrap();
        let line = format!("{}{}", &line[..at], &line[at + 41..]);
        let mut rest = &*line;
        while let Some(at) = rest.find(is_id_at(rest)) {
            let (before, from) = rest.split_at(at);
            let (id, after) = from.split_at(36);
            let n = ids.iter().position(|it| it == id).unwrap_or_else(|| {
                ids.push(id.to_owned());
                ids.len() - 1
            });
            text.push_str(&format!("{before}#{}", n + 1));
            rest = after;
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

/// Matches the first character of the first id in a line.
fn is_id_at(line: &str) -> impl FnMut(char) -> bool {
    let mut starts = line.char_indices().map(|(at, _)| {
        line.get(at..at + 36).is_some_and(|it| {
            let parts: Vec<usize> = it.split('-').map(str::len).collect();
            parts == [8, 4, 4, 4, 12] && it.chars().all(|it| it == '-' || it.is_ascii_hexdigit())
        })
    });
    move |_| starts.next().unwrap_or(false)
}

const LS: &str = r#"{"command":"ls"}"#;

#[test]
fn a_response_is_one_batch_with_its_thoughts_on_the_first_call() {
    Script::run("mcp")
        .think(Some("g1"), "Look.", Some("sig"))
        .say("g1", "I look \"first\".")
        .call("g1", "t1", "Bash", LS)
        .call("g1", "t2", "Read", r#"{"file_path":"/w/a"}"#)
        .result("t2", "Read", r#"{"file_path":"/w/a"}"#, Status::Ok, r#"[{"type":"text","text":"A"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"tool_reference","tool_name":"X"}]"#)
        .result("t1", "Bash", LS, Status::Error, r#""Exit code 2\nno""#)
        .say("g2", "Done.")
        .ended(Outcome::Completed, None)
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[{"type":"text","text":"I look \"first\"."}],"reasoning_content":"Look.","thinking_blocks":[{"type":"thinking","thinking":"Look.","signature":"sig"}],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ActionEvent","id":"#2","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"file_path":"/w/a"}},"tool_name":"Read","tool_call_id":"t2","tool_call":{"id":"t2","name":"Read","arguments":"{\"file_path\":\"/w/a\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ObservationEvent","id":"#3","source":"environment","tool_name":"Read","tool_call_id":"t2","action_id":"#2","observation":{"kind":"MCPToolObservation","tool_name":"Read","content":[{"type":"text","text":"A"},{"type":"image","image_urls":["data:image/png;base64,AAAA"]},{"type":"text","text":"{\"type\":\"tool_reference\",\"tool_name\":\"X\"}"}],"is_error":false}}
            {"kind":"ObservationEvent","id":"#4","source":"environment","tool_name":"Bash","tool_call_id":"t1","action_id":"#1","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"Exit code 2\nno"}],"is_error":true}}
            {"kind":"MessageEvent","id":"#5","source":"agent","llm_response_id":"g2","llm_message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}
            {"kind":"ConversationStateUpdateEvent","id":"#6","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn text_between_calls_waits_for_the_results() {
    Script::run("mcp")
        .call("g1", "t1", "Bash", LS)
        .say("g1", "And this.")
        .call("g1", "t2", "Bash", LS)
        .result("t1", "Bash", LS, Status::Ok, r#""1""#)
        .say("g1", "After a result.")
        .call("g1", "t3", "Bash", LS)
        .result("t2", "Bash", LS, Status::Ok, r#""2""#)
        .result("t3", "Bash", LS, Status::Ok, r#""3""#)
        .ended(Outcome::Completed, None)
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ActionEvent","id":"#2","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t2","tool_call":{"id":"t2","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ObservationEvent","id":"#3","source":"environment","tool_name":"Bash","tool_call_id":"t1","action_id":"#1","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"1"}],"is_error":false}}
            {"kind":"MessageEvent","id":"#4","source":"agent","llm_response_id":"g1","llm_message":{"role":"assistant","content":[{"type":"text","text":"And this.\n\nAfter a result."}]}}
            {"kind":"ActionEvent","id":"#5","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t3","tool_call":{"id":"t3","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"ObservationEvent","id":"#6","source":"environment","tool_name":"Bash","tool_call_id":"t2","action_id":"#2","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"2"}],"is_error":false}}
            {"kind":"ObservationEvent","id":"#7","source":"environment","tool_name":"Bash","tool_call_id":"t3","action_id":"#5","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"3"}],"is_error":false}}
            {"kind":"ConversationStateUpdateEvent","id":"#8","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn an_agent_without_response_ids_is_written_as_it_streams() {
    Script::run("mcp")
        .think(None, "Hm.", None)
        .message(Role::Assistant, None, "One.")
        .message(Role::Assistant, None, "Two.")
        .event(Body::ItemOpened(Item::Tool(Box::new(tool(
            None,
            "t1",
            "Bash",
            Some(LS),
        )))))
        .check(expect![[r##"
            {"kind":"MessageEvent","id":"#1","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"One."}],"reasoning_content":"Hm."}}
            {"kind":"MessageEvent","id":"#2","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"Two."}]}}
            {"kind":"ActionEvent","id":"#3","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"#3"}
            {"kind":"AgentErrorEvent","id":"#4","source":"agent","tool_name":"Bash","tool_call_id":"t1","error":"the stream ended"}
            {"kind":"ConversationErrorEvent","id":"#5","source":"environment","code":"lost","detail":"the stream ended before the run did"}
            {"kind":"ConversationStateUpdateEvent","id":"#6","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}

#[test]
fn every_end_of_a_call_has_its_event() {
    let denied = |meta: &'static str| {
        let mut tool = tool(Some("g1"), "t5", "Bash", Some(LS));
        tool.result = Some(ToolResult {
            content: Raw::of(&"No."),
            is_error: true,
            structured: None,
            meta: Some(Raw::parse(meta.to_owned())),
        });
        Item::Tool(Box::new(tool))
    };
    let cut = |id| Item::Tool(Box::new(tool(Some("g1"), id, "Bash", Some(r#""{\"comm""#))));
    let unheard = || Item::Tool(Box::new(tool(Some("g1"), "t3", "Bash", None)));
    Script::run("mcp")
        .close(Status::Cancelled, cut("t1"))
        .close(Status::Lost, cut("t2"))
        .close(Status::Error, unheard())
        .result("t4", "Bash", LS, Status::Denied, r#""""#)
        .close(
            Status::Denied,
            denied(r#"[{"id":"t5","permission_decision":{"decision":"reject","source":"hook"}}]"#),
        )
        .ended(Outcome::Completed, None)
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[],"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"comm","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"AgentErrorEvent","id":"#2","source":"agent","tool_name":"Bash","tool_call_id":"t1","error":"the call was stopped"}
            {"kind":"ActionEvent","id":"#3","source":"agent","thought":[],"tool_name":"Bash","tool_call_id":"t2","tool_call":{"id":"t2","name":"Bash","arguments":"{\"comm","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"AgentErrorEvent","id":"#4","source":"agent","tool_name":"Bash","tool_call_id":"t2","error":"nobody said how the call ended"}
            {"kind":"ActionEvent","id":"#5","source":"agent","thought":[],"tool_name":"Bash","tool_call_id":"t3","tool_call":{"id":"t3","name":"Bash","arguments":"{}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"AgentErrorEvent","id":"#6","source":"agent","tool_name":"Bash","tool_call_id":"t3","error":"the call failed"}
            {"kind":"ActionEvent","id":"#7","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t4","tool_call":{"id":"t4","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g"}
            {"kind":"UserRejectObservation","id":"#8","source":"environment","tool_name":"Bash","tool_call_id":"t4","action_id":"#7","rejection_reason":"the call was not allowed","rejection_source":"user"}
            {"kind":"ActionEvent","id":"#9","source":"agent","thought":[],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t5","tool_call":{"id":"t5","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"UserRejectObservation","id":"#10","source":"environment","tool_name":"Bash","tool_call_id":"t5","action_id":"#9","rejection_reason":"No.","rejection_source":"hook"}
            {"kind":"ConversationStateUpdateEvent","id":"#11","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn a_stream_that_stops_inside_a_run_is_closed() {
    Script::run("mcp")
        .say("g1", "Wait.")
        .call("g1", "t1", "Bash", LS)
        .say("g1", "Waiting.")
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[{"type":"text","text":"Wait."}],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t1","tool_call":{"id":"t1","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"AgentErrorEvent","id":"#2","source":"agent","tool_name":"Bash","tool_call_id":"t1","error":"the stream ended"}
            {"kind":"MessageEvent","id":"#3","source":"agent","llm_response_id":"g1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Waiting."}]}}
            {"kind":"ConversationErrorEvent","id":"#4","source":"environment","code":"lost","detail":"the stream ended before the run did"}
            {"kind":"ConversationStateUpdateEvent","id":"#5","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}

#[test]
fn runs_that_do_not_complete_end_in_an_error() {
    let error = RunError {
        code: Cow::Borrowed("error_max_turns"),
        message: Text::new("Reached maximum number of turns (2)"),
        native: None,
    };
    Script::run("mcp")
        .ended(Outcome::Limit, Some(error))
        .event(Body::RunStarted(RunStarted::new(Cause::Prompt)))
        .ended(Outcome::Aborted, None)
        .event(Body::RunStarted(RunStarted::new(Cause::WakeUp)))
        .ended(Outcome::Refused, None)
        .check(expect![[r##"
            {"kind":"ConversationErrorEvent","id":"#1","source":"environment","code":"error_max_turns","detail":"Reached maximum number of turns (2)"}
            {"kind":"ConversationStateUpdateEvent","id":"#2","source":"environment","key":"execution_status","value":"error"}
            {"kind":"ConversationStateUpdateEvent","id":"#3","source":"environment","key":"execution_status","value":"running"}
            {"kind":"InterruptEvent","id":"#4","source":"user"}
            {"kind":"ConversationErrorEvent","id":"#5","source":"environment","code":"aborted","detail":"the run was stopped"}
            {"kind":"ConversationStateUpdateEvent","id":"#6","source":"environment","key":"execution_status","value":"error"}
            {"kind":"ConversationStateUpdateEvent","id":"#7","source":"environment","key":"execution_status","value":"running"}
            {"kind":"ConversationErrorEvent","id":"#8","source":"environment","code":"refused","detail":"the model refused"}
            {"kind":"ConversationStateUpdateEvent","id":"#9","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}

#[test]
fn an_answer_without_a_message_is_written_at_the_end() {
    let ended = |answer: &'static str| {
        let mut ended = RunEnded::new(Outcome::Completed, None);
        ended.answer = Some(Text::new(answer));
        Body::RunEnded(ended)
    };
    Script::run("mcp")
        .say("g1", "Hello.\n")
        .event(ended("Hello."))
        .event(Body::RunStarted(RunStarted::new(Cause::Prompt)))
        .event(ended("{\"ok\":true}"))
        .check(expect![[r##"
            {"kind":"MessageEvent","id":"#1","source":"agent","llm_response_id":"g1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Hello.\n"}]}}
            {"kind":"ConversationStateUpdateEvent","id":"#2","source":"environment","key":"execution_status","value":"finished"}
            {"kind":"ConversationStateUpdateEvent","id":"#3","source":"environment","key":"execution_status","value":"running"}
            {"kind":"MessageEvent","id":"#4","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"{\"ok\":true}"}]}}
            {"kind":"ConversationStateUpdateEvent","id":"#5","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn numbers_grow_over_the_runs_of_a_session() {
    let usage = |scope, basis, input, output| Usage {
        scope,
        basis,
        tokens: Tokens {
            input,
            cache_read: 10,
            cache_write: 1,
            output: Some(output),
            reasoning: None,
        },
        model: None,
        cost_usd: None,
        detail: None,
    };
    let ended = |cost| {
        let mut ended = RunEnded::new(Outcome::Completed, None);
        ended.usage = Some(usage(Scope::Run, Basis::Delta, 5, 2));
        ended.session_cost_usd = Some(cost);
        Body::RunEnded(ended)
    };
    let start = || Body::RunStarted(RunStarted::new(Cause::Prompt));
    Script::run("mcp")
        .event(Body::UsageReported(usage(Scope::Call, Basis::Delta, 5, 2)))
        .event(ended(0.5))
        .event(start())
        .event(Body::UsageReported(usage(
            Scope::Session,
            Basis::Cumulative,
            20,
            9,
        )))
        .event(ended(0.75))
        .event(start())
        .event(ended(0.75))
        .check(expect![[r##"
            {"kind":"ConversationStateUpdateEvent","id":"#1","source":"environment","key":"stats","value":{"usage_to_metrics":{"claude-code":{"model_name":"default","accumulated_cost":0.5,"accumulated_token_usage":{"model":"default","prompt_tokens":5,"completion_tokens":2,"cache_read_tokens":10,"cache_write_tokens":1,"reasoning_tokens":0,"context_window":0,"per_turn_token":18,"response_id":""}}}}}
            {"kind":"ConversationStateUpdateEvent","id":"#2","source":"environment","key":"execution_status","value":"finished"}
            {"kind":"ConversationStateUpdateEvent","id":"#3","source":"environment","key":"execution_status","value":"running"}
            {"kind":"ConversationStateUpdateEvent","id":"#4","source":"environment","key":"stats","value":{"usage_to_metrics":{"claude-code":{"model_name":"default","accumulated_cost":0.75,"accumulated_token_usage":{"model":"default","prompt_tokens":20,"completion_tokens":9,"cache_read_tokens":10,"cache_write_tokens":1,"reasoning_tokens":0,"context_window":0,"per_turn_token":18,"response_id":""}}}}}
            {"kind":"ConversationStateUpdateEvent","id":"#5","source":"environment","key":"execution_status","value":"finished"}
            {"kind":"ConversationStateUpdateEvent","id":"#6","source":"environment","key":"execution_status","value":"running"}
            {"kind":"ConversationStateUpdateEvent","id":"#7","source":"environment","key":"stats","value":{"usage_to_metrics":{"claude-code":{"model_name":"default","accumulated_cost":0.75,"accumulated_token_usage":{"model":"default","prompt_tokens":25,"completion_tokens":11,"cache_read_tokens":20,"cache_write_tokens":2,"reasoning_tokens":0,"context_window":0,"per_turn_token":18,"response_id":""}}}}}
            {"kind":"ConversationStateUpdateEvent","id":"#8","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn sub_agents_speak_in_lanes_of_their_own() {
    let agent = r#"{"description":"count","prompt":"count"}"#;
    let subagent = |report: &'static str| {
        Item::Subagent(Subagent {
            id: ItemId::new("a"),
            call: ItemId::new("t1"),
            name: Cow::Borrowed("general-purpose"),
            description: None,
            prompt: None,
            background: true,
            report: Some(Text::new(report)),
            detail: None,
        })
    };
    Script::run("mcp")
        .say("g1", "I ask.")
        .call("g1", "t1", "Agent", agent)
        .inside(Some("t1"))
        .message(Role::User, None, "count")
        .say("g2", "I count.")
        .inside(None)
        .say("g3", "Meanwhile.")
        .inside(Some("t1"))
        .call("g2", "t2", "Bash", LS)
        .result("t2", "Bash", LS, Status::Ok, r#""4""#)
        .say("g4", "Four.")
        .inside(None)
        .call("g3", "t3", "Bash", LS)
        .result("t3", "Bash", LS, Status::Ok, r#""x""#)
        .result("t1", "Agent", agent, Status::Ok, r#""4""#)
        .close(Status::Ok, subagent("Four, I said."))
        .ended(Outcome::Completed, None)
        .check(expect![[r##"
            {"kind":"ActionEvent","id":"#1","source":"agent","thought":[{"type":"text","text":"I ask."}],"action":{"kind":"MCPToolAction","data":{"description":"count","prompt":"count"}},"tool_name":"Agent","tool_call_id":"t1","tool_call":{"id":"t1","name":"Agent","arguments":"{\"description\":\"count\",\"prompt\":\"count\"}","origin":"completion"},"llm_response_id":"g1"}
            {"kind":"MessageEvent","id":"#2","source":"user","sender":"t1","llm_message":{"role":"user","content":[{"type":"text","text":"count"}]}}
            {"kind":"ActionEvent","id":"#3","source":"agent","thought":[{"type":"text","text":"I count."}],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t2","tool_call":{"id":"t2","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g2"}
            {"kind":"ObservationEvent","id":"#4","source":"environment","tool_name":"Bash","tool_call_id":"t2","action_id":"#3","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"4"}],"is_error":false}}
            {"kind":"ActionEvent","id":"#5","source":"agent","thought":[{"type":"text","text":"Meanwhile."}],"action":{"kind":"MCPToolAction","data":{"command":"ls"}},"tool_name":"Bash","tool_call_id":"t3","tool_call":{"id":"t3","name":"Bash","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"g3"}
            {"kind":"ObservationEvent","id":"#6","source":"environment","tool_name":"Bash","tool_call_id":"t3","action_id":"#5","observation":{"kind":"MCPToolObservation","tool_name":"Bash","content":[{"type":"text","text":"x"}],"is_error":false}}
            {"kind":"MessageEvent","id":"#7","source":"agent","llm_response_id":"g4","sender":"t1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Four."}]}}
            {"kind":"ObservationEvent","id":"#8","source":"environment","tool_name":"Agent","tool_call_id":"t1","action_id":"#1","observation":{"kind":"MCPToolObservation","tool_name":"Agent","content":[{"type":"text","text":"4"}],"is_error":false}}
            {"kind":"MessageEvent","id":"#9","source":"agent","sender":"t1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Four, I said."}]}}
            {"kind":"ConversationStateUpdateEvent","id":"#10","source":"environment","key":"execution_status","value":"finished"}
        "##]]);
}

#[test]
fn a_session_is_introduced_once() {
    let bound = |how, model| {
        Body::SessionBound(SessionBound {
            native: SessionId::new("5c0d"),
            how,
            model: Some(Cow::Borrowed(model)),
            cwd: Some(Cow::Borrowed("/w")),
            permission_mode: Some(Cow::Borrowed("default")),
            version: None,
            tools: vec![Cow::Borrowed("Bash"), Cow::Borrowed("Read")],
            mcp_servers: Vec::new(),
            commands: Vec::new(),
        })
    };
    Script::new("mcp")
        .event(bound(Binding::Init, "opus"))
        .event(bound(Binding::Repeat, "sonnet"))
        .check(expect![[r##"
            {"kind":"SystemPromptEvent","id":"#1","source":"agent","system_prompt":{"type":"text","text":"Claude Code session 5c0d (model opus, cwd /w, tools: Bash, Read)"},"dynamic_context":{"type":"text","text":"permission mode: default"},"tools":[]}
        "##]]);
}

#[test]
fn people_hooks_and_compactions_have_their_places() {
    let hook = |event: &str| {
        let detail = format!(
            r#"{{"hook_event":"{event}","hook_name":"{event}:Bash","stdout":"out\n","stderr":"no","exit_code":2}}"#
        );
        Body::NoticeRaised(Notice {
            level: Level::Info,
            code: Cow::Borrowed("hook_response"),
            text: Text::new("hook"),
            item: None,
            detail: Some(Raw::parse(detail)),
        })
    };
    Script::run("mcp")
        .close(
            Status::Ok,
            Item::Message(Message {
                id: ItemId::new("u"),
                role: Role::User,
                group: None,
                text: Text::new("Look:"),
                parts: vec![
                    Part::Image {
                        media_type: Cow::Borrowed("image/png"),
                        data: Text::new("AAAA"),
                    },
                    Part::ImageUrl {
                        url: Text::new("https://example.org/a.png"),
                    },
                ],
            }),
        )
        .message(Role::Harness, None, "Go on.")
        .event(hook("PreToolUse"))
        .event(hook("Notification"))
        .close(
            Status::Ok,
            Item::Compaction(Compaction {
                id: ItemId::new("c"),
                trigger: None,
                summary: Some(Text::new("So far.")),
                tokens_before: None,
                tokens_after: None,
                detail: None,
            }),
        )
        .check(expect![[r##"
            {"kind":"MessageEvent","id":"#1","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image","image_urls":["data:image/png;base64,AAAA"]},{"type":"image","image_urls":["https://example.org/a.png"]}]}}
            {"kind":"MessageEvent","id":"#2","source":"environment","llm_message":{"role":"user","content":[{"type":"text","text":"Go on."}]}}
            {"kind":"HookExecutionEvent","id":"#3","source":"hook","hook_event_type":"PreToolUse","hook_command":"PreToolUse:Bash","tool_name":"Bash","success":false,"blocked":true,"exit_code":2,"stdout":"out\n","stderr":"no"}
            {"kind":"Condensation","id":"#4","source":"environment","forgotten_event_ids":[],"summary":"So far.","llm_response_id":"#4"}
            {"kind":"ConversationErrorEvent","id":"#5","source":"environment","code":"lost","detail":"the stream ended before the run did"}
            {"kind":"ConversationStateUpdateEvent","id":"#6","source":"environment","key":"execution_status","value":"error"}
        "##]]);
}

#[test]
fn deltas_are_written_for_live_clients_only() {
    let open = |item| Body::ItemOpened(item);
    let delta = |item: &'static str, text: &'static str| {
        Body::ItemDelta(Delta {
            item: ItemId::new(item),
            channel: Channel::Text,
            text: Text::new(text),
        })
    };
    let script = |profile| {
        Script::run(profile)
            .event(open(Item::Reasoning(Reasoning {
                id: ItemId::new("r"),
                group: Some(Cow::Borrowed("g1")),
                text: Text::EMPTY,
                signature: None,
                encrypted: None,
            })))
            .event(delta("r", "Hm."))
            .think(Some("g1"), "Hm.", None)
            .event(open(Item::Message(Message {
                id: ItemId::new("m"),
                role: Role::Assistant,
                group: Some(Cow::Borrowed("g1")),
                text: Text::EMPTY,
                parts: Vec::new(),
            })))
            .event(delta("m", "Hel"))
            .event(delta("m", "lo"))
            .say("g1", "Hello")
            .ended(Outcome::Completed, None)
    };
    script("live").check(expect![[r##"
        {"kind":"StreamingDeltaEvent","id":"#1","source":"agent","reasoning_content":"Hm."}
        {"kind":"StreamingDeltaEvent","id":"#2","source":"agent","content":"Hel"}
        {"kind":"StreamingDeltaEvent","id":"#3","source":"agent","content":"lo"}
        {"kind":"MessageEvent","id":"#4","source":"agent","llm_response_id":"g1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Hello"}],"reasoning_content":"Hm."}}
        {"kind":"ConversationStateUpdateEvent","id":"#5","source":"environment","key":"execution_status","value":"finished"}
    "##]]);
    script("mcp").check(expect![[r##"
        {"kind":"MessageEvent","id":"#1","source":"agent","llm_response_id":"g1","llm_message":{"role":"assistant","content":[{"type":"text","text":"Hello"}],"reasoning_content":"Hm."}}
        {"kind":"ConversationStateUpdateEvent","id":"#2","source":"environment","key":"execution_status","value":"finished"}
    "##]]);
}
