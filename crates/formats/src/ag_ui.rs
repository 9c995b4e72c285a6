//! AG-UI as a conversation: the client's request and the events for one client.
//!
//! The writer of the format `ag-ui` turns any recording into events. A server does more: it reads
//! the request ([`RunAgentInput`]) and writes to one client under
//! that client's own ids ([`AgUiEndpoint`]), as text or in protobuf ([`proto`]).

mod input;
mod messages;
pub mod proto;
mod snapshot;

pub use input::{InputError, Resume, ResumeStatus, RunAgentInput, read_thread};

pub(crate) use snapshot::Snapshot;

pub use crate::writers::ag_ui::endpoint::{AgUiEndpoint, AgUiEndpointConfig, Interrupt};

/// The media type of events in protobuf.
pub const PROTO_TYPE: &str = "application/vnd.ag-ui.event+proto";
