//! Agents' wire formats to the model, one file or folder per format.

pub(crate) mod acp;
mod acp_tool_content;
pub(crate) mod ag_ui;
mod arguments;
pub(crate) mod claude;
pub(crate) mod codex;
mod content;
pub(crate) mod gemini;
mod growing_text;
mod input;
mod lifecycle;
pub(crate) mod linkspan;
mod machine;
mod missing_end;
pub(crate) mod opencode;
pub(crate) mod openhands;
pub(crate) mod openresponses;
mod plans;
mod recent;
mod session_tracker;
mod subagents;
#[cfg(test)]
mod test_notation;
#[cfg(test)]
mod test_support;

pub use lifecycle::ItemIds;
pub(crate) use machine::machine;
use model::Timestamp;

/// The configuration of a reader: facts that are not in the stream.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// linkspan's own id of the session.
    pub session: String,
    /// The requested native session; another one is a failure.
    pub expected_session: Option<String>,
    /// When the stream started, for recordings with relative times only.
    pub started_at: Option<Timestamp>,
    pub run_ends: RunEnds,
    /// What the agent is called, where many agents speak one format.
    pub engine: Option<String>,
    pub previous: PreviousStreams,
}

/// What earlier streams of a session have used, so that new ids are unique. Empty for a session's
/// first stream.
#[derive(Clone, Debug, Default)]
pub struct PreviousStreams {
    pub n_runs: u64,
    pub items: ItemIds,
}

/// When a run ends. A stream may continue after the agent reported the end: later frames are kept
/// in notices (`after_end`), and start another run only if a turn is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnds {
    /// At the next turn or at the end of the stream: a recording may hold many turns, and background
    /// work may still add to each of them.
    AtNextTurn,
    /// At the end of the stream: the process was given one prompt, so there is one run, whatever it
    /// prints.
    AtExit,
    /// As soon as the agent reports it: a client of a process that stays alive waits for it.
    AtResult,
}

impl Default for ReaderConfig {
    fn default() -> Self {
        Self {
            session: "s1".to_owned(),
            expected_session: None,
            started_at: None,
            run_ends: RunEnds::AtNextTurn,
            engine: None,
            previous: PreviousStreams::default(),
        }
    }
}
