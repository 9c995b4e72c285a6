//! Which sessions are new or have changed, for lists that stay live without asking again and again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use journal::{Journal, Scope, Session, SessionQuery};
use model::SessionId;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep, sleep_until};

use crate::everything::Everything;
use crate::hub::queued;
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
/// Sessions read at once.
const PAGE: u32 = 500;

/// A session is new, or its state, title, queue or name has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChanged {
    pub session: Session,
    /// How many prompts wait.
    pub queue: usize,
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

/// What is known of all sessions, as far as lists show it.
pub(crate) struct Directory {
    changes: broadcast::Sender<Option<Arc<SessionChanged>>>,
    touched: Mutex<HashSet<SessionId<'static>>>,
    news: Notify,
    known: Mutex<HashMap<SessionId<'static>, Known>>,
    everything: Mutex<Vec<std::sync::Weak<Everything>>>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    head: u64,
    /// As it was told last.
    told: Option<Arc<SessionChanged>>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(MAX_CHANGES),
            touched: Mutex::default(),
            news: Notify::new(),
            known: Mutex::default(),
            everything: Mutex::default(),
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

    /// Takes down where every session stands.
    pub(crate) async fn fill(&self, journal: &dyn Journal) -> journal::Result<()> {
        let mut after = None;
        loop {
            let page = journal.list(SessionQuery::default(), after, PAGE).await?;
            for session in page.sessions {
                let head = session.head;
                let known = Known { head, told: None };
                self.known().insert(session.id, known);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
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

    /// From now on `everything` hears which sessions go on, and from where.
    pub(crate) fn register(&self, everything: &Arc<Everything>) {
        let mut all = self.everything();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(everything));
    }

    /// Whether a session is as it was when it was looked at last.
    fn is_known(&self, session: &Session) -> bool {
        let known = self.known();
        match known.get(&session.id) {
            Some(Known {
                told: Some(told), ..
            }) => told.session == *session,
            Some(Known { head, told: None }) => *head == session.head,
            None => false,
        }
    }

    /// The sessions that had prompts waiting.
    fn with_queue(&self) -> Vec<SessionId<'static>> {
        let has_queue = |it: &Known| it.told.as_ref().is_some_and(|it| it.queue > 0);
        let known = self.known();
        let waiting = known.iter().filter(|it| has_queue(it.1));
        waiting.map(|it| it.0.clone()).collect()
    }

    fn all(&self) -> Vec<Arc<Everything>> {
        let all = self.everything();
        all.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    fn touched(&self) -> MutexGuard<'_, HashSet<SessionId<'static>>> {
        self.touched.lock().expect("nobody panics while holding it")
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId<'static>, Known>> {
        self.known.lock().expect("nobody panics while holding it")
    }

    fn everything(&self) -> MutexGuard<'_, Vec<std::sync::Weak<Everything>>> {
        self.everything
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
            () = shared.directory.news.notified() => look_at_touched(&shared).await,
            is_open = hinted => {
                if !is_open {
                    return;
                }
                next = Instant::now() + LOOK;
                look_at_all(&shared).await
            }
        };
        // What cannot be read now is read with the next change.
        if let Err(err) = looked {
            shared.in_trouble(&err);
        }
        sleep(PAUSE).await;
    }
}

async fn look_at_touched(shared: &Arc<Shared>) -> journal::Result<()> {
    let ids = std::mem::take(&mut *shared.directory.touched());
    look_at(shared, ids).await
}

async fn look_at_all(shared: &Arc<Shared>) -> journal::Result<()> {
    let directory = &shared.directory;
    let journal = &shared.config.journal;
    let mut ids = std::mem::take(&mut *directory.touched());
    ids.extend(journal.pending().await?);
    ids.extend(directory.with_queue());
    let newest = journal.list(SessionQuery::default(), None, NEWEST).await?;
    for session in newest.sessions {
        if ids.remove(&session.id) || !directory.is_known(&session) {
            changed(shared, session).await?;
        }
    }
    let open = journal.open_runs().await?;
    ids.extend(open.into_iter().map(|it| it.run.session));
    look_at(shared, ids).await
}

async fn look_at(shared: &Arc<Shared>, ids: HashSet<SessionId<'static>>) -> journal::Result<()> {
    for id in ids {
        if let Some(session) = shared.config.journal.find_session(&id).await? {
            changed(shared, session).await?;
        }
    }
    Ok(())
}

async fn changed(shared: &Arc<Shared>, session: Session) -> journal::Result<()> {
    let directory = &shared.directory;
    let before = directory.known().get(&session.id).cloned();
    let head = before.as_ref().map_or(0, |it| it.head);
    let status = shared.status(&session.id);
    let commands = shared.config.journal.commands(&session.id, 0).await?;
    let waiting = commands.into_iter().filter_map(queued);
    let waiting = waiting.filter(|it| Some(it.number) != status.current);
    let now = Arc::new(SessionChanged {
        queue: waiting.count(),
        session,
    });
    let is_news = match before {
        Some(Known {
            told: Some(told), ..
        }) => !is_same(&told, &now),
        // It was there when the hub was opened.
        Some(Known { head, told: None }) => head != now.session.head || now.queue > 0,
        None => true,
    };
    let known = Known {
        head: now.session.head,
        told: Some(Arc::clone(&now)),
    };
    directory.known().insert(now.session.id.clone(), known);
    if is_news {
        // Nobody may be listening.
        directory.changes.send(Some(Arc::clone(&now))).ok();
    }
    // Whoever hears of its events has been told that it is there.
    if now.session.head > head {
        for everything in directory.all() {
            everything.goes_on(shared, &now.session, head);
        }
    }
    Ok(())
}

/// Whether a list would show them alike. The number of events changes too often to be told.
fn is_same(a: &SessionChanged, b: &SessionChanged) -> bool {
    let SessionChanged {
        session: of_a,
        queue,
    } = a;
    let of_b = &b.session;
    *queue == b.queue
        && of_a.state == of_b.state
        && of_a.title == of_b.title
        && of_a.native == of_b.native
        && of_a.cwd == of_b.cwd
        && of_a.active_at == of_b.active_at
}
