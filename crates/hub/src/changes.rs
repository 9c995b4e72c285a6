//! Which sessions are new or have changed, for lists that stay live without asking again and again.
//!
//! Only some sessions are cached: those with work and those active most recently. All others are
//! known to be unchanged since the last scan, because the journal counts activity
//! (`Session::activity`) and the highest count of that scan is kept.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use journal::{Journal, Scope, Session, SessionQuery, State};
use model::SessionId;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, sleep_until};

use crate::firehose::Firehose;
use crate::lock::lock;
use crate::ring::EncodedOnce;
use crate::session_task::until;
use crate::shared::Shared;

/// Capacity of a listener's queue; a listener that falls behind further reads the whole list again.
const MAX_CHANGES: usize = 256;
/// Changes this close together are reported as one.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval between scans of all sessions. Local changes are noticed at once; the journal also
/// reports those of other processes, but hints at every event of every run.
const LOOK: Duration = Duration::from_millis(200);
/// From a hint to the look for sessions that were removed, which reads all that are cached.
const LOOK_FOR_GONE: Duration = Duration::from_secs(1);
/// Sessions scanned when it is unknown which one has changed: those with the newest activity,
/// besides those with an open run.
const NEWEST: u32 = 32;
/// Sessions read at once where more than those have changed.
const PAGE: u32 = 100;
/// Runs of one session that may pass unseen between two looks.
const MAX_UNSEEN: u32 = 1000;
/// Cache size for sessions without work.
const MAX_KNOWN: usize = 256;

/// A session is new, or its state, title, queue or name has changed.
#[derive(Debug)]
pub struct SessionChanged {
    pub session: Session,
    pub made: EncodedOnce,
}

impl SessionChanged {
    fn new(session: Session) -> Self {
        let made = EncodedOnce::default();
        Self { session, made }
    }
}

/// A subscription to changes.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Option<Arc<SessionChanged>>>);

impl Changes {
    /// The next change; `None` when the list has to be read again because changes were missed or
    /// sessions were removed. Never resolves once the hub is dropped.
    pub async fn next(&mut self) -> Option<Arc<SessionChanged>> {
        match self.0.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The cached state of sessions, as far as lists show it.
pub(crate) struct Directory {
    changes: broadcast::Sender<Option<Arc<SessionChanged>>>,
    touched: Mutex<HashSet<SessionId<'static>>>,
    news: Notify,
    /// The last reported state, or the one found when the hub was opened.
    known: Mutex<HashMap<SessionId<'static>, Arc<SessionChanged>>>,
    /// Activity up to this count has been reported for sessions outside the cache.
    mark: AtomicU64,
    firehose: Mutex<Vec<Weak<Firehose>>>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(MAX_CHANGES),
            touched: Mutex::default(),
            news: Notify::new(),
            known: Mutex::default(),
            mark: AtomicU64::new(0),
            firehose: Mutex::default(),
        }
    }
}

