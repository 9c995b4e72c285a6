//! All sessions as one stream: each is rendered once, and its frames go into one ring.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use journal::{Journal, Session, SessionQuery};
use model::{SessionId, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout, timeout_at};

use crate::channel::RETRY_READ;
use crate::error::{Error, Result};
use crate::follow::{Detached, FollowOne, Followed};
use crate::lock::lock;
use crate::record::now;
use crate::render::{Render, Style};
use crate::ring::{FlushTimer, Frame, Poll, Ring};
use crate::shared::Shared;

/// A session without events for this long is no longer tailed until it continues.
const IDLE_AFTER: Duration = Duration::from_secs(60);
/// Sessions read at once.
const PAGE: u32 = 100;

/// Cursors kept for idle sessions.
const MAX_TAILS: usize = 512;

/// All sessions in one format. Lives as long as it has followers.
#[derive(Debug)]
pub(crate) struct Firehose {
    pub(crate) ring: Ring,
    style: Style,
    sessions: Mutex<HashMap<SessionId<'static>, SessionTail>>,
}

/// Where a session is.
#[derive(Debug)]
struct SessionTail {
    cursor: u64,
    /// A task forwards its frames.
    is_active: bool,
    /// The last such task.
    task: Option<JoinHandle<()>>,
}

impl Firehose {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            ring: Ring::new(),
            style,
            sessions: Mutex::default(),
        }
    }

    /// A session has more than it had; `after` is where it was when it was looked at last.
    pub(crate) fn resume(self: &Arc<Self>, shared: &Arc<Shared>, session: &Session, after: u64) {
        let mut sessions = lock(&self.sessions);
        let new = SessionTail {
            cursor: after,
            is_active: false,
            task: None,
        };
        // A place that is known counts more: its task may be ahead of the last look.
        let place = sessions.entry(session.id.clone()).or_insert(new);
        if !place.is_active && session.head > place.cursor {
            place.is_active = true;
            let id = Arc::new(session.id.clone());
            // Weak: the task must not keep a firehose alive that has no followers left.
            let task = forward(Arc::downgrade(self), Arc::clone(shared), id, place.cursor);
            place.task = Some(tokio::spawn(task));
        }
    }

    fn mark_idle(&self, shared: &Shared, session: &SessionId<'static>, cursor: u64) {
        let mut sessions = lock(&self.sessions);
        if let Some(place) = sessions.get_mut(session) {
            place.cursor = cursor;
            place.is_active = false;
        }
        if sessions.len() > MAX_TAILS {
            // If the directory has the same cursor, the entry can be restored from it.
            sessions.retain(|id, it| {
                let head = shared.directory.head(id);
                it.is_active || head.is_some_and(|head| head != it.cursor)
            });
        }
    }

    /// False when another task is already active.
    fn mark_active(&self, session: &SessionId<'static>) -> bool {
        let mut sessions = lock(&self.sessions);
        let place = sessions.get_mut(session).filter(|it| !it.is_active);
        place.map(|it| it.is_active = true).is_some()
    }
}

impl Drop for Firehose {
    fn drop(&mut self) {
        for place in lock(&self.sessions).values() {
            if let Some(task) = &place.task {
                // A task that is waiting for the next event would notice only at its timeout.
                task.abort();
            }
        }
    }
}

/// Forwards the frames of a session until it has been idle for a while.
async fn forward(
    firehose: Weak<Firehose>,
    shared: Arc<Shared>,
    session: Arc<SessionId<'static>>,
    mut cursor: u64,
) {
    let mut head = 0;
    while let Some(style) = firehose.upgrade().map(|it| it.style.clone()) {
        match FollowOne::new(&shared, Arc::clone(&session), style, cursor).await {
            Ok(mut one) => {
                pump(&firehose, &mut one).await;
                cursor = one.cursor();
            }
            Err(Error::Journal(_)) => sleep(RETRY_READ).await,
            // It was removed.
            Err(_) => break,
        }
        let Some(all) = firehose.upgrade() else {
            return;
        };
        all.mark_idle(&shared, &session, cursor);
        // An update in between found the task still active, so check again.
        let found = shared.config.journal.find_session(&session).await;
        match found {
            Ok(Some(found)) if found.head > head => head = found.head,
            _ => return,
        }
        if !all.mark_active(&session) {
            return;
        }
    }
}

