//! The endpoint for programs that have a server of their own.
//!
//! The program that mounts it controls access: it checks no token. It runs the configured engines and no
//! others; a client chooses directories and permissions only if the program allows it.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use hub::{Hub, HubConfig, Submit};

use super::{AbortBody, AgUi, RunParams, RunRequest, respond};
use crate::api::{Json, Params};
use crate::config::Error;
use crate::error::{ApiError, Result};
use crate::tokens::Role;

/// What the endpoint is mounted with.
#[derive(Debug)]
pub struct AgUiConfig {
    pub hub: HubConfig,
    /// The engines that may be named, such as `claude` or `responses:local`; the first is the default.
    pub engines: Vec<String>,
    /// Whether clients may choose with `forwardedProps.linkspan` where an agent works and what it may do.
    /// Such a client controls the machine.
    pub takes_settings: bool,
}

/// The endpoint: a router to mount, and the runs behind it.
pub struct AgUiRouter {
    pub router: Router,
    hub: Arc<Hub>,
}

#[derive(Debug)]
struct Mounted {
    core: Arc<AgUi>,
    engines: Vec<String>,
    takes_settings: bool,
}

/// Opens the hub and makes the routes: `POST /`, `POST /{engine}`, `POST /{engine}/abort`,
/// `GET /{engine}/capabilities`.
pub async fn router(config: AgUiConfig) -> Result<AgUiRouter, Error> {
    let settings = config.hub.settings.clone();
    let hub = Arc::new(Hub::open(config.hub).await?);
    let mounted = Arc::new(Mounted {
        core: Arc::new(AgUi::new(Arc::clone(&hub), settings)),
        engines: config.engines,
        takes_settings: config.takes_settings,
    });
    let router = Router::new()
        .route("/", post(run_default))
        .route("/{engine}", post(run))
        .route("/{engine}/abort", post(abort))
        .route("/{engine}/capabilities", get(capabilities))
        .with_state(mounted);
    Ok(AgUiRouter { router, hub })
}

impl AgUiRouter {
    /// Ends all runs as aborted, and lets the agents go.
    pub async fn stop(&self) {
        self.hub.stop().await;
    }
}

impl fmt::Debug for AgUiRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgUiRouter").finish_non_exhaustive()
    }
}

impl Mounted {
    fn check(&self, engine: &str) -> Result<()> {
        // By its exact name, not by its kind: `acp:COMMAND` would start any program.
        match self.engines.iter().any(|it| it == engine) {
            true => Ok(()),
            false => {
                let message = format!("engine `{engine}` is not served here");
                Err(ApiError::not_found("bad_engine", message))
            }
        }
    }
}

async fn run_default(
    State(mounted): State<Arc<Mounted>>,
    params: Params<RunParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let none = || ApiError::not_found("not_found", "no engine is served here");
    let engine = mounted.engines.first().cloned().ok_or_else(none)?;
    run(State(mounted), Path(engine), params, headers, body).await
}

async fn run(
    State(mounted): State<Arc<Mounted>>,
    Path(engine): Path<String>,
    Params(params): Params<RunParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    mounted.check(&engine)?;
    // There are no tokens here: the program that mounts the router has checked its client.
    let mut asked = RunRequest::read(&engine, Role::Admin, params, &headers, body).await?;
    if !mounted.takes_settings {
        asked.leave_out_settings();
    }
    let stream = mounted.core.begin(asked, async |it: Submit| Ok(it)).await?;
    Ok(respond(stream))
}

async fn abort(
    State(mounted): State<Arc<Mounted>>,
    Path(engine): Path<String>,
    Json(body): Json<AbortBody>,
) -> Result<Response> {
    mounted.check(&engine)?;
    mounted.core.abort(&engine, &body.thread_id).await
}

async fn capabilities(
    State(mounted): State<Arc<Mounted>>,
    Path(engine): Path<String>,
) -> Result<Response> {
    mounted.check(&engine)?;
    mounted.core.capabilities(&engine)
}
