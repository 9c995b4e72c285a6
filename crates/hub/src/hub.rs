//! The public handle of the hub.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use formats::History;
use journal::{
    Command, CommandBody, Enqueued, Journal, NewSession, Parent, PromptTarget, Run, Session, State,
    WaitingAsk, Watch, WriteId,
};
use model::{SessionId, Timestamp};
use runner::{engines, process};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::acceptor;
use crate::changes::Changes;
use crate::command::{Abort, Prompt, Settings, Submit, Target, to_bytes};
use crate::config::{HubConfig, QueueLife};
use crate::counts::RunCounts;
use crate::error::{Error, Result};
use crate::follow::{Follow, Follower};
use crate::lock::lock;
use crate::remove;
use crate::retention;
use crate::setup;
use crate::shared::{self, Shared};

/// Time limit for a graceful stop.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How long to wait for a session's owner to confirm an abort.
const REPLY_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for the first prompt in the queue to start: another process may hold the
/// session.
const BEGIN_LIMIT: Duration = Duration::from_secs(2);
/// Maximum length of a title made from a prompt, in characters.
const MAX_TITLE: usize = 80;

/// Runs sessions, and shows them. Dropping it ends everything at once, as a crash would: see [`Hub::stop`].
pub struct Hub {
    pub(crate) shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

/// An accepted prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub session: SessionId<'static>,
    /// Its number in the session's queue, by which it can be taken back.
    pub number: u64,
    /// How many prompts of the session come before it; 0 runs now.
    pub position: usize,
    /// The last event of the session before the prompt was accepted.
    pub after: u64,
}

/// A prompt on its way into a queue.
struct PlacedPrompt {
    home: PromptTarget,
    prompt: Prompt,
    /// The last event of its session.
    after: u64,
}

/// A queued prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    pub number: u64,
    pub at: Timestamp,
    pub prompt: String,
}

/// A consistent snapshot of a session and its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    pub session: Session,
    /// The newest first.
    pub runs: Vec<Run>,
    /// The queued prompts, the next one first.
    pub queue: Vec<Queued>,
    /// What its agent asks, the oldest first.
    pub asks: Vec<WaitingAsk>,
}

