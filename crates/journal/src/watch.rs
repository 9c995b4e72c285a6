//! Change notifications. They may be late, merged or spurious: the receiver reads the journal to
//! learn the truth.

use std::collections::HashMap;
use std::sync::Mutex;

use model::SessionId;
use tokio::sync::watch;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A session's events, commands, asks and runs.
    Session(SessionId<'static>),
    /// Commands and leases of a session: everything but its events.
    Commands(SessionId<'static>),
    /// Any session, and the list of them.
    All,
}

/// What has changed of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Log(SessionId<'static>),
    Commands(SessionId<'static>),
}

/// A subscription. The first hint is there at once, so that nothing between reading and watching is missed.
#[derive(Debug)]
pub struct Watch(watch::Receiver<()>);

impl Watch {
    /// Waits for the next hint; `false` when the journal was closed.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The subscribers.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<Scope, watch::Sender<()>>>);

impl Watchers {
    pub(crate) fn watch(&self, scope: Scope) -> Watch {
        let mut watched = self.watched();
        let mut receiver = watched
            .entry(scope)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        // Something may have changed between the caller's last read and this subscription.
        receiver.mark_changed();
        Watch(receiver)
    }

    /// Notifies the watchers of these sessions.
    pub(crate) fn notify(&self, changes: &[Change]) {
        let mut watched = self.watched();
        if watched.is_empty() || changes.is_empty() {
            return;
        }
        for change in changes {
            let session = match change {
                Change::Log(session) => session,
                Change::Commands(session) => {
                    notify_scope(&mut watched, &Scope::Commands(session.clone()));
                    session
                }
            };
            notify_scope(&mut watched, &Scope::Session(session.clone()));
        }
        notify_scope(&mut watched, &Scope::All);
    }

    pub(crate) fn notify_all(&self) {
        self.watched().retain(|_, sender| sender.send(()).is_ok());
    }

    /// Whether there are watchers.
    pub(crate) fn has_watchers(&self) -> bool {
        !self.watched().is_empty()
    }

    /// Drops closed subscriptions.
    pub(crate) fn prune_closed(&self) {
        self.watched()
            .retain(|_, sender| sender.receiver_count() > 0);
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, watch::Sender<()>>> {
        self.0.lock().expect("no panic while holding the lock")
    }
}

fn notify_scope(watched: &mut HashMap<Scope, watch::Sender<()>>, scope: &Scope) {
    let nobody_left = watched
        .get(scope)
        .is_some_and(|sender| sender.send(()).is_err());
    if nobody_left {
        watched.remove(scope);
    }
}
