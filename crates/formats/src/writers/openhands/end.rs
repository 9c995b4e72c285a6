//! The end of a run: what is held is written, then what it cost, then one terminal status.

use model::{Basis, Outcome, RunEnded, Scope, Text, Tokens, Usage};

use super::agent_buffer::AgentBuffer;
use super::{OpenHands, OpenHandsProfile, text};
use crate::agents;
use crate::wire::openhands::{
    Action, Event as Line, ExecutionStatus, Metrics, Observation, ObservationDetail, RUN_ENDED,
    STREAM_ENDED, Source, StateUpdate, Stats, TokenUsage, ToolCall,
};

/// What the conversation has used so far; the SDK's numbers only ever grow.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageTotals {
    tokens: Tokens,
    cost_usd: f64,
    context_window: u64,
    /// Tokens in the model's context at its last call.
    context: u64,
    is_known: bool,
    /// The agent has reported the session's usage up to the end of this run.
    is_whole: bool,
}

impl UsageTotals {
    pub(super) fn reported(&mut self, usage: &Usage<'_>, is_root: bool) {
        let tokens = &usage.tokens;
        match (usage.scope, usage.basis) {
            (Scope::Call, _) if is_root => {
                let output = tokens.output.unwrap_or_default();
                self.context = tokens.all_input().saturating_add(output);
            }
            (Scope::Session, Basis::Cumulative) => {
                self.is_known = true;
                self.is_whole = true;
                self.tokens = *tokens;
            }
            (Scope::Call | Scope::Run | Scope::Session, _) => (),
        }
    }

    fn add(&mut self, ended: &RunEnded<'_>) {
        let is_whole = std::mem::take(&mut self.is_whole);
        if let Some(usage) = &ended.usage {
            self.is_known = true;
            // Codex reports the sums of the session, which hold this run already.
            if !is_whole {
                self.tokens = self.tokens.plus(&usage.tokens);
            }
        }
        if let Some(cost) = ended.session_cost_usd {
            self.is_known = true;
            // The SDK's sums only ever grow.
            self.cost_usd = self.cost_usd.max(cost);
        }
        let windows = ended.models.iter().filter_map(|it| it.context_window);
        self.context_window = windows.fold(self.context_window, u64::max);
    }
}

