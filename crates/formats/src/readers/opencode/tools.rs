//! Tool calls: pending, running, done. `run` prints only the last of these.

use std::borrow::Cow;

use model::{
    Change, Channel, Diff, Item, ItemId, Location, Plan, Raw, Status, Text, Tool, ToolKind,
    ToolResult, Why,
};

use serde_json::value::RawValue;

use super::{FrameContext, OpenCode};
use crate::readers::content::{self, ContentPiece};
use crate::readers::plans;
use crate::tools;
use crate::wire::lenient::{Any, Object as _};
use crate::wire::opencode::{Attachment, FileDiff, Metadata, Part, State};
use crate::wire::scanner;

/// The prefix of the error of a denied call.
const DENIED: &[&str] = &[
    "The user rejected permission to use",
    "The user has specified a rule which prevents",
    "The user dismissed this question",
];
/// The error of a call that was stopped.
const ABORTED: &[&str] = &["Tool execution aborted", "Aborted"];

impl OpenCode {
    pub(super) fn tool<'c>(&mut self, cx: &mut FrameContext<'c>, mut part: Part<'c>) {
        // Permissions name a call by `callID`, not by the id of its part.
        let id = part.call_id.take().or(part.id.take());
        if self.is_again(cx, id.as_deref()) {
            return;
        }
        let id = ItemId::new(id.unwrap_or(Cow::Borrowed("tool")));
        self.begin(cx);
        let mut state = part.state.take();
        cx.extra.append(state.extra());
        let is_done = matches!(state.status.as_deref(), Some("completed" | "error"));
        if is_done {
            cx.keep("time", state.time);
            cx.keep("title", state.title);
        }
        self.open_or_update(cx, &id, &mut part, &state, is_done);
        let kind = self.lifecycle.open_tool(&id).map(|it| it.class.kind);
        let metadata: Metadata<'c> = match kind {
            Some(ToolKind::Shell | ToolKind::Edit | ToolKind::Write | ToolKind::Task) => {
                state.metadata.parse().unwrap_or_default()
            }
            _ => Metadata::default(),
        };
        if kind == Some(ToolKind::Task) {
            self.sessions.task(&id);
            if let Some(session) = metadata.session_id.as_deref() {
                self.link(cx, session, &id);
            }
        }
        if is_done {
            self.tool_done(cx, &id, &state, metadata);
        } else {
            self.printed_so_far(cx, &id, metadata.output);
        }
    }

    fn open_or_update<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &ItemId<'c>,
        part: &mut Part<'c>,
        state: &State<'c>,
        is_done: bool,
    ) {
        // A pending call has an empty input, because the model is still writing it.
        let is_pending = state.status.as_deref() == Some("pending");
        let input = state
            .input
            .raw()
            .filter(|it| !is_pending || it.get() != "{}");
        let known = self.lifecycle.open_tool(id);
        let is_open = known.is_some();
        // The state changes more often than the input: an update without another input says nothing
        // new.
        if is_open && known.and_then(|it| it.input.as_ref()) == input.as_ref() {
            return;
        }
        let name = part.tool.take().unwrap_or(Cow::Borrowed("unknown"));
        let mut tool = tools::call(id.clone(), name, input, self.about.cwd.as_deref());
        tool.group = part.message_id.take();
        // Of a known tool the title is made from its input, the same for every agent.
        if let Some(title) = title(state).filter(|_| tool.class.kind == ToolKind::Other) {
            tool.class.title = title;
        }
        // `run` prints a call when it is over: its beginning was not seen.
        let made_up = (is_done && !is_open).then_some(Why::NeverOpened);
        cx.because(cx.why.or(made_up), |cx| {
            self.lifecycle.open(cx, tool.into())
        });
    }

    /// A command's output, which comes whole each time.
    fn printed_so_far(&mut self, cx: &mut FrameContext<'_>, id: &ItemId<'_>, output: Any<'_>) {
        let Some(output) = output.text().filter(|_| output.is_str()) else {
            return;
        };
        // A pending call has printed nothing yet, and most calls never do.
        if !self.growing.has(id) {
            self.growing.begin(id, None);
        }
        if let Some(news) = self.growing.news(id, &output) {
            self.growing.add(id, &news);
            self.lifecycle.delta(cx, id, Channel::Output, news);
        }
    }

    fn tool_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &ItemId<'c>,
        state: &State<'c>,
        metadata: Metadata<'c>,
    ) {
        let Some(tool) = self.lifecycle.open_tool(id) else {
            return;
        };
        let status = verdict(tool, state, &metadata);
        let kind = tool.class.kind;
        if status == Status::Denied {
            self.run.was_denied = true;
            let tool = tool.clone();
            self.lifecycle.deny(&tool);
        }
        if status == Status::Ok && kind == ToolKind::Todo {
            let list = self
                .lifecycle
                .open_tool(id)
                .and_then(|it| it.input.as_ref());
            let list = list.and_then(|it| plans::entries(it.get()));
            let list = list.or_else(|| plans::entries(state.metadata.0?.get()));
            self.show_plan(cx, list);
        }
        if kind == ToolKind::Task {
            self.task_done(cx, id, status, state.output);
        }
        let error = state
            .error
            .raw()
            .filter(|_| state.status.as_deref() == Some("error"));
        let content = error.unwrap_or_else(|| output(state));
        let result = ToolResult {
            structured: state.metadata.raw(),
            ..ToolResult::new(content, status != Status::Ok)
        };
        let title = title(state);
        self.lifecycle.close_tool(cx, id, status, result, |tool| {
            if let Some(title) = title.filter(|_| tool.class.kind == ToolKind::Other) {
                tool.class.title = title;
            }
            refine(tool, status, metadata);
        });
        self.growing.end(id);
    }

    pub(super) fn show_plan(
        &mut self,
        cx: &mut FrameContext<'_>,
        entries: Option<Vec<model::PlanEntry<'static>>>,
    ) {
        let Some(entries) = entries else { return };
        let id = match cx.path.last() {
            Some(call) => ItemId::new(format!("plan:{call}")),
            None => ItemId::new("plan"),
        };
        self.lifecycle.update(cx, Item::Plan(Plan { id, entries }));
    }
}

