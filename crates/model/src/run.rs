//! Runs: one prompt cycle, how it ended and what it cost.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::names::names;
use crate::payload::{Raw, Text};

/// A prompt cycle begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunStarted {
    pub cause: Cause,
    /// The number that a server gave the prompt when it took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
}

impl RunStarted {
    /// A run that no prompt of a server's queue began.
    pub fn new(cause: Cause) -> Self {
        Self {
            cause,
            prompt: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Prompt,
    /// Background work of the agent woke its model.
    WakeUp,
}

/// The one end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEnded<'a> {
    pub outcome: Outcome,
    /// The final answer; for a failed run, its last text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial<'a>>,
    /// Tokens of the main agent in this run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage<'a>>,
    /// Tokens by model in this run, sub-agents included.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage<'a>>,
    /// What the session has cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The model's own stop reason.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The agent's own last frame of the run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Raw<'a>>,
}

impl<'a> RunEnded<'a> {
    /// An end of which nothing more is known.
    pub fn new(outcome: Outcome, error: Option<RunError<'a>>) -> Self {
        Self {
            outcome,
            answer: None,
            error,
            denials: Vec::new(),
            usage: None,
            models: Vec::new(),
            session_cost_usd: None,
            duration_ms: None,
            stop_reason: None,
            detail: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed,
    /// Stopped on purpose.
    Aborted,
    /// The model would not do it.
    Refused,
    /// A limit of turns, tokens or money was reached.
    Limit,
    /// The stream stopped for an unknown reason.
    Lost,
}

names!(Outcome {
    Completed = "completed",
    Failed = "failed",
    Aborted = "aborted",
    Refused = "refused",
    Limit = "limit",
    Lost = "lost",
});

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunError<'a> {
    /// A stable code for programs, the same for every agent, such as `rate_limited` or `crashed`.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    #[serde(borrow)]
    pub message: Text<'a>,
    /// The agent's own error code, if it differs.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Cow<'a, str>>,
}

impl<'a> RunError<'a> {
    pub fn new(code: impl Into<Cow<'a, str>>, message: Text<'a>) -> Self {
        Self {
            code: code.into(),
            message,
            native: None,
        }
    }
}

/// A tool call that was not allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Denial<'a> {
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
}

/// Tokens and cost, with what they cover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage<'a> {
    pub scope: Scope,
    pub basis: Basis,
    pub tokens: Tokens,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent's own numbers, unchanged.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Raw<'a>>,
}

impl Usage<'_> {
    pub fn new(scope: Scope, basis: Basis, tokens: Tokens) -> Self {
        Self {
            scope,
            basis,
            tokens,
            model: None,
            cost_usd: None,
            detail: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One request to the model.
    Call,
    Run,
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// To be added to what was reported before.
    Delta,
    /// Replaces what was reported before.
    Cumulative,
}

/// Token counts. The parts of the input are disjoint; reasoning is a part of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tokens {
    /// Input that was neither read from nor written to a cache.
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub cache_read: u64,
    #[serde(default)]
    pub cache_write: u64,
    /// Absent when the agent does not know it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Tokens {
    /// Both together; a count that either knows is known.
    pub fn plus(&self, other: &Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            // Counts come from foreign programs: a nonsensical one must not panic.
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: add(self.output, other.output),
            reasoning: add(self.reasoning, other.reasoning),
        }
    }

    /// Everything the model read.
    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelUsage<'a> {
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    pub tokens: Tokens,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

impl<'a> ModelUsage<'a> {
    pub fn new(model: impl Into<Cow<'a, str>>, tokens: Tokens) -> Self {
        Self {
            model: model.into(),
            tokens,
            cost_usd: None,
            context_window: None,
        }
    }
}
