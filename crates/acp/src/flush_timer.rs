//! A flush timer for many small pieces: the first is sent at once, the rest in batches.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

#[derive(Debug)]
pub(crate) struct FlushTimer {
    length: Duration,
    /// The next flush is not before this.
    next: Instant,
    is_waiting: bool,
}

impl FlushTimer {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            next: Instant::now(),
            is_waiting: false,
        }
    }

    /// A new piece has arrived; true if it should be passed on now.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.next <= Instant::now();
        match is_due {
            true => self.record_flush(),
            false => self.is_waiting = true,
        }
        is_due
    }

    /// Everything so far has been passed on.
    pub(crate) fn record_flush(&mut self) {
        self.next = Instant::now() + self.length;
        self.is_waiting = false;
    }

    /// When pending pieces are due, if there are any.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.is_waiting.then_some(self.next)
    }
}

/// Waits until then; forever when nothing is pending.
pub(crate) async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_passed_on_at_once_and_the_rest_together() {
        let mut pace = FlushTimer::new(Duration::from_millis(10));
        assert_eq!((pace.is_due(), pace.due()), (true, None));
        assert_eq!((pace.is_due(), pace.is_due()), (false, false));
        until(pace.due()).await;
        pace.record_flush();
        assert_eq!((pace.due(), pace.is_due()), (None, false));
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!((pace.is_due(), pace.due()), (true, None));
    }
}
