//! A session of the client: its agent, its turn, its questions, one loop.

mod asks;
mod choose;
mod life;
mod telling;
mod turn;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use formats::AcpAgent;
use formats::ag_ui::History;
use hub::{Recorder, Wish};
use journal::Journal;
use runner::{Agent, McpServer, Offers, Prompt, Resume, StartError, Step};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use self::asks::Asks;
use self::telling::Telling;
use self::turn::Turn;
use crate::AcpConfig;
use crate::options::{Choices, Chosen};
use crate::pace::{Pace, until};
use crate::pipes::Said;
use crate::recording::Recording;
use crate::rpc::{self, Error, Id};
use crate::stats::Stats;
use crate::wire;

/// How often the journal is asked for what others want.
const BEAT: Duration = Duration::from_millis(500);
/// Words come to the client at this pace, however fast the model is.
const PACE: Duration = Duration::from_millis(10);
/// What an agent may take to stop, and then to leave, before it is made to.
const PATIENCE: Duration = Duration::from_secs(3);

type Starting = Pin<Box<dyn Future<Output = Result<Agent, StartError>> + Send>>;

/// What the client wants from a session.
#[derive(Debug)]
pub(crate) enum Order {
    Prompt {
        id: Id,
        prompt: Prompt,
    },
    /// Only what this request has asked for, where one is named.
    Cancel {
        request: Option<Value>,
    },
    /// The answer to what an agent asked; none when it was refused.
    Answer {
        request: String,
        result: Option<Value>,
    },
    SetMode {
        id: Id,
        mode: String,
    },
    SetOption {
        id: Id,
        option: String,
        value: Value,
    },
    /// It is opened again; `is_told` says that its past is told again as well.
    Reopen {
        id: Id,
        is_told: bool,
    },
    /// Another session is to begin with what this one holds: its native id, unless it is at work.
    Branch {
        begun: oneshot::Sender<Result<String, Error>>,
    },
    Close {
        id: Id,
    },
}

/// What is shared by all sessions of a connection.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) config: Arc<AcpConfig>,
    /// None while it is being opened.
    journal: watch::Receiver<Option<Arc<dyn Journal>>>,
    pub(crate) said: Said,
    pub(crate) stats: Arc<Stats>,
    pub(crate) client: wire::ClientCapabilities,
}

impl Shared {
    pub(crate) fn new(
        config: AcpConfig,
        journal: watch::Receiver<Option<Arc<dyn Journal>>>,
        said: Said,
        stats: Arc<Stats>,
    ) -> Self {
        Self {
            config: Arc::new(config),
            journal,
            said,
            stats,
            client: wire::ClientCapabilities::default(),
        }
    }

    pub(crate) async fn journal(&self) -> Arc<dyn Journal> {
        let mut journal = self.journal.clone();
        let opened = journal.wait_for(Option::is_some).await;
        let opened = opened.ok().and_then(|it| it.clone());
        opened.expect("whoever opens it is there until it is open")
    }
}

/// A session as it is opened.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: String,
    /// As in `linkspan run --engine`.
    pub(crate) engine: String,
    pub(crate) cwd: PathBuf,
    pub(crate) mcp_servers: Vec<McpServer>,
    pub(crate) resume: Resume,
}

pub(crate) struct Session {
    shared: Shared,
    /// As the journal calls it.
    id: String,
    /// As the client calls it.
    name: String,
    engine: String,
    cwd: PathBuf,
    mcp_servers: Vec<McpServer>,
    resume: Resume,
    /// The agent's session that it begins with, when it is a fork.
    forked: Option<String>,
    recording: Recording,
    writer: AcpAgent,
    choices: Choices,
    chosen: Chosen,
    /// What the agent works with, unless it was started with something else.
    is_stale: bool,
    offers: Offers,
    agent: Option<Agent>,
    starting: Option<Starting>,
    /// An agent is wanted although there is nothing to do for it yet.
    is_warming: bool,
    turn: Option<Turn>,
    /// The prompt of the turn, until an agent has it.
    waiting: Option<Prompt>,
    /// What was said before it, for an engine that has to be told.
    said: History,
    asks: Asks,
    /// The mode the agent has told last.
    heard_mode: Option<String>,
    pace: Pace,
    lines: Vec<u8>,
}

