//! What all runs of a page took together.

use model::{RunEnded, Tokens};

use crate::writers::summary::{SessionSummary, cost, count, dollars};

/// Maximum number of models; the tokens of further ones are added to the last.
const MAX_MODELS: usize = 32;

#[derive(Clone, Debug, Default)]
pub(crate) struct PageTotals {
    pub(crate) n_runs: u64,
    pub(crate) duration_ms: u64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) rows: Vec<ModelTotals>,
}

/// The tokens of one model.
#[derive(Clone, Debug)]
pub(crate) struct ModelTotals {
    pub(crate) model: String,
    tokens: Tokens,
    cost_usd: Option<f64>,
}

impl PageTotals {
    pub(super) fn add(&mut self, ended: &RunEnded<'_>, session: Option<&SessionSummary>) {
        self.n_runs += 1;
        let ms = ended.duration_ms.unwrap_or_default();
        self.duration_ms = self.duration_ms.saturating_add(ms);
        self.cost_usd = plus(self.cost_usd, cost(ended));
        for it in &ended.models {
            self.row(&it.model, &it.tokens, it.cost_usd);
        }
        // The counts by model hold the same tokens, and those of sub-agents.
        if let (true, Some(usage)) = (ended.models.is_empty(), &ended.usage) {
            let model = usage.model.as_deref();
            let model = model.or(session.and_then(|it| it.model.as_deref()));
            self.row(model.unwrap_or("all"), &usage.tokens, usage.cost_usd);
        }
    }

    fn row(&mut self, model: &str, tokens: &Tokens, cost_usd: Option<f64>) {
        if tokens.all_input() == 0 && tokens.output.unwrap_or_default() == 0 {
            return;
        }
        let at = self.rows.iter().position(|it| it.model == model);
        let at = at.or((self.rows.len() == MAX_MODELS).then_some(MAX_MODELS - 1));
        match at.map(|at| &mut self.rows[at]) {
            Some(row) => {
                row.tokens = row.tokens.plus(tokens);
                row.cost_usd = plus(row.cost_usd, cost_usd);
            }
            None => self.rows.push(ModelTotals {
                model: model.to_owned(),
                tokens: *tokens,
                cost_usd,
            }),
        }
    }
}

impl ModelTotals {
    /// Input, cached input, output and cost.
    pub(crate) fn cells(&self) -> [String; 4] {
        let tokens = &self.tokens;
        [
            count(tokens.input.saturating_add(tokens.cache_write)),
            count(tokens.cache_read),
            count(tokens.output.unwrap_or_default()),
            self.cost_usd.map(dollars).unwrap_or_default(),
        ]
    }
}

fn plus(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}
