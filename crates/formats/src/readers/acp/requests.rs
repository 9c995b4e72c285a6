//! Requests of both sides and their answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use model::{
    Ask, AskId, AskKind, AskSettled, Decision, ItemId, Level, Origin, Part, Raw, Text, Timestamp,
};

use super::wire::{self, Line, Outcome, Params};
use super::{Acp, FrameContext};
use crate::readers::acp_tool_content;
use crate::readers::content;
use crate::readers::input::Direction;
use crate::readers::machine::MessageReader as _;
use crate::wire::lenient::{Any, List};

/// Requests that wait for an answer, of each side.
const MAX_WAITING: usize = 256;
/// Choices of a permission that are remembered.
const MAX_OPTIONS: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct PendingRequests {
    of_client: VecDeque<(String, ClientRequest)>,
    of_agent: VecDeque<(String, AgentRequest)>,
    /// The prompt that the run answers.
    pub(super) running: Option<String>,
    /// Prompts that were sent while a run was going on.
    pub(super) queued: VecDeque<PromptRequest>,
    pub(super) n_prompts: u64,
}

/// What a client asked an agent for.
#[derive(Clone, Debug)]
enum ClientRequest {
    Initialize,
    Login,
    NewSession {
        cwd: Option<String>,
    },
    OldSession {
        id: Option<String>,
        cwd: Option<String>,
    },
    Prompt,
    Other,
}

