//! The vocabulary of linkspan: the content of any coding agent's stream in one set of plain types.
//!
//! Values borrow from the frame they were read from wherever they can: an [`Event`] lives for one
//! call of [`Sink::event`], and a sink that needs it for longer copies it. The JSON form of these
//! types is the `linkspan` format; `VERSION` is written on every line.
//!
//! ```
//! use model::{Body, Event, Outcome};
//!
//! let line = concat!(
//!     r#"{"v":1,"seq":6,"session":"s1","run":"r1","engine":"codex","origin":"agent","frame":4,"#,
//!     r#""type":"run.ended","data":{"outcome":"completed","answer":"Done."}}"#,
//! );
//! let event = Event::from_json(line)?;
//! let Body::RunEnded(ended) = &event.body else {
//!     panic!("not the end of a run: {}", event.body.name());
//! };
//! assert_eq!(ended.outcome, Outcome::Completed);
//! assert_eq!(serde_json::to_string(&event)?, line);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod ask;
mod cut;
mod error_chain;
mod event;
mod ids;
mod item;
mod json_lines;
mod machine;
mod names;
mod owned;
mod payload;
mod run;
#[cfg(test)]
mod schema_tests;
mod thread;
mod time;
mod tool;

pub use ask::{Ask, AskKind, AskSettled, Deadline, Decision};
pub use cut::{cut_mark, json_boundary};
pub use error_chain::error_chain;
pub use event::{
    Binding, Body, BodyKind, Channel, Delta, Event, Extra, ItemClosed, Level, McpServer, Notice,
    Origin, SessionBound, Unmapped, VERSION, Why,
};
pub use ids::{AskId, ItemId, RunId, SessionId};
pub use item::{
    Compaction, Item, Message, Other, Part, Plan, PlanEntry, PlanStatus, Reasoning, Role, Status,
    Subagent,
};
pub use json_lines::{escape_line_breaks, json_line, json_string};
pub use machine::{CloneWriter, End, Exit, Frame, Losses, Reader, Sink, Writer};
pub use payload::{Raw, Text};
pub use run::{
    Basis, Cause, Denial, ModelUsage, Outcome, RunEnded, RunError, RunStarted, Scope, Tokens, Usage,
};
pub use thread::{
    ClientRun, Content, ContentPart, ContextEntry, Media, MediaSource, MessageContent, Thread,
    ThreadMessage, ToolAnswer, ToolCall, ToolDefinition,
};
pub use time::Timestamp;
pub use tool::{Change, Class, Diff, Location, Mcp, Tool, ToolKind, ToolResult};
