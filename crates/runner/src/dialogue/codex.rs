//! `codex app-server`: JSON-RPC without its version, threads and turns.
//!
//! Facts from a recording and the schemas of codex-cli 0.166.0. Other threads, such as those of
//! sub-agents, speak on the same connection. A denial carries no reason: the protocol has no place
//! for one.

mod asks;
mod wire;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;

use formats::wire::json_rpc::{Error, Message, Params};

use self::asks::CodexAsk;
use self::wire::Notification;
use super::rpc::{self, Rpc};
use super::{Dialogue, NotSettled, Offer, Offers, Outbox, may_hold};
use crate::request::{Answer, Mode, Permissions, Prompt, Request, Resume};
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Codex {
    rpc: Rpc<CodexRequest>,
    resume: Resume,
    cwd: PathBuf,
    /// What the next turn changes.
    model: Option<String>,
    permissions: Permissions,
    /// The next turn has to say what it may do.
    has_changed: bool,
    sandbox: Option<String>,
    thread: Option<String>,
    run: CodexTurn,
    asks: HashMap<String, CodexAsk>,
    waiting: VecDeque<Prompt>,
    /// Without a first prompt there is time to ask for the offers.
    is_early: bool,
    offers: Offers,
    key: Option<ApiKey>,
}

/// The key to log in with, which no log may repeat.
struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

#[derive(Debug)]
enum CodexRequest {
    Initialize,
    Login,
    Models,
    List,
    Open,
    Turn,
    Interrupt,
}

#[derive(Debug, PartialEq, Eq)]
enum CodexTurn {
    None,
    /// It was asked for; only a turn with an id can be interrupted.
    Starting {
        is_unwanted: bool,
    },
    Working {
        turn: String,
    },
}

impl Codex {
    /// `sandbox` is what the user chose, for the modes that leave the choice.
    pub fn new(request: &Request, sandbox: Option<String>) -> Self {
        Self {
            rpc: Rpc::new(None),
            resume: request.resume.clone(),
            cwd: request.cwd.clone(),
            model: request.options.model.clone(),
            permissions: request.permissions.clone(),
            has_changed: false,
            sandbox,
            thread: None,
            run: CodexTurn::None,
            asks: HashMap::new(),
            waiting: VecDeque::new(),
            is_early: request.prompt.is_empty(),
            offers: Offers::default(),
            key: None,
        }
    }

    /// Logs in with this key before a thread is opened.
    pub fn with_key(mut self, key: Option<&str>) -> Self {
        self.key = key.map(|it| ApiKey(it.to_owned()));
        self
    }

    fn on_result(&mut self, asked: CodexRequest, result: Params<'_>, out: &mut Outbox) {
        match asked {
            CodexRequest::Initialize => {
                // This ends the handshake of the app server; all other requests follow it.
                self.rpc.notify("initialized", None::<()>, out);
                match self.key.take() {
                    Some(key) => self.log_in(&key, out),
                    None => self.begin(out),
                }
            }
            CodexRequest::Login => self.begin(out),
            CodexRequest::Models => self.offered(result.read_or_default()),
            CodexRequest::List => self.listed(&result.read_or_default(), out),
            CodexRequest::Open => self.opened(&result.read_or_default(), out),
            CodexRequest::Turn => {
                let started: Value = result.read_or_default();
                self.turn_started(wire::id_of(&started["turn"]), out);
            }
            CodexRequest::Interrupt => (),
        }
    }

    fn on_error(&mut self, asked: &CodexRequest, error: Error, out: &mut Outbox) {
        match asked {
            CodexRequest::Initialize | CodexRequest::List | CodexRequest::Open => {
                out.fail("request_failed", error.text());
            }
            CodexRequest::Login => {
                let words = error.text();
                out.fail("auth", format!("codex does not take the API key: {words}"));
            }
            // The reader sees the same error, and ends the run with it.
            CodexRequest::Turn => self.run_ended(out),
            // The turn may have ended by itself in the meantime, and models can be named unseen.
            CodexRequest::Interrupt | CodexRequest::Models => (),
        }
    }

    fn log_in(&mut self, key: &ApiKey, out: &mut Outbox) {
        let params = json!({"type": "apiKey", "apiKey": key.0});
        // What the reader and the journal get instead of the key.
        let shown = json!({"type": "apiKey"});
        let method = "account/login/start";
        (self.rpc).ask_private(CodexRequest::Login, method, params, shown, out);
    }

    fn begin(&mut self, out: &mut Outbox) {
        self.open_thread(out);
        if self.is_early {
            self.rpc
                .request(CodexRequest::Models, "model/list", json!({}), out);
        }
    }

    fn open_thread(&mut self, out: &mut Outbox) {
        match self.resume.clone() {
            Resume::Fresh => self.open_by("thread/start", None, out),
            Resume::Session(id) => self.open_by("thread/resume", Some(id), out),
            Resume::Fork(id) => self.open_by("thread/fork", Some(id), out),
            Resume::Latest => {
                let params = wire::newest_thread(&self.cwd);
                self.rpc
                    .request(CodexRequest::List, "thread/list", params, out);
            }
        }
    }

    fn open_by(&mut self, method: &str, thread: Option<String>, out: &mut Outbox) {
        // The thread is opened with the present limits.
        self.has_changed = false;
        let params = wire::open_thread(
            thread.as_deref(),
            &self.cwd,
            &self.permissions,
            self.sandbox.as_deref(),
            self.model.take(),
        );
        self.rpc.request(CodexRequest::Open, method, params, out);
    }

