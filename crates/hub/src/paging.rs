//! The log of a session from one event to another, page by page.

use std::ops::Range;

use journal::{Deltas, Journal, Read, Result, Stored};
use model::SessionId;

/// Takes the events behind the first number of `span`, up to the second.
pub(crate) async fn each_page(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    span: Range<u64>,
    deltas: Deltas,
    mut take: impl FnMut(&Stored),
) -> Result<()> {
    let mut after = span.start;
    while after < span.end {
        let read = Read {
            deltas,
            ..Read::page(after)
        };
        let page = journal.read(session, read).await?;
        let wanted = page.events.iter().filter(|it| it.seq <= span.end);
        wanted.for_each(&mut take);
        after = page.next.max(after + 1);
    }
    Ok(())
}
