//! AG-UI 1.0: what a run does, as server-sent events that AG-UI clients render.
//!
//! Each run is `RUN_STARTED` … one `RUN_FINISHED` or `RUN_ERROR`; nothing may stand between runs,
//! so what is known of a session waits for the next one. Facts: npm `@ag-ui/core` and
//! `@ag-ui/client` 1.0.0, whose verifier is the judge. What AG-UI has no event for travels as
//! `CUSTOM` under `linkspan.*`.

pub(crate) mod endpoint;
mod items;
mod lane;
mod subagents;
mod texts;
mod tools;

#[cfg(test)]
mod tests;

use model::{
    Ask, Binding, Body, Event, Item, Level, Losses, Notice, Outcome, Role, RunEnded, RunError,
    SessionBound, Text, Tokens, Writer,
};

use super::{WriterConfig, missing_end};
use crate::agents;
use crate::wire::ag_ui as wire;
use items::Items;
use lane::EventLane;
use subagents::StartedSubagents;

/// The largest number a JavaScript client reads exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

#[derive(Clone, Debug, Default)]
pub(crate) struct AgUi {
    shape: AgUiProfile,
    /// The agent's own session, once it is known.
    thread: Option<String>,
    /// Session details that could not be sent yet.
    held: Option<Vec<u8>>,
    n_runs: u64,
    run: Option<Run>,
    losses: Losses,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AgUiProfile {
    #[default]
    Current,
    /// Before 0.0.45: thinking instead of reasoning, no sub-agents, results are plain text.
    Thinking,
}

/// Open until [`AgUi::finish`] takes it, so that a run cannot end twice.
#[derive(Clone, Debug)]
struct Run {
    thread: String,
    id: String,
    items: Items,
    subagents: StartedSubagents,
}

impl AgUi {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let shape = match config.profile.as_deref() {
            Some("thinking") => AgUiProfile::Thinking,
            Some(_) | None => AgUiProfile::Current,
        };
        Self {
            shape,
            ..Self::default()
        }
    }

    fn bound(&mut self, event: &Event<'_>, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        // A session that was not asked for does not take the place of the one that was.
        if self.thread.is_none() || bound.how != Binding::Mismatch {
            self.thread = Some(bound.native.as_str().to_owned());
        }
        let session = wire::Custom::Session(wire::Session {
            engine: &event.engine,
            session_id: bound.native.as_str(),
            model: bound.model.as_deref(),
            cwd: bound.cwd.as_deref(),
            permission_mode: bound.permission_mode.as_deref(),
            version: bound.version.as_deref(),
            tools: &bound.tools,
            mcp_servers: &bound.mcp_servers,
            commands: &bound.commands,
        });
        let session = wire::Body::Custom(session);
        if self.run.is_some() {
            return EventLane::of(event, out).emit(session);
        }
        let mut held = Vec::new();
        EventLane::of(event, &mut held).emit(session);
        // Only the last introduction is sent, and what a repetition replaces is the same.
        if self.held.replace(held).is_some() && bound.how != Binding::Repeat {
            self.losses.count("session without a run");
        }
    }

    fn start(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.n_runs += 1;
        let thread = self.thread.clone();
        let thread = thread.unwrap_or_else(|| event.session.to_string());
        // linkspan numbers the runs of each session, so that only both together are unique.
        let id = match &event.run {
            Some(run) => format!("{thread}:{run}"),
            None => format!("{thread}:{}", self.n_runs),
        };
        EventLane::of(event, out).emit(wire::Body::RunStarted {
            thread_id: &thread,
            run_id: &id,
            protocol_version: wire::PROTOCOL_VERSION,
        });
        if let Some(held) = self.held.take() {
            out.extend_from_slice(&held);
        }
        self.run = Some(Run {
            thread,
            id,
            items: Items::new(self.shape),
            subagents: StartedSubagents::default(),
        });
    }

