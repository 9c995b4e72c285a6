//! Crash recovery: runs of a dead owner are closed as lost by the next owner of the session.
//!
//! The `linkspan` reader replays the stored part of the run; the events it emits at the end are the
//! missing ones: open items and asks are closed, and the run ends.

use formats::{ReaderConfig, registry};
use journal::{Batch, Deltas, Entry, Journal, Lease, Result};
use model::{Body, End, Event, Frame, Outcome, RunEnded, RunError, Text};
use tracing::warn;

use crate::paging::LogPages;
use crate::record::now;

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
    let done = Vec::new();
    journal.append(lease, Batch { entries, done }).await?;
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
