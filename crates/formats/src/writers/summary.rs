//! The header and the summary of a transcript: agent, directory, outcome, usage.

use model::{Compaction, Item, ModelUsage, Outcome, Role, RunEnded, SessionBound, Tokens};

use crate::resume;

/// The reported facts about the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionSummary {
    pub(crate) engine: String,
    pub(crate) native: String,
    pub(crate) model: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) mode: Option<String>,
    version: Option<String>,
}

impl SessionSummary {
    pub(crate) fn new(bound: &SessionBound<'_>, engine: &str) -> Self {
        let own = |it: &Option<std::borrow::Cow<'_, str>>| it.as_deref().map(str::to_owned);
        Self {
            engine: engine.to_owned(),
            native: bound.native.as_str().to_owned(),
            model: own(&bound.model),
            cwd: own(&bound.cwd),
            // Every session has a mode; only another one is worth showing.
            mode: own(&bound.permission_mode).filter(|it| it != "default"),
            version: own(&bound.version),
        }
    }

    /// The agent and its version.
    pub(crate) fn agent(&self) -> String {
        let engine = &self.engine;
        match &self.version {
            Some(version) => format!("{engine} {version}"),
            None => engine.clone(),
        }
    }

    pub(crate) fn headline(&self) -> String {
        let engine = self.agent();
        let mode = self.mode.as_ref().map(|it| format!("{it} mode"));
        let session = Some(&self.native).filter(|it| !it.is_empty());
        let session = session.map(|it| format!("session {it}"));
        let facts = [self.model.clone(), self.cwd.clone(), mode, session];
        let facts = facts.into_iter().flatten();
        std::iter::once(engine)
            .chain(facts)
            .collect::<Vec<_>>()
            .join(" · ")
    }

    /// Takes over the facts of `now`, and returns those that are new.
    pub(crate) fn update(&mut self, now: Self, has_mode: bool) -> Option<String> {
        let mut news = Vec::new();
        let mut take = |old: &mut Option<String>, new: Option<String>| {
            // A later report may know less than the first.
            if new.is_some() && *old != new {
                news.extend(new.clone());
                *old = new;
            }
        };
        take(&mut self.model, now.model);
        take(&mut self.cwd, now.cwd);
        take(&mut self.version, now.version);
        // No mode means `default` or that none was reported, so the report itself counts.
        if has_mode && self.mode != now.mode {
            let mode = now.mode.as_deref().unwrap_or("default");
            news.push(format!("{mode} mode"));
            self.mode = now.mode;
        }
        (!news.is_empty()).then(|| news.join(" · "))
    }
}

/// The agent did it, as opposed to receiving it.
pub(crate) fn is_of_agent(item: &Item<'_>) -> bool {
    match item {
        Item::Message(message) => message.role == Role::Assistant,
        Item::Reasoning(_)
        | Item::Tool(_)
        | Item::Plan(_)
        | Item::Subagent(_)
        | Item::Compaction(_)
        | Item::Other(_) => true,
    }
}

/// Words that agents use in their notices about the model's API, and what they mean.
const API_WORDS: [(&str, &str); 5] = [
    ("allowed_warning", "almost reached"),
    ("authentication_failed", "authentication failed"),
    ("billing_error", "billing error"),
    ("invalid_request", "invalid request"),
    ("server_error", "server error"),
];

/// A notice as it is shown.
pub(crate) fn notice_text(code: &str, text: &str) -> String {
    match code {
        // The text is only the task's own name.
        _ if code.starts_with("task_") => format!("{}: {text}", code.replace('_', " ")),
        "api_retry" | "rate_limit" => {
            let is_part = |it: char| it.is_ascii_lowercase() || it == '_';
            let label = |piece: &str| {
                let word = piece.trim_end_matches(|it| !is_part(it));
                let known = API_WORDS.iter().find(|it| it.0 == word);
                format!("{}{}", known.map_or(word, |it| it.1), &piece[word.len()..])
            };
            text.split_inclusive(|it| !is_part(it)).map(label).collect()
        }
        _ => text.to_owned(),
    }
}

/// How a run ended and how long it took, in a few words.
pub(crate) fn outcome_label(outcome: Outcome, duration_ms: Option<u64>) -> String {
    let (verdict, word) = match outcome {
        Outcome::Completed => ("✓ done", "in"),
        Outcome::Failed => ("✗ failed", "after"),
        Outcome::Aborted => ("⊘ stopped", "after"),
        Outcome::Refused => ("⊘ refused", "after"),
        Outcome::Limit => ("✗ stopped at a limit", "after"),
        Outcome::Lost => ("? cut off", "after"),
    };
    match duration_ms {
        Some(ms) => format!("{verdict} {word} {}", duration(ms)),
        None => verdict.to_owned(),
    }
}