impl Directory {
    pub(crate) fn subscribe(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    pub(crate) fn touch(&self, session: &SessionId<'static>) {
        lock(&self.touched).insert(session.clone());
        self.news.notify_one();
    }

    /// These sessions were removed, and perhaps others that are not cached.
    pub(crate) fn forget(&self, sessions: &[SessionId<'static>]) {
        let mut known = lock(&self.known);
        known.retain(|id, _| !sessions.contains(id));
        drop(known);
        // There may be no listeners.
        self.changes.send(None).ok();
    }

    /// Fills the cache with the current state.
    pub(crate) async fn fill(&self, journal: &dyn Journal) -> journal::Result<()> {
        let newest = journal.list(SessionQuery::default(), None, NEWEST).await?;
        // The list begins with the newest activity: all of it is known by then.
        let mark = newest.sessions.first().map_or(0, |it| it.activity);
        let mut sessions = newest.sessions;
        // Sessions with work are cached however old their activity is: `evict` keeps them, too.
        let mut busy: HashSet<_> = journal.pending(None).await?.into_iter().collect();
        let open = journal.open_runs(None).await?;
        busy.extend(open.into_iter().map(|it| it.run.session));
        for id in busy {
            sessions.extend(journal.find_session(&id).await?);
        }
        for session in sessions {
            self.remember(Arc::new(SessionChanged::new(session)));
        }
        self.mark.store(mark, Ordering::Relaxed);
        Ok(())
    }

    fn remember(&self, change: Arc<SessionChanged>) {
        let mut known = lock(&self.known);
        known.insert(change.session.id.clone(), change);
        // Only at twice the size, so that one sort in `evict` serves many insertions.
        if known.len() > 2 * MAX_KNOWN {
            self.evict(&mut known);
        }
    }

    /// Evicts the sessions that were idle the longest; the activity mark must cover them.
    fn evict(&self, known: &mut HashMap<SessionId<'static>, Arc<SessionChanged>>) {
        let mark = self.mark.load(Ordering::Relaxed);
        let is_idle = |it: &SessionChanged| {
            let session = &it.session;
            session.state == State::Idle && session.queued == 0 && session.activity <= mark
        };
        let idle = known.values().filter(|it| is_idle(it));
        let mut idle: Vec<u64> = idle.map(|it| it.session.activity).collect();
        idle.sort_unstable();
        let kept = idle.split_last_chunk::<MAX_KNOWN>();
        let Some(newest_gone) = kept.and_then(|(gone, _)| gone.last()) else {
            return;
        };
        known.retain(|_, it| !is_idle(it) || it.session.activity > *newest_gone);
    }

    /// The last known state of a session; reconstructed from its events when it is not cached.
    async fn before(
        &self,
        journal: &dyn Journal,
        session: &Session,
    ) -> journal::Result<(Option<Arc<SessionChanged>>, u64)> {
        let known = lock(&self.known).get(&session.id).cloned();
        if let Some(change) = known {
            let head = change.session.head;
            return Ok((Some(change), head));
        }
        let mark = self.mark.load(Ordering::Relaxed);
        // Reported before it was evicted, or there when the hub was opened: nothing is new.
        if session.activity <= mark {
            let change = SessionChanged::new(session.clone());
            return Ok((Some(Arc::new(change)), session.head));
        }
        let runs = journal.runs(&session.id, None, MAX_UNSEEN).await?;
        let first_unseen = runs.iter().take_while(|it| it.activity > mark).last();
        // Behind a full page there may be runs that were reported.
        let is_new = runs.iter().all(|it| it.activity > mark) && runs.len() < MAX_UNSEEN as usize;
        Ok(match (is_new, first_unseen) {
            (true, _) => (None, 0),
            (false, Some(run)) => (None, run.first - 1),
            (false, None) => (None, session.head),
        })
    }

    /// The cached sessions that were removed, by whatever process.
    pub(crate) async fn find_gone(
        &self,
        journal: &dyn Journal,
    ) -> journal::Result<Vec<SessionId<'static>>> {
        let known: Vec<_> = lock(&self.known).values().cloned().collect();
        let oldest = known.iter().map(|it| it.session.activity).min();
        let mut missing: HashSet<_> = known.iter().map(|it| it.session.id.clone()).collect();
        let mut after = None;
        while !missing.is_empty() {
            let page = journal.list(SessionQuery::default(), after, PAGE).await?;
            for session in &page.sessions {
                missing.remove(&session.id);
            }
            let last = page.sessions.last().map(|it| it.activity);
            after = page.next;
            if last < oldest || after.is_none() {
                break;
            }
        }
        let mut gone = Vec::new();
        for session in missing {
            // A session that became active between two pages is on neither.
            if journal.find_session(&session).await?.is_none() {
                gone.push(session);
            }
        }
        Ok(gone)
    }

    /// From now on `firehose` is notified which sessions have new events, and from which cursor.
    pub(crate) fn register(&self, firehose: &Arc<Firehose>) {
        let mut all = lock(&self.firehose);
        // A firehose ends with its last follower and does not take itself out.
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(firehose));
    }

    /// Whether a session is as it was when it was looked at last.
    fn is_known(&self, session: &Session) -> bool {
        match lock(&self.known).get(&session.id) {
            Some(change) => change.session == *session,
            None => session.activity <= self.mark.load(Ordering::Relaxed),
        }
    }

