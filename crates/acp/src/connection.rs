//! The connection to the client: dispatches its messages to sessions.

mod initialize;
mod stored_sessions;

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use hub::SessionLog;
use model::error_chain;
use runner::Resume;
use runner::pipes::PipeLine;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::content;
use crate::rpc::{self, Error, Id, Message, Params};
use crate::session::{Session, SessionCommand, SessionSetup, Shared};
use crate::wire;

/// Capacity of a session's command queue.
const MAX_ORDERS: usize = 16;
/// Sessions of one connection.
const MAX_SESSIONS: usize = 64;
/// Time limit for closing all sessions, and again once the client no longer reads.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) struct Connection {
    shared: Shared,
    is_initialized: bool,
    sessions: HashMap<String, SessionHandle>,
    /// Closed sessions whose tasks have not finished yet.
    leaving: Vec<JoinHandle<()>>,
}

struct SessionHandle {
    orders: mpsc::Sender<SessionCommand>,
    task: JoinHandle<()>,
}

impl Connection {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared,
            is_initialized: false,
            sessions: HashMap::new(),
            leaving: Vec::new(),
        }
    }

    pub(crate) async fn run(
        mut self,
        mut inbound: mpsc::Receiver<PipeLine>,
        stop: impl Future<Output = ()>,
    ) {
        let outbound = self.shared.outbound.clone();
        let mut stop = pin!(stop);
        let is_hasty = loop {
            let next = async {
                match inbound.recv().await {
                    Some(line) => self.on_line(line).await,
                    None => return false,
                }
                true
            };
            // Do not let a client that stopped reading block shutdown.
            tokio::select! {
                is_open = next => if !is_open { break false },
                () = outbound.closed() => break true,
                () = &mut stop => break true,
            }
        };
        if is_hasty {
            outbound.flush_now();
        }
        self.leave().await;
    }

    /// Waits for all sessions to end.
    async fn leave(mut self) {
        let mut tasks = std::mem::take(&mut self.leaving);
        tasks.extend(self.sessions.drain().map(|it| it.1.task));
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let mut all = pin!(async {
            for task in tasks {
                // A panicked task has no result.
                task.await.ok();
            }
        });
        if timeout(PATIENCE, &mut all).await.is_ok() {
            return;
        }
        self.shared.outbound.flush_now();
        if timeout(PATIENCE, all).await.is_err() {
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
    }

    async fn on_line(&mut self, line: PipeLine) {
        match line {
            PipeLine::Line(line) => self.line(&line).await,
            PipeLine::TooLong(length) => {
                let message = format!("the message has {length} bytes, which is too long");
                let error = Error::new(rpc::INVALID_REQUEST, message);
                self.send(rpc::refusal(None, &error)).await;
            }
        }
    }

    async fn send(&self, lines: Vec<u8>) {
        // The loop ends when the client has closed the pipe.
        self.shared.outbound.send(lines).await;
    }

    async fn line(&mut self, line: &[u8]) {
        match Message::read(line) {
            Ok(None) => (),
            Ok(Some(Message::Request { id, method, params })) => {
                let answer = self.request(&id, &method, params).await;
                let answer = answer.unwrap_or_else(|err| Some(rpc::refusal(Some(&id), &err)));
                if let Some(answer) = answer {
                    self.send(answer).await;
                }
            }
            Ok(Some(Message::Notification { method, params })) => {
                self.on_notification(&method, params).await;
            }
            Ok(Some(Message::Answer { id, result })) => {
                // Neither a method nor a result: no answer to us, and its sender may wait for one.
                if result.as_ref().is_ok_and(|it| it.is_missing()) {
                    let refusal = rpc::refusal(Some(&id), &Error::no_method());
                    return self.send(refusal).await;
                }
                let result = result.and_then(Params::read).ok();
                self.on_answer(&id.text(), result).await;
            }
            Err((id, error)) => self.send(rpc::refusal(id.as_ref(), &error)).await,
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
                let done = self.authenticated(&it.method_id)?;
                Ok(Some(rpc::result(id, &done)))
            }
            "session/new" => self.new_session(id, params.read()?).await,
            "session/load" => self.old_session(id, params.read()?, true).await,
            "session/resume" => self.old_session(id, params.read()?, false).await,
            "session/fork" => self.fork(id, params.read()?).await,
            "session/list" => {
                let list = stored_sessions::list(&self.shared, params.read()?).await?;
                Ok(Some(rpc::result(id, &list)))
            }
            "session/prompt" => {
                let it: wire::Prompt<'_> = params.read()?;
                let (id, prompt) = (id.clone(), content::prompt(it.prompt)?);
                let order = SessionCommand::Prompt { id, prompt };
                self.order(&it.session_id, order).await
            }
            "session/set_mode" => {
                let it: wire::SetMode = params.read()?;
                let (id, mode) = (id.clone(), it.mode_id);
                let order = SessionCommand::SetMode { id, mode };
                self.order(&it.session_id, order).await
            }
            "session/set_config_option" => {
                let it: wire::SetConfigOption = params.read()?;
                let order = SessionCommand::SetOption {
                    id: id.clone(),
                    option: it.config_id,
                    value: it.value,
                };
                self.order(&it.session_id, order).await
            }
            "session/close" => {
                let it: wire::OfSession = params.read()?;
                let order = SessionCommand::Close { id: id.clone() };
                let ordered = self.order(&it.session_id, order).await;
                // No later command may reach it; the task ends by itself and answers the request.
                if let Some(handle) = self.sessions.remove(&it.session_id) {
                    self.leaves(handle.task);
                }
                ordered
            }
            "session/delete" => {
                let it: wire::OfSession = params.read()?;
                let open = self.sessions.remove(&it.session_id);
                let shared = self.shared.clone();
                let task = stored_sessions::delete(shared, id.clone(), it.session_id, open);
                // Its agent has to exit first: the other sessions must not wait for that.
                self.leaves(tokio::spawn(task));
                Ok(None)
            }
            _ => {
                let message = format!("unknown method `{}`", display_safe(method));
                Err(Error::new(rpc::METHOD_NOT_FOUND, message))
            }
        }
    }

    /// A notification has no answer, so a bad one is ignored.
    async fn on_notification(&mut self, method: &str, params: Params<'_>) {
        match method {
            "session/cancel" => {
                if let Ok(wire::OfSession { session_id }) = params.read() {
                    // A session that is not there has nothing to cancel.
                    let order = SessionCommand::Cancel { request: None };
                    self.order(&session_id, order).await.ok();
                }
            }
            "$/cancel_request" => {
                let Ok(wire::CancelRequest { request_id }) = params.read() else {
                    return;
                };
                // The session that handles it knows the id.
                for handle in self.sessions.values() {
                    let request = Some(request_id.clone());
                    let cancel = SessionCommand::Cancel { request };
                    handle.orders.send(cancel).await.ok();
                }
            }
            _ => (),
        }
    }

    /// Its end is waited for, too.
    fn leaves(&mut self, task: JoinHandle<()>) {
        // A client may open and close sessions for days: those that have ended need no handle.
        self.leaving.retain(|it| !it.is_finished());
        self.leaving.push(task);
    }

    async fn on_answer(&mut self, id: &str, result: Option<Value>) {
        // The ids of our requests begin with the name of their session.
        if let Some((session, request)) = id.split_once('/') {
            let request = request.to_owned();
            // Ignore answers to unknown requests.
            let order = SessionCommand::Answer { request, result };
            self.order(session, order).await.ok();
        }
    }

    /// Passes an order on; the session answers it.
    async fn order(
        &mut self,
        session: &str,
        order: SessionCommand,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(handle) = self.sessions.get(session) else {
            return Err(no_session(session));
        };
        if handle.orders.send(order).await.is_err() {
            self.sessions.remove(session);
            return Err(no_session(session));
        }
        Ok(None)
    }

    async fn new_session(
        &mut self,
        id: &Id,
        it: wire::NewSession,
    ) -> Result<Option<Vec<u8>>, Error> {
        let opening = SessionSetup {
            id: runner::new_id(),
            engine: self.shared.config.engine.clone(),
            cwd: directory(&it.cwd)?.to_owned(),
            mcp_servers: content::servers(it.mcp_servers),
            resume: Resume::Fresh,
        };
        self.open(id, opening).await
    }

    /// Opens a session. The response is sent before any update.
    async fn open(&mut self, id: &Id, opening: SessionSetup) -> Result<Option<Vec<u8>>, Error> {
        self.make_room()?;
        let name = opening.id.clone();
        let session = Session::new(self.shared.clone(), opening, &name)?;
        let answer = rpc::result(id, &session.opened(Some(&name)));
        self.send(answer).await;
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
        self.sessions.insert(name, SessionHandle { orders, task });
    }

    async fn old_session(
        &mut self,
        id: &Id,
        it: wire::OldSession,
        with_history: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        directory(&it.cwd)?;
        let reopen = SessionCommand::Reopen {
            id: id.clone(),
            with_history,
        };
        self.sessions.retain(|_, it| !it.task.is_finished());
        if self.sessions.contains_key(&it.session_id) {
            return self.order(&it.session_id, reopen).await;
        }
        self.make_room()?;
        let stored = stored_sessions::find(&self.shared, &it.session_id).await?;
        let resume = match &stored.native {
            Some(native) => Resume::Session(native.to_string()),
            None => Resume::Fresh,
        };
        let opening = SessionSetup {
            id: stored.id.to_string(),
            engine: stored.engine,
            cwd: it.cwd,
            mcp_servers: content::servers(it.mcp_servers),
            resume,
        };
        // It is called as the client calls it, even by the agent's own name for it. What cannot be
        // started is not taken from others either.
        let mut session = Session::new(self.shared.clone(), opening, &it.session_id)?;
        let opened = SessionLog::open(self.shared.journal().await, &stored.id).await;
        session.resumes(opened.map_err(|err| match err {
            journal::Error::Held { .. } => {
                Error::internal(format!("session `{}` is in use", stored.id))
            }
            err => Error::internal(error_chain(&err)),
        })?);
        // The session answers by itself: ACP wants the whole history before the response.
        self.start(it.session_id.clone(), session);
        self.order(&it.session_id, reopen).await
    }

    async fn fork(&mut self, id: &Id, it: wire::OldSession) -> Result<Option<Vec<u8>>, Error> {
        directory(&it.cwd)?;
        // One that was not prompted yet is open, and not kept.
        let mut native = self.branch(&it.session_id).await?;
        let stored = stored_sessions::find(&self.shared, &it.session_id).await?;
        if native.is_none() {
            native = self.branch(stored.id.as_str()).await?;
        }
        let native = native.or_else(|| stored.native.map(|it| it.to_string()));
        let native = native.ok_or_else(|| nothing_yet(stored.id.as_str()))?;
        let opening = SessionSetup {
            id: runner::new_id(),
            resume: Resume::Fork(native),
            engine: stored.engine,
            cwd: it.cwd,
            mcp_servers: content::servers(it.mcp_servers),
        };
        self.open(id, opening).await
    }

    /// What another session can begin with, if this one is open here.
    async fn branch(&mut self, name: &str) -> Result<Option<String>, Error> {
        if !self.sessions.contains_key(name) {
            return Ok(None);
        }
        let (begun, native) = oneshot::channel();
        self.order(name, SessionCommand::Branch { begun }).await?;
        let native = native.await.map_err(|_| no_session(name))?;
        native.map(Some)
    }
}

/// A session cannot be forked while it is written.
pub(crate) fn nothing_yet(session: &str) -> Error {
    Error::internal(format!("session `{session}` has nothing to begin with yet"))
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
    let message = format!("no session matches `{}`", display_safe(id));
    Error::new(rpc::NOT_FOUND, message)
}

/// Foreign text that is safe in our messages.
fn display_safe(word: &str) -> String {
    word.chars().take(80).flat_map(char::escape_debug).collect()
}
