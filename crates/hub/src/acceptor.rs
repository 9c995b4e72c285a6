//! Prompt ownership: a prompt is run by the hub that accepted it, with that hub's settings and
//! environment. Another hub takes it over only when the first one is gone.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use journal::{Command, CommandBody};
use model::SessionId;
use runner::process;
use serde::{Deserialize, Serialize};

use crate::config::QueueLife;
use crate::lock::lock;
use crate::record::now;
use crate::shared::Shared;

/// The hubs of this process that are open: a process outlives its hubs.
static OPEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The hub that accepted a prompt, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) by: String,
    /// In milliseconds since 1970.
    at: i64,
    /// No other hub runs it, even if this hub could not remove it from the queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ends_with_hub: bool,
}

/// Whether a session's commands require work from this hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Prompts of other hubs, and nothing else.
    OfOthers,
    /// A prompt of this hub waits behind one of another hub.
    Later,
    Now,
}

/// The part of a prompt that names its acceptor.
#[derive(Deserialize)]
struct PromptHead {
    #[serde(default)]
    accepted: Option<Accepted>,
}

impl Accepted {
    pub(crate) fn now(by: &str, queue: QueueLife) -> Self {
        Self {
            by: by.to_owned(),
            at: now().millis(),
            ends_with_hub: queue == QueueLife::OfHub,
        }
    }

    pub(crate) fn age(&self) -> Duration {
        // Negative when the clock was set back since; that counts as no age at all.
        let millis = now().millis().saturating_sub(self.at);
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }
}

/// A hub of this name is open in this process.
pub(crate) fn opened(owner: &str) {
    lock(&OPEN).insert(owner.to_owned());
}

pub(crate) fn closed(owner: &str) {
    lock(&OPEN).remove(owner);
}

/// Whether a hub is open; `None` when that cannot be seen from here.
fn is_open(owner: &str) -> Option<bool> {
    // A name is the process and an id, see `own_name`: a process may have several hubs.
    let process = owner.split('/').next().unwrap_or_default();
    let process: process::Owner = process.parse().ok()?;
    if process == process::Owner::own() {
        return Some(lock(&OPEN).contains(owner));
    }
    // Which hubs of another process are open cannot be seen: while it lives, this one may be.
    process.is_alive()
}

impl Shared {
    /// Whether this hub may run a prompt. If the accepting hub is not visible from here (another
    /// machine or container), the prompt is left to it for the length of a lease.
    pub(crate) fn may_work_on(&self, accepted: Option<&Accepted>) -> bool {
        let Some(accepted) = accepted.filter(|it| it.by != self.owner.as_str()) else {
            return true;
        };
        match is_open(&accepted.by) {
            Some(is_open) => !is_open,
            None => accepted.age() >= self.config.limits.lease,
        }
    }

    /// The stamp of a prompt that this hub accepts.
    pub(crate) fn accept(&self) -> Accepted {
        Accepted::now(self.owner.as_str(), self.config.queue)
    }

    /// Whether a prompt was to end with a hub that is gone.
    pub(crate) fn is_withdrawn(&self, accepted: Option<&Accepted>) -> bool {
        let accepted = accepted.filter(|it| it.ends_with_hub && it.by != self.owner.as_str());
        accepted.is_some() && self.may_work_on(accepted)
    }

    /// Whether to look for work in a session by itself. A hub whose queue ends with it looks for its own
    /// prompts alone.
    pub(crate) async fn is_pending(&self, session: &SessionId<'_>) -> journal::Result<bool> {
        let commands = self.config.journal.commands(session, 0).await?;
        let mut prompts = commands.iter().filter_map(prompt);
        let is_concerned = match self.config.queue {
            QueueLife::Durable => true,
            QueueLife::OfHub => prompts.any(|it| self.is_own_prompt(it)),
        };
        Ok(is_concerned && matches!(self.due_of(&commands), Due::Now | Due::Later))
    }

    /// What is pending in a session for this hub.
    pub(crate) async fn due(&self, session: &SessionId<'_>) -> journal::Result<Due> {
        let commands = self.config.journal.commands(session, 0).await?;
        Ok(self.due_of(&commands))
    }

    fn due_of(&self, commands: &[Command]) -> Due {
        if commands.is_empty() {
            return Due::Nothing;
        }
        let prompts: Vec<&Bytes> = commands.iter().filter_map(prompt).collect();
        // Aborts and answers may be delivered by any hub.
        if prompts.len() < commands.len() {
            return Due::Now;
        }
        let mut prompts = prompts.into_iter().map(|it| self.may_take(it));
        match prompts.next() {
            Some(true) => Due::Now,
            // The prompts of a session run in order: ours waits for the one before it.
            _ if prompts.any(|it| it) => Due::Later,
            _ => Due::OfOthers,
        }
    }

