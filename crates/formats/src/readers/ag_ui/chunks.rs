//! Chunk events: a start, pieces and an end in one shape. Each agent has one open chunk at a time.

use super::texts::role;
use super::{AgUi, FrameContext, Line};

/// Agents with an open chunk at the same time.
const MAX_LANES: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Chunk {
    lane: String,
    kind: ChunkKind,
    id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkKind {
    Text,
    Thought,
    Call,
}

impl AgUi {
    pub(super) fn text_chunk<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.message_id.take();
        let role = role(line.role.as_deref());
        let Some((id, is_new)) = self.chunk(cx, ChunkKind::Text, id.as_deref(), line) else {
            return self.lifecycle.unmapped(cx, "chunk without an id");
        };
        if is_new {
            self.keep_metadata(cx, line.metadata);
            self.open_text(cx, &id, role);
        }
        line.message_id.0 = Some(id.into());
        self.text_content(cx, line);
    }

    pub(super) fn thought_chunk<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.message_id.take();
        let Some((id, is_new)) = self.chunk(cx, ChunkKind::Thought, id.as_deref(), line) else {
            return self.lifecycle.unmapped(cx, "chunk without an id");
        };
        if is_new {
            self.open_thought(cx, &id);
        }
        line.message_id.0 = Some(id.into());
        self.thought_content(cx, line);
    }

    pub(super) fn call_chunk<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.tool_call_id.take();
        let Some((id, is_new)) = self.chunk(cx, ChunkKind::Call, id.as_deref(), line) else {
            return self.lifecycle.unmapped(cx, "chunk without an id");
        };
        if is_new {
            let name = line.tool_call_name.take().unwrap_or_default();
            let parent = line.parent_message_id.take();
            self.keep_metadata(cx, line.metadata);
            self.open_call(cx, &id, &name, parent.as_deref(), false);
        }
        line.tool_call_id.0 = Some(id.into());
        self.call_args(cx, line);
    }

    /// What a chunk adds to, and whether that is new.
    fn chunk(
        &mut self,
        cx: &mut FrameContext<'_>,
        kind: ChunkKind,
        id: Option<&str>,
        line: &Line<'_>,
    ) -> Option<(String, bool)> {
        let lane = line.subagent_run_id.as_deref().unwrap_or_default();
        let open = self.chunks.iter().find(|it| it.lane == lane);
        if let Some(open) = open
            && open.kind == kind
            // Only the first chunk needs an id.
            && id.is_none_or(|id| id == open.id)
        {
            return Some((open.id.clone(), false));
        }
        self.end_chunk(cx, lane);
        let id = id?.to_owned();
        if self.chunks.len() >= MAX_LANES {
            let oldest = self.chunks[0].lane.clone();
            self.end_chunk(cx, &oldest);
        }
        self.chunks.push(Chunk {
            lane: lane.to_owned(),
            kind,
            id: id.clone(),
        });
        Some((id, true))
    }

    /// Most events end the chunks of their lane; those of a whole run end all.
    pub(super) fn end_chunks_before(
        &mut self,
        cx: &mut FrameContext<'_>,
        kind: &str,
        lane: Option<&str>,
    ) {
        if self.chunks.is_empty() {
            return;
        }
        match kind {
            // As in the AG-UI client: these may come between two chunks of one message.
            "RAW"
            | "ACTIVITY_SNAPSHOT"
            | "ACTIVITY_DELTA"
            | "REASONING_ENCRYPTED_VALUE"
            | "SUBAGENT_STARTED" => (),
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | "MESSAGES_SNAPSHOT" => {
                self.end_chunks(cx)
            }
            _ if kind.ends_with("_CHUNK") => (),
            _ => self.end_chunk(cx, lane.unwrap_or_default()),
        }
    }

    pub(super) fn end_chunks(&mut self, cx: &mut FrameContext<'_>) {
        while let Some(lane) = self.chunks.first().map(|it| it.lane.clone()) {
            self.end_chunk(cx, &lane);
        }
    }

    fn end_chunk(&mut self, cx: &mut FrameContext<'_>, lane: &str) {
        let Some(at) = self.chunks.iter().position(|it| it.lane == lane) else {
            return;
        };
        let chunk = self.chunks.remove(at);
        match chunk.kind {
            ChunkKind::Text => self.end_text(cx, &chunk.id, Vec::new()),
            ChunkKind::Call => self.call_end(cx, Some(&chunk.id)),
            ChunkKind::Thought => {
                self.end_thought(cx, &chunk.id);
                self.close_ended_thoughts(cx);
            }
        }
    }
}
