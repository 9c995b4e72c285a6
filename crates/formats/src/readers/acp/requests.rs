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
use crate::readers::recent::Recent;
use crate::wire::lenient::{Any, List};

/// Requests that wait for an answer, of each side.
const MAX_WAITING: usize = 256;
/// Choices of a permission that are remembered.
const MAX_OPTIONS: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct PendingRequests {
    pub(super) of_client: Recent<(String, ClientRequest), MAX_WAITING>,
    of_agent: Recent<(String, AgentRequest), MAX_WAITING>,
    /// The prompt that the run answers.
    pub(super) running: Option<String>,
    /// Prompts that were sent while a run was going on.
    pub(super) queued: VecDeque<PromptRequest>,
    pub(super) n_prompts: u64,
}

/// What a client asked an agent for.
#[derive(Clone, Debug)]
pub(super) enum ClientRequest {
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
    pub(super) fn method<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let params: Params<'c> = line.params.parse().unwrap_or_default();
        let method = line.method.as_deref().unwrap_or_default();
        let id = line.id.0.map(|it| it.get());
        match (method, id) {
            ("session/update", _) => {
                cx.keep("params._meta", params.meta);
                let update = params.update.parse().unwrap_or_default();
                self.update(cx, params.session_id.as_deref(), update);
            }
            ("session/request_permission" | "elicitation/create", None) => {
                self.lifecycle.unmapped(cx, "a question without an id");
            }
            ("session/request_permission", Some(id)) => self.permission(cx, id, params),
            ("elicitation/create", Some(id)) => self.question(cx, id, &params, line.params),
            ("session/prompt", _) => self.prompt(cx, id, &params),
            ("session/cancel", _) => {
                cx.origin = Origin::Client;
                // A stop between two prompts stops nothing: the next run must not count as aborted.
                self.was_cancelled |= self.lifecycle.has_run();
                let text = "the client asked for a stop";
                self.lifecycle
                    .raise_with_message(cx, Level::Info, "cancel", text);
            }
            // Adapters report once whether the user is logged in.
            ("auth/status_update" | "_auth/status_update", _) => {
                let text = "the agent told whether it is logged in";
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "auth_status", text);
            }
            _ => match self.client_request(cx, method, &params) {
                Some(request) => self.on_client_request(cx, id, request, method),
                None => self.on_agent_request(cx, id, method),
            },
        }
    }

    /// What a client asks for; none for what an agent does.
    fn client_request(
        &mut self,
        cx: &FrameContext<'_>,
        method: &str,
        params: &Params<'_>,
    ) -> Option<ClientRequest> {
        let cwd = params.cwd.owned();
        match method {
            "initialize" => Some(ClientRequest::Initialize),
            "authenticate" => Some(ClientRequest::Login),
            "session/new" | "session/fork" => {
                self.session.is_fork = method == "session/fork";
                // Some agents tell what a fork begins with, as if they loaded it.
                self.is_replay |= self.session.is_fork;
                Some(ClientRequest::NewSession { cwd })
            }
            "session/load" | "session/resume" => {
                self.is_replay |= method == "session/load";
                self.session.is_old = true;
                let id = params.session_id.owned();
                Some(ClientRequest::OldSession { id, cwd })
            }
            _ => {
                let is_sent = cx.direction == Some(Direction::ToAgent);
                (is_sent || is_of_client(method)).then_some(ClientRequest::Other)
            }
        }
    }

    fn on_agent_request(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>, method: &str) {
        if is_of_acp(method) || id.is_some() {
            // Files and terminals of the client are how the agent works, not what it did.
            if let Some(id) = id {
                self.requests
                    .of_agent
                    .push((id.to_owned(), AgentRequest::Other));
            }
            let text = format!("the agent asked: {method}");
            self.lifecycle
                .raise_with_message(cx, Level::Info, "request", text);
        } else if method.starts_with('_') {
            let text = format!("the agent's own notification: {method}");
            self.lifecycle
                .raise_with_message(cx, Level::Debug, "extension", text);
        } else {
            self.lifecycle.unmapped(cx, format!("method `{method}`"));
        }
    }

    /// A request of the client that begins no run.
    fn on_client_request(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: Option<&str>,
        request: ClientRequest,
        method: &str,
    ) {
        cx.origin = Origin::Client;
        if let Some(id) = id {
            self.requests.of_client.push((id.to_owned(), request));
        }
        let text = format!("the client asked: {method}");
        self.lifecycle
            .raise_with_message(cx, Level::Debug, "request", text);
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
        self.requests
            .of_client
            .push((id.clone(), ClientRequest::Prompt));
        // A prompt ends the history, also where the answer to `session/load` is not in the
        // recording.
        self.end_replay(cx);
        self.emit_skipped(cx);
        let prompt = PromptRequest {
            id,
            text: text.into_owned(),
            parts: parts.into_iter().map(Part::into_owned).collect(),
            at: cx.at,
        };
        // One prompt is worked on at a time; agents keep the others until then.
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
        self.show_input(cx, call);
        let options: List<wire::PermissionOption<'c>> = params.options.parse().unwrap_or_default();
        let own = |it: Option<&str>| it.unwrap_or_default().to_owned();
        let options: Vec<(String, String)> = (options.0.iter().take(MAX_OPTIONS))
            .map(|it| (own(it.option_id.as_deref()), own(it.kind.as_deref())))
            .collect();
        // Suggestions are what a client may ask to remember; without the option nothing would be.
        let is_lasting = options.iter().any(|(_, kind)| kind == "allow_always");
        let request = AgentRequest::Permission { options };
        self.requests.of_agent.push((id.to_owned(), request));
        let tool = self.lifecycle.open_tool(&item);
        let title = update.title.text();
        let title = title.or_else(|| tool.map(|it| it.class.title.clone()));
        let title = title.filter(|it| !it.is_blank());
        let title = title.unwrap_or(Text::new("permission"));
        let name = tool.map_or(Cow::Borrowed("tool"), |it| it.name.clone());
        let kind = match update.kind.as_deref() {
            Some("switch_mode") => AskKind::Plan,
            Some(_) | None => AskKind::Permission,
        };
        let known = tool.and_then(|it| it.input.clone());
        if let Some(path) = self.lifecycle.path_of(&item) {
            cx.path = Cow::Owned(path.to_vec());
        }
        let ask = Ask {
            item: (!call.is_empty()).then_some(item),
            input: update.raw_input.raw().or(known),
            suggestions: params.options.raw().filter(|_| is_lasting),
            ..Ask::new(ask_id(id), kind, name, title)
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
        (self.requests.of_agent).push((id.to_owned(), AgentRequest::Answer));
        let title = params.message.text().filter(|it| !it.is_blank());
        let title = title.unwrap_or(Text::new("question"));
        let ask = Ask {
            input: whole.raw(),
            ..Ask::new(ask_id(id), AskKind::Question, "elicitation", title)
        };
        self.lifecycle.ask(cx, ask);
    }

    pub(super) fn response<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.id.0.map_or("", |it| it.get());
        let outcome: Outcome<'c> = line.result.parse().unwrap_or_default();
        // Both sides count from small numbers: an id alone may fit a request of either.
        let is_to_agent = match cx.direction {
            Some(direction) => direction == Direction::ToAgent,
            None if outcome.stop_reason.0.is_some() => false,
            None if outcome.outcome.0.is_some() => true,
            None => !self.requests.of_client.has(id) && self.requests.of_agent.has(id),
        };
        if is_to_agent {
            cx.origin = Origin::Client;
            return self.answer(cx, id, outcome, line);
        }
        let asked = self.requests.of_client.take(id);
        let is_failed = line.error.0.is_some();
        match asked {
            Some(ClientRequest::Prompt) => self.on_prompt_response(cx, id, line, outcome),
            // A request that was not recorded: only a prompt's answer has a stop reason, and an
            // error without a known request is taken for one.
            None if is_failed || outcome.stop_reason.0.is_some() => {
                self.on_prompt_response(cx, id, line, outcome);
            }
            Some(asked) if is_failed => {
                self.refused(&asked, line);
                let error: wire::Error<'c> = line.error.parse().unwrap_or_default();
                let text = error.message.text().unwrap_or_default();
                self.lifecycle
                    .raise_with_message(cx, Level::Error, "request_failed", text);
            }
            Some(ClientRequest::Initialize) => {
                let version = outcome.agent_info.version.0.or(outcome.info.version.0);
                self.session.version = version.map(Cow::into_owned);
                let text = "the agent introduced itself";
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "response", text);
            }
            Some(ClientRequest::NewSession { cwd }) => {
                self.opened(cx, outcome.session_id.owned(), cwd, &outcome, line.result);
                self.history_ended(cx);
            }
            Some(ClientRequest::OldSession { id, cwd }) => {
                self.opened(cx, id, cwd, &outcome, line.result);
                self.history_ended(cx);
            }
            Some(ClientRequest::Login | ClientRequest::Other) | None => {
                self.configured(&outcome.config_options.0);
                let text = "the agent answered";
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "response", text);
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
        // A later `session/new` may still succeed, after a login for example; `opened` clears it.
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
        let session = &mut self.session;
        session.cwd = cwd.or(session.cwd.take());
        session.mode = outcome.modes.current.owned().or(session.mode.take());
        session.model = outcome.models.current.owned().or(session.model.take());
        self.configured(&outcome.config_options.0);
        let Some(id) = id else { return };
        cx.keep("result", whole);
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
    ) {
        let (decision, input) = match self.requests.of_agent.take(id) {
            Some(AgentRequest::Permission { options }) => {
                let selected: wire::Selected<'c> = outcome.outcome.parse().unwrap_or_default();
                (decision(&selected, &options, line.error.0.is_some()), None)
            }
            Some(AgentRequest::Answer) => {
                let decision = match outcome.action.as_deref() {
                    Some("accept") => Decision::Allowed,
                    Some("decline") => Decision::Denied,
                    Some(_) | None => Decision::Withdrawn,
                };
                (decision, outcome.content.raw())
            }
            Some(AgentRequest::Other) | None => {
                let text = "the client answered";
                return self
                    .lifecycle
                    .raise_with_message(cx, Level::Debug, "response", text);
            }
        };
        let key = ask_id(id);
        if decision == Decision::Denied
            && let Some(item) = self.lifecycle.item_of_ask(key.as_str())
        {
            self.calls.deny(&item);
        }
        let settled = AskSettled {
            input,
            ..AskSettled::new(key, decision)
        };
        self.lifecycle.settle(cx, settled);
    }
}

fn decision(
    selected: &wire::Selected<'_>,
    options: &[(String, String)],
    is_failed: bool,
) -> Decision {
    // Cancelled, or answered with an error: the client took no decision.
    if is_failed || selected.outcome.as_deref() != Some("selected") {
        return Decision::Withdrawn;
    }
    let chosen = selected.option_id.as_deref().unwrap_or_default();
    let option = options.iter().find(|(id, _)| id == chosen);
    // Without the option, which the bound may have cut, its id is the only hint.
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
