//! The configuration of a hub.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use journal::Journal;
use runner::config::Config;
use runner::locks::Locks;
use runner::process::{self, Guard};

/// The configuration of a hub.
#[derive(Clone)]
pub struct HubConfig {
    pub journal: Arc<dyn Journal>,
    /// The user's settings: engines, timeouts, permissions.
    pub settings: Config,
    /// How agents are supervised.
    pub guard: Guard,
    /// Where the agents' own sessions are locked; none locks nothing.
    pub locks: Option<Locks>,
    /// Under which name it owns sessions, see [`own_name`]. No two hubs share one.
    pub owner: String,
    pub queue: QueueLife,
    pub limits: Limits,
}

/// How long prompts wait in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLife {
    /// Until they have run: a hub that stops leaves them to the next one.
    Durable,
    /// For as long as the hub that accepted them, which does not look for those of others.
    OfHub,
}

impl fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubConfig")
            .field("owner", &self.owner)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The length of a lease; a dead owner blocks its sessions for at most this long.
    pub lease: Duration,
    /// How long an idle agent is kept warm.
    pub warm: Duration,
    /// How many idle agents are kept warm.
    pub max_warm: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Renewed three times in its length: see `OpenLog::new`.
            lease: Duration::from_secs(30),
            warm: Duration::from_secs(300),
            max_warm: 4,
        }
    }
}

/// A name for a hub of this process that no other hub has. It identifies the process, so that
/// others can check whether the owner is dead.
pub fn own_name() -> String {
    format!("{}/{}", process::Owner::own(), runner::new_id())
}

/// Whether the owner of this name is known to be dead.
pub(crate) fn is_dead(owner: &journal::Owner) -> bool {
    let process = owner.as_str().split('/').next().unwrap_or_default();
    let process: Result<process::Owner, _> = process.parse();
    // A name of another kind, or a process of another machine, is not known to be dead.
    process.is_ok_and(|it| it.is_alive() == Some(false))
}
