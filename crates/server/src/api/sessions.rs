//! Sessions: the list, one of them, and what can be done to its run and its queue.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use journal::{Journal, ListCursor, Read, Run, Session, SessionQuery, Stored};
use model::{Body, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Params;
use super::asks::AskView;
use crate::error::{ApiError, Result, reply};
#[cfg(test)]
use crate::schema_tests as schema;
use crate::state::App;

/// Sessions in one answer.
const MAX_LIMIT: u32 = 500;
const USUAL_LIMIT: u32 = 100;
/// The newest runs of a session, which its page lists.
const MAX_RUNS: u32 = 100;

/// A session as clients see it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Session"))]
pub(crate) struct Summary {
    #[serde(flatten)]
    facts: SessionFacts,
    /// How many prompts wait.
    queue: u64,
}

/// The fields that the list and the page of a session share.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SessionFacts {
    id: String,
    engine: String,
    /// The agent's own id of it.
    native: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    #[cfg_attr(test, schemars(with = "schema::Time"))]
    created_at: Timestamp,
    #[cfg_attr(test, schemars(with = "schema::Time"))]
    active_at: Timestamp,
    /// The number of its last event.
    head: u64,
    bytes: u64,
    #[cfg_attr(test, schemars(with = "schema::StateName"))]
    state: &'static str,
    /// What it began with, when it is a fork.
    parent: Option<Parent>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Parent {
    session: String,
    /// The last event of the other session that it began with.
    seq: u64,
}

/// A page of the list.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Sessions"))]
pub(crate) struct SessionPage {
    sessions: Vec<Summary>,
    /// The `after` of the next page.
    next: Option<String>,
}

/// A session with its runs and its queue.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionDetail {
    #[serde(flatten)]
    facts: SessionFacts,
    /// The newest ones.
    runs: Vec<RunView>,
    asks: Vec<AskView>,
    queue: Vec<QueuedPrompt>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Run"))]
struct RunView {
    id: String,
    #[cfg_attr(test, schemars(with = "schema::Time"))]
    started_at: Timestamp,
    #[cfg_attr(test, schemars(with = "Option<schema::Time>"))]
    ended_at: Option<Timestamp>,
    #[cfg_attr(test, schemars(with = "Option<schema::OutcomeRef>"))]
    outcome: Option<&'static str>,
    /// All its models together.
    cost_usd: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct QueuedPrompt {
    /// By which it is removed from the queue.
    number: u64,
    #[cfg_attr(test, schemars(with = "schema::Time"))]
    at: Timestamp,
    prompt: String,
}

/// Whether there was a run to abort.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Aborted {
    pub(crate) aborted: bool,
}

impl Summary {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            queue: session.queued,
            facts: SessionFacts::new(session),
        }
    }
}

impl SessionFacts {
    fn new(session: Session) -> Self {
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

pub(crate) async fn page(app: &App, params: ListParams) -> Result<SessionPage> {
    let state = match params.state.as_deref() {
        None | Some("") => None,
        Some(name) => Some(journal::State::find(name).ok_or_else(|| {
            let states = journal::State::ALL.map(journal::State::name).join(", ");
            ApiError::bad(format!("there is no state `{name}`")).hint(format!("states: {states}"))
        })?),
    };
    let some = |it: Option<String>| it.filter(|it| !it.is_empty());
    let query = SessionQuery {
        home: None,
        engine: some(params.engine),
        text: some(params.text),
        state,
    };
    let place = |it: String| it.parse().map(|activity| ListCursor { activity });
    let after = some(params.after).map(place).transpose();
    let after =
        after.map_err(|_| ApiError::bad("`after` is not the `next` of an earlier answer"))?;
    let limit = params.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT);
    let listing = app.hub.journal().list(query, after, limit).await?;
    let next = listing.next.map(|it| it.activity.to_string());
    let sessions = listing.sessions.into_iter().map(Summary::new);
    Ok(SessionPage {
        sessions: sessions.collect(),
        next,
    })
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response> {
    let journal = app.hub.journal();
    let hub::Overview {
        session,
        runs,
        queue,
        asks,
    } = app.hub.overview(&id, MAX_RUNS).await?;
    let mut views = Vec::new();
    for run in runs {
        views.push(RunView {
            id: run.run.to_string(),
            started_at: run.started_at,
            ended_at: run.end.map(|it| it.at),
            outcome: run.end.map(|it| it.outcome.name()),
            // The journal's row of a run has no cost; its last event has.
            cost_usd: cost(&**journal, &run).await?,
        });
    }
    let queue = queue.into_iter().map(|it| QueuedPrompt {
        number: it.number,
        at: it.at,
        prompt: it.prompt,
    });
    let detail = SessionDetail {
        facts: SessionFacts::new(session),
        runs: views,
        asks: asks.iter().map(|it| AskView::new(&app, it)).collect(),
        queue: queue.collect(),
    };
    Ok(reply(StatusCode::OK, &detail))
}

/// What a run has cost, all its models together.
async fn cost(journal: &dyn Journal, run: &Run) -> Result<Option<f64>> {
    let Some(end) = run.end else { return Ok(None) };
    let page = journal.read(&run.session, Read::one(end.seq)).await?;
    let Some(event) = page.events.first().and_then(Stored::event) else {
        return Ok(None);
    };
    let Body::RunEnded(ended) = &event.body else {
        return Ok(None);
    };
    let costs = ended.models.iter().filter_map(|it| it.cost_usd);
    // Not `sum`: without any figure the cost is unknown, not 0.
    Ok(costs.reduce(|a, b| a + b))
}

pub(crate) async fn abort(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response> {
    let session = app.hub.find(&id).await?;
    let aborted = app.hub.abort(&session.id).await?;
    Ok(reply(StatusCode::OK, &Aborted { aborted }))
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
        false => {
            let message = "this prompt is no longer queued";
            Err(ApiError::not_found("no_such_prompt", message))
        }
    }
}
