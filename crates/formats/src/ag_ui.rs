//! AG-UI as a conversation: the client's request, the content of a thread, and the events for one
//! client.
//!
//! The writer of the format `ag-ui` turns any recording into events. A server does more: it reads
//! the request ([`RunAgentInput`]), knows the history ([`History`]), and writes to one client under
//! that client's own ids ([`AgUiEndpoint`]), as text or in protobuf ([`proto`]).

mod history;
mod input;
mod messages;
pub mod proto;
mod snapshot;

pub use history::{Answered, ClientRun, History, LastResponse};
pub use input::{ContextEntry, InputError, Resume, ResumeStatus, RunAgentInput, Tool};
pub use messages::{Content, Media, MediaSource, Message, MessageContent, Part, ToolCall};

pub(crate) use snapshot::Snapshot;

pub use crate::writers::ag_ui::endpoint::{AgUiEndpoint, AgUiEndpointConfig, Interrupt};

/// The media type of events in protobuf.
pub const PROTO_TYPE: &str = "application/vnd.ag-ui.event+proto";
