//! Tool calls: each update says what is new, and a list that is present replaces the one before.
//!
//! An agent may send a call's whole output again with every piece that was added to it, many
//! thousand times. What is known of a call is kept here; the item is only updated when something
//! besides the output has changed, and only new output is emitted.

mod results;

use model::{Channel, Diff, ItemId, Level, Location, Notice, Raw, Status, Text, Tool, Why};

use super::wire::{self, Meta, Update};
use super::{Acp, FrameContext, names};
use crate::readers::acp_tool_content;
use crate::readers::content::{self, ContentPiece};
use crate::readers::growing_text::ShownText;
use crate::readers::recent::Recent;
use crate::readers::subagents;
use crate::tools;
use crate::wire::lenient::{Any, List};
use crate::wire::scanner;

/// Maximum number of known calls; if an agent never ends any, the oldest is forgotten.
const MAX_CALLS: usize = 1024;
/// Calls remembered after their end, because some agents still send updates about them.
const MAX_ENDED: usize = 1024;
/// Denied calls remembered until their end is reported.
const MAX_DENIED: usize = 256;
/// Places of one call.
const MAX_LOCATIONS: usize = 256;
/// Maximum number of emitted updates per call; later ones are merged into its end.
const MAX_UPDATES: u32 = 256;
/// Output in pieces that is kept for the result of its call.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;
#[derive(Clone, Debug, Default)]
pub(super) struct AcpCalls {
    open: Recent<AcpCall, MAX_CALLS>,
    ended: Recent<String, MAX_ENDED>,
    denied: Vec<ItemId<'static>>,
}

/// What is known of an open call.
#[derive(Clone, Debug)]
struct AcpCall {
    id: ItemId<'static>,
    name: Option<String>,
    /// The name is what the title or the id begins with.
    is_guess: bool,
    kind: Option<String>,
    title: Option<Text<'static>>,
    input: Option<Raw<'static>>,
    /// It has not begun: its input may still grow.
    is_pending: bool,
    locations: Option<Vec<Location<'static>>>,
    diffs: Vec<Diff<'static>>,
    content: Option<Raw<'static>>,
    /// The content came with the call and describes it; none came back yet.
    is_description: bool,
    output: Option<Raw<'static>>,
    /// Output that came in pieces: as version 2 sends it, or from a terminal of the agent's own.
    streamed: String,
    /// How a terminal of the agent's own ended.
    terminal_exit: Option<i32>,
    n_updates: u32,
    printed: ShownText,
}

impl AcpCalls {
    fn has_ended(&self, id: &str) -> bool {
        self.ended.iter().any(|it| it == id)
    }

    pub(super) fn is_known(&self, id: &str) -> bool {
        self.has_ended(id) || self.open.iter().any(|it| it.id.as_str() == id)
    }

    pub(super) fn deny(&mut self, id: &ItemId<'_>) {
        if self.denied.len() < MAX_DENIED {
            self.denied.push(id.clone().into_owned());
        }
    }

    /// Calls that were denied and not spoken of again.
    pub(super) fn take_denied(&mut self) -> Vec<ItemId<'static>> {
        std::mem::take(&mut self.denied)
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.denied.clear();
    }

    fn find(&mut self, id: &str) -> Option<usize> {
        self.open.iter().rposition(|it| it.id.as_str() == id)
    }
}

