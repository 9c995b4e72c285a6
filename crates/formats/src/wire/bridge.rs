//! The messages that the bridge sends beside the events of any format: what an agent asks, how it was
//! settled, how a run ended.

use model::{AskKind, Deadline, Decision, Denial, Origin, Outcome, Raw, RunError, Text, Why};
use serde::Serialize;

use super::thread::{Figures, Usage};

/// Messages of the bridge, in the order of their events.
#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(crate) enum BridgeMessage<'a> {
    #[serde(rename = "bridge.ask")]
    Ask(Box<BridgeAsk<'a>>),
    #[serde(rename = "bridge.ask_settled", rename_all = "camelCase")]
    AskSettled {
        ask_id: &'a str,
        decision: Decision,
        /// Who caused it: `client`, `agent` or `linkspan`.
        by: Origin,
        /// Why linkspan settled it, where it did.
        why: Option<Why>,
        message: Option<&'a Text<'a>>,
        /// What runs instead of what was asked for, or the answers.
        input: Option<&'a Raw<'a>>,
    },
    #[serde(rename = "bridge.run_ended", rename_all = "camelCase")]
    RunEnded {
        run_id: Option<&'a str>,
        outcome: Outcome,
        answer: Option<&'a Text<'a>>,
        error: Option<&'a RunError<'a>>,
        usage: Option<Usage>,
        #[serde(flatten)]
        figures: Figures<'a>,
        stop_reason: Option<&'a str>,
        denials: &'a [Denial<'a>],
    },
}

/// A question that waits, with everything that is needed to answer it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BridgeAsk<'a> {
    pub(crate) ask_id: &'a str,
    pub(crate) seq: u64,
    pub(crate) run_id: Option<&'a str>,
    pub(crate) item_id: Option<&'a str>,
    pub(crate) kind: AskKind,
    pub(crate) tool: &'a str,
    pub(crate) title: &'a Text<'a>,
    pub(crate) description: Option<&'a Text<'a>>,
    /// The command line, to the letter, of a tool that has one.
    pub(crate) command: Option<Text<'a>>,
    pub(crate) input: Option<&'a Raw<'a>>,
    pub(crate) suggestions: Option<&'a Raw<'a>>,
    /// When it is answered by itself, and how.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) answer: HowToAnswer<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HowToAnswer<'a> {
    /// The session on the server's page, and where an answer is posted; absent without a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<&'a str>,
    pub(crate) decisions: &'static [&'static str],
    /// The control that allows it.
    pub(crate) control: AnswerControl<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AnswerControl<'a> {
    pub(crate) control: &'static str,
    #[serde(rename = "askId")]
    pub(crate) ask_id: &'a str,
    pub(crate) decision: &'static str,
}
