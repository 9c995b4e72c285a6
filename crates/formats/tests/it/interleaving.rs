//! Sub-agents that stream at once: their events come in any order between one another, and the call that
//! started each is all that tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use formats::registry::{FORMATS, find_reader, writer};
use formats::{ReaderConfig, WriterConfig};
use model::{Body, End, Event, Frame, Item};
use serde_json::{Value, json};

const N_ROUNDS: u64 = 60;

/// A small generator: the same numbers in every run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Words that tell whose they are: `t` of a text, `h` of a thought, `c` of a command.
fn text_pieces(kind: char, agent: usize, n: usize) -> Vec<String> {
    (0..n).map(|at| format!("{kind}{agent}.{at} ")).collect()
}

/// What one agent prints: a thought, a text and a call, each in pieces.
fn prints(agent: usize, has_wholes: bool, random: &mut Random) -> Vec<Value> {
    let parent = if agent == 0 {
        Value::Null
    } else {
        json!(format!("agent{agent}"))
    };
    let message = format!("msg{agent}");
    let event = |event: Value| json!({"type": "stream_event", "event": event, "parent_tool_use_id": parent, "session_id": "s"});
    let whole = |block: Value| {
        let message = json!({"id": message, "role": "assistant", "content": [block]});
        json!({"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "s"})
    };
    let mut lines = vec![event(
        json!({"type": "message_start", "message": {"id": message}}),
    )];
    let blocks = [
        ('h', "thinking", json!({"type": "thinking", "thinking": ""})),
        ('t', "text", json!({"type": "text", "text": ""})),
        (
            'c',
            "partial_json",
            json!({"type": "tool_use", "id": format!("call{agent}"), "name": "Bash", "input": {}}),
        ),
    ];
    for (index, (kind, key, start)) in blocks.into_iter().enumerate() {
        let words = text_pieces(kind, agent, 1 + random.below(4));
        let said = words.concat();
        lines.push(event(
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        let pieces = match kind {
            'c' => [
                vec![r#"{"command":""#.to_owned()],
                words,
                vec![r#""}"#.to_owned()],
            ]
            .concat(),
            _ => words,
        };
        for piece in pieces {
            lines.push(event(
                json!({"type": "content_block_delta", "index": index, "delta": {key: piece}}),
            ));
        }
        if has_wholes {
            lines.push(whole(match kind {
                'h' => json!({"type": "thinking", "thinking": said}),
                't' => json!({"type": "text", "text": said}),
                _ => json!({"type": "tool_use", "id": format!("call{agent}"), "name": "Bash", "input": {"command": said}}),
            }));
        }
        lines.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    lines.push(event(json!({"type": "message_stop"})));
    let result =
        json!([{"type": "tool_result", "tool_use_id": format!("call{agent}"), "content": "done"}]);
    lines.push(json!({"type": "user", "message": {"role": "user", "content": result}, "parent_tool_use_id": parent, "session_id": "s"}));
    lines
}

/// A whole run with several agents, whose lines are mixed at random.
fn stream(n_agents: usize, random: &mut Random) -> Vec<String> {
    let mut lines =
        vec![json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w"})];
    for agent in 1..=n_agents {
        let call = json!({"type": "tool_use", "id": format!("agent{agent}"), "name": "Agent", "input": {"description": "look"}});
        let message = json!({"id": "msg", "role": "assistant", "content": [call]});
        lines.push(json!({"type": "assistant", "message": message, "session_id": "s"}));
    }
    let has_wholes = random.below(2) == 0;
    let mut agents: Vec<_> = (0..=n_agents)
        .map(|agent| prints(agent, has_wholes, random).into_iter())
        .collect();
    while !agents.is_empty() {
        let at = random.below(agents.len());
        match agents[at].next() {
            Some(line) => lines.push(line),
            None => drop(agents.remove(at)),
        }
    }
    for agent in 1..=n_agents {
        let result = json!([{"type": "tool_result", "tool_use_id": format!("agent{agent}"), "content": "found"}]);
        lines.push(json!({"type": "user", "message": {"role": "user", "content": result}, "session_id": "s"}));
    }
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "num_turns": 1}));
    lines.iter().map(Value::to_string).collect()
}

/// Whose words a text holds.
fn speakers(text: &str) -> BTreeSet<&str> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '.');
    words
        .filter_map(|it| it.split_once('.'))
        .filter(|(who, at)| {
            let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
            who.starts_with(['t', 'h', 'c']) && is_number(&who[1..]) && is_number(at)
        })
        .map(|it| it.0)
        .collect()
}

/// All strings of a value; a streamed one is put together by its id, as a client does.
fn strings(value: &Value, joined: &mut BTreeMap<String, String>, all: &mut Vec<String>) {
    let update = &value["params"]["update"];
    let streamed = [
        (&value["messageId"], &value["delta"]),
        (&value["toolCallId"], &value["delta"]),
        (&update["messageId"], &update["content"]["text"]),
        (&value["data"]["item"], &value["data"]["text"]),
    ];
    for (id, piece) in streamed {
        if let (Some(id), Some(piece)) = (id.as_str(), piece.as_str()) {
            joined.entry(id.to_owned()).or_default().push_str(piece);
            return;
        }
    }
    match value {
        Value::String(it) => all.push(it.clone()),
        Value::Array(them) => them.iter().for_each(|it| strings(it, joined, all)),
        Value::Object(them) => them.values().for_each(|it| strings(it, joined, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

fn check_output(name: &str, out: &str, lines: &[String]) {
    let mut all = Vec::new();
    let mut joined = BTreeMap::new();
    for line in out.lines() {
        match serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)) {
            Ok(value) => strings(&value, &mut joined, &mut all),
            Err(_) => all.push(line.to_owned()),
        }
    }
    all.extend(joined.into_values());
    for text in all {
        let speakers = speakers(&text);
        assert!(speakers.len() <= 1, "{name}: {text}\n{}", lines.join("\n"));
    }
}

#[test]
fn interleaved_streams_are_kept_apart() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..N_ROUNDS {
        let n_agents = 1 + random.below(4);
        let lines = stream(n_agents, &mut random);
        let mut reader = find_reader("claude").unwrap().1(&ReaderConfig::default());
        let mut writers: Vec<_> = (FORMATS.iter().filter(|it| it.writer.is_some()))
            .flat_map(|it| [false, true].map(|live| (it.name, live)))
            .map(|(name, live)| {
                let config = WriterConfig {
                    live,
                    ..WriterConfig::default()
                };
                (name, writer(name, &config).unwrap(), Vec::new())
            })
            .collect();
        let mut closed = BTreeMap::new();
        let mut sink = |event: &Event<'_>| {
            for (_, writer, out) in &mut writers {
                writer.event(event, out);
            }
            let Body::ItemClosed(it) = &event.body else {
                return;
            };
            let path: Vec<_> = event.path.iter().map(ToString::to_string).collect();
            let said = match &it.item {
                Item::Message(it) => it.text.to_string(),
                Item::Reasoning(it) => it.text.to_string(),
                Item::Tool(it) if it.name == "Bash" => {
                    let input = it.input.as_ref().map_or("", |it| it.get());
                    let input: Value = serde_json::from_str(input).unwrap_or_default();
                    input["command"].as_str().unwrap_or_default().to_owned()
                }
                Item::Tool(_)
                | Item::Plan(_)
                | Item::Subagent(_)
                | Item::Compaction(_)
                | Item::Other(_) => return,
            };
            let who = speakers(&said).into_iter().collect::<Vec<_>>().join("+");
            closed.insert(who, (path, said));
        };
        for line in &lines {
            reader.frame(Frame::Data(line.as_bytes()), &mut sink);
        }
        reader.end(&End::default(), &mut sink);
        // Everyone's thought, text and command is whole, and in its own place.
        for agent in 0..=n_agents {
            for kind in ['t', 'h', 'c'] {
                let (path, said) = &closed[&format!("{kind}{agent}")];
                let n = said.split_whitespace().count();
                assert_eq!(*said, text_pieces(kind, agent, n).concat());
                let expected = (agent > 0).then(|| format!("agent{agent}"));
                assert_eq!(*path, expected.into_iter().collect::<Vec<_>>());
            }
        }
        assert_eq!(closed.len(), 3 * (n_agents + 1), "{closed:?}");
        for (name, mut writer, mut out) in writers {
            writer.end(&mut out);
            check_output(name, &String::from_utf8(out).unwrap(), &lines);
        }
    }
}
