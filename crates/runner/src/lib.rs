//! The supervisor: starts agents, watches, steers and stops them, and never loses track of one.
//!
//! `engines` knows how each agent is started, `process` keeps the process and everything it starts,
//! `dialogue` talks with agents that can be talked with, `locks` keeps two runs out of one session, and
//! `agent` joins them: one prompt in, events out, exactly one end.

mod agent;
mod ask_limit;
pub mod config;
mod dialogue;
pub mod engines;
#[cfg(target_os = "linux")]
pub mod guard;
mod live_run;
pub mod locks;
mod nearest;
mod options;
pub mod permissions;
pub mod pipes;
mod policy;
pub mod process;
mod recording;
mod replay;
mod request;
mod secrets;
mod state;
pub mod stderr;

pub use agent::{Agent, Backend, Limits, Place, ResumePoint, Setup, StartError, Step};
pub use ask_limit::{AskDefault, AskLimit};
pub use dialogue::{
    Acp, Claude, Codex, Dialogue, NotSettled, Offer, Offers, OpenHands, Outbox, PrivateLine,
    SlashCommand, Warning, is_input, sent,
};
pub use live_run::{RunResult, client_notice};
pub use nearest::{did_you_mean, nearest};
pub use options::RunOptions;
pub use policy::{PendingAsk, PolicyDecision, decide, no_one_to_ask_message};
pub use recording::{RecordingError, recognise};
pub use request::{
    Answer, Image, Interaction, Launch, McpServer, McpVia, Mode, Permissions, Prompt, Request,
    Resume, SecretFile, Stdin,
};
pub use state::{data_folder, new_id, state_folder};
