//! linkspan as a library: one agent's stream in, one consumer's protocol out.
//!
//! [`convert`] is the whole of `linkspan convert` without its flags; [`Conversion`] is the same for
//! a caller that has its own loop. The formats and their names are those of `linkspan formats`.
//! [`Conversation`] runs an agent and answers what it asks; [`ag_ui::router`] serves agents and models to
//! AG-UI clients from any axum app.
//!
//! ```
//! use linkspan::{AUTO, Options, ReaderConfig, WriterConfig, convert};
//!
//! let recording = r#"{"type":"thread.started","thread_id":"t1"}
//! {"type":"turn.started"}
//! {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}
//! {"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":2}}
//! "#;
//! let options = Options {
//!     from: AUTO.to_owned(),
//!     to: "markdown".to_owned(),
//!     reader: ReaderConfig::default(),
//!     writer: WriterConfig::default(),
//! };
//! let mut page = Vec::new();
//! let report = convert(&mut recording.as_bytes(), &mut page, &options)?;
//! assert_eq!(report.n_events, 6);
//! assert!(String::from_utf8_lossy(&page).contains("**✓ done** · 10 in / 2 out tokens"));
//! # Ok::<(), linkspan::Error>(())
//! ```

#![warn(missing_docs)]

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