impl Acp {
    /// A call as an update tells it.
    pub(super) fn call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        update: &Update<'c>,
        meta: &Meta<'c>,
        is_opening: bool,
    ) {
        let Some(id) = update.tool_call_id.as_deref().filter(|it| !it.is_empty()) else {
            return self.odd_update(cx, "a tool call without an id", None);
        };
        // A `tool_call` may use an id again for a new call; only an update of an ended one is late.
        if !is_opening && self.calls.find(id).is_none() && self.calls.has_ended(id) {
            let id = ItemId::new(id.to_owned());
            return self.odd_update(cx, "an update after the end of its call", Some(id));
        }
        let at = self.upsert(cx, update, is_opening);
        self.terminal(cx, at, meta);
        let status = match update.status.as_deref() {
            Some("completed") => Status::Ok,
            Some("cancelled") => Status::Cancelled,
            // ACP has no word for these; linkspan's writer puts it into `_meta`.
            Some("failed") => match meta.status.as_deref() {
                Some("denied") => Status::Denied,
                Some("cancelled") => Status::Cancelled,
                Some("lost") => Status::Lost,
                Some(_) | None if self.was_denied(id) => Status::Denied,
                Some(_) | None => Status::Error,
            },
            Some(_) | None => return self.print(cx, at),
        };
        self.end_call(cx, at, status, meta);
    }

    fn was_denied(&mut self, id: &str) -> bool {
        let denied = &mut self.calls.denied;
        let at = denied.iter().position(|it| it.as_str() == id);
        at.map(|at| denied.remove(at)).is_some()
    }

    fn odd_update(
        &mut self,
        cx: &mut FrameContext<'_>,
        text: &'static str,
        item: Option<ItemId<'_>>,
    ) {
        let notice = Notice {
            item,
            ..Notice::new(Level::Debug, "late_update", Text::new(text))
        };
        self.lifecycle.notice(cx, notice);
    }

    /// Merges an update into the known call, and emits an event if it is worth one.
    pub(super) fn upsert<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        update: &Update<'c>,
        is_opening: bool,
    ) -> usize {
        let id = update.tool_call_id.as_deref().unwrap_or_default();
        let known = self.calls.find(id);
        let is_new = known.is_none();
        let at = known.unwrap_or_else(|| self.add_call(id));
        let call = &mut self.calls.open[at];
        // Only from its first update: a call that has begun cannot become pending again.
        call.is_pending |= is_new && update.status.as_deref() == Some("pending");
        let mut has_changed = call.take(update);
        if update.content.0.is_some() {
            // Content that comes with the end is a result, even if the call was never introduced.
            let is_over = matches!(update.status.as_deref(), Some("completed" | "failed"));
            call.is_description = is_new && !is_over;
        }
        has_changed |= call.take_content(update.content);
        let key = call.id.clone();
        if is_new {
            // A call ends the message before it: ACP has no event for the end of a message.
            self.close_texts(cx);
        }
        // One that was given up as too old is opened again.
        let is_open = self.lifecycle.is_open(&key);
        let call = &mut self.calls.open[at];
        // Some agents send thousands of updates; each that is emitted holds the whole call.
        if is_open && (!has_changed || call.n_updates >= MAX_UPDATES) {
            return at;
        }
        call.n_updates += 1;
        let tool = call.tool(self.session.cwd.as_deref());
        let unseen = (!is_open && !is_opening).then_some(Why::NeverOpened);
        cx.because(cx.why.or(unseen), |cx| {
            self.lifecycle.update(cx, tool.into())
        });
        at
    }

    /// What a question tells about a call that is known: agents that ask before they run something
    /// may say what it is only there.
    pub(super) fn merge_question(
        &mut self,
        cx: &mut FrameContext<'_>,
        id: &str,
        update: &Update<'_>,
    ) {
        let Some(at) = self.calls.find(id) else {
            return;
        };
        let call = &mut self.calls.open[at];
        let is_empty = |it: &Raw<'_>| it.is_null() || it.get() == "{}";
        let input = update.raw_input.raw().filter(|it| !is_empty(it));
        let mut has_changed = false;
        // A call may be introduced with `{}` before its input is known: that is no input to keep.
        if let Some(input) = input.filter(|_| call.input.as_ref().is_none_or(is_empty)) {
            call.input = Some(input.into_owned());
            has_changed = true;
        }
        if call.content.is_none() && update.content.0.is_some() {
            has_changed |= call.take_content(update.content);
            call.is_description = true;
        }
        if call.kind.is_none() && update.kind.0.is_some() {
            call.kind = update.kind.owned();
            has_changed = true;
        }
        if (call.name.is_none() || call.is_guess) && update.name.0.is_some() {
            call.name = update.name.owned();
            call.is_guess = false;
            has_changed = true;
        }
        // A pending call is emitted as soon as it is complete.
        if has_changed && !call.is_pending && self.lifecycle.is_open(&call.id) {
            let tool = call.tool(self.session.cwd.as_deref());
            self.lifecycle.update(cx, tool.into());
        }
    }

    /// What a terminal of the agent's own printed, and how it ended.
    fn terminal<'c>(&mut self, cx: &mut FrameContext<'c>, at: usize, meta: &Meta<'c>) {
        let call = &mut self.calls.open[at];
        if let Some(code) = meta.terminal_exit.exit_code.0 {
            call.terminal_exit = Some(code as i32);
        }
        let key = call.id.clone();
        // Two adapters, two names; each holds only what was added since.
        for piece in [&meta.terminal_output, &meta.terminal_output_delta] {
            let Some(text) = piece.data.filled_text() else {
                continue;
            };
            self.calls.open[at].add_output(&text);
            self.lifecycle.delta(cx, &key, Channel::Output, text);
        }
    }

    /// A permission is requested for a call, so its input is known.
    pub(super) fn show_input(&mut self, cx: &mut FrameContext<'_>, id: &str) {
        let Some(at) = self.calls.find(id) else {
            return;
        };
        let call = &mut self.calls.open[at];
        // Nothing is approved that can still change: the question makes the input final.
        if std::mem::take(&mut call.is_pending) && call.input.is_some() {
            let tool = call.tool(self.session.cwd.as_deref());
            self.lifecycle.update(cx, tool.into());
        }
    }

    fn add_call(&mut self, id: &str) -> usize {
        self.calls.open.push(AcpCall {
            id: ItemId::new(id.to_owned()),
            name: None,
            is_guess: false,
            kind: None,
            title: None,
            input: None,
            is_pending: false,
            locations: None,
            diffs: Vec::new(),
            content: None,
            is_description: false,
            output: None,
            streamed: String::new(),
            terminal_exit: None,
            n_updates: 0,
            printed: ShownText::default(),
        })
    }

    /// Tells what was added to the output of a call that still runs.
    fn print(&mut self, cx: &mut FrameContext<'_>, at: usize) {
        let call = &mut self.calls.open[at];
        let Some(content) = call.content.as_ref().filter(|_| !call.is_description) else {
            return;
        };
        let contents = acp_tool_content::contents(Any(Some(content.as_raw_value())));
        let texts = contents.pieces.into_iter().filter_map(|it| match it {
            ContentPiece::Text(text) => Some(text),
            ContentPiece::Part(_) => None,
        });
        let text = content::joined(texts.collect(), "\n");
        let text = text.to_str();
        let Some(news) = call.printed.news(&text) else {
            return;
        };
        call.printed.add(news);
        let (key, news) = (call.id.clone(), Text::new(news.to_owned()));
        self.lifecycle.delta(cx, &key, Channel::Output, news);
    }

    /// A piece of output by itself, as version 2 sends it.
    pub(super) fn output_chunk<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>) {
        let id = ItemId::new(update.tool_call_id.owned().unwrap_or_default());
        let Some(content) = update.content.0 else {
            return;
        };
        let content: wire::ToolContent<'c> = scanner::from_str(content.get()).unwrap_or_default();
        if let Some(block) = content.content.0
            && let ContentPiece::Text(text) = acp_tool_content::piece(block)
        {
            if let Some(at) = self.calls.find(id.as_str()) {
                self.calls.open[at].add_output(&text);
            }
            self.lifecycle.delta(cx, &id, Channel::Output, text);
        }
    }

    fn end_call<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        status: Status,
        meta: &Meta<'c>,
    ) {
        let call = self.calls.open.remove(at);
        // Before the call closes: its ask may have been answered where the recording does not show
        // it.
        self.lifecycle.settle_by_status(cx, &call.id, status);
        let mut tool = call.tool(self.session.cwd.as_deref());
        tool.result = call.result(status, meta);
        tool.class.exit_code = call.exit_code(&tool);
        if self.subagents.knows(call.id.as_str()) {
            // The last text of the call's sub-agent is complete.
            cx.inside(std::slice::from_ref(&call.id), |cx| self.close_texts(cx));
            subagents::call_ended(&mut self.lifecycle, cx, call.id.as_str(), status);
        }
        self.lifecycle.close_whole(cx, tool.into(), status);
        self.calls.ended.push(call.id.as_str().to_owned());
    }
}

