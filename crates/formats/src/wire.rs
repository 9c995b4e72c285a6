//! Foreign JSON as it travels: serde types only, no logic.

#[macro_use]
pub(crate) mod lenient;

pub mod acp;
pub(crate) mod ag_ui;
pub(crate) mod bridge;
pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod duplex;
pub(crate) mod gemini;
pub mod json_rpc;
pub(crate) mod opencode;
pub(crate) mod openhands;
pub(crate) mod openresponses;
pub(crate) mod scanner;
pub(crate) mod takopi;
pub(crate) mod thread;
