//! What an agent is started with.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use formats::History;
use model::{RunId, Thread};
use responses::{Conversation, Endpoint};

use crate::dialogue::Dialogue;
use crate::engines::RESPONSES;
use crate::locks::{self, Lock, LockHolder, Locks};
use crate::process::{GracePeriods, Guard, SpawnError};
use crate::request::{Launch, Mode, Prompt};
use crate::state::new_id;

/// What an agent is started with.
#[derive(Debug)]
pub struct Setup {
    /// The engine as locks and events name it.
    pub engine: String,
    /// linkspan's own id of the session.
    pub session: String,
    /// The format the agent speaks.
    pub format: &'static str,
    /// The requested native session.
    pub expect: Option<String>,
    /// The native session to lock: the one that is resumed or forked.
    pub in_use: Option<String>,
    /// That session is only read, to fork from it.
    pub is_fork: bool,
    /// What the session holds already.
    pub resume_point: ResumePoint,
    /// The run of the prompt, if it was announced: its start and its prompt are the last events before
    /// `resume_point`.
    pub announced: Option<RunId<'static>>,
    /// The newest session was requested: see [`super::Step::SessionBusy`].
    pub is_latest: bool,
    pub backend: Backend,
    pub limits: Limits,
    /// Absent for a recording, which has no native session.
    pub locks: Option<Locks>,
    /// The lock of the session that is in use, when it was taken already: see [`Setup::take_lock`].
    pub lock: Option<Lock>,
    /// A description of this holder for others that wait for the session.
    pub holder: String,
    /// Fail instead of waiting for a session that is in use.
    pub no_wait: bool,
    /// The hint for an agent that is not logged in.
    pub login_hint: Option<String>,
    /// A message about the start, emitted as a notice unless the caller takes it.
    pub notice: Option<String>,
    /// The permission modes that the agent can be switched to; all others need a new process.
    pub modes: Vec<Mode>,
}

/// Where a session continues; empty for a new one.
#[derive(Clone, Debug, Default)]
pub struct ResumePoint {
    /// The number of its last event.
    pub seq: u64,
    pub previous: formats::PreviousStreams,
}

/// What does the work.
pub enum Backend {
    /// One process for one prompt. With `echoes` its stream repeats the prompt.
    OneShot {
        launch: Launch,
        guard: Guard,
        prompt: String,
        echoes: bool,
    },
    /// A process with a dialogue; without a prompt it waits for one.
    Dialogue {
        launch: Launch,
        guard: Guard,
        prompt: Option<Prompt>,
        dialogue: Box<dyn Dialogue>,
    },
    /// A model that answers over HTTP.
    Responses {
        endpoint: Box<Endpoint>,
        conversation: Box<Conversation>,
        prompt: String,
    },
    /// A recording; `speed` 2 is twice as fast.
    Replay {
        input: Box<dyn Read + Send>,
        speed: f64,
        prompt: Option<String>,
    },
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Not the environment: it may hold keys.
            Self::OneShot { launch, .. } | Self::Dialogue { launch, .. } => {
                f.debug_tuple("Process").field(&launch.program).finish()
            }
            Self::Responses { endpoint, .. } => {
                f.debug_tuple("Responses").field(&endpoint.name).finish()
            }
            Self::Replay { speed, .. } => f.debug_tuple("Replay").field(speed).finish(),
        }
    }
}