async fn pump(firehose: &Weak<Firehose>, one: &mut FollowOne) {
    let mut frames = Vec::new();
    let mut timer = FlushTimer::new();
    while let Ok(Ok(())) = timeout(IDLE_AFTER, one.frames(&mut frames)).await {
        let is_over = frames.is_empty() || !gather(firehose, one, &mut frames, &timer).await;
        let Some(all) = firehose.upgrade() else {
            return;
        };
        // No head: the sessions of this ring share no cursor, and no place is found by one.
        timer.flush(&all.ring, &mut frames, 0, true);
        if is_over {
            return;
        }
    }
}

/// Gathers more frames until these are to go into the ring; false when the session has no more.
async fn gather(
    firehose: &Weak<Firehose>,
    one: &mut FollowOne,
    frames: &mut Vec<Frame>,
    timer: &FlushTimer,
) -> bool {
    // The firehose is not kept while this waits: it lives as long as it has followers.
    let due = |frames: &[Frame]| {
        let all = firehose.upgrade();
        all.and_then(|it| timer.wait_until(&it.ring, frames))
    };
    while let Some(due) = due(frames) {
        let before = frames.len();
        match timeout_at(due, one.frames(frames)).await {
            Ok(Ok(())) if frames.len() > before => (),
            // It was detached or removed, or cannot be read.
            Ok(_) => return false,
            Err(_) => return true,
        }
    }
    true
}

/// Follows all sessions.
#[derive(Debug)]
pub(crate) struct FollowAll {
    shared: Arc<Shared>,
    firehose: Arc<Firehose>,
    news: watch::Receiver<()>,
    place: u64,
    /// The last event of each session that was delivered.
    seen: HashMap<SessionId<'static>, u64>,
    /// Sessions created later are sent from their start.
    since: Timestamp,
    /// Sessions that are read from the log.
    behind: VecDeque<Render>,
    /// What was read of the first of them.
    read: VecDeque<Frame>,
    buffer: VecDeque<Frame>,
    /// Sessions that were caught up and not yet reported as such.
    level: Vec<(SessionId<'static>, u64)>,
    /// The ring may have advanced while the log was read.
    was_behind: bool,
    is_detached: bool,
}

impl FollowAll {
    pub(crate) async fn new(
        shared: &Arc<Shared>,
        style: Style,
        after: HashMap<SessionId<'static>, u64>,
        since: Option<Timestamp>,
    ) -> Result<Self> {
        let firehose = shared.firehose(style);
        let mut all = Self {
            shared: Arc::clone(shared),
            news: firehose.ring.subscribe(),
            place: firehose.ring.end(),
            firehose,
            seen: after,
            since: since.unwrap_or_else(now),
            behind: VecDeque::new(),
            read: VecDeque::new(),
            buffer: VecDeque::new(),
            level: Vec::new(),
            was_behind: false,
            is_detached: false,
        };
        // After the place in the ring was taken: an event in between is in one of the two, or in
        // both, and `seen` drops the second.
        all.scan().await?;
        Ok(all)
    }

    pub(crate) async fn next(&mut self) -> Result<Followed> {
        loop {
            if let Some(frame) = self.read.pop_front() {
                return Ok(Followed::Delivered(self.deliver(frame)));
            }
            if let Some(followed) = self.catch_up().await? {
                return Ok(followed);
            }
            if !self.read.is_empty() || !self.behind.is_empty() {
                continue;
            }
            if let Some((session, cursor)) = self.level.pop() {
                let session = Arc::new(session);
                return Ok(Followed::CaughtUp { session, cursor });
            }
            if self.is_detached {
                return Ok(Followed::Detached(self.detached()));
            }
            if !self.buffer.is_empty() {
                if let Some(frame) = self.pop().await? {
                    return Ok(Followed::Delivered(self.deliver(frame)));
                }
                continue;
            }
            match self.firehose.ring.poll(&mut self.place, &mut self.buffer) {
                Poll::Ready => self.was_behind = false,
                // Sessions join and leave this ring; the ring itself stays open.
                Poll::Empty | Poll::Removed => {
                    self.was_behind = false;
                    self.news.changed().await.map_err(|_| Error::Stopped)?;
                }
                Poll::Overrun if self.was_behind => {
                    // It read the log meanwhile, not the ring: it is not slow, and looks again.
                    self.place = self.firehose.ring.end();
                    self.scan().await?;
                }
                Poll::Overrun => self.is_detached = true,
            }
        }
    }

