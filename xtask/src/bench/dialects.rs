//! The same made-up sessions as other programs print them, for the readers whose format linkspan
//! cannot write itself; shapes are those of the recordings in `fixtures/`. And a few odd shapes that
//! show whether the cost of a reader grows with more than the bytes.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result, bail};

use super::{
    corpus::{Call, quoted},
    text::{self, Random},
};

/// Writes at least this many megabytes of a dialect.
pub(crate) fn write(dialect: &str, megabytes: u64, path: &Path) -> Result<()> {
    fs::create_dir_all(path.parent().context("the corpus has a folder")?)?;
    let mut random = Random::new(0x11_4e_5b_a2);
    let mut corpus = DialectCorpus {
        session: random.uuid(),
        random,
        out: BufWriter::with_capacity(1 << 20, File::create(path)?),
        written: 0,
        n_ids: 0,
    };
    let run: fn(&mut DialectCorpus) -> Result<()> = match dialect {
        "gemini" => DialectCorpus::gemini,
        "opencode" => DialectCorpus::opencode,
        "openresponses" => DialectCorpus::openresponses,
        "small-lines" => DialectCorpus::small_lines,
        "large-lines" => DialectCorpus::large_lines,
        "updates" => {
            // One long life, however long.
            corpus.begin_updates()?;
            DialectCorpus::updates
        }
        _ => bail!("there is no dialect `{dialect}`"),
    };
    while corpus.written < megabytes * 1_000_000 {
        run(&mut corpus)?;
    }
    corpus.out.flush()?;
    Ok(())
}

struct DialectCorpus {
    random: Random,
    session: String,
    out: BufWriter<File>,
    written: u64,
    n_ids: u64,
}

const AT: &str = "2026-11-15T18:17:21.445Z";

impl DialectCorpus {
    fn gemini(&mut self) -> Result<()> {
        let session = self.session.clone();
        self.line(&format!(
            r#"{{"type":"init","timestamp":"{AT}","session_id":"{session}","model":"gemini-2.5-flash"}}"#
        ))?;
        self.line(&format!(
            r#"{{"type":"message","timestamp":"{AT}","role":"user","content":"do the task"}}"#
        ))?;
        for _ in 0..self.random.between(5, 40) {
            let words = self.words(40, 800);
            for piece in text::pieces(&mut self.random, &words, 8, 40) {
                let piece = quoted(piece);
                self.line(&format!(
                    r#"{{"type":"message","timestamp":"{AT}","role":"assistant","content":{piece},"delta":true}}"#
                ))?;
            }
            let Call {
                id,
                name,
                input,
                content,
                ..
            } = self.call();
            let name = match name {
                "Bash" => "run_shell_command",
                "Read" => "read_file",
                "Grep" => "grep_search",
                "Edit" => "replace",
                _ => "write_file",
            };
            self.line(&format!(
                r#"{{"type":"tool_use","timestamp":"{AT}","tool_name":"{name}","tool_id":"{id}","parameters":{input}}}"#
            ))?;
            self.line(&format!(
                r#"{{"type":"tool_result","timestamp":"{AT}","tool_id":"{id}","status":"success","output":{content}}}"#
            ))?;
        }
        self.line(&format!(
            r#"{{"type":"result","timestamp":"{AT}","status":"success","stats":{{"total_tokens":100,"input_tokens":80,"output_tokens":20,"cached":0,"input":80,"duration_ms":1200,"tool_calls":3}}}}"#
        ))
    }

