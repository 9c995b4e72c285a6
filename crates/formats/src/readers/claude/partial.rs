//! Partial messages: the Messages API's own events, forwarded while a response streams.
//!
//! Every block arrives twice: as deltas, and whole in an `assistant` line just before its stop. The
//! deltas open the item here; the whole block closes it, under the same id.

use std::borrow::Cow;

use model::{
    Basis, Body, Channel, Item, ItemId, Level, Message, Reasoning, Role, Scope, Text, Tokens, Tool,
    Usage,
};

use super::{Claude, FrameContext};
use crate::readers::machine::MessageReader as _;
use crate::readers::recent::Recent;
use crate::tools;
use crate::wire::claude::{self as wire, Block, Line};
use crate::wire::lenient::{Any, Object as _};

/// The responses that stream now, one for each agent: the main one and its sub-agents stream at once,
/// and only the call that started a sub-agent tells whose event it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Partials {
    all: Recent<(Option<String>, Partial), MAX_STREAMING>,
    /// Whose frame is being read.
    now: usize,
}

/// Agents that stream at once; the one that began first is forgotten first.
const MAX_STREAMING: usize = 256;

impl Partials {
    /// A frame of the agent that `parent` started, or of the main agent.
    pub(super) fn enter(&mut self, parent: Option<&str>) {
        let known = self.all.iter().position(|it| it.0.as_deref() == parent);
        self.now = known.unwrap_or_else(|| {
            self.all
                .push((parent.map(str::to_owned), Partial::default()))
        });
    }

    /// What the agent streams whose frame is being read.
    pub(super) fn now(&mut self) -> &mut Partial {
        if self.all.is_empty() {
            self.enter(None);
        }
        let last = self.all.len() - 1;
        &mut self.all[self.now.min(last)].1
    }
}

/// The response that streams now.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    response: Option<String>,
    model: Option<String>,
    tokens: Option<Tokens>,
    blocks: Vec<Streaming>,
}

#[derive(Clone, Debug)]
struct Streaming {
    index: u64,
    kind: &'static str,
    key: ItemId<'static>,
    /// The whole block has come.
    is_whole: bool,
}

/// Blocks of one response; the API allows far fewer.
const MAX_BLOCKS: usize = 1024;

impl Partial {
    /// The id under which a whole block of this kind was streamed, if it was.
    pub(super) fn whole(&mut self, response: &str, kind: &str) -> Option<ItemId<'static>> {
        if !self.is_streaming(response) {
            return None;
        }
        let mut blocks = self.blocks.iter_mut();
        // Blocks come whole in the order they streamed, so the first open one of the kind is meant.
        let block = blocks.find(|it| !it.is_whole && it.kind == kind)?;
        block.is_whole = true;
        Some(block.key.clone())
    }

    fn is_streaming(&self, response: &str) -> bool {
        self.response.as_deref() == Some(response)
    }

    fn at(&self, index: u64) -> Option<&Streaming> {
        self.blocks.iter().rfind(|it| it.index == index)
    }
}

