//! The controls of the bridge: those of its existing clients, and ours.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use formats::WriterConfig;
use hub::{Cursor, Export};
use journal::{Session, SessionQuery, State};
use model::Timestamp;
use runner::engines::canonical_name;
use serde_json::{Value, json};

use super::controls::{Control, ControlReply, PromptedSession};
use super::requests;
use super::submit::{directory, submit};
use super::table::{ControlInfo, Work};
use crate::api::{asks, sessions};
use crate::bridge::{DEFAULT_ENGINE, MAX_PROJECTS, Resume};
use crate::error::{ApiError, Result};
use crate::state::App;
use crate::tokens::Caller;
use crate::{rights, roots};

/// Bytes of a session that `thread` shows; more is read by cursor.
const MAX_THREAD: usize = 4 << 20;
/// Sessions in `history`.
const MAX_HISTORY: u32 = 500;
const USUAL_HISTORY: u32 = 20;
/// Bytes of a project.
const MAX_PROJECT: usize = 64 << 10;

/// Checks that the caller may use this control.
pub(super) fn check(app: &App, caller: &Caller, control: &Control) -> Result<()> {
    let ControlInfo { name, role, .. } = control.verb;
    if caller.role < *role {
        return Err(rights::too_low(caller, *role, &format!("for `{name}`")));
    }
    // Checked with each control: a token may be revoked while its socket is open.
    match app.knows(caller) {
        true => Ok(()),
        false => Err(ApiError::forbidden("the token was revoked")),
    }
}

/// The sender of a control.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) caller: Caller,
    /// The number of its connection.
    pub(super) connection: u64,
    /// The session it gave its last prompt to.
    pub(super) last: Option<String>,
}

/// Works on a control that was checked.
pub(super) async fn run_control(
    app: Arc<App>,
    peer: Peer,
    work: Work,
    control: Control,
) -> ControlReply {
    match dispatch(&app, &peer, work, &control).await {
        Ok(fields) => {
            let session = fields["sessionId"]
                .as_str()
                .filter(|_| work == Work::Submit);
            ControlReply {
                prompted: session.map(|it| PromptedSession {
                    session: it.to_owned(),
                    after: fields["cursor"].as_u64().unwrap_or_default(),
                }),
                reply: control.reply(fields),
            }
        }
        Err(err) => ControlReply {
            prompted: None,
            reply: control.failed(&err),
        },
    }
}

async fn dispatch(app: &Arc<App>, peer: &Peer, work: Work, control: &Control) -> Result<Value> {
    let caller = &peer.caller;
    match work {
        Work::Submit => submit(app, peer, control).await,
        Work::Abort => abort(app, peer.last.clone(), control).await,
        Work::RemoveQueued => remove_queued(app, control).await,
        Work::Settle => settle(app, control).await,
        Work::SelectProvider => select(app, caller, control),
        Work::ResumeSession => resume(app, caller, control).await,
        Work::Projects => {
            control.read::<requests::Nothing>()?;
            Ok(projects(app))
        }
        Work::SaveProject => save(app, caller, control).await,
        Work::DeleteProject => {
            let requests::DeleteProject { id } = control.read()?;
            app.bridge.delete(&id);
            Ok(projects(app))
        }
        Work::Sessions => {
            let page = sessions::page(app, control.read()?).await?;
            Ok(json!(page))
        }
        Work::Asks => {
            control.read::<requests::Nothing>()?;
            let asks = asks::open(app).await?;
            Ok(json!(asks))
        }
        Work::Engines => {
            control.read::<requests::Nothing>()?;
            let engines = app.engines.list().await;
            Ok(json!(*engines))
        }
        Work::History => history(app, control).await,
        Work::Thread => thread(app, control).await,
        Work::Status => status(app, caller, control).await,
        Work::Echo => echo(control),
    }
}

async fn abort(app: &App, last: Option<String>, control: &Control) -> Result<Value> {
    let requests::Abort {
        session_id,
        thread_doc_id,
    } = control.read()?;
    let named = session_id.or(thread_doc_id);
    let session = match (named.as_deref(), last) {
        (Some(id), last) => match (app.hub.find(id).await, last) {
            // The client's own name for the thread it spoke to last.
            (Err(hub::Error::NoSession(_)), Some(last)) => app.hub.find(&last).await?,
            (found, _) => found?,
        },
        (None, Some(last)) => app.hub.find(&last).await?,
        (None, None) => only_running(app).await?,
    };
    let aborted = app.hub.abort(&session.id).await?;
    Ok(json!({ "sessionId": session.id.as_str(), "aborted": aborted }))
}

async fn only_running(app: &App) -> Result<Session> {
    let mut running = Vec::new();
    for state in [State::Starting, State::Running, State::Waiting] {
        let query = SessionQuery {
            state: Some(state),
            ..SessionQuery::default()
        };
        // Two are enough to know that there are several.
        running.extend(app.hub.journal().list(query, None, 2).await?.sessions);
    }
    match (running.pop(), running.is_empty()) {
        (Some(session), true) => Ok(session),
        (Some(_), false) => {
            let message = "several sessions run: name one with `sessionId`";
            Err(ApiError::bad(message))
        }
        (None, _) => Err(ApiError::conflict("nothing_runs", "no session runs")),
    }
}

async fn remove_queued(app: &App, control: &Control) -> Result<Value> {
    let requests::RemoveQueued {
        session_id: id,
        number,
    } = control.read()?;
    sessions::remove(app, &id, number).await?;
    Ok(json!({ "sessionId": id, "number": number }))
}

