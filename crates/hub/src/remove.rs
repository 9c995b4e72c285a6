//! Removing a session: who keeps it without work is asked to let go of it, and whoever has it then
//! removes it.

use std::time::Duration;

use journal::{CommandBody, Journal, Lease, Owner, Scope, State};
use model::SessionId;
use tokio::time::timeout;

use crate::command::request_release;
use crate::config::Limits;
use crate::error::{Error, Result};
use crate::worker::acquire;

/// What an owner without work may take to leave: its agent has to end first.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// Removes a session with all that is in it, under the name of `owner`; fails with [`Error::Busy`]
/// while something runs or waits in it.
pub async fn remove(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    owner: &Owner,
) -> Result<()> {
    if is_busy(journal, session).await? {
        return Err(Error::Busy(session.clone()));
    }
    let taken = timeout(LEAVE_LIMIT, take(journal, session, owner)).await;
    let lease = taken.map_err(|_| Error::Busy(session.clone()))??;
    // Somebody may have given a prompt meanwhile.
    let removed = match is_busy(journal, session).await {
        Ok(false) => journal.remove(&lease).await.map_err(Error::from),
        Ok(true) => Err(Error::Busy(session.clone())),
        Err(err) => Err(err),
    };
    if removed.is_err() {
        // Who cannot write it now waits until the lease has run out.
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

/// The session as soon as its owner, who has nothing to do in it, lets go of it.
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
                if !was_asked {
                    request_release(journal, session).await?;
                    was_asked = true;
                }
                watch.changed().await;
            }
            acquired => return acquired,
        }
    }
}
