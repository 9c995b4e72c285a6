//! Tool calls of a run.
//!
//! Calls of one model response hang on its text, or on its first call, so that a client's history
//! has one assistant message where the model sent one.

use model::{Losses, Raw, Status, Text, Tool, ToolResult};

use super::items::Items;
use super::{AgUiProfile, EventLane, wire};
use crate::writers::content::{self, ResultPart, blocks};
use crate::writers::take;

/// Calls of one run that wait for the application; no model makes as many at once.
const MAX_PENDING: usize = 1024;

/// A result that one frame holds: the client refuses frames above 10 MB, and a result has only one.
const MAX_RESULT: usize = 8 * 1024 * 1024;
/// Bytes that are written of a longer one.
const RESULT_HEAD: usize = 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct AgUiOpenTool {
    id: String,
    has_args: bool,
    has_output: bool,
    /// All arguments were sent.
    is_complete: bool,
}

/// The assistant message that the next call of a model response belongs to, one for each agent.
#[derive(Clone, Debug)]
pub(super) struct ParentMessage {
    subagent: Option<String>,
    group: String,
    message: String,
}

impl Items {
    pub(super) fn tool_opened(&mut self, tool: &Tool<'_>, lane: &mut EventLane<'_>) {
        let id = tool.id.as_str();
        let parent = self.find_parent(tool, lane);
        lane.emit(wire::Body::ToolCallStart {
            tool_call_id: id,
            tool_call_name: &tool.name,
            parent_message_id: parent,
            metadata: tool.server_side.then_some(wire::Metadata {
                linkspan: wire::Hosted { server_side: true },
            }),
        });
        if parent.is_none() {
            // A client makes a message of the call's own name for it.
            let group = tool.group.as_deref().map(str::to_owned);
            self.set_parent(id.to_owned(), group, lane);
        }
        let mut open = AgUiOpenTool {
            id: id.to_owned(),
            has_args: false,
            has_output: false,
            is_complete: false,
        };
        if let Some(input) = &tool.input {
            open.complete(Some(input), lane);
        }
        self.tools.push(open);
    }

    pub(super) fn input_delta(&mut self, id: &str, piece: &Text<'_>, lane: &mut EventLane<'_>) {
        if let Some(tool) = self.find_tool(id)
            // The verifier refuses arguments behind `TOOL_CALL_END`.
            && !tool.is_complete
        {
            tool.has_args = true;
            lane.piece("TOOL_CALL_ARGS", "toolCallId", id, piece);
        }
    }

    /// What a call prints is in its result, if it comes to one.
    pub(super) fn tool_printed(&mut self, id: &str) {
        if let Some(tool) = self.find_tool(id) {
            tool.has_output = true;
        }
    }

    pub(super) fn tool_updated(
        &mut self,
        tool: &Tool<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        let Some(open) = self.find_tool(tool.id.as_str()) else {
            return;
        };
        match &tool.input {
            // After `TOOL_CALL_END` the client takes no more arguments.
            Some(_) if open.is_complete => losses.count("changed tool input"),
            Some(input) => open.complete(Some(input), lane),
            None => (),
        }
    }

    pub(super) fn tool_closed(
        &mut self,
        tool: &Tool<'_>,
        status: Status,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        let id = tool.id.as_str();
        let Some(mut open) = take(&mut self.tools, |it| it.id == id) else {
            return;
        };
        open.complete(tool.input.as_ref(), lane);
        let Some(result) = &tool.result else {
            if status == Status::Ok && self.pending.len() < MAX_PENDING {
                // The model waits for the application to answer the call.
                self.pending.push(id.to_owned());
                return;
            }
            if open.has_output {
                losses.count("output without a result");
            }
            return losses.count("call without a result");
        };
        if result.structured.is_some() {
            losses.count("structured tool result");
        }
        let linkspan = wire::ToolStatus { status };
        lane.emit(wire::Body::ToolCallResult {
            // A tool message needs an id of its own, and messages must not share one.
            message_id: &format!("{id}:result"),
            tool_call_id: id,
            content: self.content(result, losses),
            metadata: (status != Status::Ok).then_some(wire::Metadata { linkspan }),
        });
    }

