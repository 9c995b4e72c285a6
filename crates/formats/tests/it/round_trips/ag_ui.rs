//! AG-UI, from every Claude recording.

use std::collections::BTreeMap;

use model::End;
use serde_json::{Value, json};

use crate::fixtures::{convert, recordings};

/// What happened, apart for each run, kind of thing and sub-agent, in the order it began.
type Story = BTreeMap<String, Vec<Value>>;

/// What AG-UI has no place for; everything else is compared.
const UNSAID: &[(&str, &[&str])] = &[
    // A message or thought is known by its words: the model response it belongs to is not told.
    ("message", &["group", "status"]),
    ("reasoning", &["group", "status"]),
    // The structured form of a result, and what only that form tells, is counted as lost.
    (
        "tool",
        &[
            "group",
            "structured",
            "meta",
            "change",
            "diffs",
            "exit_code",
        ],
    ),
    ("subagent", &["id", "prompt", "background", "detail"]),
    ("compaction", &["id", "detail"]),
    ("plan", &["key", "status"]),
    ("other", &["id"]),
    ("ask", &[]),
    ("settled", &[]),
    ("notice", &["item"]),
    ("unmapped", &["what"]),
    ("session", &["how"]),
    // The costs of single models, denied calls (each has a result that says so), and the agent's own last frame.
    (
        "run",
        &[
            "denials",
            "detail",
            "cost_usd",
            "context_window",
            "usage",
            "scope",
        ],
    ),
];

/// The answer is the last message; here another one was meant.
const OTHER_ANSWER: &[&str] = &["odd_lines"];

fn without(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !keys.contains(&&**key));
            map.values_mut().for_each(|it| without(it, keys));
        }
        Value::Array(list) => list.iter_mut().for_each(|it| without(it, keys)),
        _ => (),
    }
}

fn story(events: &str) -> Story {
    let mut story = Story::new();
    let mut run = 0;
    let mut began: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut streamed: BTreeMap<String, String> = BTreeMap::new();
    let mut session = Value::Null;
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let path = event["path"].as_array().map_or(String::new(), |path| {
            path.iter()
                .map(|it| format!("/{}", it.as_str().unwrap()))
                .collect()
        });
        let data = &event["data"];
        let tell = |story: &mut Story, kind: &str, value: Value| {
            let key = format!("run {run}{path} {kind}");
            let mut value = value;
            let keys = UNSAID.iter().find(|it| it.0 == kind).unwrap().1;
            if kind == "tool" || kind == "other" || kind == "unmapped" {
                // Inputs, results and payloads are nobody's fields.
                shallow(&mut value, keys);
            } else {
                without(&mut value, keys);
            }
            let list = story.entry(key.clone()).or_default();
            list.push(value);
            (key, list.len() - 1)
        };
        match event["type"].as_str().unwrap() {
            "run.started" => run += 1,
            "session.bound" => session = data.clone(),
            "run.ended" => {
                // Without a session of its own, a run has the name that linkspan gave it.
                if !session.is_null() && session["native"] != "s1" {
                    tell(&mut story, "session", session.clone());
                }
                tell(&mut story, "run", ended(data));
            }
            "item.opened" => {
                let id = data["id"].as_str().unwrap().to_owned();
                let place = tell(&mut story, data["kind"].as_str().unwrap(), Value::Null);
                began.insert(id, place);
            }
            "item.delta" if data["channel"] == "input" => {
                let id = data["item"].as_str().unwrap().to_owned();
                let text = data["text"].as_str().unwrap();
                streamed.entry(id).or_default().push_str(text);
            }
            "item.closed" => {
                let kind = data["item"]["kind"].as_str().unwrap();
                let id = data["item"]["id"].as_str().unwrap();
                let (key, at) = began.remove(id).unwrap();
                let mut value = closed(kind, data);
                // Arguments that were streamed cannot be changed any more: Claude adds defaults.
                let args = streamed.remove(id);
                if let Some(input) = args.and_then(|it| serde_json::from_str(&it).ok()) {
                    value["input"] = input;
                }
                let keys = UNSAID.iter().find(|it| it.0 == kind).unwrap().1;
                if kind == "tool" || kind == "other" {
                    shallow(&mut value, keys);
                } else {
                    without(&mut value, keys);
                }
                story.get_mut(&key).unwrap()[at] = value;
            }
            "ask.opened" => {
                tell(&mut story, "ask", data.clone());
            }
            "ask.settled" => {
                tell(&mut story, "settled", data.clone());
            }
            "notice.raised" if data["level"] != "debug" && run > 0 && event["run"].is_string() => {
                tell(&mut story, "notice", data.clone());
            }
            "frame.unmapped" if event["run"].is_string() => {
                tell(&mut story, "unmapped", data.clone());
            }
            _ => (),
        }
    }
    for list in story.values_mut() {
        list.retain(|it| !is_silent(it));
    }
    story.retain(|_, list| !list.is_empty());
    story
}

