//! A session of the client: its agent, its turn, its questions, one loop.

mod asks;
mod config_options;
mod fanout;
mod lifecycle;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use formats::AcpAgent;
use hub::{ClientSession, ClientSessionConfig, LogLost, Progress, Request, SessionLog};
use journal::Journal;
use model::{Text, error_chain};
use runner::pipes::LineSender;
use runner::{Agent, McpServer, Offers, Prompt, Resume};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use self::asks::Asks;
use self::fanout::Fanout;
use self::turn::Turn;
use crate::AcpConfig;
use crate::flush_timer::{FlushTimer, until};
use crate::options::Choices;
use crate::rpc::{self, Error, Id};
use crate::stats::Stats;
use crate::wire;

/// The flush interval for streamed text.
const PACE: Duration = Duration::from_millis(10);

/// The codes of runs whose agent could not be started, and whose agent exited without an answer.
const START_FAILED: &str = "start_failed";
const CRASHED: &str = "crashed";

/// A command of the client for a session.
#[derive(Debug)]
pub(crate) enum SessionCommand {
    Prompt {
        id: Id,
        prompt: Prompt,
    },
    /// Cancels the turn, or only the one of `request` if that is set.
    Cancel {
        request: Option<Value>,
    },
    /// The answer to an ask; `None` when the client refused the request.
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
    /// It is opened again; its history is replayed if `with_history`.
    Reopen {
        id: Id,
        with_history: bool,
    },
    /// Another session is to be forked from this one: its native id, unless it is running.
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
    pub(crate) journal: watch::Receiver<Option<Arc<dyn Journal>>>,
    pub(crate) outbound: LineSender,
    pub(crate) stats: Arc<Stats>,
    pub(crate) client: wire::ClientCapabilities,
}

impl Shared {
    pub(crate) async fn journal(&self) -> Arc<dyn Journal> {
        let mut journal = self.journal.clone();
        let opened = journal.wait_for(Option::is_some).await;
        let opened = opened.ok().and_then(|it| it.clone());
        opened.expect("its sender lives until the journal is open")
    }
}

/// A session as it is opened.
#[derive(Debug)]
pub(crate) struct SessionSetup {
    pub(crate) id: String,
    /// As in `linkspan run --engine`.
    pub(crate) engine: String,
    pub(crate) cwd: PathBuf,
    pub(crate) mcp_servers: Vec<McpServer>,
    pub(crate) resume: Resume,
}

pub(crate) struct Session {
    shared: Shared,
    /// As the client calls it.
    name: String,
    core: ClientSession,
    writer: AcpAgent,
    choices: Choices,
    offers: Offers,
    turn: Option<Turn>,
    asks: Asks,
    /// The last mode that the agent reported.
    agent_mode: Option<String>,
    pace: FlushTimer,
    lines: Vec<u8>,
    /// The end of a turn is among the lines.
    has_ended: bool,
}

/// What woke the loop.
enum Wakeup {
    Ordered(Option<SessionCommand>),
    Worker(Progress),
    /// The flush interval has passed.
    Waited,
}

impl Session {
    /// `name` is what the client calls it. Fails where the engine cannot be started at all.
    pub(crate) fn new(shared: Shared, opening: SessionSetup, name: &str) -> Result<Self, Error> {
        let SessionSetup {
            id,
            engine,
            cwd,
            mcp_servers,
            resume,
        } = opening;
        let config = &shared.config;
        let is_root = rustix::process::geteuid().is_root();
        // With it Claude Code lets root bypass the permissions, too.
        let is_boxed = std::env::var_os("IS_SANDBOX").is_some();
        let choices = Choices::of(&engine, is_root && !is_boxed);
        let writer = writer(&shared, name, &cwd);
        let core = ClientSession::new(ClientSessionConfig {
            id,
            engine,
            cwd,
            mcp_servers,
            resume,
            options: config.options.clone(),
            settings: config.settings.clone(),
            guard: config.guard.clone(),
            locks: config.locks.clone(),
            holder: "linkspan acp",
        });
        Ok(Self {
            core: core.map_err(|err| Error::internal(err.advice()))?,
            shared,
            name: name.to_owned(),
            writer,
            choices,
            offers: Offers::default(),
            turn: None,
            asks: Asks::default(),
            agent_mode: None,
            pace: FlushTimer::new(PACE),
            lines: Vec::new(),
            has_ended: false,
        })
    }

    /// It is one that is kept already.
    pub(crate) fn resumes(&mut self, log: SessionLog) {
        self.core.resumes(log);
    }

    /// The answer to a client that has opened the session.
    pub(crate) fn opened(&self, id: Option<&str>) -> wire::Opened {
        wire::Opened {
            session_id: id.map(str::to_owned),
            modes: Some(self.choices.modes(self.core.mode())),
            config_options: Some(self.config_options()),
            models: None,
        }
    }

