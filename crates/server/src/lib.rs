//! The doors: HTTP, WebSocket and the page, and who may come through them.
//!
//! Whoever reaches a door can run commands through an agent, so every request passes the same checks in
//! the same order (`door`): is it meant for this server, does it come from our own page, does it hold a
//! token, may that token do this. `routes` is the one table of what there is and who may use it.

mod ag_ui;
mod api;
mod assets;
mod beneath;
mod bridge;
mod config;
mod cors;
mod door;
mod error;
mod export;
mod failures;
mod fields;
mod home;
mod listen;
mod metrics;
mod notes;
mod openapi;
mod origins;
mod patient;
mod private;
mod repeats;
mod rights;
mod roots;
mod routes;
mod state;
mod strangers;
mod tokens;
mod ws;

pub use ag_ui::{AgUiConfig, AgUiRouter, router as ag_ui_router};
pub use config::{Error, Exposure, MAX_CLIENTS, ServeConfig, Tls};
pub use export::{Export, export};
pub use listen::{Server, bind};
pub use notes::{Listening, running};
pub use private::CREDENTIALS;
pub use tokens::{Key, Keys, MIN_TOKEN, Role, Secret, TokenError};
