//! What a session holds, read from its log as the messages of a thread.

use formats::History;
use journal::{Deltas, Journal, Result, Stored};
use model::SessionId;

use crate::paging;

/// The messages of the events up to `head`.
pub(crate) async fn read(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    head: u64,
) -> Result<History> {
    let mut history = History::default();
    let note = |stored: &Stored| {
        if let Some(event) = stored.event() {
            history.event(&event);
        }
    };
    paging::each_page(journal, session, 0..head, Deltas::Skip, note).await?;
    Ok(history)
}