    fn content<'a>(&self, result: &'a ToolResult<'_>, losses: &mut Losses) -> wire::Content<'a> {
        let blocks = blocks(&result.content);
        if result.content.get().len() > MAX_RESULT {
            losses.count("cut tool result");
            // Cut JSON would be no JSON, so the parts become one text first.
            return wire::Content::Text(beginning(&flat(blocks, losses)));
        }
        // Clients of any version understand a plain text.
        if blocks.iter().all(|it| matches!(it, ResultPart::Text(_))) {
            return wire::Content::Text(content::text(&result.content));
        }
        match self.shape {
            AgUiProfile::Current => wire::Content::Parts(blocks.into_iter().map(part).collect()),
            AgUiProfile::Thinking => wire::Content::Text(flat(blocks, losses)),
        }
    }

    pub(super) fn set_parent(
        &mut self,
        message: String,
        group: Option<String>,
        lane: &EventLane<'_>,
    ) {
        // Without a response to belong to, every call makes a message of its own.
        let Some(group) = group else { return };
        self.parents
            // An agent has one response at a time: an earlier one gets no more calls.
            .retain(|it| it.subagent.as_deref() != lane.subagent);
        self.parents.push(ParentMessage {
            subagent: lane.subagent.map(str::to_owned),
            group,
            message,
        });
    }

    /// A sub-agent has ended.
    pub(super) fn forget_parent(&mut self, subagent: &str) {
        self.parents
            .retain(|it| it.subagent.as_deref() != Some(subagent));
    }

    fn find_parent(&self, tool: &Tool<'_>, lane: &EventLane<'_>) -> Option<&str> {
        let group = tool.group.as_deref()?;
        let parent = self
            .parents
            .iter()
            .find(|it| it.subagent.as_deref() == lane.subagent && it.group == group)?;
        Some(&parent.message)
    }

    fn find_tool(&mut self, id: &str) -> Option<&mut AgUiOpenTool> {
        self.tools.iter_mut().find(|it| it.id == id)
    }
}

impl AgUiOpenTool {
    /// Sends the arguments, unless their pieces were sent, and ends them.
    pub(super) fn complete(&mut self, input: Option<&Raw<'_>>, lane: &mut EventLane<'_>) {
        if std::mem::replace(&mut self.is_complete, true) {
            return;
        }
        if let Some(input) = input
            && !self.has_args
        {
            let args = Text::new(input.get());
            lane.piece("TOOL_CALL_ARGS", "toolCallId", &self.id, &args);
        }
        lane.emit(wire::Body::ToolCallEnd {
            tool_call_id: &self.id,
        });
    }
}

fn part(block: ResultPart<'_>) -> wire::ContentPart<'_> {
    match block {
        ResultPart::Text(text) => wire::ContentPart::Text {
            text,
            metadata: None,
        },
        ResultPart::Image { media_type, data } => wire::ContentPart::Image {
            source: wire::Source::Data {
                value: data,
                mime_type: media_type,
            },
        },
        ResultPart::ImageUrl(url) => wire::ContentPart::Image {
            source: wire::Source::Url { value: url },
        },
        ResultPart::Other(raw) => wire::ContentPart::Text {
            text: Text::new(raw.get().to_owned()),
            metadata: Some(wire::Metadata {
                linkspan: wire::Block { block: true },
            }),
        },
    }
}

/// The beginning of a result that no frame would hold.
fn beginning(text: &Text<'_>) -> Text<'static> {
    let text = text.to_str();
    let (head, rest) = text.split_at(text.floor_char_boundary(RESULT_HEAD));
    Text::new(format!("{head}\n… {} more bytes", rest.len()))
}

/// A result for clients that only know text.
fn flat(blocks: Vec<ResultPart<'_>>, losses: &mut Losses) -> Text<'static> {
    let mut texts = Vec::new();
    for block in blocks {
        match block {
            ResultPart::Text(text) => texts.push(text.to_str().into_owned()),
            ResultPart::Other(raw) => texts.push(raw.get().to_owned()),
            ResultPart::Image { .. } | ResultPart::ImageUrl(_) => {
                losses.count("image in a tool result")
            }
        }
    }
    Text::new(texts.join("\n"))
}
