//! A long Claude Code session, made up: the frames, their order and their sizes are those of the
//! recordings in `fixtures/claude`, the contents are not. The same seed gives the same bytes.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result};
use serde_json::json;

use super::text::{self, Random};

/// A corpus by whether the model's words also came in small pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With `--include-partial-messages`: by bytes, about as much in deltas as in tool results.
    Partial,
    Whole,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Partial, Self::Whole];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Whole => "whole",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    pub(crate) fn summary(self) -> &'static str {
        match self {
            Self::Partial => "with partial messages",
            Self::Whole => "without partial messages",
        }
    }
}

/// Writes at least this many megabytes, ending with a run.
pub(crate) fn write(kind: Kind, megabytes: u64, path: &Path) -> Result<()> {
    fs::create_dir_all(path.parent().context("the corpus has a folder")?)?;
    let mut random = Random::new(0x11_4e_5b_a2);
    let session = random.uuid();
    let mut corpus = Corpus {
        kind,
        random,
        session,
        out: BufWriter::with_capacity(1 << 20, File::create(path)?),
        written: 0,
        n_ids: 0,
    };
    while corpus.written < megabytes * 1_000_000 {
        corpus.run()?;
    }
    corpus.out.flush()?;
    Ok(())
}

struct Corpus {
    kind: Kind,
    random: Random,
    session: String,
    out: BufWriter<File>,
    written: u64,
    n_ids: u64,
}

/// A tool call as the model made it, and what came back.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: &'static str,
    /// JSON, as are the next two.
    pub(super) input: String,
    pub(super) content: String,
    pub(super) detail: String,
}

impl Call {
    /// One of the usual calls, with a result of up to `largest` bytes.
    pub(super) fn random(random: &mut Random, id: String, largest: usize) -> Self {
        let size = random.size(200, largest);
        let path = format!("/workspace/src/module_{}.rs", random.between(0, 400));
        let (name, input, content, detail) = match random.between(0, 9) {
            0..=3 => {
                let output = text::output(random, size);
                let input = json!({"command": "cargo test --workspace 2>&1 | tail -n \"40\"", "description": "Run the tests"});
                let detail = json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false});
                ("Bash", input, output, detail)
            }
            4..=6 => {
                let code = text::code(random, size);
                let lines = code.lines().zip(1..);
                let numbered = lines.map(|(line, n)| format!("{n}\t{line}\n")).collect();
                let detail = json!({"type": "text", "file": {"filePath": path, "content": code, "numLines": 40, "startLine": 1, "totalLines": 40}});
                ("Read", json!({"file_path": path}), numbered, detail)
            }
            7 => {
                let found = text::code(random, size);
                let detail = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": found, "numLines": 12});
                (
                    "Grep",
                    json!({"pattern": "fn \\w+\\(", "path": "/workspace/src", "output_mode": "content"}),
                    found,
                    detail,
                )
            }
            8 => {
                let (old, new) = (text::code(random, 300), text::code(random, 500));
                let said = format!("The file {path} has been updated successfully.");
                let detail = json!({"filePath": path, "oldString": old, "newString": new, "originalFile": text::code(random, size), "structuredPatch": [], "userModified": false, "replaceAll": false});
                (
                    "Edit",
                    json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": false}),
                    said,
                    detail,
                )
            }
            _ => {
                let code = text::code(random, size.min(4000));
                let said = format!("File created successfully at: {path}");
                let detail = json!({"type": "create", "filePath": path, "content": code, "structuredPatch": [], "originalFile": null, "userModified": false});
                (
                    "Write",
                    json!({"file_path": path, "content": code}),
                    said,
                    detail,
                )
            }
        };
        Call {
            id,
            name,
            input: input.to_string(),
            content: quoted(&content),
            detail: detail.to_string(),
        }
    }
}

impl Corpus {
    fn run(&mut self) -> Result<()> {
        self.init()?;
        let n_turns = self.random.between(5, 40);
        for _ in 0..n_turns {
            self.turn()?;
        }
        let answer = self.answer()?;
        self.result(n_turns, &answer)
    }

