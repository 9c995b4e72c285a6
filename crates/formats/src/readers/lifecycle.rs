//! What every reader owes its events: numbers without gaps, ids used once, everything closed, one end.
//!
//! A reader says what it saw; the lifecycle keeps what is open and makes the sequence lawful. An
//! item that is closed without having been opened is opened first; one that is still open when the
//! run ends is closed before it; streamed text and the final text are reconciled here.
//! All state is bounded: see the constants.

mod item_ids;
mod items;
mod notices;
mod streamed;

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Body, Cause, Channel, Decision, Delta, Event, Item,
    ItemClosed, ItemId, Origin, Outcome, Raw, RunEnded, RunId, RunStarted, SessionId, Sink, Status,
    Text, Timestamp, Tool, ToolKind, ToolResult, Why,
};

pub use self::item_ids::ItemIds;
use self::items::{folded, is_contained_in, name_call, text_of, without_text};
pub(crate) use self::notices::{MAX_KEPT, raw};
pub(crate) use self::streamed::StreamedText;
use super::{ReaderConfig, RunEnds};
use crate::errors;
use crate::tools;

/// Items open at once; an agent that opens more without closing any loses the oldest.
const MAX_OPEN: usize = 1024;
/// Streamed text kept per item; past it the item is closed and goes on under another id.
const MAX_STREAMED: usize = 16 * 1024 * 1024;

/// What a frame says about itself, and where its events go.
pub(crate) struct FrameContext<'c> {
    pub(crate) sink: &'c mut dyn Sink,
    /// The agent's own id of the frame.
    pub(crate) native: Option<Cow<'c, str>>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) origin: Origin,
    pub(crate) path: Cow<'c, [ItemId<'static>]>,
    /// Goes onto the first event of the frame.
    pub(crate) extra: Vec<(Cow<'c, str>, Raw<'c>)>,
    pub(crate) why: Option<Why>,
    /// The number of the frame; absent when no frame says it.
    pub(crate) frame: Option<u64>,
    /// The message of the frame as it came; empty when no frame says it.
    pub(crate) message: &'c str,
}

impl<'c> FrameContext<'c> {
    pub(crate) fn new(sink: &'c mut dyn Sink) -> Self {
        Self {
            sink,
            native: None,
            at: None,
            origin: Origin::Agent,
            path: Cow::Borrowed(&[]),
            extra: Vec::new(),
            why: None,
            frame: None,
            message: "",
        }
    }
}

/// What may begin a run after one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    /// Nothing: the agent was given one prompt.
    Never,
    /// A frame that says that a turn begins.
    Announced,
    /// Whatever belongs to a run.
    Anything,
}

#[derive(Clone, Debug)]
pub(crate) struct Lifecycle {
    envelope: Envelope,
    n_frames: u64,
    n_runs: u64,
    /// Runs that the session had before this stream.
    n_earlier: u64,
    restart: Restart,
    /// The name of the next run, when another program has given it one.
    next_run: Option<RunId<'static>>,
    open: Vec<OpenItem>,
    asks: Vec<AskInProgress>,
    used: ItemIds,
    /// What the agent printed last that is no message, if nothing else came after it.
    last_words: Option<String>,
}

/// What every event says around its body.
#[derive(Clone, Debug)]
struct Envelope {
    session: SessionId<'static>,
    engine: Cow<'static, str>,
    seq: u64,
    run: Option<RunId<'static>>,
}

impl Envelope {
    fn emit(&mut self, cx: &mut FrameContext<'_>, path: &[ItemId<'static>], body: Body<'_>) {
        self.seq += 1;
        let extra = std::mem::take(&mut cx.extra);
        let event = Event {
            seq: self.seq,
            at: cx.at,
            session: self.session.by_ref(),
            run: self.run.as_ref().map(RunId::by_ref),
            engine: Cow::Borrowed(&*self.engine),
            path: Cow::Borrowed(path),
            origin: if cx.why.is_some() {
                Origin::Linkspan
            } else {
                cx.origin
            },
            frame: cx.frame,
            native: cx.native.as_deref().map(Cow::Borrowed),
            why: cx.why,
            extra: Cow::Owned(extra),
            body,
        };
        cx.sink.owned_event(event);
    }
}

