//! The supervisor: starts agents, watches, steers and stops them, and never loses track of one.
//!
//! `engines` says how each agent is started, `process` keeps the process and everything it starts,
//! `dialogue` talks with agents that can be talked with, `locks` keeps two runs out of one session, and
//! `agent` joins them: one prompt in, events out, exactly one end.

#[cfg(target_os = "linux")]
pub mod guard;
pub mod locks;
pub mod process;
pub mod config;
pub mod engines;
mod dialogue;
mod request;
pub mod stderr;

pub use dialogue::{Acp, Claude, Codex, Dialogue, NotSettled, Outbox, Warning, sent};
pub use request::{Answer, Launch, Mode, Permissions, Request, Resume, Stdin, Talk};
