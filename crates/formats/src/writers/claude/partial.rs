//! Partial messages: the Messages API's own events, as `--include-partial-messages` prints them.
//!
//! The order of a block is Claude Code's: start, pieces, the `assistant` line with the whole block,
//! stop. A block that comes whole is streamed as one piece, because a client that shows the pieces
//! does not show the whole again. Sub-agents are not streamed.

use model::{Channel, Delta, Event, Item, ItemId, Raw, Role, Text, Tokens};

use super::Claude;
use crate::wire::claude::output::{
    ApiDelta, ApiEvent, AssistantMessage, Fields, OutputBlock, StopDelta, StreamBody, ToolUse,
    UsageObject,
};
use crate::writers::take;

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    message: Option<StreamedMessage>,
    blocks: Vec<StreamedBlock>,
}

#[derive(Clone, Debug)]
struct StreamedMessage {
    id: String,
    n_blocks: usize,
    has_call: bool,
    /// What it used was written.
    has_usage: bool,
    /// Its `message_delta` was written.
    is_ending: bool,
}

#[derive(Clone, Debug)]
struct StreamedBlock {
    item: ItemId<'static>,
    group: String,
    kind: StreamedKind,
    /// None before its first piece: only then it is certain what it is.
    index: Option<usize>,
    has_pieces: bool,
    /// A piece of it came while another response was streamed: it is streamed when it is whole.
    is_late: bool,
}

#[derive(Clone, Debug)]
enum StreamedKind {
    Text,
    Thinking,
    Call { name: String, server_side: bool },
}

impl Stream {
    /// A block of another response is being streamed; the API has one response at a time.
    fn is_busy(&self, group: &str) -> bool {
        let is_other = self.message.as_ref().is_some_and(|it| it.id != group);
        is_other && self.blocks.iter().any(|it| it.index.is_some())
    }

    /// The response that an item was streamed in; its group may be known only at its end.
    pub(super) fn group_of(&self, item: &ItemId<'_>) -> Option<&str> {
        let mut streamed = self.blocks.iter().filter(|it| it.index.is_some());
        Some(&*streamed.find(|it| it.item == *item)?.group)
    }
}

impl Claude {
    pub(super) fn stream_open(&mut self, event: &Event<'_>, item: &Item<'_>) {
        let Some(stream) = self.stream.as_mut().filter(|_| event.path.is_empty()) else {
            return;
        };
        let (group, kind) = match item {
            Item::Message(it) if it.role == Role::Assistant => (&it.group, StreamedKind::Text),
            Item::Reasoning(it) => (&it.group, StreamedKind::Thinking),
            Item::Tool(it) => {
                let (name, server_side) = (it.name.to_string(), it.server_side);
                (&it.group, StreamedKind::Call { name, server_side })
            }
            Item::Message(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => return,
        };
        stream.blocks.push(StreamedBlock {
            item: item.id().clone().into_owned(),
            group: group.as_deref().unwrap_or(item.id().as_str()).to_owned(),
            kind,
            index: None,
            has_pieces: false,
            is_late: false,
        });
    }

    pub(super) fn stream_delta(&mut self, event: &Event<'_>, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let Some(stream) = self.stream.as_mut().filter(|_| event.path.is_empty()) else {
            return;
        };
        let Some(at) = stream.blocks.iter().position(|it| it.item == delta.item) else {
            return;
        };
        if stream.blocks[at].index.is_none()
            && (stream.blocks[at].is_late || stream.is_busy(&stream.blocks[at].group))
        {
            stream.blocks[at].is_late = true;
            return;
        }
        let text = &delta.text;
        let piece = match (&stream.blocks[at].kind, delta.channel) {
            (StreamedKind::Text, Channel::Text) => ApiDelta::TextDelta { text },
            (StreamedKind::Thinking, Channel::Text) => ApiDelta::ThinkingDelta { thinking: text },
            (StreamedKind::Call { .. }, Channel::Input) => {
                ApiDelta::InputJsonDelta { partial_json: text }
            }
            _ => return,
        };
        self.start_block(at, None, out);
        self.piece(&delta.item, piece, out);
    }

