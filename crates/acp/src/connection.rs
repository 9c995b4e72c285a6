//! The client's side of the connection: what it says, and to which session.

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use hub::{Recorder, chain};
use journal::{Place, Session as Stored, SessionQuery};
use model::{SessionId, Timestamp};
use runner::Resume;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::content;
use crate::pipes::Heard;
use crate::recording::Recording;
use crate::rpc::{self, Error, Id, Message, Params};
use crate::session::{Opening, Order, Session, Shared};
use crate::wire::{self, Empty};

/// Orders of one session that may wait.
const MAX_ORDERS: usize = 16;
/// Sessions of one connection.
const MAX_SESSIONS: usize = 64;
/// Sessions told at once, and looked at for them.
const PAGE: u32 = 50;
/// What all sessions together may take to leave.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) struct Connection {
    shared: Shared,
    is_initialized: bool,
    sessions: HashMap<String, Handle>,
    /// Those that were closed and are not gone yet.
    leaving: Vec<JoinHandle<()>>,
    /// Which session works on a prompt, by the id of the request.
    prompts: HashMap<String, String>,
}

struct Handle {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

/// How an old session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Load,
    Resume,
}

impl Connection {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared,
            is_initialized: false,
            sessions: HashMap::new(),
            leaving: Vec::new(),
            prompts: HashMap::new(),
        }
    }

    pub(crate) async fn run(
        mut self,
        mut heard: mpsc::Receiver<Heard>,
        stop: impl Future<Output = ()>,
    ) {
        let said = self.shared.said.clone();
        let mut stop = pin!(stop);
        loop {
            let heard = tokio::select! {
                heard = heard.recv() => heard,
                () = said.closed() => None,
                () = &mut stop => None,
            };
            match heard {
                None => break,
                Some(Heard::Line(line)) => self.line(&line).await,
                Some(Heard::TooLong(length)) => {
                    let message = format!("the message has {length} bytes, which is too long");
                    let error = Error::new(rpc::INVALID_REQUEST, message);
                    self.say(rpc::refusal(None, &error)).await;
                }
            }
        }
        let mut tasks = std::mem::take(&mut self.leaving);
        tasks.extend(self.sessions.drain().map(|it| it.1.task));
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in tasks {
                // One that panicked has nothing more to say.
                task.await.ok();
            }
        };
        if timeout(PATIENCE, all).await.is_err() {
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
    }

    async fn say(&self, lines: Vec<u8>) {
        // That nobody listens any more ends the loop.
        self.shared.said.say(lines).await;
    }

    async fn line(&mut self, line: &[u8]) {
        match Message::read(line) {
            Ok(None) => (),
            Ok(Some(Message::Request { id, method, params })) => {
                let answer = self.request(&id, &method, params).await;
                let answer = answer.unwrap_or_else(|err| Some(rpc::refusal(Some(&id), &err)));
                if let Some(answer) = answer {
                    self.say(answer).await;
                }
            }
            Ok(Some(Message::Notification { method, params })) => {
                self.notified(&method, params).await;
            }
            Ok(Some(Message::Answer { id, result })) => self.answered(&id, result).await,
            Err((id, error)) => self.say(rpc::refusal(id.as_ref(), &error)).await,
        }
    }

    /// Answers a request, unless a session will.
    async fn request(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        if !self.is_initialized && method != "initialize" {
            let message = "say `initialize` first";
            return Err(Error::new(rpc::INVALID_REQUEST, message));
        }
        match method {
            "initialize" => {
                let it: wire::Initialize = params.read()?;
                self.is_initialized = true;
                self.shared.client = it.client_capabilities;
                Ok(Some(rpc::result(id, &self.initialized())))
            }
            "authenticate" => {
                let it: wire::Authenticate = params.read()?;
                match self.login().is_some_and(|login| login.id == it.method_id) {
                    true => Ok(Some(rpc::result(id, &Empty {}))),
                    false => Err(Error::params(format!("unknown method `{}`", it.method_id))),
                }
            }
            "session/new" => self.new_session(id, params.read()?).await,
            "session/load" => self.old_session(id, params.read()?, Way::Load).await,
            "session/resume" => self.old_session(id, params.read()?, Way::Resume).await,
            "session/fork" => self.fork(id, params.read()?).await,
            "session/list" => {
                let list = self.list(params.read()?).await?;
                Ok(Some(rpc::result(id, &list)))
            }
            "session/prompt" => {
                let it: wire::Prompt = params.read()?;
                let prompt = content::prompt(it.prompt)?;
                let order = Order::Prompt {
                    id: id.clone(),
                    prompt,
                };
                self.prompts
                    .retain(|_, session| self.sessions.contains_key(session));
                self.prompts
                    .insert(id.json().to_owned(), it.session_id.clone());
                self.order(&it.session_id, order).await
            }
            "session/set_mode" => {
                let it: wire::SetMode = params.read()?;
                let order = Order::SetMode {
                    id: id.clone(),
                    mode: it.mode_id,
                };
                self.order(&it.session_id, order).await
            }
            "session/set_config_option" => {
                let it: wire::SetConfigOption = params.read()?;
                let order = Order::SetOption {
                    id: id.clone(),
                    option: it.config_id,
                    value: it.value,
                };
                self.order(&it.session_id, order).await
            }
            "session/close" => {
                let it: wire::OfSession = params.read()?;
                let order = Order::Close { id: id.clone() };
                let ordered = self.order(&it.session_id, order).await;
                if let Some(handle) = self.sessions.remove(&it.session_id) {
                    self.leaving.retain(|it| !it.is_finished());
                    self.leaving.push(handle.task);
                }
                ordered
            }
            "session/delete" => {
                let it: wire::OfSession = params.read()?;
                self.delete(&it.session_id).await?;
                Ok(Some(rpc::result(id, &Empty {})))
            }
            _ => {
                let message = format!("unknown method `{}`", shown(method));
                Err(Error::new(rpc::METHOD_NOT_FOUND, message))
            }
        }
    }

    async fn notified(&mut self, method: &str, params: Params<'_>) {
        let session = match method {
            "session/cancel" => quiet::<wire::OfSession>(params).map(|it| it.session_id),
            "$/cancel_request" => quiet::<wire::CancelRequest>(params)
                .and_then(|it| self.prompts.get(&it.request_id.to_string()).cloned()),
            _ => None,
        };
        if let Some(session) = session {
            // A session that is not there has nothing to cancel.
            self.order(&session, Order::Cancel).await.ok();
        }
    }

    async fn answered(&mut self, id: &str, result: Option<Value>) {
        if let Some((session, ask)) = id.split_once('/') {
            let ask = ask.to_owned();
            // Nobody waits for the answer to what nobody asked.
            let order = Order::Answer { ask, result };
            self.order(session, order).await.ok();
        }
    }

    /// Passes an order on; the session answers it.
    async fn order(&mut self, session: &str, order: Order) -> Result<Option<Vec<u8>>, Error> {
        let Some(handle) = self.sessions.get(session) else {
            return Err(no_session(session));
        };
        if handle.orders.send(order).await.is_err() {
            self.sessions.remove(session);
            return Err(no_session(session));
        }
        Ok(None)
    }

    fn initialized(&self) -> wire::Initialized<'static> {
        let engine = self.family();
        let is_agent = engine != "replay";
        let yes = || Some(Empty {});
        wire::Initialized {
            protocol_version: wire::VERSION,
            agent_capabilities: wire::AgentCapabilities {
                load_session: true,
                prompt_capabilities: wire::PromptCapabilities {
                    image: is_agent,
                    audio: false,
                    embedded_context: true,
                },
                mcp_capabilities: wire::McpCapabilities {
                    http: matches!(engine, "claude" | "codex"),
                    sse: engine == "claude",
                },
                session_capabilities: wire::SessionCapabilities {
                    list: yes(),
                    resume: yes(),
                    fork: runner::engines::find(engine)
                        .filter(|it| it.can.fork)
                        .and_then(|_| yes()),
                    close: yes(),
                    delete: yes(),
                },
            },
            auth_methods: self.login().into_iter().collect(),
            agent_info: wire::AgentInfo {
                name: "linkspan",
                title: format!("linkspan ({})", self.shared.config.engine),
                version: self.shared.config.version,
            },
        }
    }

    /// The engine without what follows its colon.
    fn family(&self) -> &str {
        let engine = self.shared.config.engine.split(':').next();
        engine.unwrap_or_default()
    }

    /// How to log in to the agent: by itself it does in a terminal.
    fn login(&self) -> Option<wire::AuthMethod<'static>> {
        let (id, command) = match self.family() {
            "claude" => ("claude-login", "claude /login"),
            "codex" => ("codex-login", "codex login"),
            "gemini" => ("gemini-login", "gemini"),
            "opencode" => ("opencode-login", "opencode auth login"),
            _ => return None,
        };
        Some(wire::AuthMethod {
            id,
            name: format!("Log in with {}", self.family()),
            description: format!("run `{command}` in a terminal, then try again"),
        })
    }

    async fn new_session(
        &mut self,
        id: &Id,
        it: wire::NewSession,
    ) -> Result<Option<Vec<u8>>, Error> {
        let opening = Opening {
            id: runner::new_id(),
            engine: self.shared.config.engine.clone(),
            cwd: directory(&it.cwd)?.to_owned(),
            mcp_servers: content::servers(it.mcp_servers),
            resume: Resume::Fresh,
            recording: Recording::early(),
        };
        self.open(id, opening).await
    }

    /// Opens a session that the client does not know yet. It is answered before anything is told.
    async fn open(&mut self, id: &Id, opening: Opening) -> Result<Option<Vec<u8>>, Error> {
        self.make_room()?;
        let name = opening.id.clone();
        let session = Session::new(self.shared.clone(), opening, &name)?;
        let answer = rpc::result(id, &session.opened(Some(&name)));
        self.say(answer).await;
        self.start(name, session);
        Ok(None)
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.sessions.retain(|_, it| !it.task.is_finished());
        if self.sessions.len() < MAX_SESSIONS {
            return Ok(());
        }
        let message = format!("{MAX_SESSIONS} sessions are open; close one");
        Err(Error::internal(message))
    }

    fn start(&mut self, name: String, session: Session) {
        let (orders, inbox) = mpsc::channel(MAX_ORDERS);
        let task = tokio::spawn(session.run(inbox));
        self.sessions.insert(name, Handle { orders, task });
    }

    async fn old_session(
        &mut self,
        id: &Id,
        it: wire::OldSession,
        way: Way,
    ) -> Result<Option<Vec<u8>>, Error> {
        directory(&it.cwd)?;
        self.sessions.retain(|_, it| !it.task.is_finished());
        if self.sessions.contains_key(&it.session_id) {
            let order = Order::Reopen {
                id: id.clone(),
                is_told: way == Way::Load,
            };
            return self.order(&it.session_id, order).await;
        }
        self.make_room()?;
        let stored = self.find(&it.session_id).await?;
        let (journal, owner) = (self.shared.journal().await, hub::own_name());
        let opened = Recorder::open(journal, &stored.id, &owner).await;
        let recorder = opened.map_err(|err| match err {
            journal::Error::Held { .. } => {
                Error::internal(format!("session `{}` is in use", stored.id))
            }
            err => Error::internal(chain(&err)),
        })?;
        let resume = match &stored.native {
            Some(native) => Resume::Session(native.to_string()),
            None => Resume::Fresh,
        };
        let opening = Opening {
            id: stored.id.to_string(),
            engine: stored.engine,
            cwd: it.cwd,
            mcp_servers: content::servers(it.mcp_servers),
            resume,
            recording: Recording::open(recorder),
        };
        // It is called as the client calls it, even by the agent's own name for it.
        let session = Session::new(self.shared.clone(), opening, &it.session_id)?;
        self.start(it.session_id.clone(), session);
        let order = Order::Reopen {
            id: id.clone(),
            is_told: way == Way::Load,
        };
        self.order(&it.session_id, order).await
    }

    async fn fork(&mut self, id: &Id, it: wire::OldSession) -> Result<Option<Vec<u8>>, Error> {
        directory(&it.cwd)?;
        let stored = self.find(&it.session_id).await?;
        let Some(native) = &stored.native else {
            let message = format!("session `{}` has nothing to begin with yet", stored.id);
            return Err(Error::internal(message));
        };
        let opening = Opening {
            id: runner::new_id(),
            resume: Resume::Fork(native.to_string()),
            engine: stored.engine,
            cwd: it.cwd,
            mcp_servers: content::servers(it.mcp_servers),
            recording: Recording::early(),
        };
        self.open(id, opening).await
    }

    /// A session by our id or by the agent's.
    async fn find(&self, id: &str) -> Result<Stored, Error> {
        let journal = self.shared.journal().await;
        let wanted = SessionId::new(id);
        let failed = |err: journal::Error| Error::internal(chain(&err));
        if let Some(found) = journal.find_session(&wanted).await.map_err(failed)? {
            return Ok(found);
        }
        let found = journal.find_native(&wanted).await.map_err(failed)?;
        found.ok_or_else(|| no_session(id))
    }

    /// Removes a session with all that is in it; one that is open here is closed first.
    async fn delete(&mut self, id: &str) -> Result<(), Error> {
        if let Some(Handle { orders, task }) = self.sessions.remove(id) {
            drop(orders);
            // One that panicked is gone as well.
            task.await.ok();
        }
        let stored = self.find(id).await?;
        let owner = journal::Owner::new(hub::own_name());
        let journal = self.shared.journal().await;
        let removed = hub::remove(&*journal, &stored.id, &owner).await;
        removed.map_err(|err| Error::internal(chain(&err)))
    }

    async fn list(&self, it: wire::ListSessions) -> Result<wire::SessionList, Error> {
        let query = SessionQuery {
            engine: Some(self.shared.config.engine.clone()),
            ..SessionQuery::default()
        };
        let journal = self.shared.journal().await;
        let mut after = it.cursor.as_deref().map(place).transpose()?;
        let mut sessions = Vec::new();
        loop {
            let page = journal.list(query.clone(), after, PAGE).await;
            let page = page.map_err(|err| Error::internal(chain(&err)))?;
            let here = page.sessions.into_iter().filter(|stored| {
                let cwd = stored.cwd.as_deref();
                cwd.is_some() && (it.cwd.is_none() || it.cwd.as_deref() == cwd)
            });
            sessions.extend(here.map(info));
            after = page.next;
            if after.is_none() || sessions.len() >= PAGE as usize {
                return Ok(wire::SessionList {
                    sessions,
                    next_cursor: after.map(|it| cursor(&it)),
                });
            }
        }
    }
}

