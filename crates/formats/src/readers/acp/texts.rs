//! Chunks of text: they add up to a message until the voice or the message's id changes, or a tool
//! is called.

use model::{Channel, Item, ItemId, Message, Origin, Part, Reasoning, Role, Status, Text};

use super::wire::Update;
use super::{Acp, FrameContext};
use crate::readers::acp_tool_content;
use crate::readers::content::ContentPiece;
use crate::wire::lenient::{Any, List};

/// Messages open at once: one of the agent and one of each sub-agent.
const MAX_LANES: usize = 64;
/// Pictures and files of one message, and the bytes they may have.
const MAX_PARTS: usize = 64;
const MAX_PART_BYTES: usize = 16 * 1024 * 1024;
/// Of a prompt, what is compared with the agent's echo of it.
const MAX_ECHO: usize = 1024 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct AcpTexts {
    lanes: Vec<TextLane>,
    n: u64,
    /// What is left of the prompt, should the agent repeat it.
    echo: Option<String>,
}

#[derive(Clone, Debug)]
struct TextLane {
    /// The call that started the sub-agent; absent for the agent itself.
    call: Option<ItemId<'static>>,
    voice: ChunkRole,
    message: Option<String>,
    key: ItemId<'static>,
    parts: Vec<Part<'static>>,
    n_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkRole {
    User,
    Agent,
    Thought,
}

impl Acp {
    pub(super) fn chunk<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        voice: ChunkRole,
        update: &Update<'c>,
    ) {
        let Some(content) = update.content.0 else {
            return;
        };
        let piece = acp_tool_content::piece(content);
        let message = update.message_id.as_deref();
        if voice == ChunkRole::User && cx.path.is_empty() {
            cx.origin = Origin::Client;
            // A history is one stream of chunks: the user's next words begin its next run.
            if self.is_replay && self.has_answered() {
                self.end_replay(cx);
            }
            if let ContentPiece::Text(text) = &piece
                && self.is_echo(text)
            {
                return;
            }
        }
        if matches!(&piece, ContentPiece::Text(text) if text.is_empty()) {
            return;
        }
        let at = self.lane(cx, voice, message);
        match piece {
            ContentPiece::Text(text) => {
                let key = self.texts.lanes[at].key.clone();
                self.lifecycle.delta(cx, &key, Channel::Text, text);
            }
            ContentPiece::Part(part) => self.part(cx, at, voice, content.get().len(), part),
        }
    }