impl Hub {
    /// Opens a hub: ends the agents of dead processes, closes their runs as lost, and resumes
    /// queued prompts.
    pub async fn open(config: HubConfig) -> Result<Self> {
        // Also those without a run, which the recovery does not look for.
        tokio::task::spawn_blocking(process::end_orphans).await.ok();
        let shared = Arc::new(Shared::new(config));
        // A store that cannot be written can be read; the sweep tries again.
        if let Err(err) = shared.recover_lost_runs().await {
            shared.report_trouble(&err);
        }
        // After the recovery: the runs that it closed are the state to begin with, not changes.
        shared.directory.fill(&*shared.config.journal).await?;
        acceptor::opened(shared.owner.as_str());
        shared.wake_pending().await?;
        let mut tasks = vec![
            tokio::spawn(crate::changes::watch(Arc::clone(&shared))),
            tokio::spawn(shared::sweep(Arc::clone(&shared))),
        ];
        if let Some(retention) = retention::retention(&shared.config.settings) {
            tasks.push(tokio::spawn(retention::enforce(
                Arc::clone(&shared),
                retention,
            )));
        }
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

    /// A session by our id or by the agent's, with the newest `n_runs` of its runs, all of one moment.
    pub async fn overview(&self, id: &str, n_runs: u32) -> Result<Overview> {
        let ours = SessionId::new(id);
        let found = match self.journal().overview(&ours, n_runs).await? {
            Some(found) => Some(found),
            None => {
                let session = self.find(id).await?.id;
                self.journal().overview(&session, n_runs).await?
            }
        };
        let found = found.ok_or_else(|| Error::NoSession(id.to_owned()))?;
        Ok(Overview {
            session: found.session,
            runs: found.runs,
            queue: found
                .commands
                .into_iter()
                .filter_map(queued_prompt)
                .collect(),
            asks: found.asks,
        })
    }

    /// Puts a prompt into a session's queue, and makes the session if need be: all of it or nothing.
    ///
    /// The prompt is durable when this returns. If it is first in the queue, its run has started
    /// and is visible to all clients.
    pub async fn submit(&self, submit: Submit) -> Result<Submitted> {
        if *self.shared.stop.borrow() {
            return Err(Error::Stopped);
        }
        if submit.prompt.trim().is_empty() && submit.thread.is_none() {
            return Err(Error::EmptyPrompt);
        }
        let PlacedPrompt {
            home,
            prompt,
            after,
        } = self.place(&submit).await?;
        let session = match &home {
            PromptTarget::Session(id) => id.clone(),
            PromptTarget::New(new) | PromptTarget::Either(new) => new.id.clone(),
        };
        let mut watch = self
            .journal()
            .watch(journal::Scope::Session(session.clone()));
        let Enqueued { number, position } = self
            .journal()
            .enqueue(home, WriteId::new(), to_bytes(&prompt))
            .await?;
        self.shared.wake_worker(&session);
        self.shared.touch(&session);
        if position == 0 {
            let begun = self.wait_until_started(&session, number, &mut watch);
            // Another owner may take any time; the prompt stays queued there.
            timeout(BEGIN_LIMIT, begun).await.ok();
        }
        Ok(Submitted {
            session,
            number,
            position: usize::try_from(position).unwrap_or(usize::MAX),
            after,
        })
    }

    /// Waits until a prompt has left the queue; its run is in the log then.
    async fn wait_until_started(
        &self,
        session: &SessionId<'static>,
        number: u64,
        watch: &mut Watch,
    ) {
        loop {
            let commands = self.journal().commands(session, number - 1).await;
            // A failed read does not change that the prompt was accepted.
            if commands.is_ok_and(|it| it.first().is_none_or(|it| it.number != number)) {
                return;
            }
            if !watch.changed().await {
                return;
            }
        }
    }

    /// Resolves the session and the stored form of a prompt; nothing is written yet.
    async fn place(&self, submit: &Submit) -> Result<PlacedPrompt> {
        let found = match &submit.target {
            Target::New => None,
            Target::Session(id) | Target::Fork(id) => match self.find(id).await {
                // The agent may have a session that the journal has not: its own id is used.
                Err(Error::NoSession(_)) if matches!(submit.target, Target::Fork(_)) => None,
                found => Some(found?),
            },
            Target::Own(id) => self.journal().find_session(&SessionId::new(&**id)).await?,
            Target::Native(id) => self.journal().find_native(&SessionId::new(&**id)).await?,
        };
        let engine = match (&submit.engine, &found) {
            (Some(engine), _) => engine.clone(),
            (None, Some(session)) => session.engine.clone(),
            (None, None) => setup::default_engine(&self.shared.config)?,
        };
        // Report an unknown engine first.
        let selected = engines::select(&engine, &self.shared.config.settings)?;
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
            (Target::New | Target::Session(_) | Target::Own(_) | Target::Native(_), _) => {
                (None, None)
            }
        };
        let parent = found
            .as_ref()
            .filter(|_| fork.is_some())
            .map(|from| Parent {
                session: from.id.clone(),
                seq: from.head,
            });
        if let Some(session) = found.as_ref().filter(|it| it.engine != engine) {
            return Err(Error::OtherEngine {
                session: session.id.clone(),
                engine: session.engine.clone(),
                wanted: engine,
            });
        }
        // A fork is a session of its own from here on; only `parent` names the other one.
        let found = found.filter(|_| fork.is_none());
        let native = found.as_ref().and_then(|it| it.native.clone());
        let after = found.as_ref().map_or(0, |it| it.head);
        let home = match found {
            Some(session) => PromptTarget::Session(session.id),
            None => new_home(submit, &engine, &cwd.to_string_lossy(), parent),
        };
        let prompt = Prompt {
            accepted: Some(self.shared.accept()),
            prompt: submit.prompt.clone(),
            resume,
            fork,
            client: submit.client.clone(),
            thread: submit.thread.clone(),
            settings: Settings {
                engine,
                cwd,
                options: submit.options.clone(),
            },
        };
        // Reject impossible prompts here, not in the queue.
        let native = native.as_ref().map(SessionId::as_str);
        setup::check(&self.shared.config, &selected, native, &prompt)?;
        Ok(PlacedPrompt {
            home,
            prompt,
            after,
        })
    }

