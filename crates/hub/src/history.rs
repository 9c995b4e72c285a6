//! What a session holds, read from its log as the messages of a thread.

use formats::History;
use journal::{Deltas, Journal, Result, Stored};
use model::SessionId;

use crate::paging::LogPages;

/// The messages of the events up to `head`.
pub(crate) async fn read(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    head: u64,
) -> Result<History> {
    let mut history = History::default();
    // The deltas of an item add up to the text of its `item.closed`.
    let mut pages = LogPages::new(journal, session, 0..head, Deltas::Skip);
    while let Some(events) = pages.next().await? {
        for event in events.iter().filter_map(Stored::event) {
            history.event(&event);
        }
    }
    Ok(history)
}