    /// A block is whole: what was not streamed of it is streamed at once.
    pub(super) fn stream_whole(
        &mut self,
        event: &Event<'_>,
        item: &ItemId<'_>,
        group: &str,
        block: &OutputBlock<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.stream.as_mut().filter(|_| event.path.is_empty()) else {
            return;
        };
        let known = stream.blocks.iter().position(|it| it.item == *item);
        let at = known.unwrap_or_else(|| {
            stream.blocks.push(StreamedBlock {
                item: item.clone().into_owned(),
                group: group.to_owned(),
                kind: StreamedKind::Text,
                index: None,
                has_pieces: false,
                is_late: false,
            });
            stream.blocks.len() - 1
        });
        if stream.blocks[at].index.is_none() {
            // Only now it is certain which response it belongs to.
            stream.blocks[at].group = group.to_owned();
            if stream.is_busy(group) {
                return;
            }
        }
        let has_pieces = stream.blocks[at].has_pieces;
        self.start_block(at, Some(block), out);
        if has_pieces {
            return;
        }
        let input;
        let piece = match block {
            OutputBlock::Text { text } => ApiDelta::TextDelta { text },
            OutputBlock::Thinking { thinking, .. } => ApiDelta::ThinkingDelta { thinking },
            OutputBlock::ToolUse(call) | OutputBlock::ServerToolUse(call) => {
                input = Text::new(call.input.get());
                ApiDelta::InputJsonDelta {
                    partial_json: &input,
                }
            }
            OutputBlock::RedactedThinking { .. }
            | OutputBlock::ToolResult { .. }
            | OutputBlock::Image { .. } => return,
        };
        self.piece(item, piece, out);
    }

    pub(super) fn stream_stop(&mut self, event: &Event<'_>, item: &ItemId<'_>, out: &mut Vec<u8>) {
        let Some(stream) = self.stream.as_mut().filter(|_| event.path.is_empty()) else {
            return;
        };
        let block = take(&mut stream.blocks, |it| it.item == *item);
        if let Some(index) = block.and_then(|it| it.index) {
            self.api_event(&ApiEvent::ContentBlockStop { index }, out);
        }
    }

    /// What the call used that is being streamed; false where none is, or where it is known.
    pub(super) fn stream_used(&mut self, usage: &UsageObject, out: &mut Vec<u8>) -> bool {
        let stream = self.stream.as_mut();
        let message = stream.and_then(|it| it.message.as_mut());
        let Some(message) = message.filter(|it| !it.has_usage && !it.is_ending) else {
            return false;
        };
        message.has_usage = true;
        self.message_delta(usage, out);
        true
    }

    /// The response is over, unless a block of it is still streamed.
    pub(super) fn stream_end(&mut self, out: &mut Vec<u8>) {
        let Some(stream) = &self.stream else { return };
        if stream.blocks.iter().all(|it| it.index.is_none()) {
            self.end_message(out);
        }
    }

    /// The turn is over.
    pub(super) fn stream_end_all(&mut self, out: &mut Vec<u8>) {
        self.end_message(out);
        if let Some(stream) = &mut self.stream {
            stream.blocks.clear();
        }
    }