    /// The queued prompts of a session, the next one first.
    pub async fn queue(&self, session: &SessionId<'_>) -> Result<Vec<Queued>> {
        let commands = self.journal().commands(session, 0).await?;
        Ok(commands.into_iter().filter_map(queued_prompt).collect())
    }

    /// Removes a queued prompt; false when it is no longer queued.
    pub async fn remove_queued(&self, session: &SessionId<'_>, number: u64) -> Result<bool> {
        let queue = self.queue(session).await?;
        if !queue.iter().any(|it| it.number == number) {
            return Ok(false);
        }
        let abort = Abort {
            prompt: Some(number),
            ..Abort::default()
        };
        self.order(session, abort).await
    }

    /// Takes back a prompt wherever it is: out of the queue, or by stopping its run; false when it is
    /// done with.
    pub async fn cancel_queued(&self, session: &SessionId<'_>, number: u64) -> Result<bool> {
        if self.remove_queued(session, number).await? {
            return Ok(true);
        }
        let abort = Abort {
            of: Some(number),
            ..Abort::default()
        };
        self.order(session, abort).await
    }

    /// Aborts the run of a session; false when there is none. Queued prompts run next.
    pub async fn abort(&self, session: &SessionId<'_>) -> Result<bool> {
        let found = self.journal().find_session(session).await?;
        let found = found.ok_or_else(|| Error::NoSession(session.to_string()))?;
        if found.state == State::Idle {
            return Ok(false);
        }
        let abort = Abort {
            // Not any run: the next one may have started when the command is read.
            of: self.shared.status(session).current,
            ..Abort::default()
        };
        let ordered = self.order(session, abort).await;
        match ordered {
            // An abort works even when the journal is unwritable.
            Err(Error::Journal(journal::Error::Storage(_)))
                if self.shared.abort_local(&found.id) =>
            {
                Ok(true)
            }
            ordered => ordered,
        }
    }

    /// Removes a session with all that is in it; fails with [`Error::Busy`] while it has something to do.
    pub async fn remove(&self, session: &SessionId<'_>) -> Result<()> {
        let session = session.clone().into_owned();
        remove::remove(&**self.journal(), &session, &self.shared.owner).await?;
        self.shared.directory.forget(&[session]);
        Ok(())
    }

    /// Sends a command to the session's owner and returns its result.
    async fn order(&self, session: &SessionId<'_>, abort: Abort) -> Result<bool> {
        let session = session.clone().into_owned();
        let order = CommandBody::Abort(to_bytes(&abort));
        let mut watch = self
            .journal()
            .watch(journal::Scope::Session(session.clone()));
        let number = self
            .journal()
            .command(&session, WriteId::new(), order)
            .await?;
        // A worker that was faster than this has sent no reply; `is_taken` notices that.
        let reply = self.shared.expect_reply(&session, number);
        self.shared.wake_worker(&session);
        let is_taken = async {
            // Another process only confirms that the command was handled.
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
        // Still there when another process took the command, or none did in time.
        lock(&self.shared.replies).remove(&(session, number));
        answer
    }

    /// The engine of a prompt that names none.
    pub fn default_engine(&self) -> Result<String> {
        setup::default_engine(&self.shared.config)
    }

    /// What a session holds, as the messages of a thread; of the events up to `head`.
    pub async fn history(&self, session: &SessionId<'_>, head: u64) -> Result<History> {
        Ok(crate::history::read(&**self.journal(), session, head).await?)
    }

    /// The error that keeps the journal from being written, while it lasts.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    /// The sessions in which this hub runs a prompt.
    pub fn at_work(&self) -> Vec<SessionId<'static>> {
        self.shared.at_work()
    }

