//! What every output owes its consumer, checked line by line: opened before used, closed before the
//! end, one start and one terminal per run. The vendors' own judges run in the peers tier; these are their rules in
//! a form that can be asked a million times.

mod claude;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::pages;

/// Checks one output as it grows.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    format: &'static str,
    rest: Vec<u8>,
    /// Pages are judged whole.
    page: Vec<u8>,
    n_lines: usize,
    open: BTreeMap<String, String>,
    /// AG-UI: things that may be named only once per run.
    used: BTreeSet<String>,
    in_run: bool,
    /// OpenHands: the run has said that it runs, which the first one need not.
    is_announced: bool,
    n_started: usize,
    n_ended: usize,
    seq: Option<u64>,
    /// The writer leaves open what its model leaves open.
    may_leave_open: bool,
    broken: Option<String>,
}

impl Law {
    pub(crate) fn new(format: &'static str, profile: Option<&str>) -> Self {
        Self {
            format,
            rest: Vec::new(),
            page: Vec::new(),
            n_lines: 0,
            open: BTreeMap::new(),
            used: BTreeSet::new(),
            in_run: false,
            is_announced: false,
            n_started: 0,
            n_ended: 0,
            seq: None,
            may_leave_open: profile == Some("upstream"),
            broken: None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if matches!(self.format, "markdown" | "html") {
            self.page.extend_from_slice(bytes);
            if self.format == "html" && self.n_lines == 0 && pages::strip_style(&mut self.page) {
                self.n_lines += 1;
            }
            return;
        }
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|it| *it == b'\n') else {
            return;
        };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        for line in lines.split(|it| *it == b'\n') {
            self.line(line);
        }
    }

