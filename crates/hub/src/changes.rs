//! Which sessions are new or have changed, for lists that stay live without asking again and again.
//!
//! Only some sessions are kept in mind: those at work, and those that were active last. Of all others it is
//! known that nothing has happened in them since the last look, because the journal counts what happens
//! (`Session::activity`) and the highest count of that look is kept.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use journal::{Journal, Scope, Session, SessionQuery, State};
use model::SessionId;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, sleep_until};

use crate::firehose::Firehose;
use crate::shared::Shared;

/// Changes that may wait for one listener; who is later than that asks for the whole list again.
const MAX_CHANGES: usize = 256;
/// Changes this close together are told as one.
const PAUSE: Duration = Duration::from_millis(20);
/// From one look at all sessions to the next. Most of what changes here is heard of at once; the journal
/// also knows what other programs do, but hints at it with every event of every run.
const LOOK: Duration = Duration::from_millis(200);
/// Sessions looked at when some session has changed and nobody knows which: those with the newest
/// activity, besides those with an open run.
const NEWEST: u32 = 32;
/// Sessions read at once where more than those have changed.
const PAGE: u32 = 100;
/// Runs of one session that may pass unseen between two looks.
const MAX_UNSEEN: u32 = 1000;
/// Sessions without work that are kept in mind.
const MAX_KNOWN: usize = 256;

/// A session is new, or its state, title, queue or name has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChanged {
    pub session: Session,
}

/// A subscription to changes.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Option<Arc<SessionChanged>>>);

impl Changes {
    /// The next change; none when the list has to be read again: so many were missed, or sessions
    /// are gone.
    /// Waits for ever when the hub is gone.
    pub async fn next(&mut self) -> Option<Arc<SessionChanged>> {
        match self.0.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// What is known of sessions, as far as lists show it.
pub(crate) struct Directory {
    changes: broadcast::Sender<Option<Arc<SessionChanged>>>,
    touched: Mutex<HashSet<SessionId<'static>>>,
    news: Notify,
    known: Mutex<HashMap<SessionId<'static>, KnownSession>>,
    /// Of sessions that are not known, whatever was active up to here was told.
    mark: AtomicU64,
    firehose: Mutex<Vec<std::sync::Weak<Firehose>>>,
}

#[derive(Clone, Debug)]
struct KnownSession {
    /// As it was told last, or found when the hub was opened.
    change: Arc<SessionChanged>,
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
        self.touched().insert(session.clone());
        self.news.notify_one();
    }

    /// A session is not there any more.
    pub(crate) fn forget(&self, session: &SessionId<'static>) {
        self.known().remove(session);
        // Nobody may be listening.
        self.changes.send(None).ok();
    }

    /// Takes down where the sessions stand.
    pub(crate) async fn fill(&self, journal: &dyn Journal) -> journal::Result<()> {
        let newest = journal.list(SessionQuery::default(), None, NEWEST).await?;
        let mark = newest.sessions.first().map_or(0, |it| it.activity);
        let mut sessions = newest.sessions;
        let mut busy: HashSet<_> = journal.pending().await?.into_iter().collect();
        let open = journal.open_runs().await?;
        busy.extend(open.into_iter().map(|it| it.run.session));
        for id in busy {
            sessions.extend(journal.find_session(&id).await?);
        }
        for session in sessions {
            self.remember(Arc::new(SessionChanged { session }));
        }
        self.mark.store(mark, Ordering::Relaxed);
        Ok(())
    }

    fn remember(&self, change: Arc<SessionChanged>) {
        let mut known = self.known();
        known.insert(change.session.id.clone(), KnownSession { change });
        if known.len() > 2 * MAX_KNOWN {
            self.evict(&mut known);
        }
    }

    /// Forgets those that have done nothing for the longest. What is forgotten has to lie behind the mark.
    fn evict(&self, known: &mut HashMap<SessionId<'static>, KnownSession>) {
        let mark = self.mark.load(Ordering::Relaxed);
        let is_idle = |it: &KnownSession| {
            let session = &it.change.session;
            session.state == State::Idle && session.queued == 0 && session.activity <= mark
        };
        let idle = known.values().filter(|it| is_idle(it));
        let mut idle: Vec<u64> = idle.map(|it| it.change.session.activity).collect();
        idle.sort_unstable();
        let Some(n_gone) = idle.len().checked_sub(MAX_KNOWN).filter(|it| *it > 0) else {
            return;
        };
        let newest_gone = idle[n_gone - 1];
        known.retain(|_, it| !is_idle(it) || it.change.session.activity > newest_gone);
    }

    /// What a session was when it was looked at last: for one that is not kept in mind, as far as its
    /// events tell.
    async fn before(
        &self,
        journal: &dyn Journal,
        session: &Session,
    ) -> journal::Result<(Option<Arc<SessionChanged>>, u64)> {
        let known = self.known().get(&session.id).cloned();
        if let Some(KnownSession { change }) = known {
            let head = change.session.head;
            return Ok((Some(change), head));
        }
        let mark = self.mark.load(Ordering::Relaxed);
        if session.activity <= mark {
            let change = SessionChanged {
                session: session.clone(),
            };
            return Ok((Some(Arc::new(change)), session.head));
        }
        let runs = journal.runs(&session.id, None, MAX_UNSEEN).await?;
        let first_unseen = runs.iter().take_while(|it| it.activity > mark).last();
        let is_new = runs.iter().all(|it| it.activity > mark) && runs.len() < MAX_UNSEEN as usize;
        Ok(match (is_new, first_unseen) {
            (true, _) => (None, 0),
            (false, Some(run)) => (None, run.first - 1),
            (false, None) => (None, session.head),
        })
    }

    /// Forgets the sessions that are gone, and says that some are.
    pub(crate) async fn forget_gone(&self, journal: &dyn Journal) -> journal::Result<()> {
        let known: Vec<_> = self.known().keys().cloned().collect();
        for session in known {
            if journal.find_session(&session).await?.is_none() {
                self.known().remove(&session);
            }
        }
        // Nobody may be listening.
        self.changes.send(None).ok();
        Ok(())
    }

    /// From now on `firehose` hears which sessions go on, and from where.
    pub(crate) fn register(&self, firehose: &Arc<Firehose>) {
        let mut all = self.firehose();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(firehose));
    }