    /// A whole message at once, as version 2 may send it; it replaces what was streamed of it.
    pub(super) fn whole<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        voice: ChunkRole,
        update: &Update<'c>,
    ) {
        let blocks: List<Any<'c>> = update.content.parse().unwrap_or_default();
        let blocks = blocks.0.into_iter().filter_map(|it| it.0);
        let pieces: Vec<ContentPiece<'c>> = blocks.map(acp_tool_content::piece).collect();
        let (text, parts) = crate::readers::content::join_text(pieces);
        if text.is_empty() && parts.is_empty() {
            return;
        }
        let at = self.lane(cx, voice, update.message_id.as_deref());
        let lane = self.texts.lanes.remove(at);
        if voice == ChunkRole::Agent {
            self.lifecycle.note_answer(cx, &text);
        }
        let item = item(lane.key, voice, text, parts);
        self.lifecycle.close_text(cx, item, Status::Ok);
    }

    /// The open message of this voice, or a new one.
    fn lane(
        &mut self,
        cx: &mut FrameContext<'_>,
        voice: ChunkRole,
        message: Option<&str>,
    ) -> usize {
        let call = cx.path.last().cloned();
        let found = self.texts.lanes.iter().position(|it| it.call == call);
        if let Some(at) = found {
            let lane = &self.texts.lanes[at];
            // Many agents give no ids: then only a change of the speaker ends a message.
            let is_same = message.is_none() || lane.message.as_deref() == message;
            if lane.voice == voice && is_same && self.lifecycle.is_open(&lane.key) {
                return at;
            }
            self.close_lane(cx, at);
        }
        if self.texts.lanes.len() >= MAX_LANES {
            self.close_lane(cx, 0);
        }
        self.texts.n += 1;
        let id = message.filter(|it| !it.is_empty()).map(str::to_owned);
        // Something else may be open under the message's id: items may not share theirs.
        let key = id.filter(|it| !self.lifecycle.is_open(&ItemId::new(&**it)));
        let key = ItemId::new(key.unwrap_or_else(|| format!("text-{}", self.texts.n)));
        let opened = item(key.clone(), voice, Text::EMPTY, Vec::new());
        self.lifecycle.open(cx, opened);
        self.texts.lanes.push(TextLane {
            call,
            voice,
            message: message.map(str::to_owned),
            key,
            parts: Vec::new(),
            n_bytes: 0,
        });
        self.texts.lanes.len() - 1
    }

    fn part(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut at: usize,
        voice: ChunkRole,
        n_bytes: usize,
        part: Part<'_>,
    ) {
        let lane = &self.texts.lanes[at];
        // Pictures are kept until their message ends, so that a message has a limit of them.
        if lane.parts.len() >= MAX_PARTS || lane.n_bytes + n_bytes > MAX_PART_BYTES {
            let message = lane.message.clone();
            self.close_lane(cx, at);
            at = self.lane(cx, voice, message.as_deref());
        }
        let lane = &mut self.texts.lanes[at];
        lane.n_bytes += n_bytes;
        lane.parts.push(part.into_owned());
    }

    /// The agent does something else: its text so far is a message.
    pub(super) fn close_texts(&mut self, cx: &mut FrameContext<'_>) {
        let call = cx.path.last().cloned();
        if let Some(at) = self.texts.lanes.iter().position(|it| it.call == call) {
            self.close_lane(cx, at);
        }
    }

    pub(super) fn close_all_texts(&mut self, cx: &mut FrameContext<'_>) {
        while !self.texts.lanes.is_empty() {
            self.close_lane(cx, 0);
        }
        self.texts.echo = None;
    }

    fn close_lane(&mut self, cx: &mut FrameContext<'_>, at: usize) {
        let lane = self.texts.lanes.remove(at);
        cx.without_extra(|cx| self.lifecycle.close_streamed(cx, &lane.key, lane.parts));
    }

    /// True when the agent has emitted anything since the user's last message.
    fn has_answered(&self) -> bool {
        let mut lanes = self.texts.lanes.iter();
        self.lifecycle.has_run() && !lanes.any(|it| it.voice == ChunkRole::User)
    }

    /// The client's prompt, as it was sent.
    pub(super) fn show_prompt(
        &mut self,
        cx: &mut FrameContext<'_>,
        text: Text<'_>,
        parts: Vec<Part<'_>>,
    ) {
        self.requests.n_prompts += 1;
        let id = ItemId::new(format!("prompt-{}", self.requests.n_prompts));
        if text.len_bound() <= MAX_ECHO {
            self.texts.echo = Some(text.to_str().into_owned());
        }
        let before = std::mem::replace(&mut cx.origin, Origin::Client);
        let prompt = item(id, ChunkRole::User, text, parts);
        self.lifecycle.close_text(cx, prompt, Status::Ok);
        cx.origin = before;
    }

    /// Some agents repeat the prompt as chunks of the user.
    fn is_echo(&mut self, text: &Text<'_>) -> bool {
        let Some(left) = &mut self.texts.echo else {
            return false;
        };
        let text = text.to_str();
        // The echo may come in pieces: each is compared with what is left of the prompt.
        let Some(after) = left.strip_prefix(&*text).filter(|_| !text.is_empty()) else {
            return false;
        };
        *left = after.to_owned();
        true
    }
}

fn item<'a>(id: ItemId<'a>, voice: ChunkRole, text: Text<'a>, parts: Vec<Part<'a>>) -> Item<'a> {
    let role = match voice {
        ChunkRole::User => Role::User,
        ChunkRole::Agent => Role::Assistant,
        ChunkRole::Thought => return Reasoning::new(id, text).into(),
    };
    Item::Message(Message {
        parts,
        ..Message::new(id, role, text)
    })
}