    fn turn(&mut self) -> Result<()> {
        let message = self.id("msg");
        self.message_start(&message)?;
        let mut index = 0;
        if self.random.between(0, 2) > 0 {
            let size = self.random.size(60, 1500);
            let thinking = text::prose(&mut self.random, size);
            self.thinking(&message, index, &thinking)?;
            index += 1;
        }
        let size = self.random.size(40, 800);
        let words = text::prose(&mut self.random, size);
        self.text(&message, index, &words)?;
        let mut calls = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            index += 1;
            let call = self.call();
            self.tool_use(&message, index, &call)?;
            calls.push(call);
        }
        self.message_stop(&message, "tool_use")?;
        for call in calls {
            self.tool_result(&call)?;
        }
        Ok(())
    }

    /// The last turn: words only.
    fn answer(&mut self) -> Result<String> {
        let message = self.id("msg");
        let answer = text::prose(&mut self.random, 600);
        self.message_start(&message)?;
        self.text(&message, 0, &answer)?;
        self.message_stop(&message, "end_turn")?;
        Ok(answer)
    }

    fn init(&mut self) -> Result<()> {
        let tools = json!([
            "Task", "Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "Write"
        ]);
        let commands = json!([
            "compact",
            "context",
            "cost",
            "init",
            "review",
            "release-notes"
        ]);
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        self.line(&format!(
            r#"{{"type":"system","subtype":"init","cwd":"/workspace","session_id":"{session}","tools":{tools},"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","slash_commands":{commands},"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.0","output_style":"default","agents":["general-purpose"],"skills":[],"plugins":[],"uuid":"{uuid}"}}"#
        ))
    }

    fn message_start(&mut self, message: &str) -> Result<()> {
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        if self.kind == Kind::Whole {
            return Ok(());
        }
        self.line(&format!(
            r#"{{"type":"system","subtype":"status","status":"requesting","session_id":"{session}","uuid":"{uuid}"}}"#
        ))?;
        self.stream_event(
            message,
            &format!(
                r#"{{"type":"message_start","message":{{"id":"{message}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{USAGE}}}}}"#
            ),
        )
    }

    fn message_stop(&mut self, message: &str, reason: &str) -> Result<()> {
        let delta = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":215}}}}"#
        );
        self.stream_event(message, &delta)?;
        self.stream_event(message, r#"{"type":"message_stop"}"#)
    }

    fn thinking(&mut self, message: &str, index: usize, thinking: &str) -> Result<()> {
        let start = r#"{"type":"thinking","thinking":"","signature":""}"#;
        self.deltas(
            message,
            index,
            start,
            thinking,
            "thinking_delta",
            "thinking",
        )?;
        let (thinking, signature) = (quoted(thinking), self.random.uuid().repeat(6));
        let signed = format!(r#"{{"type":"signature_delta","signature":"{signature}"}}"#);
        self.delta(message, index, &signed)?;
        self.block(
            message,
            &format!(r#"{{"type":"thinking","thinking":{thinking},"signature":"{signature}"}}"#),
        )?;
        self.block_stop(message, index)
    }

    fn text(&mut self, message: &str, index: usize, words: &str) -> Result<()> {
        let start = r#"{"type":"text","text":""}"#;
        self.deltas(message, index, start, words, "text_delta", "text")?;
        self.block(
            message,
            &format!(r#"{{"type":"text","text":{}}}"#, quoted(words)),
        )?;
        self.block_stop(message, index)
    }

    fn tool_use(&mut self, message: &str, index: usize, call: &Call) -> Result<()> {
        let Call {
            id, name, input, ..
        } = call;
        let start = format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#);
        self.deltas(
            message,
            index,
            &start,
            input,
            "input_json_delta",
            "partial_json",
        )?;
        self.block(
            message,
            &format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#),
        )?;
        self.block_stop(message, index)
    }

    fn deltas(
        &mut self,
        message: &str,
        index: usize,
        start: &str,
        text: &str,
        kind: &str,
        field: &str,
    ) -> Result<()> {
        if self.kind == Kind::Whole {
            return Ok(());
        }
        let start =
            format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#);
        self.stream_event(message, &start)?;
        for piece in text::pieces(&mut self.random, text, 8, 40) {
            let piece = quoted(piece);
            self.delta(
                message,
                index,
                &format!(r#"{{"type":"{kind}","{field}":{piece}}}"#),
            )?;
            if field == "thinking" {
                self.thinking_tokens()?;
            }
        }
        Ok(())
    }

    fn delta(&mut self, message: &str, index: usize, delta: &str) -> Result<()> {
        let event = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
        self.stream_event(message, &event)
    }

    /// The agent's own estimate, which follows every piece of thinking.
    fn thinking_tokens(&mut self) -> Result<()> {
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        self.line(&format!(
            r#"{{"type":"system","subtype":"thinking_tokens","estimated_tokens":120,"estimated_tokens_delta":6,"session_id":"{session}","uuid":"{uuid}"}}"#
        ))
    }

    fn block_stop(&mut self, message: &str, index: usize) -> Result<()> {
        let event = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
        self.stream_event(message, &event)
    }

    fn stream_event(&mut self, message: &str, event: &str) -> Result<()> {
        if self.kind == Kind::Whole {
            return Ok(());
        }
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        self.line(&format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"{session}","parent_tool_use_id":null,"uuid":"{uuid}","api_message_id":"{message}"}}"#
        ))
    }

    fn block(&mut self, message: &str, block: &str) -> Result<()> {
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        self.line(&format!(
            r#"{{"type":"assistant","message":{{"id":"{message}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{block}],"stop_reason":null,"stop_sequence":null,"usage":{USAGE},"context_management":null}},"parent_tool_use_id":null,"session_id":"{session}","uuid":"{uuid}","timestamp":"2026-11-15T17:55:25.975Z"}}"#
        ))
    }

    fn tool_result(&mut self, call: &Call) -> Result<()> {
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        let Call {
            id,
            content,
            detail,
            ..
        } = call;
        self.line(&format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":{content},"is_error":false}}]}},"parent_tool_use_id":null,"session_id":"{session}","uuid":"{uuid}","timestamp":"2026-11-15T17:55:26.138Z","tool_use_result":{detail},"tool_result_meta":[{{"id":"{id}","permission_decision":{{"decision":"accept","source":"config","reason_type":"rule"}}}}]}}"#
        ))
    }

    fn result(&mut self, n_turns: usize, answer: &str) -> Result<()> {
        let (session, uuid) = (self.session.clone(), self.random.uuid());
        let answer = quoted(answer);
        self.line(&format!(
            r#"{{"duration_api_ms":21800,"stop_reason":"end_turn","session_id":"{session}","total_cost_usd":0.001365,"usage":{USAGE},"modelUsage":{{"claude-opus-5-5":{{"inputTokens":75,"outputTokens":45,"cacheReadInputTokens":300,"cacheCreationInputTokens":21,"webSearchRequests":0,"costUSD":0.001365,"contextWindow":1000000,"maxOutputTokens":128000}}}},"permission_denials":[],"is_error":false,"num_turns":{n_turns},"subtype":"success","api_error_status":null,"result":{answer},"type":"result","duration_ms":92200,"uuid":"{uuid}"}}"#
        ))
    }

    fn call(&mut self) -> Call {
        let id = self.id("toolu");
        Call::random(&mut self.random, id, 50_000)
    }

    fn id(&mut self, kind: &str) -> String {
        self.n_ids += 1;
        format!("{kind}_01{:022x}", self.n_ids)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.written += line.len() as u64 + 1;
        Ok(())
    }
}

const USAGE: &str = r#"{"input_tokens":25,"cache_creation_input_tokens":7,"cache_read_input_tokens":100,"output_tokens":1,"service_tier":"standard"}"#;

pub(super) fn quoted(text: &str) -> String {
    json!(text).to_string()
}
