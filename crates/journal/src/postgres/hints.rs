//! Hints between nodes: what changed here is told to the others, and what they tell wakes the watchers here.
//!
//! They are sent beside the appends, never inside them, because the database lets one notifying transaction
//! commit at a time. A hint may get lost, so the watched sessions are polled too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use uuid::Uuid;

use super::call::call;
use super::pool::Pool;
use super::query::Query;
use crate::watch::{Change, Watchers};

pub(super) const CHANNEL: &str = "linkspan";
/// Between two notifications of a node. Each wakes every other node.
const INTERVAL: Duration = Duration::from_millis(5);
/// The database refuses 8000 bytes.
const MAX_PAYLOAD: usize = 7900;
/// In place of the sessions, when these are too many.
pub(super) const EVERYTHING: &str = "*";

/// What is told to the other nodes next.
#[derive(Debug)]
pub(super) struct Hints {
    pub(super) watchers: Watchers,
    /// Tells this node's notifications from those of others.
    pub(super) sender: String,
    /// The keys of changed sessions, and whether commands are among what changed.
    changed: Mutex<BTreeMap<i64, bool>>,
    is_changed: Notify,
    /// Somebody watches something new.
    pub(super) is_watched: Notify,
}

impl Hints {
    pub(super) fn new() -> Self {
        let mut sender = Uuid::new_v4().simple().to_string();
        sender.truncate(8);
        Self {
            watchers: Watchers::default(),
            sender,
            changed: Mutex::default(),
            is_changed: Notify::new(),
            is_watched: Notify::new(),
        }
    }

    /// Wakes the watchers here, and the other nodes soon.
    pub(super) fn notify(&self, key: Option<i64>, change: Change) {
        if let Some(key) = key {
            let is_commands = !matches!(change, Change::Log(..) | Change::ForeignLog(..));
            *self.changed().entry(key).or_default() |= is_commands;
            self.is_changed.notify_one();
        }
        self.watchers.notify(vec![change]);
    }

    fn changed(&self) -> MutexGuard<'_, BTreeMap<i64, bool>> {
        self.changed
            .lock()
            .expect("no panic while holding the lock")
    }

    fn payload(&self) -> String {
        let changed = std::mem::take(&mut *self.changed());
        let mut payload = self.sender.clone();
        for (key, is_commands) in changed {
            let mark = if is_commands { "!" } else { "" };
            write!(payload, " {key}{mark}").expect("a string takes everything");
        }
        match payload.len() {
            ..=MAX_PAYLOAD => payload,
            _ => format!("{} {EVERYTHING}", self.sender),
        }
    }
}

/// Sends what changes, the first change after a silence at once.
pub(super) async fn send(hints: Arc<Hints>, pool: Arc<Pool>) {
    loop {
        hints.is_changed.notified().await;
        let payload = hints.payload();
        // One that is lost is found by the others' poll.
        call(&pool, 0, |client| {
            let payload = payload.clone();
            Box::pin(async move {
                let notify = Query::new("SELECT pg_notify($1, $2)");
                let rows = notify.text(CHANNEL).text(&payload).rows(&client).await;
                rows.map(drop)
            })
        })
        .await
        .ok();
        sleep(INTERVAL).await;
    }
}

/// A notification of another node: the keys of sessions, and whether their commands changed. `None` when it
/// does not say which.
pub(super) fn read_payload<'a>(payload: &'a str, own: &str) -> Option<Vec<(i64, bool)>> {
    let mut words = payload.split(' ');
    if words.next() == Some(own) {
        return Some(Vec::new());
    }
    let key = |word: &'a str| {
        let (number, is_commands) = match word.strip_suffix('!') {
            Some(number) => (number, true),
            None => (word, false),
        };
        Some((number.parse().ok()?, is_commands))
    };
    words.map(key).collect()
}

#[cfg(test)]
mod tests {
    use model::SessionId;

    use super::*;

    fn change(hints: &Hints, key: i64, is_commands: bool) {
        let session = SessionId::new("s");
        let change = match is_commands {
            true => Change::Commands(session),
            false => Change::ForeignLog(session, None),
        };
        hints.notify(Some(key), change);
    }

    #[test]
    fn changes_are_told_once_and_many_of_them_in_one_word() {
        let hints = Hints::new();
        for (key, is_commands) in [(7, false), (3, true), (3, false), (7, false)] {
            change(&hints, key, is_commands);
        }
        let payload = hints.payload();
        assert_eq!(payload, format!("{} 3! 7", hints.sender));
        assert_eq!(
            read_payload(&payload, "other"),
            Some(vec![(3, true), (7, false)])
        );
        assert_eq!(read_payload(&payload, &hints.sender), Some(vec![]));
        for key in 0..4000 {
            change(&hints, key, false);
        }
        let payload = hints.payload();
        assert_eq!(payload, format!("{} *", hints.sender));
        assert_eq!(read_payload(&payload, "other"), None);
    }
}