    fn finish(&mut self, ended: &RunEnded<'_>, engine: &str, lane: &mut EventLane<'_>) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        // Before the terminal event: the verifier refuses `RUN_FINISHED` with anything open.
        run.items.close_left_open(lane);
        run.subagents.close_left_open(lane);
        let has_ended_well = ended.error.is_none()
            && match ended.outcome {
                Outcome::Completed | Outcome::Aborted | Outcome::Refused | Outcome::Limit => true,
                Outcome::Failed | Outcome::Lost => false,
            };
        if let Some(answer) = ended.answer.as_ref().filter(|_| has_ended_well) {
            run.items.missing_answer(&run.id, answer, lane);
        }
        let usage = usage(ended, engine);
        let is_cut = is_cut(ended);
        let stop_reason = ended.stop_reason.as_deref();
        let summary = wire::Summary {
            code: None,
            outcome: None,
            status: is_cut.then_some("incomplete"),
            reason: stop_reason.filter(|_| is_cut),
            stop_reason: stop_reason.filter(|_| !is_cut),
            session_cost_usd: ended.session_cost_usd,
            duration_ms: ended.duration_ms,
        };
        let outcome = match ended.outcome {
            Outcome::Completed => wire::Outcome::Success {
                pending_tool_call_ids: &run.items.pending,
            },
            // The model's own text explains it, so it is not an error.
            Outcome::Refused | Outcome::Limit if ended.error.is_none() => wire::Outcome::Success {
                pending_tool_call_ids: &run.items.pending,
            },
            Outcome::Aborted => wire::Outcome::Cancelled,
            Outcome::Failed | Outcome::Refused | Outcome::Limit | Outcome::Lost => {
                let unknown = unknown_error(ended.outcome);
                let error = ended.error.as_ref().unwrap_or(&unknown);
                let linkspan = wire::Summary {
                    outcome: Some(ended.outcome.name()),
                    code: error.native.as_ref().map(|_| &*error.code),
                    ..summary
                };
                return lane.emit(wire::Body::RunError {
                    message: error.message.by_ref(),
                    // Clients of a provider know its own codes.
                    code: error.native.as_ref().unwrap_or(&error.code),
                    usage,
                    metadata: wire::Metadata { linkspan },
                });
            }
        };
        let linkspan = wire::Summary {
            outcome: Some(ended.outcome.name()),
            ..wire::Summary::default()
        };
        // For these the protocol has outcomes of its own.
        let is_plain = matches!(ended.outcome, Outcome::Completed | Outcome::Aborted);
        lane.emit(wire::Body::RunFinished {
            thread_id: &run.thread,
            run_id: &run.id,
            result: (summary != wire::Summary::default()).then_some(summary),
            outcome,
            usage,
            metadata: (!is_plain).then_some(wire::Metadata { linkspan }),
        });
    }

    /// What happens inside a run, and is neither its start nor its end.
    fn inside(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Some(run) = &mut self.run else {
            return self.outside(event);
        };
        let mut lane = EventLane::of(event, out);
        let losses = &mut self.losses;
        if !run.items.continues_reasoning(&event.body) {
            run.items.end_span(&mut lane);
        }
        match self.shape {
            AgUiProfile::Current => {
                run.subagents.enter(&event.path, &mut lane);
                lane.subagent = event.path.last().map(|it| it.as_str());
            }
            // Without a name on it, it would look like words of the user.
            AgUiProfile::Thinking if is_subagent_prompt(event) => {
                return losses.count("sub-agent prompt");
            }
            AgUiProfile::Thinking => (),
        }
        let extra = &event.extra;
        match &event.body {
            Body::ItemOpened(it) => run.opened(it, extra, &mut lane, losses),
            Body::ItemUpdated(it) => run.items.updated(it, extra, &mut lane, losses),
            Body::ItemDelta(it) => run.items.delta(it, &mut lane),
            Body::ItemClosed(it) => run.closed(it, extra, &mut lane, losses),
            Body::AskOpened(it) => lane.emit(ask(it)),
            Body::AskSettled(it) => lane.emit(wire::Body::Custom(wire::Custom::AskSettled(it))),
            Body::NoticeRaised(it) if it.level == Level::Debug => losses.count("debug notice"),
            Body::NoticeRaised(it) => lane.emit(notice(it)),
            // `RAW` is meant for what the provider sent as it was.
            Body::FrameUnmapped(it) => lane.emit(wire::Body::Raw {
                event: &it.raw,
                source: &event.engine,
            }),
            // The end of the run has the sums.
            Body::UsageReported(_) => (),
            Body::SessionBound(_) | Body::RunStarted(_) | Body::RunEnded(_) => (),
        }
    }

    fn outside(&mut self, event: &Event<'_>) {
        match &event.body {
            Body::NoticeRaised(it) if it.level == Level::Debug => self.losses.count("debug notice"),
            Body::NoticeRaised(_) => self.losses.count("notice between runs"),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame between runs"),
            Body::UsageReported(_) => self.losses.count("usage report between runs"),
            Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_) => self.losses.count("item between runs"),
            Body::SessionBound(_) | Body::RunStarted(_) | Body::RunEnded(_) => (),
        }
    }
}

