//! One request of a thread at a time, from looking for its run to putting it into the queue.

use std::array;
use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

/// Enough that threads seldom share one; those that do wait for a write, and not for a run.
const N_LOCKS: usize = 64;

#[derive(Debug)]
pub(super) struct Turns {
    locks: [Mutex<()>; N_LOCKS],
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            locks: array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Turns {
    /// Waits until no other request of the thread is being started.
    pub(super) async fn take(&self, engine: &str, thread: &str) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        (engine, thread).hash(&mut hasher);
        let at = hasher.finish() % N_LOCKS as u64;
        self.locks[at as usize].lock().await
    }
}
