//! The history of a session, replayed through the same writer as live events.

use formats::AcpAgent;
use journal::{Journal, Read};
use model::{Body, Event, Item, ItemClosed, Role, SessionId, Text};

use crate::content::without_context;
use crate::pipes::LineSender;

/// Replays all stored events.
pub(crate) async fn replay(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    writer: &mut AcpAgent,
    said: &LineSender,
) -> journal::Result<()> {
    writer.set_history(true);
    let mut after = 0;
    loop {
        let page = journal.read(session, Read::page(after)).await?;
        let mut lines = Vec::new();
        for stored in &page.events {
            if let Some(mut event) = stored.event() {
                as_seen(&mut event);
                // How a run ended was answered when it did.
                drop(writer.event(&event, &mut lines));
            }
        }
        writer.flush(&mut lines);
        // A closed connection ends the replay.
        said.send(lines).await;
        after = after.max(page.next);
        if page.is_last() {
            writer.set_history(false);
            return Ok(());
        }
    }
}

/// The user has embedded files, and did not see what the agent was given of them.
fn as_seen(event: &mut Event<'_>) {
    if let Body::ItemClosed(ItemClosed {
        item: Item::Message(message),
        ..
    }) = &mut event.body
        && message.role == Role::User
    {
        let text = message.text.to_str();
        let seen = without_context(&text);
        if seen.len() < text.len() {
            message.text = Text::new(seen.to_owned());
        }
    }
}
