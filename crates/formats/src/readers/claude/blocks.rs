//! Content blocks: what an assistant or user line says.

use std::borrow::Cow;

use model::{Item, ItemId, Level, Message, Notice, Part, Raw, Reasoning, Role, Status, Text, Tool};
use serde::Deserialize;

use super::{Claude, FrameContext, RawValue};
use crate::readers::machine::MessageReader as _;
use crate::tools;
use crate::wire::claude::{self as wire, Block, Line};
use crate::wire::lenient::{Any, Object as _, Words};

/// Bytes kept of the last words; more of them are not repeated with the end of the run.
const MAX_ANSWER: usize = 1024 * 1024;

impl Claude {
    pub(super) fn assistant<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        let parent = line.parent_tool_use_id.str();
        self.lifecycle.emit_bound(cx);
        if parent.is_none() {
            self.begin_turn(cx);
        }
        self.enter(cx, parent.as_deref());
        let has_message = line.message.is_object();
        let mut message = line.message.take();
        if !has_message {
            message.content = std::mem::take(&mut line.content);
            message.model = line.model;
        }
        cx.extra.append(message.extra());
        if line.is_api_error_message.is_true() {
            return self.api_error(cx, message);
        }
        // A repackaged message has no id, but it is one whole response.
        let group = message.id.str();
        let group = group.or_else(|| cx.frame.map(|n| Cow::Owned(format!("m{n}"))));
        self.call_usage(cx, group.as_deref(), &message);
        let Words::Blocks(blocks) = message.content else {
            return match message.content {
                Words::Text(words) => {
                    let status = Status::Ok;
                    self.text_block(cx, group.as_deref(), Text::Plain(words), status);
                }
                Words::Blocks(_) | Words::None => self.lifecycle.unmapped(
                    cx,
                    "assistant message without content".to_owned(),
                    text,
                ),
            };
        };
        let status = if line.aborted.is_true() {
            Status::Cancelled
        } else {
            Status::Ok
        };
        for (at, block) in blocks.into_iter().enumerate() {
            self.assistant_block(cx, group.as_deref(), block, status, || nth_block(text, at));
        }
    }

    fn assistant_block<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        group: Option<&str>,
        mut block: Block<'c>,
        status: Status,
        raw: impl FnOnce() -> Option<&'c RawValue>,
    ) {
        let kind = block.r#type.str();
        cx.extra.append(block.extra());
        match kind.as_deref() {
            Some("text") | None if block.text.0.is_some() => {
                self.text_block(
                    cx,
                    group,
                    block.text.raw().map(Text::from).unwrap_or_default(),
                    status,
                );
            }
            Some("thinking") | None if block.thinking.0.is_some() => {
                let text = block.thinking.raw().map(Text::from).unwrap_or_default();
                let signature = block
                    .signature
                    .raw()
                    .map(Text::from)
                    .filter(|it| !it.is_empty());
                self.reasoning_block(cx, group, text, signature, None, status);
            }
            Some("redacted_thinking") => {
                let data = block.data.raw().map(Text::from);
                self.reasoning_block(cx, group, Text::EMPTY, None, data, status);
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") | None if block.id.is_str() => {
                let server_side = kind.as_deref().is_some_and(|it| it != "tool_use");
                self.tool_use(cx, group, block, server_side);
            }
            Some(name) if name.ends_with("tool_result") && block.tool_use_id.is_str() => {
                self.tool_result(cx, block, None, None);
            }
            None if block.tool_use_id.is_str() => self.tool_result(cx, block, None, None),
            other => self.unmapped_block(cx, other, raw()),
        }
    }

    fn text_block(
        &mut self,
        cx: &mut FrameContext<'_>,
        group: Option<&str>,
        text: Text<'_>,
        status: Status,
    ) {
        if cx.path.is_empty() && !text.is_empty() {
            self.user_blocks(&text);
        }
        let id = self.block_id(group, "text");
        let group = group.map(|it| Cow::Owned(it.to_owned()));
        let message = Message {
            id,
            role: Role::Assistant,
            group,
            text,
            parts: Vec::new(),
        };
        self.lifecycle
            .close_text(cx, Item::Message(message), status);
    }

    fn reasoning_block(
        &mut self,
        cx: &mut FrameContext<'_>,
        group: Option<&str>,
        text: Text<'_>,
        signature: Option<Text<'_>>,
        encrypted: Option<Text<'_>>,
        status: Status,
    ) {
        let id = self.block_id(
            group,
            if encrypted.is_some() {
                "redacted_thinking"
            } else {
                "thinking"
            },
        );
        let group = group.map(|it| Cow::Owned(it.to_owned()));
        let reasoning = Reasoning {
            id,
            group,
            text,
            signature,
            encrypted,
        };
        self.lifecycle
            .close_text(cx, Item::Reasoning(reasoning), status);
    }

    /// The id a block was streamed under, or a new one.
    fn block_id(&mut self, group: Option<&str>, kind: &str) -> ItemId<'static> {
        let group = group.unwrap_or("message");
        self.partials
            .whole(group, kind)
            .unwrap_or_else(|| self.responses.block_id(group))
    }

    pub(super) fn tool_use<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        group: Option<&str>,
        block: Block<'c>,
        server_side: bool,
    ) {
        let Some(id) = block.id.str() else { return };
        if let Some(group) = group {
            // The block has an id of its own, but it still takes up a place in its response.
            if self.partials.whole(group, "tool_use").is_none() {
                self.responses.block_id(group);
            }
        }
        let name = block.name.str().unwrap_or_default();
        let input = block.input.raw();
        let class = tools::classify(&name, input.as_ref(), self.cwd.as_deref());
        let tool = Tool {
            id: ItemId::new(id),
            group: group.map(|it| Cow::Owned(it.to_owned())),
            name,
            input,
            class,
            server_side,
            result: None,
        };
        self.lifecycle.update(cx, Item::Tool(Box::new(tool)));
    }

    pub(super) fn user<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        let parent = line.parent_tool_use_id.str();
        let mut content = std::mem::take(&mut line.content);
        if line.message.is_object() {
            let mut message = line.message.take();
            cx.extra.append(message.extra());
            content = message.content;
        }
        self.lifecycle.emit_bound(cx);
        let Words::Blocks(blocks) = content else {
            let (words, _) = text_and_parts(content);
            if parent.is_none() && !is_echo(line, &words) {
                self.begin_turn(cx);
            }
            self.enter(cx, parent.as_deref());
            return self.user_text(cx, line, words, Vec::new());
        };
        let is_results = blocks.iter().any(|it| it.tool_use_id.0.is_some());
        if parent.is_none() && (is_results || !is_marker(&blocks)) {
            self.begin_turn(cx);
        }
        self.enter(cx, parent.as_deref());
        let mut said = Vec::new();
        for (at, mut block) in blocks.into_iter().enumerate() {
            let kind = block.r#type.str();
            cx.extra.append(block.extra());
            match kind.as_deref() {
                Some("tool_result") | None if block.tool_use_id.is_str() => {
                    self.tool_result(
                        cx,
                        block,
                        line.tool_use_result.raw(),
                        line.tool_result_meta.raw(),
                    );
                }
                Some("text") | None if block.text.0.is_some() => {
                    said.push(UserBlock::Text(
                        block.text.raw().map(Text::from).unwrap_or_default(),
                    ));
                }
                Some("image") => said.push(UserBlock::Part(image(&block, nth_block(text, at)))),
                Some("document") => said.extend(
                    nth_block(text, at).map(|raw| UserBlock::Part(Part::Other(Raw::borrowed(raw)))),
                ),
                other => self.unmapped_block(cx, other, nth_block(text, at)),
            }
        }
        if !said.is_empty() {
            let (words, parts) = join(said);
            self.user_text(cx, line, words, parts);
        }
    }

    /// Words in a user line: a prompt, its echo, a marker, or the program speaking to its model.
    fn user_text(
        &mut self,
        cx: &mut FrameContext<'_>,
        line: &Line<'_>,
        text: Text<'_>,
        parts: Vec<Part<'_>>,
    ) {
        let words = text.to_str();
        if words.starts_with("[Request interrupted by user") {
            self.was_interrupted = true;
            let text = Text::new(words.trim_matches(['[', ']']).to_owned());
            return self
                .lifecycle
                .notice(cx, notice(Level::Info, "interrupted", text));
        }
        if let Some(output) = words.strip_prefix("<local-command-stdout>") {
            let output = output
                .strip_suffix("</local-command-stdout>")
                .unwrap_or(output);
            let text = Text::new(output.to_owned());
            return self
                .lifecycle
                .notice(cx, notice(Level::Info, "command_output", text));
        }
        if let Some(compaction) = &self.compaction
            && line.is_synthetic.is_true()
        {
            let key = compaction.clone();
            self.compaction = None;
            let summary = text.clone().into_owned();
            return self.lifecycle.close(cx, &key, Status::Ok, |item| {
                if let Item::Compaction(it) = item {
                    it.summary = Some(summary);
                }
            });
        }
        if line.is_replay.is_true() && self.shown_prompt.as_deref() == Some(&*words) {
            self.shown_prompt = None;
            return self.lifecycle.notice(
                cx,
                notice(Level::Debug, "echo", Text::new("the prompt was echoed")),
            );
        }
        let role = if line.is_synthetic.is_true() {
            Role::Harness
        } else {
            Role::User
        };
        drop(words);
        self.show_message(cx, role, text, parts);
    }

    fn unmapped_block(
        &mut self,
        cx: &mut FrameContext<'_>,
        kind: Option<&str>,
        raw: Option<&RawValue>,
    ) {
        let what = kind.map_or_else(
            || "block without a type".to_owned(),
            |kind| format!("block `{kind}`"),
        );
        let json = raw.map_or("null", RawValue::get);
        self.lifecycle.unmapped(cx, what, json);
    }

    /// A line of the type `error`: whatever prints it for the agent says that the turn has failed.
    pub(super) fn error_line(&mut self, cx: &mut FrameContext<'_>, json: &str) {
        let line: wire::ErrorLine<'_> = serde_json::from_str(json).unwrap_or_default();
        let error: wire::ErrorBody<'_> = line.error.parse().unwrap_or_default();
        let words = |it: Any<'_>| {
            it.raw()
                .filter(Raw::is_string)
                .map(|it| Text::from(it).into_owned())
                .filter(|it| !it.is_empty())
        };
        let said = words(line.message)
            .or_else(|| words(error.message))
            .or_else(|| words(line.error))
            .unwrap_or(Text::new("the agent reported an error"));
        self.begin_turn(cx);
        self.api_error = error
            .r#type
            .0
            .map(Cow::into_owned)
            .or(self.api_error.take());
        self.error = Some(said.clone());
        self.lifecycle
            .notice_with_frame(cx, Level::Error, "error", said, json);
    }

    /// The agent's last text, in case no result repeats it.
    fn user_blocks(&mut self, text: &Text<'_>) {
        let is_kept = text.len_bound() <= MAX_ANSWER;
        self.last_text = is_kept.then(|| text.clone().into_owned());
    }

    /// A failure of the model's API comes as an assistant's text, and is none.
    fn api_error(&mut self, cx: &mut FrameContext<'_>, message: wire::Message<'_>) {
        let word = cx
            .extra
            .iter()
            .find(|(key, _)| key == "error")
            .map(|(_, value)| Text::from(value.by_ref()).to_str().into_owned());
        self.api_error = word;
        let (text, _) = text_and_parts(message.content);
        self.lifecycle
            .notice(cx, notice(Level::Error, "api_error", text));
    }
}

