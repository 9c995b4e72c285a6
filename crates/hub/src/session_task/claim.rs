//! How a session task acquires its session: by the lease, which has one owner at a time.

use std::sync::Arc;
use std::time::Duration;

use journal::{Error, Lease};
use model::SessionId;
use runner::Permissions;
use tokio::sync::watch;
use tokio::time::sleep;

use super::SessionTask;
use crate::acceptor::Due;
use crate::append::FOLLOWED_FLUSH_INTERVAL;
use crate::shared::Shared;
use crate::worker::{SessionLog, Worker};

/// Interval between attempts to acquire a session that is held.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// A worker for the session, with no open run left in its log; `None` when there is nothing to do,
/// or another hub has done it or will.
pub(super) async fn claim(
    shared: &Arc<Shared>,
    session: &SessionId<'static>,
    stop: &mut watch::Receiver<bool>,
) -> Option<SessionTask> {
    loop {
        if *stop.borrow() {
            return None;
        }
        match shared.due(session).await {
            Ok(Due::OfOthers) | Err(Error::NoSession { .. }) => return None,
            // Its turn comes when another hub is done with its own prompt.
            Ok(Due::Later) => (),
            Ok(due @ (Due::Nothing | Due::Now)) => match shared.acquire(session).await {
                Ok(lease) => match open(shared, lease).await {
                    Ok(session_task) => return Some(session_task),
                    Err(err) => shared.report_trouble(&err),
                },
                Err(Error::NoSession { .. }) => return None,
                Err(Error::Held { .. }) if due == Due::Nothing => return None,
                Err(Error::Held { .. }) => (),
                Err(err) => shared.report_trouble(&err),
            },
            Err(err) => shared.report_trouble(&err),
        }
        tokio::select! {
            () = sleep(TRY_AGAIN) => (),
            _ = stop.wait_for(|it| *it) => return None,
        }
    }
}

async fn open(shared: &Arc<Shared>, lease: Lease) -> journal::Result<SessionTask> {
    let journal = &shared.config.journal;
    let ttl = shared.config.limits.lease;
    let mut log = SessionLog::with_lease(Arc::clone(journal), lease.clone(), ttl).await?;
    let session = match journal.find_session(&lease.session).await {
        Ok(Some(session)) => session,
        missing => {
            // The next attempt, here or elsewhere, need not wait for the lease to lapse.
            log.release_lease().await;
            let session = lease.session;
            return Err(missing.err().unwrap_or(Error::NoSession { session }));
        }
    };
    log.set_longest_rest(FOLLOWED_FLUSH_INTERVAL);
    if let Some(record) = log.record_mut() {
        record.count_in(&shared.counts);
    }
    Ok(SessionTask {
        shared: Arc::clone(shared),
        native: session.native.map(|it| it.to_string()),
        session: session.id,
        worker: Worker::new(log, Permissions::default()),
        queue: Default::default(),
        current: None,
        settings: None,
        is_releasing: false,
        warm: None,
        is_stopping: false,
        is_aborting: false,
        release_requested: false,
    })
}
