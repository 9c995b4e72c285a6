//! Tool calls.
//!
//! A call opens once, learns its input at most a few times and ends in `completed` or `failed`.
//! Input is not streamed: each update would have to repeat all of it. For the same reason a file has
//! no output but the whole of it in the last update, and a client that is there sees the end of it
//! every now and then (`agent`).

use model::{Class, Event, Raw, Status, Text, Tool, ToolKind, ToolResult};
use serde::Deserialize;

use super::agent::OutputTail;
use super::asks::answer;
use super::{Acp, AcpProfile, meta, wire};
use crate::wire::scanner;
use crate::writers::content::{ResultPart, blocks};
use crate::writers::{hash, take};

#[derive(Clone, Debug)]
pub(super) struct AcpOpenTool {
    pub(super) id: String,
    pub(super) kind: wire::ToolKind,
    /// The input, for clients that are asked for permission.
    pub(super) class: Option<Box<Class<'static>>>,
    has_input: bool,
    has_output: bool,
    pub(super) printed: OutputTail,
    /// The diffs that the client has, by hash.
    diffs: u64,
}

impl Acp {
    pub(super) fn tool_opened(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        let id = tool.id.as_str();
        let has_input = tool.input.is_some();
        let kind = self.kind(tool);
        self.tools.push(AcpOpenTool {
            id: id.to_owned(),
            kind,
            class: self.asked_for(&tool.class),
            has_input,
            has_output: false,
            printed: OutputTail::default(),
            diffs: diffs_hash(&tool.class),
        });
        // A call that waits for a permission, or for the rest of its input, does not run yet.
        let is_running = has_input && self.shape == AcpProfile::Default && !self.is_asked(id);
        let call = wire::ToolCall {
            name: Some(&tool.name),
            status: Some(match is_running {
                true => wire::ToolCallStatus::InProgress,
                false => wire::ToolCallStatus::Pending,
            }),
            meta: meta(event),
            ..self.described(tool)
        };
        self.send(out, wire::SessionUpdate::ToolCall(call));
    }

    pub(super) fn tool_updated(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        let id = tool.id.as_str();
        let kind = self.kind(tool);
        let class = self.asked_for(&tool.class);
        let Some(open) = self.tools.iter_mut().find(|it| it.id == id) else {
            return;
        };
        (open.kind, open.class) = (kind, class);
        open.diffs = diffs_hash(&tool.class);
        open.has_input = tool.input.is_some();
        let mut update = self.described(tool);
        let is_running = self.shape == AcpProfile::Default && !self.is_asked(id);
        update.status = is_running.then_some(wire::ToolCallStatus::InProgress);
        update.meta = meta(event);
        self.send(out, wire::SessionUpdate::ToolCallUpdate(update));
    }

    pub(super) fn tool_printed(&mut self, id: &str) {
        if let Some(open) = self.tools.iter_mut().find(|it| it.id == id) {
            open.has_output = true;
        }
    }

    pub(super) fn tool_closed(
        &mut self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let id = tool.id.as_str();
        let Some(open) = take(&mut self.tools, |it| it.id == id) else {
            return;
        };
        if tool.result.is_none() && open.has_output {
            self.losses.count("output without a result");
        }
        let mut update = if open.has_input || tool.input.is_none() {
            wire::ToolCall::of(id)
        } else {
            self.described(tool)
        };
        update.status = Some(match status == Status::Ok {
            true => wire::ToolCallStatus::Completed,
            false => wire::ToolCallStatus::Failed,
        });
        if let Some(result) = &tool.result {
            // What an edit did is its diff; its words are only worth the place when it failed.
            if status != Status::Ok || tool.class.diffs.is_empty() {
                update.content = content(result);
            // A result may know the change better than the input did.
            } else if diffs_hash(&tool.class) != open.diffs {
                update.content = self.diffs(&tool.class);
            }
            update.raw_output = Some(result.structured.as_ref().unwrap_or(&result.content));
        }
        update.meta = end_meta(event, status, model_view(tool, &update.content));
        self.send(out, wire::SessionUpdate::ToolCallUpdate(update));
    }

    /// Everything that the input of a call shows.
    fn described<'a>(&self, tool: &'a Tool<'_>) -> wire::ToolCall<'a> {
        wire::ToolCall {
            title: Some(title(tool)),
            kind: Some(self.kind(tool)),
            content: self.diffs(&tool.class),
            locations: self.locations(&tool.class),
            raw_input: tool.input.as_ref(),
            ..wire::ToolCall::of(tool.id.as_str())
        }
    }

