//! Which open runs are known as responsive: their agents have emitted an event. An append need not look for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use model::SessionId;

use crate::entry::{Batch, Effect};
use crate::lease::Lease;

/// More are forgotten together; that costs a look for each of them.
const MAX_SESSIONS: usize = 4096;

/// The sessions whose agents have emitted an event in the open run, under the epoch of their lease: another
/// owner may begin another run.
#[derive(Debug, Default)]
pub(super) struct ResponsiveRuns(Mutex<HashMap<SessionId<'static>, u64>>);

impl ResponsiveRuns {
    pub(super) fn contains(&self, lease: &Lease) -> bool {
        self.sessions().get(&lease.session) == Some(&lease.epoch)
    }

    /// The batch is stored.
    pub(super) fn note(&self, lease: &Lease, batch: &Batch) {
        let mut sessions = self.sessions();
        let is_started = |effect: &Effect| matches!(effect, Effect::RunStarted(_));
        if batch.entries.iter().any(|it| it.is_agents) {
            if sessions.len() >= MAX_SESSIONS {
                sessions.clear();
            }
            sessions.insert(lease.session.clone(), lease.epoch);
        } else if batch.entries.iter().any(|it| is_started(&it.effect)) {
            sessions.remove(&lease.session);
        }
    }

    pub(super) fn forget(&self, lease: &Lease) {
        self.sessions().remove(&lease.session);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId<'static>, u64>> {
        self.0.lock().expect("no panic while holding the lock")
    }
}
