//! The client's side of the Agent Client Protocol, version 1.
//!
//! First the handshake: `initialize`, a login where the agent wants one that needs no user, the
//! session, the model and the mode. Then prompts, one after the other. Of what a client can offer
//! there are only notices and compactions; files and terminals are the agent's own.

mod asks;
mod messages;
mod settings;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use formats::wire::acp::{self as wire, Initialized, Opened, SessionList, VERSION};
use formats::wire::json_rpc::{self, AUTH_REQUIRED, Error, Message, Params};

use self::asks::AcpAsk;
use self::settings::SessionSettings;
use super::rpc::{self, Rpc};
use super::{Dialogue, NotSettled, Outbox, may_hold};
use crate::request::{Answer, McpServer, Mode, Prompt, Request, Resume};
use serde_json::value::RawValue;

#[derive(Debug)]
pub struct Acp {
    rpc: Rpc<AcpRequest>,
    resume: Resume,
    cwd: PathBuf,
    mcp_servers: Vec<McpServer>,
    model: Option<String>,
    mode: Mode,
    agent: Initialized,
    has_logged_in: bool,
    /// The method to log in with, if the user has chosen one.
    login: Option<String>,
    session: Option<String>,
    offers: SessionSettings,
    /// Settings without a response yet; prompts wait for them.
    n_settings: usize,
    run: AcpTurn,
    asks: HashMap<String, AcpAsk>,
    waiting: VecDeque<Prompt>,
}

