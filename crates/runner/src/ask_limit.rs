//! Asks that nobody answers: for how long one may wait, and what is answered then.
//!
//! The agent knows when its asks are due ([`crate::Agent::overdue`]); whoever looks after it settles them the
//! way other answers are settled there, so that the first answer counts, whoever gives it.

use std::time::Duration;

use model::AskKind;

use crate::policy::Asked;
use crate::request::Answer;

/// For how long an ask may wait, and what is answered then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskLimit {
    pub timeout: Duration,
    pub default: AskDefault,
}

/// The answer to an ask that nobody has answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskDefault {
    #[default]
    Deny,
    Allow,
}

impl AskDefault {
    pub const NAMES: &[&str] = &["deny", "allow"];

    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        [Self::Deny, Self::Allow]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl AskLimit {
    /// None where `timeout` is nothing: the ask waits for ever.
    pub fn new(timeout: Duration, default: AskDefault) -> Option<Self> {
        (!timeout.is_zero()).then_some(Self { timeout, default })
    }

    /// What is answered when the time has passed.
    pub fn answer(self, asked: &Asked) -> Answer {
        match (self.default, asked.ask.kind) {
            (AskDefault::Allow, AskKind::Permission | AskKind::Plan) => {
                Answer::Allow { input: None }
            }
            // A question wants more than a yes.
            (AskDefault::Allow, AskKind::Question) | (AskDefault::Deny, _) => Answer::Deny {
                message: self.message(),
            },
        }
    }

    /// Why it was answered.
    pub(crate) fn message(self) -> String {
        format!("nobody answered within {:?}", self.timeout)
    }
}
