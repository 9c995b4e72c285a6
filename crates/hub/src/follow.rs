//! Followers: stored events first, then live ones, without gaps or duplicates.

use std::collections::{HashMap, VecDeque};
use std::iter;
use std::sync::Arc;

use bytes::Bytes;
use formats::{BridgeConfig, ServedThread};
use model::{SessionId, Timestamp};
use tokio::sync::watch;

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::firehose::FollowAll;
use crate::render::{Render, Style};
use crate::ring::{EncodedOnce, Frame, Poll};
use crate::shared::Shared;

/// What to follow, and in which format.
#[derive(Clone, Debug)]
pub struct Follow {
    pub scope: Scope,
    /// A format that can be written, such as `thread`.
    pub format: String,
    pub profile: Option<String>,
    /// What a server adds to `thread` for its clients.
    pub served: Option<ServedThread>,
    /// The messages of the bridge are wanted beside the events.
    pub bridge: Option<BridgeConfig>,
}

/// What is followed, and the cursors that the client already has.
#[derive(Clone, Debug)]
pub enum Scope {
    Session {
        id: SessionId<'static>,
        /// The last event that is known; 0 is none.
        after: u64,
    },
    All {
        /// The client's cursors; other sessions are followed from now on.
        after: HashMap<SessionId<'static>, u64>,
        /// Sessions created since then are sent from their start.
        since: Option<Timestamp>,
    },
}

/// What a follower gets.
#[derive(Clone, Debug)]
pub enum Followed {
    Delivered(Arc<Delivered>),
    /// All events that were stored when the follower attached have been delivered.
    CaughtUp {
        session: Arc<SessionId<'static>>,
        cursor: u64,
    },
    /// The follower was too slow, and gets no more; with these cursors it misses nothing.
    Detached(Detached),
    /// The session was removed; there is no more. Only for [`Scope::Session`].
    Removed(Arc<SessionId<'static>>),
}

/// An event rendered in the follower's format; events without a rendering are skipped.
#[derive(Debug)]
pub struct Delivered {
    pub session: Arc<SessionId<'static>>,
    /// The event before those that it covers: some events have no rendering.
    pub(crate) after: u64,
    /// The last event that it covers: the cursor of a client that has it.
    pub seq: u64,
    pub bytes: Bytes,
    /// Where the messages of the bridge begin in `bytes`, one on each line.
    pub messages_at: usize,
    pub made: EncodedOnce,
}

/// Where a follower was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    pub cursors: HashMap<SessionId<'static>, u64>,
    /// For [`Scope::All`].
    pub since: Option<Timestamp>,
}

/// A follower. A slow one is detached rather than waited for: see [`Followed::Detached`].
#[derive(Debug)]
pub struct Follower(FollowerKind);

#[derive(Debug)]
enum FollowerKind {
    One(Box<FollowOne>),
    All(Box<FollowAll>),
}

impl Follower {
    pub(crate) async fn new(shared: &Arc<Shared>, follow: Follow) -> Result<Self> {
        let style = Style {
            format: follow.format,
            profile: follow.profile,
            served: follow.served,
            bridge: follow.bridge,
        };
        style.check().map_err(Error::Format)?;
        Ok(Self(match follow.scope {
            Scope::Session { id, after } => FollowerKind::One(Box::new(
                FollowOne::new(shared, Arc::new(id), style, after).await?,
            )),
            Scope::All { after, since } => {
                FollowerKind::All(Box::new(FollowAll::new(shared, style, after, since).await?))
            }
        }))
    }

    /// Waits for the next thing. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> Result<Followed> {
        match &mut self.0 {
            FollowerKind::One(one) => one.next().await,
            FollowerKind::All(all) => all.next().await,
        }
    }

    /// The next frame if it is ready, so that several can be sent in one write.
    pub fn ready(&mut self) -> Option<Arc<Delivered>> {
        match &mut self.0 {
            FollowerKind::One(one) => one.ready(),
            FollowerKind::All(all) => all.ready(),
        }
    }
}

/// Follows one session.
#[derive(Debug)]
pub(crate) struct FollowOne {
    shared: Arc<Shared>,
    session: Arc<SessionId<'static>>,
    channel: Arc<Channel>,
    news: watch::Receiver<()>,
    /// The last event that was delivered.
    cursor: u64,
    buffer: VecDeque<Frame>,
    mode: FollowMode,
    is_caught_up: bool,
}

