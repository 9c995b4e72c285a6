//! The one table of routes and the roles they need. The router and the OpenAPI document are made
//! from it, so that no route is without a policy.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};

use crate::error::ApiError;
use crate::state::App;
use crate::tokens::Role;
use crate::{ag_ui, api, assets, auth, metrics, openapi, ws};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token needed: it exposes nothing and does nothing.
    Public,
    Role(Role),
}

#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Its name in the OpenAPI document, from which clients are generated.
    pub(crate) id: &'static str,
    pub(crate) access: Access,
    pub(crate) summary: &'static str,
    handler: fn() -> MethodRouter<Arc<App>>,
}

const WATCH: Access = Access::Role(Role::Watch);
const PROMPT: Access = Access::Role(Role::Prompt);
const APPROVE: Access = Access::Role(Role::Approve);
const ADMIN: Access = Access::Role(Role::Admin);

/// Every route.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/",
        id: "getPage",
        access: Access::Public,
        summary: "The page",
        handler: || get(assets::index),
    },
    Route {
        method: Method::GET,
        path: "/assets/{*path}",
        id: "getAsset",
        access: Access::Public,
        summary: "The page's own files",
        handler: || get(assets::asset),
    },
    Route {
        method: Method::GET,
        path: "/healthz",
        id: "getHealth",
        access: Access::Public,
        summary: "Says that the server answers",
        handler: || get(api::healthz),
    },
    Route {
        method: Method::GET,
        path: "/ws",
        id: "openSocket",
        access: WATCH,
        summary: "The bridge: events out, controls in, one JSON object per text message",
        handler: || get(ws::upgrade),
    },
    Route {
        method: Method::GET,
        path: "/api/me",
        id: "getMe",
        access: WATCH,
        summary: "The role of the token that asks, and what it may do",
        handler: || get(api::me::show),
    },
    Route {
        method: Method::GET,
        path: "/api/engines",
        id: "listEngines",
        access: WATCH,
        summary: "The agents that can be run here, and the bundled recordings",
        handler: || get(api::engines::list),
    },
    Route {
        method: Method::GET,
        path: "/api/sessions",
        id: "listSessions",
        access: WATCH,
        summary: "Sessions, the newest first",
        handler: || get(api::sessions::list),
    },
    Route {
        method: Method::GET,
        path: "/api/sessions/{id}",
        id: "getSession",
        access: WATCH,
        summary: "A session with its runs, asks and queue, by linkspan's id or the agent's",
        handler: || get(api::sessions::show),
    },
    Route {
        method: Method::DELETE,
        path: "/api/sessions/{id}",
        id: "deleteSession",
        access: ADMIN,
        summary: "Removes a session with all that is in it, unless something runs or waits in it",
        handler: || delete(api::sessions::discard),
    },
    Route {
        method: Method::GET,
        path: "/api/sessions/{id}/events",
        id: "readEvents",
        access: WATCH,
        summary: "A session's events in any format: JSON lines, or live with `Accept: text/event-stream`",
        handler: || get(api::events::read),
    },
    Route {
        method: Method::GET,
        path: "/api/sessions/{id}/file",
        id: "readFile",
        access: WATCH,
        summary: "A text or an image below the session's directory",
        handler: || get(api::files::read),
    },
    Route {
        method: Method::GET,
        path: "/api/sessions/{id}/items/{item}/output",
        id: "readOutput",
        access: WATCH,
        summary: "What a tool gave back, whole, or one picture of it",
        handler: || get(api::outputs::read),
    },
    Route {
        method: Method::POST,
        path: "/api/sessions/{id}/abort",
        id: "abortSession",
        access: PROMPT,
        summary: "Stops the session's run",
        handler: || post(api::sessions::abort),
    },
    Route {
        method: Method::DELETE,
        path: "/api/sessions/{id}/queue/{n}",
        id: "takeBackPrompt",
        access: PROMPT,
        summary: "Takes back the n-th prompt that waits",
        handler: || delete(api::sessions::remove_queued),
    },
    Route {
        method: Method::POST,
        path: "/api/runs",
        id: "submitPrompt",
        access: PROMPT,
        summary: "Gives a prompt to an agent",
        handler: || post(api::runs::submit),
    },
    Route {
        method: Method::POST,
        path: "/ag-ui",
        id: "runDefaultAgent",
        access: PROMPT,
        summary: "Runs the default engine for an AG-UI client: events as SSE, or in protobuf",
        handler: || post(ag_ui::run_default),
    },
    Route {
        method: Method::POST,
        path: "/ag-ui/{engine}",
        id: "runAgent",
        access: PROMPT,
        summary: "Runs an engine for an AG-UI client: events as SSE, or in protobuf",
        handler: || post(ag_ui::run),
    },
    Route {
        method: Method::POST,
        path: "/ag-ui/{engine}/abort",
        id: "abortThread",
        access: PROMPT,
        summary: "Stops the run of a thread",
        handler: || post(ag_ui::abort),
    },
    Route {
        method: Method::GET,
        path: "/ag-ui/{engine}/capabilities",
        id: "getCapabilities",
        access: WATCH,
        summary: "What an engine is able to do, in the words of AG-UI",
        handler: || get(ag_ui::capabilities),
    },
    Route {
        method: Method::GET,
        path: "/api/asks",
        id: "listAsks",
        access: WATCH,
        summary: "What agents wait for, the oldest first",
        handler: || get(api::asks::list),
    },
    Route {
        method: Method::POST,
        path: "/api/asks/{id}",
        id: "settleAsk",
        access: APPROVE,
        summary: "Answers what an agent asked; of several answers one is taken",
        handler: || post(api::asks::settle),
    },
    Route {
        method: Method::GET,
        path: "/api/metrics",
        id: "getMetrics",
        access: WATCH,
        summary: "Figures for Prometheus",
        handler: || get(metrics::show),
    },
    Route {
        method: Method::GET,
        path: "/api/openapi.json",
        id: "getOpenApi",
        access: WATCH,
        summary: "This document",
        handler: || get(openapi::show),
    },
];

pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let guard = from_fn_with_state((Arc::clone(app), route.access), auth::auth_middleware);
        // Not `layer`: a wrong method is answered with 405, with or without a token.
        router = router.route(route.path, (route.handler)().route_layer(guard));
    }
    router
        .fallback(async || ApiError::not_found("not_found", "there is no such route"))
        .method_not_allowed_fallback(async || {
            let message = "this route takes other methods";
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        })
        // Behind the fallbacks, so that unknown routes pass its checks and get its headers too.
        .layer(from_fn_with_state(Arc::clone(app), auth::outer_middleware))
        .with_state(Arc::clone(app))
}