    fn may_take(&self, prompt: &[u8]) -> bool {
        self.may_work_on(acceptor(prompt).as_ref())
    }

    /// Whether this hub has accepted a stored prompt.
    pub(crate) fn is_own_prompt(&self, prompt: &[u8]) -> bool {
        acceptor(prompt).is_some_and(|it| it.by == self.owner.as_str())
    }
}

/// Who accepted a stored prompt. An unreadable one belongs to no hub; the first one to see it removes it.
fn acceptor(prompt: &[u8]) -> Option<Accepted> {
    let head = serde_json::from_slice::<PromptHead>(prompt).ok();
    head.and_then(|it| it.accepted)
}

fn prompt(command: &Command) -> Option<&Bytes> {
    match &command.order {
        CommandBody::Prompt(body) => Some(body),
        CommandBody::Abort(_) | CommandBody::Settle { .. } | CommandBody::Damaged => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{LEASE, memory, shared};

    /// A hub whose process cannot be seen from here.
    const ELSEWHERE: &str = "elsewhere";

    fn accepted(by: &str, age: Duration) -> Accepted {
        let age = i64::try_from(age.as_millis()).unwrap();
        Accepted {
            by: by.to_owned(),
            at: now().millis() - age,
            ends_with_hub: false,
        }
    }

    #[test]
    fn a_prompt_of_a_hub_out_of_sight_is_left_to_it_for_the_length_of_a_lease() {
        let shared = shared(&memory());
        let may_work_on = |it: &Accepted| shared.may_work_on(Some(it));
        assert!(!may_work_on(&accepted(ELSEWHERE, Duration::ZERO)));
        assert!(!may_work_on(&accepted(ELSEWHERE, LEASE / 2)));
        assert!(may_work_on(&accepted(ELSEWHERE, LEASE)));
        // The clock was set back since.
        let later = now().millis() + 10_000;
        let future = Accepted {
            by: ELSEWHERE.to_owned(),
            at: later,
            ends_with_hub: false,
        };
        assert!(!may_work_on(&future));
        assert_eq!(future.age(), Duration::ZERO);
    }

    #[test]
    fn a_hub_of_this_process_is_open_from_its_opening_to_its_end() {
        let shared = shared(&memory());
        let other = crate::own_name();
        let prompt = accepted(&other, Duration::ZERO);
        assert!(shared.may_work_on(Some(&prompt)));
        opened(&other);
        assert!(!shared.may_work_on(Some(&prompt)));
        closed(&other);
        assert!(shared.may_work_on(Some(&prompt)));
        // Its own prompts and those without a name are always its work.
        let own = accepted(shared.owner.as_str(), Duration::ZERO);
        assert!(shared.may_work_on(Some(&own)));
        assert!(shared.may_work_on(None));
    }

    #[test]
    fn a_prompt_that_ends_with_its_hub_is_withdrawn_when_that_hub_is_gone() {
        let shared = shared(&memory());
        let other = crate::own_name();
        let prompt = |by: &str, ends_with_hub| Accepted {
            ends_with_hub,
            ..accepted(by, Duration::ZERO)
        };
        let is_withdrawn = |it: Accepted| shared.is_withdrawn(Some(&it));
        opened(&other);
        assert!(!is_withdrawn(prompt(&other, true)));
        closed(&other);
        assert!(is_withdrawn(prompt(&other, true)));
        assert!(!is_withdrawn(prompt(&other, false)));
        assert!(!is_withdrawn(prompt(shared.owner.as_str(), true)));
        assert!(!shared.is_withdrawn(None));
    }

    #[test]
    fn what_is_due_depends_on_the_first_prompt_and_on_those_behind_it() {
        let shared = shared(&memory());
        let command = |order| Command {
            number: 1,
            at: now(),
            order,
        };
        let prompt = |by: &str| {
            let head = serde_json::json!({"accepted": accepted(by, Duration::ZERO)});
            command(CommandBody::Prompt(head.to_string().into()))
        };
        let own = || prompt(shared.owner.as_str());
        let other = || prompt(ELSEWHERE);
        let abort = || command(CommandBody::Abort("{}".into()));
        let unreadable = || command(CommandBody::Prompt("{".into()));
        let cases = [
            (vec![], Due::Nothing),
            (vec![own()], Due::Now),
            (vec![unreadable()], Due::Now),
            (vec![own(), other()], Due::Now),
            (vec![other()], Due::OfOthers),
            (vec![other(), other()], Due::OfOthers),
            (vec![other(), other(), own()], Due::Later),
            (vec![other(), abort()], Due::Now),
            (vec![abort()], Due::Now),
        ];
        for (commands, due) in cases {
            assert_eq!(shared.due_of(&commands), due, "{commands:?}");
        }
    }
}