    pub(super) fn diffs<'a>(&self, class: &'a Class<'_>) -> Vec<wire::ToolCallContent<'a>> {
        let diffs = class.diffs.iter();
        let diffs = diffs.map(|diff| wire::ToolCallContent::Diff {
            path: self.absolute(&diff.path),
            old_text: diff.old.as_ref().map(Text::by_ref),
            new_text: diff.new.by_ref(),
        });
        diffs.collect()
    }

    pub(super) fn locations<'a>(&self, class: &'a Class<'_>) -> Vec<wire::ToolCallLocation<'a>> {
        let paths = class.paths.iter();
        let locations = paths.map(|it| wire::ToolCallLocation {
            path: self.absolute(&it.path),
            line: it.line.and_then(|it| u32::try_from(it).ok()),
        });
        locations.collect()
    }

    /// ACP wants absolute paths; agents mostly give them.
    fn absolute<'a>(&self, path: &'a Text<'_>) -> Text<'a> {
        let given = path.to_str();
        // On Windows a path may begin with a drive: its second character is a colon.
        let is_absolute = given.starts_with(['/', '\\', '~']) || given.get(1..2) == Some(":");
        match &self.session.cwd {
            Some(cwd) if !is_absolute && !given.is_empty() => {
                let relative = given.strip_prefix("./").unwrap_or(&given);
                Text::new(format!("{}/{relative}", cwd.trim_end_matches('/')))
            }
            Some(_) | None => path.by_ref(),
        }
    }

    fn kind(&self, tool: &Tool<'_>) -> wire::ToolKind {
        match self.shape {
            AcpProfile::Default => tool_kind(tool.class.kind),
            AcpProfile::Seed => seed_kind(tool),
        }
    }

    pub(super) fn find_tool(&self, id: &str) -> Option<&AcpOpenTool> {
        self.tools.iter().find(|it| it.id == id)
    }

    /// In a file the call itself stands above the question.
    fn asked_for(&self, class: &Class<'_>) -> Option<Box<Class<'static>>> {
        let is_there = self.connection.as_ref().is_some_and(|it| !it.is_history);
        is_there.then(|| Box::new(class.clone().into_owned()))
    }

    /// Closes open calls, so that the response can follow.
    pub(super) fn close_left_open(&mut self, out: &mut Vec<u8>) {
        let asks = std::mem::take(&mut self.asks);
        // On a connection the client is the one who answers.
        if self.connection.is_none() {
            for ask in asks {
                answer(ask.request, wire::PermissionOutcome::Cancelled, out);
            }
        }
        for tool in std::mem::take(&mut self.tools) {
            let update = wire::ToolCall {
                status: Some(wire::ToolCallStatus::Failed),
                meta: Some(wire::Meta {
                    status: Some(Status::Lost),
                    ..wire::Meta::default()
                }),
                ..wire::ToolCall::of(&tool.id)
            };
            self.send(out, wire::SessionUpdate::ToolCallUpdate(update));
        }
    }
}

fn title<'a>(tool: &'a Tool<'_>) -> Text<'a> {
    match (tool.class.title.is_empty(), &*tool.name) {
        (false, _) => tool.class.title.by_ref(),
        (true, "") => Text::new("tool"),
        (true, name) => Text::new(name),
    }
}

pub(crate) fn tool_kind(kind: ToolKind) -> wire::ToolKind {
    match kind {
        ToolKind::Shell => wire::ToolKind::Execute,
        ToolKind::Read => wire::ToolKind::Read,
        ToolKind::Edit | ToolKind::Write => wire::ToolKind::Edit,
        ToolKind::Delete => wire::ToolKind::Delete,
        ToolKind::Move => wire::ToolKind::Move,
        ToolKind::Search => wire::ToolKind::Search,
        ToolKind::Fetch | ToolKind::WebSearch => wire::ToolKind::Fetch,
        // ACP has no kind for sub-agents; the adapters for Claude Code call them `think` as well.
        ToolKind::Task | ToolKind::Todo | ToolKind::Think => wire::ToolKind::Think,
        ToolKind::Mode => wire::ToolKind::SwitchMode,
        ToolKind::Mcp | ToolKind::Ask | ToolKind::Other => wire::ToolKind::Other,
    }
}

/// The OpenHands CLI's short table, by name, and by meaning for agents with other names.
fn seed_kind(tool: &Tool<'_>) -> wire::ToolKind {
    match &*tool.name {
        "execute_bash" | "terminal" | "bash" => wire::ToolKind::Execute,
        "str_replace_editor" | "file_editor" => wire::ToolKind::Edit,
        "browser_use" | "browser" => wire::ToolKind::Fetch,
        "task_tracker" => wire::ToolKind::Think,
        _ => match tool.class.kind {
            ToolKind::Shell => wire::ToolKind::Execute,
            ToolKind::Edit | ToolKind::Write => wire::ToolKind::Edit,
            ToolKind::Fetch => wire::ToolKind::Fetch,
            ToolKind::Todo => wire::ToolKind::Think,
            ToolKind::Read
            | ToolKind::Delete
            | ToolKind::Move
            | ToolKind::Search
            | ToolKind::WebSearch
            | ToolKind::Mcp
            | ToolKind::Task
            | ToolKind::Ask
            | ToolKind::Think
            | ToolKind::Mode
            | ToolKind::Other => wire::ToolKind::Other,
        },
    }
}

fn content<'a>(result: &'a ToolResult<'_>) -> Vec<wire::ToolCallContent<'a>> {
    let blocks = blocks(&result.content).into_iter().filter_map(block);
    let contents = blocks.map(|content| wire::ToolCallContent::Content { content });
    contents.collect()
}

fn block(block: ResultPart<'_>) -> Option<wire::ContentBlock<'_>> {
    Some(match block {
        ResultPart::Text(text) if text.is_empty() => return None,
        ResultPart::Text(text) => wire::ContentBlock::Text { text },
        ResultPart::Image { media_type, data } => wire::ContentBlock::Image {
            data,
            mime_type: media_type,
        },
        ResultPart::ImageUrl(url) => link(url.clone(), url),
        ResultPart::Other(raw) => other(&raw),
    })
}

/// A page that a web search found, a tool that a tool search found, or anything else as it is.
fn other<'a>(raw: &Raw<'_>) -> wire::ContentBlock<'a> {
    #[derive(Default, Deserialize)]
    struct FoundTool {
        title: Option<String>,
        url: Option<String>,
        tool_name: Option<String>,
    }
    let found: FoundTool = scanner::from_str(raw.get()).unwrap_or_default();
    let text = match (found.title, found.url, found.tool_name) {
        (Some(title), Some(url), _) => return link(Text::new(title), Text::new(url)),
        (_, _, Some(tool)) => tool,
        (_, _, None) => raw.get().to_owned(),
    };
    let text = Text::new(text);
    wire::ContentBlock::Text { text }
}

