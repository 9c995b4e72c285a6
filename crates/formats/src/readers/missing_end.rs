//! The end of a run whose stream stopped without one: the same for every agent.

use model::{End, Exit, Outcome, RunEnded, RunError, Text, Why};

/// A synthesized end, and why it had to be.
#[derive(Clone, Debug)]
pub(crate) struct MissingEnd {
    pub(crate) ended: RunEnded<'static>,
    /// Absent when the agent did report how the run went, only not as its end.
    pub(crate) why: Option<Why>,
}

impl MissingEnd {
    fn new(outcome: Outcome, why: Why, code: &'static str, message: impl Into<String>) -> Self {
        let error = RunError::new(code, Text::new(message.into()));
        Self {
            ended: RunEnded::new(outcome, Some(error)),
            why: Some(why),
        }
    }

    /// What became of the run, by what became of the stream. `has_session` is false when the agent
    /// never named its session, for which it has the word `session_id`.
    pub(crate) fn of_stream(agent: &str, session_id: &str, end: &End, has_session: bool) -> Self {
        let failed = |code, message| Self::new(Outcome::Failed, Why::ProcessExit, code, message);
        match end.exit {
            // First of all: a process that was stopped exits in many ways, and none of them is its
            // failure.
            _ if end.aborted => Self::aborted(),
            // The process calls it a success, but nothing can be resumed.
            Some(Exit::Code(0)) if !has_session => failed(
                "no_session",
                format!("{agent} finished but no {session_id} was captured"),
            ),
            Some(Exit::Code(0)) => failed(
                "missing_result",
                format!("{agent} finished without a result event"),
            ),
            Some(Exit::Code(code)) => failed("crashed", format!("{agent} failed (rc={code})")),
            Some(Exit::Signal(signal)) => {
                failed("crashed", format!("{agent} was ended by signal {signal}"))
            }
            None => Self::new(
                Outcome::Lost,
                Why::MissingEnd,
                "missing_end",
                "the stream ended without a result",
            ),
        }
    }

    /// The stream continues with another run, and nothing has ended this one.
    pub(crate) fn before_next(was_interrupted: bool) -> Self {
        if was_interrupted {
            return Self::aborted();
        }
        let message = "the next run began before this one had a result";
        Self::new(Outcome::Lost, Why::MissingEnd, "missing_end", message)
    }

    fn aborted() -> Self {
        Self::new(Outcome::Aborted, Why::Abort, "aborted", "aborted")
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.ended.outcome == Outcome::Aborted
    }

    /// The agent has given a reason for the failure.
    pub(crate) fn fail_with(&mut self, error: RunError<'static>) {
        self.ended = RunEnded::new(Outcome::Failed, Some(error));
    }
}
