//! `run.submit`: a prompt of the bridge, with what its project, its token and earlier choices add to it.

use std::env;
use std::sync::Arc;

use hub::Submitted;
use journal::SessionQuery;
use runner::engines::canonical_name;
use serde_json::{Map, Value, json};

use super::controls::Control;
use super::requests;
use super::verbs::Peer;
use crate::api::runs::{PromptFields, SubmitFields, take};
use crate::bridge::{DEFAULT_ENGINE, Resume};
use crate::error::Result;
use crate::repeats::{Answered, RequestKey};
use crate::state::App;
use crate::tokens::Caller;

/// Sessions that are looked at to find the last one of a directory.
const MAX_SEARCH: u32 = 500;

/// Gives a prompt to the hub, once for each key.
pub(super) async fn submit(app: &Arc<App>, peer: &Peer, control: &Control) -> Result<Value> {
    let (own, prompt) = control.read_both::<requests::Submit, SubmitFields>()?;
    let key = match (&own.idempotency_key, &control.request) {
        (Some(key), _) => Some(RequestKey::of_token(&peer.caller, key)?),
        (None, Some(request)) => Some(RequestKey::of_connection(peer.connection, request)),
        (None, None) => None,
    };
    let body = (own.clone(), prompt.clone());
    let work = {
        let (app, caller) = (Arc::clone(app), peer.caller.clone());
        async move { give(&app, &caller, own, prompt).await }
    };
    let Answered {
        mut answer,
        is_repeat,
    } = match key {
        Some(key) => app.repeats.once(key, &body, work).await?,
        None => Answered {
            answer: work.await?,
            is_repeat: false,
        },
    };
    if is_repeat {
        answer["repeated"] = true.into();
    }
    Ok(answer)
}

async fn give(
    app: &App,
    caller: &Caller,
    own: requests::Submit,
    mut fields: SubmitFields,
) -> Result<Value> {
    let thread = own.thread_doc_id.unwrap_or_else(runner::new_id);
    let project = own.project_id.as_deref();
    if let Some(project) = project.and_then(|it| app.bridge.project(it)) {
        from_project(&project, &mut fields);
    }
    let prompt = &mut fields.prompt;
    let engine = prompt.engine.take();
    let engine = engine.or_else(|| app.bridge.provider(caller));
    let engine = engine.map(|it| canonical_name(&it).to_owned());
    let wanted = own.resume_id.as_deref();
    if prompt.session.is_none() && prompt.resume.is_none() && prompt.fork.is_none() {
        let cwd = directory(prompt.cwd.as_deref());
        resolve_resume(app, wanted, engine.as_deref(), &cwd, prompt).await?;
    }
    prompt.engine = engine.clone();
    let n_bytes = prompt.prompt.as_ref().map_or(0, String::len);
    let Submitted {
        session,
        number,
        position,
        after,
    } = take(app, caller, fields).await?;
    Ok(json!({
        "threadDocId": thread, "sessionId": session.as_str(), "number": number,
        "position": position, "cursor": after, "provider": engine, "resumeId": wanted,
        "len": n_bytes,
    }))
}

/// Defaults from the project for options that a prompt leaves out.
fn from_project(project: &Map<String, Value>, fields: &mut SubmitFields) {
    let text = |name: &str| project.get(name)?.as_str().map(str::to_owned);
    let SubmitFields { prompt, options } = fields;
    prompt.cwd = prompt.cwd.take().or_else(|| text("workingDir"));
    options.model = options.model.take().or_else(|| text("model"));
    let agent = text("agentFile").filter(|it| canonical_name(it) == DEFAULT_ENGINE);
    prompt.engine = prompt.engine.take().or(agent);
}

/// A run starts a new session, unless the prompt or an earlier choice selects one.
async fn resolve_resume(
    app: &App,
    wanted: Option<&str>,
    engine: Option<&str>,
    cwd: &str,
    prompt: &mut PromptFields,
) -> Result<()> {
    let chosen = app.bridge.resume(engine.unwrap_or(DEFAULT_ENGINE), cwd);
    match (wanted, chosen) {
        (Some("new" | "none"), _) | (None, None) => (),
        (Some("last"), _) | (None, Some(Resume { session: None, .. })) => {
            prompt.session = last_session(app, engine, cwd).await?;
        }
        (Some(id), _) => named(app, id, prompt).await?,
        (None, Some(Resume { session, .. })) => {
            named(app, &session.unwrap_or_default(), prompt).await?;
        }
    }
    Ok(())
}

/// A session by our id, or one of the agent's that the journal may not have.
async fn named(app: &App, id: &str, prompt: &mut PromptFields) -> Result<()> {
    match app.hub.find(id).await {
        Ok(session) => prompt.session = Some(session.id.to_string()),
        Err(hub::Error::NoSession(_)) => prompt.resume = Some(id.to_owned()),
        Err(err) => return Err(err.into()),
    }
    Ok(())
}

async fn last_session(app: &App, engine: Option<&str>, cwd: &str) -> Result<Option<String>> {
    let query = SessionQuery {
        engine: engine.map(str::to_owned),
        ..SessionQuery::default()
    };
    let listing = app.hub.journal().list(query, None, MAX_SEARCH).await?;
    let mut sessions = listing.sessions.into_iter();
    let last = sessions.find(|it| it.cwd.as_deref() == Some(cwd));
    Ok(last.map(|it| it.id.to_string()))
}

/// A directory as sessions name it.
pub(super) fn directory(cwd: Option<&str>) -> String {
    let path = cwd.map_or_else(env::current_dir, |it| Ok(it.into()));
    let path = path.and_then(|it| it.canonicalize());
    // A directory that does not exist has no sessions; the hub reports it when a run starts there.
    path.map_or_else(
        |_| cwd.unwrap_or_default().to_owned(),
        |it| it.to_string_lossy().into_owned(),
    )
}