pub(super) fn notice<'a>(level: Level, code: &'static str, text: Text<'a>) -> Notice<'a> {
    Notice::new(level, code, text)
}

/// The content of a user message: text and images.
enum UserBlock<'a> {
    Text(Text<'a>),
    Part(Part<'a>),
}

/// The words of any content, and what is not words.
pub(super) fn text_and_parts<'a>(content: Words<'a, Block<'a>>) -> (Text<'a>, Vec<Part<'a>>) {
    match content {
        Words::None => (Text::EMPTY, Vec::new()),
        Words::Text(text) => (Text::Plain(text), Vec::new()),
        Words::Blocks(blocks) => join(
            blocks
                .into_iter()
                .filter_map(|block| match block.text.0 {
                    Some(text) => Some(UserBlock::Text(Text::from_json(text))),
                    None if block.source.0.is_some() => Some(UserBlock::Part(image(&block, None))),
                    None => None,
                })
                .collect(),
        ),
    }
}

fn join<'a>(said: Vec<UserBlock<'a>>) -> (Text<'a>, Vec<Part<'a>>) {
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for it in said {
        match it {
            UserBlock::Text(text) => texts.push(text),
            UserBlock::Part(part) => parts.push(part),
        }
    }
    let text = match <[Text<'a>; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => Text::new(
            texts
                .iter()
                .map(Text::to_str)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    };
    (text, parts)
}