/// What an agent asked a client for.
#[derive(Clone, Debug)]
enum AgentRequest {
    Permission { options: Vec<(String, String)> },
    Answer,
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct PromptRequest {
    pub(super) id: String,
    pub(super) text: Text<'static>,
    pub(super) parts: Vec<Part<'static>>,
    pub(super) at: Option<Timestamp>,
}

/// True for the methods that only ACP has.
pub(super) fn is_of_acp(method: &str) -> bool {
    matches!(
        method,
        "session/update"
            | "session/new"
            | "session/load"
            | "session/resume"
            | "session/prompt"
            | "session/cancel"
            | "session/request_permission"
            | "session/set_mode"
            | "session/set_config_option"
            | "session/list"
            | "session/close"
            | "session/delete"
            | "fs/read_text_file"
            | "fs/write_text_file"
            | "terminal/create"
            | "terminal/output"
            | "terminal/wait_for_exit"
            | "terminal/kill"
            | "terminal/release"
            | "elicitation/complete"
    )
}

impl Acp {
    pub(super) fn method<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>, text: &'c str) {
        let params: Params<'c> = line.params.parse().unwrap_or_default();
        let method = line.method.as_deref().unwrap_or_default();
        let id = line.id.0.map(|it| it.get());
        match method {
            "session/update" => {
                if let Some(meta) = params.meta.raw() {
                    cx.extra.push((Cow::Borrowed("params._meta"), meta));
                }
                let update = params.update.parse().unwrap_or_default();
                self.update(cx, params.session_id.as_deref(), update, text);
            }
            "session/request_permission" => match id {
                Some(id) => self.permission(cx, id, params),
                None => self
                    .lifecycle
                    .unmapped(cx, "a question without an id".to_owned(), text),
            },
            "elicitation/create" => match id {
                Some(id) => self.question(cx, id, &params, line.params),
                None => self
                    .lifecycle
                    .unmapped(cx, "a question without an id".to_owned(), text),
            },
            "initialize" => self.on_client_request(cx, id, ClientRequest::Initialize, method, text),
            "authenticate" => self.on_client_request(cx, id, ClientRequest::Login, method, text),
            "session/new" | "session/fork" => {
                self.session.is_fork = method == "session/fork";
                // Some agents tell what a fork begins with, as if they loaded it.
                self.is_replay |= self.session.is_fork;
                let cwd = params.cwd.as_deref().map(str::to_owned);
                self.on_client_request(cx, id, ClientRequest::NewSession { cwd }, method, text);
            }
            "session/load" | "session/resume" => {
                self.is_replay |= method == "session/load";
                self.session.is_old = true;
                let asked = ClientRequest::OldSession {
                    id: params.session_id.as_deref().map(str::to_owned),
                    cwd: params.cwd.as_deref().map(str::to_owned),
                };
                self.on_client_request(cx, id, asked, method, text);
            }
            "session/prompt" => self.prompt(cx, id, &params),
            "session/cancel" => {
                cx.origin = Origin::Client;
                self.was_cancelled |= self.lifecycle.has_run();
                let said = Text::new("the client asked for a stop");
                self.lifecycle
                    .notice_with_frame(cx, Level::Info, "cancel", said, text);
            }
            // Adapters report once whether the user is logged in.
            "auth/status_update" | "_auth/status_update" => {
                let said = Text::new("the agent told whether it is logged in");
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "auth_status", said, text);
            }
            _ if is_of_client(method) || cx.direction == Some(Direction::ToAgent) => {
                self.on_client_request(cx, id, ClientRequest::Other, method, text);
            }
            _ if is_of_acp(method) || id.is_some() => {
                // Files and terminals of the client are how the agent works, not what it did.
                if let Some(id) = id {
                    self.requests.insert(id, AgentRequest::Other);
                }
                let said = Text::new(format!("the agent asked: {method}"));
                self.lifecycle
                    .notice_with_frame(cx, Level::Info, "request", said, text);
            }
            _ if method.starts_with('_') => {
                let said = Text::new(format!("the agent's own notification: {method}"));
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "extension", said, text);
            }
            _ => self
                .lifecycle
                .unmapped(cx, format!("method `{method}`"), text),
        }
    }

    /// A request of the client that begins no run.
    fn on_client_request(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: Option<&str>,
        asked: ClientRequest,
        method: &str,
        text: &str,
    ) {
        cx.origin = Origin::Client;
        if let Some(id) = id {
            self.requests.ask(id, asked);
        }
        let said = Text::new(format!("the client asked: {method}"));
        self.lifecycle
            .notice_with_frame(cx, Level::Debug, "request", said, text);
    }

    fn prompt<'c>(&mut self, cx: &mut FrameContext<'c>, id: Option<&str>, params: &Params<'c>) {
        cx.origin = Origin::Client;
        if !self.same_session(cx, params.session_id.as_deref()) {
            return;
        }
        let blocks: List<Any<'c>> = params.prompt.parse().unwrap_or_default();
        let blocks = blocks.0.into_iter().filter_map(|it| it.0);
        let (text, parts) = content::join_text(blocks.map(acp_tool_content::piece).collect());
        let id = id.unwrap_or_default().to_owned();
        self.requests.ask(&id, ClientRequest::Prompt);
        self.end_replay(cx);
        self.emit_skipped(cx);
        let prompt = PromptRequest {
            id,
            text: text.into_owned(),
            parts: parts.into_iter().map(Part::into_owned).collect(),
            at: cx.at,
        };
        if self.lifecycle.has_run() && self.requests.queued.len() < MAX_WAITING {
            self.requests.queued.push_back(prompt);
        } else {
            self.begin(cx, prompt);
        }
    }

    fn permission<'c>(&mut self, cx: &mut FrameContext<'c>, id: &str, params: Params<'c>) {
        if !self.same_session(cx, params.session_id.as_deref()) {
            return;
        }
        let mut update: wire::Update<'c> = params.tool_call.parse().unwrap_or_default();
        let mut meta = self.enter(cx, update.meta);
        update.name.0 = update.name.0.or(meta.take_tool_name());
        let call = update.tool_call_id.as_deref().unwrap_or_default();
        let item = ItemId::new(call.to_owned());
        // Some agents introduce a call by the question about it; of one that is known, the question
        // may tell less than the call did, or what the call is to do.
        update.status.take();
        if !call.is_empty() && !self.calls.is_known(call) {
            self.upsert(cx, &update, true);
        } else {
            self.merge_question(cx, call, &update);
        }
        self.is_whole(cx, call);
        let options: List<wire::PermissionOption<'c>> = params.options.parse().unwrap_or_default();
        let own = |it: Option<&str>| it.unwrap_or_default().to_owned();
        let options: Vec<(String, String)> = (options.0.iter().take(MAX_OPTIONS))
            .map(|it| (own(it.option_id.as_deref()), own(it.kind.as_deref())))
            .collect();
        let is_lasting = options.iter().any(|(_, kind)| kind == "allow_always");
        self.requests
            .insert(id, AgentRequest::Permission { options });
        let tool = self.lifecycle.open_tool(&item);
        let title = update.title.raw().map(Text::from);
        let title = title.or_else(|| tool.map(|it| it.class.title.clone()));
        let name = tool.map(|it| it.name.clone().into_owned());
        let kind = match update.kind.as_deref() {
            Some("switch_mode") => AskKind::Plan,
            Some(_) | None => AskKind::Permission,
        };
        let input = update
            .raw_input
            .raw()
            .or_else(|| tool.and_then(|it| it.input.clone()));
        if let Some(path) = self.lifecycle.path_of(&item) {
            cx.path = Cow::Owned(path.to_vec());
        }
        let ask = Ask {
            id: ask_id(id),
            kind,
            item: (!call.is_empty()).then_some(item),
            tool: Cow::Owned(name.unwrap_or_else(|| "tool".to_owned())),
            title: title
                .filter(|it| !it.is_blank())
                .unwrap_or(Text::new("permission")),
            description: None,
            input,
            suggestions: params.options.raw().filter(|_| is_lasting),
            deadline: None,
        };
        self.lifecycle.ask(cx, ask);
    }

    /// A form for the user.
    fn question<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        params: &Params<'c>,
        whole: Any<'c>,
    ) {
        self.requests.insert(id, AgentRequest::Answer);
        let title = params.message.raw().map(Text::from);
        let ask = Ask {
            id: ask_id(id),
            kind: AskKind::Question,
            item: None,
            tool: Cow::Borrowed("elicitation"),
            title: title
                .filter(|it| !it.is_blank())
                .unwrap_or(Text::new("question")),
            description: None,
            input: whole.raw(),
            suggestions: None,
            deadline: None,
        };
        self.lifecycle.ask(cx, ask);
    }

    pub(super) fn response<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        text: &'c str,
    ) {
        let id = line.id.0.map_or("", |it| it.get());
        let outcome: Outcome<'c> = line.result.parse().unwrap_or_default();
        let is_to_agent = match cx.direction {
            Some(direction) => direction == Direction::ToAgent,
            None if outcome.stop_reason.0.is_some() => false,
            None if outcome.outcome.0.is_some() => true,
            None => !self.requests.is_asked(id) && self.requests.is_wanted(id),
        };
        if is_to_agent {
            cx.origin = Origin::Client;
            return self.answer(cx, id, outcome, line, text);
        }
        let asked = self.requests.take_asked(id);
        let is_failed = line.error.0.is_some();
        match asked {
            Some(ClientRequest::Prompt) => self.on_prompt_response(cx, id, line, outcome),
            None if is_failed || outcome.stop_reason.0.is_some() => {
                self.on_prompt_response(cx, id, line, outcome);
            }
            Some(asked) if is_failed => {
                self.refused(&asked, line);
                let error: wire::Error<'c> = line.error.parse().unwrap_or_default();
                let said = error.message.raw().map(Text::from).unwrap_or_default();
                self.lifecycle
                    .notice_with_frame(cx, Level::Error, "request_failed", said, text);
            }
            Some(ClientRequest::Initialize) => {
                let version = outcome.agent_info.version.0.or(outcome.info.version.0);
                self.session.version = version.map(Cow::into_owned);
                let said = Text::new("the agent introduced itself");
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "response", said, text);
            }
            Some(ClientRequest::NewSession { cwd }) => {
                let id = outcome.session_id.as_deref().map(str::to_owned);
                self.opened(cx, id, cwd, &outcome, line.result);
                self.history_ended(cx);
            }
            Some(ClientRequest::OldSession { id, cwd }) => {
                self.opened(cx, id, cwd, &outcome, line.result);
                self.history_ended(cx);
            }
            Some(ClientRequest::Login | ClientRequest::Other) | None => {
                self.configured(&outcome.config_options.0);
                let said = Text::new("the agent answered");
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "response", said, text);
            }
        }
    }

    /// Without a session there is no run; the reason may be reported when the stream ends.
    fn refused(&mut self, asked: &ClientRequest, line: &Line<'_>) {
        match asked {
            ClientRequest::Initialize | ClientRequest::Login => (),
            ClientRequest::NewSession { .. } | ClientRequest::OldSession { .. } => {
                self.is_replay = false
            }
            ClientRequest::Prompt | ClientRequest::Other => return,
        }
        self.lifecycle.session.refusal = super::end::refusal(line);
    }

    /// The agent has a session.
    fn opened<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: Option<String>,
        cwd: Option<String>,
        outcome: &Outcome<'c>,
        whole: Any<'c>,
    ) {
        self.lifecycle.session.refusal = None;
        let own = |it: &crate::wire::lenient::Str<'_>| it.as_deref().map(str::to_owned);
        let session = &mut self.session;
        session.cwd = cwd.or(session.cwd.take());
        session.mode = own(&outcome.modes.current).or(session.mode.take());
        session.model = own(&outcome.models.current).or(session.model.take());
        self.configured(&outcome.config_options.0);
        let Some(id) = id else { return };
        cx.extra
            .extend(whole.raw().map(|it| (Cow::Borrowed("result"), it)));
        let tracker = &mut self.lifecycle.session;
        if self.session.is_fork || tracker.expected().is_none_or(|it| it == id) {
            // A client may open another session while one works; the later one is read on.
            tracker.adopt(&id);
            self.emit_session(cx);
        } else {
            self.fail_mismatch(cx, &id);
        }
    }

    /// The client answers the agent.
    fn answer<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        outcome: Outcome<'c>,
        line: &Line<'c>,
        text: &'c str,
    ) {
        let wanted = self.requests.take_wanted(id);
        let settled = |decision, input| AskSettled {
            id: ask_id(id),
            decision,
            message: None,
            input,
            remembered: None,
        };
        let decision = match wanted {
            Some(AgentRequest::Permission { options }) => {
                let selected: wire::Selected<'c> = outcome.outcome.parse().unwrap_or_default();
                decision(&selected, &options, line.error.0.is_some())
            }
            Some(AgentRequest::Answer) => {
                let decision = match outcome.action.as_deref() {
                    Some("accept") => Decision::Allowed,
                    Some("decline") => Decision::Denied,
                    Some(_) | None => Decision::Withdrawn,
                };
                let input = outcome.content.raw();
                return self.lifecycle.settle(cx, settled(decision, input));
            }
            Some(AgentRequest::Other) | None => {
                let said = Text::new("the client answered");
                return self
                    .lifecycle
                    .notice_with_frame(cx, Level::Debug, "response", said, text);
            }
        };
        let key = ask_id(id);
        if decision == Decision::Denied
            && let Some(item) = self.lifecycle.item_of_ask(key.as_str())
        {
            self.calls.deny(&item);
        }
        self.lifecycle.settle(cx, settled(decision, None));
    }
}

