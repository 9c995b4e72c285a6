//! The one way to take a lock: for a few statements, never across an await.

use std::sync::{Mutex, MutexGuard};

/// A poisoned lock is a panic that has been reported already: the data may be half changed, so this
/// panics as well.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic while holding the lock")
}
