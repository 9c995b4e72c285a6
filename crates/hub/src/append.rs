//! One append at a time; what is told meanwhile goes with the next.
//!
//! A store that cannot be written holds the run: what was told is kept and tried again, the agent waits
//! once that is too much, and nobody is shown anything until it is stored.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Batch, Error, Fault, Journal, Lease};
use tokio::time::sleep;

use crate::record::Record;

/// From one append to the next: every one of them waits for the disk, and few events share it otherwise.
/// The first after a silence goes at once.
const REST: Duration = Duration::from_millis(10);
/// Between two tries to store what could not be stored.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

type Pending = Pin<Box<dyn Future<Output = Result<Stored, Failed>> + Send>>;

/// What was stored.
pub(crate) struct Stored {
    /// It changes more than the log.
    pub(crate) has_effects: bool,
}

/// What was not stored, and why.
pub(crate) struct Failed {
    pub(crate) error: Error,
    batch: Batch,
}

/// What is to be done about a failure.
pub(crate) enum Remedy {
    /// It is tried again.
    Wait,
    /// Somebody else has the session.
    GiveUp,
    /// The session is ours, and what was told does not fit into it.
    Lose,
}

pub(crate) struct Appender {
    journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    pending: Option<Pending>,
    pause: Duration,
    /// When the last append began.
    began: Option<Instant>,
}

impl Appender {
    pub(crate) fn new(journal: Arc<dyn Journal>, lease: Lease) -> Self {
        Self {
            journal,
            lease,
            pending: None,
            pause: FIRST_PAUSE,
            began: None,
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Begins to store what is ready, unless something is on its way, or just was.
    pub(crate) fn begin(&mut self, record: &mut Record) {
        if self.pending.is_some() || !record.is_ready() {
            return;
        }
        let rest = self.began.map(|it| REST.saturating_sub(it.elapsed()));
        if let Some(rest) = rest.filter(|it| !it.is_zero()) {
            self.pending = Some(Box::pin(async move {
                sleep(rest).await;
                Ok(Stored { has_effects: false })
            }));
        } else if let Some(batch) = record.take() {
            self.began = Some(Instant::now());
            self.send(batch, Duration::ZERO);
        }
    }

    /// Until the append on its way is stored, or not, or may begin.
    pub(crate) async fn stored(&mut self) -> Result<Stored, Failed> {
        let Some(pending) = &mut self.pending else {
            return std::future::pending().await;
        };
        let stored = pending.await;
        self.pending = None;
        if stored.is_ok() {
            self.pause = FIRST_PAUSE;
        }
        stored
    }

    /// What a failure means; what can be tried again is.
    pub(crate) fn failed(&mut self, failed: Failed) -> Remedy {
        let Failed { error, batch } = failed;
        match error {
            Error::Storage(Fault::Closed | Fault::Corrupt(_) | Fault::Newer { .. })
            | Error::Fenced { .. }
            | Error::NoSession { .. } => Remedy::GiveUp,
            Error::Storage(
                Fault::Full | Fault::ReadOnly | Fault::Busy | Fault::Io(_) | Fault::Database(_),
            ) => {
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                self.send(batch, pause);
                Remedy::Wait
            }
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
            | Error::TooLarge { .. } => Remedy::Lose,
        }
    }

    fn send(&mut self, batch: Batch, pause: Duration) {
        let journal = Arc::clone(&self.journal);
        let lease = self.lease.clone();
        self.pending = Some(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            // Its bytes are shared, so that a copy for another try costs little.
            match journal.append(&lease, batch.clone()).await {
                Ok(_) => Ok(Stored {
                    has_effects: batch.has_effects(),
                }),
                Err(error) => Err(Failed { error, batch }),
            }
        }));
    }
}