    /// Works until the client closes the session or goes away.
    pub(crate) async fn run(mut self, mut orders: mpsc::Receiver<SessionCommand>) {
        let mut closing = None;
        loop {
            self.begin();
            self.send().await;
            let due = self.pace.due();
            let (core, mut fanout) = self.parts();
            let wakeup = tokio::select! {
                biased;
                order = orders.recv() => Wakeup::Ordered(order),
                progress = core.worker.step(&mut fanout) => Wakeup::Worker(progress),
                () = until(due) => Wakeup::Waited,
            };
            match wakeup {
                Wakeup::Ordered(None) => break,
                Wakeup::Ordered(Some(SessionCommand::Close { id })) => {
                    closing = Some(id);
                    break;
                }
                Wakeup::Ordered(Some(order)) => self.on_command(order).await,
                Wakeup::Worker(progress) => self.progressed(progress).await,
                Wakeup::Waited => self.flush_text(),
            }
        }
        self.leave(closing).await;
    }

    /// The session, and the sink of its events.
    fn parts(&mut self) -> (&mut ClientSession, Fanout<'_>) {
        let fanout = Fanout {
            writer: &mut self.writer,
            turn: &mut self.turn,
            lines: &mut self.lines,
            has_ended: &mut self.has_ended,
            stats: &self.shared.stats,
            agent_mode: &mut self.agent_mode,
        };
        (&mut self.core, fanout)
    }

    async fn progressed(&mut self, progress: Progress) {
        match progress {
            Progress::Stored { .. } => self.core.is_store_failing = false,
            Progress::StoreFailed(_) => self.core.is_store_failing = true,
            // No client asks for the newest session here.
            Progress::Found => (),
            Progress::LogLost(LogLost { error, .. }) => {
                self.core.worker.stop_logging();
                self.warn(hub::not_kept(&error));
            }
            Progress::Requests(requests) => {
                for request in requests {
                    self.requested(request).await;
                }
            }
            Progress::Started => self.on_started().await,
            Progress::NotStarted(err) => {
                self.fail(START_FAILED, &Error::internal(error_chain(&err)));
            }
            Progress::Events => {
                if self.pace.is_due() {
                    self.flush_text();
                }
                self.on_step();
            }
            Progress::Ended => {
                self.flush_text();
                self.on_step();
            }
            Progress::Gone(agent) | Progress::Busy(agent) => self.agent_gone(*agent),
        }
    }

    async fn requested(&mut self, request: Request) {
        match request {
            Request::Abort { .. } => self.cancel(None),
            Request::Leave { .. } => self.yield_session().await,
            Request::RemovePrompt { prompt, .. } => self.core.worker.log_mut().done(prompt),
            // The next owner of the session works on it.
            Request::Prompt { .. } | Request::Damaged { .. } => (),
        }
    }

    async fn on_command(&mut self, order: SessionCommand) {
        match order {
            SessionCommand::Prompt { id, prompt } => self.on_prompt(id, prompt).await,
            SessionCommand::Cancel { request } => self.cancel(request.as_ref()),
            SessionCommand::Answer { request, result } => self.answered(&request, result.as_ref()),
            SessionCommand::SetMode { id, mode } => self.set_mode(&id, &mode),
            SessionCommand::SetOption { id, option, value } => {
                self.set_option(&id, &option, &value)
            }
            SessionCommand::Reopen { id, with_history } => self.reopen(&id, with_history).await,
            // The caller may have stopped waiting.
            SessionCommand::Branch { begun } => _ = begun.send(self.branch()).ok(),
            SessionCommand::Close { .. } => (), // The loop ends with it.
        }
    }

    /// The agent has made progress.
    fn on_step(&mut self) {
        self.core.on_step();
        self.apply_offers();
        self.apply_mode();
        self.handle_asks();
    }

    fn agent_gone(&mut self, mut agent: Agent) {
        self.flush_text();
        let is_again = self.core.agent_gone(&mut agent);
        self.apply_mode();
        self.withdraw_asks();
        if is_again {
            return;
        }
        self.fail(
            CRASHED,
            &Error::internal("the agent ended before it answered"),
        );
    }

    /// Flushes pending text.
    fn flush_text(&mut self) {
        self.writer.flush(&mut self.lines);
        self.pace.record_flush();
    }

    fn update(&mut self, update: wire::SessionUpdate<'_>) {
        let update = wire::SessionNotification {
            session_id: &self.name,
            update,
        };
        let line = rpc::notification(wire::SESSION_UPDATE, &update);
        self.lines.extend(line);
    }

    /// A notice, for clients that want them.
    fn warn(&mut self, title: String) {
        if self.shared.client.session.notices.is_none() {
            return;
        }
        self.update(wire::SessionUpdate::Notice(wire::Notice {
            severity: "warning",
            title: Text::new(title),
            meta: None,
        }));
    }

    async fn send(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        // A client that has its answer may remove the session at once, which is busy until the end is stored.
        if std::mem::take(&mut self.has_ended) && !self.core.is_store_failing {
            self.core.is_store_failing = !self.core.worker.log_mut().flush().await;
        }
        let lines = std::mem::take(&mut self.lines);
        // The connection notices a closed pipe.
        self.shared.outbound.send(lines).await;
    }
}

/// A writer at its beginning.
fn writer(shared: &Shared, name: &str, cwd: &Path) -> AcpAgent {
    let client = formats::AcpClient {
        has_notices: shared.client.session.notices.is_some(),
        has_compactions: shared.client.session.compaction.is_some(),
    };
    let profile = shared.config.profile.as_deref();
    AcpAgent::new(name, &cwd.to_string_lossy(), profile, client)
}
