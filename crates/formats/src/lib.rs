//! The pandoc half of linkspan: bytes of any agent in, bytes of any consumer out.
//!
//! Everything here is a pure state machine: no files, no clock, no tasks. The caller feeds bytes
//! and owns where they come from and go to.

#[macro_use]
pub mod wire;

pub mod ag_ui;
mod agents;
pub mod convert;
pub mod detect;
mod display_safe;
pub mod errors;
pub mod framing;
mod history;
mod outputs;
mod readers;
pub mod registry;
pub mod resume;
mod tools;
mod writers;

pub use ag_ui::read_thread;
pub use display_safe::{display_safe, visible};
pub use history::{History, LastResponse};
pub use outputs::{Output, OutputPart, item_output};
pub use readers::{ItemIds, PreviousStreams, ReaderConfig, RunEnds};
pub use writers::acp::{AcpAgent, AcpClient, AcpRequest};
pub use writers::bridge::{BridgeConfig, BridgeWriter};
pub use writers::thread::waiting_ask;
pub use writers::{ServedThread, WriterConfig};