/// What woke the loop.
enum Woken {
    Ordered(Option<Order>),
    Stored(journal::Result<()>),
    Started(Box<Result<Agent, StartError>>),
    Stepped(Step),
    /// Words have waited for more of them.
    Waited,
    Beat,
}

impl Session {
    /// `name` is what the client calls it. Fails where the engine cannot be started at all.
    pub(crate) fn new(shared: Shared, opening: Opening, name: &str) -> Result<Self, Error> {
        let Opening {
            id,
            engine,
            cwd,
            mcp_servers,
            resume,
        } = opening;
        let config = &shared.config;
        let chosen = Chosen {
            mode: config.permissions.mode,
            model: config.model.clone(),
            effort: None,
        };
        let family = engine.split(':').next().unwrap_or_default();
        let is_root = rustix::process::geteuid().is_root();
        let is_boxed = std::env::var_os("IS_SANDBOX").is_some();
        let choices = Choices::of(family, is_root && !is_boxed);
        let writer = writer(&shared, name, &cwd);
        let mut session = Self {
            shared,
            id,
            name: name.to_owned(),
            engine,
            cwd,
            mcp_servers,
            forked: match &resume {
                Resume::Fork(native) => Some(native.clone()),
                Resume::Fresh | Resume::Latest | Resume::Session(_) => None,
            },
            resume,
            recording: Recording::early(),
            writer,
            choices,
            chosen,
            is_stale: false,
            offers: Offers::default(),
            agent: None,
            starting: None,
            is_warming: true,
            turn: None,
            waiting: None,
            said: History::default(),
            asks: Asks::default(),
            heard_mode: None,
            pace: Pace::new(PACE),
            lines: Vec::new(),
        };
        // What cannot be started is said now, not with the first prompt.
        session.setup()?;
        Ok(session)
    }

    /// It is one that is kept already.
    pub(crate) fn goes_on(&mut self, recorder: Recorder) {
        self.recording = Recording::open(recorder);
    }

