//! Session locks: exclusive while the agent works, shared while it is idle.
//!
//! An idle agent does not write, so its lock is released: other processes can read or resume the
//! session without waiting for the agent to exit. Before the next prompt the lock is reacquired; if
//! another process has written the session in between, the agent is out of date and ends.

use std::fmt;
use std::pin::Pin;

use model::{Level, Sink, error_chain};

use super::{Agent, now};
use crate::dialogue::Warning;
use crate::locks::{self, IdleLock, Lock};

/// The result of locking a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockStep {
    /// Nothing changed.
    Unchanged,
    Acquired,
    Busy,
}

/// The lock of the session that the agent uses.
#[derive(Debug)]
pub(super) enum SessionLock {
    /// Exclusive; with `is_read` the agent only reads it to fork from it, as others may.
    Held {
        session: String,
        lock: Lock,
        is_read: bool,
    },
    /// Released while the agent is idle; others may use the session.
    Idle { session: String, lock: IdleLock },
}

impl SessionLock {
    fn is_of(&self, native: &str) -> bool {
        match self {
            // A lock for reading does not cover an agent that writes the same session.
            Self::Held {
                session, is_read, ..
            } => session == native && !is_read,
            Self::Idle { session, .. } => session == native,
        }
    }
}

type Reacquired = Result<Option<Lock>, locks::Error>;

/// A lock that is being reacquired.
pub(super) struct Reacquiring(Pin<Box<dyn Future<Output = Reacquired> + Send + Sync>>);

impl fmt::Debug for Reacquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reacquiring")
    }
}

/// Waits for the lock. Cancel safe until it has resolved.
pub(super) async fn reacquired(reacquiring: &mut Option<Reacquiring>) -> Reacquired {
    let Some(Reacquiring(taking)) = reacquiring else {
        // Never polled: the caller disables this branch while nothing is reacquired.
        return std::future::pending().await;
    };
    let taken = taking.as_mut().await;
    // A future that has resolved must not be polled again.
    *reacquiring = None;
    taken
}

impl Agent {
    /// Takes the lock of a session that has become known.
    pub(super) async fn lock_session<S: Sink>(&mut self, sink: &mut S) -> LockStep {
        let (Some(locks), Some(native)) = (&self.locks, self.native()) else {
            return LockStep::Unchanged;
        };
        if self
            .session_lock
            .as_ref()
            .is_some_and(|it| it.is_of(native))
        {
            return LockStep::Unchanged;
        }
        let session = native.to_owned();
        if let Some(SessionLock::Held {
            session: source, ..
        }) = &self.session_lock
            && *source == session
        {
            // The fork turned out to write its parent session; waiting for the lock would deadlock
            // with ourselves.
            self.session_lock = None;
        }
        let place = match locks.queue(&self.engine, &session, &self.holder).await {
            Ok(place) => place,
            Err(err) => return self.not_held(sink, &err),
        };
        if self.newest.is_some() && place.held().is_some() {
            // Which session is the newest only its agent knows, and it must not work on this one.
            self.source.kill();
            self.is_gone = true;
            return LockStep::Busy;
        }
        // A new session is unknown to others, so this does not block.
        let lock = place.wait().await;
        match lock.and_then(|it| it.protect(self.tag).map(|()| it)) {
            // A fork leaves the session that it began with.
            Ok(lock) => {
                self.session_lock = Some(SessionLock::Held {
                    session,
                    lock,
                    is_read: false,
                });
            }
            Err(err) => return self.not_held(sink, &err),
        }
        LockStep::Acquired
    }

    /// The agent already runs; failing to lock is no reason to lose its events.
    fn not_held(&mut self, sink: &mut dyn Sink, err: &locks::Error) -> LockStep {
        // Otherwise every step would try again, and warn again.
        self.locks = None;
        let code = "not_locked";
        let text = format!("the session is not locked: {}", error_chain(err));
        match self.newest {
            // It is emitted once the session is known.
            Some(_) => self.outbox.warnings.push(Warning { code, text }),
            None => self.live.notice(sink, now(), Level::Warning, code, &text),
        }
        LockStep::Acquired
    }

    /// Releases the lock while the agent is idle.
    pub(super) fn release_idle_lock(&mut self) {
        let is_idle = self.dialogue.is_some()
            && !self.has_prompt
            && !self.live.has_run()
            // Something that is still to be sent may set the agent to work.
            && self.outbox.is_empty()
            && self.stopping.is_none();
        if let (true, Some(SessionLock::Held { session, lock, is_read: false })) = (is_idle, &self.session_lock)
            // Without a note the lock stays exclusive, which is safe.
            && let Ok(idle) = lock.mark_idle()
        {
            let session = session.clone();
            self.session_lock = Some(SessionLock::Idle {
                session,
                lock: idle,
            });
        }
    }

    /// Reacquires the lock for a prompt, or because the agent has started a run by itself.
    pub(super) fn reacquire_lock(&mut self) {
        let is_wanted = self.waiting.is_some() || self.live.has_run();
        if let (true, None, Some(SessionLock::Idle { lock, .. })) =
            (is_wanted, &self.reacquiring, &self.session_lock)
        {
            // The future outlives a step that is dropped, so it cannot borrow from the agent.
            let (lock, holder) = (lock.clone(), self.holder.clone());
            let taking = async move { lock.reacquire(&holder).await };
            self.reacquiring = Some(Reacquiring(Box::pin(taking)));
        }
    }

    /// The lock is back, or never will be.
    pub(super) fn on_reacquired(&mut self, sink: &mut dyn Sink, taken: Reacquired) {
        let session = match self.session_lock.take() {
            Some(SessionLock::Idle { session, .. } | SessionLock::Held { session, .. }) => session,
            None => return,
        };
        let lock = match taken {
            Ok(Some(lock)) => lock.protect(self.tag).map(|()| lock),
            Ok(None) => return self.is_outdated(&session),
            Err(err) => Err(err),
        };
        match lock {
            Ok(lock) => {
                self.session_lock = Some(SessionLock::Held {
                    session,
                    lock,
                    is_read: false,
                });
            }
            // The prompt is sent all the same: an agent works without a lock, too, if less safely.
            Err(err) => _ = self.not_held(sink, &err),
        }
        if let Some(prompt) = self.waiting.take() {
            self.send_prompt(&prompt);
        }
    }

    /// Another process has written the session, so this agent is out of date.
    fn is_outdated(&mut self, session: &str) {
        // It must not lock the session again on its way out.
        self.locks = None;
        if self.live.has_run() {
            let message = format!("another program has resumed session `{session}`");
            self.give_up("session_taken", message);
        } else {
            // It has no run to end.
            self.is_prompted = false;
        }
        // Without an interrupt: whatever it would still write to the session is out of date.
        self.source.kill();
    }
}