impl AcpCall {
    /// Takes over what is there; true when it is news.
    fn take(&mut self, update: &Update<'_>) -> bool {
        // Agents repeat what they have sent before; only what differs is worth an update.
        let mut is_news = false;
        let title = update.title.text();
        if title.is_some() && title != self.title {
            self.title = title.map(Text::into_owned);
            is_news = true;
        }
        let tool_name = update.name.as_deref();
        self.is_guess &= tool_name.is_none();
        for (known, new) in [
            (&mut self.name, tool_name),
            (&mut self.kind, update.kind.as_deref()),
        ] {
            if new.is_some() && new != known.as_deref() {
                *known = new.map(str::to_owned);
                is_news = true;
            }
        }
        if self.name.is_none() {
            let title = self.title.as_ref().map(Text::to_str);
            let name = names::find(self.id.as_str(), title.as_deref(), self.kind.as_deref());
            is_news |= name.is_some();
            self.is_guess = name.is_some();
            self.name = name;
        }
        let input = update.raw_input.raw();
        if input.is_some() && input != self.input {
            self.input = input.map(Raw::into_owned);
            is_news = true;
        }
        if update.locations.0.is_some() {
            let locations = locations_of(update.locations);
            is_news |= self.locations.as_ref() != Some(&locations);
            self.locations = Some(locations);
        }
        let has_begun = !matches!(update.status.as_deref(), None | Some("pending"));
        // The beginning of a call makes its input final, and so it is news.
        is_news |= has_begun && std::mem::take(&mut self.is_pending) && self.input.is_some();
        if let Some(output) = update.raw_output.raw() {
            self.output = Some(output.into_owned());
        }
        is_news
    }