async fn settle(app: &App, control: &Control) -> Result<Value> {
    let (requests::Settle { ask_id: id }, reply) = control.read_both::<_, asks::AskReply>()?;
    let decision = reply.decision.clone();
    asks::answer_ask(app, &id, reply).await?;
    Ok(json!({ "askId": id, "decision": decision }))
}

/// The provider of later prompts is named with the same rights as that of a prompt, and for the
/// caller's own token alone.
fn select(app: &App, caller: &Caller, control: &Control) -> Result<Value> {
    let requests::SelectProvider { provider } = control.read()?;
    let provider = canonical_name(&provider).to_owned();
    rights::check_engine(app, caller, &provider)?;
    runner::engines::select(&provider, app.engines.settings())?;
    app.bridge.select(caller, provider.clone());
    Ok(json!({ "provider": provider }))
}

async fn resume(app: &App, caller: &Caller, control: &Control) -> Result<Value> {
    let requests::ResumeSession {
        enabled,
        provider,
        cwd,
        session_id: session,
    } = control.read()?;
    let engine = canonical_name(provider.as_deref().unwrap_or(DEFAULT_ENGINE));
    // Stored for all tokens, so it is checked like a prompt with this engine in this directory.
    rights::check_engine(app, caller, engine)?;
    let cwd = cwd.as_deref();
    roots::check(app, caller, Path::new(cwd.unwrap_or("."))).await?;
    let cwd = directory(cwd);
    let resume = enabled.then(|| Resume {
        engine: engine.to_owned(),
        cwd: cwd.clone(),
        session: session.clone(),
    });
    app.bridge.set_resume(engine, &cwd, resume);
    Ok(json!({ "enabled": enabled, "provider": engine, "cwd": cwd, "sessionId": session }))
}

fn projects(app: &App) -> Value {
    json!({ "items": app.bridge.projects() })
}

async fn save(app: &App, caller: &Caller, control: &Control) -> Result<Value> {
    let requests::SaveProject { mut project } = control.read()?;
    let dir = project.get("workingDir").and_then(Value::as_str);
    let dir = dir.ok_or_else(|| ApiError::bad("a project has a `workingDir`"))?;
    // A project opens its directory to other tokens, so the caller must be allowed there.
    roots::check(app, caller, Path::new(dir)).await?;
    if Value::from(project.clone()).to_string().len() > MAX_PROJECT {
        let message = format!("a project may have {MAX_PROJECT} bytes");
        return Err(ApiError::bad(message));
    }
    let id = project.get("id").and_then(Value::as_str);
    let id = id.map_or_else(runner::new_id, str::to_owned);
    project.insert("id".to_owned(), id.as_str().into());
    match app.bridge.save(&id, project) {
        true => Ok(projects(app)),
        false => Err(ApiError::bad(format!("{MAX_PROJECTS} projects are kept"))),
    }
}

async fn history(app: &App, control: &Control) -> Result<Value> {
    let requests::History { limit, .. } = control.read()?;
    let limit = limit.unwrap_or(USUAL_HISTORY).clamp(1, MAX_HISTORY);
    let query = SessionQuery::default();
    let listing = app.hub.journal().list(query, None, limit).await?;
    // Old apps expect `path`, the file of a session; the journal has none to name.
    let items = listing.sessions.into_iter().map(|it| {
        json!({
            "id": it.id.as_str(), "resumeId": it.native.as_ref().map(|it| it.as_str()),
            "provider": it.engine, "path": null, "mtime": it.active_at.millis(),
            "title": it.title, "snippet": it.title, "cwd": it.cwd, "head": it.head,
        })
    });
    let items: Vec<Value> = items.collect();
    Ok(json!({ "items": items }))
}

async fn thread(app: &App, control: &Control) -> Result<Value> {
    let requests::Thread { id, .. } = control.read()?;
    let session = app.hub.find(&id).await?;
    let config = WriterConfig {
        served: Some(app.served(None)),
        ..WriterConfig::default()
    };
    let journal = Arc::clone(app.hub.journal());
    let all = Cursor::default();
    let mut export = Export::new(journal, &session, super::DEFAULT_FORMAT, &config, all, None)?;
    let mut items: Vec<Value> = Vec::new();
    let mut n_bytes = 0;
    let mut is_whole = true;
    while let Some(piece) = export.next().await? {
        n_bytes += piece.len();
        if n_bytes > MAX_THREAD {
            is_whole = false;
            break;
        }
        let lines = piece.split(|it| *it == b'\n');
        items.extend(lines.filter_map(|it| serde_json::from_slice::<Value>(it).ok()));
    }
    let thread = json!({
        "title": session.title, "items": items, "is_whole": is_whole,
        "resume_id": session.native.as_ref().map(|it| it.as_str()),
        "started_ts": session.created_at.millis(), "cursor": session.head,
    });
    Ok(json!({ "id": session.id.as_str(), "thread": thread }))
}

async fn status(app: &App, caller: &Caller, control: &Control) -> Result<Value> {
    control.read::<requests::Nothing>()?;
    let journal = app.hub.journal();
    let listing = journal.list(SessionQuery::default(), None, 1).await?;
    let last = listing.sessions.first().map(|it| it.id.to_string());
    let running = journal.open_runs(None).await?.len();
    Ok(json!({
        "bind": app.bind, "version": env!("CARGO_PKG_VERSION"),
        "provider": app.bridge.provider(caller), "running": running,
        "clients": app.metrics.n_followers(), "last_thread_id": last,
        "trouble": app.hub.trouble(), "uptime": app.began.elapsed().as_secs(),
    }))
}

fn echo(control: &Control) -> Result<Value> {
    let requests::Echo { tag, payload } = control.read()?;
    let ts = Timestamp::from(SystemTime::now()).millis();
    Ok(json!({ "ts": ts, "tag": tag, "payload": payload }))
}
