//! The handle: what can be asked of a hub, and what its desks share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use journal::{Command, Journal, NewSession, Order, Owner, Session, State};
use model::{SessionId, Timestamp};
use runner::{Answer, NotSettled, engines, process};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::catch_up::Style;
use crate::changes::{Changes, Directory};
use crate::channel::Channels;
use crate::config::{HubConfig, is_dead};
use crate::desk;
use crate::error::{Error, Result};
use crate::everything::Everything;
use crate::follow::{Follow, Follower};
use crate::order::{Abort, Prompt, Settings, Submit, Target, Told, bytes};
use crate::{lost, setup};

/// What a graceful stop may take before it becomes a hard one.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// For how long the owner of a session may think about an abort before nobody waits for it any more.
const REPLY_LIMIT: Duration = Duration::from_secs(5);
/// The longest title that is made of a prompt, in characters.
const MAX_TITLE: usize = 80;

/// Runs sessions, and shows them. Dropping it ends everything at once, as a crash would: see [`Hub::stop`].
pub struct Hub {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

/// A prompt that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub session: SessionId<'static>,
    /// Its number in the session's queue, by which it can be taken back.
    pub number: u64,
    /// How many prompts of the session come before it; 0 runs now.
    pub position: usize,
}

/// A prompt that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    pub number: u64,
    pub at: Timestamp,
    pub prompt: String,
}

/// What a desk lets others know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The prompt that is worked on.
    pub(crate) current: Option<u64>,
    pub(crate) takes_changes: bool,
}

pub(crate) struct Shared {
    pub(crate) config: HubConfig,
    pub(crate) owner: Owner,
    pub(crate) stop: watch::Sender<bool>,
    /// One for each agent that may stay without work.
    pub(crate) warm: Arc<Semaphore>,
    pub(crate) directory: Directory,
    pub(crate) channels: Channels,
    everything: Mutex<HashMap<Style, Weak<Everything>>>,
    desks: Mutex<HashMap<SessionId<'static>, JoinHandle<()>>>,
    status: Mutex<HashMap<SessionId<'static>, Status>>,
    replies: Mutex<HashMap<(SessionId<'static>, u64), oneshot::Sender<bool>>>,
    trouble: watch::Sender<Option<String>>,
}

impl Hub {
    /// Opens a hub: ends the agents of dead programs, closes their runs as lost, and goes on with the
    /// prompts that wait.
    pub async fn open(config: HubConfig) -> Result<Self> {
        tokio::task::spawn_blocking(process::end_orphans).await.ok();
        let shared = Arc::new(Shared {
            owner: Owner::new(config.owner.clone()),
            stop: watch::Sender::new(false),
            warm: Arc::new(Semaphore::new(config.limits.max_warm)),
            directory: Directory::default(),
            channels: Channels::default(),
            everything: Mutex::default(),
            desks: Mutex::default(),
            status: Mutex::default(),
            replies: Mutex::default(),
            trouble: watch::Sender::new(None),
            config,
        });
        shared.close_lost().await?;
        shared.directory.fill(&*shared.config.journal).await?;
        for session in shared.config.journal.pending().await? {
            shared.see_to(&session);
        }
        let tasks = vec![
            tokio::spawn(crate::changes::watch(Arc::clone(&shared))),
            tokio::spawn(sweep(Arc::clone(&shared))),
        ];
        Ok(Self { shared, tasks })
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.shared.config.journal
    }

    /// A session by our id or by the agent's.
    pub async fn find(&self, id: &str) -> Result<Session> {
        let id = SessionId::new(id);
        if let Some(session) = self.journal().find_session(&id).await? {
            return Ok(session);
        }
        let native = self.journal().find_native(&id).await?;
        native.ok_or_else(|| Error::NoSession(id.to_string()))
    }

