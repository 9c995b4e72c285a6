//! One append at a time; events that arrive meanwhile go into the next batch.
//!
//! An unwritable store pauses the run: events are kept and retried, the agent is not read once the
//! backlog is full, and nothing is published before it is stored.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use journal::{Batch, Error, Fault, Journal, Lease};
use tokio::time::{Instant, sleep, sleep_until};

use crate::record::Record;

/// The minimum time between appends: each waits for a disk sync, which would otherwise be shared by
/// few events. The first append after an idle period is immediate, and a store that is fast enough
/// needs no interval.
const MAX_FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// The same where followers wait for each append: half of it is what an event waits for on average. Timers are
/// not finer.
pub(crate) const FOLLOWED_FLUSH_INTERVAL: Duration = Duration::from_millis(1);
// Appends take at most a thirtieth of the time, unless the longest interval comes first.
const FLUSH_FACTOR: u32 = 30;
/// Timers are not finer.
const MIN_FLUSH_INTERVAL: Duration = Duration::from_millis(1);
/// The pause before a failed append is retried.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

type AppendFuture = Pin<Box<dyn Future<Output = Result<Appended, FailedAppend>> + Send>>;

/// A finished append.
pub(crate) struct Appended {
    /// It changes more than the log.
    pub(crate) has_effects: bool,
    /// When the next may be.
    next: Option<Instant>,
}

/// A failed append and its batch.
pub(crate) struct FailedAppend {
    pub(crate) error: Error,
    batch: Batch,
}

/// How to handle a failed append.
pub(crate) enum AppendFailure {
    /// It is tried again.
    Retry,
    /// Our lease was fenced.
    Fenced,
    /// We hold the lease, but the journal rejects the batch.
    Discard,
}

pub(crate) struct Appender {
    journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    pending: Option<AppendFuture>,
    pause: Duration,
    /// Until then it rests.
    next: Option<Instant>,
    longest_rest: Duration,
}

impl Appender {
    pub(crate) fn new(journal: Arc<dyn Journal>, lease: Lease) -> Self {
        Self {
            journal,
            lease,
            pending: None,
            pause: FIRST_PAUSE,
            next: None,
            longest_rest: MAX_FLUSH_INTERVAL,
        }
    }

    pub(crate) fn set_longest_rest(&mut self, rest: Duration) {
        self.longest_rest = rest;
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Starts the next append, unless one is in flight or the flush interval has not passed.
    pub(crate) fn begin(&mut self, record: &mut Record) {
        if self.pending.is_some() || !record.is_ready() {
            return;
        }
        if let Some(next) = self.next.take().filter(|it| *it > Instant::now()) {
            // The rest is a pending append as well, so that `stored` wakes its caller after it.
            self.pending = Some(Box::pin(async move {
                sleep_until(next).await;
                Ok(Appended {
                    has_effects: false,
                    next: None,
                })
            }));
        } else if let Some(batch) = record.take() {
            self.send(batch, Duration::ZERO);
        }
    }

    /// Until the append on its way is stored, or not, or may begin.
    pub(crate) async fn stored(&mut self) -> Result<Appended, FailedAppend> {
        let Some(pending) = &mut self.pending else {
            return std::future::pending().await;
        };
        let stored = pending.await;
        self.pending = None;
        if let Ok(stored) = &stored {
            self.pause = FIRST_PAUSE;
            self.next = stored.next;
        }
        stored
    }

    /// Classifies a failure, and retries what can be retried.
    pub(crate) fn failed(&mut self, failed: FailedAppend) -> AppendFailure {
        let FailedAppend { error, batch } = failed;
        match error {
            // These faults stay until a restart: to wait for that would only block the agent.
            Error::Storage(
                Fault::Closed
                | Fault::Corrupt(_)
                | Fault::Newer { .. }
                | Fault::InUse
                | Fault::Gone(_),
            )
            | Error::Fenced { .. }
            | Error::NoSession { .. } => AppendFailure::Fenced,
            Error::Storage(
                Fault::Full
                | Fault::ReadOnly
                | Fault::Busy
                | Fault::Io(_)
                | Fault::Database(_)
                // The same batch again: its id tells whether it was stored.
                | Fault::Lost,
            ) => {
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                self.send(batch, pause);
                AppendFailure::Retry
            }
            // The batch itself is at fault: the same entries would be refused again.
            Error::SessionExists { .. }
            | Error::Held { .. }
            | Error::OutOfOrder { .. }
            | Error::RunStarted { .. }
            | Error::RunNotOpen { .. }
            | Error::AskOpen { .. }
            | Error::AskNotOpen { .. }
            | Error::NoAsk { .. }
            | Error::Answered { .. }
            | Error::TooManyCommands { .. }
            | Error::TooLarge { .. }
            | Error::Damaged { .. } => AppendFailure::Discard,
        }
    }

    fn send(&mut self, batch: Batch, pause: Duration) {
        let journal = Arc::clone(&self.journal);
        let lease = self.lease.clone();
        let longest_rest = self.longest_rest;
        self.pending = Some(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let began = Instant::now();
            // Its bytes are shared, so that a copy for another try costs little.
            match journal.append(&lease, batch.clone()).await {
                Ok(_) => Ok(Appended {
                    has_effects: batch.has_effects(),
                    // From its begin on: the time of the append is part of the interval.
                    next: flush_interval(began.elapsed(), longest_rest).map(|it| began + it),
                }),
                Err(error) => Err(FailedAppend { error, batch }),
            }
        }));
    }
}

/// How long an append that took this long is to stay the only one.
fn flush_interval(took: Duration, longest: Duration) -> Option<Duration> {
    let rest = (took * FLUSH_FACTOR).min(longest);
    (rest >= MIN_FLUSH_INTERVAL).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slow_store_gets_a_flush_interval() {
        let intervals = [20, 100, 2_000]
            .map(|it| flush_interval(Duration::from_micros(it), MAX_FLUSH_INTERVAL));
        let intervals = intervals.map(|it| it.map(|it| it.as_micros()));
        assert_eq!(intervals, [None, Some(3_000), Some(10_000)]);
    }
}
