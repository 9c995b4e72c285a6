//! The end of a turn, and what it has used up.
//!
//! The size of a model's context is known at the end of a run, so the first run of a session reports
//! how full it is at its end, and later ones after each call of the model.

use model::{Event, Outcome, RunEnded, RunError, Scope, Text, Tokens, Usage};

use super::{Acp, wire};
use crate::wire::json_rpc;

/// How full the model's context is.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextWindow {
    model: Option<String>,
    used: Option<u64>,
    size: Option<u64>,
    cost_usd: Option<f64>,
    /// The client knows all of this.
    is_sent: bool,
}

impl Acp {
    pub(super) fn usage(&mut self, event: &Event<'_>, usage: &Usage<'_>, out: &mut Vec<u8>) {
        match usage.scope {
            Scope::Call if event.path.is_empty() => {
                self.context.call(usage);
                if !self.send_usage(out)
                    && let Some(run) = &mut self.run
                {
                    run.has_unsent_usage = true;
                }
            }
            Scope::Session => self.context.spent(usage.cost_usd),
            // A sub-agent has a context of its own; the end of the run has the sums.
            Scope::Call | Scope::Run => (),
        }
    }

    /// Tells how full the context is, if that is known.
    fn send_usage(&mut self, out: &mut Vec<u8>) -> bool {
        // ACP requires both.
        let (Some(used), Some(size)) = (self.context.used, self.context.size) else {
            return false;
        };
        if std::mem::replace(&mut self.context.is_sent, true) {
            return true;
        }
        let cost = self.context.cost_usd.map(|amount| wire::Cost {
            amount,
            currency: "USD",
        });
        let update = wire::UsageUpdate { used, size, cost };
        self.send(out, wire::SessionUpdate::UsageUpdate(update));
        true
    }

    pub(super) fn finish(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let Some(run) = self.run.take() else { return };
        self.close_left_open(out);
        self.texts.clear();
        self.context.end(ended);
        if !self.send_usage(out) && (run.has_unsent_usage || ended.usage.is_some()) {
            self.losses.count("usage report");
        }
        let stop_reason = match ended.outcome {
            // An answer cut at the token limit may come as either; ACP has its own reason for it.
            Outcome::Completed | Outcome::Limit
                if ended.stop_reason.as_deref() == Some("max_tokens") =>
            {
                "max_tokens"
            }
            Outcome::Completed => "end_turn",
            Outcome::Limit => "max_turn_requests",
            Outcome::Refused => "refusal",
            Outcome::Aborted => "cancelled",
            // ACP has no stop reason for a failure: the prompt is answered with an error.
            Outcome::Failed | Outcome::Lost => return self.failure(ended, out),
        };
        // An answer that a message brought must not be sent twice.
        if !run.has_text {
            self.missing_answer(ended, out);
        }
        // The stop reason of an aborted run needs no error beside it.
        let error = ended.error.as_ref();
        let error = error.filter(|_| ended.outcome != Outcome::Aborted);
        let meta = error.map(|error| wire::StopMeta {
            code: &error.code,
            message: error.message.by_ref(),
        });
        let result = wire::PromptResponse {
            stop_reason,
            usage: tokens(ended),
            meta,
        };
        self.respond("result", &result, out);
    }

    /// An answer that no message had: a local command's, for example.
    fn missing_answer(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let Some(answer) = ended.answer.as_ref().filter(|it| !it.is_empty()) else {
            return;
        };
        let text = answer.by_ref();
        let chunk = wire::ContentChunk {
            message_id: None,
            content: wire::ContentBlock::Text { text },
            meta: None,
        };
        self.send(out, wire::SessionUpdate::AgentMessageChunk(chunk));
    }

    fn failure(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        let unknown = RunError::new("unknown", Text::new("the run failed"));
        let error = ended.error.as_ref().unwrap_or(&unknown);
        // By this code a client offers to log in.
        let code = if error.code == "auth" {
            json_rpc::AUTH_REQUIRED
        } else {
            json_rpc::INTERNAL_ERROR
        };
        let error = wire::Error {
            code,
            message: error.message.by_ref(),
            data: wire::ErrorData {
                code: &error.code,
                outcome: Some(ended.outcome).filter(|it| *it == Outcome::Lost),
            },
        };
        self.respond("error", &error, out);
    }
}

/// What the run used, of all models together.
fn tokens(ended: &RunEnded<'_>) -> Option<wire::TokenUsage> {
    let tokens = match &ended.usage {
        Some(usage) => usage.tokens,
        None if ended.models.is_empty() => return None,
        None => (ended.models.iter()).fold(Tokens::default(), |sum, it| sum.plus(&it.tokens)),
    };
    let output_tokens = tokens.output.unwrap_or_default();
    Some(wire::TokenUsage {
        total_tokens: tokens.all_input().saturating_add(output_tokens),
        input_tokens: tokens.input,
        output_tokens,
        thought_tokens: tokens.reasoning,
        cached_read_tokens: tokens.cache_read,
        cached_write_tokens: tokens.cache_write,
    })
}

impl ContextWindow {
    fn call(&mut self, usage: &Usage<'_>) {
        let tokens = &usage.tokens;
        let output = tokens.output.unwrap_or_default();
        let used = Some(tokens.all_input().saturating_add(output));
        // The same numbers again are not worth an update.
        self.is_sent &= used == self.used;
        self.used = used;
        if self.model.as_deref() != usage.model.as_deref() {
            // Another model has another window, which is known at the end of the run.
            self.model = usage.model.as_deref().map(str::to_owned);
            self.size = None;
            self.is_sent = false;
        }
    }

    fn end(&mut self, ended: &RunEnded<'_>) {
        self.spent(ended.session_cost_usd);
        let mut models = ended.models.iter();
        let model = models.find(|it| Some(&*it.model) == self.model.as_deref());
        let model = model.or(match &*ended.models {
            [only] => Some(only),
            _ => None,
        });
        let size = model.and_then(|it| it.context_window).or(self.size);
        self.is_sent &= size == self.size;
        self.size = size;
    }

    /// What the session has cost so far.
    fn spent(&mut self, cost_usd: Option<f64>) {
        let cost_usd = cost_usd.or(self.cost_usd);
        self.is_sent &= cost_usd == self.cost_usd;
        self.cost_usd = cost_usd;
    }
}
