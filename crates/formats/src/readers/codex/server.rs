//! The app server: JSON-RPC without `jsonrpc`, with deltas, questions and several turns.
//!
//! Notifications that only report status become debug notices with their bytes. A message is
//! recognised by its content, not its direction, so that a log without directions can be read too.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Basis, Binding, Body, Channel, Decision, Item, ItemId, Level,
    Origin, Outcome, Plan, PlanEntry, Raw, RunEnded, RunError, Scope, SessionBound, SessionId,
    Text, Tokens, Usage,
};

use super::end::tokens;
use super::items::Phase;
use super::{Codex, Direction, FrameContext, HostRequest, Line};
use crate::readers::machine::MessageReader as _;
use crate::readers::plans;
use crate::tools::{self, ToolInput};
use crate::wire::codex as wire;
use crate::wire::lenient::Any;
use crate::wire::scanner;

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
        direction: Direction,
    ) {
        let id = line.id.raw();
        let Some(method) = line.method.take() else {
            return match id {
                Some(id) => self.on_host_answer(cx, &id, line),
                None => self.lifecycle.unmapped(cx, "no type and no method"),
            };
        };
        if self.lifecycle.is_over() && id.is_none() && is_of_turn(&method) {
            return self.lifecycle.after_end(cx);
        }
        let params = line.params.take();
        // Items of another thread would mix with those of the run; they are kept as they came.
        if self.is_elsewhere(&params) {
            let what = format!("`{method}` of another thread");
            return self.lifecycle.unmapped(cx, what);
        }
        match (&*method, id) {
            ("turn/interrupt", _) => {
                cx.origin = Origin::Client;
                self.was_interrupted |= self.lifecycle.has_run();
                let text = "the host asked for an interrupt";
                self.lifecycle
                    .raise_with_message(cx, Level::Info, "interrupt", text);
            }
            (_, Some(id)) if direction == Direction::FromAgent && is_question(&method) => {
                self.on_server_request(cx, &method, &id, params);
            }
            (_, Some(id)) => {
                cx.origin = Origin::Client;
                self.on_host_request(&method, &id);
                let text = format!("the host asked: {method}");
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "request", text);
            }
            (_, None) => self.on_notification(cx, &method, params),
        }
    }

    /// Remembers a request whose refusal ends the run, or keeps one from beginning.
    fn on_host_request(&mut self, method: &str, id: &Raw<'_>) {
        // `exec` gets no requests: from here on errors name the app server as the process.
        self.is_server = true;
        let asked = match method {
            "initialize" | "thread/start" | "thread/fork" => HostRequest::Thread,
            "thread/resume" => HostRequest::OldThread,
            "turn/start" => HostRequest::Turn,
            _ => return,
        };
        self.requests.push((id.get().to_owned(), asked));
    }

    /// True when a message is about a thread that is not the one being read.
    fn is_elsewhere(&self, params: &wire::Params<'_>) -> bool {
        let known = self.lifecycle.session.id();
        let named = params.thread_id.as_deref();
        matches!((known, named), (Some(known), Some(named)) if known != named)
    }

    fn on_notification<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        method: &str,
        mut params: wire::Params<'c>,
    ) {
        match method {
            "thread/started" => {
                self.on_thread_info(cx, params.thread.take(), None, None, None);
            }
            "turn/started" => self.turn_started(cx),
            "turn/completed" => self.turn_over(cx, params.turn.take()),
            "item/started" => self.item(cx, params.item.take(), Phase::Started),
            "item/updated" => self.item(cx, params.item.take(), Phase::Updated),
            "item/completed" => self.item(cx, params.item.take(), Phase::Completed),
            "item/agentMessage/delta"
            | "item/reasoning/summaryTextDelta"
            | "item/reasoning/textDelta" => self.piece(cx, params, Channel::Text),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                self.piece(cx, params, Channel::Output);
            }
            "item/reasoning/summaryPartAdded" => {
                cx.extra.clear();
                // The whole text joins its parts by line ends, and the deltas have to add up to it.
                if let (Some(item), Some(1..)) = (params.item_id.0, params.summary_index.as_u64()) {
                    let (item, between) = (ItemId::new(item), Text::new("\n"));
                    self.lifecycle.delta(cx, &item, Channel::Text, between);
                }
            }
            "turn/plan/updated" => self.on_plan(cx, params),
            "thread/tokenUsage/updated" => self.on_usage(cx, params.token_usage.take()),
            "serverRequest/resolved" => self.resolved(cx, params.request_id),
            "error" => {
                let message = params.error.take().message.text().or(params.message.text());
                let is_retry = params.will_retry.is_true();
                self.error_notice(cx, message.unwrap_or_default(), is_retry);
            }
            "configWarning" | "deprecationNotice" | "warning" => {
                let text = params.summary.text().or(params.message.text());
                let text = text.unwrap_or_default();
                self.lifecycle
                    .raise_with_message(cx, Level::Warning, "config_warning", text);
            }
            _ if is_news(method) => {
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "news", method);
            }
            _ => self.lifecycle.unmapped(cx, format!("method `{method}`")),
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
    ) {
        let Some(id) = thread.id.take().filter(|it| !it.is_empty()) else {
            return self.lifecycle.unmapped(cx, "thread without an id");
        };
        // During a run another thread cannot take over its session.
        if self.lifecycle.has_run() && self.lifecycle.session.id() != Some(&*id) {
            return self.lifecycle.unmapped(cx, "another thread");
        }
        let how = match asked {
            // A thread that was once forked reports that each time it is resumed.
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

    fn turn_over<'c>(&mut self, cx: &mut FrameContext<'c>, mut turn: wire::Turn<'c>) {
        self.begin(cx);
        cx.extra.clear();
        let message = turn.error.take().message.text();
        let error = |code, made_up| RunError::new(code, message.unwrap_or(Text::new(made_up)));
        let (outcome, error) = match turn.status.as_deref() {
            Some("completed") => (Outcome::Completed, None),
            Some("interrupted") => (Outcome::Aborted, Some(error("aborted", "aborted"))),
            _ => {
                let error = error("turn_failed", "the turn failed");
                (Outcome::Failed, Some(error))
            }
        };
        let ended = RunEnded {
            duration_ms: turn.duration_ms.as_u64(),
            usage: (self.calls).map(|tokens| usage(Scope::Run, tokens, self.raw_total.clone())),
            detail: Some(cx.raw()),
            ..RunEnded::new(outcome, error)
        };
        self.end_run(cx, ended);
    }

    fn piece<'c>(&mut self, cx: &mut FrameContext<'c>, params: wire::Params<'c>, channel: Channel) {
        let (Some(item), Some(delta)) = (params.item_id.0, params.delta.raw()) else {
            return self.lifecycle.unmapped(cx, "piece without an item");
        };
        let item = ItemId::new(item);
        self.lifecycle.delta(cx, &item, channel, Text::from(delta));
    }

    fn on_plan<'c>(&mut self, cx: &mut FrameContext<'c>, params: wire::Params<'c>) {
        self.begin(cx);
        let entries = params.plan.0.iter().map(|step| {
            let text = step.step.text().unwrap_or_default();
            PlanEntry::new(text, plans::status(step.status.as_deref()))
        });
        // The server gives plans no id; one per run keeps the next run from updating a closed one.
        let id = ItemId::new(format!("plan.{}", self.lifecycle.n_runs()));
        let entries = entries.collect();
        self.lifecycle.update(cx, Item::Plan(Plan { id, entries }));
    }

    /// One call of the model has ended.
    fn on_usage<'c>(&mut self, cx: &mut FrameContext<'c>, reported: wire::TokenUsage<'c>) {
        if let Some(last) = tokens(reported.last) {
            let sum = self.calls.unwrap_or_default().plus(&last);
            // What is reported between turns belongs to the session alone.
            self.calls = self.lifecycle.has_run().then_some(sum);
            let usage = usage(Scope::Call, last, reported.last.raw());
            self.lifecycle.emit(cx, Body::UsageReported(usage));
        }
        if let Some(total) = tokens(reported.total) {
            self.total = Some(total);
            self.raw_total = reported.total.raw().map(Raw::into_owned);
            let mut usage = usage(Scope::Session, total, reported.total.raw());
            usage.basis = Basis::Cumulative;
            self.lifecycle.emit(cx, Body::UsageReported(usage));
        }
    }

    fn on_server_request<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        method: &str,
        id: &Raw<'c>,
        params: wire::Params<'c>,
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
            .find_map(|it| it.question.text())
            .or(params.message.text());
        let title = if params.command.0.is_some() {
            let mut fields = ToolInput::default();
            fields.command = params.command;
            tools::classify_fields("command_execution", &fields, None).title
        } else {
            let known = call.map(|it| it.class.title.clone());
            let title = question.or(known).filter(|it| !it.is_blank());
            title.unwrap_or_else(|| Text::new(method.to_owned()))
        };
        let asked: AskedWith<'c> = scanner::from_str(cx.message).unwrap_or_default();
        // Both generations of names end like this: `…/requestApproval` and `execCommandApproval`.
        let kind = match method.ends_with("Approval") {
            true => AskKind::Permission,
            false => AskKind::Question,
        };
        let ask = Ask {
            item: item.clone(),
            description: params.reason.text(),
            input: asked.params.raw(),
            suggestions: params.available_decisions.raw(),
            ..Ask::new(AskId::new(id.get().to_owned()), kind, tool, title)
        };
        self.lifecycle.ask(cx, ask);
    }

    /// The answer to a request of either side.
    fn on_host_answer<'c>(&mut self, cx: &mut FrameContext<'c>, id: &Raw<'c>, line: &mut Line<'c>) {
        let mut answer: wire::Answer<'c> = line.result.parse().unwrap_or_default();
        let asked = match cx.origin {
            // Both sides number their requests independently: a client's answer is to another request.
            Origin::Client => None,
            _ => self.requests.take(id.get()),
        };
        // An answer does not repeat its method: a thread in it means that one was opened.
        if answer.thread.is_object() {
            self.lifecycle.session.refusal = None;
            let model = answer.model.take();
            let mode = answer.approval_policy.take();
            return self.on_thread_info(cx, answer.thread.take(), model, mode, asked);
        }
        cx.extra.clear();
        let is_answer = answer.decision.0.is_some()
            || answer.answers.0.is_some()
            || answer.action.0.is_some()
            || answer.permissions.0.is_some();
        // In a log without directions only the shape of an answer tells that the client gave it.
        if cx.origin == Origin::Client || is_answer {
            cx.origin = Origin::Client;
            let id = AskId::new(id.get().to_owned());
            let settled = AskSettled {
                message: line.error.take().message.text(),
                input: answer.answers.raw(),
                remembered: remembered(answer.decision),
                ..AskSettled::new(id, decision(&answer))
            };
            return self.lifecycle.settle(cx, settled);
        }
        if line.error.is_object() {
            let text = line.error.take().message.text().unwrap_or_default();
            let error = RunError::new("request_failed", text.clone().into_owned());
            self.lifecycle
                .raise_with_message(cx, Level::Error, "request_failed", text);
            match asked {
                Some(HostRequest::Turn) => {
                    // A turn that is refused never starts: a client still waits for its end.
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
        let text = format!("request {} was answered", id.get());
        self.lifecycle
            .raise_with_message(cx, Level::Debug, "response", text);
    }

    /// A question was withdrawn; the answer may not be in the stream.
    fn resolved(&mut self, cx: &mut FrameContext<'_>, request: Any<'_>) {
        cx.extra.clear();
        let Some(id) = request.raw() else { return };
        // After an interrupt the server resolves its requests by itself: the agent withdrew them.
        let decision = if self.was_interrupted {
            Decision::Withdrawn
        } else {
            Decision::Lost
        };
        let id = AskId::new(id.get().to_owned());
        self.lifecycle.settle(cx, AskSettled::new(id, decision));
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
        detail,
        ..Usage::new(scope, Basis::Delta, tokens)
    }
}
