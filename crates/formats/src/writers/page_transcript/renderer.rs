//! The look of a page: what a format of pages has to say for itself.

use std::fmt::Debug;

use model::{Cause, Decision, Level, Outcome, Plan, Timestamp};

use super::card::ToolCard;
use super::totals::PageTotals;
use crate::writers::sources::SourceLink;
use crate::writers::summary::SessionSummary;

/// Lines of context on each side of a change.
pub(crate) const DIFF_CONTEXT: usize = 20;

/// The look of a page. Every text it is given is foreign and unsafe, unless it says otherwise.
pub(crate) trait Renderer: Clone + Debug + Send + 'static {
    /// Bytes that are shown of one input, output or notice; longer ones are truncated with their
    /// size.
    const MAX_SHOWN: usize;

    fn head(&self, head: &PageHeader<'_>, out: &mut Vec<u8>);
    fn turn(&self, turn: &PageTurn, out: &mut Vec<u8>);
    fn turn_end(&self, end: &PageTurnEnd<'_>, out: &mut Vec<u8>);
    fn foot(&self, foot: &Footer<'_>, out: &mut Vec<u8>);
    fn prose(&self, voice: Author, text: &str, out: &mut Vec<u8>);
    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>);
    /// What an answer refers to.
    fn sources(&self, sources: &[SourceLink], out: &mut Vec<u8>);
    fn card(&self, card: &ToolCard<'_>, out: &mut Vec<u8>);
    fn plan(&self, plan: &Plan<'_>, shown: PlanDisplay, out: &mut Vec<u8>);
    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>);
    /// Something with a name and more to say about it.
    fn aside(&self, name: &str, text: &str, out: &mut Vec<u8>);
    fn ask(&self, question: &str, decision: Decision, answer: &str, out: &mut Vec<u8>);
}

#[derive(Debug)]
pub(crate) struct PageHeader<'a> {
    pub(crate) title: &'a str,
    pub(crate) session: Option<&'a SessionSummary>,
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct PageTurn {
    pub(crate) n: u64,
    pub(crate) cause: Cause,
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct PageTurnEnd<'a> {
    pub(crate) n: u64,
    pub(crate) outcome: Outcome,
    /// A mark and a few words of ours.
    pub(crate) verdict: &'a str,
    pub(crate) facts: &'a [String],
    pub(crate) reason: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct Footer<'a> {
    pub(crate) session: Option<&'a SessionSummary>,
    pub(crate) totals: &'a PageTotals,
    pub(crate) resume: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// What a person asked for.
    Prompt,
    Answer,
    Thought,
    /// A prompt from another agent.
    Task,
    /// A message from the agent program.
    Harness,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Picture<'a> {
    Data { media_type: &'a str, data: &'a str },
    Url(&'a str),
}

/// How much room a plan gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanDisplay {
    Whole,
    /// It was shown before; this is a step on the way.
    Folded,
}
