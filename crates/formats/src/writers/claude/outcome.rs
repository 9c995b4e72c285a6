//! The `result` of a turn: Claude Code's own where there is one, else what is known of the end.

use model::{Denial, ItemId, ModelUsage, Outcome, Raw, RunEnded, Text, Tokens, Usage};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use super::{Claude, blocks};
use crate::wire::claude as wire;
use crate::wire::claude::output::{
    DeniedCall, Fields, ModelCounts, ModelTable, ResultBody, UsageObject,
};
use crate::wire::scanner;
use crate::writers::line;

/// What the session has used, as each `result` repeats it.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    models: ModelTable,
    cost_usd: f64,
    n_results: u64,
}

impl Claude {
    pub(super) fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        self.stream_end_all(out);
        let run = self.run.take().unwrap_or_default();
        self.calls.clear();
        self.denied.clear();
        self.agents.clear();
        self.call = None;
        self.totals.add(ended);
        self.totals.n_results += 1;
        if let Some(detail) = ended.detail.as_ref().filter(|it| fits(it, ended.outcome)) {
            return own_result(detail, ended, out);
        }
        let since = table(&ended.models);
        let usage = match &ended.usage {
            Some(usage) => usage_object(usage),
            None => UsageObject::Counts(Tokens::default()),
        };
        let Verdict {
            subtype,
            terminal_reason,
            is_error,
        } = verdict(ended.outcome);
        let message = ended.error.as_ref().map(|it| it.message.by_ref());
        let has_answer = subtype == "success";
        if !has_answer && ended.answer.is_some() {
            self.losses.count("answer of a run that failed");
        }
        if ended.outcome == Outcome::Lost {
            self.losses.count("lost run");
        }
        let refusal = (ended.outcome == Outcome::Refused).then_some("refusal");
        let answer = ended.answer.as_ref().map(Text::by_ref);
        let answer = answer.or_else(|| refusal.and(message.clone()));
        let body = ResultBody {
            subtype,
            is_error,
            duration_ms: ended.duration_ms.unwrap_or_default(),
            duration_api_ms: ended.duration_ms.unwrap_or_default(),
            num_turns: 1 + run.n_messages,
            result: has_answer.then(|| answer.unwrap_or_default()),
            errors: message.into_iter().filter(|_| !has_answer).collect(),
            stop_reason: refusal.or(ended.stop_reason.as_deref()),
            total_cost_usd: self.totals.cost_usd,
            usage: &usage,
            model_usage: &self.totals.models,
            model_usage_since_last_result: &since,
            permission_denials: denials(&ended.denials),
            terminal_reason,
            result_index: self.totals.n_results - 1,
        };
        self.lines
            .write("result", body, None, Fields::default(), out);
    }
}

/// The agent's own counts, where they are in the words of the Messages API.
pub(super) fn usage_object(usage: &Usage<'_>) -> UsageObject {
    let counts = UsageObject::Counts(usage.tokens);
    let Some(detail) = &usage.detail else {
        return counts;
    };
    let own: wire::Usage<'_> = scanner::from_str(detail.get()).unwrap_or_default();
    let tokens = &usage.tokens;
    let is_same = own.input_tokens.as_u64() == Some(tokens.input)
        && own.cache_read_input_tokens.count() == tokens.cache_read
        && own.cache_creation_input_tokens.count() == tokens.cache_write
        && tokens
            .output
            .is_none_or(|it| own.output_tokens.count() == it)
        && (tokens.reasoning)
            .is_none_or(|it| own.output_tokens_details.thinking_tokens.as_u64() == Some(it));
    match is_same {
        true => UsageObject::Native(detail.clone().into_owned()),
        false => counts,
    }
}

struct Verdict {
    subtype: &'static str,
    terminal_reason: &'static str,
    is_error: bool,
}

fn verdict(outcome: Outcome) -> Verdict {
    let (subtype, terminal_reason) = match outcome {
        Outcome::Completed | Outcome::Refused => ("success", "completed"),
        Outcome::Limit => ("error_max_turns", "max_turns"),
        Outcome::Aborted => ("error_during_execution", "aborted_streaming"),
        Outcome::Failed | Outcome::Lost => ("error_during_execution", "model_error"),
    };
    Verdict {
        subtype,
        terminal_reason,
        is_error: subtype != "success",
    }
}

