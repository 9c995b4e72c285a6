//! The app server: JSON-RPC without `jsonrpc`, with deltas, questions and several turns.
//!
//! Notifications that only report status become debug notices with their bytes. A message is
//! recognised by its content, not its direction, so that a log without directions can be read too.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Basis, Binding, Body, Channel, Decision, Item, ItemId, Level,
    Origin, Outcome, Plan, PlanEntry, PlanStatus, Raw, RunEnded, RunError, Scope, SessionBound,
    SessionId, Text, Tokens, Usage,
};

use super::end::tokens;
use super::items::Phase;
use super::{Codex, Direction, FrameContext, HostRequest, Line, MAX_WAITING, raw};
use crate::readers::machine::MessageReader as _;
use crate::tools::{self, ToolInput};
use crate::wire::codex as wire;
use crate::wire::lenient::Any;

/// True for what only Codex says.
pub(super) fn is_method(method: &str) -> bool {
    let known = [
        "thread/start",
        "thread/started",
        "thread/resume",
        "thread/fork",
        "thread/status/changed",
        "thread/tokenUsage/updated",
        "turn/start",
        "turn/started",
        "turn/completed",
        "turn/interrupt",
        "item/started",
        "item/completed",
        "item/agentMessage/delta",
        "configWarning",
        "remoteControl/status/changed",
    ];
    known.contains(&method)
}

/// True for what belongs to a turn and does not begin one.
fn is_of_turn(method: &str) -> bool {
    let of_turn = ["turn/completed", "turn/plan/updated", "turn/diff/updated"];
    method.starts_with("item/") || of_turn.contains(&method)
}

