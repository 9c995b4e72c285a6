//! Connections that have not shown a token yet. Their number is limited; when it is reached, the
//! oldest is evicted first, so that idle connections cannot exhaust the limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Unauthenticated {
    limit: usize,
    line: Mutex<OldestFirst>,
}

/// The open slots, the oldest first.
#[derive(Debug, Default)]
struct OldestFirst {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// One of them, until it is dropped or known.
#[derive(Debug)]
pub(crate) struct UnauthenticatedSlot {
    all: Arc<Unauthenticated>,
    number: u64,
    evicted: Arc<Notify>,
}

impl Unauthenticated {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            line: Mutex::default(),
        })
    }

    /// A new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> UnauthenticatedSlot {
        let gives_way = Arc::new(Notify::new());
        let mut line = self.line();
        if line.waiting.len() >= self.limit
            && let Some((_, longest)) = line.waiting.pop_first()
        {
            // `notify_one` is remembered, also if the connection does not wait for it yet.
            longest.notify_one();
        }
        let number = line.next;
        line.next += 1;
        line.waiting.insert(number, Arc::clone(&gives_way));
        UnauthenticatedSlot {
            all: Arc::clone(self),
            number,
            evicted: gives_way,
        }
    }

    fn line(&self) -> MutexGuard<'_, OldestFirst> {
        self.line.lock().expect("no panic while holding the lock")
    }
}

impl UnauthenticatedSlot {
    /// It has shown a token, and may stay.
    pub(crate) fn mark_authenticated(&self) {
        self.all.line().waiting.remove(&self.number);
    }

    /// Resolves when the slot is evicted.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        self.mark_authenticated();
    }
}
