//! The model to consumer protocols, one file or folder per protocol.

/// Appends formatted text to bytes.
macro_rules! put {
    ($out:expr, $($format:tt)+) => {
        std::io::Write::write_fmt($out, format_args!($($format)+)).expect("memory takes everything")
    };
}

pub(crate) mod acp;
pub(crate) mod ag_ui;
mod asks;
pub(crate) mod bridge;
pub(crate) mod content;
mod diff;
pub(crate) mod html;
mod labels;
pub(crate) mod linkspan;
pub(crate) mod markdown;
pub(crate) mod openhands;
pub(crate) mod page_transcript;
mod sources;
mod summary;
pub(crate) mod takopi;
pub(crate) mod text;
pub(crate) mod thread;
mod transcript;

use std::hash::{DefaultHasher, Hash, Hasher as _};

use model::{Extra, Outcome, Raw, RunEnded, RunError, Text, Timestamp, escape_line_breaks};
use serde::Serialize;

/// The configuration of a writer.
#[derive(Clone, Debug, Default)]
pub struct WriterConfig {
    /// A name from the format's table; absent is the default shape.
    pub profile: Option<String>,
    /// Live output: transient events are wanted, too.
    pub live: bool,
    /// The time of events that came before any the agent stated a time for.
    pub began: Option<Timestamp>,
    pub color: bool,
    /// A server writes for its clients. Only `thread` makes a difference.
    pub served: Option<ServedThread>,
}

/// What a server adds for the clients that read `thread` from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServedThread {
    /// The server's address, such as `http://127.0.0.1:8787`; links begin with it.
    pub base: String,
    /// Bytes of a tool's output that are written, with a link to all of it; none writes all.
    pub max_output: Option<usize>,
}

impl ServedThread {
    /// Longer outputs are cut, unless a client asks for more: phones show a screen of it.
    pub const MAX_OUTPUT: usize = 8 * 1024;
}

/// Appends one JSON value.
fn json(out: &mut Vec<u8>, value: &impl Serialize) {
    let from = out.len();
    serde_json::to_writer(&mut *out, value)
        .expect("wire types have string keys and write to memory");
    escape_line_breaks(out, from);
}

/// Appends a JSON string. Nearly every id is free of escapes and is copied in one go.
fn string(out: &mut Vec<u8>, text: &str) {
    // The last two begin the characters that some take for line ends.
    let is_escaped = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\' | 0xc2 | 0xe2);
    // No early end: a loop without one is done many bytes at a time.
    if text
        .bytes()
        .fold(false, |found, byte| found | is_escaped(byte))
    {
        return json(out, &text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Appends one JSON value and a line end.
fn line(out: &mut Vec<u8>, value: &impl Serialize) {
    json(out, value);
    out.push(b'\n');
}

/// Takes out of a list what was opened before, if it is there.
fn take<T>(open: &mut Vec<T>, is_it: impl FnMut(&T) -> bool) -> Option<T> {
    let at = open.iter().position(is_it)?;
    Some(open.remove(at))
}

/// Tells two values apart without keeping them.
fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A field of the agent's frame that the event has no field for.
fn find_extra<'e>(extra: &'e Extra<'_>, key: &str) -> Option<&'e Raw<'e>> {
    let (_, raw) = extra.iter().find(|(name, _)| name == key)?;
    Some(raw)
}

/// The end of a run whose events stop.
fn missing_end() -> RunEnded<'static> {
    let message = Text::new("the events stop before the run ended");
    RunEnded::new(Outcome::Lost, Some(RunError::new("missing_end", message)))
}
