//! Connections that have not shown a token yet. There is room for a limited number of them; who comes
//! after that takes the place of whoever has been there the longest, so that somebody who opens many and
//! says nothing keeps nobody else out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Strangers {
    limit: usize,
    line: Mutex<Line>,
}

/// Who is there, the longest first.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// One of them, until it is dropped or known.
#[derive(Debug)]
pub(crate) struct Stranger {
    all: Arc<Strangers>,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Strangers {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            line: Mutex::default(),
        })
    }

    /// Somebody has come.
    pub(crate) fn enter(self: &Arc<Self>) -> Stranger {
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
        Stranger {
            all: Arc::clone(self),
            number,
            gives_way,
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("nobody panics while holding it")
    }
}

impl Stranger {
    /// It has shown a token, and may stay.
    pub(crate) fn is_known(&self) {
        self.all.line().waiting.remove(&self.number);
    }

    /// Waits until somebody else needs the place.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}