    pub(crate) fn ready(&mut self) -> Option<Frame> {
        if !self.read.is_empty() {
            return self.read.pop_front().map(|it| self.deliver(it));
        }
        if !self.behind.is_empty() {
            return None;
        }
        if self.buffer.is_empty() {
            let taken = self.firehose.ring.poll(&mut self.place, &mut self.buffer);
            // The next task will report the error.
            if taken != Poll::Ready {
                return None;
            }
        }
        while let Some(frame) = self.buffer.front() {
            // A session without a cursor has to be looked up, which only `next` can wait for.
            let seen = self.seen.get_mut(&*frame.session)?;
            if frame.after > *seen {
                return None;
            }
            let is_new = frame.seq > *seen;
            *seen = frame.seq.max(*seen);
            let frame = self.buffer.pop_front();
            if is_new {
                return frame;
            }
        }
        None
    }

    /// The next frame, if its session is not behind it.
    async fn pop(&mut self) -> Result<Option<Frame>> {
        let Some(frame) = self.buffer.front() else {
            return Ok(None);
        };
        let seen = match self.seen.get(&*frame.session) {
            Some(seen) => *seen,
            None => begin(&*self.shared.config.journal, frame, self.since).await?,
        };
        if frame.after > seen {
            let session = Arc::clone(&frame.session);
            self.fall_behind(session, seen)?;
            return Ok(None);
        }
        // The log may have delivered it already.
        let is_new = frame.seq > seen;
        Ok(self.buffer.pop_front().filter(|_| is_new))
    }

    fn deliver(&mut self, frame: Frame) -> Frame {
        match self.seen.get_mut(&*frame.session) {
            Some(seen) => *seen = frame.seq,
            None => {
                self.seen.insert((*frame.session).clone(), frame.seq);
            }
        }
        frame
    }

    /// Reads some more of the first session that is behind.
    async fn catch_up(&mut self) -> Result<Option<Followed>> {
        let Some(render) = self.behind.front_mut() else {
            return Ok(None);
        };
        self.was_behind = true;
        let journal = &self.shared.config.journal;
        let is_end = match render.page(&**journal, &mut self.read).await {
            // It was removed, and the others are still there.
            Err(journal::Error::NoSession { .. }) => {
                self.behind.pop_front();
                return Ok(None);
            }
            page => page?,
        };
        // What was read is delivered before the session counts as caught up.
        if !is_end || !self.read.is_empty() {
            return Ok(None);
        }
        let (session, cursor) = (Arc::clone(render.session()), render.at);
        self.behind.pop_front();
        self.seen.insert((*session).clone(), cursor);
        Ok(Some(Followed::CaughtUp { session, cursor }))
    }

    fn fall_behind(&mut self, session: Arc<SessionId<'static>>, seen: u64) -> Result<()> {
        let render = Render::new(session, &self.firehose.style, seen);
        self.behind.push_back(render.map_err(Error::Format)?);
        Ok(())
    }

    /// Finds the sessions with events that this follower has missed.
    async fn scan(&mut self) -> Result<()> {
        let journal = Arc::clone(&self.shared.config.journal);
        for session in created_since(&*journal, self.since).await? {
            self.seen.entry(session).or_insert(0);
        }
        for (id, seen) in self.seen.clone() {
            let found = journal.find_session(&id).await?;
            match found {
                Some(it) if it.head > seen => self.fall_behind(Arc::new(id), seen)?,
                Some(_) => self.level.push((id, seen)),
                None => (),
            }
        }
        Ok(())
    }

    fn detached(&self) -> Detached {
        Detached {
            cursors: self.seen.clone(),
            since: Some(self.since),
        }
    }
}

/// The cursor for a session first seen with this frame: zero for a new one, otherwise the event
/// before.
async fn begin(journal: &dyn Journal, frame: &Frame, since: Timestamp) -> journal::Result<u64> {
    let found = journal.find_session(&frame.session).await?;
    let is_new = found.is_some_and(|it| it.created_at >= since);
    Ok(if is_new { 0 } else { frame.after })
}

/// The sessions that were made at that time or later.
async fn created_since(
    journal: &dyn Journal,
    since: Timestamp,
) -> journal::Result<Vec<SessionId<'static>>> {
    let mut made = Vec::new();
    let mut after = None;
    loop {
        let page = journal.list(SessionQuery::default(), after, PAGE).await?;
        // Every session created since then was active since then.
        let is_last = page.sessions.last().is_none_or(|it| it.active_at < since);
        let new = page
            .sessions
            .into_iter()
            .filter(|it| it.created_at >= since);
        made.extend(new.map(|it| it.id));
        after = page.next;
        if is_last || after.is_none() {
            return Ok(made);
        }
    }
}

#[cfg(test)]
mod tests;