    fn listed(&mut self, list: &Value, out: &mut Outbox) {
        match list["data"].get(0) {
            Some(newest) => self.open_by("thread/resume", Some(wire::id_of(newest)), out),
            None => {
                let cwd = self.cwd.display();
                let text = format!("no session of codex in `{cwd}`; start a new one");
                out.fail("not_found", text);
            }
        }
    }

    fn offered(&mut self, list: wire::ModelList) {
        let model = |it: wire::Model| Offer {
            id: it.id,
            name: it.display_name,
            description: it.description,
        };
        let first = list.data.iter().find(|it| it.is_default);
        self.offers = Offers {
            model: first.map(|it| it.id.clone()),
            models: list.data.into_iter().map(model).collect(),
            commands: Vec::new(),
        };
    }

    fn opened(&mut self, opened: &Value, out: &mut Outbox) {
        let id = wire::id_of(&opened["thread"]);
        if id.is_empty() {
            let text = "codex opened a thread without an id".to_owned();
            return out.fail("no_session", text);
        }
        self.thread = Some(id);
        self.next(out);
    }

    fn next(&mut self, out: &mut Outbox) {
        let (Some(thread), CodexTurn::None) = (&self.thread, &self.run) else {
            return;
        };
        if let Some(prompt) = self.waiting.pop_front() {
            self.run = CodexTurn::Starting { is_unwanted: false };
            let changes = wire::Changes {
                model: self.model.take(),
                limits: std::mem::take(&mut self.has_changed)
                    .then_some((&self.permissions, self.sandbox.as_deref())),
            };
            let params = wire::start_turn(thread, &prompt, changes);
            self.rpc
                .request(CodexRequest::Turn, "turn/start", params, out);
        }
    }

    fn turn_started(&mut self, turn: String, out: &mut Outbox) {
        // The turn may be over already, if it ended before the answer that names it.
        let CodexTurn::Starting { is_unwanted } = self.run else {
            return;
        };
        self.run = CodexTurn::Working { turn };
        if is_unwanted {
            self.stop(out);
        }
    }

    fn stop(&mut self, out: &mut Outbox) {
        if let (Some(thread_id), CodexTurn::Working { turn }) = (&self.thread, &self.run) {
            let params = json!({"threadId": thread_id, "turnId": turn});
            self.rpc
                .request(CodexRequest::Interrupt, "turn/interrupt", params, out);
        }
    }

    fn on_notification(&mut self, method: &str, params: &Notification, out: &mut Outbox) {
        // Sub-agents have threads of their own.
        if params.thread_id != self.thread {
            return;
        }
        match method {
            "turn/completed" => self.run_ended(out),
            "serverRequest/resolved" => {
                self.asks.remove(&params.request_id.to_string());
            }
            _ => (),
        }
    }

    /// The turn is over; Codex withdraws by itself what it asked in it.
    fn run_ended(&mut self, out: &mut Outbox) {
        self.run = CodexTurn::None;
        self.asks.clear();
        self.next(out);
    }
}

impl Dialogue for Codex {
    fn open(&mut self, out: &mut Outbox) {
        let params = wire::initialize();
        self.rpc
            .request(CodexRequest::Initialize, "initialize", params, out);
    }

    fn line(&mut self, line: &str, out: &mut Outbox) {
        // Requests and answers have an id; of the notifications, which are most lines, two matter.
        let [completed, resolved] = ["\"turn/completed\"", "\"serverRequest/resolved\""];
        if !may_hold(line, &["\"id\"", completed, resolved]) {
            return;
        }
        match rpc::read(line) {
            Some(Message::Request { id, method, params }) => {
                self.on_request(&id, &method, params, out)
            }
            Some(Message::Notification { method, params }) => {
                if matches!(&*method, "turn/completed" | "serverRequest/resolved") {
                    self.on_notification(&method, &params.read_or_default(), out);
                }
            }
            Some(Message::Answer { id, result }) => match (self.rpc.answered(&id), result) {
                (Some(asked), Ok(result)) => self.on_result(asked, result, out),
                (Some(asked), Err(error)) => self.on_error(&asked, error, out),
                (None, _) => (),
            },
            None => (),
        }
    }

    fn prompt(&mut self, prompt: &Prompt, out: &mut Outbox) {
        self.waiting.push_back(prompt.clone());
        self.next(out);
    }

    fn interrupt(&mut self, out: &mut Outbox) -> bool {
        match &mut self.run {
            CodexTurn::None => return false,
            CodexTurn::Starting { is_unwanted } => *is_unwanted = true,
            CodexTurn::Working { .. } => self.stop(out),
        }
        true
    }

    fn settle(
        &mut self,
        ask: &str,
        _: Option<&RawValue>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled> {
        let wanted = self.asks.get(ask).ok_or(NotSettled::NotOpen)?;
        // An answer that does not fit leaves the ask open, for a better one.
        wanted.settle(&self.rpc, answer, out)?;
        self.asks.remove(ask);
        Ok(())
    }

    fn set_model(&mut self, model: &str, _: &mut Outbox) -> bool {
        self.model = Some(model.to_owned());
        true
    }

    fn set_mode(&mut self, mode: Mode, _: &mut Outbox) -> bool {
        self.permissions.mode = mode;
        // Codex takes new limits with a turn, so they wait for the next one.
        self.has_changed = true;
        true
    }

    fn offers(&self) -> Offers {
        self.offers.clone()
    }
}