/// An item that lives.
#[derive(Clone, Debug)]
struct OpenItem {
    /// The id the reader knows it by; the item's own may differ when that was taken.
    key: ItemId<'static>,
    item: Item<'static>,
    path: Vec<ItemId<'static>>,
    text: StreamedText,
    input: StreamedText,
}

#[derive(Clone, Debug)]
struct AskInProgress {
    /// The id the agent knows it by; the one in the events may differ when that was taken.
    key: AskId<'static>,
    id: AskId<'static>,
    item: Option<ItemId<'static>>,
    path: Vec<ItemId<'static>>,
    /// What the agent wants to run, shared with whoever keeps the ask.
    input: Option<Raw<'static>>,
}

impl Lifecycle {
    pub(crate) fn new(engine: impl Into<Cow<'static, str>>, config: &ReaderConfig) -> Self {
        Self {
            envelope: Envelope {
                session: SessionId::new(config.session.clone()),
                engine: engine.into(),
                seq: 0,
                run: None,
            },
            n_frames: 0,
            n_runs: 0,
            n_earlier: config.previous.n_runs,
            restart: match config.run_ends {
                RunEnds::AtExit => Restart::Never,
                RunEnds::AtNextTurn | RunEnds::AtResult => Restart::Anything,
            },
            next_run: None,
            open: Vec::new(),
            asks: Vec::new(),
            used: config.previous.items.clone(),
            last_words: None,
        }
    }

    /// The format says where a turn begins: what comes between two turns belongs to neither.
    pub(crate) fn with_announced_turns(mut self) -> Self {
        if self.restart == Restart::Anything {
            self.restart = Restart::Announced;
        }
        self
    }

    /// Another program prints this format.
    pub(crate) fn set_engine_turns(&mut self, engine: &'static str) {
        self.envelope.engine = Cow::Borrowed(engine);
    }

    /// A new frame is being read; returns its number.
    pub(crate) fn next_frame(&mut self) -> u64 {
        self.n_frames += 1;
        self.n_frames
    }

    pub(crate) fn has_run(&self) -> bool {
        self.envelope.run.is_some()
    }

    pub(crate) fn n_runs(&self) -> u64 {
        self.n_runs
    }

    /// True between the end of a run and the announcement of the next.
    pub(crate) fn is_over(&self) -> bool {
        self.n_runs > 0 && !self.has_run() && self.restart != Restart::Anything
    }

    /// True when the agent was given one prompt: there is no second run.
    pub(crate) fn has_one_run(&self) -> bool {
        self.restart == Restart::Never
    }

    pub(crate) fn is_open(&self, key: &ItemId<'_>) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn emit(&mut self, cx: &mut FrameContext<'_>, body: Body<'_>) {
        let path = std::mem::take(&mut cx.path);
        let told = self.used.renamed_path(&path);
        self.emit_at(cx, &told, body);
        cx.path = path;
    }

