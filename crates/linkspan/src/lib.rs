//! linkspan as a library: one agent's stream in, one consumer's protocol out.
//!
//! [`convert`] is the whole of `linkspan convert` without its flags; [`Conversion`] is the same for
//! a caller that has its own loop. The formats and their names are those of `linkspan formats`.
//! [`Conversation`] runs an agent and answers what it asks; [`ag_ui::router`] serves agents and models to
//! AG-UI clients from any axum app.

pub mod ag_ui;
mod conversation;
mod convert;

pub use conversation::{
    Aborter, Conversation, ConversationConfig, ConversationError, State, allowed_tools,
};
pub use convert::{AUTO, Conversion, Error, Options, Report, convert, each_chunk, recognise};
pub use formats::detect::DetectError;
pub use formats::{ReaderConfig, WriterConfig, registry};
pub use model::{Body, End, Event, Exit, Outcome};
pub use runner::{Answer, Mode, PendingAsk, RunOptions, RunResult};
