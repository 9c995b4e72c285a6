//! Stored sessions: find, list, remove.

use std::path::Path;

use journal::{ListCursor, Session as Stored, SessionQuery};
use model::SessionId;
use model::error_chain;

use super::{SessionHandle, no_session};
use crate::rpc::{self, Error, Id};
use crate::session::Shared;
use crate::wire::{self, Empty};

/// Sessions in one answer, and read from the journal at once.
const PAGE: u32 = 50;

/// A session by our id or by the agent's.
pub(super) async fn find(shared: &Shared, id: &str) -> Result<Stored, Error> {
    find_stored(shared, id).await?.ok_or_else(|| no_session(id))
}

async fn find_stored(shared: &Shared, id: &str) -> Result<Option<Stored>, Error> {
    let journal = shared.journal().await;
    let wanted = SessionId::new(id);
    let failed = |err: journal::Error| Error::internal(error_chain(&err));
    match journal.find_session(&wanted).await.map_err(failed)? {
        Some(found) => Ok(Some(found)),
        None => journal.find_native(&wanted).await.map_err(failed),
    }
}

/// Removes a session with all that is in it, and answers the request; one that is open here is closed first.
pub(super) async fn delete(shared: Shared, id: Id, name: String, open: Option<SessionHandle>) {
    let removed = remove(&shared, &name, open).await;
    let answer = match removed {
        Ok(()) => rpc::result(&id, &Empty {}),
        Err(error) => rpc::refusal(Some(&id), &error),
    };
    shared.outbound.send(answer).await;
}

async fn remove(shared: &Shared, name: &str, open: Option<SessionHandle>) -> Result<(), Error> {
    let was_open = open.is_some();
    if let Some(SessionHandle { orders, task }) = open {
        // Without a sender the session's loop ends.
        drop(orders);
        // A panicked task has ended, too.
        task.await.ok();
    }
    let Some(stored) = find_stored(shared, name).await? else {
        // A session without prompts is not stored and need not be removed.
        return if was_open {
            Ok(())
        } else {
            Err(no_session(name))
        };
    };
    let owner = journal::Owner::new(hub::own_name());
    let journal = shared.journal().await;
    let removed = hub::remove(&*journal, &stored.id, &owner).await;
    removed.map_err(|err| Error::internal(error_chain(&err)))
}

pub(super) async fn list(
    shared: &Shared,
    it: wire::ListSessions,
) -> Result<wire::SessionList, Error> {
    let query = SessionQuery {
        engine: Some(shared.config.engine.clone()),
        ..SessionQuery::default()
    };
    let journal = shared.journal().await;
    let mut after = it.cursor.as_deref().map(place).transpose()?;
    let mut sessions = Vec::new();
    loop {
        let page = journal.list(query.clone(), after, PAGE).await;
        let page = page.map_err(|err| Error::internal(error_chain(&err)))?;
        let here = page.sessions.into_iter().filter(|stored| {
            let cwd = stored.cwd.as_deref();
            // In ACP every session of the list has a directory.
            cwd.is_some() && (it.cwd.is_none() || it.cwd.as_deref() == cwd.map(Path::new))
        });
        sessions.extend(here.map(info));
        after = page.next;
        // The directory is filtered here: pages are read until an answer is full.
        if after.is_none() || sessions.len() >= PAGE as usize {
            return Ok(wire::SessionList {
                sessions,
                next_cursor: after.map(|it| cursor(&it)),
            });
        }
    }
}

fn info(stored: Stored) -> wire::SessionInfo {
    wire::SessionInfo {
        session_id: stored.id.to_string(),
        cwd: stored.cwd.unwrap_or_default().into(),
        title: stored.title.filter(|it| !it.is_empty()),
        updated_at: Some(stored.active_at.to_string()),
    }
}

fn cursor(place: &ListCursor) -> String {
    place.activity.to_string()
}

fn place(cursor: &str) -> Result<ListCursor, Error> {
    let activity = cursor.parse();
    let activity = activity.map_err(|_| Error::params("the cursor is none of ours"))?;
    Ok(ListCursor { activity })
}
