//! Sessions: prompts are queued, one run at a time, and events are stored before any follower sees
//! them.
//!
//! Only this crate knows both a running agent and the journal. [`Hub`] is the handle; each session
//! with work has a worker of its own (`session_task`), which holds the session's lease, runs its
//! agent and appends its events. Followers read only the journal (`follow`), so everything they see
//! is stored, whichever process stored it.

mod acceptor;
mod append;
mod asks;
mod changes;
mod channel;
mod client_session;
mod command;
mod config;
mod counts;
mod error;
mod export;
mod firehose;
mod follow;
mod histogram;
mod history;
mod hub;
mod lock;
mod paging;
mod record;
mod recovery;
mod remove;
mod render;
mod retention;
mod ring;
mod session_task;
mod setup;
mod shared;
#[cfg(test)]
mod test_log;
mod worker;

pub use changes::{Changes, SessionChanged};
pub use client_session::{AcceptedPrompt, Cancelled, ClientSession, ClientSessionConfig, not_kept};
pub use command::{Submit, Target, request_release};
pub use config::{HubConfig, Limits, QueueLife, own_name};
pub use counts::{RunCounts, RunKey};
pub use error::{Error, Result};
pub use export::{Cursor, Export};
pub use follow::{Delivered, Detached, Follow, Followed, Follower, Scope};
pub use histogram::Histogram;
pub use hub::{Hub, Overview, Queued, Submitted, title};
pub use paging::{LogPages, SessionPages};
pub use recovery::{close_lost_runs, is_lost};
pub use retention::{retention, truncation};
pub use setup::{SetupError, setup};

pub use remove::remove;
pub use ring::{EncodedOnce, MAX_BYTES, MAX_FRAMES};
pub use worker::{Announced, LogLost, Progress, Request, SessionLog, Worker, parent};