impl Claude {
    pub(super) fn stream_event<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        self.lifecycle.emit_bound(cx);
        let parent = line.parent_tool_use_id.str();
        // As for whole lines: a background sub-agent that goes on after its run begins no turn.
        if parent.is_none() {
            self.begin_turn(cx);
        }
        self.enter(cx, parent.as_deref());
        let response = line.api_message_id;
        let event = &mut line.event;
        cx.extra.append(event.extra());
        match event.r#type.str().as_deref() {
            Some("content_block_delta") => self.block_delta(cx, event, response),
            Some("content_block_start") => {
                let mut block = event.content_block.take();
                cx.extra.append(block.extra());
                self.block_start(cx, event.index, &block, response);
            }
            Some("content_block_stop") => {
                if let Some(index) = event.index.as_u64() {
                    self.block_stop(cx, index);
                }
            }
            Some("message_start") => {
                // A stream may lack the `message_stop` of the response before: what it left
                // streaming ends here.
                self.stop_blocks(cx);
                let message = event.message.take();
                let id = message.id.str().or(response.str());
                let partial = self.partials.now();
                partial.response = id.map(Cow::into_owned);
                partial.model = message.model.str().map(Cow::into_owned);
                partial.tokens = tokens(message.usage);
                if cx.has("ttft_ms") {
                    let text = "the model began to answer";
                    self.lifecycle
                        .raise(cx, Level::Debug, "response_started", text);
                }
            }
            Some("message_delta") => {
                cx.extra.append(event.delta.extra());
                self.response_usage(cx, event.usage);
            }
            Some("message_stop") => {
                if cx.has("abandoned_blocks") {
                    let text = "the response was given up";
                    self.lifecycle
                        .raise(cx, Level::Debug, "response_abandoned", text);
                }
                self.stop_blocks(cx);
            }
            Some("ping") => (),
            other => {
                let what = format!("stream event `{}`", other.unwrap_or_default());
                self.lifecycle.unmapped(cx, what);
            }
        }
    }

    fn block_start<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        index: Any<'_>,
        block: &Block<'c>,
        response: Any<'_>,
    ) {
        let kind = match block.r#type.str().as_deref() {
            Some("text") => "text",
            Some("thinking") => "thinking",
            Some("redacted_thinking") => "redacted_thinking",
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => "tool_use",
            // Whole when its assistant line comes: results of server tools, blocks of later versions.
            _ => return,
        };
        let index = index.as_u64().unwrap_or_default();
        let key = self.open_block(cx, index, kind, response, Some(block));
        // Usually empty; words that do come with the start are pieces like any other.
        for text in [block.text, block.thinking]
            .into_iter()
            .filter_map(Any::text)
        {
            self.lifecycle.delta(cx, &key, Channel::Text, text);
        }
    }

    /// Opens the item that a block's deltas will fill.
    fn open_block<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        index: u64,
        kind: &'static str,
        response: Any<'_>,
        block: Option<&Block<'c>>,
    ) -> ItemId<'static> {
        let known = &mut self.partials.now().response;
        if known.is_none() {
            *known = response.str().map(Cow::into_owned);
        }
        let response = known.clone().unwrap_or_else(|| "message".to_owned());
        // A call has its own id, but takes up a number: whole lines count it as well.
        let numbered = self.next_block(&response);
        let group = Some(Cow::Owned(response));
        let call = block
            .and_then(|it| it.id.str())
            .filter(|_| kind == "tool_use");
        let key = call.map_or(numbered, |id| ItemId::new(id.into_owned()));
        let item = match kind {
            "text" => Item::Message(Message {
                group,
                ..Message::new(key.clone(), Role::Assistant, Text::EMPTY)
            }),
            "tool_use" => {
                let name = block.and_then(|it| it.name.str());
                let name = name.map_or_else(|| "unknown".to_owned(), Cow::into_owned);
                let kind = block.and_then(|it| it.r#type.str());
                // The name alone tells what kind of call it will be.
                let tool = Tool {
                    group,
                    server_side: kind.is_some_and(|it| it != "tool_use"),
                    ..tools::call(key.clone(), name, None, self.cwd.as_deref())
                };
                tool.into()
            }
            _ => Item::Reasoning(Reasoning {
                group,
                ..Reasoning::new(key.clone(), Text::EMPTY)
            }),
        };
        self.lifecycle.open(cx, item);
        if self.partials.now().blocks.len() < MAX_BLOCKS {
            self.partials.now().blocks.push(Streaming {
                index,
                kind,
                key: key.clone(),
                is_whole: false,
            });
        }
        key
    }

    fn block_delta<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        event: &wire::StreamEvent<'c>,
        response: Any<'_>,
    ) {
        let delta = &event.delta;
        let index = event.index.as_u64().unwrap_or_default();
        let (kind, channel, text) = match (delta.text.0, delta.thinking.0, delta.partial_json.0) {
            (Some(text), _, _) => ("text", Channel::Text, text),
            (None, Some(text), _) => ("thinking", Channel::Text, text),
            (None, None, Some(text)) => ("tool_use", Channel::Input, text),
            // A signature comes again with the whole block; citations and the like do too.
            (None, None, None) => return,
        };
        match self.partials.now().at(index) {
            // A piece after the whole block adds nothing: the block is closed.
            Some(block) if block.is_whole && block.kind == kind && kind != "tool_use" => return,
            Some(block) if block.kind == kind => (),
            // Its start is missing, or belongs to another block.
            Some(_) | None => {
                self.open_block(cx, index, kind, response, None);
            }
        }
        if let Some(block) = self.partials.now().at(index) {
            let text = Text::from_json(text);
            self.lifecycle.delta(cx, &block.key, channel, text);
        }
    }

    /// A block ends; usually its whole form has closed it already.
    fn block_stop(&mut self, cx: &mut FrameContext<'_>, index: u64) {
        let mut blocks = self.partials.now().blocks.iter_mut();
        let Some(block) = blocks.rfind(|it| it.index == index && !it.is_whole) else {
            return;
        };
        block.is_whole = true;
        let block = block.clone();
        self.close_streamed(cx, &block);
    }

    fn stop_blocks(&mut self, cx: &mut FrameContext<'_>) {
        for block in std::mem::take(&mut self.partials.now().blocks) {
            if !block.is_whole {
                self.close_streamed(cx, &block);
            }
        }
        // Later lines of the same response then take new ids, because none of it streams any longer.
        self.partials.now().response = None;
    }

    /// Closes a text of which only the pieces came; a tool call still waits for its result.
    fn close_streamed(&mut self, cx: &mut FrameContext<'_>, block: &Streaming) {
        if block.kind != "tool_use" {
            self.lifecycle.close_streamed(cx, &block.key, Vec::new());
        }
    }

    /// The usage of a model request, emitted once per response.
    pub(super) fn call_usage(
        &mut self,
        cx: &mut FrameContext<'_>,
        group: Option<&str>,
        message: &wire::Message<'_>,
    ) {
        let Some(group) = group else { return };
        // `message.usage` repeats on every block; a streamed response reports its own at
        // `message_delta`.
        if self.partials.now().is_streaming(group) || self.responses.has(group) {
            return;
        }
        // The numbers are those of the response's start: the output is not known yet.
        if let Some(tokens) = tokens(message.usage) {
            let tokens = Tokens {
                output: None,
                reasoning: None,
                ..tokens
            };
            let usage = Usage {
                model: message.model.str(),
                detail: message.usage.raw(),
                ..Usage::new(Scope::Call, Basis::Delta, tokens)
            };
            self.lifecycle.emit(cx, Body::UsageReported(usage));
        }
    }

    fn response_usage(&mut self, cx: &mut FrameContext<'_>, end: Any<'_>) {
        // Taken, so that a second `message_delta` of the response does not report it again.
        let Some(start) = self.partials.now().tokens.take() else {
            return;
        };
        let end_tokens = tokens(end).unwrap_or_default();
        // The end repeats what went in, where it knows it better than the start.
        let known = match end_tokens.all_input() {
            0 => start,
            _ => end_tokens,
        };
        let tokens = Tokens {
            output: end_tokens.output.or(start.output),
            reasoning: start.reasoning,
            ..known
        };
        let usage = Usage {
            model: self.partials.now().model.clone().map(Cow::Owned),
            detail: end.raw(),
            ..Usage::new(Scope::Call, Basis::Delta, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }
}

/// The counts of a `usage` object; `None` when there is none.
pub(super) fn tokens(usage: Any<'_>) -> Option<Tokens> {
    let usage: wire::Usage<'_> = usage.parse()?;
    Some(Tokens {
        input: usage.input_tokens.count(),
        cache_read: usage.cache_read_input_tokens.count(),
        cache_write: usage
            .cache_creation_input_tokens
            .as_u64()
            .unwrap_or_default(),
        output: usage.output_tokens.as_u64(),
        reasoning: usage.output_tokens_details.thinking_tokens.as_u64(),
    })
}
