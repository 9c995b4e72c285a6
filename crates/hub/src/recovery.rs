//! Crash recovery: runs of a dead owner are closed as lost by the next owner of the session, or by any
//! program that finds them.
//!
//! The `linkspan` reader replays the stored part of the run; the events it emits at the end are the
//! missing ones: open items and asks are closed, and the run ends.

use std::time::Duration;

use formats::{ReaderConfig, registry};
use journal::{Batch, Deltas, Entry, Error, Journal, Lease, OpenRun, Owner, Result};
use model::{Body, End, Event, Frame, Outcome, RunEnded, RunError, SessionId, Text};
use runner::process;
use tracing::warn;

use crate::config::{Limits, is_dead, own_name};
use crate::paging::LogPages;
use crate::record::now;
use crate::worker::acquire;

/// Whether an open run has no owner left that could end it.
pub fn is_lost(open: &OpenRun) -> bool {
    let holder = open.holder.as_ref();
    holder.is_none_or(|it| it.lapsed || is_dead(&it.owner))
}

/// Closes the runs of dead owners as lost, for a program that runs no sessions of its own; returns the
/// sessions that they were in.
pub async fn close_lost_runs(journal: &dyn Journal) -> Result<Vec<SessionId<'static>>> {
    let owner = Owner::new(own_name());
    close_all(journal, &owner, Limits::default().lease, |_| false).await
}

/// The same as `owner`; the sessions that are its own are left alone.
pub(crate) async fn close_all(
    journal: &dyn Journal,
    owner: &Owner,
    ttl: Duration,
    is_own: impl Fn(&SessionId<'static>) -> bool,
) -> Result<Vec<SessionId<'static>>> {
    let mut lost = journal.open_runs(None).await?;
    lost.retain(|it| is_lost(it) && !is_own(&it.run.session));
    let mut closed = Vec::new();
    if lost.is_empty() {
        return Ok(closed);
    }
    // First: a run must not be closed as lost while its agent is still at work.
    tokio::task::spawn_blocking(process::end_orphans).await.ok();
    for session in lost.into_iter().map(|it| it.run.session) {
        match acquire(journal, &session, owner, ttl).await {
            Ok(lease) => {
                // Released even on failure: otherwise the session waits for the lease to lapse.
                let recovered = close(journal, &lease).await;
                journal.release(&lease).await?;
                recovered?;
                closed.push(session);
            }
            // Another process was faster.
            Err(Error::Held { .. } | Error::NoSession { .. }) => (),
            Err(err) => return Err(err),
        }
    }
    Ok(closed)
}

/// Closes every open run of the session that `lease` is for; returns the last event.
pub(crate) async fn close(journal: &dyn Journal, lease: &Lease) -> Result<u64> {
    let runs = journal.runs(&lease.session, None, u32::MAX).await?;
    let open = runs.iter().filter(|it| it.end.is_none());
    // Runs do not overlap: there is one at most.
    let Some(first) = open.map(|it| it.first).min() else {
        return Ok(lease.head);
    };
    let entries = missing(journal, lease, first).await?;
    let head = lease.head + entries.len() as u64;
    journal.append(lease, Batch::new(entries)).await?;
    warn!(
        session = lease.session.as_str(),
        first, "run of a dead owner closed as lost"
    );
    Ok(head)
}

async fn missing(journal: &dyn Journal, lease: &Lease, first: u64) -> Result<Vec<Entry>> {
    let (_, reader) =
        registry::find_reader(registry::CANONICAL).expect("the canonical form is read");
    let mut reader = reader(&ReaderConfig::default());
    let span = first - 1..lease.head;
    // With deltas: an item that was left open is closed with the text it had so far.
    let mut pages = LogPages::new(journal, &lease.session, span, Deltas::Keep);
    while let Some(events) = pages.next().await? {
        for stored in &events {
            reader.frame(Frame::Data(&stored.line), &mut |_: &Event<'_>| ());
        }
    }
    let mut entries = Vec::new();
    let mut seq = lease.head;
    // The reader closes what is open by the rules of every input that breaks off.
    reader.end(&End::default(), &mut |event: &Event<'_>| {
        seq += 1;
        let mut event = event.clone();
        (event.seq, event.at) = (seq, Some(now()));
        if let Body::RunEnded(ended) = &mut event.body {
            *ended = lost_run();
        }
        entries.push(Entry::of(&event, None).expect("events are plain data with string keys"));
    });
    Ok(entries)
}

fn lost_run() -> RunEnded<'static> {
    let message = "the program that looked after this run ended before the run did";
    let error = RunError::new("owner_lost", Text::new(message));
    RunEnded::new(Outcome::Lost, Some(error))
}
