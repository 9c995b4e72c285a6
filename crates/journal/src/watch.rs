//! Change notifications. They may be late, merged or spurious: the receiver reads the journal to
//! learn the truth.
//!
//! With the notification the last events of a session are kept in memory, so that the followers of a live
//! session do not read back from the disk what was stored a moment ago.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use model::{SessionId, Timestamp};
use tokio::sync::watch;

use crate::entry::{Entry, Page, Read};
use crate::tail::Tail;

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
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// These events are stored, at this time unless they have their own.
    Log(SessionId<'static>, Vec<Entry>, Timestamp),
    Commands(SessionId<'static>),
    /// Another node may have written the log, which ends with this event if that is known.
    #[cfg(feature = "postgres")]
    ForeignLog(SessionId<'static>, Option<u64>),
    /// The session is gone.
    Removed(SessionId<'static>),
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
pub(crate) struct Watchers(Mutex<Watched>);

type Watched = HashMap<Scope, Subscribers>;

/// The subscribers of a scope, and for a session's log its last events.
#[derive(Debug, Default)]
struct Subscribers {
    sender: watch::Sender<()>,
    tail: Tail,
}

impl Watchers {
    pub(crate) fn watch(&self, scope: Scope) -> Watch {
        let mut watched = self.watched();
        let mut receiver = watched.entry(scope).or_default().sender.subscribe();
        // Something may have changed between the caller's last read and this subscription.
        receiver.mark_changed();
        Watch(receiver)
    }

    /// Notifies the watchers of these sessions.
    pub(crate) fn notify(&self, changes: Vec<Change>) {
        let mut watched = self.watched();
        if watched.is_empty() || changes.is_empty() {
            return;
        }
        for change in changes {
            let scope = match change {
                Change::Log(session, entries, now) => {
                    let scope = Scope::Session(session);
                    // Nothing is kept in memory for a session that is not watched.
                    if let Some(it) = watched.get_mut(&scope) {
                        it.tail.extend(&entries, now);
                    }
                    scope
                }
                Change::Commands(session) => {
                    notify_scope(&mut watched, &Scope::Commands(session.clone()));
                    Scope::Session(session)
                }
                Change::Removed(session) => {
                    notify_scope(&mut watched, &Scope::Commands(session.clone()));
                    let scope = Scope::Session(session);
                    // Before anyone reads: a session may be made again under this name.
                    if let Some(it) = watched.get_mut(&scope) {
                        it.tail = Tail::default();
                    }
                    scope
                }
                #[cfg(feature = "postgres")]
                Change::ForeignLog(session, head) => {
                    let scope = Scope::Session(session);
                    // What is in memory may be of a session that was removed and made again, unless it ends
                    // where the log does: then this node has written it.
                    if let Some(it) = watched.get_mut(&scope)
                        && (head.is_none() || it.tail.last() != head)
                    {
                        it.tail = Tail::default();
                    }
                    scope
                }
            };
            notify_scope(&mut watched, &scope);
        }
        notify_scope(&mut watched, &Scope::All);
    }

    /// Notifies everyone of changes that are not known in detail: sessions may be gone, so no tail is valid.
    pub(crate) fn notify_all(&self) {
        self.watched().retain(|_, it| {
            it.tail = Tail::default();
            it.sender.send(()).is_ok()
        });
    }

    /// A part of the log, if it is in memory.
    pub(crate) fn page(&self, session: &SessionId<'static>, read: Read) -> Option<Page> {
        let scope = Scope::Session(session.clone());
        self.watched().get(&scope)?.tail.page(read)
    }

    /// What is watched now.
    #[cfg(feature = "postgres")]
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        self.prune_closed();
        self.watched().keys().cloned().collect()
    }

    /// Notifies those who watch everything.
    #[cfg(feature = "postgres")]
    pub(crate) fn notify_list(&self) {
        notify_scope(&mut self.watched(), &Scope::All);
    }

    /// Whether there are watchers.
    pub(crate) fn has_watchers(&self) -> bool {
        !self.watched().is_empty()
    }

    /// Drops closed subscriptions.
    pub(crate) fn prune_closed(&self) {
        self.watched()
            .retain(|_, it| it.sender.receiver_count() > 0);
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().expect("no panic while holding the lock")
    }
}

fn notify_scope(watched: &mut Watched, scope: &Scope) {
    let nobody_left = watched
        .get(scope)
        .is_some_and(|it| it.sender.send(()).is_err());
    if nobody_left {
        watched.remove(scope);
    }
}
