//! A transcript for people: prompts, answers and actions in reading order.
//!
//! A file gets each tool call in one piece, where it ended. Live output shows a call when it starts
//! and text as it streams; other agents wait until the current speaker is done. All foreign text
//! passes `display_safe`, in [`page::SafeText`]. Left out and counted: debug notices, unmapped
//! frames, long outputs past their first lines.

mod asks;
mod calls;
mod page;
mod speech;
mod turnstile;
mod work;

use std::borrow::Cow;

use model::{
    Body, Cause, Channel, Compaction, Delta, Event, Item, ItemClosed, ItemId, Level, Losses,
    Message, Notice, Other, Outcome, Part, Reasoning, Role, RunEnded, RunStarted, Scope,
    SessionBound, Text, Timestamp, Usage, Writer,
};

use self::page::{
    BOLD, BlockKind, CYAN, DIM, GREEN, Indent, MAGENTA, PLAIN, RED, SafeText, TerminalPage, YELLOW,
};
use self::speech::{Speech, SpeechStyle};
use self::turnstile::{Delivery, Turnstile};
use self::work::{TranscriptCall, TranscriptPlan};
use super::WriterConfig;
use super::asks::OpenAsk;
use super::labels::{compact, size};
use super::sources::{source, sources};
use super::summary::{self, SessionSummary};

/// What a tool printed that is kept in case no result comes.
const MAX_PRINTED: usize = 64 * 1024;

const ASSISTANT: SpeechStyle = SpeechStyle {
    heading: None,
    mark: "",
    indent: Indent(""),
    style: PLAIN,
    max_lines: usize::MAX,
};
const THINKING: SpeechStyle = SpeechStyle {
    heading: Some("∴ thinking"),
    mark: "",
    indent: Indent("  "),
    style: DIM,
    max_lines: usize::MAX,
};
const USER: SpeechStyle = SpeechStyle {
    heading: None,
    mark: "› ",
    indent: Indent("  "),
    style: CYAN,
    max_lines: usize::MAX,
};
/// A prompt from another agent.
const MACHINE: SpeechStyle = SpeechStyle {
    heading: None,
    mark: "› ",
    indent: Indent("  "),
    style: DIM,
    max_lines: calls::MAX_LINES,
};
/// What an agent's own program tells it.
const HARNESS: SpeechStyle = SpeechStyle {
    mark: "» ",
    ..MACHINE
};

#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    live: bool,
    /// When that happened which is being written.
    now: Option<Timestamp>,
    page: TerminalPage,
    turnstile: Turnstile,
    session: Option<SessionSummary>,
    /// The session has done something worth going on with.
    can_resume: bool,
    calls: Vec<TranscriptCall>,
    asks: Vec<OpenAsk>,
    plans: Vec<TranscriptPlan>,
    run: TranscriptRun,
    losses: Losses,
}

/// What is known of the run so far.
#[derive(Clone, Debug, Default)]
struct TranscriptRun {
    is_open: bool,
    has_answer: bool,
    /// The agent was active in it.
    has_items: bool,
    n_turns: u64,
    /// The last error that was shown, so that the end does not repeat it.
    error: Option<Text<'static>>,
}