    fn end_message(&mut self, out: &mut Vec<u8>) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let Some(message) = &stream.message else {
            return;
        };
        let is_ending = message.is_ending;
        let open: Vec<usize> = stream.blocks.iter().filter_map(|it| it.index).collect();
        stream.blocks.retain(|it| it.index.is_none());
        for index in open {
            self.api_event(&ApiEvent::ContentBlockStop { index }, out);
        }
        if !is_ending {
            let usage = self.call.as_ref().map(|it| it.usage.clone());
            let usage = usage.unwrap_or(UsageObject::Counts(Tokens::default()));
            self.message_delta(&usage, out);
        }
        self.api_event(&ApiEvent::MessageStop, out);
        if let Some(stream) = &mut self.stream {
            stream.message = None;
        }
    }

    fn message_delta(&mut self, usage: &UsageObject, out: &mut Vec<u8>) {
        let stream = self.stream.as_mut();
        let Some(message) = stream.and_then(|it| it.message.as_mut()) else {
            return;
        };
        message.is_ending = true;
        let stop_reason = match message.has_call {
            true => "tool_use",
            false => "end_turn",
        };
        let delta = StopDelta {
            stop_reason,
            stop_sequence: None,
        };
        self.api_event(&ApiEvent::MessageDelta { delta, usage }, out);
    }

    /// Starts the block at `at`, and the response before it; `whole` where it comes in one piece.
    fn start_block(&mut self, at: usize, whole: Option<&OutputBlock<'_>>, out: &mut Vec<u8>) {
        let Some(stream) = &self.stream else { return };
        let block = stream.blocks[at].clone();
        if block.index.is_some() {
            return;
        }
        let is_other = |it: &StreamedMessage| it.id != block.group || it.is_ending;
        if stream.message.as_ref().is_some_and(is_other) {
            self.end_message(out);
        }
        self.start_message(&block.group, out);
        let content_block = match (whole, &block.kind) {
            (Some(OutputBlock::Thinking { .. }), _) | (None, StreamedKind::Thinking) => {
                OutputBlock::Thinking {
                    thinking: Text::EMPTY,
                    signature: Text::EMPTY,
                }
            }
            (Some(OutputBlock::RedactedThinking { data }), _) => OutputBlock::RedactedThinking {
                data: data.by_ref(),
            },
            (Some(OutputBlock::ToolUse(call)), _) => {
                OutputBlock::ToolUse(empty_call(call.id, call.name))
            }
            (Some(OutputBlock::ServerToolUse(call)), _) => {
                OutputBlock::ServerToolUse(empty_call(call.id, call.name))
            }
            (None, StreamedKind::Call { name, server_side }) => {
                let call = empty_call(block.item.as_str(), name);
                match server_side {
                    true => OutputBlock::ServerToolUse(call),
                    false => OutputBlock::ToolUse(call),
                }
            }
            (Some(_), _) | (None, StreamedKind::Text) => OutputBlock::Text { text: Text::EMPTY },
        };
        let is_call = matches!(content_block, OutputBlock::ToolUse(_));
        let Some(stream) = &mut self.stream else {
            return;
        };
        let Some(message) = &mut stream.message else {
            return;
        };
        let index = message.n_blocks;
        message.n_blocks += 1;
        message.has_call |= is_call;
        // Ending a message takes its blocks away, so that this one may have moved.
        if let Some(it) = stream.blocks.iter_mut().find(|it| it.item == block.item) {
            it.index = Some(index);
        }
        let start = ApiEvent::ContentBlockStart {
            index,
            content_block,
        };
        self.api_event(&start, out);
    }

    fn start_message(&mut self, group: &str, out: &mut Vec<u8>) {
        if self.stream.as_ref().is_none_or(|it| it.message.is_some()) {
            return;
        }
        self.begin(out);
        self.attach_call(group);
        let call = self.call.as_ref();
        let call = call.filter(|it| it.group.as_deref() == Some(group));
        let has_usage = call.is_some();
        let usage = call.map(|it| it.usage.clone());
        let usage = usage.unwrap_or(UsageObject::Counts(Tokens::default()));
        let model = call.and_then(|it| it.model.clone());
        let model = model.unwrap_or_else(|| self.session.model.clone());
        if let Some(stream) = &mut self.stream {
            stream.message = Some(StreamedMessage {
                id: group.to_owned(),
                n_blocks: 0,
                has_call: false,
                has_usage,
                is_ending: false,
            });
        }
        let null = || Raw::of(&());
        let message = AssistantMessage {
            id: group,
            r#type: "message",
            role: "assistant",
            model: &model,
            content: [],
            usage: &usage,
            extra: Fields(vec![("stop_reason", null()), ("stop_sequence", null())]),
        };
        self.api_event(&ApiEvent::MessageStart { message }, out);
    }

    fn piece(&mut self, item: &ItemId<'_>, delta: ApiDelta<'_>, out: &mut Vec<u8>) {
        let stream = self.stream.as_mut();
        let block = stream.and_then(|it| it.blocks.iter_mut().find(|it| it.item == *item));
        let Some(block) = block else { return };
        block.has_pieces = true;
        if let Some(index) = block.index {
            self.api_event(&ApiEvent::ContentBlockDelta { index, delta }, out);
        }
    }

    fn api_event(&mut self, event: &ApiEvent<'_>, out: &mut Vec<u8>) {
        let id = self.stream.as_ref().and_then(|it| it.message.as_ref());
        let id = id.map(|it| it.id.clone()).unwrap_or_default();
        let body = StreamBody {
            event,
            parent_tool_use_id: None,
            api_message_id: &id,
        };
        self.lines
            .write("stream_event", body, None, Fields::default(), out);
    }
}

fn empty_call<'a>(id: &'a str, name: &'a str) -> ToolUse<'a> {
    ToolUse {
        id,
        name,
        input: Raw::parse("{}".to_owned()),
    }
}
