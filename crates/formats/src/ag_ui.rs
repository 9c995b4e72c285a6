//! AG-UI as a conversation: what a client asks for, what a thread holds, and what one client is told.
//!
//! The writer of the format `ag-ui` turns any recording into events. A server does more: it reads the
//! request ([`RunAgentInput`]), knows what was said before ([`History`]), and speaks to one client under
//! that client's own names ([`Door`]), as text or in protobuf ([`proto`]).

mod history;
mod input;
mod messages;
pub mod proto;
mod snapshot;

pub use history::{Answered, ClientRun, History, Last};
pub use input::{Context, InputError, Resume, ResumeStatus, RunAgentInput, Tool};
pub use messages::{Content, Media, Message, Part, Said, Source, ToolCall};

pub(crate) use snapshot::Snapshot;

pub use crate::writers::ag_ui::door::{Door, DoorConfig, Interrupt};

/// The media type of events in protobuf.
pub const PROTO_TYPE: &str = "application/vnd.ag-ui.event+proto";
