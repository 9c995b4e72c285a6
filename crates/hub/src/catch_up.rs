//! Renders a log in one format, event by event, from any cursor.
//!
//! Writers are deterministic, so every rendering of an event has the same bytes. A follower that is
//! behind renders for itself until it reaches the shared stream.

use std::sync::Arc;

use bytes::Bytes;
use formats::{ServedThread, WriterConfig, registry};
use journal::{Deltas, Journal, Read, Result, Stored};
use model::{SessionId, Writer};

use crate::ring::{EncodedOnce, Frame};

/// Events and bytes read at once: little, because many may be catching up.
const PAGE: (u32, usize) = (256, 256 << 10);

/// What events become.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) format: String,
    pub(crate) profile: Option<String>,
    pub(crate) served: Option<ServedThread>,
}

impl Style {
    pub(crate) fn writer(&self) -> Result<Box<dyn Writer>, registry::Error> {
        let config = WriterConfig {
            profile: self.profile.clone(),
            live: true,
            began: None,
            color: false,
            served: self.served.clone(),
        };
        registry::writer(&self.format, &config)
    }

    /// The canonical form is what is stored.
    fn is_stored(&self) -> bool {
        self.format == "linkspan"
    }
}

/// A session on its way into a format.
#[derive(Debug)]
pub(crate) struct Render {
    session: Arc<SessionId<'static>>,
    /// Absent where the stored line is the frame.
    writer: Option<Box<dyn Writer>>,
    /// The last event that was read.
    pub(crate) at: u64,
    /// The last event that was rendered or is already known to the client.
    shown: u64,
    out: Vec<u8>,
}

impl Render {
    /// Emits frames for the events after `after`; the writer still has to see the earlier ones.
    pub(crate) fn new(
        session: Arc<SessionId<'static>>,
        style: &Style,
        after: u64,
    ) -> Result<Self, registry::Error> {
        let writer = style.writer()?;
        let is_stored = style.is_stored();
        Ok(Self {
            session,
            writer: (!is_stored).then_some(writer),
            at: if is_stored { after } else { 0 },
            shown: after,
            out: Vec::new(),
        })
    }

    pub(crate) fn session(&self) -> &Arc<SessionId<'static>> {
        &self.session
    }

    /// Renders some more; true when there is nothing more yet.
    pub(crate) async fn page(
        &mut self,
        journal: &dyn Journal,
        frames: &mut impl Extend<Frame>,
    ) -> Result<bool> {
        let read = Read {
            after: self.at,
            deltas: Deltas::Keep,
            max_events: PAGE.0,
            max_bytes: PAGE.1,
        };
        let page = journal.read(&self.session, read).await?;
        frames.extend(page.events.iter().filter_map(|it| self.render(it)));
        self.at = self.at.max(page.next);
        Ok(page.next >= page.head)
    }

    fn render(&mut self, stored: &Stored) -> Option<Frame> {
        self.out.clear();
        match &mut self.writer {
            None => {
                self.out.extend_from_slice(&stored.line);
                self.out.push(b'\n');
            }
            Some(writer) => {
                writer.event(&stored.event()?, &mut self.out);
            }
        }
        if self.out.is_empty() || stored.seq <= self.shown {
            return None;
        }
        let after = std::mem::replace(&mut self.shown, stored.seq);
        Some(Frame {
            session: Arc::clone(&self.session),
            after,
            seq: stored.seq,
            bytes: Bytes::copy_from_slice(&self.out),
            made: EncodedOnce::default(),
        })
    }
}
