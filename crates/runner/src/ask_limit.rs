//! The timeout of asks and the default answer.
//!
//! The agent knows when its asks are due ([`crate::Agent::overdue`]); its caller settles them the
//! same way as other answers, so that the first answer counts.

use std::time::Duration;

use model::{AskKind, Deadline, Decision, Timestamp};
use serde::{Deserialize, Serialize};

use crate::policy::PendingAsk;
use crate::request::Answer;

/// The timeout of an ask and its default answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskLimit {
    pub timeout: Duration,
    pub default: AskDefault,
}

/// The answer to an ask that nobody has answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum AskDefault {
    #[default]
    Deny,
    Allow,
}

impl TryFrom<String> for AskDefault {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let unknown = || format!("there is no `{name}`, only `{}`", Self::NAMES.join("`, `"));
        Self::find(&name).ok_or_else(unknown)
    }
}

impl From<AskDefault> for &'static str {
    fn from(default: AskDefault) -> Self {
        default.name()
    }
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
    /// `None` without a `timeout`: the ask never times out.
    pub fn new(timeout: Duration, default: AskDefault) -> Option<Self> {
        (!timeout.is_zero()).then_some(Self { timeout, default })
    }

    /// Whether an ask of this kind is allowed when the time has passed.
    fn allows(self, kind: AskKind) -> bool {
        match (self.default, kind) {
            (AskDefault::Allow, AskKind::Permission | AskKind::Plan) => true,
            // A question needs more than a yes.
            (AskDefault::Allow, AskKind::Question) | (AskDefault::Deny, _) => false,
        }
    }

    /// The answer after the timeout.
    pub fn answer(self, asked: &PendingAsk) -> Answer {
        match self.allows(asked.ask.kind) {
            true => Answer::Allow { input: None },
            false => Answer::Deny {
                message: self.message(),
            },
        }
    }

    /// Why it was answered.
    pub(crate) fn message(self) -> String {
        format!("no answer within {:?}", self.timeout)
    }

    /// The deadline in the event of an ask of this kind that is opened now.
    pub(crate) fn deadline(self, kind: AskKind, now: Timestamp) -> Deadline {
        // A timeout beyond all dates is as good as none; it must not wrap into the past.
        let millis = i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX);
        Deadline {
            at: now.plus_millis(millis),
            decision: match self.allows(kind) {
                true => Decision::Allowed,
                false => Decision::Denied,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_tells_when_and_how_an_ask_is_answered() {
        let decision = |default, kind| {
            let limit = AskLimit::new(Duration::from_millis(1500), default).unwrap();
            let Deadline { at, decision } = limit.deadline(kind, Timestamp::from_millis(1000));
            assert_eq!(at, Timestamp::from_millis(2500));
            decision
        };
        let kinds = [AskKind::Permission, AskKind::Plan, AskKind::Question];
        let (yes, no) = (Decision::Allowed, Decision::Denied);
        assert_eq!(
            kinds.map(|it| decision(AskDefault::Allow, it)),
            [yes, yes, no]
        );
        assert_eq!(kinds.map(|it| decision(AskDefault::Deny, it)), [no, no, no]);
    }
}
