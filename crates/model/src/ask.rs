//! Asks: the agent waits for a permission or an answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::{AskId, ItemId};
use crate::names::names;
use crate::payload::{Raw, Text};
use crate::time::Timestamp;

/// An open question; exactly one `ask.settled` follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ask<'a> {
    #[serde(borrow)]
    pub id: AskId<'a>,
    pub kind: AskKind,
    /// The tool call it is about.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId<'a>>,
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// One line for people; never empty.
    #[serde(borrow)]
    pub title: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    /// Rules the agent offers to remember with a lasting permission.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Raw<'a>>,
    /// When linkspan answers it by itself, unless a client has by then; without one it waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// When an ask without an answer is settled, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Deadline {
    pub at: Timestamp,
    /// Either `allowed` or `denied`.
    pub decision: Decision,
}

impl<'a> Ask<'a> {
    /// A question about no call, without anything to run.
    pub fn new(
        id: AskId<'a>,
        kind: AskKind,
        tool: impl Into<Cow<'a, str>>,
        title: Text<'a>,
    ) -> Self {
        Self {
            id,
            kind,
            item: None,
            tool: tool.into(),
            title,
            description: None,
            input: None,
            suggestions: None,
            deadline: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    Permission,
    Question,
    /// A plan waits for approval.
    Plan,
}

/// The one end of an ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskSettled<'a> {
    #[serde(borrow)]
    pub id: AskId<'a>,
    pub decision: Decision,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// The input that runs instead, or the answers.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    /// The rules that were remembered.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Raw<'a>>,
}

impl<'a> AskSettled<'a> {
    /// A settlement without words, with the input as it was asked.
    pub fn new(id: AskId<'a>, decision: Decision) -> Self {
        Self {
            id,
            decision,
            message: None,
            input: None,
            remembered: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allowed,
    AllowedAlways,
    Denied,
    /// The agent took the question back.
    Withdrawn,
    /// The stream ended before an answer was seen.
    Lost,
}

names!(Decision {
    Allowed = "allowed",
    AllowedAlways = "allowed_always",
    Denied = "denied",
    Withdrawn = "withdrawn",
    Lost = "lost",
});