impl OpenHands {
    pub(super) fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.end_run(ended, RUN_ENDED, out);
    }

    /// The events stop inside a run.
    pub(super) fn cut_off(&mut self, out: &mut Vec<u8>) {
        self.end_run(&RunEnded::new(Outcome::Lost, None), STREAM_ENDED, out);
    }

    /// `unanswered` is the error of calls without a result.
    fn end_run(&mut self, ended: &RunEnded<'_>, unanswered: &'static str, out: &mut Vec<u8>) {
        self.end_open_calls(unanswered, out);
        self.final_text(ended, out);
        self.totals.add(ended);
        if ended.models.len() > 1 {
            self.losses.count("usage by model");
        }
        if ended.duration_ms.is_some() {
            self.losses.count("duration");
        }
        self.stats(out);
        // OpenHands only pauses after an interrupt, so that the error below ends the run.
        if ended.outcome == Outcome::Aborted {
            let head = self.pen.head(Source::User);
            self.pen.write(out, &Line::InterruptEvent { head });
        }
        if ended.outcome != Outcome::Completed {
            self.error(ended, out);
        }
        self.close(ended.outcome, out);
    }

    fn close(&mut self, outcome: Outcome, out: &mut Vec<u8>) {
        let status = match outcome {
            Outcome::Completed => ExecutionStatus::Finished,
            Outcome::Failed
            | Outcome::Aborted
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => ExecutionStatus::Error,
        };
        self.status(status, out);
        self.is_running = false;
        self.has_ended = true;
        self.n_asks = 0;
        self.is_denied = false;
        self.lanes.clear();
        self.streams.clear();
    }

    /// Writes all held text, and the answer if it was not written.
    fn final_text(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let root = self.lane(None, out);
        for lane in 0..self.lanes.len() {
            self.pause(lane, out);
        }
        let answer = ended.answer.as_ref().filter(|it| !it.is_empty());
        let missing = answer.filter(|it| !self.lanes[root].has_written(it));
        if let Some(answer) = missing {
            let lane = &mut self.lanes[root];
            // The answer belongs to no response that was seen.
            lane.response = None;
            lane.held.new_paragraph();
            lane.held.push_text(answer.by_ref().into_owned());
        }
        if self.profile == OpenHandsProfile::Acp && ended.outcome == Outcome::Completed {
            let lane = std::mem::replace(&mut self.lanes[root], AgentBuffer::new(None));
            return self.finish(&lane, out);
        }
        self.flush(root, out);
    }

    /// The action and the observation by which an agent of OpenHands finishes.
    fn finish(&mut self, lane: &AgentBuffer, out: &mut Vec<u8>) {
        let held = &lane.held;
        let message = held.text().unwrap_or_default();
        let head = self.pen.head(Source::Agent);
        let digits = head.id.digits();
        let id = std::str::from_utf8(&digits).expect("hex digits and dashes");
        let line = Line::ActionEvent {
            head,
            thought: Vec::new(),
            reasoning_content: held.reasoning_content(),
            thinking_blocks: held.thinking_blocks(),
            action: Some(Action::FinishAction {
                message: message.by_ref(),
            }),
            tool_name: "finish",
            tool_call_id: id,
            tool_call: ToolCall {
                id,
                name: "finish",
                arguments: Text::new(arguments(&message)),
                origin: "completion",
            },
            llm_response_id: lane.response.as_deref().unwrap_or(id),
        };
        self.pen.write(out, &line);
        let line = Line::ObservationEvent {
            head: self.pen.head(Source::Environment),
            tool_name: "finish",
            tool_call_id: id,
            action_id: head.id,
            observation: Observation {
                detail: ObservationDetail::FinishObservation {},
                content: vec![text(message)],
                is_error: false,
            },
        };
        self.pen.write(out, &line);
    }

    fn stats(&mut self, out: &mut Vec<u8>) {
        if !self.totals.is_known {
            return;
        }
        // The SDK wants a name.
        let model = self.model.as_deref().unwrap_or("default");
        let UsageTotals {
            tokens,
            cost_usd,
            context_window,
            context,
            ..
        } = self.totals;
        let metrics = Metrics {
            model_name: model,
            accumulated_cost: cost_usd,
            accumulated_token_usage: TokenUsage {
                model,
                // Without cached tokens, as OpenHands counts for agents that it runs over ACP.
                prompt_tokens: tokens.input,
                completion_tokens: tokens.output.unwrap_or_default(),
                cache_read_tokens: tokens.cache_read,
                cache_write_tokens: tokens.cache_write,
                reasoning_tokens: tokens.reasoning.unwrap_or_default(),
                context_window,
                per_turn_token: context,
                response_id: "",
            },
        };
        let usage_id = agents::find(&self.engine).map_or(&*self.engine, |it| it.usage_id);
        let update = StateUpdate::Stats(Stats {
            usage_to_metrics: (usage_id, metrics),
        });
        let head = self.pen.head(Source::Environment);
        let line = Line::ConversationStateUpdateEvent { head, update };
        self.pen.write(out, &line);
    }

    fn error(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let detail = match ended.outcome {
            Outcome::Completed => "the run ended",
            Outcome::Failed => "the run failed",
            Outcome::Aborted => "the run was stopped",
            Outcome::Refused => "the model refused",
            Outcome::Limit => "the run reached a limit",
            Outcome::Lost => "the stream ended before the run did",
        };
        let error = ended.error.as_ref();
        let line = Line::ConversationErrorEvent {
            head: self.pen.head(Source::Environment),
            code: error.map_or(ended.outcome.name(), |it| &it.code),
            detail: error.map_or(Text::new(detail), |it| it.message.by_ref()),
        };
        self.pen.write(out, &line);
    }
}

/// The arguments of the closing call, as JSON text.
fn arguments(message: &Text<'_>) -> String {
    #[derive(serde::Serialize)]
    struct Finish<'a> {
        message: &'a Text<'a>,
    }
    serde_json::to_string(&Finish { message }).expect("text is JSON")
}
