//! Agents' wire formats to the model, one file or folder per format.

pub(crate) mod acp;
mod acp_tool_content;
pub(crate) mod ag_ui;
mod arguments;
pub(crate) mod claude;
pub(crate) mod codex;
mod content;
pub(crate) mod gemini;
mod input;
mod lifecycle;
pub(crate) mod linkspan;
mod missing_end;
mod nested;
pub(crate) mod opencode;
pub(crate) mod openhands;
pub(crate) mod openresponses;
mod session_tracker;
#[cfg(test)]
mod test_summary;
#[cfg(test)]
mod test_support;
mod todos;

pub use lifecycle::ItemIds;
use model::Timestamp;

/// What a reader has to be told, because no stream says it.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// linkspan's own id of the session.
    pub session: String,
    /// The native session that was asked for; another one is a failure.
    pub expected_session: Option<String>,
    /// When the stream began, for recordings that only tell seconds since then.
    pub started_at: Option<Timestamp>,
    pub run_ends: RunEnds,
    /// What the agent is called, where many agents speak one format.
    pub engine: Option<String>,
    pub previous: PreviousStreams,
}

/// What a session holds before the stream begins, so that the names it goes on with are new.
/// Of a session's first stream there is nothing.
#[derive(Clone, Debug, Default)]
pub struct PreviousStreams {
    pub n_runs: u64,
    pub items: ItemIds,
}

/// When a run is over. A stream may go on after its agent said so: what follows is kept in notices
/// (`after_end`), and begins another run only if it is said that a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnds {
    /// At the next turn or at the end of the stream: a recording may hold many turns, and background
    /// work may still add to each of them.
    AtNextTurn,
    /// At the end of the stream: the process was given one prompt, so there is one run, whatever it
    /// prints.
    AtExit,
    /// As soon as the agent says so: a client of a process that stays alive waits for it.
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
