//! The history of a session, replayed through the same writer as live events.

use formats::AcpAgent;
use hub::LogPages;
use journal::{Deltas, Journal, Stored};
use model::{Body, Event, Item, ItemClosed, Role, SessionId, Text};
use runner::pipes::LineSender;

use crate::content::without_context;

/// Replays all stored events.
pub(crate) async fn replay(
    journal: &dyn Journal,
    session: &SessionId<'_>,
    writer: &mut AcpAgent,
    outbound: &LineSender,
) -> journal::Result<()> {
    writer.set_history(true);
    let head = journal.find_session(session).await?.map_or(0, |it| it.head);
    let mut pages = LogPages::new(journal, session, 0..head, Deltas::Keep);
    while let Some(events) = pages.next().await? {
        let mut lines = Vec::new();
        for mut event in events.iter().filter_map(Stored::event) {
            as_seen(&mut event);
            // How a run ended was answered when it did.
            drop(writer.event(&event, &mut lines));
        }
        writer.flush(&mut lines);
        // A closed connection ends the replay.
        outbound.send(lines).await;
    }
    writer.set_history(false);
    Ok(())
}

/// Files that the user embedded: the user did not see their content as the agent got it.
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
