//! The script of a model: a scenario of lanes, a lane of turns, a turn of blocks or an error.
//!
//! These types are independent of any vendor; `file.rs` reads them from JSON, the dialects put them on a wire.

mod file;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// Turns by lane. A request is answered with the next turn of its lane; see [`Scenario::MAIN`].
pub type Lanes = BTreeMap<String, Vec<Turn>>;

/// A whole script.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub lanes: Lanes,
    #[serde(default)]
    pub repeat: Repeat,
}

/// What happens when a lane has no turn left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// The request is refused: a script that is too short is a mistake in a test, and should be seen.
    #[default]
    Never,
    /// The last turn is played again, for ever.
    Last,
}

impl Scenario {
    /// The lane of every request that names no other.
    pub const MAIN: &str = "main";
    /// The lane of requests for the title of a session. It never ends: what it lacks is `Scripted title`.
    pub const TITLE: &str = "title";

    /// A scenario with one lane.
    pub fn main(turns: impl IntoIterator<Item = Turn>) -> Scenario {
        Scenario::default().lane(Scenario::MAIN, turns)
    }

    /// The same scenario with one more lane.
    pub fn lane(mut self, name: &str, turns: impl IntoIterator<Item = Turn>) -> Scenario {
        self.lanes
            .insert(name.to_owned(), turns.into_iter().collect());
        self
    }

    /// The same scenario, with the last turn of each lane played for ever.
    pub fn repeat_last(self) -> Scenario {
        Scenario {
            repeat: Repeat::Last,
            ..self
        }
    }

    /// Reads a scenario file; errors name line and column.
    pub fn from_json(text: &str) -> Result<Scenario, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// One answer of the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "file::FileTurn")]
pub struct Turn {
    pub(crate) answer: Answer,
    pub(crate) headers: HeaderMap,
    /// Before the status line, so that it also holds back errors.
    pub(crate) delay: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Message(Message),
    Error(ApiError),
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Usage,
    /// How many characters one streamed piece holds.
    pub(crate) chunk: NonZeroUsize,
    /// From the start of one piece to the start of the next.
    pub(crate) pace: Duration,
    pub(crate) ending: Ending,
}

/// A refusal of the whole request, by HTTP status.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    /// Sent as it is instead of the dialect's own error.
    pub(crate) body: Option<Value>,
}

/// How a streamed message comes to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    Cut {
        after: Place,
        how: Cut,
    },
    /// The stream reports that the model failed, after this block.
    Fails {
        after: usize,
        failure: Failure,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Block(usize),
    /// This many pieces, which may be in the middle of a block.
    Chunks(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
}

/// How a stream is cut short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The response ends, and the last frames of the stream are missing.
    #[default]
    End,
    /// The connection is dropped in the middle of the response.
    Drop,
}

/// What ends a message before all its blocks were sent.
pub(crate) enum Early<'a> {
    Cut,
    Fails(&'a Failure),
}

impl Ending {
    /// What comes instead of the blocks after this one.
    pub(crate) fn after(&self, block: usize) -> Option<Early<'_>> {
        match self {
            Ending::Cut {
                after: Place::Block(after),
                ..
            } => (*after == block).then_some(Early::Cut),
            Ending::Fails { after, failure } => (*after == block).then_some(Early::Fails(failure)),
            Ending::Whole
            | Ending::Cut {
                after: Place::Chunks(_),
                ..
            } => None,
        }
    }
}

/// Text is streamed in pieces of this many characters unless the turn says otherwise.
const CHUNK: NonZeroUsize = NonZeroUsize::new(12).expect("twelve is not zero");

impl Default for Message {
    fn default() -> Message {
        Message {
            blocks: Vec::new(),
            stop: None,
            usage: Usage::default(),
            chunk: CHUNK,
            pace: Duration::ZERO,
            ending: Ending::Whole,
        }
    }
}

impl Turn {
    /// An answer of these blocks.
    pub fn of(blocks: impl IntoIterator<Item = Block>) -> Turn {
        let message = Message {
            blocks: blocks.into_iter().collect(),
            ..Message::default()
        };
        Turn {
            answer: Answer::Message(message),
            headers: HeaderMap::new(),
            delay: Duration::ZERO,
        }
    }

    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Turn {
        Turn::of([Block::text(text)])
    }

    /// The title of a session, where the script has no other.
    pub(crate) fn title() -> Turn {
        Turn::text("Scripted title")
    }

    /// A refusal with this HTTP status, in the dialect's own form.
    pub fn error(status: StatusCode, message: impl Into<String>) -> Turn {
        let error = ApiError {
            status,
            kind: None,
            message: message.into(),
            body: None,
        };
        Turn {
            answer: Answer::Error(error),
            headers: HeaderMap::new(),
            delay: Duration::ZERO,
        }
    }