    /// Puts a prompt into a session's queue; it is durable when this returns.
    pub async fn submit(&self, submit: Submit) -> Result<Submitted> {
        if *self.shared.stop.borrow() {
            return Err(Error::Stopped);
        }
        if submit.prompt.trim().is_empty() {
            return Err(Error::EmptyPrompt);
        }
        let (session, prompt) = self.place(&submit).await?;
        let order = Order::Prompt(bytes(&prompt));
        let number = self.journal().command(&session, order).await?;
        let waiting = self.waiting(&session).await?;
        let position = waiting.iter().filter(|it| it.number < number).count();
        self.shared.see_to(&session);
        self.shared.touch(&session);
        Ok(Submitted {
            session,
            number,
            position,
        })
    }

    /// The session that a prompt belongs to, made if need be, and the prompt as it waits there.
    async fn place(&self, submit: &Submit) -> Result<(SessionId<'static>, Prompt)> {
        let found = match &submit.target {
            Target::New => None,
            Target::Session(id) | Target::Fork(id) => match self.find(id).await {
                Err(Error::NoSession(_)) if matches!(submit.target, Target::Fork(_)) => None,
                found => Some(found?),
            },
            Target::Native(id) => self.journal().find_native(&SessionId::new(&**id)).await?,
        };
        let engine = match (&submit.engine, &found) {
            (Some(engine), _) => engine.clone(),
            (None, Some(session)) => session.engine.clone(),
            (None, None) => setup::default_engine(&self.shared.config)?,
        };
        // What cannot be worked on is refused here, not in the queue.
        engines::select(&engine, &self.shared.config.settings)?;
        let known = found.as_ref().and_then(|it| it.cwd.as_deref());
        let cwd = submit.cwd.as_deref().or(known.map(AsRef::as_ref));
        let cwd = setup::cwd(cwd)?;
        let (resume, fork) = match (&submit.target, &found) {
            (Target::Fork(_), Some(from)) => {
                let native = from.native.as_ref().map(ToString::to_string);
                let native = native.ok_or_else(|| Error::NotNamed(from.id.clone()))?;
                (None, Some(native))
            }
            (Target::Fork(native), None) => (None, Some(native.clone())),
            (Target::Native(native), None) => (Some(native.clone()), None),
            (Target::New | Target::Session(_) | Target::Native(_), _) => (None, None),
        };
        let id = match found.filter(|_| fork.is_none()) {
            Some(session) if session.engine != engine => {
                return Err(Error::OtherEngine {
                    session: session.id,
                    engine: session.engine,
                    wanted: engine,
                });
            }
            Some(session) => session.id,
            None => self.create(submit, &engine, &cwd.to_string_lossy()).await?,
        };
        let prompt = Prompt {
            prompt: submit.prompt.clone(),
            resume,
            fork,
            speed: submit.speed,
            settings: Settings::new(submit, engine, cwd),
        };
        Ok((id, prompt))
    }

    async fn create(&self, submit: &Submit, engine: &str, cwd: &str) -> Result<SessionId<'static>> {
        let words = submit.prompt.lines().find(|it| !it.trim().is_empty());
        let title = words.unwrap_or_default().trim();
        let session = NewSession {
            id: SessionId::new(runner::new_id()),
            engine: engine.to_owned(),
            cwd: Some(cwd.to_owned()),
            title: Some(title.chars().take(MAX_TITLE).collect()),
        };
        Ok(self.journal().create(session).await?.id)
    }

    /// The prompts of a session that wait, the next one first.
    pub async fn queue(&self, session: &SessionId<'_>) -> Result<Vec<Queued>> {
        let current = self.shared.status(session).current;
        let waiting = self.waiting(session).await?.into_iter();
        let waiting = waiting.filter(|it| Some(it.number) != current);
        Ok(waiting.collect())
    }

    /// The prompts of a session that are not done with.
    async fn waiting(&self, session: &SessionId<'_>) -> Result<Vec<Queued>> {
        let commands = self.journal().commands(session, 0).await?;
        Ok(commands.into_iter().filter_map(queued).collect())
    }

    /// Takes back a prompt that waits; false when it does not wait any more.
    pub async fn remove_queued(&self, session: &SessionId<'_>, number: u64) -> Result<bool> {
        let queue = self.queue(session).await?;
        if !queue.iter().any(|it| it.number == number) {
            return Ok(false);
        }
        let prompt = Some(number);
        self.order(session, Abort { prompt }).await
    }

