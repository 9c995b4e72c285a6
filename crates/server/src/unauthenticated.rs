//! Connections that have not shown a token yet. There is room for a limited number of them; who comes
//! after that takes the place of whoever has been there the longest, so that somebody who opens many and
//! says nothing keeps nobody else out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Unauthenticated {
    limit: usize,
    line: Mutex<OldestFirst>,
}

/// Who is there, the longest first.
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

    /// Somebody has come.
    pub(crate) fn enter(self: &Arc<Self>) -> UnauthenticatedSlot {
        let gives_way = Arc::new(Notify::new());
        let mut line = self.line();
        if line.waiting.len() >= self.limit
            && let Some((_, longest)) = line.waiting.pop_first()
        {
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
        self.line.lock().expect("nobody panics while holding it")
    }
}

impl UnauthenticatedSlot {
    /// It has shown a token, and may stay.
    pub(crate) fn mark_authenticated(&self) {
        self.all.line().waiting.remove(&self.number);
    }

    /// Waits until somebody else needs the place.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        self.mark_authenticated();
    }
}