    /// Waits this long before anything is answered.
    pub fn delay(self, delay: Duration) -> Turn {
        Turn { delay, ..self }
    }

    /// Adds a header to the answer.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Turn {
        self.headers.append(name, value);
        self
    }

    /// Streams pieces of this many characters.
    pub fn chunk(self, chunk: NonZeroUsize) -> Turn {
        self.message(|it| it.chunk = chunk)
    }

    /// Starts a piece every so often; a pace below a millisecond holds on average.
    pub fn pace(self, pace: Duration) -> Turn {
        self.message(|it| it.pace = pace)
    }

    /// Ends for this reason instead of the one that the blocks suggest.
    pub fn stop(self, stop: Stop) -> Turn {
        self.message(|it| it.stop = Some(stop))
    }

    /// Reports these tokens.
    pub fn usage(self, usage: Usage) -> Turn {
        self.message(|it| it.usage = usage)
    }

    /// Ends the stream too early, after the block with this index.
    pub fn cut_after(self, block: usize, how: Cut) -> Turn {
        let after = Place::Block(block);
        self.message(|it| it.ending = Ending::Cut { after, how })
    }

    /// Ends the stream too early, after this many pieces.
    pub fn cut_after_chunks(self, chunks: usize, how: Cut) -> Turn {
        let after = Place::Chunks(chunks);
        self.message(|it| it.ending = Ending::Cut { after, how })
    }

    /// Lets the stream fail after the block with this index.
    pub fn error_after(self, block: usize, message: impl Into<String>) -> Turn {
        let failure = Failure {
            kind: None,
            message: message.into(),
        };
        self.message(|it| {
            it.ending = Ending::Fails {
                after: block,
                failure,
            }
        })
    }

    fn message(mut self, change: impl FnOnce(&mut Message)) -> Turn {
        match &mut self.answer {
            Answer::Message(message) => change(message),
            Answer::Error(_) => (), // A refusal has nothing to stream.
        }
        self
    }
}

/// A part of the model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "file::FileBlock")]
pub enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    /// Thinking that the vendor hides: opaque data.
    Redacted(String),
    /// A call of a function. `input` is the JSON text that travels, and need not be valid.
    Tool {
        name: String,
        namespace: Option<String>,
        input: String,
    },
    /// A call of a tool that takes plain text, such as Codex's `apply_patch`.
    Custom {
        name: String,
        input: String,
    },
    Refusal(String),
    /// JSON of one dialect, put on the wire as it is.
    Raw(Value),
}

impl Block {
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text(text.into())
    }

    pub fn thinking(text: impl Into<String>) -> Block {
        Block::Thinking {
            text: text.into(),
            signature: None,
        }
    }

    pub fn tool(name: impl Into<String>, input: &Value) -> Block {
        Block::Tool {
            name: name.into(),
            namespace: None,
            input: input.to_string(),
        }
    }
}

/// Why the model stopped. The words are Anthropic's; the dialects translate all but [`Stop::Verbatim`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Stop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    /// A word of one dialect.
    Verbatim(String),
}

impl From<String> for Stop {
    fn from(word: String) -> Stop {
        match word.as_str() {
            "end_turn" => Stop::EndTurn,
            "tool_use" => Stop::ToolUse,
            "max_tokens" => Stop::MaxTokens,
            "refusal" => Stop::Refusal,
            _ => Stop::Verbatim(word),
        }
    }
}

impl Message {
    /// The scripted reason, or what the blocks suggest.
    pub(crate) fn stop(&self) -> Stop {
        let is_call = |it: &Block| matches!(it, Block::Tool { .. } | Block::Custom { .. });
        let is_refusal = |it: &Block| matches!(it, Block::Refusal(_));
        match &self.stop {
            Some(stop) => stop.clone(),
            // A call waits for its result, whatever else was said.
            None if self.blocks.iter().any(is_call) => Stop::ToolUse,
            None if self.blocks.iter().any(is_refusal) => Stop::Refusal,
            None => Stop::EndTurn,
        }
    }
}

/// Tokens of one answer. Parts, not totals: `input_tokens` leaves out what the cache gave or took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// With the reasoning.
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage {
            input_tokens: 60,
            cache_read_tokens: 40,
            cache_write_tokens: 0,
            output_tokens: 20,
            reasoning_tokens: 5,
        }
    }
}

impl Usage {
    /// All that was read, from the cache or not: what OpenAI and Gemini call the input.
    pub(crate) fn all_input(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
    }
}
