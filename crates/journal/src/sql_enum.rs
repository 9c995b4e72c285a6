//! The names under which enums are stored in SQL.

use model::{Decision, Outcome};

pub(crate) fn find_outcome(word: &str) -> Option<Outcome> {
    [
        Outcome::Completed,
        Outcome::Failed,
        Outcome::Aborted,
        Outcome::Refused,
        Outcome::Limit,
        Outcome::Lost,
    ]
    .into_iter()
    .find(|it| it.name() == word)
}

pub(crate) fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::AllowedAlways => "allowed_always",
        Decision::Denied => "denied",
        Decision::Withdrawn => "withdrawn",
        Decision::Lost => "lost",
    }
}

pub(crate) fn find_decision(word: &str) -> Option<Decision> {
    [
        Decision::Allowed,
        Decision::AllowedAlways,
        Decision::Denied,
        Decision::Withdrawn,
        Decision::Lost,
    ]
    .into_iter()
    .find(|it| decision(*it) == word)
}