    /// How the runs of this hub have ended.
    pub fn run_counts(&self) -> &RunCounts {
        &self.shared.counts
    }

    /// Follows one session or all of them.
    pub async fn follow(&self, follow: Follow) -> Result<Follower> {
        Follower::new(&self.shared, follow).await
    }

    /// Subscribes to new and changed sessions.
    pub fn changes(&self) -> Changes {
        self.shared.directory.subscribe()
    }

    /// Aborts all runs and releases the agents. Queued prompts stay queued if the queue is durable.
    pub async fn stop(&self) {
        if self.shared.config.queue == QueueLife::OfHub {
            // Before the session tasks stop, which take them out. A failed read leaves them to be
            // found by the next hub.
            self.withdraw_own_prompts().await.ok();
        }
        self.shared.stop.send_replace(true);
        let mut session_tasks = std::mem::take(&mut *lock(&self.shared.session_tasks));
        let session_tasks: Vec<_> = session_tasks.drain().map(|it| it.1.task).collect();
        let aborts: Vec<_> = session_tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for session_task in session_tasks {
                // A panicked worker has no result.
                session_task.await.ok();
            }
        };
        if timeout(STOP_LIMIT, all).await.is_err() {
            aborts.iter().for_each(|it| it.abort());
        }
        for task in &self.tasks {
            task.abort();
        }
        // Last: from now on other hubs may take the prompts that are still queued.
        acceptor::closed(self.shared.owner.as_str());
    }
}

impl Hub {
    /// Takes the prompts of this hub out of all queues.
    async fn withdraw_own_prompts(&self) -> Result<()> {
        for session in self.journal().pending(None).await? {
            let commands = self.journal().commands(&session, 0).await?;
            for Command { number, order, .. } in commands {
                if let CommandBody::Prompt(body) = order
                    && self.shared.is_own_prompt(&body)
                {
                    self.remove_queued(&session, number).await?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
        for task in self.tasks.drain(..) {
            task.abort();
        }
        for (_, session_task) in lock(&self.shared.session_tasks).drain() {
            session_task.task.abort();
        }
        acceptor::closed(self.shared.owner.as_str());
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("owner", &self.shared.owner)
            .finish_non_exhaustive()
    }
}

/// A session that is made for a prompt.
fn new_home(submit: &Submit, engine: &str, cwd: &str, parent: Option<Parent>) -> PromptTarget {
    let new = |id: String| NewSession {
        home: journal::Node::default(),
        id: SessionId::new(id),
        engine: engine.to_owned(),
        cwd: Some(cwd.to_owned()),
        title: Some(title(&submit.prompt)),
        parent,
    };
    match &submit.target {
        // If another process is faster, its session is the right one.
        Target::Own(id) => PromptTarget::Either(new(id.clone())),
        Target::New | Target::Session(_) | Target::Native(_) | Target::Fork(_) => {
            PromptTarget::New(new(runner::new_id()))
        }
    }
}

/// The title of a session that starts with this prompt: its first non-empty line.
pub fn title(prompt: &str) -> String {
    let line = prompt.lines().find(|it| !it.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    line.chars().take(MAX_TITLE).collect()
}

fn queued_prompt(command: Command) -> Option<Queued> {
    let Command { number, at, order } = command;
    match order {
        CommandBody::Prompt(body) => Some(Queued {
            number,
            at,
            prompt: text(&body),
        }),
        CommandBody::Abort(_) | CommandBody::Settle { .. } | CommandBody::Damaged => None,
    }
}

fn text(body: &Bytes) -> String {
    Prompt::read(body).map(|it| it.prompt).unwrap_or_default()
}
