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
    pub(super) record: Record,
    pub(super) link: JournalLink,
}

/// The journal's side of an open log: the lease, appends, and the commands of others. It is apart from the
/// record so that an agent can write events while this waits.
pub(crate) struct JournalLink {
    pub(super) journal: Arc<dyn Journal>,
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

/// What has happened in the journal.
pub(crate) enum LogEvent {
    Stored {
        has_effects: bool,
    },
    Failed(FailedAppend),
    /// There may be new commands, or it is time to renew the lease.
    Changed,
    /// The journal was closed.
    Closed,
}

impl OpenLog {
    pub(super) fn new(
        journal: Arc<dyn Journal>,
        lease: Lease,
        record: Record,
        ttl: Duration,
    ) -> Self {
        // Two renewals may fail before the lease lapses.
        let period = (ttl / 3).max(Duration::from_millis(1));
        // The lease was acquired just now.
        let mut renewals = interval_at(Instant::now() + period, period);
        // One renewal makes up for all that were missed.
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let link = JournalLink {
            watch: journal.watch(Scope::Commands(lease.session.clone())),
            appender: Appender::new(Arc::clone(&journal), lease),
            journal,
            ttl,
            renewals,
            n_read: 0,
            is_renewal_due: false,
            // Not read yet: a prompt may wait since before the lease.
            has_changed: true,
        };
        Self { record, link }
    }

    pub(super) fn session(&self) -> &SessionId<'static> {
        &self.link.appender.lease.session
    }

    pub(super) async fn store_all(&mut self) -> Result<()> {
        let appender = &mut self.link.appender;
        appender.begin(&mut self.record);
        while appender.is_busy() {
            if let Err(failed) = appender.stored().await {
                let error = failed.error.clone();
                match appender.failed(failed) {
                    AppendFailure::Retry => (),
                    AppendFailure::Fenced | AppendFailure::Discard => return Err(error),
                }
            }
            // A rest ends like an append, and the batch is still there.
            appender.begin(&mut self.record);
        }
        Ok(())
    }
}

impl std::fmt::Debug for OpenLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenLog")
            .field("session", self.session())
            .finish_non_exhaustive()
    }
}

impl JournalLink {
    pub(super) async fn next(&mut self) -> LogEvent {
        tokio::select! {
            stored = self.appender.stored(), if self.appender.is_busy() => match stored {
                Ok(stored) => LogEvent::Stored { has_effects: stored.has_effects },
                Err(failed) => LogEvent::Failed(failed),
            },
            is_open = self.watch.changed() => {
                self.has_changed = true;
                match is_open {
                    true => LogEvent::Changed,
                    false => LogEvent::Closed,
                }
            }
            _ = self.renewals.tick() => {
                // Commands are read too: a hint may have been missed when the journal could not be read.
                (self.is_renewal_due, self.has_changed) = (true, true);
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
            // By name: if another process was faster, the session is no longer the dead owner's.
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