/// True for a `result` of Claude Code that says how this run ended.
fn fits(detail: &Raw<'_>, outcome: Outcome) -> bool {
    let result: wire::Outcome<'_> = scanner::from_str(detail.get()).unwrap_or_default();
    let mut line = wire::Line::default();
    let is_read = crate::wire::lenient::read(detail.get(), &mut line).is_ok();
    let is_result = is_read
        && line.r#type.str().as_deref() == Some("result")
        && line.session_id.is_str()
        && line.uuid.is_str();
    let subtype = result.subtype.as_deref().unwrap_or_default();
    let is_error = result.is_error.is_true() || subtype.starts_with("error");
    let is_same = match outcome {
        Outcome::Completed | Outcome::Refused => !is_error,
        Outcome::Failed | Outcome::Limit | Outcome::Aborted => is_error,
        Outcome::Lost => false,
    };
    is_result && is_same && !subtype.is_empty()
}

/// Claude Code's own line. One with an origin adds to those before it, which are not written: it gets
/// what they had.
fn own_result(detail: &Raw<'_>, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
    let result: wire::Outcome<'_> = scanner::from_str(detail.get()).unwrap_or_default();
    if result.origin.0.is_none() {
        return line(out, detail);
    }
    let fields: BTreeMap<&str, &RawValue> = scanner::from_str(detail.get()).unwrap_or_default();
    let since = Raw::of(&table(&ended.models));
    let denials = denials(&ended.denials);
    let fields = fields.into_iter().map(|(key, value)| {
        let value = match key {
            "permission_denials" => denials.by_ref(),
            "model_usage_since_last_result" => since.by_ref(),
            _ => Raw::borrowed(value),
        };
        (key, value)
    });
    line(out, &Fields(fields.collect()));
}

fn denials(denials: &[Denial<'_>]) -> Raw<'static> {
    let denied = denials.iter().map(|it| DeniedCall {
        tool_name: &it.tool,
        tool_use_id: it.item.as_ref().map_or("", ItemId::as_str),
        tool_input: blocks::input(it.input.as_ref()),
    });
    Raw::of(&denied.collect::<Vec<_>>())
}

fn table(models: &[ModelUsage<'_>]) -> ModelTable {
    let rows = models
        .iter()
        .map(|it| (it.model.to_string(), ModelCounts::of(it)));
    ModelTable(rows.collect())
}

impl ModelCounts {
    fn of(usage: &ModelUsage<'_>) -> Self {
        Self {
            input_tokens: usage.tokens.input,
            output_tokens: usage.tokens.output.unwrap_or_default(),
            cache_read_input_tokens: usage.tokens.cache_read,
            cache_creation_input_tokens: usage.tokens.cache_write,
            cost_usd: usage.cost_usd.unwrap_or_default(),
            context_window: usage.context_window.unwrap_or_default(),
            thinking_tokens: usage.tokens.reasoning,
            ..Self::default()
        }
    }

    fn add(&mut self, more: &Self) {
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.cache_read_input_tokens += more.cache_read_input_tokens;
        self.cache_creation_input_tokens += more.cache_creation_input_tokens;
        self.cost_usd += more.cost_usd;
        self.context_window = self.context_window.max(more.context_window);
        self.thinking_tokens = match (self.thinking_tokens, more.thinking_tokens) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
    }
}

impl Totals {
    fn add(&mut self, ended: &RunEnded<'_>) {
        for usage in &ended.models {
            let counts = ModelCounts::of(usage);
            let mut known = self.models.0.iter_mut();
            match known.find(|(model, _)| *model == *usage.model) {
                Some((_, sum)) => sum.add(&counts),
                None => self.models.0.push((usage.model.to_string(), counts)),
            }
        }
        let run = ended.usage.as_ref().and_then(|it| it.cost_usd);
        let by_model = ended
            .models
            .iter()
            .filter_map(|it| it.cost_usd)
            .sum::<f64>();
        self.cost_usd = match ended.session_cost_usd {
            Some(cost) => cost,
            None => self.cost_usd + run.unwrap_or(by_model),
        };
    }
}
