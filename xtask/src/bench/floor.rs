//! The floors: the least that any translator of these lines has to do.
//!
//! `lines` only finds the line ends. `parse` reads every line into borrowed structs, typed where a
//! translator has to look, with payloads left as raw JSON; `sse` does so with server-sent events. None keeps or writes anything.

use std::{
    fs::File,
    hint::black_box,
    io::{ErrorKind, Read},
    path::Path,
};

use anyhow::{Context, Result, bail};
use memchr::{memchr, memrchr};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The same as `linkspan` asks for.
const READ_SIZE: usize = 64 * 1024;

/// Runs a floor and returns how many lines it saw.
pub(crate) fn run(name: &str, path: &Path) -> Result<u64> {
    match name {
        "lines" => each_line(path, |line| {
            black_box(line);
            Ok(())
        }),
        "parse" => each_line(path, |line| {
            let frame: Frame<'_> = serde_json::from_str(std::str::from_utf8(line)?)?;
            black_box(&frame);
            Ok(())
        }),
        "sse" => each_line(path, |line| {
            if let Some(data) = line.strip_prefix(b"data: ".as_slice()) {
                let event: Piece<'_> = serde_json::from_str(std::str::from_utf8(data)?)?;
                black_box(&event);
            }
            Ok(())
        }),
        _ => bail!("there is no floor `{name}`"),
    }
}

/// An event of a response, as far as anybody has to look at it.
#[expect(dead_code, reason = "what is measured is the parsing")]
#[derive(Deserialize)]
struct Piece<'a> {
    r#type: &'a str,
    output_index: Option<u64>,
    item_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
}

#[expect(dead_code, reason = "what is measured is the parsing")]
#[derive(Deserialize)]
struct Response<'a> {
    id: &'a str,
    status: Option<&'a str>,
    model: Option<&'a str>,
    #[serde(borrow)]
    output: Vec<Item<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[expect(dead_code, reason = "what is measured is the parsing")]
#[derive(Deserialize)]
struct Item<'a> {
    r#type: &'a str,
    id: Option<&'a str>,
    status: Option<&'a str>,
    role: Option<&'a str>,
    call_id: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
}

#[expect(dead_code, reason = "what is measured is the parsing")]
#[derive(Deserialize)]
struct Part<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

fn each_line(path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let mut file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut buf = vec![0; READ_SIZE];
    let mut filled = 0;
    let mut n_lines = 0;
    loop {
        if filled == buf.len() {
            buf.resize(2 * filled, 0);
        }
        let n = match file.read(&mut buf[filled..]) {
            Ok(0) => return Ok(n_lines),
            Ok(n) => n,
            Err(err) if err.kind() == ErrorKind::Interrupted => continue,
            Err(err) => return Err(err.into()),
        };
        filled += n;
        let Some(end) = memrchr(b'\n', &buf[..filled]) else {
            continue;
        };
        let mut lines = &buf[..=end];
        while let Some(end) = memchr(b'\n', lines) {
            take(&lines[..end])?;
            n_lines += 1;
            lines = &lines[end + 1..];
        }
        buf.copy_within(end + 1..filled, 0);
        filled -= end + 1;
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is measured is the parsing")]
struct Frame<'a> {
    r#type: &'a str,
    subtype: Option<&'a str>,
    session_id: Option<&'a str>,
    uuid: Option<&'a str>,
    parent_tool_use_id: Option<&'a str>,
    timestamp: Option<&'a str>,
    #[serde(borrow)]
    event: Option<StreamEvent<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    is_error: Option<bool>,
    model: Option<&'a str>,
    cwd: Option<&'a str>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is measured is the parsing")]
struct StreamEvent<'a> {
    r#type: &'a str,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is measured is the parsing")]
struct Delta<'a> {
    r#type: Option<&'a str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    stop_reason: Option<&'a str>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is measured is the parsing")]
struct Message<'a> {
    id: Option<&'a str>,
    role: Option<&'a str>,
    model: Option<&'a str>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    stop_reason: Option<&'a str>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is measured is the parsing")]
struct Block<'a> {
    r#type: &'a str,
    id: Option<&'a str>,
    name: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}
