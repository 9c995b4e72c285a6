//! The JSON of turns and blocks, checked while it is read.
//!
//! Every key is optional here and unknown keys are errors, so that a mistake is reported with its line and its name.
//! The aliases are the short words of the recorded scripts in `fixtures/*/index.json`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, ApiError, CHUNK, Cut, Ending, Failure, Message, Place, Stop, Usage};

/// What the repetitions of one text may add up to; more would only be a slip of the finger.
const MAX_TEXT: usize = 256 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTurn {
    blocks: Option<Vec<super::Block>>,
    stop: Option<Stop>,
    #[serde(alias = "usage_in")]
    usage: Option<Usage>,
    chunk: Option<NonZeroUsize>,
    chunk_delay_ms: Option<f64>,
    cut: Option<Cut>,
    cut_after: Option<usize>,
    cut_after_chunks: Option<usize>,
    error_after: Option<usize>,
    failed: Option<FileFailure>,

    status: Option<u16>,
    #[serde(alias = "etype")]
    error_type: Option<String>,
    message: Option<String>,
    body: Option<Value>,

    #[serde(default)]
    headers: BTreeMap<String, String>,
    delay_ms: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFailure {
    code: Option<String>,
    message: String,
}

impl TryFrom<FileTurn> for super::Turn {
    type Error = String;

    fn try_from(mut turn: FileTurn) -> Result<super::Turn, String> {
        let headers = headers(&turn.headers)?;
        let delay = milliseconds("delay_ms", turn.delay_ms)?;
        let answer = match (turn.blocks.take(), turn.status) {
            (Some(blocks), None) => Answer::Message(message(turn, blocks)?),
            (None, Some(status)) => Answer::Error(api_error(turn, status)?),
            _ => return Err("a turn has either `blocks` or an error `status`".to_owned()),
        };
        Ok(super::Turn {
            answer,
            headers,
            delay,
        })
    }
}

fn message(turn: FileTurn, blocks: Vec<super::Block>) -> Result<Message, String> {
    if turn.body.is_some() {
        return Err("`body` belongs to a turn with an error `status`".to_owned());
    }
    let pace = milliseconds("chunk_delay_ms", turn.chunk_delay_ms)?;
    let (stop, usage, chunk) = (turn.stop.clone(), turn.usage, turn.chunk);
    let ending = ending(turn, blocks.len())?;
    Ok(Message {
        blocks,
        stop,
        usage: usage.unwrap_or_default(),
        chunk: chunk.unwrap_or(CHUNK),
        pace,
        ending,
    })
}

fn ending(turn: FileTurn, n_blocks: usize) -> Result<Ending, String> {
    let inside = |key: &str, after: usize| match after < n_blocks {
        true => Ok(after),
        false => Err(format!(
            "`{key}` is {after}, and the turn has {n_blocks} blocks (counted from 0)"
        )),
    };
    let how = turn.cut.unwrap_or_default();
    match (
        turn.cut_after,
        turn.cut_after_chunks,
        turn.error_after,
        turn.failed,
    ) {
        (None, None, None, None) if turn.cut.is_some() => {
            Err("`cut` needs `cut_after` or `cut_after_chunks`".to_owned())
        }
        (None, None, None, None) => Ok(Ending::Whole),
        (Some(block), None, None, None) => Ok(Ending::Cut {
            after: Place::Block(inside("cut_after", block)?),
            how,
        }),
        (None, Some(chunks), None, None) => Ok(Ending::Cut {
            after: Place::Chunks(chunks),
            how,
        }),
        (None, None, Some(after), None) => {
            let message = turn.message.unwrap_or_else(|| "Overloaded".to_owned());
            let failure = Failure {
                kind: turn.error_type,
                message,
            };
            Ok(Ending::Fails {
                after: inside("error_after", after)?,
                failure,
            })
        }
        (None, None, None, Some(FileFailure { code, message })) => {
            let after = n_blocks
                .checked_sub(1)
                .ok_or("`failed` comes after a block, and the turn has none")?;
            Ok(Ending::Fails {
                after,
                failure: Failure {
                    kind: code,
                    message,
                },
            })
        }
        _ => Err(
            "a turn ends by one of `cut_after`, `cut_after_chunks`, `error_after`, `failed`"
                .to_owned(),
        ),
    }
}

fn api_error(turn: FileTurn, status: u16) -> Result<ApiError, String> {
    let status = StatusCode::from_u16(status)
        .ok()
        .filter(|it| it.is_client_error() || it.is_server_error())
        .ok_or_else(|| format!("`status` is {status}; an error status is 400 to 599"))?;
    let is_streamed = turn.stop.is_some()
        || turn.usage.is_some()
        || turn.chunk.is_some()
        || turn.chunk_delay_ms.is_some()
        || turn.cut_after.is_some()
        || turn.cut_after_chunks.is_some()
        || turn.error_after.is_some()
        || turn.failed.is_some();
    if is_streamed {
        return Err("a turn with an error `status` has only `error_type`, `message`, `body`, `headers` and `delay_ms`".to_owned());
    }
    let message = turn
        .message
        .unwrap_or_else(|| status.canonical_reason().unwrap_or("error").to_owned());
    Ok(ApiError {
        status,
        kind: turn.error_type,
        message,
        body: turn.body,
    })
}

fn headers(pairs: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let bad = || format!("`{name}: {value}` is no HTTP header");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    Ok(headers)
}

fn milliseconds(key: &str, value: Option<f64>) -> Result<Duration, String> {
    // Fractions count: a pace may be below a millisecond.
    let seconds = value.unwrap_or(0.0) / 1000.0;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("`{key}` is a number of milliseconds, zero or more"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBlock {
    text: Option<String>,
    /// How often the text is repeated: long answers in short scripts.
    times: Option<usize>,
    thinking: Option<String>,
    #[serde(alias = "sig")]
    signature: Option<String>,
    redacted: Option<String>,
    refusal: Option<String>,
    tool: Option<String>,
    namespace: Option<String>,
    custom: Option<String>,
    /// As written, so that the agent sees the keys in the script's order.
    input: Option<Box<RawValue>>,
    #[serde(alias = "badjson")]
    raw_input: Option<String>,
    raw: Option<Value>,
}

impl TryFrom<FileBlock> for super::Block {
    type Error = String;

    fn try_from(block: FileBlock) -> Result<super::Block, String> {
        // An enum of serde would not name the keys that exclude each other.
        let kinds = [
            block.text.is_some(),
            block.thinking.is_some(),
            block.redacted.is_some(),
            block.refusal.is_some(),
            block.tool.is_some(),
            block.custom.is_some(),
            block.raw.is_some(),
        ];
        if kinds.iter().filter(|it| **it).count() != 1 {
            return Err(
                "a block has one of `text`, `thinking`, `redacted`, `refusal`, `tool`, `custom`, `raw`".to_owned()
            );
        }
        if let Some(text) = block.text {
            return repeated(&text, block.times.unwrap_or(1)).map(super::Block::Text);
        }
        if let Some(text) = block.thinking {
            return Ok(super::Block::Thinking {
                text,
                signature: block.signature,
            });
        }
        if let Some(name) = block.tool {
            // The text of the script, so that the agent sees the keys in its order.
            let written = block
                .input
                .map_or_else(|| "{}".to_owned(), |it| it.get().to_owned());
            let input = block.raw_input.unwrap_or(written);
            return Ok(super::Block::Tool {
                name,
                namespace: block.namespace,
                input,
            });
        }
        if let Some(name) = block.custom {
            let input = block.input.as_ref().map_or("\"\"", |it| it.get());
            let input = serde_json::from_str(input)
                .map_err(|_| "the `input` of a `custom` tool is a string".to_owned())?;
            return Ok(super::Block::Custom { name, input });
        }
        let rest = block.redacted.map(super::Block::Redacted);
        let rest = rest.or(block.refusal.map(super::Block::Refusal));
        rest.or(block.raw.map(super::Block::Raw))
            .ok_or_else(|| "an empty block".to_owned())
    }
}

fn repeated(text: &str, times: usize) -> Result<String, String> {
    match text.len().checked_mul(times) {
        Some(len) if len <= MAX_TEXT => Ok(text.repeat(times)),
        _ => Err(format!(
            "`times` makes the text longer than {MAX_TEXT} bytes"
        )),
    }
}