/// What a run took: requests to the model, tokens, cost.
pub(crate) fn summary_line(ended: &RunEnded<'_>, n_requests: u64) -> Vec<String> {
    let mut facts = Vec::new();
    if n_requests > 0 {
        facts.push(plural(n_requests, "request"));
    }
    let tokens = tokens(ended);
    let (input, output) = (tokens.all_input(), tokens.output.unwrap_or_default());
    if input > 0 || output > 0 {
        facts.push(format!(
            "{} in / {} out tokens",
            count(input),
            count(output)
        ));
    }
    if let Some(cost) = cost(ended).filter(|it| *it > 0.0) {
        facts.push(dollars(cost));
    }
    if !ended.denials.is_empty() {
        facts.push(format!("{} denied", ended.denials.len()));
    }
    facts
}

/// What a compaction did.
pub(crate) fn compacted(compaction: &Compaction<'_>) -> String {
    let trigger = compaction.trigger.as_deref().map(|it| format!(" ({it})"));
    let tokens = match (compaction.tokens_before, compaction.tokens_after) {
        (Some(before), Some(after)) => format!(": {} → {} tokens", count(before), count(after)),
        (Some(before), None) => format!(": {} tokens before", count(before)),
        (None, _) => String::new(),
    };
    format!("context compacted{}{tokens}", trigger.unwrap_or_default())
}

/// What all runs took together.
pub(crate) fn totals(n_runs: u64, duration_ms: u64, cost_usd: Option<f64>) -> Vec<String> {
    let mut facts = Vec::new();
    if n_runs > 0 {
        facts.push(plural(n_runs, "run"));
    }
    if duration_ms > 0 {
        facts.push(duration(duration_ms));
    }
    if let Some(cost) = cost_usd.filter(|it| *it > 0.0) {
        facts.push(dollars(cost));
    }
    facts
}

pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{}.{}s", seconds, ms % 1000 / 100),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The command that resumes a session, if its id is one plain word to every shell.
pub(crate) fn resume_hint(session: &SessionSummary) -> Option<String> {
    if !resume::is_offered(&session.engine) {
        return None;
    }
    let native = &*session.native;
    let is_word = !native.is_empty()
        // An agent would read it as a flag.
        && !native.starts_with('-')
        && native
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'));
    if !is_word {
        return None;
    }
    let line = resume::format(&session.engine, native)?;
    Some(line.trim_matches('`').to_owned())
}

/// The tokens of this run: by model where that is known, because it includes the sub-agents.
fn tokens(ended: &RunEnded<'_>) -> Tokens {
    let models = ended.models.iter();
    let by_model = models.fold(Tokens::default(), |sum, it| sum.plus(&it.tokens));
    let is_known = by_model.all_input() > 0 || by_model.output.unwrap_or_default() > 0;
    match &ended.usage {
        Some(usage) if !is_known => usage.tokens,
        _ => by_model,
    }
}

/// What this run cost: by model where that is known, because it includes the sub-agents.
pub(crate) fn cost(ended: &RunEnded<'_>) -> Option<f64> {
    let by_model = |it: &ModelUsage<'_>| it.cost_usd;
    ended
        .models
        .iter()
        .map(by_model)
        // With one price missing, a sum would be wrong.
        .sum::<Option<f64>>()
        .filter(|_| !ended.models.is_empty())
        .or(ended.usage.as_ref()?.cost_usd)
}

pub(crate) fn dollars(cost: f64) -> String {
    // Rounded before it is printed: the page does the same, and languages print ties differently.
    if cost == 0.0 {
        "$0".to_owned()
    } else if cost < 0.1 {
        format!("${:.4}", (cost * 1e4).round() / 1e4)
    } else {
        format!("${:.2}", (cost * 1e2).round() / 1e2)
    }
}

pub(crate) fn count(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => tenths(n, 1_000) + "k",
        _ => tenths(n, 1_000_000) + "M",
    }
}

/// Half a tenth is rounded up.
fn tenths(n: u64, unit: u64) -> String {
    let tenths = n.saturating_add(unit / 20) / (unit / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

pub(crate) fn plural(n: u64, thing: &str) -> String {
    if n == 1 {
        format!("1 {thing}")
    } else {
        format!("{n} {thing}s")
    }
}
