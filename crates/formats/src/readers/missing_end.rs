//! The end of a run whose stream stopped without one.

use std::borrow::Cow;

use model::{End, Exit, Outcome, RunEnded, RunError, Status, Text, Why};

/// Synthesizes `run.ended` for a stream that stopped without one: its reason, and the status of
/// items still open.
pub(crate) fn synthesize(agent: &str, end: &End) -> (RunEnded<'static>, Why, Status) {
    let (outcome, why, code, message) = if end.aborted {
        let message = "aborted".to_owned();
        (Outcome::Aborted, Why::Abort, "aborted", message)
    } else {
        match end.exit {
            Some(Exit::Code(0)) => {
                let message = format!("{agent} finished without saying how the run ended");
                (Outcome::Failed, Why::ProcessExit, "missing_result", message)
            }
            Some(Exit::Code(code)) => {
                let message = format!("{agent} failed (rc={code})");
                (Outcome::Failed, Why::ProcessExit, "crashed", message)
            }
            Some(Exit::Signal(signal)) => {
                let message = format!("{agent} was ended by signal {signal}");
                (Outcome::Failed, Why::ProcessExit, "crashed", message)
            }
            None => {
                let message = "the stream ended without a result".to_owned();
                (Outcome::Lost, Why::MissingEnd, "missing_end", message)
            }
        }
    };
    let left_open = if outcome == Outcome::Aborted {
        Status::Cancelled
    } else {
        Status::Lost
    };
    let error = RunError {
        code: Cow::Borrowed(code),
        message: Text::new(message),
        native: None,
    };
    (RunEnded::new(outcome, Some(error)), why, left_open)
}
