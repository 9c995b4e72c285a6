//! Content blocks: what an assistant or user line says.

use std::borrow::Cow;

use model::{Item, ItemId, Level, Message, Part, Raw, Reasoning, Role, Status, Text, Tool};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Claude, FrameContext};
use crate::readers::content::{ContentPiece, join_text};
use crate::readers::machine::MessageReader as _;
use crate::tools;
use crate::wire::claude::{self as wire, Block, Line};
use crate::wire::lenient::{Any, Object as _, Words};
use crate::wire::scanner;

/// Bytes kept of the last words; more of them are not repeated with the end of the run.
const MAX_ANSWER: usize = 1024 * 1024;

impl Claude {
    pub(super) fn assistant<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        let parent = line.parent_tool_use_id.str();
        self.lifecycle.emit_bound(cx);
        // A background sub-agent may still work when its run is over: its lines begin no turn.
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
                Words::Blocks(_) | Words::None => self
                    .lifecycle
                    .unmapped(cx, "assistant message without content"),
            };
        };
        // An interrupt cuts a text short; Claude Code prints what there is of it, with this flag.
        let status = if line.aborted.is_true() {
            Status::Cancelled
        } else {
            Status::Ok
        };
        for (at, block) in blocks.into_iter().enumerate() {
            self.assistant_block(cx, group.as_deref(), block, status, at);
        }
    }

    fn assistant_block<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        group: Option<&str>,
        mut block: Block<'c>,
        status: Status,
        at: usize,
    ) {
        let kind = block.r#type.str();
        cx.extra.append(block.extra());
        match kind.as_deref() {
            // SDK messages have blocks without a `type`: each arm also takes one by the field only
            // it has.
            Some("text") | None if block.text.0.is_some() => {
                self.text_block(cx, group, block.text.text().unwrap_or_default(), status);
            }
            Some("thinking") | None if block.thinking.0.is_some() => {
                let text = block.thinking.text().unwrap_or_default();
                let signature = block.signature.filled_text();
                self.reasoning_block(cx, group, text, signature, None, status);
            }
            Some("redacted_thinking") => {
                let data = block.data.text();
                self.reasoning_block(cx, group, Text::EMPTY, None, data, status);
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") | None if block.id.is_str() => {
                let server_side = kind.as_deref().is_some_and(|it| it != "tool_use");
                self.tool_use(cx, group, block, server_side);
            }
            // Results of server tools (`web_search_tool_result`) stand in the assistant's own line.
            Some(name) if name.ends_with("tool_result") && block.tool_use_id.is_str() => {
                self.tool_result(cx, block, None, None);
            }
            None if block.tool_use_id.is_str() => self.tool_result(cx, block, None, None),
            other => self.unmapped_block(cx, other, at),
        }
    }

    fn text_block(
        &mut self,
        cx: &mut FrameContext<'_>,
        group: Option<&str>,
        text: Text<'_>,
        status: Status,
    ) {
        if text.len_bound() <= MAX_ANSWER {
            self.lifecycle.note_answer(cx, &text);
        } else if cx.path.is_empty() {
            // An earlier short text must not pass for the answer when the last one is too long to
            // keep.
            self.lifecycle.answer = None;
        }
        let id = self.block_id(group, "text");
        let message = Message {
            group: group.map(|it| Cow::Owned(it.to_owned())),
            ..Message::new(id, Role::Assistant, text)
        };
        self.lifecycle.close_text(cx, message.into(), status);
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
        let kind = match encrypted {
            Some(_) => "redacted_thinking",
            None => "thinking",
        };
        let reasoning = Reasoning {
            group: group.map(|it| Cow::Owned(it.to_owned())),
            signature,
            encrypted,
            ..Reasoning::new(self.block_id(group, kind), text)
        };
        self.lifecycle.close_text(cx, reasoning.into(), status);
    }

    /// The id a block was streamed under, or a new one.
    fn block_id(&mut self, group: Option<&str>, kind: &str) -> ItemId<'static> {
        let group = group.unwrap_or("message");
        // The line has no index: it is the first streamed block of its kind that has no whole form
        // yet.
        let streamed = self.partials.now().whole(group, kind);
        streamed.unwrap_or_else(|| self.next_block(group))
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
            self.block_id(Some(group), "tool_use");
        }
        let name = block.name.str().unwrap_or_default();
        let tool = Tool {
            group: group.map(|it| Cow::Owned(it.to_owned())),
            server_side,
            ..tools::call(
                ItemId::new(id),
                name,
                block.input.raw(),
                self.cwd.as_deref(),
            )
        };
        // Not `open`: with partial messages the call is open since `content_block_start`, without
        // its input.
        self.lifecycle.update(cx, tool.into());
    }

    pub(super) fn user<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
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
        // A line with results is part of the turn even if an interrupt marker stands in it too.
        let is_results = blocks.iter().any(|it| it.tool_use_id.0.is_some());
        if parent.is_none() && (is_results || !is_marker(&blocks)) {
            self.begin_turn(cx);
        }
        self.enter(cx, parent.as_deref());
        let mut pieces = Vec::new();
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
                    pieces.push(ContentPiece::Text(block.text.text().unwrap_or_default()));
                }
                Some("image") => {
                    pieces.push(ContentPiece::Part(image(&block, nth_block(cx.message, at))))
                }
                Some("document") => pieces.extend(
                    nth_block(cx.message, at)
                        .map(|raw| ContentPiece::Part(Part::Other(Raw::borrowed(raw)))),
                ),
                other => self.unmapped_block(cx, other, at),
            }
        }
        if !pieces.is_empty() {
            let (words, parts) = join_text(pieces);
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
        // The CLI has no field for an interrupt: it writes this into the conversation.
        if words.starts_with("[Request interrupted by user") {
            self.was_interrupted = true;
            let text = words.trim_matches(['[', ']']);
            return self.lifecycle.raise(cx, Level::Info, "interrupted", text);
        }
        if let Some(output) = words.strip_prefix("<local-command-stdout>") {
            let end = "</local-command-stdout>";
            let output = output.strip_suffix(end).unwrap_or(output);
            return self
                .lifecycle
                .raise(cx, Level::Info, "command_output", output);
        }
        // After a compaction the next synthetic line is its summary, not words to the model.
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
        // `--replay-user-messages` repeats each prompt; the one that was shown must not be shown
        // twice.
        if line.is_replay.is_true() && self.shown_prompt.as_deref() == Some(&*words) {
            self.shown_prompt = None;
            let text = "the prompt was echoed";
            return self.lifecycle.raise(cx, Level::Debug, "echo", text);
        }
        let role = if line.is_synthetic.is_true() {
            Role::Harness
        } else {
            Role::User
        };
        // `words` borrows from `text`, which is moved into the message.
        drop(words);
        self.show_message(cx, role, text, parts);
    }

    fn unmapped_block(&mut self, cx: &mut FrameContext<'_>, kind: Option<&str>, at: usize) {
        let what = kind.map_or_else(
            || "block without a type".to_owned(),
            |kind| format!("block `{kind}`"),
        );
        let json = nth_block(cx.message, at).map_or("null", RawValue::get);
        self.lifecycle.unmapped_part(cx, what, json);
    }

    /// A line of the type `error`: whatever prints it for the agent says that the turn has failed.
    pub(super) fn error_line(&mut self, cx: &mut FrameContext<'_>) {
        let line: wire::ErrorLine<'_> = scanner::from_str(cx.message).unwrap_or_default();
        let error: wire::ErrorBody<'_> = line.error.parse().unwrap_or_default();
        let words = |it: Any<'_>| {
            it.filled_text()
                // `error` may be an object as well as a string; the JSON of an object is no message
                // for people.
                .filter(|_| it.is_str())
                .map(Text::into_owned)
        };
        let message = words(line.message)
            .or_else(|| words(error.message))
            .or_else(|| words(line.error))
            .unwrap_or(Text::new("the agent reported an error"));
        self.begin_turn(cx);
        self.api_error = error.r#type.owned().or(self.api_error.take());
        self.error = Some(message.clone());
        self.lifecycle
            .raise_with_message(cx, Level::Error, "error", message);
    }

    /// A failure of the model's API arrives as assistant text, but is not one.
    fn api_error(&mut self, cx: &mut FrameContext<'_>, message: wire::Message<'_>) {
        let word = cx
            .extra
            .iter()
            // The word for the failure stands beside the message, in a field that no rule reads.
            .find(|(key, _)| key == "error")
            .map(|(_, value)| Text::from(value.by_ref()).to_str().into_owned());
        self.api_error = word;
        let (text, _) = text_and_parts(message.content);
        self.lifecycle.raise(cx, Level::Error, "api_error", text);
    }
}

/// The words of any content, and what is not words.
pub(super) fn text_and_parts<'a>(content: Words<'a, Block<'a>>) -> (Text<'a>, Vec<Part<'a>>) {
    match content {
        Words::None => (Text::EMPTY, Vec::new()),
        Words::Text(text) => (Text::Plain(text), Vec::new()),
        Words::Blocks(blocks) => join_text(
            blocks
                .into_iter()
                .filter_map(|block| match block.text.0 {
                    Some(text) => Some(ContentPiece::Text(Text::from_json(text))),
                    None if block.source.0.is_some() => {
                        Some(ContentPiece::Part(image(&block, None)))
                    }
                    None => None,
                })
                .collect(),
        ),
    }
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
    struct BlockLine<'a> {
        #[serde(borrow)]
        message: Option<BlockList<'a>>,
        #[serde(borrow)]
        content: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    struct BlockList<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let outer: BlockLine<'_> = scanner::from_str(line).ok()?;
    outer
        .message
        .map(|it| it.content)
        .or(outer.content)?
        .get(at)
        .copied()
}