    fn opencode(&mut self) -> Result<()> {
        let session = format!("ses_{}", self.session);
        for _ in 0..self.random.between(5, 40) {
            let message = self.id("msg");
            let part = self.id("prt");
            let (thinking, words) = (self.words(60, 1500), self.words(40, 800));
            let head = |kind: &str| {
                format!(r#"{{"type":"{kind}","timestamp":1794766372956,"sessionID":"{session}""#)
            };
            let ids = format!(r#""id":"{part}","messageID":"{message}","sessionID":"{session}""#);
            self.line(&format!(
                r#"{},"part":{{{ids},"type":"step-start"}}}}"#,
                head("step_start")
            ))?;
            for (kind, text) in [("reasoning", thinking), ("text", words)] {
                let id = self.id("prt");
                self.line(&format!(
                    r#"{},"part":{{"id":"{id}","messageID":"{message}","sessionID":"{session}","type":"{kind}","text":{},"time":{{"start":1794766372550,"end":1794766372604}}}}}}"#,
                    head(kind), quoted(&text)
                ))?;
            }
            let Call {
                id,
                name,
                input,
                content,
                ..
            } = self.call();
            let (name, id_part) = (name.to_lowercase(), self.id("prt"));
            self.line(&format!(
                r#"{},"part":{{"type":"tool","tool":"{name}","callID":"{id}","state":{{"status":"completed","input":{input},"output":{content},"metadata":{{"output":{content},"exit":0,"truncated":false}},"title":"a call","time":{{"start":1794766372575,"end":1794766373031}}}},"id":"{id_part}","sessionID":"{session}","messageID":"{message}"}}}}"#,
                head("tool_use")
            ))?;
            self.line(&format!(
                r#"{},"part":{{{ids},"type":"step-finish","reason":"tool-calls","tokens":{{"total":120,"input":60,"output":20,"reasoning":0,"cache":{{"write":0,"read":40}}}},"cost":0}}}}"#,
                head("step_finish")
            ))?;
        }
        Ok(())
    }

    /// One response: words and calls in pieces, and everything once more at its end.
    fn openresponses(&mut self) -> Result<()> {
        let response = self.id("resp");
        let envelope = |status: &str, output: &str| {
            format!(
                r#""response":{{"id":"{response}","object":"response","created_at":1767225600,"status":"{status}","model":"example-model-1","output":[{output}],"error":null,"usage":{{"input_tokens":10,"output_tokens":20,"total_tokens":30}}}}"#
            )
        };
        self.event("response.created", &envelope("in_progress", ""))?;
        let mut output = Vec::new();
        for index in 0..self.random.between(3, 12) {
            let item = if index % 2 == 0 {
                self.response_text(index)?
            } else {
                self.response_call(index)?
            };
            output.push(item);
        }
        self.event(
            "response.completed",
            &envelope("completed", &output.join(",")),
        )
    }

    fn response_text(&mut self, index: usize) -> Result<String> {
        let id = self.id("msg");
        let words = self.words(200, 4000);
        let at = format!(r#""item_id":"{id}","output_index":{index},"content_index":0"#);
        let open = format!(
            r#""output_index":{index},"item":{{"type":"message","id":"{id}","role":"assistant","status":"in_progress","content":[]}}"#
        );
        self.event("response.output_item.added", &open)?;
        let part =
            |text: &str| format!(r#"{{"type":"output_text","text":{text},"annotations":[]}}"#);
        self.event(
            "response.content_part.added",
            &format!(r#"{at},"part":{}"#, part("\"\"")),
        )?;
        for piece in text::pieces(&mut self.random, &words, 8, 40) {
            let piece = quoted(piece);
            self.event(
                "response.output_text.delta",
                &format!(r#"{at},"delta":{piece}"#),
            )?;
        }
        let words = quoted(&words);
        self.event(
            "response.output_text.done",
            &format!(r#"{at},"text":{words}"#),
        )?;
        self.event(
            "response.content_part.done",
            &format!(r#"{at},"part":{}"#, part(&words)),
        )?;
        let item = format!(
            r#"{{"type":"message","id":"{id}","role":"assistant","status":"completed","content":[{}]}}"#,
            part(&words)
        );
        self.event(
            "response.output_item.done",
            &format!(r#""output_index":{index},"item":{item}"#),
        )?;
        Ok(item)
    }

    fn response_call(&mut self, index: usize) -> Result<String> {
        let item = self.id("fc");
        let Call {
            id, name, content, ..
        } = self.call();
        // The results go in with the next request: what a call says is where the bytes are.
        let arguments = format!(r#"{{"text":{content}}}"#);
        let whole = |arguments: &str, status: &str| {
            format!(
                r#"{{"type":"function_call","id":"{item}","call_id":"{id}","name":"{name}","arguments":{arguments},"status":"{status}"}}"#
            )
        };
        let open = whole("\"\"", "in_progress");
        self.event(
            "response.output_item.added",
            &format!(r#""output_index":{index},"item":{open}"#),
        )?;
        let at = format!(r#""item_id":"{item}","output_index":{index}"#);
        for piece in text::pieces(&mut self.random, &arguments, 200, 2000) {
            let piece = quoted(piece);
            self.event(
                "response.function_call_arguments.delta",
                &format!(r#"{at},"delta":{piece}"#),
            )?;
        }
        let arguments = quoted(&arguments);
        self.event(
            "response.function_call_arguments.done",
            &format!(r#"{at},"arguments":{arguments}"#),
        )?;
        let done = whole(&arguments, "completed");
        self.event(
            "response.output_item.done",
            &format!(r#""output_index":{index},"item":{done}"#),
        )?;
        Ok(done)
    }

    fn event(&mut self, name: &str, fields: &str) -> Result<()> {
        self.n_ids += 1;
        let n = self.n_ids;
        self.line(&format!(
            "event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{n},{fields}}}\n"
        ))
    }

    /// Claude Code, one word a line: what a line costs beyond its bytes.
    fn small_lines(&mut self) -> Result<()> {
        self.claude_lines(64 * 1024, 4)
    }

    /// Claude Code, a megabyte a line.
    fn large_lines(&mut self) -> Result<()> {
        self.claude_lines(1 << 20, 1 << 20)
    }

    fn claude_lines(&mut self, bytes: usize, piece: usize) -> Result<()> {
        let (session, message) = (self.session.clone(), self.id("msg"));
        let words = text::prose(&mut self.random, bytes);
        let mut rest = &words[..];
        while !rest.is_empty() {
            let at = (piece.min(rest.len())..=rest.len()).find(|it| rest.is_char_boundary(*it));
            let (head, tail) = rest.split_at(at.unwrap_or(rest.len()));
            rest = tail;
            let text = quoted(head);
            self.line(&format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}}}},"session_id":"{session}","parent_tool_use_id":null,"uuid":"u","api_message_id":"{message}"}}"#
            ))?;
        }
        self.line(&format!(
            r#"{{"type":"stream_event","event":{{"type":"message_stop"}},"session_id":"{session}","parent_tool_use_id":null,"uuid":"u","api_message_id":"{message}"}}"#
        ))
    }

    fn begin_updates(&mut self) -> Result<()> {
        let session = self.session.clone();
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{{"type":"text","text":"go"}}]}}}}"#
        ))?;
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"tool_call","toolCallId":"c1","title":"make","kind":"execute","status":"in_progress","rawInput":{{"command":"make"}}}}}}}}"#
        ))
    }

    /// ACP: one call whose output is told anew with every update; about 35,000 in ten megabytes.
    fn updates(&mut self) -> Result<()> {
        let session = self.session.clone();
        let text = quoted(&text::output(&mut self.random, 60));
        self.line(&format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress","content":[{{"type":"content","content":{{"type":"text","text":{text}}}}}]}}}}}}"#
        ))
    }

    fn words(&mut self, low: usize, high: usize) -> String {
        let size = self.random.size(low, high);
        text::prose(&mut self.random, size)
    }

    fn call(&mut self) -> Call {
        let id = self.id("call");
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