/// Takes keys away at the top, and in the result and the class of a call.
fn shallow(value: &mut Value, keys: &[&str]) {
    let Value::Object(map) = value else { return };
    map.retain(|key, _| !keys.contains(&&**key));
    for inner in ["result", "class"] {
        if let Some(Value::Object(map)) = map.get_mut(inner) {
            map.retain(|key, _| !keys.contains(&&**key));
        }
    }
}

fn closed(kind: &str, data: &Value) -> Value {
    let mut item = data["item"].clone();
    let status = data["status"].clone();
    let map = item.as_object_mut().unwrap();
    if map.get("name").is_some_and(|it| it == "unknown") {
        map.remove("class"); // What nobody named has a made up title.
    }
    if kind == "tool" {
        // Without a result nothing says how a call ended.
        if let Some(result) = map.get_mut("result") {
            let is_ok = status == "ok";
            result["content"] = text_of(&result["content"]);
            result
                .as_object_mut()
                .unwrap()
                .insert("is_error".into(), json!(!is_ok));
            map.insert("status".into(), status);
        }
    } else {
        map.insert("status".into(), status);
    }
    item
}

/// Texts of a result are one text; pictures stay apart.
fn text_of(content: &Value) -> Value {
    let Some(list) = content.as_array() else {
        return content.clone();
    };
    if list.iter().any(|it| it["type"] != "text") {
        return content.clone();
    }
    let texts: Vec<&str> = list.iter().filter_map(|it| it["text"].as_str()).collect();
    Value::from(texts.join("\n"))
}

fn ended(data: &Value) -> Value {
    let mut ended = data.clone();
    let map = ended.as_object_mut().unwrap();
    // An aborted run is no error there, and one that did not end well has no answer.
    if data["outcome"] == "aborted" {
        map.remove("error");
    }
    let answer = map.remove("answer");
    if let Some(answer) = answer.filter(|_| data["outcome"] == "completed") {
        map.insert("answer".into(), answer.as_str().unwrap().trim().into());
    }
    ended
}

/// A text without words is never shown, and a sub-agent nobody introduced is made up.
fn is_silent(value: &Value) -> bool {
    let is_empty = |key: &str| value[key].is_null() || value[key] == "";
    match value["kind"].as_str() {
        Some("message") => {
            let is_answer = value["id"]
                .as_str()
                .is_some_and(|it| it.ends_with(":answer"));
            // An answer that no message had is told as one; the run's end is compared.
            is_answer || is_empty("text") && value["parts"].is_null()
        }
        Some("reasoning") => is_empty("text") && is_empty("signature") && is_empty("encrypted"),
        Some("plan") => value["entries"].as_array().is_none_or(Vec::is_empty),
        Some("subagent") => value["name"] == "sub-agent",
        _ => false,
    }
}

fn read_back(name: &str, events: &str) -> Result<(), String> {
    let end = End::default();
    let written = convert("linkspan", "ag-ui", None, events.as_bytes(), &end);
    let again = convert("ag-ui", "linkspan", None, written.as_bytes(), &end);
    let (mut before, mut after) = (story(events), story(&again));
    if OTHER_ANSWER.contains(&name) {
        for story in [&mut before, &mut after] {
            story
                .values_mut()
                .flatten()
                .for_each(|it| shallow(it, &["answer"]));
        }
    }
    let keys = before.keys().chain(after.keys());
    for key in keys {
        let nothing = Vec::new();
        let a = before.get(key).unwrap_or(&nothing);
        let b = after.get(key).unwrap_or(&nothing);
        for at in 0..a.len().max(b.len()) {
            if a.get(at) != b.get(at) {
                let show = |it: Option<&Value>| it.map_or("<nothing>".to_owned(), Value::to_string);
                return Err(format!(
                    "{name}: {key} {at}\n  written {}\n  read    {}",
                    show(a.get(at)),
                    show(b.get(at))
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn ag_ui_reads_back_what_it_wrote() {
    let mut failures = Vec::new();
    for recording in recordings("claude") {
        let events = convert("claude", "linkspan", None, &recording.bytes, &recording.end);
        failures.extend(read_back(&recording.name, &events).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A comparison that cannot fail says nothing.
#[test]
fn a_changed_story_is_noticed() {
    let recording = recordings("claude")
        .into_iter()
        .find(|it| it.name == "multi_tool")
        .unwrap();
    let events = convert("claude", "linkspan", None, &recording.bytes, &recording.end);
    let whole = story(&events);
    let changed = |from: &str, to: &str| story(&events.replace(from, to));
    for (from, to) in [
        (
            r#""status":"ok","item":{"kind":"tool""#,
            r#""status":"error","item":{"kind":"tool""#,
        ),
        (r#""outcome":"completed""#, r#""outcome":"failed""#),
        (r#""name":"Bash""#, r#""name":"Shell""#),
        (r#""model":"claude"#, r#""model":"other"#),
    ] {
        assert!(events.contains(from), "{from}");
        assert_ne!(whole, changed(from, to), "{from}");
    }
    let mut fewer: Vec<&str> = events.lines().collect();
    let at = fewer
        .iter()
        .rposition(|it| it.contains("item.closed"))
        .unwrap();
    fewer.remove(at);
    assert_ne!(whole, story(&(fewer.join("\n") + "\n")));
}