impl Codex {
    /// A line without a type: a notification, a request or an answer.
    pub(super) fn rpc<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
        direction: Direction,
    ) {
        let id = line.id.raw();
        let Some(method) = line.method.take() else {
            return match id {
                Some(id) => self.on_host_answer(cx, &id, line, text),
                None => self
                    .lifecycle
                    .unmapped(cx, "no type and no method".to_owned(), text),
            };
        };
        if self.lifecycle.is_over() && id.is_none() && is_of_turn(&method) {
            return self.lifecycle.after_end(cx);
        }
        let params = line.params.take();
        if self.is_elsewhere(&params) {
            let what = format!("`{method}` of another thread");
            return self.lifecycle.unmapped(cx, what, text);
        }
        match (&*method, id) {
            ("turn/interrupt", _) => {
                cx.origin = Origin::Client;
                self.was_interrupted |= self.lifecycle.has_run();
                let said = Text::new("the host asked for an interrupt");
                self.notice(cx, Level::Info, "interrupt", said, raw(text));
            }
            (_, Some(id)) if direction == Direction::FromAgent && is_question(&method) => {
                self.on_server_request(cx, &method, &id, params, text);
            }
            (_, Some(id)) => {
                cx.origin = Origin::Client;
                self.on_host_request(&method, &id);
                let said = Text::new(format!("the host asked: {method}"));
                self.notice(cx, Level::Debug, "request", said, raw(text));
            }
            (_, None) => self.on_notification(cx, &method, params, text),
        }
    }

    /// Remembers a request whose refusal ends the run, or keeps one from beginning.
    fn on_host_request(&mut self, method: &str, id: &Raw<'_>) {
        self.is_server = true;
        let asked = match method {
            "initialize" | "thread/start" | "thread/fork" => HostRequest::Thread,
            "thread/resume" => HostRequest::OldThread,
            "turn/start" => HostRequest::Turn,
            _ => return,
        };
        if self.requests.len() >= MAX_WAITING {
            self.requests.pop_front();
        }
        self.requests.push_back((id.get().to_owned(), asked));
    }

    fn take_requested(&mut self, id: &Raw<'_>) -> Option<HostRequest> {
        let at = self.requests.iter().position(|it| it.0 == id.get())?;
        self.requests.remove(at).map(|it| it.1)
    }

    /// True when a message is about a thread that is not the one being read.
    fn is_elsewhere(&self, params: &wire::Params<'_>) -> bool {
        let known = self.lifecycle.session.id();
        let told = params.thread_id.as_deref();
        matches!((known, told), (Some(known), Some(told)) if known != told)
    }

    fn on_notification<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        method: &str,
        mut params: wire::Params<'c>,
        text: &'c str,
    ) {
        match method {
            "thread/started" => {
                self.on_thread_info(cx, params.thread.take(), None, None, None, text)
            }
            "turn/started" => self.turn_started(cx),
            "turn/completed" => self.turn_over(cx, params.turn.take(), text),
            "item/started" => self.item(cx, params.item.take(), Phase::Started, text),
            "item/updated" => self.item(cx, params.item.take(), Phase::Updated, text),
            "item/completed" => self.item(cx, params.item.take(), Phase::Completed, text),
            "item/agentMessage/delta"
            | "item/reasoning/summaryTextDelta"
            | "item/reasoning/textDelta" => self.piece(cx, params, Channel::Text, text),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                self.piece(cx, params, Channel::Output, text);
            }
            "item/reasoning/summaryPartAdded" => {
                cx.extra.clear();
                if let (Some(item), Some(1..)) = (params.item_id.0, params.summary_index.as_u64()) {
                    let (item, between) = (ItemId::new(item), Text::new("\n"));
                    self.lifecycle.delta(cx, &item, Channel::Text, between);
                }
            }
            "turn/plan/updated" => self.on_plan(cx, params),
            "thread/tokenUsage/updated" => self.on_usage(cx, params.token_usage.take()),
            "serverRequest/resolved" => self.resolved(cx, params.request_id),
            "error" => self.on_error(cx, params, text),
            "configWarning" | "deprecationNotice" | "warning" => {
                let said = params.summary.raw().or(params.message.raw());
                let said = said.map(Text::from).unwrap_or_default();
                self.notice(cx, Level::Warning, "config_warning", said, raw(text));
            }
            _ if is_news(method) => {
                cx.extra.clear();
                let said = Text::new(method.to_owned());
                self.notice(cx, Level::Debug, "news", said, raw(text));
            }
            _ => self
                .lifecycle
                .unmapped(cx, format!("method `{method}`"), text),
        }
    }

    /// A thread introduces itself, in a notification or in the answer to a request.
    fn on_thread_info<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut thread: wire::Thread<'c>,
        model: Option<Cow<'c, str>>,
        permission_mode: Option<Cow<'c, str>>,
        asked: Option<HostRequest>,
        text: &'c str,
    ) {
        let Some(id) = thread.id.take().filter(|it| !it.is_empty()) else {
            return self
                .lifecycle
                .unmapped(cx, "thread without an id".to_owned(), text);
        };
        if self.lifecycle.has_run() && self.lifecycle.session.id() != Some(&*id) {
            return self
                .lifecycle
                .unmapped(cx, "another thread".to_owned(), text);
        }
        let how = match asked {
            // A thread that was forked once says so whenever it is resumed.
            Some(HostRequest::OldThread) => Binding::Resume,
            _ if thread.forked_from.0.is_some() => Binding::Fork,
            _ => Binding::Init,
        };
        // A thread tells dozens of things about its place in a user interface.
        cx.extra.clear();
        let cwd = thread.cwd.take();
        let bound = SessionBound {
            model: thread.model.take().or(model),
            cwd: cwd.clone(),
            version: thread.version.take(),
            permission_mode,
            ..SessionBound::new(SessionId::new(id), how)
        };
        if self.bind(cx, bound) && cwd.is_some() {
            self.cwd = cwd.map(Cow::into_owned);
        }
    }

    fn turn_over<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut turn: wire::Turn<'c>,
        text: &'c str,
    ) {
        self.begin(cx);
        cx.extra.clear();
        let message = turn.error.take().message.raw().map(Text::from);
        let error = |code, made_up| RunError::new(code, message.unwrap_or(Text::new(made_up)));
        let (outcome, error) = match turn.status.as_deref() {
            Some("completed") => (Outcome::Completed, None),
            Some("interrupted") => (Outcome::Aborted, Some(error("aborted", "aborted"))),
            _ => {
                let error = error("turn_failed", "the turn failed");
                (Outcome::Failed, Some(error))
            }
        };
        let mut ended = RunEnded::new(outcome, error);
        ended.duration_ms = turn.duration_ms.as_u64();
        let told = self.total_told.clone();
        ended.usage = self.calls.map(|tokens| usage(Scope::Run, tokens, told));
        ended.detail = raw(text);
        self.end_run(cx, ended);
    }

    fn piece<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        params: wire::Params<'c>,
        channel: Channel,
        text: &'c str,
    ) {
        let (Some(item), Some(delta)) = (params.item_id.0, params.delta.raw()) else {
            return self
                .lifecycle
                .unmapped(cx, "piece without an item".to_owned(), text);
        };
        let item = ItemId::new(item);
        self.lifecycle.delta(cx, &item, channel, Text::from(delta));
    }

    fn on_plan<'c>(&mut self, cx: &mut FrameContext<'c>, params: wire::Params<'c>) {
        self.begin(cx);
        let entries = params.plan.0.iter().map(|step| PlanEntry {
            key: None,
            text: step.step.raw().map(Text::from).unwrap_or_default(),
            status: match step.status.as_deref() {
                Some("completed") => PlanStatus::Completed,
                Some("inProgress" | "in_progress") => PlanStatus::InProgress,
                Some(_) | None => PlanStatus::Pending,
            },
            doing: None,
        });
        let id = ItemId::new(format!("plan.{}", self.lifecycle.n_runs()));
        let entries = entries.collect();
        self.lifecycle.update(cx, Item::Plan(Plan { id, entries }));
    }

    /// One call of the model has ended.
    fn on_usage<'c>(&mut self, cx: &mut FrameContext<'c>, told: wire::TokenUsage<'c>) {
        if let Some(last) = tokens(told.last) {
            let sum = self.calls.unwrap_or_default().plus(&last);
            self.calls = self.lifecycle.has_run().then_some(sum);
            let usage = usage(Scope::Call, last, told.last.raw());
            self.lifecycle.emit(cx, Body::UsageReported(usage));
        }
        if let Some(total) = tokens(told.total) {
            self.total = Some(total);
            self.total_told = told.total.raw().map(Raw::into_owned);
            let mut usage = usage(Scope::Session, total, told.total.raw());
            usage.basis = Basis::Cumulative;
            self.lifecycle.emit(cx, Body::UsageReported(usage));
        }
    }

    fn on_error<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        mut params: wire::Params<'c>,
        text: &'c str,
    ) {
        cx.extra.clear();
        let message = params.error.take().message.raw().or(params.message.raw());
        let message = message.map(Text::from).unwrap_or_default();
        let (level, code) = if params.will_retry.is_true() {
            (Level::Warning, "api_retry")
        } else {
            (Level::Error, "error")
        };
        self.notice(cx, level, code, message, raw(text));
    }

    fn on_server_request<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        method: &str,
        id: &Raw<'c>,
        params: wire::Params<'c>,
        text: &'c str,
    ) {
        self.begin(cx);
        cx.extra.clear();
        let item = params.item_id.0.map(ItemId::new);
        let call = item.as_ref().and_then(|it| self.lifecycle.open_tool(it));
        let tool = match call {
            Some(call) => call.name.clone(),
            None => Cow::Owned(method.to_owned()),
        };
        let question = (params.questions.0.iter())
            .find_map(|it| it.question.raw())
            .or(params.message.raw())
            .map(Text::from);
        let title = if params.command.0.is_some() {
            let mut fields = ToolInput::default();
            fields.command = params.command;
            tools::classify_fields("command_execution", &fields, None).title
        } else {
            let known = call.map(|it| it.class.title.clone());
            let title = question.or(known).filter(|it| !it.is_blank());
            title.unwrap_or_else(|| Text::new(method.to_owned()))
        };
        let asked: AskedWith<'c> = serde_json::from_str(text).unwrap_or_default();
        let ask = Ask {
            id: AskId::new(id.get().to_owned()),
            kind: if method.ends_with("Approval") {
                AskKind::Permission
            } else {
                AskKind::Question
            },
            item: item.clone(),
            tool,
            title,
            description: params.reason.raw().map(Text::from),
            input: asked.params.raw(),
            suggestions: params.available_decisions.raw(),
            deadline: None,
        };
        self.lifecycle.ask(cx, ask);
    }

    /// The answer to a request of either side.
    fn on_host_answer<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &Raw<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        let mut answer: wire::Answer<'c> = line.result.parse().unwrap_or_default();
        let asked = match cx.origin {
            Origin::Client => None,
            _ => self.take_requested(id),
        };
        if answer.thread.is_object() {
            self.lifecycle.session.refusal = None;
            let model = answer.model.take();
            let mode = answer.approval_policy.take();
            return self.on_thread_info(cx, answer.thread.take(), model, mode, asked, text);
        }
        cx.extra.clear();
        let is_answer = answer.decision.0.is_some()
            || answer.answers.0.is_some()
            || answer.action.0.is_some()
            || answer.permissions.0.is_some();
        if cx.origin == Origin::Client || is_answer {
            cx.origin = Origin::Client;
            let settled = AskSettled {
                id: AskId::new(id.get().to_owned()),
                decision: decision(&answer),
                message: line.error.take().message.raw().map(Text::from),
                input: answer.answers.raw(),
                remembered: remembered(answer.decision),
            };
            return self.lifecycle.settle(cx, settled);
        }
        if line.error.is_object() {
            let said = line.error.take().message.raw();
            let said = said.map(Text::from).unwrap_or_default();
            let error = RunError::new("request_failed", said.clone().into_owned());
            self.notice(cx, Level::Error, "request_failed", said, raw(text));
            match asked {
                Some(HostRequest::Turn) => {
                    self.begin(cx);
                    self.end_run(cx, RunEnded::new(Outcome::Failed, Some(error)));
                }
                Some(HostRequest::Thread | HostRequest::OldThread) => {
                    self.lifecycle.session.refusal = Some(error);
                }
                None => (),
            }
            return;
        }
        let said = Text::new(format!("request {} was answered", id.get()));
        self.notice(cx, Level::Debug, "response", said, raw(text));
    }

    /// A question was withdrawn; the answer may not be in the stream.
    fn resolved(&mut self, cx: &mut FrameContext<'_>, request: Any<'_>) {
        cx.extra.clear();
        let Some(id) = request.raw() else { return };
        let decision = if self.was_interrupted {
            Decision::Withdrawn
        } else {
            Decision::Lost
        };
        let settled = AskSettled {
            id: AskId::new(id.get().to_owned()),
            decision,
            message: None,
            input: None,
            remembered: None,
        };
        self.lifecycle.settle(cx, settled);
    }
}

