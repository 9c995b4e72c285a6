//! Threads of clients, and the sessions and runs that they are.
//!
//! The session of a thread has an id that is made from the thread's, so that nothing has to be kept:
//! whichever process is asked, and whenever, finds it.

use journal::{CommandBody, Deltas, Read, Run, Session, Stored};
use model::{ClientRun, SessionId};
use sha2::{Digest, Sha256};

use super::AgUi;
use crate::error::Result;

/// Runs that are looked at for one that a client asks for again.
const RECENT: u32 = 32;

impl AgUi {
    /// The session of a thread, and what the journal has of it. A thread may also be named by the id
    /// of any session of the engine.
    pub(super) async fn find_session(
        &self,
        engine: &str,
        thread: &str,
    ) -> Result<(SessionId<'static>, Option<Session>)> {
        let id = SessionId::new(session_id(engine, thread));
        if let Some(found) = self.hub.journal().find_session(&id).await? {
            return Ok((id, Some(found)));
        }
        match self.hub.find(thread).await {
            Ok(found) if found.engine == engine => Ok((found.id.clone(), Some(found))),
            // The same name with another engine is another thread, so it gets a session of its own.
            Ok(_) | Err(hub::Error::NoSession(_)) => Ok((id, None)),
            Err(err) => Err(err.into()),
        }
    }

    /// The run of a session that a client calls so.
    pub(super) async fn find_run(
        &self,
        session: &SessionId<'_>,
        name: &str,
    ) -> Result<Option<Run>> {
        let journal = self.hub.journal();
        for run in journal.runs(session, None, RECENT).await? {
            let read = Read {
                deltas: Deltas::Skip,
                // What the client calls its run is in the event behind `run.started`.
                ..Read::one(run.first + 1)
            };
            let page = journal.read(session, read).await?;
            let event = page.events.first().and_then(Stored::event);
            let client = event.as_ref().and_then(ClientRun::of);
            if client.is_some_and(|it| it.id == name) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// The prompt in a session's queue that a client calls so.
    pub(super) async fn find_queued(
        &self,
        session: &SessionId<'_>,
        name: &str,
    ) -> Result<Option<u64>> {
        let commands = self.hub.journal().commands(session, 0).await?;
        let is_it = |order: &CommandBody| match order {
            CommandBody::Prompt(body) => client_of(body).is_some_and(|it| it.id == name),
            CommandBody::Abort(_) | CommandBody::Settle { .. } | CommandBody::Damaged => false,
        };
        let found = commands.into_iter().find(|it| is_it(&it.order));
        Ok(found.map(|it| it.number))
    }
}

fn client_of(prompt: &[u8]) -> Option<ClientRun> {
    #[derive(serde::Deserialize)]
    struct Prompt {
        client: Option<ClientRun>,
    }
    serde_json::from_slice::<Prompt>(prompt).ok()?.client
}

/// Our own id for a thread: a UUID of version 8, which is for such uses.
fn session_id(engine: &str, thread: &str) -> String {
    let mut hash = Sha256::new();
    for part in ["ag-ui", engine, thread] {
        // With its length, so that no two lists of parts have the same bytes.
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // The bits that RFC 9562 reserves: version 8, and the variant.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_two_engines_are_two_sessions() {
        let ids =
            [("claude", "t"), ("codex", "t"), ("claude", "u")].map(|it| session_id(it.0, it.1));
        assert_eq!(
            ids,
            [
                session_id("claude", "t"),
                session_id("codex", "t"),
                session_id("claude", "u")
            ]
        );
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        assert_eq!(ids[0].len(), 36);
    }
}
