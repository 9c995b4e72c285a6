//! Tool calls: their arguments come in pieces, and their results may come long after.

use std::borrow::Cow;

use model::{Channel, ItemId, Raw, Status, Text, Tool, ToolKind, ToolResult, Why};

use super::texts::content_piece;
use super::{AgUi, FrameContext, Line, MAX_OPEN, metadata, wire};
use crate::readers::arguments::arguments;
use crate::readers::content;
use crate::readers::recent::Recent;
use crate::tools;
use crate::wire::lenient::Any;
use crate::wire::scanner;

/// Maximum size of buffered arguments; longer ones are only streamed.
const MAX_ARGS: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct AgUiCalls {
    open: Recent<AgUiCall, MAX_OPEN>,
}

#[derive(Clone, Debug)]
struct AgUiCall {
    id: String,
    key: ItemId<'static>,
    /// The arguments so far; nothing when none came.
    args: String,
    has_args: bool,
    /// The arguments are whole.
    is_ended: bool,
}

impl AgUiCalls {
    fn find(&self, id: &str) -> Option<usize> {
        self.open.iter().rposition(|it| it.id == id)
    }
}

impl AgUi {
    pub(super) fn call_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.tool_call_id.take().unwrap_or_default();
        if self.calls.find(&id).is_some() {
            return self.late(cx, "a call that is open");
        }
        self.keep_metadata(cx, line.metadata);
        let server_side = metadata(line.metadata).linkspan.server_side.is_true();
        let name = line.tool_call_name.take().unwrap_or_default();
        let parent = line.parent_message_id.take();
        self.open_call(cx, &id, &name, parent.as_deref(), server_side);
    }

    pub(super) fn open_call(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: &str,
        name: &str,
        parent: Option<&str>,
        server_side: bool,
    ) -> usize {
        let key = self.free_key(id, "call");
        self.shown.insert(id);
        let name = if name.is_empty() { "unknown" } else { name };
        let mut tool = tools::call(key.clone(), name.to_owned(), None, self.cwd.as_deref());
        // A call without a message makes one of its own name.
        tool.group = Some(Cow::Owned(parent.unwrap_or(id).to_owned()));
        tool.server_side = server_side;
        self.lifecycle.open(cx, tool.into());
        self.calls.open.push(AgUiCall {
            id: id.to_owned(),
            key,
            args: String::new(),
            has_args: false,
            is_ended: false,
        })
    }

    pub(super) fn call_args<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.tool_call_id.as_deref().unwrap_or_default();
        let at = match self.calls.find(id) {
            Some(at) => at,
            None => self.open_call(cx, id, "", None, false),
        };
        self.add_args(cx, at, line.delta);
    }

    pub(super) fn add_args<'c>(&mut self, cx: &mut FrameContext<'c>, at: usize, delta: Any<'c>) {
        let Some(delta) = delta.filled_text() else {
            return;
        };
        let call = &mut self.calls.open[at];
        if call.is_ended {
            return self.late(cx, "arguments behind the last");
        }
        call.has_args = true;
        if call.args.len() + delta.len_bound() <= MAX_ARGS {
            call.args.push_str(&delta.to_str());
        }
        self.lifecycle.delta(cx, &call.key, Channel::Input, delta);
    }

    pub(super) fn call_end(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) {
        match self.calls.find(id.unwrap_or_default()) {
            Some(at) => self.end_args(cx, at),
            None => self.late(cx, "the end of a call that is not open"),
        }
    }

    fn end_args(&mut self, cx: &mut FrameContext<'_>, at: usize) {
        let call = &mut self.calls.open[at];
        // Without any piece nothing is known of the arguments, not even that there are none.
        if std::mem::replace(&mut call.is_ended, true) || !call.has_args {
            return;
        }
        let key = call.key.clone();
        let args = Text::new(std::mem::take(&mut call.args));
        self.set_input(cx, &key, arguments(&args));
    }

    pub(super) fn set_input(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'static>,
        input: Raw<'static>,
    ) {
        let Some(mut tool) = self.lifecycle.open_tool(key).cloned() else {
            return;
        };
        tool.id = key.clone();
        let class = tools::classify(&tool.name, Some(&input.by_ref()), self.cwd.as_deref());
        tool.class = class.into_owned();
        tool.input = Some(input);
        self.lifecycle.update(cx, tool.into());
    }

    pub(super) fn call_result<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.tool_call_id.take().unwrap_or_default();
        if let Some(message) = line.message_id.as_deref() {
            self.shown.insert(message);
        }
        let status = metadata(line.metadata).linkspan.status;
        let status = status.as_deref().map_or(Status::Ok, super::status);
        self.keep_metadata(cx, line.metadata);
        self.close_call(cx, &id, line.content, status);
    }

    pub(super) fn close_call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        content: Any<'c>,
        status: Status,
    ) {
        let at = match self.calls.find(id) {
            Some(at) => at,
            None => {
                // A result without a call still counts; a call is synthesized for it.
                let mut at = 0;
                cx.because(Some(Why::NeverOpened), |cx| {
                    at = self.open_call(cx, id, "", None, false);
                });
                at
            }
        };
        // A result means that the arguments are whole, even if their end never came.
        self.end_args(cx, at);
        let call = self.calls.open.remove(at);
        let result = ToolResult::new(blocks(content), status != Status::Ok);
        self.lifecycle
            .close_tool(cx, &call.key, status, result, exit_code);
    }

    /// The run is over: these calls are the application's to answer.
    pub(super) fn hand_over(&mut self, cx: &mut FrameContext<'_>, pending: &[&str]) {
        for id in pending {
            if let Some(at) = self.calls.find(id) {
                self.end_args(cx, at);
                let call = self.calls.open.remove(at);
                self.lifecycle.close(cx, &call.key, Status::Ok, |_| ());
            }
        }
    }

    pub(super) fn call_key(&mut self, at: usize) -> ItemId<'static> {
        let call = &mut self.calls.open[at];
        call.is_ended = true;
        call.key.clone()
    }

    pub(super) fn tool_name(&self, id: &str) -> Option<Cow<'static, str>> {
        let call = &self.calls.open[self.calls.find(id)?];
        let tool = self.lifecycle.open_tool(&call.key)?;
        Some(tool.name.clone())
    }
}

fn exit_code(tool: &mut Tool<'_>) {
    let Some(result) = tool.result.as_ref().filter(|it| it.is_error) else {
        return;
    };
    if tool.class.kind == ToolKind::Shell {
        let text = Text::from(result.content.by_ref());
        tool.class.exit_code = tools::exit_code(&text.to_str());
    }
}

/// The content of a result, in the blocks that every writer knows.
fn blocks(content: Any<'_>) -> Raw<'_> {
    let Some(raw) = content.0 else {
        return Raw::of(&"");
    };
    // Most results are one text: not to be taken for a list, because the error would quote it all.
    let list = Some(content).filter(|_| raw.get().starts_with('['));
    let Some(list) = list.and_then(|it| it.parse::<Vec<&serde_json::value::RawValue>>()) else {
        return Raw::borrowed(raw);
    };
    let blocks: Vec<Raw<'_>> = list.into_iter().map(block).collect();
    Raw::of(&blocks)
}

fn block(raw: &serde_json::value::RawValue) -> Raw<'_> {
    let part: wire::ContentPart<'_> = scanner::from_str(raw.get()).unwrap_or_default();
    if let Some(text) = part.text.0
        && metadata(part.metadata).linkspan.block.is_true()
    {
        // Our own writer had no part for it.
        return arguments(&Text::from_json(text));
    }
    content::block(&content_piece(raw, part)).into_owned()
}