    fn emit_at(&mut self, cx: &mut FrameContext<'_>, path: &[ItemId<'static>], body: Body<'_>) {
        self.envelope.emit(cx, path, body);
    }

    /// Emits with a reason why linkspan made it up.
    fn emit_because(
        &mut self,
        cx: &mut FrameContext<'_>,
        path: &[ItemId<'static>],
        why: Why,
        body: Body<'_>,
    ) {
        let before = cx.why.replace(cx.why.unwrap_or(why));
        self.emit_at(cx, path, body);
        cx.why = before;
    }

    /// Starts a run, unless one is under way or the only one is over.
    pub(crate) fn start_run(&mut self, cx: &mut FrameContext<'_>, cause: Cause) {
        if self.envelope.run.is_some() {
            return;
        }
        if self.n_runs > 0 && self.has_one_run() {
            return self.after_end(cx);
        }
        self.n_runs += 1;
        let run = self
            .next_run
            .take()
            .unwrap_or_else(|| RunId::new(format!("r{}", self.n_earlier + self.n_runs)));
        self.envelope.run = Some(run);
        self.emit_at(cx, &[], Body::RunStarted(RunStarted { cause }));
    }

    /// Something that belongs to a run: a stream may begin in the middle of one. False when the run
    /// it belongs to is over.
    fn join_run(&mut self, cx: &mut FrameContext<'_>) -> bool {
        if self.is_over() {
            self.after_end(cx);
            return false;
        }
        self.start_run(cx, Cause::Prompt);
        true
    }

    /// Closes everything and ends the run; without a run there is nothing to end.
    pub(crate) fn end_run(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut ended: RunEnded<'_>,
        left_open: Status,
    ) {
        if self.envelope.run.is_none() {
            return;
        }
        self.settle_error(cx, &mut ended);
        self.settle_all(
            cx,
            if left_open == Status::Cancelled {
                Decision::Withdrawn
            } else {
                Decision::Lost
            },
        );
        while let Some(open) = self.open.pop() {
            self.close_left_open(cx, open, left_open);
        }
        self.emit_at(cx, &[], Body::RunEnded(ended));
        self.envelope.run = None;
    }

    /// Gives an error its code. Where the agent just stopped, its last words are the reason.
    fn settle_error(&mut self, cx: &FrameContext<'_>, ended: &mut RunEnded<'_>) {
        let words = self.last_words.take();
        let Some(error) = &mut ended.error else {
            return;
        };
        let is_made_up = matches!(cx.why, Some(Why::ProcessExit | Why::MissingEnd));
        let has_failed = matches!(ended.outcome, Outcome::Failed | Outcome::Lost);
        if let Some(words) = words.filter(|_| is_made_up && has_failed) {
            error.message = Text::new(format!("{}\n{words}", error.message));
        }
        errors::settle(error);
    }

    pub(crate) fn open(&mut self, cx: &mut FrameContext<'_>, mut item: Item<'_>) {
        if !self.join_run(cx) {
            return;
        }
        self.close_conflicting(cx, &item);
        if self.is_open(item.id()) {
            return self.update(cx, item);
        }
        name_call(&mut item, None);
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.remove(0);
            self.close_left_open(cx, oldest, Status::Lost);
        }
        let key = item.id().clone().into_owned();
        let id = self.used.unique(&key);
        *item.id_mut() = id;
        self.emit(cx, Body::ItemOpened(item.clone()));
        let path = self.used.renamed_path(&cx.path).into_owned();
        let item = item.into_owned();
        self.open.push(OpenItem {
            key,
            item,
            path,
            text: StreamedText::default(),
            input: StreamedText::default(),
        });
    }

    /// Replaces what is known of an open item; opens it when it is not.
    pub(crate) fn update(&mut self, cx: &mut FrameContext<'_>, mut item: Item<'_>) {
        self.close_conflicting(cx, &item);
        let Some(at) = self.find(item.id()) else {
            return self.open(cx, item);
        };
        *item.id_mut() = self.open[at].item.id().clone();
        name_call(&mut item, Some(&self.open[at].item));
        if self.open[at].item == item {
            return;
        }
        let path = self.open[at].path.clone();
        self.emit_at(cx, &path, Body::ItemUpdated(item.clone()));
        self.open[at].item = item.into_owned();
    }

    /// A piece of an open item; a piece without an item becomes a notice.
    pub(crate) fn delta(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        channel: Channel,
        text: Text<'_>,
    ) {
        if text.is_empty() {
            return;
        }
        let fits = |open: &OpenItem| is_contained_in(&open.item, channel);
        let Some(mut at) = self.find(key).filter(|at| fits(&self.open[*at])) else {
            if self.is_over() {
                return self.after_end(cx);
            }
            let detail = Some(Raw::of(&text));
            return self.warn(
                cx,
                "never_opened",
                format!("a piece of `{key}`, which was never opened"),
                detail,
            );
        };
        let open = &self.open[at];
        if open.text.len() + open.input.len() + text.len_bound() > MAX_STREAMED {
            at = self.roll_over(cx, at);
        }
        let open = &mut self.open[at];
        match channel {
            Channel::Text => open.text.push(&text),
            Channel::Input => open.input.push(&text),
            Channel::Output => (),
        }
        let item = open.item.id().by_ref();
        let body = Body::ItemDelta(Delta {
            item,
            channel,
            text,
        });
        self.envelope.emit(cx, &open.path, body);
    }

    /// Closes a message or reasoning with its whole text, opening it first if need be.
    pub(crate) fn close_text(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut item: Item<'_>,
        status: Status,
    ) {
        self.close_conflicting(cx, &item);
        if !self.is_open(item.id()) {
            self.open(cx, without_text(&item));
        }
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let streamed = std::mem::take(&mut self.open[at].text);
        if !streamed.is_empty() && !streamed.is_all_of(text_of(&item)) {
            let whole = text_of(&item).to_str();
            if let Some(rest) = whole.strip_prefix(&*streamed.decode()) {
                let rest = rest.to_owned();
                drop(whole);
                let key = item.id().clone().into_owned();
                self.delta(cx, &key, Channel::Text, Text::new(rest));
            } else {
                drop(whole);
                // What was shown cannot be unshown: it stands, and the final text becomes an item of its own.
                self.open[at].text = streamed;
                let shown = self.open.remove(at);
                self.close_left_open(cx, shown, Status::Lost);
                self.warn(
                    cx,
                    "text_differs",
                    "the streamed text is not the final text".to_owned(),
                    None,
                );
                return self.close_text(cx, item, status);
            }
        }
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let open = self.open.remove(at);
        *item.id_mut() = open.item.id().clone();
        name_call(&mut item, Some(&open.item));
        self.emit_at(
            cx,
            &open.path,
            Body::ItemClosed(ItemClosed { status, item }),
        );
    }

    /// Closes an open item as it is known, after `finish` had its say.
    pub(crate) fn close<'r>(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        status: Status,
        finish: impl FnOnce(&mut Item<'r>),
    ) {
        let Some(at) = self.find(key) else { return };
        let OpenItem {
            item,
            path,
            text,
            input,
            ..
        } = self.open.remove(at);
        let mut item: Item<'r> = folded(item, &text, &input);
        finish(&mut item);
        self.emit_at(cx, &path, Body::ItemClosed(ItemClosed { status, item }));
    }

    /// Closes a tool call with its result; `finish` may refine the classification.
    pub(crate) fn close_tool<'r>(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        status: Status,
        result: ToolResult<'r>,
        finish: impl FnOnce(&mut Tool<'r>),
    ) {
        let Some(at) = self.find(key) else { return };
        let OpenItem {
            item,
            path,
            text,
            input,
            ..
        } = self.open.remove(at);
        let mut item: Item<'r> = folded(item, &text, &input);
        if let Item::Tool(tool) = &mut item {
            tool.result = Some(result);
            finish(tool);
        }
        self.emit_at(cx, &path, Body::ItemClosed(ItemClosed { status, item }));
    }

    /// Closes an item with its final form, opening it first if need be.
    pub(crate) fn close_whole(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut item: Item<'_>,
        status: Status,
    ) {
        match &item {
            Item::Message(_) | Item::Reasoning(_) => return self.close_text(cx, item, status),
            Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
        self.close_conflicting(cx, &item);
        if !self.is_open(item.id()) {
            let mut opened = item.clone();
            if let Item::Tool(tool) = &mut opened {
                tool.result = None;
            }
            let before = cx.why.replace(cx.why.unwrap_or(Why::NeverOpened));
            self.open(cx, opened);
            cx.why = before;
        }
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let open = self.open.remove(at);
        *item.id_mut() = open.item.id().clone();
        self.emit_at(
            cx,
            &open.path,
            Body::ItemClosed(ItemClosed { status, item }),
        );
    }

    /// Takes over the names of an event that was written before, and where its numbers began.
    pub(crate) fn adopt(&mut self, event: &Event<'_>) {
        if self.envelope.seq == 0 {
            // Half the numbers are left for what follows, however wild the file's own are.
            self.envelope.seq = event.seq.saturating_sub(1).min(u64::MAX / 2);
        }
        if self.envelope.session != event.session {
            self.envelope.session = event.session.clone().into_owned();
        }
        if self.envelope.engine != event.engine {
            self.envelope.engine = Cow::Owned(event.engine.clone().into_owned());
        }
        // Its names may be taken by runs of the same session that it knows nothing of.
        if let (None, Some(run), 0) = (&self.envelope.run, &event.run, self.n_earlier) {
            self.next_run = Some(run.clone().into_owned());
        }
    }

    /// The sub-agents an open item is inside of.
    pub(crate) fn path_of(&self, key: &ItemId<'_>) -> Option<&[ItemId<'static>]> {
        Some(&self.open[self.find(key)?].path)
    }

    /// What was streamed of an open item so far.
    pub(crate) fn streamed(&self, key: &ItemId<'_>, channel: Channel) -> Option<&StreamedText> {
        let open = &self.open[self.find(key)?];
        match channel {
            Channel::Text => Some(&open.text),
            Channel::Input => Some(&open.input),
            Channel::Output => None,
        }
    }

    /// An open tool call.
    pub(crate) fn open_tool(&self, key: &ItemId<'_>) -> Option<&Tool<'static>> {
        match &self.open[self.find(key)?].item {
            Item::Tool(tool) => Some(tool),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => None,
        }
    }

    pub(crate) fn ask(&mut self, cx: &mut FrameContext<'_>, mut ask: Ask<'_>) {
        if !self.join_run(cx) {
            return;
        }
        if self.asks.iter().any(|it| it.key == ask.id) {
            return;
        }
        if self.asks.len() >= MAX_OPEN {
            self.settle_all(cx, Decision::Lost);
        }
        let key = ask.id.clone().into_owned();
        // Asks and items have ids of their own, so they are kept apart here too.
        let id = self.used.unique(&ItemId::new(format!("ask {key}")));
        let id = AskId::new(id.as_str().trim_start_matches("ask ").to_owned());
        let item = ask.item.clone().map(ItemId::into_owned);
        let path = self.used.renamed_path(&cx.path).into_owned();
        if let Some(told) = item.as_ref().and_then(|it| self.used.renamed(it)) {
            ask.item = Some(told);
        }
        ask.id = id.clone();
        if ask.kind == AskKind::Permission {
            ask.title = self.approval_title(item.as_ref(), &ask);
        }
        let input = self.shared_input(item.as_ref(), ask.input.take());
        ask.input.clone_from(&input);
        self.emit(cx, Body::AskOpened(ask));
        self.asks.push(AskInProgress {
            key,
            id,
            item,
            path,
            input,
        });
    }

    /// The input of an ask in memory that all who keep it share, also with its call, whose input it usually
    /// repeats.
    fn shared_input(
        &self,
        item: Option<&ItemId<'_>>,
        asked: Option<Raw<'_>>,
    ) -> Option<Raw<'static>> {
        let call = item.and_then(|it| self.open_tool(it));
        let input = call.and_then(|it| it.input.clone());
        match input.filter(|it| asked.as_ref() == Some(it)) {
            Some(input) => Some(input),
            None => asked.map(Raw::into_owned),
        }
    }

    /// What is approved is what runs, whatever the agent calls it.
    fn approval_title<'a>(&self, item: Option<&ItemId<'_>>, ask: &Ask<'a>) -> Text<'a> {
        let call = item.and_then(|it| self.open_tool(it));
        let input = ask.input.as_ref();
        match call.filter(|it| it.class.kind != ToolKind::Other) {
            Some(call) => tools::approval_title(&ask.title, &call.class, input),
            None => {
                let class = tools::classify(&ask.tool, input, None);
                tools::approval_title(&ask.title, &class, input)
            }
        }
    }

    /// Settles an open ask; a second settlement of the same ask is no event.
    pub(crate) fn settle(&mut self, cx: &mut FrameContext<'_>, mut settled: AskSettled<'_>) {
        let Some(at) = self.asks.iter().position(|it| it.key == settled.id) else {
            return;
        };
        let ask = self.asks.remove(at);
        settled.id = ask.id;
        // Some protocols repeat what was asked in every answer; only another input is news.
        settled.input = settled.input.filter(|it| Some(it) != ask.input.as_ref());
        self.emit_at(cx, &ask.path, Body::AskSettled(settled));
    }

    /// True while an ask waits for its settlement.
    pub(crate) fn is_asked(&self, ask: &str) -> bool {
        self.asks.iter().any(|it| it.key.as_str() == ask)
    }

    /// The tool call that an open ask is about.
    pub(crate) fn item_of_ask(&self, ask: &str) -> Option<ItemId<'static>> {
        let ask = self.asks.iter().find(|it| it.key.as_str() == ask)?;
        ask.item.clone()
    }

    /// The ask that waits about a tool call.
    pub(crate) fn ask_of_item(&self, item: &ItemId<'_>) -> Option<AskId<'static>> {
        let ask = self.asks.iter().find(|it| it.item.as_ref() == Some(item))?;
        Some(ask.key.clone())
    }

    fn settle_all(&mut self, cx: &mut FrameContext<'_>, decision: Decision) {
        for ask in std::mem::take(&mut self.asks) {
            let settled = AskSettled {
                id: ask.id,
                decision,
                message: None,
                input: None,
                remembered: None,
            };
            self.emit_because(cx, &ask.path, Why::LeftOpen, Body::AskSettled(settled));
        }
    }

    /// An agent that gives one id to two kinds of things has ended the first with the second.
    fn close_conflicting(&mut self, cx: &mut FrameContext<'_>, item: &Item<'_>) {
        if let Some(at) = self.find(item.id())
            && self.open[at].item.kind() != item.kind()
        {
            let other = self.open.remove(at);
            self.close_left_open(cx, other, Status::Lost);
        }
    }

    fn close_left_open(&mut self, cx: &mut FrameContext<'_>, open: OpenItem, status: Status) {
        let item = folded(open.item, &open.text, &open.input);
        // A plan has no end of its own: it is simply how far the agent got.
        let status = if matches!(item, Item::Plan(_)) {
            Status::Ok
        } else {
            status
        };
        self.emit_because(
            cx,
            &open.path,
            Why::LeftOpen,
            Body::ItemClosed(ItemClosed { status, item }),
        );
    }

    /// Closes the item at `at` and goes on with an empty one under the same key.
    fn roll_over(&mut self, cx: &mut FrameContext<'_>, at: usize) -> usize {
        let open = self.open.remove(at);
        let mut item = without_text(&open.item).into_owned();
        *item.id_mut() = self.used.unique(&open.key);
        let next = OpenItem {
            key: open.key.clone(),
            item: item.clone(),
            path: open.path.clone(),
            text: StreamedText::default(),
            input: StreamedText::default(),
        };
        let path = open.path.clone();
        self.close_left_open(cx, open, Status::Ok);
        self.emit_at(cx, &path, Body::ItemOpened(item));
        self.open.push(next);
        self.open.len() - 1
    }

    fn find(&self, key: &ItemId<'_>) -> Option<usize> {
        self.open.iter().rposition(|open| open.key == *key)
    }
}
