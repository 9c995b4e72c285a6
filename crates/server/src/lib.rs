//! The server: HTTP, WebSocket and the page, with authentication and authorization.
//!
//! A client of this server can run commands through an agent, so every request passes the same
//! checks in the same order (`auth`): host, origin, token, role. `routes` is the one table of
//! routes and their roles.

mod ag_ui;
mod api;
mod assets;
mod auth;
mod beneath;
mod bridge;
mod config;
mod cors;
mod error;
mod fields;
mod host_origin;
mod listen;
mod listener;
mod log;
mod max_output;
mod metrics;
mod openapi;
mod private;
mod rate_limit;
mod repeats;
mod rights;
mod roots;
mod routes;
mod running_servers;
#[cfg(test)]
mod schema_tests;
mod state;
mod stdio;
mod tokens;
mod unauthenticated;
mod write_timeout;
mod ws;

pub use ag_ui::{AgUiConfig, AgUiRouter, router as ag_ui_router};
pub use config::{Error, Exposure, Listen, MAX_CLIENTS, ServeConfig};
pub use listen::{Server, ServerUrls, bind};
pub use private::CREDENTIALS;
pub use running_servers::{RunningServer, running};
pub use stdio::{StdioConfig, serve_stdio};
pub use tokens::{Key, Keys, MIN_TOKEN, Role, Secret, TokenError};
