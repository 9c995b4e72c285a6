//! Removing a session: an idle owner is asked to release it, and the new owner removes it.

use std::time::Duration;

use journal::{CommandBody, Journal, Lease, Owner, Scope, State};
use model::SessionId;
use tokio::time::timeout;

use crate::command::request_release;
use crate::config::Limits;
use crate::error::{Error, Result};
use crate::worker::acquire;

/// How long an idle owner may take to release the session: its agent has to exit first.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// Removes a session and its events as `owner`; fails with [`Error::Busy`] while it has a run or
/// queued prompts.
pub async fn remove(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    owner: &Owner,
) -> Result<()> {
    // A session at work is refused at once, without the wait for its owner.
    if is_busy(journal, session).await? {
        return Err(Error::Busy(session.clone()));
    }
    let taken = timeout(LEAVE_LIMIT, take(journal, session, owner)).await;
    let lease = taken.map_err(|_| Error::Busy(session.clone()))??;
    // A prompt may have been submitted in the meantime.
    let removed = match is_busy(journal, session).await {
        Ok(false) => journal.remove(&lease).await.map_err(Error::from),
        Ok(true) => Err(Error::Busy(session.clone())),
        Err(err) => Err(err),
    };
    if removed.is_err() {
        // If the release fails, the next owner waits for the lease to lapse.
        journal.release(&lease).await.ok();
    }
    removed
}

async fn is_busy(journal: &dyn Journal, session: &SessionId<'static>) -> Result<bool> {
    let found = journal.find_session(session).await?;
    let found = found.ok_or_else(|| Error::NoSession(session.to_string()))?;
    let commands = journal.commands(session, 0).await?;
    let has_prompts = commands
        .iter()
        .any(|it| matches!(it.order, CommandBody::Prompt(_)));
    Ok(found.state != State::Idle || has_prompts)
}

/// Acquires the session as soon as its idle owner releases it.
async fn take(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    owner: &Owner,
) -> journal::Result<Lease> {
    let mut watch = journal.watch(Scope::Session(session.clone()));
    let mut was_asked = false;
    loop {
        match acquire(journal, session, owner, Limits::default().lease).await {
            Err(journal::Error::Held { .. }) => {
                // Once is enough: the command waits in the journal until the owner reads it.
                if !was_asked {
                    request_release(journal, session).await?;
                    was_asked = true;
                }
                // If the journal was closed, the next attempt fails and ends the loop.
                watch.changed().await;
            }
            acquired => return acquired,
        }
    }
}
