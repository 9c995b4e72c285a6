//! State shared by the workers of a hub.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use journal::{Lease, Owner};
use model::SessionId;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{error, info};

use crate::acceptor::Due;
use crate::changes::Directory;
use crate::channel::Channels;
use crate::config::HubConfig;
use crate::counts::RunCounts;
use crate::firehose::Firehose;
use crate::lock::lock;
use crate::recovery;
use crate::render::Style;
use crate::session_task;
use crate::worker;

/// The published state of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerStatus {
    /// The prompt of the current run.
    pub(crate) current: Option<u64>,
    pub(crate) takes_changes: bool,
    /// Unanswered asks, by the numbers of their events.
    pub(crate) asks: Vec<u64>,
}

/// The handle of a worker task.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) task: JoinHandle<()>,
    /// Aborts the run when the journal is unavailable.
    pub(crate) abort: Arc<Notify>,
}

pub(crate) struct Shared {
    pub(crate) config: HubConfig,
    pub(crate) owner: Owner,
    pub(crate) stop: watch::Sender<bool>,
    /// One permit for each agent that may be kept warm.
    pub(crate) warm: Arc<Semaphore>,
    pub(crate) directory: Directory,
    pub(crate) channels: Channels,
    firehose: Mutex<HashMap<Style, Weak<Firehose>>>,
    pub(crate) session_tasks: Mutex<HashMap<SessionId<'static>, WorkerHandle>>,
    status: Mutex<HashMap<SessionId<'static>, WorkerStatus>>,
    pub(crate) replies: Mutex<HashMap<(SessionId<'static>, u64), oneshot::Sender<bool>>>,
    trouble: watch::Sender<Option<String>>,
    pub(crate) counts: Arc<RunCounts>,
}

impl Shared {
    pub(crate) fn new(config: HubConfig) -> Self {
        Self {
            owner: Owner::new(config.owner.clone()),
            stop: watch::Sender::new(false),
            warm: Arc::new(Semaphore::new(config.limits.max_warm)),
            directory: Directory::default(),
            channels: Channels::default(),
            firehose: Mutex::default(),
            session_tasks: Mutex::default(),
            status: Mutex::default(),
            replies: Mutex::default(),
            trouble: watch::Sender::new(None),
            counts: Arc::default(),
            config,
        }
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        // Shows a deleted store before the next append fails at it.
        let gone = self.config.journal.check().err();
        let gone = gone.map(|it| it.to_string());
        gone.or_else(|| self.trouble.borrow().clone())
    }

    /// Starts a worker for the session unless it has one.
    pub(crate) fn wake_worker(self: &Arc<Self>, session: &SessionId<'static>) {
        // Held until the new task is in the map: the task takes itself out when it ends.
        let mut session_tasks = lock(&self.session_tasks);
        // A task that panicked has not taken itself out.
        let is_there = session_tasks
            .get(session)
            .is_some_and(|it| !it.task.is_finished());
        if *self.stop.borrow() || is_there {
            return;
        }
        let abort = Arc::new(Notify::new());
        let abort_signal = Arc::clone(&abort);
        let shared = Arc::clone(self);
        let id = session.clone();
        let session_task = async move {
            session_task::run(Arc::clone(&shared), id.clone(), abort_signal).await;
            lock(&shared.session_tasks).remove(&id);
            lock(&shared.status).remove(&id);
            shared.touch(&id);
            // A command enqueued between the check and here assumed the worker was alive; re-check.
            if matches!(shared.due(&id).await, Ok(Due::Now | Due::Later)) {
                shared.wake_worker(&id);
            }
        };
        let task = tokio::spawn(session_task);
        session_tasks.insert(session.clone(), WorkerHandle { task, abort });
    }

    /// Starts workers for sessions with pending work of this hub. Prompts accepted by other hubs
    /// are theirs as long as they live.
    pub(crate) async fn wake_pending(self: &Arc<Self>) -> journal::Result<()> {
        for session in self.config.journal.pending(None).await? {
            // A failed read is retried the next time.
            let is_pending = self.is_pending(&session).await.unwrap_or(false);
            if is_pending && !self.is_ours(&session) {
                self.wake_worker(&session);
            }
        }
        Ok(())
    }

