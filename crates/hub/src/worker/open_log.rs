//! A log that is written under its session's lease.

use std::sync::Arc;
use std::time::Duration;

use journal::{Error, Journal, Lease, Owner, Result, Scope, Takeover, Watch};
use model::SessionId;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::append::{AppendFailure, Appender, FailedAppend};
use crate::config::is_dead;
use crate::record::Record;
use crate::recovery;

/// A log that is written under the session's lease.
pub(super) struct OpenLog {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) record: Record,
    pub(super) appender: Appender,
    /// For how long the session is ours without a renewal.
    pub(super) ttl: Duration,
    renewals: Interval,
    watch: Watch,
    /// The last command that was read.
    pub(super) n_read: u64,
    /// The lease is to be renewed, or commands are to be read: noted, because a step may be dropped before.
    pub(super) is_renewal_due: bool,
    pub(super) has_changed: bool,
}

/// What the journal has to say.
pub(crate) enum LogEvent {
    Stored {
        has_effects: bool,
    },
    Failed(FailedAppend),
    /// Others may have left something to do, or it is time to renew the lease.
    Changed,
    /// The journal was closed.
    Closed,
}

impl OpenLog {
    /// Where the agent tells, and what the journal has to say meanwhile.
    pub(super) fn parts(&mut self) -> (&mut Record, LogEvents<'_>) {
        let events = Sources {
            appender: &mut self.appender,
            renewals: &mut self.renewals,
            watch: &mut self.watch,
            is_renewal_due: &mut self.is_renewal_due,
            has_changed: &mut self.has_changed,
        };
        (&mut self.record, LogEvents(Some(events)))
    }

    pub(super) fn new(
        journal: Arc<dyn Journal>,
        lease: Lease,
        record: Record,
        ttl: Duration,
    ) -> Self {
        let period = (ttl / 3).max(Duration::from_millis(1));
        // The lease was acquired just now.
        let mut renewals = interval_at(Instant::now() + period, period);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watch = journal.watch(Scope::Commands(lease.session.clone()));
        Self {
            appender: Appender::new(Arc::clone(&journal), lease),
            journal,
            record,
            ttl,
            renewals,
            watch,
            n_read: 0,
            is_renewal_due: false,
            has_changed: true,
        }
    }

    pub(super) async fn store_all(&mut self) -> Result<()> {
        self.appender.begin(&mut self.record);
        while self.appender.is_busy() {
            if let Err(failed) = self.appender.stored().await {
                let error = failed.error.clone();
                match self.appender.failed(failed) {
                    AppendFailure::Retry => (),
                    AppendFailure::Fenced | AppendFailure::Discard => return Err(error),
                }
            }
            self.appender.begin(&mut self.record);
        }
        Ok(())
    }
}

impl std::fmt::Debug for OpenLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenLog")
            .field("session", &self.appender.lease.session)
            .finish_non_exhaustive()
    }
}

/// What the journal has to say, if there is one.
pub(crate) struct LogEvents<'a>(Option<Sources<'a>>);

struct Sources<'a> {
    appender: &'a mut Appender,
    renewals: &'a mut Interval,
    watch: &'a mut Watch,
    is_renewal_due: &'a mut bool,
    has_changed: &'a mut bool,
}

impl LogEvents<'_> {
    /// Without a log there is nothing to say.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(crate) async fn next(&mut self) -> LogEvent {
        let Some(Sources {
            appender,
            renewals,
            watch,
            is_renewal_due,
            has_changed,
        }) = &mut self.0
        else {
            return std::future::pending().await;
        };
        tokio::select! {
            stored = appender.stored(), if appender.is_busy() => match stored {
                Ok(stored) => LogEvent::Stored { has_effects: stored.has_effects },
                Err(failed) => LogEvent::Failed(failed),
            },
            is_open = watch.changed() => {
                **has_changed = true;
                match is_open {
                    true => LogEvent::Changed,
                    false => LogEvent::Closed,
                }
            }
            _ = renewals.tick() => {
                (**is_renewal_due, **has_changed) = (true, true);
                LogEvent::Changed
            }
        }
    }
}

/// Acquires a session whose owner has released it or is dead.
pub(crate) async fn acquire(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    owner: &Owner,
    ttl: Duration,
) -> Result<Lease> {
    match journal.acquire(session, owner, ttl, Takeover::Lapsed).await {
        Err(Error::Held { owner: dead, .. }) if is_dead(&dead) => {
            let takeover = Takeover::Dead(dead);
            journal.acquire(session, owner, ttl, takeover).await
        }
        acquired => acquired,
    }
}

/// The record of a session, with nothing left open in its log.
pub(super) async fn record(journal: &dyn Journal, lease: &Lease) -> Result<Record> {
    let head = recovery::close(journal, lease).await?;
    let found = journal.find_session(&lease.session).await?;
    let session = found.ok_or_else(|| Error::NoSession {
        session: lease.session.clone(),
    })?;
    Record::open(journal, &session, head).await
}
