//! Reading back what was written gives the same: items, texts, tool calls, ends.
//!
//! One function per format. Each compares what its format can say, and says what it cannot.

use std::fmt::Write as _;

use formats::ReaderConfig;
use formats::framing::Framer;
use formats::registry::find_reader;
use model::{
    Body, End, Event, Item, ItemId, Outcome, PlanStatus, Raw, Role, Status, Tokens, Tool, ToolKind,
};
use serde_json::Value;

use crate::fixtures::{Recording, convert, recordings};

/// ThreadEvents cannot say, and so this does not compare:
///
/// - what the user and the program itself say, asks, compactions, items of no known type;
/// - where one text of a response ends and the next begins, and which of them a sub-agent said;
/// - what a tool is, unless it is a command, a change of files, an MCP tool, a web search or an
///   agent: others are commands that are called like the tool, and their input is gone;
/// - the diff of a change, and what was found by a search or went wrong with it;
/// - why a call did not end well, other than that a command was declined; pictures in a result;
/// - the calls that change a to-do list, and which of its entries is being done;
/// - which message is the answer, unless it is the last one;
/// - why a run did not complete, other than in words; denials;
/// - warnings: they are told, but when and as what is up to the writer.
#[test]
fn thread() {
    let mut n_lines = 0;
    let mut failures = Vec::new();
    for (from, recording) in ["claude", "codex"]
        .into_iter()
        .flat_map(|from| recordings(from).into_iter().map(move |it| (from, it)))
    {
        let written = convert(from, "thread", None, &recording.bytes, &recording.end);
        let before = Story::read(from, &recording.bytes, &recording.end);
        let after = Story::read("codex", written.as_bytes(), &End::default());
        n_lines += before.lines.len();
        if let Some(why) = before.differs(&after) {
            failures.push(format!("{from}/{}: {why}", recording.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_lines > 400, "only {n_lines} lines were compared");
}

/// The comparison above has to notice what is missing.
#[test]
fn a_thread_without_one_of_its_lines_is_another() {
    let find = |name: &str| -> Recording {
        let all = recordings("claude").into_iter();
        all.into_iter().find(|it| it.name == name).unwrap()
    };
    let mut n_dropped = 0;
    for name in ["multi_tool.partial", "task_tools", "mcp_tool"] {
        let recording = find(name);
        let written = convert("claude", "thread", None, &recording.bytes, &recording.end);
        let before = Story::read("claude", &recording.bytes, &recording.end);
        let lines: Vec<&str> = written.lines().collect();
        for at in 0..lines.len() {
            // A start says nothing that the end of the item does not say.
            let is_compared = lines[at].contains("\"item.completed\"")
                || lines[at].contains("\"turn.completed\"")
                || lines[at].contains("\"thread.started\"");
            if !is_compared || lines[at].contains("\"todo_list\"") {
                continue;
            }
            let rest = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            let after = Story::read("codex", rest.as_bytes(), &End::default());
            assert!(before.differs(&after).is_some(), "{name}: {}", lines[at]);
            n_dropped += 1;
        }
    }
    assert!(n_dropped > 10, "only {n_dropped} lines were dropped");
}

/// What a stream says, one line for each thing.
#[derive(Debug, Default)]
struct Story {
    lines: Vec<Line>,
    session: Option<String>,
    /// What each run used, and what the session had cost by then.
    used: Vec<(Option<Tokens>, Option<f64>)>,
    /// The last words of the main agent in this run.
    last_words: Option<String>,
    /// Calls that are open, and sub-agents that a call speaks for.
    calls: Vec<ItemId<'static>>,
    shown: Vec<ItemId<'static>>,
}

#[derive(Debug)]
struct Line {
    words: String,
    /// What came of it, where that can be compared.
    result: Option<String>,
}

impl Story {
    fn read(from: &str, bytes: &[u8], end: &End) -> Self {
        let (format, reader) = find_reader(from).unwrap();
        let mut reader = reader(&ReaderConfig::default());
        let mut framer = Framer::new(format.framing);
        let mut story = Self::default();
        let mut sink = |event: &Event<'_>| story.event(event);
        framer.push(bytes, &mut |frame| reader.frame(frame, &mut sink));
        framer.end(&mut |frame| reader.frame(frame, &mut sink));
        reader.end(end, &mut sink);
        story
    }

    fn event(&mut self, event: &Event<'_>) {
        match &event.body {
            Body::SessionBound(bound) => self.session = Some(bound.native.as_str().to_owned()),
            Body::RunStarted(_) => self.last_words = None,
            Body::ItemOpened(Item::Tool(tool)) => self.calls.push(tool.id.clone().into_owned()),
            Body::ItemOpened(Item::Subagent(agent)) if self.calls.contains(&agent.call) => {
                self.shown.push(agent.id.clone().into_owned());
            }
            Body::ItemClosed(closed) => {
                self.calls.retain(|it| it != closed.item.id());
                self.closed(&closed.item, closed.status);
                if let (Item::Message(it), []) = (&closed.item, &*event.path)
                    && it.role == Role::Assistant
                    && !it.text.is_empty()
                {
                    self.last_words = Some(it.text.to_string());
                }
            }
            Body::RunEnded(ended) => {
                let answer = ended.answer.as_ref().filter(|it| !it.is_blank());
                let answer = answer.map(ToString::to_string);
                // An answer that was in no message becomes one.
                if let (Outcome::Completed, None, Some(answer)) =
                    (ended.outcome, &self.last_words, &answer)
                {
                    self.say(format!("says {answer}"), None);
                    self.last_words = Some(answer.clone());
                }
                let end = match (ended.outcome, &ended.error) {
                    (Outcome::Completed, _) => "completed".to_owned(),
                    (Outcome::Aborted, _) => "failed: aborted".to_owned(),
                    (_, Some(error)) => format!("failed: {}", error.message),
                    (_, None) => "failed".to_owned(),
                };
                let is_last = answer == self.last_words;
                self.say(end, answer.filter(|_| is_last));
                let tokens = ended.usage.as_ref().map(|it| it.tokens);
                self.used.push((tokens, ended.session_cost_usd));
            }
            _ => (),
        }
    }

    fn closed(&mut self, item: &Item<'_>, status: Status) {
        match item {
            Item::Message(it) if it.role == Role::Assistant && !it.text.is_empty() => {
                let text = it.text.to_str();
                match self.lines.last_mut() {
                    Some(line) if line.words.starts_with("says ") => line.words.push_str(&text),
                    _ => self.say(format!("says {text}"), None),
                }
            }
            Item::Reasoning(it) if !it.text.is_empty() => {
                self.say(format!("thinks {}", it.text), None);
            }
            Item::Plan(plan) => {
                let mut words = "plans".to_owned();
                for entry in &plan.entries {
                    let is_done = entry.status == PlanStatus::Completed;
                    write!(words, " {}={is_done}", entry.text).unwrap();
                }
                self.say(words, None);
            }
            Item::Tool(tool) => self.called(tool, status),
            // An agent that outlives its call is waited for.
            Item::Subagent(it) if it.background || !self.shown.contains(&it.id) => {
                let report = it
                    .report
                    .as_ref()
                    .map(|it| capped(it.to_str().into_owned()));
                self.say(format!("waits ok={}", status == Status::Ok), report);
            }
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn called(&mut self, tool: &Tool<'_>, status: Status) {
        let class = &tool.class;
        let ok = status == Status::Ok;
        let result = tool.result.as_ref().and_then(|it| text(&it.content));
        let result = result.map(|it| match &*tool.name {
            "command_execution" => it,
            _ => capped(it),
        });
        let (words, result) = match class.kind {
            ToolKind::Todo => return,
            ToolKind::Task if tool.name == "wait" => (format!("waits ok={ok}"), result),
            ToolKind::Task => (format!("agent {} ok={ok}", prompt(tool)), result),
            ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move
                if !class.paths.is_empty() =>
            {
                let paths: Vec<_> = class.paths.iter().map(|it| it.path.to_str()).collect();
                (format!("changes {} ok={ok}", paths.join(", ")), None)
            }
            ToolKind::Mcp if class.mcp.is_some() => {
                let input = tool.input.as_ref().map_or("null", Raw::get);
                let input: Value = serde_json::from_str(input).unwrap();
                (format!("{:?} {input} ok={ok}", class.mcp), result)
            }
            ToolKind::WebSearch if class.query.is_some() => {
                let query = class.query.as_ref().unwrap();
                (format!("searches {query}"), None)
            }
            _ => {
                let command = class
                    .command
                    .as_ref()
                    .filter(|_| class.kind == ToolKind::Shell);
                let command = command.map_or(tool.name.clone(), |it| it.to_str());
                let is_denied = status == Status::Denied;
                let words = format!("runs {command} ok={ok} denied={is_denied}");
                (words, result)
            }
        };
        self.say(words, result);
    }

    fn say(&mut self, words: String, result: Option<String>) {
        self.lines.push(Line { words, result });
    }

    /// What the other story says differently.
    fn differs(&self, after: &Self) -> Option<String> {
        for at in 0..self.lines.len().max(after.lines.len()) {
            let (Some(a), Some(b)) = (self.lines.get(at), after.lines.get(at)) else {
                let (a, b) = (self.lines.get(at), after.lines.get(at));
                return Some(format!("line {at}: {a:?} and {b:?}"));
            };
            let is_same = a.words == b.words && (a.result.is_none() || a.result == b.result);
            if !is_same {
                return Some(format!("line {at}:\n  {a:?}\n  {b:?}"));
            }
        }
        if self.session.is_some() && self.session != after.session {
            return Some(format!("{:?} and {:?}", self.session, after.session));
        }
        let known = |it: Tokens| Tokens {
            output: it.output.or(Some(0)),
            reasoning: it.reasoning.or(Some(0)),
            ..it
        };
        for ((a, cost), (b, cost_after)) in self.used.iter().zip(&after.used) {
            let (a, b) = (a.map(known), b.map(known));
            if (a.is_some() && a != b) || cost != cost_after {
                return Some(format!("{a:?} {cost:?} and {b:?} {cost_after:?}"));
            }
        }
        None
    }
}

/// What an agent is asked to do.
fn prompt(tool: &Tool<'_>) -> String {
    let input = tool.input.as_ref().map_or("null", Raw::get);
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    input["prompt"].as_str().unwrap_or_default().to_owned()
}

/// The words of a result, unless there is more in it than words.
fn text(content: &Raw<'_>) -> Option<String> {
    match serde_json::from_str(content.get()).ok()? {
        Value::String(text) => Some(text),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|it| match it["type"] == "text" {
                true => it["text"].as_str().map(str::to_owned),
                false => None,
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}

/// The thread writer's limit.
fn capped(text: String) -> String {
    const MAX: usize = 64 * 1024;
    if text.len() <= MAX {
        return text;
    }
    let head = &text[..text.floor_char_boundary(MAX)];
    format!("{head}… [{} bytes]", text.len())
}