/// How long an agent may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until its first output.
    pub start: Option<Duration>,
    /// Between two outputs of a run.
    pub idle: Option<Duration>,
    /// For each step of an abort.
    pub patience: GracePeriods,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("nothing reads the format `{0}`")]
    NoReader(&'static str),
    #[error("session `{session}` is in use by {held}")]
    Busy { session: String, held: LockHolder },
    #[error("cannot read the history")]
    Recall(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot mark its processes")]
    Marker(#[source] io::Error),
    #[error("cannot lock session `{session}`")]
    Lock {
        session: String,
        #[source]
        source: locks::Error,
    },
}

impl Setup {
    /// A new session without a native one, and without locks.
    pub(crate) fn new(
        engine: String,
        format: &'static str,
        backend: Backend,
        limits: Limits,
    ) -> Self {
        Self {
            engine,
            session: new_id(),
            format,
            expect: None,
            in_use: None,
            is_fork: false,
            resume_point: ResumePoint::default(),
            announced: None,
            is_latest: false,
            backend,
            limits,
            locks: None,
            lock: None,
            holder: String::new(),
            no_wait: false,
            login_hint: None,
            notice: None,
            modes: Vec::new(),
        }
    }

    /// A recording in this format; it has no native session and needs no lock.
    pub fn replay(format: &'static str, backend: Backend, limits: Limits) -> Self {
        Self::new(format.to_owned(), format, backend, without_timeouts(limits))
    }

    /// A model that gets a conversation ending with `prompt`. The owner of the session serialises
    /// its runs; there is no native session to lock.
    pub fn responses(
        endpoint: Box<Endpoint>,
        conversation: Conversation,
        prompt: &str,
        limits: Limits,
    ) -> Self {
        let expect = conversation.previous(&endpoint).map(str::to_owned);
        let engine = format!("{RESPONSES}:{}", endpoint.name);
        let backend = Backend::Responses {
            endpoint,
            conversation: Box::new(conversation),
            prompt: prompt.to_owned(),
        };
        let limits = without_timeouts(limits);
        Self {
            expect,
            ..Self::new(engine, "openresponses", backend, limits)
        }
    }

    /// Whether it needs the history, see [`Setup::recall`]: agents remember it.
    pub fn needs_history(&self) -> bool {
        matches!(self.backend, Backend::Responses { .. })
    }

    /// A model needs the history; an agent remembers it. `thread` is the conversation as its client has sent
    /// it, with the prompt.
    pub fn recall(&mut self, history: History, thread: Option<Thread>) {
        let Backend::Responses {
            endpoint,
            conversation,
            prompt,
        } = &mut self.backend
        else {
            return;
        };
        let mut whole = match thread {
            Some(thread) => Conversation::of_client(&self.session, thread, &history),
            // In a new session the prompt alone is the whole conversation.
            None if history.messages.is_empty() => return,
            None => Conversation::of_prompt(&self.session, history, prompt),
        };
        if let Some(response) = conversation.previous(endpoint) {
            whole.follow(response);
        }
        whole.model = conversation.model.take();
        whole.effort = conversation.effort.take();
        self.expect = whole.previous(endpoint).map(str::to_owned);
        **conversation = whole;
    }

    /// The prompt; none for a recording that has its own, and for an agent that waits for one.
    pub fn prompt(&self) -> Option<&str> {
        match &self.backend {
            Backend::OneShot { prompt, .. } => Some(prompt),
            Backend::Dialogue { prompt, .. } => prompt.as_ref().map(|it| &*it.text),
            Backend::Responses { prompt, .. } => {
                // Empty when the request holds the results of tools and no prompt.
                Some(prompt).filter(|it| !it.is_empty()).map(|it| &**it)
            }
            Backend::Replay { prompt, .. } => prompt.as_deref(),
        }
    }

    /// Takes the lock of the session that is resumed before [`super::Agent::start`] does; `waiting` is called with
    /// its holder.
    pub async fn take_lock(&mut self, waiting: impl FnMut(&LockHolder)) -> Result<(), StartError> {
        self.lock = self.lock(waiting).await?;
        Ok(())
    }

    /// Locks the session that is resumed, and waits for it unless `no_wait` is set. The future does
    /// not borrow the setup, so that it can move to another thread.
    pub(super) fn lock<F: FnMut(&LockHolder)>(
        &self,
        mut waiting: F,
    ) -> impl Future<Output = Result<Option<Lock>, StartError>> + use<F> {
        let wanted = self.locks.clone().zip(self.in_use.clone());
        let (engine, holder) = (self.engine.clone(), self.holder.clone());
        let (no_wait, is_fork) = (self.no_wait, self.is_fork);
        async move {
            let Some((locks, session)) = wanted else {
                return Ok(None);
            };
            let failed = |source| not_locked(&session, source);
            let place = match is_fork {
                true => locks.queue_to_read(&engine, &session, &holder).await,
                false => locks.queue(&engine, &session, &holder).await,
            };
            let place = place.map_err(failed)?;
            if let Some(held) = place.held() {
                if no_wait {
                    let held = held.clone();
                    return Err(StartError::Busy { session, held });
                }
                waiting(held);
            }
            place.wait().await.map(Some).map_err(failed)
        }
    }

    pub(super) fn not_locked(&self, source: locks::Error) -> StartError {
        not_locked(self.in_use.as_deref().unwrap_or_default(), source)
    }
}

fn not_locked(session: &str, source: locks::Error) -> StartError {
    StartError::Lock {
        session: session.to_owned(),
        source,
    }
}

/// A recording may take any time, and an endpoint has its own timeouts.
fn without_timeouts(limits: Limits) -> Limits {
    Limits {
        start: None,
        idle: None,
        ..limits
    }
}