impl Transcript {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        Self {
            live: config.live,
            now: None,
            page: TerminalPage::new(config.color),
            turnstile: Turnstile::default(),
            session: None,
            can_resume: false,
            calls: Vec::new(),
            asks: Vec::new(),
            plans: Vec::new(),
            run: TranscriptRun::default(),
            losses: Losses::default(),
        }
    }

    fn write(&mut self, event: &Event<'_>, heard: Delivery, out: &mut Vec<u8>) {
        let path = &*event.path;
        self.now = event.at;
        match &event.body {
            Body::SessionBound(bound) => self.bound(bound, &event.engine, out),
            Body::RunStarted(started) => self.started(started, out),
            Body::RunEnded(ended) => self.ended(ended, out),
            Body::ItemOpened(item) => self.opened(item, path, out),
            Body::ItemUpdated(item) => self.updated(item, path, out),
            Body::ItemDelta(delta) => self.delta(delta),
            Body::ItemClosed(closed) => self.closed(closed, path, heard, out),
            Body::AskOpened(ask) => self.on_ask(ask, path, out),
            Body::AskSettled(settled) => self.settled(settled, path, out),
            Body::UsageReported(usage) => self.usage(usage, path),
            Body::NoticeRaised(notice) => self.notice(notice, path, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn bound(&mut self, bound: &SessionBound<'_>, engine: &str, out: &mut Vec<u8>) {
        let now = SessionSummary::new(bound, engine);
        match &mut self.session {
            Some(session) if session.native == now.native => {
                let says_mode = bound.permission_mode.is_some();
                if let Some(news) = session.update(now, says_mode) {
                    self.remark(&format!("· now {news}"), out);
                }
            }
            Some(_) | None => {
                self.resume_hint(out);
                self.page.begin(BlockKind::Header, &[], out);
                let line = now.headline();
                self.page.line(Indent(""), BOLD, &SafeText::new(&line), out);
                self.session = Some(now);
            }
        }
    }

    fn started(&mut self, started: &RunStarted, out: &mut Vec<u8>) {
        self.run = TranscriptRun {
            is_open: true,
            ..TranscriptRun::default()
        };
        match started.cause {
            Cause::Prompt => (),
            Cause::WakeUp => self.remark("· woken by background work", out),
        }
    }

    fn opened(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        self.run.has_items |= summary::is_of_agent(item);
        match item {
            Item::Tool(tool) => self.call_opened(tool, path, out),
            Item::Plan(plan) => self.plan(plan, path, out),
            Item::Subagent(agent) => self.agent_known(agent),
            Item::Message(_) | Item::Reasoning(_) | Item::Compaction(_) | Item::Other(_) => (),
        }
    }

    fn updated(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.call_updated(tool, path, out),
            Item::Plan(plan) => self.plan(plan, path, out),
            Item::Subagent(agent) => self.agent_known(agent),
            Item::Message(_) | Item::Reasoning(_) | Item::Compaction(_) | Item::Other(_) => (),
        }
    }

    fn delta(&mut self, delta: &Delta<'_>) {
        if delta.channel == Channel::Output
            && let Some(open) = self.calls.iter_mut().find(|it| it.item == delta.item)
            && open.printed.len() < MAX_PRINTED
        {
            open.printed.push_str(&delta.text.to_str());
        }
    }

    fn closed(
        &mut self,
        closed: &ItemClosed<'_>,
        path: &[ItemId<'_>],
        heard: Delivery,
        out: &mut Vec<u8>,
    ) {
        self.run.has_items |= summary::is_of_agent(&closed.item);
        match &closed.item {
            Item::Message(message) => self.message(message, path, heard, out),
            Item::Reasoning(_) if heard == Delivery::AlreadyStreamed => (),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, path, out),
            Item::Tool(tool) => self.call_closed(tool, closed.status, path, out),
            Item::Plan(plan) => self.plans.retain(|it| it.item != plan.id),
            Item::Subagent(agent) => self.agent_closed(agent, closed.status, path, out),
            Item::Compaction(compaction) => self.compaction(compaction, path, out),
            Item::Other(other) => self.other(other, path, out),
        }
    }

    fn message(
        &mut self,
        message: &Message<'_>,
        path: &[ItemId<'_>],
        heard: Delivery,
        out: &mut Vec<u8>,
    ) {
        if heard != Delivery::AlreadyStreamed {
            self.write_speech(voice(message, path), &message.text, path, out);
        }
        if message.role == Role::Assistant && path.is_empty() && !message.text.is_empty() {
            self.run.has_answer = true;
        }
        for part in &message.parts {
            let text = match part {
                Part::Image { media_type, data } => {
                    self.losses.count("image");
                    let size = size(data.len_bound() / 4 * 3);
                    format!("[{media_type}, {size}]")
                }
                Part::ImageUrl { url } => format!("[image {url}]"),
                Part::Other(raw) if source(raw).is_some() => continue,
                Part::Other(raw) => compact(raw),
            };
            self.write_speech(MACHINE, &Text::new(text), path, out);
        }
        let sources = sources(&message.parts);
        if !sources.is_empty() {
            self.page.begin(BlockKind::Text, path, out);
            self.page
                .line(Indent(""), DIM, &SafeText::new("sources"), out);
        }
        for source in sources {
            let line = match source.title {
                Some(title) => format!("{title}  {}", source.place),
                None => source.place,
            };
            self.page
                .line(Indent("  "), DIM, &SafeText::new(&line), out);
        }
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        self.write_speech(THINKING, &reasoning.text, path, out);
        if reasoning.text.is_empty() && reasoning.encrypted.is_some() {
            self.losses.count("hidden reasoning");
            let text = Text::new("∴ thinking that only the model can read");
            let voice = SpeechStyle {
                mark: "",
                ..MACHINE
            };
            self.write_speech(voice, &text, path, out);
        }
    }

    /// A whole text at once.
    fn write_speech(
        &mut self,
        voice: SpeechStyle,
        text: &Text<'_>,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        let mut speech = Speech::new(voice, path);
        speech.push(&text.to_str(), &mut self.page, out);
        if speech.finish(&mut self.page, out) {
            self.losses.count("cut text");
        }
    }

    fn compaction(&mut self, compaction: &Compaction<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let line = format!("⇣ {}", summary::compacted(compaction));
        self.page.begin(BlockKind::Text, path, out);
        self.page
            .line(Indent(""), MAGENTA, &SafeText::new(&line), out);
        if let Some(summary) = &compaction.summary {
            let text = summary.to_str();
            calls::note(&text, &self.page, &mut self.losses, out);
        }
    }

    fn other(&mut self, other: &Other<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        self.page.begin(BlockKind::Text, path, out);
        let line = format!("◦ {}", other.name);
        self.page
            .line(Indent(""), PLAIN, &SafeText::new(&line), out);
        let text = match &other.text {
            Some(text) => text.to_str().into_owned(),
            None => compact(&other.data),
        };
        calls::note(&text, &self.page, &mut self.losses, out);
    }

    fn usage(&mut self, usage: &Usage<'_>, path: &[ItemId<'_>]) {
        match usage.scope {
            Scope::Call if path.is_empty() => self.run.n_turns += 1,
            Scope::Call | Scope::Run | Scope::Session => (),
        }
        self.losses.count("usage report");
    }

    fn notice(&mut self, notice: &Notice<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        // The call itself will say that it was denied.
        let is_told = notice.code == "permission_denied"
            && (notice.item.as_ref()).is_some_and(|id| self.calls.iter().any(|it| it.item == *id));
        if is_told {
            return;
        }
        let (mark, style) = match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Info => ("· ", DIM),
            Level::Warning => ("⚠ ", YELLOW),
            Level::Error => ("✗ ", RED),
        };
        if notice.level == Level::Error {
            self.run.error = Some(notice.text.clone().into_owned());
        }
        self.page.begin(BlockKind::Notice, path, out);
        let mut text = notice.text.to_str();
        if notice.code.starts_with("task_") {
            // The text is only the task's own name.
            text = Cow::Owned(format!("{}: {text}", notice.code.replace('_', " ")));
        }
        calls::marked(mark, style, &text, &self.page, &mut self.losses, out);
    }

    /// A word of our own about what is going on.
    fn remark(&mut self, text: &str, out: &mut Vec<u8>) {
        self.page.begin(BlockKind::Notice, &[], out);
        self.page.line(Indent(""), DIM, &SafeText::new(text), out);
    }

    fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        if let Some(answer) = &ended.answer
            && !self.run.has_answer
            && ended.outcome == Outcome::Completed
        {
            self.write_speech(ASSISTANT, answer, &[], out);
        }
        self.calls.clear();
        self.plans.clear();
        let run = std::mem::take(&mut self.run);
        // A session that was not found fails at once, and there is nothing to go on with.
        self.can_resume |=
            run.has_items || !matches!(ended.outcome, Outcome::Lost | Outcome::Failed);
        self.page.begin(BlockKind::End, &[], out);
        self.verdict(ended, &run, out);
    }

    fn verdict(&mut self, ended: &RunEnded<'_>, run: &TranscriptRun, out: &mut Vec<u8>) {
        let style = match ended.outcome {
            Outcome::Completed => GREEN,
            Outcome::Failed | Outcome::Limit => RED,
            Outcome::Aborted | Outcome::Refused | Outcome::Lost => YELLOW,
        };
        let verdict = summary::outcome_label(ended.outcome, ended.duration_ms);
        let facts = summary::summary_line(ended, run.n_turns, "turn").join(" · ");
        let reason = ended.error.as_ref().map(|it| &it.message);
        let reason = reason.filter(|it| {
            let is_told = run.error.as_ref() == Some(it) || verdict.contains(&*it.to_str());
            !is_told && !it.is_blank()
        });
        if let Some(reason) = reason {
            let text = format!("{verdict}: {reason}");
            calls::reason(style, &text, &self.page, &mut self.losses, out);
            if !facts.is_empty() {
                self.page
                    .line(Indent("  "), DIM, &SafeText::new(&facts), out);
            }
            return;
        }
        self.page.start(Indent(""), out);
        self.page.put(style, &SafeText::new(&verdict), out);
        if !facts.is_empty() {
            self.page
                .put(DIM, &SafeText::new(&format!(" · {facts}")), out);
        }
        self.page.end_line(out);
    }

    /// How to go on with the session, once nothing more of it comes.
    fn resume_hint(&mut self, out: &mut Vec<u8>) {
        let session = self.session.take().filter(|_| self.can_resume);
        self.can_resume = false;
        if let Some(hint) = session.and_then(|it| summary::resume_hint(&it)) {
            if !self.page.is_last(&BlockKind::End) {
                self.page.begin(BlockKind::End, &[], out);
            }
            self.page
                .line(Indent("  "), DIM, &SafeText::new(&hint), out);
        }
    }
}

impl Writer for Transcript {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let heard = self.turnstile.deliver(event, &mut self.page, out);
        if heard == Delivery::Streamed {
            return;
        }
        if let Some(mut waiting) = self.turnstile.take_waiting() {
            self.write(event, heard, &mut waiting);
            self.turnstile.wait(waiting, &mut self.page, out);
        } else {
            self.write(event, heard, out);
            if self.live {
                self.turnstile.offer(event);
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.turnstile.clear(&mut self.page, out);
        if self.run.is_open {
            self.ended(&RunEnded::new(Outcome::Lost, None), out);
        }
        self.resume_hint(out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn clone_box(&self) -> Box<dyn Writer> {
        Box::new(self.clone())
    }
}

fn voice(message: &Message<'_>, path: &[ItemId<'_>]) -> SpeechStyle {
    match message.role {
        Role::Assistant => ASSISTANT,
        Role::User if path.is_empty() => USER,
        Role::User => MACHINE,
        Role::Harness => HARNESS,
    }
}

#[cfg(test)]
mod tests;
