//! How a desk gets its session: by the lease, which one owner has at a time.

use std::sync::Arc;
use std::time::Duration;

use journal::{Error, Lease, Takeover, Watch};
use model::SessionId;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Desk;
use crate::acceptor::Due;
use crate::append::Appender;
use crate::config::is_dead;
use crate::lost;
use crate::record::Record;
use crate::shared::Shared;

/// Between two tries to get a session that somebody else has.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// The desk of a session, with nothing left open in its log; none when there is nothing to do in it,
/// or somebody else has done it meanwhile, or is to do it.
pub(super) async fn claim(
    shared: &Arc<Shared>,
    session: &SessionId<'static>,
    watch: &mut Watch,
    stop: &mut watch::Receiver<bool>,
) -> Option<Desk> {
    let journal = &shared.config.journal;
    loop {
        if *stop.borrow() {
            return None;
        }
        match shared.due(session).await {
            Ok(Due::OfOthers) | Err(Error::NoSession { .. }) => return None,
            // Its turn comes when another hub is done with its own prompt.
            Ok(Due::Later) => (),
            Ok(due @ (Due::Nothing | Due::Now)) => match acquire(shared, session).await {
                Ok(lease) => match open(shared, &lease).await {
                    Ok(desk) => return Some(desk),
                    Err(err) => {
                        shared.in_trouble(&err);
                        journal.release(&lease).await.ok();
                    }
                },
                Err(Error::NoSession { .. }) => return None,
                Err(Error::Held { .. }) if due == Due::Nothing => return None,
                Err(Error::Held { .. }) => (),
                Err(err) => shared.in_trouble(&err),
            },
            Err(err) => shared.in_trouble(&err),
        }
        tokio::select! {
            () = sleep(TRY_AGAIN) => (),
            _ = stop.wait_for(|it| *it) => return None,
        }
        // Hints of the meantime are answered by looking again.
        tokio::select! {
            biased;
            _ = watch.changed() => (),
            () = std::future::ready(()) => (),
        }
    }
}

/// Takes a session whose owner has let go of it, or is dead.
pub(crate) async fn acquire(
    shared: &Shared,
    session: &SessionId<'static>,
) -> journal::Result<Lease> {
    let journal = &shared.config.journal;
    let ttl = shared.config.limits.lease;
    let acquired = journal
        .acquire(session, &shared.owner, ttl, Takeover::Lapsed)
        .await;
    match acquired {
        Err(Error::Held { owner, .. }) if is_dead(&owner) => {
            let takeover = Takeover::Dead(owner);
            journal.acquire(session, &shared.owner, ttl, takeover).await
        }
        acquired => acquired,
    }
}

async fn open(shared: &Arc<Shared>, lease: &Lease) -> journal::Result<Desk> {
    let journal = &shared.config.journal;
    let head = lost::close(&**journal, lease).await?;
    let found = journal.find_session(&lease.session).await?;
    let session = found.ok_or_else(|| Error::NoSession {
        session: lease.session.clone(),
    })?;
    let mut record = Record::open(&**journal, &session, head).await?;
    record.count_in(&shared.counts);
    Ok(Desk {
        shared: Arc::clone(shared),
        native: session.native.map(|it| it.to_string()),
        session: session.id,
        record,
        appender: Appender::new(Arc::clone(journal), lease.clone()),
        queue: Default::default(),
        n_seen: 0,
        current: None,
        starting: None,
        agent: None,
        settings: None,
        is_leaving: false,
        warm: None,
        answered: Vec::new(),
        is_stopping: false,
        is_aborting: false,
        is_wanted: false,
    })
}