impl Writer for AgUi {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match &event.body {
            Body::SessionBound(it) => self.bound(event, it, out),
            Body::RunStarted(_) => self.start(event, out),
            Body::RunEnded(it) => {
                self.finish(it, &event.engine, &mut EventLane::of(event, out));
            }
            Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => self.inside(event, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.finish(&missing_end(), "", &mut EventLane::new(out));
        if self.held.take().is_some() {
            self.losses.count("session without a run");
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

fn is_subagent_prompt(event: &Event<'_>) -> bool {
    let is_prompt = matches!(
        &event.body,
        Body::ItemOpened(Item::Message(it)) if it.role == Role::User
    );
    is_prompt && !event.path.is_empty()
}

/// The answer stops in the middle, and that is no error.
fn is_cut(ended: &RunEnded<'_>) -> bool {
    let by_limit = match ended.outcome {
        Outcome::Limit => true,
        Outcome::Refused => ended.stop_reason.is_some(),
        Outcome::Completed | Outcome::Failed | Outcome::Aborted | Outcome::Lost => false,
    };
    by_limit && ended.error.is_none()
}

fn unknown_error(outcome: Outcome) -> RunError<'static> {
    let message = match outcome {
        Outcome::Refused => "the model refused",
        Outcome::Limit => "a limit was reached",
        Outcome::Completed | Outcome::Aborted | Outcome::Failed | Outcome::Lost => "the run failed",
    };
    RunError::new(outcome.name(), Text::new(message))
}

fn usage<'a>(ended: &'a RunEnded<'_>, engine: &str) -> Vec<wire::TokenUsage<'a>> {
    let provider = agents::find(engine).and_then(|it| it.provider);
    let by_model = ended.models.iter();
    let by_model = by_model.map(|it| (Some(&*it.model), &it.tokens));
    // Only where the models are not counted apart is there a count of all.
    let whole = ended.usage.iter().filter(|_| ended.models.is_empty());
    let whole = whole.map(|it| (it.model.as_deref(), &it.tokens));
    let counts = by_model.chain(whole);
    counts
        .map(|(model, tokens)| token_usage(provider, model, tokens))
        .collect()
}

fn token_usage<'a>(
    provider: Option<&'static str>,
    model: Option<&'a str>,
    tokens: &Tokens,
) -> wire::TokenUsage<'a> {
    let input = tokens.all_input();
    wire::TokenUsage {
        provider,
        model,
        // AG-UI counts cache reads and writes as parts of the input.
        input_tokens: input.min(MAX_SAFE),
        output_tokens: tokens.output.map(|it| it.min(MAX_SAFE)),
        total_tokens: tokens
            .output
            .map(|it| input.saturating_add(it).min(MAX_SAFE)),
        reasoning_tokens: tokens.reasoning.map(|it| it.min(MAX_SAFE)),
        cached_input_tokens: tokens.cache_read.min(MAX_SAFE),
        cache_write_input_tokens: tokens.cache_write.min(MAX_SAFE),
    }
}

fn notice<'a>(notice: &'a Notice<'_>) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Notice(wire::Notice {
        level: notice.level,
        code: &notice.code,
        text: &notice.text,
        item_id: notice.item.as_ref().map(|it| it.as_str()),
        detail: notice.detail.as_ref(),
    }))
}

fn ask<'a>(ask: &'a Ask<'_>) -> wire::Body<'a> {
    wire::Body::Custom(wire::Custom::Ask(wire::Ask {
        id: ask.id.as_str(),
        kind: ask.kind,
        tool_call_id: ask.item.as_ref().map(|it| it.as_str()),
        tool_call_name: &ask.tool,
        title: &ask.title,
        description: ask.description.as_ref(),
        input: ask.input.as_ref(),
        suggestions: ask.suggestions.as_ref(),
        deadline: ask.deadline,
    }))
}