    /// The output is whole; `n_runs` is what the canonical events counted.
    pub(crate) fn verdict(mut self, n_runs: usize) -> Result<(), String> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        if !self.rest.is_empty() {
            return Err("the last line has no end".to_owned());
        }
        match self.format {
            "markdown" => return pages::markdown(&self.page, n_runs),
            "html" => return pages::html(&self.page, n_runs),
            _ => (),
        }
        if self.format == "text" {
            return if self.n_lines > 0 {
                Ok(())
            } else {
                Err("nothing was said".to_owned())
            };
        }
        if self.n_ended != n_runs {
            return Err(format!("{n_runs} runs, {} ends", self.n_ended));
        }
        if self.in_run {
            return Err("the last run does not end".to_owned());
        }
        if self.has_starts() && self.n_started != n_runs {
            return Err(format!("{n_runs} runs, {} starts", self.n_started));
        }
        if !self.open.is_empty() {
            return Err(format!("left open: {:?}", self.open));
        }
        Ok(())
    }

    /// True for formats in which every run says that it starts.
    fn has_starts(&self) -> bool {
        matches!(self.format, "linkspan" | "claude" | "thread" | "ag-ui")
    }

    pub(crate) fn n_ended(&self) -> usize {
        self.n_ended
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() || self.broken.is_some() {
            return;
        }
        self.n_lines += 1;
        if self.format == "text" {
            return;
        }
        let json = match self.format {
            "ag-ui" => match line.strip_prefix(b"data: ") {
                Some(json) => json,
                None => return self.fail("not a data line"),
            },
            _ => line,
        };
        let Ok(value) = serde_json::from_slice::<Value>(json) else {
            return self.fail(&format!("not JSON: {}", String::from_utf8_lossy(json)));
        };
        match self.format {
            "linkspan" => self.linkspan(&value),
            "claude" => self.claude(&value),
            "takopi" => self.takopi(&value),
            "thread" => self.thread(&value),
            "openhands" => self.openhands(&value),
            "acp" => self.acp(&value),
            "ag-ui" => self.ag_ui(&value),
            other => panic!("no law for `{other}`"),
        }
    }

    fn fail(&mut self, why: &str) {
        self.broken = Some(format!("line {}: {why}", self.n_lines));
    }

    fn open(&mut self, key: String, what: &str) {
        if self.open.insert(key.clone(), what.to_owned()).is_some() {
            self.fail(&format!("`{key}` is opened twice"));
        }
    }

    fn close(&mut self, key: &str) {
        if self.open.remove(key).is_none() {
            self.fail(&format!("`{key}` is closed but not open"));
        }
    }

    fn need(&mut self, key: &str) {
        if !self.open.contains_key(key) {
            self.fail(&format!("`{key}` is used but not open"));
        }
    }

    fn start(&mut self) {
        if self.in_run {
            self.fail("a run starts inside a run");
        }
        self.in_run = true;
        self.n_started += 1;
        self.used.clear();
    }

    fn end(&mut self) {
        if !self.in_run {
            self.fail("a run ends that did not start");
        }
        if self.may_leave_open {
            self.open.clear();
        }
        if !self.open.is_empty() {
            let open = format!("the run ends with these open: {:?}", self.open);
            self.fail(&open);
        }
        self.in_run = false;
        self.n_ended += 1;
    }

    fn linkspan(&mut self, event: &Value) {
        let seq = event["seq"].as_u64().unwrap_or_default();
        if let Some(before) = self.seq.replace(seq)
            && seq != before + 1
        {
            self.fail(&format!("seq {seq} after {before}"));
        }
        let data = &event["data"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "run.started" => self.start(),
            "run.ended" => self.end(),
            "item.opened" => {
                let id = text(&data["id"]);
                if !self.in_run {
                    self.fail("an item outside of a run");
                }
                if !self.used.insert(id.clone()) {
                    self.fail(&format!("the id `{id}` is used twice"));
                }
                self.open(id, "");
            }
            "item.updated" => self.need(&text(&data["id"])),
            "item.delta" => {
                let id = text(&data["item"]);
                if data["channel"] == "text"
                    && let Some(said) = self.open.get_mut(&id)
                {
                    said.push_str(data["text"].as_str().unwrap_or_default());
                }
                self.need(&id);
            }
            "item.closed" => {
                let item = &data["item"];
                let id = text(&item["id"]);
                let said = self.open.get(&id).cloned().unwrap_or_default();
                if !said.is_empty() && item["text"] != said.as_str() {
                    self.fail(&format!("the pieces of `{id}` do not add up"));
                }
                self.close(&id);
            }
            "ask.opened" => self.open(format!("ask {}", text(&data["id"])), ""),
            "ask.settled" => self.close(&format!("ask {}", text(&data["id"]))),
            "session.bound" | "usage.reported" | "notice.raised" | "frame.unmapped" => (),
            other => self.fail(&format!("unknown type `{other}`")),
        }
    }

    fn takopi(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "started" => self.start(),
            "action" => {
                let action = &event["action"];
                let id = action["id"].as_str().unwrap_or_default().to_owned();
                let title = action["title"].as_str().unwrap_or_default();
                match event["phase"].as_str().unwrap_or_default() {
                    "started" => self.open(id, title),
                    "updated" => self.need(&id),
                    "completed" => {
                        // Takopi's own Codex runner changes these.
                        let may_change = self.may_leave_open
                            && (action["kind"] == "note" || action["kind"] == "web_search");
                        if let Some(before) = self.open.remove(&id)
                            && before != title
                            && !may_change
                        {
                            self.fail(&format!(
                                "the title of `{id}` changed from `{before}` to `{title}`"
                            ));
                        }
                    }
                    other => self.fail(&format!("unknown phase `{other}`")),
                }
            }
            "completed" => {
                // An agent that failed before it told its session never started one.
                if event["resume"].is_null() && !self.in_run {
                    self.start();
                }
                self.end();
            }
            other => self.fail(&format!("unknown type `{other}`")),
        }
    }

    fn thread(&mut self, event: &Value) {
        let id = event["item"]["id"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "thread.started" => (),
            "turn.started" => self.start(),
            "turn.completed" | "turn.failed" => self.end(),
            "item.started" => self.open(id, ""),
            "item.updated" => self.need(&id),
            "item.completed" => {
                self.open.remove(&id);
                // Codex itself warns before its first turn.
                if !self.in_run && event["item"]["type"] != "error" {
                    self.fail("an item outside of a turn");
                }
            }
            "error" => (),
            other => self.fail(&format!("unknown type `{other}`")),
        }
    }

    fn openhands(&mut self, event: &Value) {
        let call = event["tool_call_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let kind = event["kind"].as_str().unwrap_or_default();
        let is_users = event["source"] == "user";
        if !self.in_run && (self.n_ended == 0 || kind == "MessageEvent" && is_users) {
            self.start();
            self.is_announced = false;
        }
        // The prompt that introduces a session is a state of the conversation, not work: the SDK
        // writes it when a message is sent, before it runs anything.
        let is_work = event["source"] == "agent" && kind != "SystemPromptEvent";
        if !self.in_run && (is_work || kind == "ConversationErrorEvent") {
            self.fail(&format!("{kind} outside of a run"));
        }
        match kind {
            "ActionEvent" => self.open(call, ""),
            "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent" => self.close(&call),
            "ACPToolCallEvent" => match event["status"].as_str() {
                Some("completed" | "failed") => self.close(&call),
                _ if !self.open.contains_key(&call) => self.open(call, ""),
                _ => (),
            },
            "ConversationStateUpdateEvent" if event["key"] == "execution_status" => {
                match event["value"].as_str() {
                    Some("finished" | "error" | "stuck") => {
                        self.end();
                        self.is_announced = false;
                    }
                    Some("running") if self.in_run && !self.is_announced => {
                        self.is_announced = true;
                    }
                    Some("running") => {
                        self.start();
                        self.is_announced = true;
                    }
                    // It runs again when the question is answered.
                    Some("waiting_for_confirmation" | "paused") => self.is_announced = false,
                    _ => (),
                }
            }
            "" => self.fail("no kind"),
            _ => (),
        }
    }

    fn acp(&mut self, message: &Value) {
        if let Some(id) = message.get("id") {
            return match (id, message.get("method")) {
                (Value::String(id), Some(_)) => self.open(id.clone(), ""),
                (Value::String(id), None) => self.close(&id.clone()),
                // The answer to a prompt, which are numbered.
                (id, _) => {
                    if *id != self.n_ended + 1 {
                        self.fail(&format!("the answer to prompt {id}, which did not start"));
                    }
                    if !self.in_run {
                        self.start();
                    }
                    self.end();
                }
            };
        }
        let update = &message["params"]["update"];
        let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        let is_final = matches!(update["status"].as_str(), Some("completed" | "failed"));
        let name = update["sessionUpdate"].as_str().unwrap_or_default();
        let is_work = name.starts_with("agent_") || name.starts_with("tool_call") || name == "plan";
        if is_work && !self.in_run {
            self.start();
        }
        match name {
            "tool_call" => {
                if update["title"].as_str().unwrap_or_default().is_empty() {
                    self.fail("a tool call without a title");
                }
                self.open(call.clone(), "");
                if is_final {
                    self.close(&call);
                }
            }
            "tool_call_update" if is_final => self.close(&call),
            "tool_call_update" => self.need(&call),
            "" => self.fail("no sessionUpdate"),
            _ => (),
        }
    }

    fn ag_ui(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let id = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        if kind != "RUN_STARTED" && !self.in_run {
            return self.fail(&format!("{kind} outside of a run"));
        }
        match kind {
            "RUN_STARTED" => self.start(),
            "RUN_FINISHED" => self.end(),
            // Whatever is open when a run fails is taken to be over.
            "RUN_ERROR" => self.end(),
            "TEXT_MESSAGE_START" => self.open(format!("text {}", id("messageId")), ""),
            "TEXT_MESSAGE_CONTENT" => self.need(&format!("text {}", id("messageId"))),
            "TEXT_MESSAGE_END" => self.close(&format!("text {}", id("messageId"))),
            "REASONING_START" => self.open(format!("span {}", id("messageId")), ""),
            "REASONING_END" => self.close(&format!("span {}", id("messageId"))),
            "REASONING_MESSAGE_START" => self.open(format!("reasoning {}", id("messageId")), ""),
            "REASONING_MESSAGE_CONTENT" => self.need(&format!("reasoning {}", id("messageId"))),
            "REASONING_MESSAGE_END" => self.close(&format!("reasoning {}", id("messageId"))),
            "TOOL_CALL_START" => self.open(format!("call {}", id("toolCallId")), ""),
            "TOOL_CALL_ARGS" => self.need(&format!("call {}", id("toolCallId"))),
            "TOOL_CALL_END" => self.close(&format!("call {}", id("toolCallId"))),
            "SUBAGENT_STARTED" => {
                let id = format!("agent {}", id("subagentRunId"));
                if !self.used.insert(id.clone()) {
                    self.fail(&format!("`{id}` is started twice"));
                }
                self.open(id, "");
            }
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                self.close(&format!("agent {}", id("subagentRunId")))
            }
            "" => self.fail("no type"),
            _ => (),
        }
    }
}