    /// Stops the run of a session; false when there is none. Prompts that wait are worked on next.
    pub async fn abort(&self, session: &SessionId<'_>) -> Result<bool> {
        let found = self.journal().find_session(session).await?;
        let found = found.ok_or_else(|| Error::NoSession(session.to_string()))?;
        let is_idle = found.state == State::Idle && self.waiting(session).await?.is_empty();
        if is_idle {
            return Ok(false);
        }
        self.order(session, Abort { prompt: None }).await
    }

    /// Tells the owner of a session, and what came of it.
    async fn order(&self, session: &SessionId<'_>, abort: Abort) -> Result<bool> {
        let session = session.clone().into_owned();
        let order = Order::Abort(bytes(&abort));
        let mut watch = self
            .journal()
            .watch(journal::Scope::Session(session.clone()));
        let number = self.journal().command(&session, order).await?;
        let reply = self.shared.expect_reply(&session, number);
        self.shared.see_to(&session);
        let is_taken = async {
            // Another program tells nothing but that it is done.
            while watch.changed().await {
                let commands = self.journal().commands(&session, number - 1).await?;
                if commands.first().is_none_or(|it| it.number != number) {
                    break;
                }
            }
            Ok(true)
        };
        let answer = tokio::select! {
            biased;
            Ok(answer) = reply => Ok(answer),
            taken = is_taken => taken,
            () = sleep(REPLY_LIMIT) => Ok(true),
        };
        self.shared.replies().remove(&(session, number));
        answer
    }

    /// Answers what the agent asked with event `seq`. Of several answers one is taken; the others are
    /// told so with [`journal::Error::Answered`].
    pub async fn settle(&self, session: &SessionId<'_>, seq: u64, answer: Answer) -> Result<()> {
        if let Answer::Allow { input: Some(input) } | Answer::AllowAlways { input: Some(input) } =
            &answer
        {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(input).is_ok();
            if !is_json {
                return Err(NotSettled::BadInput.into());
            }
            if self.shared.is_ours(session) && !self.shared.status(session).takes_changes {
                return Err(NotSettled::FixedInput.into());
            }
        }
        let answer = bytes(&Told::from(answer));
        self.journal().settle(session, seq, answer).await?;
        Ok(())
    }

    /// Whether an answer may change what the session's agent runs.
    pub fn takes_changes(&self, session: &SessionId<'_>) -> bool {
        self.shared.status(session).takes_changes
    }