    /// The sessions that had prompts waiting.
    fn with_queue(&self) -> Vec<SessionId<'static>> {
        let known = lock(&self.known);
        let waiting = known.iter().filter(|it| it.1.session.queued > 0);
        waiting.map(|it| it.0.clone()).collect()
    }

    /// The last known event of a session, if it is cached.
    pub(crate) fn head(&self, session: &SessionId<'static>) -> Option<u64> {
        let known = lock(&self.known);
        known.get(session).map(|it| it.session.head)
    }

    /// The number of cached sessions.
    #[cfg(test)]
    pub(crate) fn n_known(&self) -> usize {
        lock(&self.known).len()
    }

    fn all(&self) -> Vec<Arc<Firehose>> {
        let all = lock(&self.firehose);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Looks again whenever something has changed.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut hints = shared.config.journal.watch(Scope::All);
    let mut next = Instant::now();
    // When removed sessions are looked for; none while nothing has changed.
    let mut gone_at: Option<Instant> = None;
    loop {
        let hinted = async {
            sleep_until(next).await;
            hints.changed().await
        };
        let looked = tokio::select! {
            () = shared.directory.news.notified() => refresh_touched(&shared).await,
            is_open = hinted => {
                if !is_open {
                    return;
                }
                next = Instant::now() + LOOK;
                gone_at.get_or_insert(Instant::now() + LOOK_FOR_GONE);
                refresh_all(&shared).await
            }
            () = until(gone_at), if gone_at.is_some() => {
                gone_at = None;
                forget_gone(&shared).await
            }
        };
        // A failed read is retried with the next change.
        if let Err(err) = looked {
            shared.report_trouble(&err);
        }
        sleep(PAUSE).await;
    }
}

async fn forget_gone(shared: &Shared) -> journal::Result<()> {
    let gone = shared.directory.find_gone(&*shared.config.journal).await?;
    if !gone.is_empty() {
        shared.directory.forget(&gone);
    }
    Ok(())
}

async fn refresh_touched(shared: &Arc<Shared>) -> journal::Result<()> {
    let ids = std::mem::take(&mut *lock(&shared.directory.touched));
    refresh(shared, ids).await
}

async fn refresh_all(shared: &Arc<Shared>) -> journal::Result<()> {
    let directory = &shared.directory;
    let journal = &shared.config.journal;
    let mut ids = std::mem::take(&mut *lock(&directory.touched));
    ids.extend(journal.pending(None).await?);
    // Where another process took the last prompt, `pending` no longer names the session.
    ids.extend(directory.with_queue());
    let mark = directory.mark.load(Ordering::Relaxed);
    let (mut after, mut limit, mut newest) = (None, NEWEST, mark);
    loop {
        let page = journal.list(SessionQuery::default(), after, limit).await?;
        let is_last = page.sessions.last().is_none_or(|it| it.activity <= mark);
        for session in page.sessions {
            newest = newest.max(session.activity);
            if ids.remove(&session.id) || !directory.is_known(&session) {
                changed(shared, session).await?;
            }
        }
        (after, limit) = (page.next, PAGE);
        if is_last || after.is_none() {
            break;
        }
    }
    // Only after the last page: if a read fails before, the next look has to find the rest.
    directory.mark.store(newest, Ordering::Relaxed);
    let open = journal.open_runs(None).await?;
    ids.extend(open.into_iter().map(|it| it.run.session));
    refresh(shared, ids).await
}

async fn refresh(shared: &Arc<Shared>, ids: HashSet<SessionId<'static>>) -> journal::Result<()> {
    for id in ids {
        if let Some(session) = shared.config.journal.find_session(&id).await? {
            changed(shared, session).await?;
        }
    }
    Ok(())
}

async fn changed(shared: &Arc<Shared>, session: Session) -> journal::Result<()> {
    let directory = &shared.directory;
    let (before, head) = directory.before(&*shared.config.journal, &session).await?;
    let now = Arc::new(SessionChanged::new(session));
    directory.remember(Arc::clone(&now));
    if before.is_none_or(|it| !is_same(&it, &now)) {
        // There may be no listeners.
        directory.changes.send(Some(Arc::clone(&now))).ok();
    }
    // Report the session before its first events.
    if now.session.head > head {
        for firehose in directory.all() {
            firehose.resume(shared, &now.session, head);
        }
    }
    Ok(())
}

/// Whether a list would show them alike; the number of events changes too often to be reported.
fn is_same(a: &SessionChanged, b: &SessionChanged) -> bool {
    let (of_a, of_b) = (&a.session, &b.session);
    of_a.queued == of_b.queued
        && of_a.state == of_b.state
        && of_a.title == of_b.title
        && of_a.native == of_b.native
        && of_a.cwd == of_b.cwd
        && of_a.active_at == of_b.active_at
}

#[cfg(test)]
mod tests;
