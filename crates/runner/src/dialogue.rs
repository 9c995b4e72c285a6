//! Talks with agent processes that stay: prompts, answers to asks, interrupts, settings.
//!
//! A dialogue is a state machine without I/O and without a clock, as a reader is. It sees every
//! line the agent prints and decides what to send. Events come from the reader alone: the caller
//! shows it each line that was sent, wrapped by [`sent`], beside the lines the agent printed.

mod acp;
mod claude;
mod codex;
mod openhands;
mod rpc;
#[cfg(test)]
mod tests;

use std::fmt;

use memchr::memmem;
use model::{RunError, Text};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::request::{Answer, Mode, Prompt};

pub use acp::Acp;
pub use claude::Claude;
pub use codex::Codex;
pub use openhands::OpenHands;

/// Talks with one agent process: what to send it, and when.
pub trait Dialogue: Send {
    /// The process has started: sends the handshake.
    fn open(&mut self, out: &mut Outbox);

    /// A line the agent printed. Requests that no client handles are answered here.
    fn line(&mut self, line: &str, out: &mut Outbox);

    /// The next prompt. It is sent when it can be: after the handshake, and after the run before it,
    /// so that each prompt has a run of its own.
    fn prompt(&mut self, prompt: &Prompt, out: &mut Outbox);

    /// Asks the agent to end its run and stay alive; false when there is no run. Pending prompts
    /// are sent afterwards.
    fn interrupt(&mut self, out: &mut Outbox) -> bool;

    /// Answers the ask that the reader emitted under this id. `input` is what the agent wants to run: it may be
    /// many megabytes, so the dialogue keeps no copy of it.
    fn settle(
        &mut self,
        ask: &str,
        input: Option<&RawValue>,
        answer: &Answer,
        out: &mut Outbox,
    ) -> Result<(), NotSettled>;

    /// Whether an answer may change what runs.
    fn takes_changes(&self) -> bool {
        false
    }

    /// Other runs use another model; false when this agent cannot change it.
    fn set_model(&mut self, model: &str, out: &mut Outbox) -> bool;

    /// Other runs may do more, or less; false when this agent cannot change it.
    fn set_mode(&mut self, mode: Mode, out: &mut Outbox) -> bool;

    /// The models, modes and commands that the agent has reported so far.
    fn offers(&self) -> Offers {
        Offers::default()
    }
}

/// The choices that an agent offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    pub models: Vec<Offer>,
    /// The model in use.
    pub model: Option<String>,
    pub commands: Vec<SlashCommand>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
}

/// A slash command of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    /// What may follow.
    pub hint: Option<String>,
}

impl fmt::Debug for dyn Dialogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialogue")
    }
}

/// The output of a dialogue: lines to send, warnings, or a failure.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Lines for the agent, in order and without their newline.
    pub lines: Vec<String>,
    /// Lines that hold a secret, for the agent alone; they follow the others.
    pub private: Vec<PrivateLine>,
    /// A warning that does not end the run.
    pub warnings: Vec<Warning>,
    /// The dialogue failed: end the process and the run with this error. If the agent reported it
    /// first, the reader ends the run with the same error.
    pub failure: Option<RunError<'static>>,
}

/// A line for the agent, and the one that is shown and stored instead.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateLine {
    pub line: String,
    pub shown: String,
}

impl fmt::Debug for PrivateLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only what may be shown: the line itself holds the secret.
        f.debug_tuple("PrivateLine").field(&self.shown).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub code: &'static str,
    pub text: String,
}

/// Why an ask was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSettled {
    #[error("nothing is asked under this id: it was answered or withdrawn")]
    NotOpen,
    #[error("the input of the answer is not a JSON object")]
    BadInput,
    #[error("this agent runs what it asked for or nothing: allow it as it is, or deny it")]
    FixedInput,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.private.is_empty()
            && self.warnings.is_empty()
            && self.failure.is_none()
    }

    fn send(&mut self, message: &impl Serialize) {
        let line = model::json_string(message);
        self.lines
            .push(line.expect("messages are plain data with string keys"));
    }

    fn warn(&mut self, code: &'static str, text: String) {
        self.warnings.push(Warning { code, text });
    }

    /// The first failure is the reason of those after it.
    fn fail(&mut self, code: &'static str, message: String) {
        self.failure.get_or_insert(RunError {
            code: code.into(),
            message: Text::new(message),
            native: None,
        });
    }
}

/// A line that was sent, in the form that readers know.
pub fn sent(line: &str) -> String {
    // Put together as text: the line is JSON already, and may be many megabytes.
    format!(r#"{{"dir":"in","msg":{line}}}"#)
}

/// Whether a line may hold one of these JSON strings, which are given with their quotes. Most lines hold none of
/// what a dialogue looks for, and must not be parsed to know it: the reader parses them anyway. Any character
/// may be spelled as an escape, so a line with such an escape may hold anything.
fn may_hold(line: &str, strings: &[&str]) -> bool {
    let holds = |it: &str| memmem::find(line.as_bytes(), it.as_bytes()).is_some();
    strings.iter().any(|it| holds(it)) || holds(r"\u") || holds(r"\/")
}

/// Whether this can be the input of a call, which is an object for every agent.
pub fn is_input(json: &str) -> bool {
    // The check is on the text, because an input may be too large to build it in memory for this alone.
    json.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}

/// The user's replacement for the agent's input, in one line.
fn in_one_line(json: &str) -> Result<Box<RawValue>, NotSettled> {
    if !is_input(json) {
        return Err(NotSettled::BadInput);
    }
    // Within JSON a line break can only be space between values.
    let line = json.replace(['\n', '\r'], " ");
    RawValue::from_string(line).map_err(|_| NotSettled::BadInput)
}