    /// What the client is told about a session that it has opened.
    pub(crate) fn opened<'a>(&self, id: Option<&'a str>) -> wire::Opened<'a> {
        wire::Opened {
            session_id: id,
            modes: self.choices.modes(self.chosen.mode),
            config_options: self.choices.options(&self.chosen, &self.offers),
        }
    }

    /// Works until the client closes the session or goes away.
    pub(crate) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = None;
        loop {
            self.begin();
            self.say().await;
            let Self {
                recording,
                writer,
                agent,
                starting,
                turn,
                lines,
                shared,
                heard_mode,
                pace,
                ..
            } = &mut self;
            let due = pace.due();
            let has_room = recording.has_room();
            let (kept, mut pending) = recording.parts();
            let mut telling = Telling {
                kept,
                writer,
                turn,
                lines,
                stats: &shared.stats,
                heard_mode,
            };
            let woken = tokio::select! {
                biased;
                order = orders.recv() => Woken::Ordered(order),
                stored = pending.next() => Woken::Stored(stored),
                started = next(starting), if starting.is_some() => Woken::Started(Box::new(started)),
                step = step(agent, &mut telling), if agent.is_some() && has_room => Woken::Stepped(step),
                () = until(due) => Woken::Waited,
                _ = beats.tick() => Woken::Beat,
            };
            match woken {
                Woken::Ordered(None) => break,
                Woken::Ordered(Some(Order::Close { id })) => {
                    closing = Some(id);
                    break;
                }
                Woken::Ordered(Some(order)) => self.ordered(order).await,
                Woken::Stored(stored) => {
                    let stored = self.recording.stored(stored);
                    self.not_kept(stored.err());
                }
                Woken::Started(started) => self.started(*started).await,
                Woken::Stepped(step) => {
                    self.stepped(step);
                    self.settle_overdue().await;
                }
                Woken::Waited => self.tell_words(),
                Woken::Beat => self.beat().await,
            }
        }
        self.leave(closing).await;
    }

    async fn ordered(&mut self, order: Order) {
        match order {
            Order::Prompt { id, prompt } => self.prompted(id, prompt).await,
            Order::Cancel { request } => self.cancel(request.as_ref()),
            Order::Answer { request, result } => self.answered(&request, result.as_ref()),
            Order::SetMode { id, mode } => self.set_mode(&id, &mode),
            Order::SetOption { id, option, value } => self.set_option(&id, &option, &value),
            Order::Reopen { id, is_told } => self.reopen(&id, is_told).await,
            // Who does not wait any more needs no answer.
            Order::Branch { begun } => _ = begun.send(self.branch()).ok(),
            Order::Close { .. } => (), // The loop ends with it.
        }
    }

    fn stepped(&mut self, step: Step) {
        self.recording.commit();
        if step != Step::Told || self.pace.is_due() {
            self.tell_words();
        }
        if let Some(agent) = &self.agent
            && let Some(native) = agent.native()
        {
            self.resume = Resume::Session(native.to_owned());
        }
        self.hear_offers();
        self.hear_mode();
        match step {
            Step::Told | Step::Ended => self.see_to_asks(),
            // Nobody asks for the newest session here, so none is in use.
            Step::Gone | Step::Busy | Step::Found => {
                let unsent = self.agent.as_mut().and_then(Agent::take_unsent);
                self.gone();
                if unsent.is_some() {
                    // Another program has gone on with the session: the next agent knows of it.
                    self.waiting = unsent;
                    return;
                }
                let message = "the agent ended before it answered";
                self.fail(&Error::internal(message));
            }
        }
    }

    /// Says the words that wait for more.
    fn tell_words(&mut self) {
        self.writer.flush(&mut self.lines);
        self.pace.passed();
    }

    async fn beat(&mut self) {
        match self.recording.beat().await {
            Ok(wishes) => {
                for wish in wishes {
                    match (wish, &mut self.agent) {
                        (Wish::Abort, _) => self.cancel(None),
                        (Wish::Leave, _) => self.make_way().await,
                        (
                            Wish::Settle {
                                ask,
                                answer,
                                is_late,
                            },
                            Some(agent),
                        ) => {
                            let settled = match is_late {
                                true => agent.settle_late(&ask, &answer),
                                false => agent.settle(&ask, &answer),
                            };
                            // One that was withdrawn meanwhile needs no answer.
                            settled.ok();
                        }
                        (Wish::Settle { .. }, None) => (),
                    }
                }
            }
            Err(err) => self.not_kept(Some(err)),
        }
        self.settle_overdue().await;
    }

    /// Answers what nobody has answered in time: through the journal where there is one, so that the
    /// first answer counts, whoever gives it.
    async fn settle_overdue(&mut self) {
        let Some(agent) = &mut self.agent else {
            return;
        };
        let overdue = agent.overdue();
        if overdue.is_empty() || self.recording.settle_overdue(&overdue).await {
            return;
        }
        for (asked, answer) in overdue {
            // One that was withdrawn meanwhile needs no answer.
            agent.settle_late(asked.ask.id.as_str(), &answer).ok();
        }
    }

    fn update(&mut self, update: wire::About<'_>) {
        let update = wire::Update {
            session_id: &self.name,
            update,
        };
        let line = rpc::notification("session/update", &update);
        self.lines.extend(line);
    }

    async fn say(&mut self) {
        if !self.lines.is_empty() {
            let lines = std::mem::take(&mut self.lines);
            // Who does not listen any more hears nothing; the connection notices.
            self.shared.said.say(lines).await;
        }
    }
}

/// One that has told nothing yet.
fn writer(shared: &Shared, name: &str, cwd: &Path) -> AcpAgent {
    let client = formats::AcpClient {
        has_notices: shared.client.session.notices.is_some(),
        has_compactions: shared.client.session.compaction.is_some(),
    };
    let profile = shared.config.profile.as_deref();
    AcpAgent::new(name, &cwd.to_string_lossy(), profile, client)
}

async fn next(starting: &mut Option<Starting>) -> Result<Agent, StartError> {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

async fn step(agent: &mut Option<Agent>, telling: &mut Telling<'_>) -> Step {
    match agent {
        Some(agent) => agent.step(telling).await,
        None => std::future::pending().await,
    }
}