fn link<'a>(name: Text<'a>, uri: Text<'a>) -> wire::ContentBlock<'a> {
    wire::ContentBlock::ResourceLink { name, uri }
}

fn diffs_hash(class: &Class<'_>) -> u64 {
    let diffs = class.diffs.iter().map(|it| {
        let old = it.old.as_ref().map(Text::to_str);
        (it.path.to_str(), old, it.new.to_str())
    });
    hash(&diffs.collect::<Vec<_>>())
}

/// What the model saw, where neither the content nor the raw output is that.
fn model_view<'a>(
    tool: &'a Tool<'_>,
    content: &[wire::ToolCallContent<'_>],
) -> Option<&'a Raw<'a>> {
    let result = tool.result.as_ref()?;
    result.structured.as_ref()?;
    let is_plain =
        |it: &ResultPart<'_>| matches!(it, ResultPart::Text(_) | ResultPart::Image { .. });
    let blocks = blocks(&result.content);
    // A list with one text must not come back as a string.
    let is_one_text = matches!(&*blocks, [ResultPart::Text(_)]);
    let is_shown = blocks.iter().all(is_plain)
        && is_one_text == result.content.is_string()
        && blocks.len() == content.len()
        && (content.iter()).all(|it| matches!(it, wire::ToolCallContent::Content { .. }));
    (!is_shown).then_some(&result.content)
}

fn end_meta<'a>(
    event: &'a Event<'_>,
    status: Status,
    result: Option<&'a Raw<'a>>,
) -> Option<wire::Meta<'a>> {
    let parent_tool_use_id = event.path.last().map(|it| it.as_str());
    let status = match status {
        // `completed` and `failed` say these already.
        Status::Ok | Status::Error => None,
        Status::Denied | Status::Cancelled | Status::Lost => Some(status),
    };
    let is_empty = parent_tool_use_id.is_none() && status.is_none() && result.is_none();
    (!is_empty).then_some(wire::Meta {
        parent_tool_use_id,
        status,
        result,
        separator: false,
    })
}