/// The purpose of a pending request.
#[derive(Debug)]
enum AcpRequest {
    Initialize,
    Login,
    List,
    /// The session; the id is known unless it is a new one.
    Open(Option<String>),
    /// A setting, by its name for users.
    Setting {
        what: String,
        /// Without it the agent may do more than it should.
        is_vital: bool,
    },
    Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcpTurn {
    None,
    Working,
    /// It was asked to stop, and may still ask before it does.
    Stopping,
}

impl Acp {
    pub fn new(request: &Request) -> Self {
        Self {
            rpc: Rpc::new(json_rpc::VERSION),
            resume: request.resume.clone(),
            cwd: request.cwd.clone(),
            mcp_servers: request.mcp_servers.clone(),
            model: request.options.model.clone(),
            mode: request.permissions.mode,
            agent: Initialized::default(),
            has_logged_in: false,
            login: None,
            session: None,
            offers: SessionSettings::default(),
            n_settings: 0,
            run: AcpTurn::None,
            asks: HashMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Logs in by this method of the agent's, should it want a login.
    pub fn with_login(mut self, method: Option<String>) -> Self {
        self.login = method;
        self
    }

    fn initialized(&mut self, agent: Initialized, out: &mut Outbox) {
        self.agent = agent;
        let version = self.agent.protocol_version;
        if version == VERSION {
            return self.open_session(out);
        }
        let text = format!(
            "the agent speaks version {version} of the Agent Client Protocol, not {VERSION}"
        );
        out.fail("protocol_version", text);
    }

    fn open_session(&mut self, out: &mut Outbox) {
        match self.resume.clone() {
            Resume::Fresh => {
                let params = wire::NewSession {
                    cwd: self.cwd.clone(),
                    mcp_servers: messages::servers(&self.mcp_servers),
                };
                self.rpc
                    .request(AcpRequest::Open(None), "session/new", params, out);
            }
            Resume::Session(id) => self.reopen(id, out),
            Resume::Latest if self.can().list.is_some() => {
                let params = wire::ListSessions {
                    cwd: Some(self.cwd.clone()),
                    cursor: None,
                };
                self.rpc
                    .request(AcpRequest::List, "session/list", params, out);
            }
            Resume::Latest => out.fail(
                "cannot_resume",
                "the agent does not list its sessions; resume one by its id".to_owned(),
            ),
            Resume::Fork(id) if self.can().fork.is_some() => {
                let params = self.old_session(&id);
                self.rpc
                    .request(AcpRequest::Open(None), "session/fork", params, out);
            }
            Resume::Fork(_) => out.fail(
                "cannot_fork",
                "the agent cannot fork sessions; resume it instead".to_owned(),
            ),
        }
    }

    fn old_session(&self, id: &str) -> wire::OldSession {
        wire::OldSession {
            session_id: id.to_owned(),
            cwd: self.cwd.clone(),
            mcp_servers: messages::servers(&self.mcp_servers),
        }
    }

    fn can(&self) -> &wire::SessionCapabilities {
        &self.agent.agent_capabilities.session_capabilities
    }

    /// Resumes a session, without its history where the agent supports that.
    fn reopen(&mut self, id: String, out: &mut Outbox) {
        let method = if self.can().resume.is_some() {
            "session/resume"
        } else if self.agent.agent_capabilities.load_session {
            "session/load"
        } else {
            let text = "the agent cannot resume sessions; start a new one".to_owned();
            return out.fail("cannot_resume", text);
        };
        let params = self.old_session(&id);
        self.rpc
            .request(AcpRequest::Open(Some(id.clone())), method, params, out);
    }

    fn listed(&mut self, list: SessionList, out: &mut Outbox) {
        let here = list.sessions.into_iter().filter(|it| it.cwd == self.cwd);
        // Agents that report no times list the newest first.
        let newest = here.rev().max_by(|a, b| a.updated_at.cmp(&b.updated_at));
        match newest {
            Some(it) => self.reopen(it.session_id, out),
            None => {
                let cwd = self.cwd.display();
                let text = format!("no session of the agent in `{cwd}`; start a new one");
                out.fail("not_found", text);
            }
        }
    }

    fn opened(&mut self, id: Option<String>, opened: Opened, out: &mut Outbox) {
        // `session/load` repeats the history, `session/resume` does not.
        let is_loaded = id.is_some() && self.can().resume.is_none();
        // The answer to `session/load` has no id: that of the request counts.
        let Some(id) = id.or(opened.session_id) else {
            let text = "the agent opened a session without an id".to_owned();
            return out.fail("no_session", text);
        };
        self.session = Some(id);
        self.offers = SessionSettings::new(opened.config_options, opened.modes, opened.models);
        if let Some(model) = self.model.take()
            && !self.ask_for_model(&model, out)
        {
            let text = format!("model `{model}` was not set: the agent does not offer a choice");
            out.warn("not_set", text);
        }
        // No mere warning as with the model: in another mode the agent may do what was forbidden.
        if !self.ask_for_mode(self.mode, out) {
            let (code, text) = match self.mode {
                Mode::Plan => (
                    "no_plan_mode",
                    "the agent has no mode for plans; let it ask instead",
                ),
                Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Listed | Mode::Allow => (
                    "no_asking_mode",
                    "the agent has no mode in which it asks; allow everything instead",
                ),
            };
            return out.fail(code, text.to_owned());
        }
        if is_loaded && self.n_settings == 0 {
            self.wait_for_history(out);
        }
        self.next(out);
    }

    fn on_error(&mut self, asked: AcpRequest, error: Error, out: &mut Outbox) {
        match asked {
            AcpRequest::Open(_) | AcpRequest::List
                if error.code == AUTH_REQUIRED && !self.has_logged_in =>
            {
                self.log_in(error, out);
            }
            // Not every agent names the unknown session, or this cause.
            AcpRequest::Open(Some(id)) => {
                let text = format!("session `{id}` was not opened: {}", error.text());
                out.fail("request_failed", text);
            }
            AcpRequest::Initialize
            | AcpRequest::Login
            | AcpRequest::Open(None)
            | AcpRequest::List => {
                out.fail("request_failed", error.text());
            }
            AcpRequest::Setting { what, is_vital } => {
                let text = format!("{what} was not set: {}", error.text());
                if is_vital {
                    return out.fail("not_set", text);
                }
                out.warn("not_set", text);
                self.setting_answered(out);
            }
            // The reader sees the same error, and ends the run with it.
            AcpRequest::Prompt => self.run_ended(out),
        }
    }

    /// Logs in by the method that was chosen, or by one that needs no user; fails with a list of
    /// the methods when there is neither.
    fn log_in(&mut self, error: Error, out: &mut Outbox) {
        // Once only: an agent that refuses again after its login would be asked for ever.
        self.has_logged_in = true;
        let methods = &self.agent.auth_methods;
        let method = match &self.login {
            Some(id) => methods.iter().find(|it| it.id == *id),
            None => methods.iter().find(|it| !messages::needs_user(it)),
        };
        if let Some(method) = method.filter(|it| !messages::is_terminal(it)) {
            let params = wire::Authenticate {
                method_id: method.id.clone(),
            };
            return self
                .rpc
                .request(AcpRequest::Login, "authenticate", params, out);
        }
        let ways: Vec<String> = methods.iter().map(messages::description).collect();
        let ways = ways.join(", or ");
        let advice = match (&self.login, method) {
            (Some(_), Some(terminal)) => {
                format!("; log in first: {}", messages::description(terminal))
            }
            (Some(id), None) if ways.is_empty() => {
                format!("; the agent has no login method `{id}`")
            }
            (Some(id), None) => format!("; the agent has no login method `{id}`, but: {ways}"),
            (None, _) if ways.is_empty() => String::new(),
            (None, _) if methods.iter().all(messages::is_terminal) => {
                format!("; log in first: {ways}")
            }
            (None, _) => format!(
                "; log in first: {ways}; linkspan does it with the method that `auth_method` in \
                 `[engines.acp.NAME]` of the config names"
            ),
        };
        let text = error.text() + &advice;
        out.fail("authentication_required", text);
    }

    /// Sends the prompt whose turn it is, if the agent can take one.
    fn next(&mut self, out: &mut Outbox) {
        // A prompt that overtakes a setting would be run with the old model or in the old mode.
        if self.n_settings > 0 || self.run != AcpTurn::None {
            return;
        }
        let Some(session) = &self.session else { return };
        if let Some(prompt) = self.waiting.pop_front() {
            self.run = AcpTurn::Working;
            let params = messages::prompt(session, &prompt);
            self.rpc
                .request(AcpRequest::Prompt, "session/prompt", params, out);
        }
    }

    /// The run has ended; its asks will not be answered by anyone else.
    fn run_ended(&mut self, out: &mut Outbox) {
        self.run = AcpTurn::None;
        self.withdraw_all(out);
        self.next(out);
    }

    fn on_result(&mut self, asked: AcpRequest, result: Params<'_>, out: &mut Outbox) {
        match asked {
            AcpRequest::Initialize => self.initialized(result.read_or_default(), out),
            // The session was refused for want of a login, so it is requested again.
            AcpRequest::Login => self.open_session(out),
            AcpRequest::List => self.listed(result.read_or_default(), out),
            AcpRequest::Open(id) => self.opened(id, result.read_or_default(), out),
            AcpRequest::Setting { .. } => self.setting_answered(out),
            AcpRequest::Prompt => self.run_ended(out),
        }
    }
}

impl Dialogue for Acp {
    fn open(&mut self, out: &mut Outbox) {
        let params = messages::initialize();
        self.rpc
            .request(AcpRequest::Initialize, "initialize", params, out);
    }

    fn line(&mut self, line: &str, out: &mut Outbox) {
        // Only requests and answers have an id, and most lines are neither.
        if !may_hold(line, &["\"id\""]) {
            return;
        }
        match rpc::read(line) {
            Some(Message::Request { id, method, params }) => {
                self.on_request(&id, &method, params, out)
            }
            Some(Message::Answer { id, result }) => match (self.rpc.answered(&id), result) {
                (Some(asked), Ok(result)) => self.on_result(asked, result, out),
                (Some(asked), Err(error)) => self.on_error(asked, error, out),
                (None, _) => (),
            },
            Some(Message::Notification { .. }) | None => (),
        }
    }

    fn prompt(&mut self, prompt: &Prompt, out: &mut Outbox) {
        self.waiting.push_back(prompt.clone());
        self.next(out);
    }

    fn interrupt(&mut self, out: &mut Outbox) -> bool {
        let (Some(session), true) = (&self.session, self.run != AcpTurn::None) else {
            return false;
        };
        self.run = AcpTurn::Stopping;
        let params = wire::OfSession {
            session_id: session.clone(),
        };
        // It has no answer of its own: the turn ends with the answer to its prompt.
        self.rpc.notify("session/cancel", Some(params), out);
        self.withdraw_all(out);
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

    fn set_model(&mut self, model: &str, out: &mut Outbox) -> bool {
        if self.session.is_some() {
            return self.ask_for_model(model, out);
        }
        // There is no session yet to set it in; `opened` does it.
        self.model = Some(model.to_owned());
        true
    }

    fn set_mode(&mut self, mode: Mode, out: &mut Outbox) -> bool {
        self.mode = mode;
        self.session.is_none() || self.ask_for_mode(mode, out)
    }

    fn offers(&self) -> super::Offers {
        self.offers.offers()
    }
}
