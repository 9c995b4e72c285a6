//! What a session holds, read from its log as the messages of a thread.

use formats::ag_ui::History;
use journal::{Deltas, Journal, Read, Result};
use model::{Event, SessionId};

use crate::record::PAGE;

/// The messages of the events up to `head`.
pub(crate) async fn read(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    head: u64,
) -> Result<History> {
    let mut history = History::default();
    let mut after = 0;
    while after < head {
        let read = Read {
            after,
            deltas: Deltas::Skip,
            max_events: PAGE.0,
            max_bytes: PAGE.1,
        };
        let page = journal.read(session, read).await?;
        for stored in page.events.iter().filter(|it| it.seq <= head) {
            // What a later version has stored cannot be told by this one.
            if let Ok(line) = str::from_utf8(&stored.line)
                && let Ok(event) = Event::from_json(line)
            {
                history.event(&event);
            }
        }
        after = page.next.max(after + 1);
    }
    Ok(history)
}