fn image<'a>(block: &Block<'a>, raw: Option<&'a RawValue>) -> Part<'a> {
    let source: wire::ImageSource<'a> = block.source.parse().unwrap_or_default();
    match (source.data.0, source.url.0, raw.or(block.source.0)) {
        (Some(data), _, _) => Part::Image {
            media_type: source.media_type.0.unwrap_or(Cow::Borrowed("image/png")),
            data: Text::from_json(data),
        },
        (None, Some(url), _) => Part::ImageUrl {
            url: Text::from_json(url),
        },
        (None, None, Some(raw)) => Part::Other(Raw::borrowed(raw)),
        (None, None, None) => Part::Other(Raw::of(&())),
    }
}

/// An interrupt marker ends a turn; it does not begin one.
fn is_marker(blocks: &[Block<'_>]) -> bool {
    blocks.iter().any(|it| {
        it.text
            .0
            .is_some_and(|text| text.get().starts_with("\"[Request interrupted"))
    })
}

/// What the CLI prints for itself between turns.
fn is_echo(line: &Line<'_>, words: &Text<'_>) -> bool {
    line.is_replay.is_true() && words.to_str().starts_with("<local-command-stdout>")
}

/// The JSON text of one content block, for a block of an unknown type.
fn nth_block(line: &str, at: usize) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct ApiErrorLine<'a> {
        #[serde(borrow)]
        message: Option<ApiErrorBody<'a>>,
        #[serde(borrow)]
        content: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    struct ApiErrorBody<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let outer: ApiErrorLine<'_> = serde_json::from_str(line).ok()?;
    outer
        .message
        .map(|it| it.content)
        .or(outer.content)?
        .get(at)
        .copied()
}
