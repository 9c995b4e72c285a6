//! Why an agent ended, where its stream does not say: what was done to it, and the end of its stderr.

use std::borrow::Cow;

use formats::errors;
use model::{RunError, Text};

use super::LOGIN_REQUIRED;

/// Why the process ended, if its agent did not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndReason {
    /// The supervisor's action, which overrides the exit status: a code and a sentence.
    pub(crate) cause: Option<(String, String)>,
    /// The end of stderr.
    pub(crate) stderr: String,
}

impl EndReason {
    /// `before` is what the exit looks like.
    pub(super) fn error<'a>(&self, before: Option<RunError<'a>>) -> RunError<'a> {
        let stderr = self.stderr.trim();
        let mut native = None;
        let (code, message) = match (&self.cause, before) {
            // The agent has asked for a login; its log of the refusal adds nothing.
            (Some((code, message)), _) if code == LOGIN_REQUIRED => {
                (Cow::Owned(code.clone()), message.clone())
            }
            (Some((code, message)), _) => {
                let message = joined([&**message, &without_warnings(stderr)]);
                (Cow::Owned(code.clone()), message)
            }
            (None, Some(before)) => {
                native = before.native;
                (before.code, explained(&before.message.to_str(), stderr))
            }
            (None, None) => (
                Cow::Borrowed("crashed"),
                explained("the agent ended", stderr),
            ),
        };
        let mut error = RunError::new(code, Text::new(message));
        error.native = native;
        // What stderr adds may tell a better code than the exit does.
        errors::settle(&mut error);
        error
    }
}

/// How the process ended, explained by the end of stderr. A line that calls itself the error leads, and what
/// follows it; otherwise stderr follows in its order.
fn explained(exit: &str, stderr: &str) -> String {
    let mut words = without_warnings(stderr);
    if words.is_empty() {
        // Warnings are all that there is to go by.
        words = stderr.to_owned();
    }
    match split_error(&words) {
        Some((before, error)) => joined([error, before, exit]),
        None => joined([exit, &words]),
    }
}

/// The text before the last line that calls itself an error, and that line with all after it.
fn split_error(words: &str) -> Option<(&str, &str)> {
    const PREFIXES: [&str; 3] = ["Error: ", "error: ", "ERROR: "];
    let mut at = 0;
    let mut found = None;
    for line in words.split_inclusive('\n') {
        if let Some(prefix) = PREFIXES.iter().find(|it| line.starts_with(**it)) {
            found = Some((words[..at].trim_end(), &words[at + prefix.len()..]));
        }
        at += line.len();
    }
    found
}

/// Warnings are about something else than the end.
fn without_warnings(stderr: &str) -> String {
    const PREFIXES: [&str; 4] = ["WARNING: ", "Warning: ", "warning: ", "WARN "];
    let is_warning = |line: &&str| PREFIXES.iter().any(|it| line.starts_with(it));
    let lines: Vec<&str> = stderr.lines().filter(|it| !is_warning(it)).collect();
    lines.join("\n").trim().to_owned()
}

fn joined<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts = parts.into_iter().filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "WARNING: proceeding, even though we could not create PATH aliases";

    fn message(cause: Option<&str>, stderr: &str) -> String {
        let reason = EndReason {
            cause: cause.map(|it| ("request_failed".to_owned(), it.to_owned())),
            stderr: stderr.to_owned(),
        };
        let exit = RunError::new("crashed", Text::new("codex exec failed (rc=1)"));
        reason.error(Some(exit)).message.to_string()
    }

    #[test]
    fn the_error_leads_and_warnings_are_left_out() {
        let stderr = format!("{WARNING}\nError: no rollout found for thread id 1\n");
        assert_eq!(
            message(None, &stderr),
            "no rollout found for thread id 1\ncodex exec failed (rc=1)"
        );
        assert_eq!(
            message(Some("no rollout found"), WARNING),
            "no rollout found"
        );
    }

    #[test]
    fn other_words_follow_in_their_order() {
        assert_eq!(
            message(None, "out of luck\n"),
            "codex exec failed (rc=1)\nout of luck"
        );
        assert_eq!(
            message(None, "x.js:3\nError: boom\n  at x.js:3\n"),
            "boom\n  at x.js:3\nx.js:3\ncodex exec failed (rc=1)"
        );
        assert_eq!(
            message(None, WARNING),
            format!("codex exec failed (rc=1)\n{WARNING}")
        );
        assert_eq!(message(Some("gave up"), "why"), "gave up\nwhy");
        assert_eq!(message(None, ""), "codex exec failed (rc=1)");
    }
}
