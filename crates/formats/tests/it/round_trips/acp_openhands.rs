//! Reading back what was written: the same items, texts, tool calls and ends, as far as the target
//! can say them. Every comparison names what is left out of it; anything else that is lost fails.

use std::collections::BTreeMap;

use formats::registry::FORMATS;
use model::{Body, Event, Item, Role, Status};
use serde_json::{Value, json};

use crate::fixtures::{Recording, convert, recordings};

/// What a stream tells, in a form that two formats can be compared by.
#[derive(Debug, Default, PartialEq)]
struct Story {
    runs: Vec<Run>,
}

#[derive(Debug, Default, PartialEq)]
struct Run {
    /// In the order in which they ended.
    texts: Vec<Spoken>,
    /// By the id of the call.
    tools: BTreeMap<String, Value>,
    others: Vec<Value>,
    plan: Option<Value>,
    end: Value,
}

#[derive(Clone, Debug, PartialEq)]
struct Spoken {
    /// The sub-agent, the voice.
    by: (Option<String>, String),
    text: String,
    more: Value,
}

/// Tells the story of canonical events.
fn story(events: &str) -> Story {
    let mut story = Story::default();
    for line in events.lines() {
        let event = Event::from_json(line).unwrap();
        let path = event.path.last().map(|it| it.as_str().to_owned());
        match &event.body {
            Body::RunStarted(_) => story.runs.push(Run::default()),
            Body::ItemClosed(closed) => {
                let run = story.runs.last_mut().unwrap();
                run.closed(path, &closed.item, closed.status);
            }
            Body::RunEnded(ended) => {
                let run = story.runs.last_mut().unwrap();
                let error = ended.error.as_ref();
                run.end = json!({
                    "outcome": ended.outcome,
                    "answer": ended.answer.as_ref().map(|it| it.to_string()),
                    "code": error.map(|it| it.code.to_string()),
                    "message": error.map(|it| it.message.to_string()),
                    "cost": ended.session_cost_usd,
                });
            }
            Body::SessionBound(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }
    story
}

impl Run {
    fn closed(&mut self, path: Option<String>, item: &Item<'_>, status: Status) {
        match item {
            Item::Message(it) => {
                let voice = match it.role {
                    Role::User => "user",
                    Role::Assistant => "assistant",
                    Role::Harness => "harness",
                };
                self.texts.push(Spoken {
                    by: (path, voice.to_owned()),
                    text: it.text.to_string(),
                    more: json!({ "parts": it.parts }),
                });
            }
            Item::Reasoning(it) => self.texts.push(Spoken {
                by: (path, "reasoning".to_owned()),
                text: it.text.to_string(),
                more: json!({
                    "signature": it.signature.as_ref().map(|it| it.to_string()),
                    "encrypted": it.encrypted.as_ref().map(|it| it.to_string()),
                }),
            }),
            Item::Tool(it) => {
                let mut class = serde_json::to_value(&it.class).unwrap();
                class.as_object_mut().unwrap().remove("exit_code");
                class.as_object_mut().unwrap().remove("change");
                let tool = json!({
                    "path": path,
                    "name": it.name,
                    "input": it.input,
                    "class": class,
                    "status": status,
                    "content": it.result.as_ref().map(|it| &it.content),
                    "is_error": it.result.as_ref().map(|it| it.is_error),
                    "structured": it.result.as_ref().map(|it| &it.structured),
                });
                self.tools.insert(it.id.as_str().to_owned(), tool);
            }
            Item::Plan(it) => self.plan = Some(json!(it.entries)),
            Item::Subagent(it) => self.others.push(json!({ "subagent": it.call })),
            Item::Compaction(it) => {
                let summary = it.summary.as_ref().map(|it| it.to_string());
                self.others
                    .push(json!({ "compaction": summary, "status": status }));
            }
            Item::Other(it) => self.others.push(json!({ "other": it.name })),
        }
    }

    /// All that each voice has said, without what only separates one text from another.
    fn said(&self) -> BTreeMap<String, String> {
        let mut said: BTreeMap<String, String> = BTreeMap::new();
        for it in &self.texts {
            let letters = it.text.chars().filter(|it| !it.is_whitespace());
            let by = format!("{:?}", it.by);
            said.entry(by).or_default().extend(letters);
        }
        said.retain(|_, text| !text.is_empty());
        let answer = self.end["answer"].as_str().unwrap_or_default();
        // An answer that nobody said is told as a message.
        said.entry(r#"(None, "assistant")"#.to_owned())
            .or_insert_with(|| answer.chars().filter(|it| !it.is_whitespace()).collect());
        said
    }

    /// The letters that were said by anybody, sorted: nothing is missing, nothing is there twice.
    fn letters(&self) -> String {
        let said = self.said();
        let mut letters: Vec<char> = said.values().flat_map(|it| it.chars()).collect();
        letters.sort_unstable();
        letters.into_iter().collect()
    }
}

/// The events of a recording, and those that come back through a target.
fn there_and_back(
    from: &str,
    to: &str,
    profile: Option<&str>,
    recording: &Recording,
) -> (Story, Story) {
    let (bytes, end) = (&recording.bytes, &recording.end);
    let before = convert(from, "linkspan", None, bytes, end);
    let written = convert("linkspan", to, profile, before.as_bytes(), end);
    let after = convert(to, "linkspan", None, written.as_bytes(), end);
    (story(&before), story(&after))
}

/// Recordings of every format that is read, apart from our own.
fn all_recordings() -> Vec<(&'static str, Recording)> {
    let readers = FORMATS.iter().filter(|it| it.reader.is_some());
    let readers = readers.map(|it| it.name).filter(|it| *it != "linkspan");
    readers
        .flat_map(|from| recordings(from).into_iter().map(move |it| (from, it)))
        .collect()
}

/// Compares every recording after a trip, and says where it first differs.
fn check(
    to: &str,
    profile: Option<&str>,
    sayable: impl Fn(&str, &Story) -> Value,
    is_left_out: impl Fn(&str, &str) -> bool,
) {
    let mut failures = Vec::new();
    let mut n = 0;
    for (from, recording) in all_recordings() {
        if is_left_out(from, &recording.name) {
            continue;
        }
        n += 1;
        let (before, after) = there_and_back(from, to, profile, &recording);
        let name = &recording.name;
        let (before, after) = (sayable(name, &before), sayable(name, &after));
        if before != after {
            failures.push(format!(
                "{from}/{name}: {}",
                first_difference("", &before, &after)
            ));
        }
    }
    assert!(n > 50, "only {n} recordings were compared");
    let n = failures.len();
    assert!(failures.is_empty(), "{n} differ\n{}", failures.join("\n"));
}

fn first_difference(at: &str, before: &Value, after: &Value) -> String {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|it| !a.contains_key(*it)));
            for key in keys {
                let (a, b) = (a.get(key), b.get(key));
                if a != b {
                    let at = format!("{at}.{key}");
                    let null = &Value::Null;
                    return first_difference(&at, a.unwrap_or(null), b.unwrap_or(null));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let n = a.len().max(b.len());
            for i in 0..n {
                if a.get(i) != b.get(i) {
                    let at = format!("{at}[{i}]");
                    let null = &Value::Null;
                    return first_difference(
                        &at,
                        a.get(i).unwrap_or(null),
                        b.get(i).unwrap_or(null),
                    );
                }
            }
        }
        _ => (),
    }
    format!("{at}\n  before {before}\n  after  {after}")
}

/// What OpenHands has no place for:
/// - where one text ends and the next begins within a response, and text between two calls of one
///   response, which is told after their results;
/// - which sub-agent made a call; that there are sub-agents at all; plans; asks;
/// - structured results, and which block of a result was neither text nor picture;
/// - pictures in what the model says;
/// - the title of a call, which is made again from its name and input;
/// - an answer that differs from the last words;
/// - no input apart from an empty one;
/// - that a call was stopped or lost, if it has a result: it is an error then;
/// - a denial without a reason: it is given one.
fn sayable_by_openhands(name: &str, story: &Story) -> Value {
    // Here a sub-agent says something before it calls a tool, and the call has no sender.
    let is_mixed = name.starts_with("subagent_forward_text") || name == "made_subagent";
    let runs = story.runs.iter().map(|run| {
        let tools: BTreeMap<&String, Value> = (run.tools.iter())
            .map(|(id, tool)| {
                let mut content = flat(&tool["content"]);
                if tool["status"] == "denied" && content.is_empty() {
                    content.push_str("the call was not allowed");
                }
                let has_result = !tool["content"].is_null();
                let status = match tool["status"].as_str() {
                    Some("cancelled" | "lost") if has_result => "error",
                    status => status.unwrap(),
                };
                let tool = json!({
                    "name": tool["name"],
                    "input": Some(&tool["input"]).filter(|it| **it != json!({})),
                    "kind": tool["class"]["kind"],
                    "status": status,
                    "content": content,
                });
                (id, tool)
            })
            .collect();
        let others: Vec<&Value> = (run.others.iter())
            .filter(|it| it.get("compaction").is_some() && it["status"] == "ok")
            .collect();
        json!({
            "said": if is_mixed { json!(run.letters()) } else { json!(run.said()) },
            "tools": tools,
            "others": others,
            "end": end(&run.end),
        })
    });
    runs.collect()
}

/// Pictures and links; a citation, say, has no place.
fn shown(parts: &Value) -> Vec<&Value> {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter(|it| it.get("other").is_none()).collect()
}

/// How a run ended. One that has no word for why is called by its outcome, in words of the target.
fn end(end: &Value) -> Value {
    let outcome = &end["outcome"];
    let has_code = !end["code"].is_null() || outcome == "completed";
    let code = &end[if has_code { "code" } else { "outcome" }];
    let message = Some(&end["message"]).filter(|_| code != outcome);
    json!([outcome, code, message])
}

/// The text of a result's content.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => block(text),
        Value::Array(blocks) => {
            let text = |it: &Value| match it["text"].as_str() {
                Some(text) => block(text),
                None if it["type"] == "image" => format!("<{}>", it["source"]["data"]),
                None => it.to_string(),
            };
            blocks.iter().map(text).collect()
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A text, or a block that had to become one.
fn block(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("type").is_some() => value.to_string(),
        _ => text.to_owned(),
    }
}

/// OpenHands tells a call once, at its begin, and its meaning only by its name and input.
fn is_emitted_late(from: &str, name: &str) -> bool {
    // Says only at its end whom it started.
    (from, name) == ("codex", "subagent") || is_hosted(from, name)
}

/// Calls that the model's provider runs say what they are about as they go on, each in its own way.
fn is_hosted(from: &str, name: &str) -> bool {
    let hosted = [
        "recorded-openai-apply-patch-tool.1",
        "recorded-openai-file-search-tool.1",
        "recorded-openai-web-search-tool.1",
    ];
    from == "openresponses" && hosted.contains(&name)
}

#[test]
fn openhands_comes_back() {
    check("openhands", None, sayable_by_openhands, is_emitted_late);
}

#[test]
fn openhands_external_comes_back() {
    check(
        "openhands",
        Some("external"),
        sayable_by_openhands,
        is_emitted_late,
    );
}

#[test]
fn openhands_native_comes_back() {
    check(
        "openhands",
        Some("native"),
        sayable_by_openhands,
        is_emitted_late,
    );
}

/// What ACP has no place for:
/// - what the agent program tells its model, what a sub-agent is told, thinking that is hidden, and
///   signatures of thinking;
/// - items of other kinds, and content that is neither text, picture nor link;
/// - of a plan, the words for an entry that is not being done; here only how many there are;
/// - why a call was allowed;
/// - a structured result that only repeats the text;
/// - an answer that differs from the last words; one that nobody said is a message;
/// - in what words a run was stopped;
/// - no result apart from an empty one, and a file that is new apart from one that is changed.
fn sayable_by_acp(_: &str, story: &Story) -> Value {
    let runs = story.runs.iter().map(|run| {
        let is_told = |it: &&Spoken| match &*it.by.1 {
            "harness" => false,
            "user" => it.by.0.is_none(),
            _ => !it.text.trim().is_empty(),
        };
        let mut texts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for it in run.texts.iter().filter(is_told) {
            let by = format!("{:?}", it.by);
            texts
                .entry(by)
                .or_default()
                .push(json!([it.text, shown(&it.more["parts"])]));
        }
        let others: Vec<&Value> = (run.others.iter())
            .filter(|it| it.get("compaction").is_some())
            .collect();
        let said = texts
            .entry(r#"(None, "assistant")"#.to_owned())
            .or_default();
        if let (true, Some(answer)) = (said.is_empty(), run.end["answer"].as_str()) {
            said.push(json!([answer, []]));
        }
        let plan = run.plan.as_ref().map(|it| it.as_array().unwrap().len());
        let mut tools = run.tools.clone();
        for tool in tools.values_mut() {
            if tool["structured"] == tool["content"] {
                tool["structured"] = Value::Null;
            }
            if tool["content"].is_null() && tool["status"] == "ok" {
                (tool["content"], tool["is_error"]) = (json!(""), json!(false));
            }
            if tool["class"]["kind"] == "write" {
                tool["class"]["kind"] = json!("edit");
            }
        }
        json!({
            "texts": texts,
            "tools": tools,
            "others": others,
            "plan": plan,
            "end": end(&run.end),
        })
    });
    runs.collect()
}

#[test]
fn acp_comes_back() {
    // The input that a permission changed is the input of the call afterwards.
    let changed = [
        "control_ask_user_question.duplex",
        "control_permissions.duplex",
    ];
    // A question about a call that nobody made: in ACP there is always a call.
    let about_nothing = ["client-verdict.interrupt", "proto.interrupt"];
    check("acp", None, sayable_by_acp, |from, name| {
        changed.contains(&name) || about_nothing.contains(&name) || is_hosted(from, name)
    });
}

/// The cards of OpenHands' ACP shape have no name of the tool, and the text of a run is one message.
fn sayable_by_openhands_cards(_: &str, story: &Story) -> Value {
    let runs = story.runs.iter().map(|run| {
        let tools: BTreeMap<&String, Value> = (run.tools.iter())
            .map(|(id, tool)| {
                let is_ok = tool["status"] == "ok";
                (id, json!([tool["input"], is_ok, tool["class"]["title"]]))
            })
            .collect();
        let end = end(&run.end);
        json!({ "tools": tools, "letters": run.letters(), "end": end })
    });
    runs.collect()
}

#[test]
fn openhands_acp_comes_back() {
    check(
        "openhands",
        Some("acp"),
        sayable_by_openhands_cards,
        |_, _| false,
    );
}

#[test]
fn a_line_that_is_missing_is_noticed() {
    let recording = recordings("claude")
        .into_iter()
        .find(|it| it.name == "multi_tool");
    let recording = recording.unwrap();
    let end = &recording.end;
    let before = convert("claude", "linkspan", None, &recording.bytes, end);
    for (to, sayable) in [
        ("acp", sayable_by_acp as fn(&str, &Story) -> Value),
        ("openhands", sayable_by_openhands),
    ] {
        let written = convert("linkspan", to, None, before.as_bytes(), end);
        let lines: Vec<&str> = written.split_inclusive('\n').collect();
        let is_noticed = |at: usize| {
            let rest = [&lines[..at], &lines[at + 1..]].concat().concat();
            let after = convert(to, "linkspan", None, rest.as_bytes(), end);
            sayable("", &story(&before)) != sayable("", &story(&after))
        };
        let n_noticed = (0..lines.len()).filter(|at| is_noticed(*at)).count();
        // The introduction, the costs and a status that repeats what is known may be missed.
        assert!(
            n_noticed + 5 >= lines.len(),
            "{to}: {n_noticed} of {}",
            lines.len()
        );
    }
}