    /// Keeps a piece of the output for the result.
    fn add_output(&mut self, text: &Text<'_>) {
        // Past the bound pieces are still emitted; only the result, which repeats them, ends there.
        if self.streamed.len() + text.len_bound() <= MAX_OUTPUT {
            self.streamed.push_str(&text.to_str());
        }
    }

    fn take_content(&mut self, content: Any<'_>) -> bool {
        let Some(raw) = content.raw() else {
            return false;
        };
        // A long output is parsed here with every update otherwise; few contents have a diff.
        let has_diffs = raw.get().contains("\"diff\"");
        let diffs = if has_diffs {
            acp_tool_content::contents(content).diffs
        } else {
            Vec::new()
        };
        self.content = Some(raw.into_owned());
        // A result in words does not undo the change that was shown.
        if diffs.is_empty() || diffs == self.diffs {
            return false;
        }
        self.diffs = diffs.into_iter().map(Diff::into_owned).collect();
        true
    }

    fn tool(&self, cwd: Option<&str>) -> Tool<'_> {
        let input = self.input.as_ref().map(Raw::by_ref);
        let title = self.title.as_ref().map(Text::by_ref);
        let (name, kind) = (self.name.as_deref(), self.kind.as_deref());
        let mut class = tools::classify_acp(name, kind, title, input.as_ref(), cwd);
        if let Some(locations) = &self.locations {
            class.paths.clone_from(locations);
        }
        if !self.diffs.is_empty() {
            class.diffs.clone_from(&self.diffs);
        }
        let name = name.or(kind).unwrap_or("tool");
        Tool {
            // While a call is pending its input may still grow: consumers get it once, when it is
            // whole.
            input: input.filter(|_| !self.is_pending),
            ..Tool::new(self.id.by_ref(), name, class)
        }
    }
}

fn locations_of(list: Any<'_>) -> Vec<Location<'static>> {
    let list: List<wire::Location<'_>> = list.parse().unwrap_or_default();
    let places = list.0.into_iter().take(MAX_LOCATIONS);
    let place = |it: wire::Location<'_>| {
        let path = Text::from_json(it.path.0?).into_owned();
        let line = it.line.as_u64();
        (!path.is_empty()).then_some(Location { path, line })
    };
    places.filter_map(place).collect()
}
