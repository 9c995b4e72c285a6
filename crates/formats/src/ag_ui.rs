//! AG-UI as a conversation: what a client asks for, what a thread holds, and what one client is told.
//!
//! The writer of the format `ag-ui` turns any recording into events. A server does more: it reads the
//! request ([`RunAgentInput`]), knows what was said before ([`History`]), and speaks to one client under
//! that client's own names ([`AgUiEndpoint`]), as text or in protobuf ([`proto`]).

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