    /// All sessions in a format.
    pub(crate) fn firehose(&self, style: Style) -> Arc<Firehose> {
        let mut all = lock(&self.firehose);
        if let Some(firehose) = all.get(&style).and_then(Weak::upgrade) {
            return firehose;
        }
        all.retain(|_, it| it.strong_count() > 0);
        let firehose = Arc::new(Firehose::new(style.clone()));
        all.insert(style, Arc::downgrade(&firehose));
        self.directory.register(&firehose);
        firehose
    }

    /// Closes the runs of dead owners as lost.
    pub(crate) async fn recover_lost_runs(&self) -> journal::Result<()> {
        let (journal, ttl) = (&*self.config.journal, self.config.limits.lease);
        let closed = recovery::close_all(journal, &self.owner, ttl, |it| self.is_ours(it)).await?;
        for session in &closed {
            self.touch(session);
        }
        Ok(())
    }

    /// Acquires a session whose owner has released it or is dead.
    pub(crate) async fn acquire(&self, session: &SessionId<'static>) -> journal::Result<Lease> {
        let ttl = self.config.limits.lease;
        worker::acquire(&*self.config.journal, session, &self.owner, ttl).await
    }

    /// Aborts the run of a local worker without the journal.
    pub(crate) fn abort_local(&self, session: &SessionId<'static>) -> bool {
        let is_at_work = self.status(session).current.is_some();
        let session_tasks = lock(&self.session_tasks);
        let session_task = session_tasks.get(session).filter(|_| is_at_work);
        session_task.map(|it| it.abort.notify_one()).is_some()
    }

    fn is_ours(&self, session: &SessionId<'_>) -> bool {
        lock(&self.session_tasks).contains_key(&session.clone().into_owned())
    }

    pub(crate) fn touch(&self, session: &SessionId<'static>) {
        self.directory.touch(session);
    }

    /// The journal can be written.
    pub(crate) fn clear_trouble(&self) {
        if self.trouble.send_if_modified(|it| it.take().is_some()) {
            info!("journal usable again");
        }
    }

    pub(crate) fn report_trouble(&self, err: &journal::Error) {
        if let journal::Error::Storage(fault) = err {
            let fault = fault.to_string();
            // Every retry reports the same fault; one line is enough.
            if self.trouble.borrow().as_ref() != Some(&fault) {
                error!(fault, "journal cannot be used");
            }
            self.trouble.send_replace(Some(fault));
        }
    }

    pub(crate) fn status(&self, session: &SessionId<'_>) -> WorkerStatus {
        let status = lock(&self.status)
            .get(&session.clone().into_owned())
            .cloned();
        status.unwrap_or_default()
    }

    pub(crate) fn at_work(&self) -> Vec<SessionId<'static>> {
        let status = lock(&self.status);
        let at_work = status.iter().filter(|it| it.1.current.is_some());
        at_work.map(|it| it.0.clone()).collect()
    }

    pub(crate) fn set_status(&self, session: &SessionId<'static>, status: WorkerStatus) {
        // Every round of a session task comes here; only a change is worth a look at the list.
        let is_new = lock(&self.status).get(session) != Some(&status);
        if is_new {
            lock(&self.status).insert(session.clone(), status);
            self.touch(session);
        }
    }

    pub(crate) fn expect_reply(
        &self,
        session: &SessionId<'static>,
        number: u64,
    ) -> oneshot::Receiver<bool> {
        let (tx, rx) = oneshot::channel();
        lock(&self.replies).insert((session.clone(), number), tx);
        rx
    }

    pub(crate) fn reply(&self, session: &SessionId<'static>, number: u64, is_done: bool) {
        let reply = lock(&self.replies).remove(&(session.clone(), number));
        if let Some(reply) = reply {
            // The caller may have stopped waiting.
            reply.send(is_done).ok();
        }
    }
}

/// Interval between checks for dead owners.
const SWEEP: Duration = Duration::from_secs(2);

/// Recovers the runs and prompts of owners that die while this hub runs.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    loop {
        sleep(SWEEP.min(shared.config.limits.lease)).await;
        if let Err(err) = shared.recover_lost_runs().await {
            shared.report_trouble(&err);
        }
        // A failed read is retried the next time.
        shared.wake_pending().await.ok();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