/// What the checker of a format says about these lines.
fn judge(format: &'static str, lines: &[&str], n_runs: usize) -> Result<(), String> {
    let mut law = Law::new(format, None);
    for line in lines {
        let line = match format {
            "ag-ui" => format!("data: {line}\n\n"),
            _ => format!("{line}\n"),
        };
        law.push(line.as_bytes());
    }
    law.verdict(n_runs)
}

/// A start, an end and a piece of work of each format, and whether all starts are told.
const PARTS: [(&str, &str, &str, &str); 7] = [
    (
        "linkspan",
        r#"{"type":"run.started","seq":NUM}"#,
        r#"{"type":"run.ended","seq":NUM}"#,
        r#"{"type":"item.opened","seq":NUM,"data":{"id":"i"}}"#,
    ),
    (
        "claude",
        r#"{"type":"system","subtype":"init"}"#,
        r#"{"type":"result","uuid":"u","session_id":"s"}"#,
        r#"{"type":"assistant","uuid":"u","session_id":"s"}"#,
    ),
    (
        "takopi",
        r#"{"type":"started","resume":{}}"#,
        r#"{"type":"completed","resume":{}}"#,
        r#"{"type":"action","phase":"completed","action":{"id":"a","title":"t"}}"#,
    ),
    (
        "thread",
        r#"{"type":"turn.started"}"#,
        r#"{"type":"turn.completed"}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message"}}"#,
    ),
    (
        "openhands",
        r#"{"kind":"ConversationStateUpdateEvent","key":"execution_status","value":"running"}"#,
        r#"{"kind":"ConversationStateUpdateEvent","key":"execution_status","value":"finished"}"#,
        r#"{"kind":"MessageEvent","source":"agent"}"#,
    ),
    (
        "acp",
        r#"{"params":{"update":{"sessionUpdate":"agent_message_chunk"}}}"#,
        r#"{"id":NUM,"result":{}}"#,
        r#"{"params":{"update":{"sessionUpdate":"agent_message_chunk"}}}"#,
    ),
    (
        "ag-ui",
        r#"{"type":"RUN_STARTED"}"#,
        r#"{"type":"RUN_FINISHED"}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
    ),
];

