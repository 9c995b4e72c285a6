//! linkspan as a library: one agent's stream in, one consumer's protocol out.
//!
//! [`convert`] is the whole of `linkspan convert` without its flags; [`Conversion`] is the same for
//! a caller that has its own loop. The formats and their names are those of `linkspan formats`.

mod convert;

pub use convert::{AUTO, Conversion, Error, Options, Report, convert, each_chunk, recognise};
pub use formats::detect::Unsure;
pub use formats::{ReaderConfig, WriterConfig, registry};
pub use model::{End, Exit};