impl PendingRequests {
    fn ask(&mut self, id: &str, asked: ClientRequest) {
        if self.of_client.len() >= MAX_WAITING {
            self.of_client.pop_front();
        }
        self.of_client.push_back((id.to_owned(), asked));
    }

    fn insert(&mut self, id: &str, wanted: AgentRequest) {
        if self.of_agent.len() >= MAX_WAITING {
            self.of_agent.pop_front();
        }
        self.of_agent.push_back((id.to_owned(), wanted));
    }

    pub(super) fn is_asked(&self, id: &str) -> bool {
        self.of_client.iter().any(|it| it.0 == id)
    }

    fn is_wanted(&self, id: &str) -> bool {
        self.of_agent.iter().any(|it| it.0 == id)
    }

    fn take_asked(&mut self, id: &str) -> Option<ClientRequest> {
        let at = self.of_client.iter().position(|it| it.0 == id)?;
        self.of_client.remove(at).map(|it| it.1)
    }

    fn take_wanted(&mut self, id: &str) -> Option<AgentRequest> {
        let at = self.of_agent.iter().position(|it| it.0 == id)?;
        self.of_agent.remove(at).map(|it| it.1)
    }
}

fn decision(
    selected: &wire::Selected<'_>,
    options: &[(String, String)],
    is_failed: bool,
) -> Decision {
    if is_failed || selected.outcome.as_deref() != Some("selected") {
        return Decision::Withdrawn;
    }
    let chosen = selected.option_id.as_deref().unwrap_or_default();
    let option = options.iter().find(|(id, _)| id == chosen);
    match option.map_or(chosen, |(_, kind)| kind) {
        "allow_always" => Decision::AllowedAlways,
        kind if kind.starts_with("allow") => Decision::Allowed,
        _ => Decision::Denied,
    }
}

/// Requests that only clients make.
fn is_of_client(method: &str) -> bool {
    matches!(
        method,
        "logout"
            | "session/list"
            | "session/delete"
            | "session/close"
            | "session/set_mode"
            | "session/set_model"
            | "session/set_config_option"
            | "auth/login"
            | "auth/logout"
            | "$/cancel_request"
    )
}

/// linkspan writes the id of an ask into the id of the request.
fn ask_id(id: &str) -> AskId<'static> {
    let text = Text::from(Raw::parse(id.to_owned()));
    let text = text.to_str();
    AskId::new(text.strip_prefix("ask-").unwrap_or(&text).to_owned())
}