#[derive(Debug)]
enum FollowMode {
    /// Reads the log without the shared channel.
    Behind(Render),
    /// A place in the ring.
    Live(u64),
    Detached,
    Removed,
}

impl FollowOne {
    pub(crate) async fn new(
        shared: &Arc<Shared>,
        session: Arc<SessionId<'static>>,
        style: Style,
        after: u64,
    ) -> Result<Self> {
        let journal = &shared.config.journal;
        let found = journal.find_session(&session).await?;
        let found = found.ok_or_else(|| Error::NoSession(session.to_string()))?;
        if after > found.head {
            return Err(Error::NoSuchCursor {
                session: found.id,
                after,
                head: found.head,
            });
        }
        let render = |after| Render::new(Arc::clone(&session), &style, after);
        let behind = render(after).map_err(Error::Format)?;
        // A new channel begins at the head; each follower reads the earlier events from the journal.
        let shown = render(found.head).map_err(Error::Format)?;
        let channel = shared.channels.open(journal, &session, &style, || shown);
        let mode = match channel.ring.find(after) {
            Some(place) => FollowMode::Live(place),
            None => FollowMode::Behind(behind),
        };
        Ok(Self {
            shared: Arc::clone(shared),
            news: channel.ring.subscribe(),
            session,
            channel,
            cursor: after,
            buffer: VecDeque::new(),
            mode,
            is_caught_up: false,
        })
    }

    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Waits for frames and takes all that are ready; none when it is detached or the session was removed.
    pub(crate) async fn frames(&mut self, frames: &mut Vec<Frame>) -> Result<()> {
        loop {
            match self.next().await? {
                Followed::CaughtUp { .. } => (),
                Followed::Detached(_) | Followed::Removed(_) => return Ok(()),
                Followed::Delivered(first) => {
                    frames.push(first);
                    frames.extend(iter::from_fn(|| self.ready()));
                    return Ok(());
                }
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(frame) = self.pop() {
                return Ok(Followed::Delivered(frame));
            }
            let ring = &self.channel.ring;
            match &mut self.mode {
                FollowMode::Detached => return Ok(Followed::Detached(self.detached())),
                FollowMode::Removed => return Ok(Followed::Removed(Arc::clone(&self.session))),
                FollowMode::Live(place) => match ring.poll(place, &mut self.buffer) {
                    Poll::Ready => (),
                    Poll::Overrun => self.mode = FollowMode::Detached,
                    Poll::Removed => self.mode = FollowMode::Removed,
                    Poll::Empty if !self.is_caught_up => return Ok(self.caught_up(self.cursor)),
                    // An error means that the channel is gone, which this follower keeps alive.
                    Poll::Empty => self.news.changed().await.map_err(|_| Error::Stopped)?,
                },
                FollowMode::Behind(render) => {
                    if let Some(place) = ring.find(render.at) {
                        let cursor = render.at;
                        self.mode = FollowMode::Live(place);
                        return Ok(self.caught_up(cursor));
                    }
                    let journal = &self.shared.config.journal;
                    let is_end = match render.page(&**journal, &mut self.buffer).await {
                        Err(journal::Error::NoSession { .. }) => {
                            self.mode = FollowMode::Removed;
                            continue;
                        }
                        page => page?,
                    };
                    if is_end && self.buffer.is_empty() && ring.find(render.at).is_none() {
                        // The shared tail has not reached our cursor; wait for its wake-up.
                        self.news.changed().await.map_err(|_| Error::Stopped)?;
                    }
                }
            }
        }
    }

    fn caught_up(&mut self, cursor: u64) -> Followed {
        self.is_caught_up = true;
        let session = Arc::clone(&self.session);
        Followed::CaughtUp { session, cursor }
    }

    fn ready(&mut self) -> Option<Frame> {
        if self.buffer.is_empty()
            && let FollowMode::Live(place) = &mut self.mode
            && self.channel.ring.poll(place, &mut self.buffer) == Poll::Overrun
        {
            self.mode = FollowMode::Detached;
        }
        self.pop()
    }

    /// The next frame that was not delivered.
    fn pop(&mut self) -> Option<Frame> {
        while let Some(frame) = self.buffer.pop_front() {
            // The log and the ring overlap where a follower goes from one to the other.
            if frame.seq > self.cursor {
                self.cursor = frame.seq;
                return Some(frame);
            }
        }
        None
    }

    fn detached(&self) -> Detached {
        Detached {
            cursors: HashMap::from([((*self.session).clone(), self.cursor)]),
            since: None,
        }
    }
}