/// The output as a string, or as blocks when pictures or files came with it.
fn output<'c>(state: &State<'c>) -> Raw<'c> {
    let attachments: Vec<&RawValue> = state.attachments.parse().unwrap_or_default();
    let text = ContentPiece::Text(state.output.text().unwrap_or_default());
    if attachments.is_empty() {
        return state.output.raw().unwrap_or_else(|| Raw::of(&""));
    }
    let parts = attachments.into_iter().map(|raw| {
        let it: Attachment<'_> = scanner::from_str(raw.get()).unwrap_or_default();
        let picture = it.url.0.map(content::picture);
        let is_picture = |it: &model::Part<'_>| {
            matches!(it, model::Part::Image { media_type, .. } if media_type.starts_with("image/"))
        };
        let picture = picture.filter(is_picture);
        ContentPiece::Part(picture.unwrap_or_else(|| model::Part::Other(Raw::borrowed(raw))))
    });
    content::content([text].into_iter().chain(parts).collect())
}

/// The agent's own title, with something in it.
fn title<'c>(state: &State<'c>) -> Option<Text<'c>> {
    let title = state.title.text().filter(|_| state.title.is_str());
    title.filter(|it| !it.is_blank())
}

/// How a call ended. A command that fails has completed for OpenCode; here it has failed, as it has
/// for every other agent.
fn verdict(tool: &Tool<'_>, state: &State<'_>, metadata: &Metadata<'_>) -> Status {
    if state.status.as_deref() == Some("error") {
        let error = state.error.text().unwrap_or_default();
        let error = error.to_str();
        let begins_with = |words: &[&str]| words.iter().any(|it| error.starts_with(it));
        return if begins_with(DENIED) {
            Status::Denied
        } else if begins_with(ABORTED) {
            Status::Cancelled
        } else {
            Status::Error
        };
    }
    let has_failed =
        tool.class.kind == ToolKind::Shell && metadata.exit.0.is_some_and(|it| it != 0.0);
    // OpenCode reroutes a call of a tool that does not exist to this one, and calls it completed.
    if has_failed || tool.name == "invalid" {
        Status::Error
    } else {
        Status::Ok
    }
}

/// What only the result tells about a call.
fn refine<'r>(tool: &mut Tool<'r>, status: Status, mut metadata: Metadata<'r>) {
    let class = &mut tool.class;
    if class.kind == ToolKind::Shell {
        class.exit_code = metadata.exit.0.map(|it| it as i32);
    }
    if class.kind == ToolKind::Write && status == Status::Ok {
        let change = |exists| if exists { Change::Update } else { Change::Add };
        class.change = metadata.exists.0.map(change);
    }
    if class.kind == ToolKind::Edit && status == Status::Ok {
        class.change = Some(Change::Update);
        // The input of `edit` has both sides already; `apply_patch` has them in its metadata alone.
        if class.diffs.is_empty() {
            let has_one = metadata.filediff.is_object();
            let one = has_one.then(|| metadata.filediff.take());
            let files = one.into_iter().chain(metadata.files.0);
            class.diffs = files.filter_map(diff).collect();
        }
        if class.paths.is_empty() {
            let paths = class.diffs.iter().map(|it| it.path.clone());
            class.paths = paths.map(|path| Location { path, line: None }).collect();
        }
    }
}

fn diff(file: FileDiff<'_>) -> Option<Diff<'_>> {
    let path = Text::from(file.file.raw().or(file.file_path.raw())?);
    if let Some(new) = file.after.raw() {
        return Some(Diff {
            path,
            old: file.before.text(),
            new: Text::from(new),
        });
    }
    let patch = Text::from(file.patch.raw().or(file.diff.raw())?);
    let (old, new) = sides(&patch.to_str());
    Some(Diff {
        path,
        old: Some(Text::new(old)),
        new: Text::new(new),
    })
}

/// What a patch takes away and what it puts there, with the lines around.
fn sides(patch: &str) -> (String, String) {
    let (mut old, mut new) = (String::new(), String::new());
    let lines = patch.split_inclusive('\n');
    // Before the first hunk are file names, whose `---` and `+++` would pass for changes.
    for line in lines.skip_while(|it| !it.starts_with("@@")) {
        match (line.as_bytes().first(), line.get(1..)) {
            (Some(b' '), Some(rest)) => {
                old.push_str(rest);
                new.push_str(rest);
            }
            (Some(b'-'), Some(rest)) => old.push_str(rest),
            (Some(b'+'), Some(rest)) => new.push_str(rest),
            _ => (),
        }
    }
    (old, new)
}
