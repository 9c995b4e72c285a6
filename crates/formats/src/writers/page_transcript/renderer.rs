//! The look of a page: what each page format implements.

use std::fmt::Debug;

use model::{Decision, Level, Plan, Timestamp};

use super::card::ToolCard;
use super::totals::PageTotals;
use crate::writers::sources::SourceLink;
use crate::writers::summary::SessionSummary;
use crate::writers::transcript::{Author, Picture, PlanDisplay, RunEnd, RunStart};

/// Lines of context on each side of a change.
pub(crate) const DIFF_CONTEXT: usize = 20;

/// The look of a page. Every text it is given is foreign and unsafe, unless noted otherwise.
pub(crate) trait Renderer: Clone + Debug + Send + 'static {
    /// Bytes that are shown of one input, output or notice; longer ones are truncated with their
    /// size.
    const MAX_SHOWN: usize;

    fn head(&self, head: &PageHeader<'_>, out: &mut Vec<u8>);
    fn run_started(&self, run: &RunStart, out: &mut Vec<u8>);
    /// The reason may be shorter than the end's own.
    fn run_ended(&self, end: &RunEnd<'_>, reason: Option<&str>, out: &mut Vec<u8>);
    fn foot(&self, foot: &Footer<'_>, out: &mut Vec<u8>);
    fn prose(&self, author: Author, text: &str, out: &mut Vec<u8>);
    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>);
    /// What an answer refers to.
    fn sources(&self, sources: &[SourceLink], out: &mut Vec<u8>);
    fn card(&self, card: &ToolCard<'_>, out: &mut Vec<u8>);
    fn plan(&self, plan: &Plan<'_>, shown: PlanDisplay, out: &mut Vec<u8>);
    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>);
    /// A named text, folded.
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
pub(crate) struct Footer<'a> {
    pub(crate) session: Option<&'a SessionSummary>,
    pub(crate) totals: &'a PageTotals,
    pub(crate) resume: Option<&'a str>,
}
