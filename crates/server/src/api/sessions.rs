//! Sessions: the list, one of them, and what can be done to its run and its queue.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use journal::{Journal, ListCursor, Read, Run, Session, SessionQuery};
use model::{Body, BodyKind, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Params, asks};
use crate::error::{ApiError, Result, reply};
use crate::state::App;

/// Sessions in one answer.
const MAX_LIMIT: u32 = 500;
const USUAL_LIMIT: u32 = 100;
/// Runs that are told of a session, the newest ones.
const MAX_RUNS: u32 = 100;

/// A session as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    id: String,
    engine: String,
    native: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    created_at: Timestamp,
    active_at: Timestamp,
    head: u64,
    bytes: u64,
    state: &'static str,
    queue: u64,
    /// What it began with, when it is a fork.
    parent: Option<Parent>,
}

#[derive(Debug, Serialize)]
struct Parent {
    session: String,
    /// The last event of the other session that it began with.
    seq: u64,
}

impl Summary {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            id: session.id.to_string(),
            engine: session.engine,
            native: session.native.map(|it| it.to_string()),
            cwd: session.cwd,
            title: session.title,
            created_at: session.created_at,
            active_at: session.active_at,
            head: session.head,
            bytes: session.bytes,
            state: session.state.name(),
            queue: session.queued,
            parent: session.parent.map(|it| Parent {
                session: it.session.to_string(),
                seq: it.seq,
            }),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListParams {
    limit: Option<u32>,
    after: Option<String>,
    engine: Option<String>,
    text: Option<String>,
    state: Option<String>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Params(params): Params<ListParams>,
) -> Result<Response> {
    Ok(reply(StatusCode::OK, &page(&app, params).await?))
}

/// A page of the list.
pub(crate) async fn page(app: &App, params: ListParams) -> Result<Value> {
    let state = match params.state.as_deref() {
        None | Some("") => None,
        Some(name) => Some(journal::State::find(name).ok_or_else(|| {
            let names = journal::State::ALL.map(|it| format!("`{}`", it.name()));
            ApiError::bad(format!("a state is one of {}", names.join(", ")))
        })?),
    };
    let some = |it: Option<String>| it.filter(|it| !it.is_empty());
    let query = SessionQuery {
        engine: some(params.engine),
        text: some(params.text),
        state,
    };
    let after = match some(params.after) {
        None => None,
        Some(after) => Some(
            place(&after)
                .ok_or_else(|| ApiError::bad("`after` is not the `next` of an earlier answer"))?,
        ),
    };
    let limit = params.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT);
    let listing = app.hub.journal().list(query, after, limit).await?;
    let next = listing.next.map(|it| it.activity.to_string());
    let sessions = listing.sessions.into_iter().map(Summary::new);
    let sessions: Vec<Summary> = sessions.collect();
    Ok(json!({ "sessions": sessions, "next": next }))
}

fn place(text: &str) -> Option<ListCursor> {
    let activity = text.parse().ok()?;
    Some(ListCursor { activity })
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response> {
    let journal = app.hub.journal();
    let hub::Overview {
        session,
        runs,
        queue,
        asks,
    } = app.hub.overview(&id, MAX_RUNS).await?;
    let mut detail = json!(Summary::new(session));
    let mut views = Vec::new();
    for run in runs {
        let cost = cost(&**journal, &run).await?;
        views.push(run_view(&run, cost));
    }
    detail["runs"] = views.into();
    detail["asks"] = asks::views(&app, &asks).into();
    detail["queue"] = queue
        .iter()
        .map(|it| json!({ "number": it.number, "at": it.at, "prompt": it.prompt }))
        .collect();
    Ok(reply(StatusCode::OK, &detail))
}

fn run_view(run: &Run, cost: Option<f64>) -> Value {
    json!({
        "id": run.run.as_str(),
        "started_at": run.started_at,
        "ended_at": run.end.map(|it| it.at),
        "outcome": run.end.map(|it| it.outcome.name()),
        "cost_usd": cost,
    })
}

/// What a run has cost, all its models together.
async fn cost(journal: &dyn Journal, run: &Run) -> Result<Option<f64>> {
    let Some(end) = run.end else { return Ok(None) };
    let page = journal.read(&run.session, Read::one(end.seq)).await?;
    let Some(stored) = page
        .events
        .first()
        .filter(|it| it.kind == BodyKind::RunEnded)
    else {
        return Ok(None);
    };
    let Some(event) = stored.event() else {
        return Ok(None);
    };
    let Body::RunEnded(ended) = &event.body else {
        return Ok(None);
    };
    let costs = ended.models.iter().filter_map(|it| it.cost_usd);
    Ok(costs.reduce(|a, b| a + b))
}

pub(crate) async fn abort(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    let aborted = app.hub.abort(&session.id).await?;
    Ok(reply(StatusCode::OK, &json!({ "aborted": aborted })))
}

pub(crate) async fn discard(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    app.hub.remove(&session.id).await?;
    Ok(reply(StatusCode::OK, &json!({ "removed": true })))
}

pub(crate) async fn remove_queued(
    State(app): State<Arc<App>>,
    Path((id, number)): Path<(String, String)>,
) -> Result<Response> {
    let number = number.parse();
    let number = number.map_err(|_| ApiError::bad("a prompt that waits has a number"))?;
    remove(&app, &id, number).await?;
    Ok(reply(StatusCode::OK, &json!({ "removed": true })))
}

/// Takes a prompt out of a queue.
pub(crate) async fn remove(app: &App, id: &str, number: u64) -> Result<()> {
    let session = app.hub.find(id).await?;
    match app.hub.remove_queued(&session.id, number).await? {
        true => Ok(()),
        false => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_prompt",
            "this prompt is no longer queued",
        )),
    }
}
