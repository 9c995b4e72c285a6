//! Words: the user's, the model's, and what it thought.
//!
//! A streamed text is sent piece by piece, others when they close.

use std::borrow::Cow;

use model::{Channel, Delta, Event, Message, Part, Role, Text};

use super::{Acp, AcpProfile, meta, wire};

#[derive(Clone, Debug)]
pub(super) struct AcpOpenText {
    id: String,
    source: ChunkSource,
    has_deltas: bool,
}

/// The source of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkSource {
    User,
    Agent,
    Thought,
    /// ACP has no chunk for it.
    Hidden,
}

impl Acp {
    pub(super) fn source(&mut self, event: &Event<'_>, message: &Message<'_>) -> ChunkSource {
        match (message.role, self.shape) {
            (Role::Assistant, _) => ChunkSource::Agent,
            // It was written by the agent, and is in the input of the call already.
            (Role::User, _) if !event.path.is_empty() => self.hidden("sub-agent prompt"),
            // A live client shows its own prompts already; a replay has to bring them.
            (Role::User, AcpProfile::Default) if !self.is_live => ChunkSource::User,
            (Role::User, AcpProfile::Default | AcpProfile::Seed) => self.hidden("user message"),
            (Role::Harness, _) => self.hidden("harness message"),
        }
    }

    fn hidden(&mut self, what: &'static str) -> ChunkSource {
        self.losses.count(what);
        ChunkSource::Hidden
    }

    pub(super) fn open_text(&mut self, id: &str, source: ChunkSource) {
        self.texts.push(AcpOpenText {
            id: id.to_owned(),
            source,
            has_deltas: false,
        });
    }

    pub(super) fn delta(&mut self, event: &Event<'_>, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let id = delta.item.as_str();
        match delta.channel {
            Channel::Text => {
                let Some(open) = self.texts.iter_mut().rfind(|it| it.id == id) else {
                    return;
                };
                let is_first = !std::mem::replace(&mut open.has_deltas, true);
                let source = open.source;
                if is_first {
                    self.begin_text(source, id, out);
                }
                self.text_chunk(event, source, id, &delta.text, out);
            }
            Channel::Input => (), // The whole input follows in an update.
            Channel::Output => {
                self.tool_printed(id);
                self.show_output(event, id, &delta.text.to_str(), out);
            }
        }
    }

    pub(super) fn message_closed(
        &mut self,
        event: &Event<'_>,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) {
        let id = message.id.as_str();
        let source = self.text_closed(event, id, &message.text, out);
        for part in &message.parts {
            let content = match part {
                Part::Image { media_type, data } => wire::ContentBlock::Image {
                    data: data.by_ref(),
                    mime_type: Cow::Borrowed(media_type),
                },
                // An image of ACP is its data; there is no block for one that is only an address.
                Part::ImageUrl { url } => wire::ContentBlock::ResourceLink {
                    name: url.by_ref(),
                    uri: url.by_ref(),
                },
                Part::Other(_) => {
                    self.losses.count("content block");
                    continue;
                }
            };
            self.chunk(event, source, id, content, out);
        }
    }

    /// Sends what no delta has sent.
    pub(super) fn text_closed(
        &mut self,
        event: &Event<'_>,
        id: &str,
        text: &Text<'_>,
        out: &mut Vec<u8>,
    ) -> ChunkSource {
        let Some(at) = self.texts.iter().rposition(|it| it.id == id) else {
            return ChunkSource::Hidden;
        };
        let open = self.texts.remove(at);
        // A blank message would be an empty bubble in most clients.
        if !open.has_deltas && !text.is_blank() {
            self.begin_text(open.source, id, out);
            self.text_chunk(event, open.source, id, text, out);
        }
        open.source
    }

    /// A message begins. Clients that join the chunks of a turn would glue it to the one before, so
    /// a break goes onto the end of that one.
    fn begin_text(&mut self, source: ChunkSource, id: &str, out: &mut Vec<u8>) {
        let Some(run) = &mut self.run else { return };
        let last = match source {
            ChunkSource::Agent => run.last_message.replace(id.to_owned()),
            ChunkSource::Thought => run.last_thought.replace(id.to_owned()),
            ChunkSource::User | ChunkSource::Hidden => None,
        };
        let Some(last) = last.filter(|it| it != id) else {
            return;
        };
        let chunk = wire::ContentChunk {
            message_id: Some(&last),
            content: wire::ContentBlock::Text {
                text: Text::new("\n\n"),
            },
            meta: Some(wire::Meta {
                separator: true,
                ..wire::Meta::default()
            }),
        };
        if let Some(update) = source.update(chunk) {
            self.send(out, update);
        }
    }

    fn text_chunk(
        &mut self,
        event: &Event<'_>,
        source: ChunkSource,
        id: &str,
        text: &Text<'_>,
        out: &mut Vec<u8>,
    ) {
        if text.is_empty() {
            return;
        }
        if self.connection.is_some() {
            self.mark_written(event, source);
            return self.send_later(event, source, id, &text.to_str(), out);
        }
        let text = text.by_ref();
        self.chunk(event, source, id, wire::ContentBlock::Text { text }, out);
    }

    fn mark_written(&mut self, event: &Event<'_>, source: ChunkSource) {
        if source == ChunkSource::Agent
            && let Some(run) = &mut self.run
        {
            run.has_text |= event.path.is_empty();
        }
    }

    fn chunk(
        &mut self,
        event: &Event<'_>,
        source: ChunkSource,
        id: &str,
        content: wire::ContentBlock<'_>,
        out: &mut Vec<u8>,
    ) {
        let chunk = wire::ContentChunk {
            message_id: Some(id),
            content,
            meta: meta(event),
        };
        self.mark_written(event, source);
        if let Some(update) = source.update(chunk) {
            self.send(out, update);
        }
    }
}

impl ChunkSource {
    pub(super) fn update(self, chunk: wire::ContentChunk<'_>) -> Option<wire::SessionUpdate<'_>> {
        match self {
            Self::User => Some(wire::SessionUpdate::UserMessageChunk(chunk)),
            Self::Thought => Some(wire::SessionUpdate::AgentThoughtChunk(chunk)),
            Self::Agent => Some(wire::SessionUpdate::AgentMessageChunk(chunk)),
            Self::Hidden => None,
        }
    }
}
