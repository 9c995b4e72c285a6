//! Renders a log in one format, event by event, from any cursor: live ([`Render::page`]), or as far
//! as it is stored by now (`export`).
//!
//! Writers are deterministic, so every rendering of an event has the same bytes. A follower that is
//! behind renders for itself until it reaches the shared stream.

use std::sync::Arc;

use bytes::Bytes;
use formats::{BridgeConfig, BridgeWriter, ServedThread, WriterConfig, registry};
use journal::{Journal, Read, Result, Stored};
use model::{BodyKind, SessionId, Writer};

use crate::follow::Delivered;
use crate::ring::{EncodedOnce, Frame};

/// The format that events are rendered in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) format: String,
    pub(crate) profile: Option<String>,
    pub(crate) served: Option<ServedThread>,
    pub(crate) bridge: Option<BridgeConfig>,
}

impl Style {
    /// Fails where there is no such format or profile.
    pub(crate) fn check(&self) -> Result<(), registry::Error> {
        registry::writer(&self.format, &self.config()).map(drop)
    }

    fn config(&self) -> WriterConfig {
        WriterConfig {
            profile: self.profile.clone(),
            live: true,
            began: None,
            color: false,
            served: self.served.clone(),
        }
    }
}

/// A session on its way into a format.
#[derive(Debug)]
pub(crate) struct Render {
    session: Arc<SessionId<'static>>,
    /// Absent for the canonical format: the stored line is the frame.
    writer: Option<Box<dyn Writer>>,
    bridge: Option<BridgeWriter>,
    /// The last event that was read.
    pub(crate) at: u64,
    /// The last event that was rendered or is already known to the client.
    shown: u64,
    out: Vec<u8>,
    /// Where the messages of the bridge begin in it.
    messages_at: usize,
}

impl Render {
    /// Emits frames for the events after `after`; the writer still has to see the earlier ones.
    pub(crate) fn new(
        session: Arc<SessionId<'static>>,
        style: &Style,
        after: u64,
    ) -> Result<Self, registry::Error> {
        let mut render = Self::with_config(session, &style.format, &style.config(), after)?;
        if let Some(config) = &style.bridge {
            render.bridge = Some(BridgeWriter::new(config.clone()));
            // The number of an ask is needed when it is settled.
            render.at = 0;
        }
        Ok(render)
    }

    pub(crate) fn with_config(
        session: Arc<SessionId<'static>>,
        format: &str,
        config: &WriterConfig,
        after: u64,
    ) -> Result<Self, registry::Error> {
        let writer = registry::writer(format, config)?;
        let is_stored = format == registry::CANONICAL;
        Ok(Self {
            session,
            writer: (!is_stored).then_some(writer),
            bridge: None,
            // Writers are state machines: they have to see the log from its first event on.
            at: if is_stored { after } else { 0 },
            shown: after,
            out: Vec::new(),
            messages_at: 0,
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
        let page = journal.read(&self.session, Read::page(self.at)).await?;
        frames.extend(page.events.iter().filter_map(|it| self.frame(it)));
        self.at = self.at.max(page.next);
        Ok(page.is_last())
    }

    fn frame(&mut self, stored: &Stored) -> Option<Frame> {
        // Before `render` moves it: events without a rendering lie between the two.
        let after = self.shown;
        let bytes = Bytes::copy_from_slice(self.render(stored)?);
        Some(Arc::new(Delivered {
            session: Arc::clone(&self.session),
            after,
            seq: stored.seq,
            bytes,
            messages_at: self.messages_at,
            made: EncodedOnce::default(),
        }))
    }

    /// The rendering of an event; `None` when it has none, or the client knows it.
    pub(crate) fn render(&mut self, stored: &Stored) -> Option<&[u8]> {
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
        self.messages_at = self.out.len();
        if let Some(bridge) = &mut self.bridge
            && concerns_bridge(stored.kind)
            && let Some(event) = stored.event()
        {
            bridge.event(&event, &mut self.out);
        }
        if self.out.is_empty() || stored.seq <= self.shown {
            return None;
        }
        self.shown = stored.seq;
        Some(&self.out)
    }

    /// What closes the stream.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.writer {
            writer.end(out);
        }
    }
}

/// Whether the bridge has something to say about an event: most are never parsed for it.
fn concerns_bridge(kind: BodyKind) -> bool {
    match kind {
        BodyKind::AskOpened | BodyKind::AskSettled | BodyKind::RunEnded => true,
        BodyKind::SessionBound
        | BodyKind::RunStarted
        | BodyKind::ItemOpened
        | BodyKind::ItemUpdated
        | BodyKind::ItemDelta
        | BodyKind::ItemClosed
        | BodyKind::UsageReported
        | BodyKind::NoticeRaised
        | BodyKind::FrameUnmapped => false,
    }
}