    /// Whether a session is as it was when it was looked at last.
    fn is_known(&self, session: &Session) -> bool {
        match self.known().get(&session.id) {
            Some(KnownSession { change }) => change.session == *session,
            None => session.activity <= self.mark.load(Ordering::Relaxed),
        }
    }

    /// The sessions that had prompts waiting.
    fn with_queue(&self) -> Vec<SessionId<'static>> {
        let known = self.known();
        let waiting = known.iter().filter(|it| it.1.change.session.queued > 0);
        waiting.map(|it| it.0.clone()).collect()
    }

    /// The last event of a session when it was looked at last, if that is kept in mind.
    pub(crate) fn head(&self, session: &SessionId<'static>) -> Option<u64> {
        let known = self.known();
        known.get(session).map(|it| it.change.session.head)
    }

    /// How many sessions are kept in mind.
    #[cfg(test)]
    pub(crate) fn n_known(&self) -> usize {
        self.known().len()
    }

    fn all(&self) -> Vec<Arc<Firehose>> {
        let all = self.firehose();
        all.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    fn touched(&self) -> MutexGuard<'_, HashSet<SessionId<'static>>> {
        self.touched.lock().expect("nobody panics while holding it")
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId<'static>, KnownSession>> {
        self.known.lock().expect("nobody panics while holding it")
    }

    fn firehose(&self) -> MutexGuard<'_, Vec<std::sync::Weak<Firehose>>> {
        self.firehose
            .lock()
            .expect("nobody panics while holding it")
    }
}

/// Looks again whenever something has changed.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut hints = shared.config.journal.watch(Scope::All);
    let mut next = Instant::now();
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
                refresh_all(&shared).await
            }
        };
        // What cannot be read now is read with the next change.
        if let Err(err) = looked {
            shared.report_trouble(&err);
        }
        sleep(PAUSE).await;
    }
}

async fn refresh_touched(shared: &Arc<Shared>) -> journal::Result<()> {
    let ids = std::mem::take(&mut *shared.directory.touched());
    refresh(shared, ids).await
}

async fn refresh_all(shared: &Arc<Shared>) -> journal::Result<()> {
    let directory = &shared.directory;
    let journal = &shared.config.journal;
    let mut ids = std::mem::take(&mut *directory.touched());
    ids.extend(journal.pending().await?);
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
    directory.mark.store(newest, Ordering::Relaxed);
    let open = journal.open_runs().await?;
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
    let now = Arc::new(SessionChanged { session });
    directory.remember(Arc::clone(&now));
    if before.is_none_or(|it| !is_same(&it, &now)) {
        // Nobody may be listening.
        directory.changes.send(Some(Arc::clone(&now))).ok();
    }
    // Whoever hears of its events has been told that it is there.
    if now.session.head > head {
        for firehose in directory.all() {
            firehose.resume(shared, &now.session, head);
        }
    }
    Ok(())
}

/// Whether a list would show them alike. The number of events changes too often to be told.
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