fn info(stored: Stored) -> wire::SessionInfo {
    wire::SessionInfo {
        session_id: stored.id.to_string(),
        cwd: stored.cwd.unwrap_or_default(),
        title: stored.title.filter(|it| !it.is_empty()),
        updated_at: stored.active_at.to_string(),
    }
}

fn cursor(place: &Place) -> String {
    format!("{} {}", place.active_at.millis(), place.id)
}

fn place(cursor: &str) -> Result<Place, Error> {
    let parts = cursor.split_once(' ');
    let parts = parts.and_then(|(at, id)| Some((at.parse().ok()?, id)));
    let (at, id) = parts.ok_or_else(|| Error::params("the cursor is none of ours"))?;
    Ok(Place {
        active_at: Timestamp::from_millis(at),
        id: SessionId::new(id.to_owned()),
    })
}

/// Where an agent may work.
fn directory(cwd: &Path) -> Result<&Path, Error> {
    let shown = cwd.display();
    if !cwd.is_absolute() {
        return Err(Error::params(format!("cwd `{shown}` is not absolute")));
    }
    match cwd.is_dir() {
        true => Ok(cwd),
        false => Err(Error::params(format!("cwd `{shown}` is no directory"))),
    }
}

fn no_session(id: &str) -> Error {
    let message = format!("no session is called `{}`", shown(id));
    Error::new(rpc::NOT_FOUND, message)
}

/// Somebody else's word in a message of ours.
fn shown(word: &str) -> String {
    word.chars().take(80).flat_map(char::escape_debug).collect()
}

/// Notifications have no answer, so what is wrong with one is nobody's business.
fn quiet<T: DeserializeOwned>(params: Params<'_>) -> Option<T> {
    params.read().ok()
}
