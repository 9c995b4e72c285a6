//! The contract every engine keeps.
//!
//! Six verbs carry the log: `acquire`, `append`, `read`, `watch`, `command`, `retain`. The rest
//! finds sessions, runs and asks. Nothing here blocks the calling task, and a write is durable when
//! its future resolves. Dropping that future does not cancel the write: it may or may not have
//! happened. The caller may send it again: a batch, a command and an answer carry a [`WriteId`], and
//! one that is repeated is answered as the first time.

use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId};

use crate::command::{Command, CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
use crate::entry::{Batch, Page, Read, StoredFrame};
use crate::error::{Fault, Result};
use crate::lease::{Lease, Owner, Takeover};
use crate::node::Node;
use crate::retention::{Removed, Retention};
use crate::run::{OpenRun, Overview, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery};
use crate::watch::{Scope, Watch};
use crate::write_id::WriteId;

/// A pending answer; boxed, so that an engine can be chosen while the program runs.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

pub trait Journal: Send + Sync {
    /// Takes the right to write a session, for `ttl` unless it is renewed, under a new epoch.
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        owner: &'a Owner,
        ttl: Duration,
        takeover: Takeover,
    ) -> Reply<'a, Lease>;

    /// Holds a lease for `ttl` more from now; fails when it was taken over.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()>;

    /// Releases a lease, so that the next owner need not wait. No error when it was taken over.
    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()>;

    /// Appends all of the batch or nothing; when it answers, the events are durable. Returns their numbers.
    ///
    /// An owner batches the events that arrive during an append. As events are numbered, a failed
    /// append makes the next one fail too, so there is never a gap.
    fn append<'a>(&'a self, lease: &'a Lease, batch: Batch) -> Reply<'a, Range<u64>>;

    /// A page of a session's events after a cursor, without waiting for more.
    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page>;

    /// The agent's own frames beside the events after `read.after`; a page ends as in [`Journal::read`].
    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>>;

    /// A quick check that new data would survive a restart.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Subscribes to hints; see [`Watch`].
    fn watch(&self, scope: Scope) -> Watch;

    /// Enqueues a command for the session's owner; durable and numbered in order. Returns its number.
    fn command<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        id: WriteId,
        order: CommandBody,
    ) -> Reply<'a, u64>;

    /// Leaves a prompt for the owner of a session, which is made for it if need be: all of it or nothing.
    fn enqueue(&self, target: PromptTarget, id: WriteId, prompt: Bytes) -> Reply<'_, Enqueued>;

    /// The commands after number `after` that are not done, in order.
    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>>;

    /// The command that was given under this id.
    fn find_command(&self, id: WriteId) -> Reply<'_, Option<CommandStatus>>;

    /// Sessions of this home, or of all nodes, with pending commands, whatever their owner; a hub checks them
    /// when it opens.
    fn pending<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<SessionId<'static>>>;

    /// Removes a session with all that is in it. Only its owner may, as with everything that is written.
    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()>;

    /// Removes what is over the limits.
    fn retain(&self, retention: Retention) -> Reply<'_, Removed>;

    fn create(&self, session: NewSession) -> Reply<'_, Session>;

    /// By our own id.
    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>>;

    /// By our own id, with at most `n_runs` of its runs; everything as it is at one moment.
    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<Overview>>;

    /// By an id the agent gave it; the most recently active one when there are several.
    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>>;

    /// Sessions from the newest to the oldest, at most `limit`, beginning behind `after`.
    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing>;

    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()>;

    /// A session's runs from the newest to the oldest, at most `limit`, of those that began before event `before`.
    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>>;

    /// The newest run of that name in any session.
    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>>;

    /// Every run of this home, or of all nodes, without an end, the oldest first.
    fn open_runs<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<OpenRun>>;

    /// Every ask of this home, or of all nodes, that is not settled, the oldest first.
    fn asks<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<WaitingAsk>>;

    /// Answers the ask of event `seq` and enqueues the command for the owner. The first answer
    /// wins; later ones fail as answered. Returns the command's number.
    fn settle<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        seq: u64,
        id: WriteId,
        answer: Bytes,
    ) -> Reply<'a, u64>;
}