/// The parts named by the letters, with their numbers: `s`tart, `e`nd, `w`ork.
fn stream(format: &str, letters: &str) -> Vec<String> {
    let (_, start, end, work) = PARTS.iter().find(|it| it.0 == format).unwrap();
    let mut n = 0;
    let mut part = |letter| {
        let part = match letter {
            's' => start,
            'e' => end,
            _ => work,
        };
        // Canonical events are all numbered, ACP's prompts are.
        n += usize::from(format == "linkspan" || letter == 'e');
        part.replace("NUM", &n.to_string())
    };
    letters.chars().map(&mut part).collect()
}

fn verdict(format: &'static str, letters: &str, n_runs: usize) -> Result<(), String> {
    let lines = stream(format, letters);
    judge(
        format,
        &lines.iter().map(String::as_str).collect::<Vec<_>>(),
        n_runs,
    )
}

#[test]
fn a_valid_stream_passes() {
    for (format, ..) in PARTS {
        assert_eq!(verdict(format, "se", 1), Ok(()), "{format}");
        assert_eq!(verdict(format, "sese", 2), Ok(()), "{format}");
    }
}

#[test]
fn an_end_without_a_start_fails() {
    for (format, ..) in PARTS {
        if format == "acp" {
            // Its prompts are the client's: an end too many answers one that nobody sent.
            let twice = [r#"{"id":1,"result":{}}"#, r#"{"id":1,"result":{}}"#];
            assert!(judge(format, &twice, 2).is_err());
            continue;
        }
        assert!(verdict(format, "see", 2).is_err(), "{format}");
        assert!(verdict(format, "see", 1).is_err(), "{format}");
    }
    for format in ["linkspan", "claude", "takopi", "thread", "ag-ui"] {
        assert!(verdict(format, "e", 1).is_err(), "{format}");
    }
}

#[test]
fn two_starts_fail() {
    for format in ["linkspan", "takopi", "thread", "ag-ui"] {
        assert!(verdict(format, "sse", 1).is_err(), "{format}");
    }
    // The first run of a conversation runs from its first event on, and may say so once.
    assert!(verdict("openhands", "sse", 1).is_err());
    assert!(verdict("openhands", "sesse", 2).is_err());
}

#[test]
fn a_start_without_an_end_fails() {
    for (format, ..) in PARTS {
        assert!(verdict(format, "s", 1).is_err(), "{format}");
        assert!(verdict(format, "ses", 1).is_err(), "{format}");
    }
}

#[test]
fn work_after_the_end_fails() {
    for (format, ..) in PARTS {
        if format != "takopi" {
            assert!(verdict(format, "sew", 1).is_err(), "{format}");
        }
    }
}

#[test]
fn a_session_may_introduce_itself_between_runs() {
    let running =
        r#"{"kind":"ConversationStateUpdateEvent","key":"execution_status","value":"running"}"#;
    let finished =
        r#"{"kind":"ConversationStateUpdateEvent","key":"execution_status","value":"finished"}"#;
    let prompt = r#"{"kind":"SystemPromptEvent","source":"agent"}"#;
    let lines = [running, finished, prompt, running, finished];
    assert_eq!(judge("openhands", &lines, 2), Ok(()));
}