object! {
    /// A question as it was put.
    AskedWith {
        params: Any<'a> = "params",
    }
}

/// Requests that wait for a client.
fn is_question(method: &str) -> bool {
    method.ends_with("requestApproval")
        || method.ends_with("requestUserInput")
        || method.ends_with("elicitation/request")
        || matches!(method, "applyPatchApproval" | "execCommandApproval")
}

/// Notifications that tell how things stand and change nothing here.
fn is_news(method: &str) -> bool {
    let places = [
        "account/",
        "app/",
        "fs/",
        "hook/",
        "initialized",
        "mcpServer/",
        "model/",
        "remoteControl/",
        "skills/",
        "thread/",
        "turn/diff/",
        "turn/moderation",
        "item/mcpToolCall/progress",
        "item/commandExecution/terminalInteraction",
        "item/plan/delta",
        "item/fileChange/patchUpdated",
    ];
    places.iter().any(|it| method.starts_with(it))
}

fn decision(answer: &wire::Answer<'_>) -> Decision {
    let Some(decision) = answer.decision.0 else {
        let has = |it: Any<'_>| it.0.is_some_and(|it| it.get() != "{}");
        let is_given = has(answer.answers)
            || has(answer.permissions)
            || answer.action.as_deref() == Some("accept");
        return if is_given && answer.scope.as_deref() == Some("session") {
            Decision::AllowedAlways
        } else if is_given {
            Decision::Allowed
        } else {
            Decision::Denied
        };
    };
    match decision.get() {
        "\"accept\"" | "\"approved\"" => Decision::Allowed,
        "\"acceptForSession\"" | "\"approved_for_session\"" => Decision::AllowedAlways,
        // Only a permission that remembers a rule is an object.
        other if other.starts_with('{') => Decision::AllowedAlways,
        _ => Decision::Denied,
    }
}

fn remembered(decision: Any<'_>) -> Option<Raw<'_>> {
    decision.raw().filter(|it| it.get().starts_with('{'))
}

fn usage<'c>(scope: Scope, tokens: Tokens, detail: Option<Raw<'c>>) -> Usage<'c> {
    Usage {
        scope,
        basis: Basis::Delta,
        tokens,
        model: None,
        cost_usd: None,
        detail,
    }
}
