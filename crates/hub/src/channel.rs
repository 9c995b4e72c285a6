//! One session in one format, rendered once for all of its followers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use journal::{Error, Journal, Scope};
use model::SessionId;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout_at};

use crate::lock::lock;
use crate::render::{Render, Style};
use crate::ring::{FlushTimer, Ring};

/// Until a log that could not be read is read again.
pub(crate) const RETRY_READ: Duration = Duration::from_millis(200);

type Key = (SessionId<'static>, Style);

/// The channels that have followers.
#[derive(Debug, Default)]
pub(crate) struct Channels(Mutex<HashMap<Key, Weak<Channel>>>);

/// Lives as long as it has followers.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) ring: Arc<Ring>,
    task: JoinHandle<()>,
}

impl Channels {
    /// The channel of a session in a format; a new one begins at the end of its log.
    pub(crate) fn open(
        &self,
        journal: &Arc<dyn Journal>,
        session: &Arc<SessionId<'static>>,
        style: &Style,
        render: impl FnOnce() -> Render,
    ) -> Arc<Channel> {
        // Held until the new channel is in the map: two followers must not start two tails.
        let mut channels = lock(&self.0);
        let key = ((**session).clone(), style.clone());
        let channel = channels.get(&key).and_then(Weak::upgrade);
        // A session may be made again under the name of one that was removed.
        if let Some(channel) = channel.filter(|it| !it.ring.is_removed()) {
            return channel;
        }
        channels.retain(|_, it| it.strong_count() > 0);
        let ring = Arc::new(Ring::new());
        // The task holds the ring, not the channel, which would otherwise never be dropped.
        let task = tokio::spawn(tail(Arc::clone(journal), render(), Arc::clone(&ring)));
        let channel = Arc::new(Channel { ring, task });
        channels.insert(key, Arc::downgrade(&channel));
        channel
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Renders events as they are stored.
async fn tail(journal: Arc<dyn Journal>, mut render: Render, ring: Arc<Ring>) {
    let session = (**render.session()).clone();
    let mut watch = journal.watch(Scope::Session(session));
    let mut frames = Vec::new();
    let mut timer = FlushTimer::new();
    loop {
        match render.page(&*journal, &mut frames).await {
            Ok(is_end) => {
                let due = timer.wait_until(&ring, &frames).filter(|_| is_end);
                if let Some(due) = due
                    && let Ok(true) = timeout_at(due, watch.changed()).await
                {
                    // More frames arrived in time, and go out in the same write.
                    continue;
                }
                timer.flush(&ring, &mut frames, render.at, is_end);
                if is_end && !watch.changed().await {
                    return;
                }
            }
            Err(Error::NoSession { .. }) => {
                // Frames that were already gathered are still delivered.
                timer.flush(&ring, &mut frames, render.at, true);
                return ring.mark_removed();
            }
            Err(_) => sleep(RETRY_READ).await,
        }
    }
}

#[cfg(test)]
mod tests;
