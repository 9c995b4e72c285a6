//! Servers on real sockets, with journals in memory, recordings and a small agent that is a shell script.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ag_ui;
mod api;
mod app;
mod approvals;
mod asks;
mod auth;
mod bridge;
mod cors;
mod fields;
mod follow;
mod host_origin;
mod limits;
mod me;
mod private;
mod repeats;
mod rights;
mod roots;
mod slow;
mod tables;
mod test_server;
mod thread;