    /// What keeps the journal from being written, as long as something does.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.borrow().clone()
    }

    /// Follows one session or all of them.
    pub async fn follow(&self, follow: Follow) -> Result<Follower> {
        Follower::new(&self.shared, follow).await
    }

    /// Hears of sessions that are new or have changed.
    pub fn changes(&self) -> Changes {
        self.shared.directory.subscribe()
    }

    /// Ends all runs as aborted and lets the agents go. Prompts that wait stay where they are.
    pub async fn stop(mut self) {
        self.shared.stop.send_replace(true);
        let desks: Vec<_> = self.shared.desks().drain().map(|it| it.1).collect();
        let aborts: Vec<_> = desks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for desk in desks {
                // One that panicked has nothing more to say.
                desk.await.ok();
            }
        };
        if timeout(STOP_LIMIT, all).await.is_err() {
            aborts.iter().for_each(|it| it.abort());
        }
        for task in self.tasks.drain(..) {
            task.abort();
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
        for task in self.tasks.drain(..) {
            task.abort();
        }
        for (_, desk) in self.shared.desks().drain() {
            desk.abort();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("owner", &self.shared.owner)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Sees to it that a session has a desk.
    pub(crate) fn see_to(self: &Arc<Self>, session: &SessionId<'static>) {
        let mut desks = self.desks();
        if *self.stop.borrow() || desks.contains_key(session) {
            return;
        }
        let shared = Arc::clone(self);
        let id = session.clone();
        let desk = async move {
            desk::run(Arc::clone(&shared), id.clone()).await;
            shared.desks().remove(&id);
            shared.statuses().remove(&id);
            shared.touch(&id);
            // Whoever left an order in between saw a desk, and relied on it.
            let pending = shared.config.journal.commands(&id, 0).await;
            if pending.is_ok_and(|it| !it.is_empty()) {
                shared.see_to(&id);
            }
        };
        desks.insert(session.clone(), tokio::spawn(desk));
    }

    /// All sessions in a format.
    pub(crate) fn everything(&self, style: Style) -> Arc<Everything> {
        let mut all = self
            .everything
            .lock()
            .expect("nobody panics while holding it");
        if let Some(everything) = all.get(&style).and_then(Weak::upgrade) {
            return everything;
        }
        all.retain(|_, it| it.strong_count() > 0);
        let everything = Arc::new(Everything::new(style.clone()));
        all.insert(style, Arc::downgrade(&everything));
        self.directory.register(&everything);
        everything
    }

    /// Closes the runs of dead owners as lost.
    async fn close_lost(&self) -> Result<()> {
        let journal = &self.config.journal;
        for open in journal.open_runs().await? {
            let holder = open.holder.as_ref();
            let is_lost = holder.is_none_or(|it| it.lapsed || is_dead(&it.owner));
            let session = &open.run.session;
            if !is_lost || self.is_ours(session) {
                continue;
            }
            match desk::acquire(self, session).await {
                Ok(lease) => {
                    let closed = lost::close(&**journal, &lease).await;
                    journal.release(&lease).await?;
                    closed?;
                    self.touch(session);
                }
                // Somebody else was faster.
                Err(journal::Error::Held { .. } | journal::Error::NoSession { .. }) => (),
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }

    fn is_ours(&self, session: &SessionId<'_>) -> bool {
        self.desks().contains_key(&session.clone().into_owned())
    }

    pub(crate) fn touch(&self, session: &SessionId<'static>) {
        self.trouble.send_if_modified(|it| it.take().is_some());
        self.directory.touch(session);
    }

    pub(crate) fn in_trouble(&self, err: &journal::Error) {
        if let journal::Error::Storage(fault) = err {
            self.trouble.send_replace(Some(fault.to_string()));
        }
    }

    pub(crate) fn status(&self, session: &SessionId<'_>) -> Status {
        let status = self.statuses().get(&session.clone().into_owned()).copied();
        status.unwrap_or_default()
    }

    pub(crate) fn set_status(&self, session: &SessionId<'static>, status: Status) {
        let before = self.statuses().insert(session.clone(), status);
        if before != Some(status) {
            self.directory.touch(session);
        }
    }

    fn expect_reply(&self, session: &SessionId<'static>, number: u64) -> oneshot::Receiver<bool> {
        let (tx, rx) = oneshot::channel();
        self.replies().insert((session.clone(), number), tx);
        rx
    }

    pub(crate) fn reply(&self, session: &SessionId<'static>, number: u64, is_done: bool) {
        let reply = self.replies().remove(&(session.clone(), number));
        if let Some(reply) = reply {
            // Who does not wait any more does not mind.
            reply.send(is_done).ok();
        }
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<SessionId<'static>, JoinHandle<()>>> {
        self.desks.lock().expect("nobody panics while holding it")
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<SessionId<'static>, Status>> {
        self.status.lock().expect("nobody panics while holding it")
    }

    fn replies(&self) -> MutexGuard<'_, HashMap<(SessionId<'static>, u64), oneshot::Sender<bool>>> {
        self.replies.lock().expect("nobody panics while holding it")
    }
}

/// Looks after the runs of owners that die while this one lives.
async fn sweep(shared: Arc<Shared>) {
    loop {
        sleep(shared.config.limits.lease).await;
        if let Err(Error::Journal(err)) = shared.close_lost().await {
            shared.in_trouble(&err);
        }
    }
}

pub(crate) fn queued(command: Command) -> Option<Queued> {
    let Command { number, at, order } = command;
    match order {
        Order::Prompt(body) => Some(Queued {
            number,
            at,
            prompt: text(&body),
        }),
        Order::Abort(_) | Order::Settle { .. } => None,
    }
}

fn text(body: &Bytes) -> String {
    let prompt = serde_json::from_slice::<Prompt>(body);
    prompt.map(|it| it.prompt).unwrap_or_default()
}
