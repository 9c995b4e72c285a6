//! What a page for people tells, in which order; `html` and `markdown` only give it a look.
//!
//! Pages are written as things end: a call stands in one piece where it ended, with the decisions
//! about it and everything its sub-agent did. What sub-agents do is held until their call ends, up
//! to [`agents::MAX_HELD`] bytes; beyond that it is written in parts. The header waits for the first
//! prompt, because that is the title. Left out and counted: debug notices, details of notices,
//! unmapped frames, usage of single requests, what is too long.

mod agents;
pub(crate) mod card;
mod renderer;
mod totals;
mod work;

use std::fmt::Debug;

use model::{
    Body, Channel, Compaction, Delta, Event, Item, ItemClosed, ItemId, Level, Losses, Message,
    Notice, Other, Outcome, Part, Reasoning, Role, RunEnded, RunStarted, Scope, SessionBound, Text,
    Timestamp, Usage, Writer,
};

use self::agents::PageAgents;
use self::card::OpenCard;
pub(crate) use self::renderer::{
    Author, DIFF_CONTEXT, Footer, PageHeader, PageTurn, PageTurnEnd, Picture, PlanDisplay, Renderer,
};
use self::totals::PageTotals;
use self::work::PagePlan;
use super::WriterConfig;
use super::asks::OpenAsk;
use super::labels::{compact, cut};
use super::sources::{source, sources};
use super::summary::{self, SessionSummary};

/// What is held of a page before its header, in case the first prompt comes late.
const MAX_EARLY: usize = 64 * 1024;
/// What a tool printed that is kept in case no result comes.
const MAX_PRINTED: usize = 64 * 1024;
/// Characters of the first prompt that make the title.
const MAX_TITLE: usize = 100;

/// A page that is being written.
#[derive(Clone, Debug)]
pub(crate) struct PageTranscript<M> {
    markup: M,
    /// When it began, if nothing in it says so.
    began: Option<Timestamp>,
    at: Option<Timestamp>,
    /// What is written so far, while the header is not.
    early: Option<Vec<u8>>,
    session: Option<SessionSummary>,
    engine: String,
    can_resume: bool,
    calls: Vec<OpenCard>,
    agents: PageAgents,
    asks: Vec<OpenAsk>,
    plans: Vec<PagePlan>,
    n_turns: u64,
    run: PageRun,
    totals: PageTotals,
    losses: Losses,
}

/// What is known of the run so far.
#[derive(Clone, Debug, Default)]
struct PageRun {
    is_open: bool,
    has_answer: bool,
    /// The agent was active in it.
    has_items: bool,
    n_requests: u64,
    /// The last error that was shown, so that the end does not repeat it.
    error: Option<Text<'static>>,
}

impl<M: Renderer> PageTranscript<M> {
    pub(crate) fn new(markup: M, config: &WriterConfig) -> Self {
        Self {
            markup,
            began: config.began,
            at: None,
            early: Some(Vec::new()),
            session: None,
            engine: String::new(),
            can_resume: false,
            calls: Vec::new(),
            agents: PageAgents::default(),
            asks: Vec::new(),
            plans: Vec::new(),
            n_turns: 0,
            run: PageRun::default(),
            totals: PageTotals::default(),
            losses: Losses::default(),
        }
    }

    fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let path = &*event.path;
        match &event.body {
            Body::SessionBound(bound) => self.bound(bound, &event.engine, out),
            Body::RunStarted(started) => self.started(started, event.at, out),
            Body::RunEnded(ended) => self.ended(ended, out),
            Body::ItemOpened(item) => self.opened(item, path, out),
            Body::ItemUpdated(item) => self.updated(item, path, out),
            Body::ItemDelta(delta) => self.delta(delta),
            Body::ItemClosed(closed) => self.closed(closed, path, out),
            Body::AskOpened(ask) => self.on_ask(ask),
            Body::AskSettled(settled) => self.settled(settled, path, out),
            Body::UsageReported(usage) => self.usage(usage, path),
            Body::NoticeRaised(notice) => self.notice(notice, path, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    /// Puts a finished block where `path` says: on the page, or to what a sub-agent does.
    fn place(&mut self, path: &[ItemId<'_>], block: &[u8], out: &mut Vec<u8>) {
        if path.is_empty() {
            self.page(out).extend_from_slice(block);
            return;
        }
        let markup = self.markup.clone();
        let overflow = self.agents.hold(path, block, &markup);
        if let Some(overflow) = overflow {
            self.losses.count("sub-agent in parts");
            self.page(out).extend_from_slice(&overflow);
        }
    }

    fn page<'a>(&'a mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        self.early.as_mut().unwrap_or(out)
    }

    /// Writes the header, and what waited for it.
    fn begin(&mut self, prompt: Option<&str>, out: &mut Vec<u8>) {
        let Some(early) = self.early.take() else {
            return;
        };
        let line = prompt.and_then(|it| it.lines().map(str::trim).find(|it| !it.is_empty()));
        let title = match line {
            Some(line) => cut(line, MAX_TITLE).into_owned(),
            None if self.engine.is_empty() => "A session".to_owned(),
            None => format!("A session with {}", self.engine),
        };
        let head = PageHeader {
            title: &title,
            session: self.session.as_ref(),
            at: self.at.or(self.began),
        };
        self.markup.head(&head, out);
        out.extend(early);
    }

    fn bound(&mut self, bound: &SessionBound<'_>, engine: &str, out: &mut Vec<u8>) {
        let now = SessionSummary::new(bound, engine);
        match &mut self.session {
            Some(session) if session.native == now.native => {
                let says_mode = bound.permission_mode.is_some();
                if let Some(news) = session.update(now, says_mode)
                    && self.early.is_none()
                {
                    self.remark(&[], &format!("now {news}"), out);
                }
            }
            Some(_) => {
                let news = format!("now {}", now.headline());
                self.remark(&[], &news, out);
                self.session = Some(now);
            }
            None if self.early.is_some() => self.session = Some(now),
            None => {
                self.remark(&[], &now.headline(), out);
                self.session = Some(now);
            }
        }
    }

    fn started(&mut self, started: &RunStarted, at: Option<Timestamp>, out: &mut Vec<u8>) {
        self.n_turns += 1;
        self.run = PageRun {
            is_open: true,
            ..PageRun::default()
        };
        let turn = PageTurn {
            n: self.n_turns,
            cause: started.cause,
            at,
        };
        let mut block = Vec::new();
        self.markup.turn(&turn, &mut block);
        self.place(&[], &block, out);
    }

    fn opened(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        self.run.has_items |= summary::is_of_agent(item);
        match item {
            Item::Tool(tool) => self.call_known(tool),
            Item::Plan(plan) => self.plan(plan, path, out),
            Item::Subagent(agent) => self.agent_known(agent, path),
            Item::Message(_) | Item::Reasoning(_) | Item::Compaction(_) | Item::Other(_) => (),
        }
    }

    fn updated(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.call_known(tool),
            Item::Plan(plan) => self.plan(plan, path, out),
            Item::Subagent(agent) => self.agent_known(agent, path),
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

    fn closed(&mut self, closed: &ItemClosed<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        self.run.has_items |= summary::is_of_agent(&closed.item);
        match &closed.item {
            Item::Message(message) => self.message(message, path, out),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, path, out),
            Item::Tool(tool) => self.call_closed(tool, closed.status, path, out),
            Item::Plan(plan) => self.plan_closed(plan, path, out),
            Item::Subagent(agent) => self.agent_closed(agent, closed.status, path, out),
            Item::Compaction(compaction) => self.compaction(compaction, path, out),
            Item::Other(other) => self.other(other, path, out),
        }
    }

    fn message(&mut self, message: &Message<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let voice = match message.role {
            Role::Assistant => Author::Answer,
            Role::User if path.is_empty() => Author::Prompt,
            Role::User => Author::Task,
            Role::Harness => Author::Harness,
        };
        let text = message.text.to_str();
        match voice {
            Author::Prompt => self.begin(Some(&text), out),
            Author::Answer if path.is_empty() => {
                self.run.has_answer |= !text.is_empty();
                self.begin(None, out);
            }
            Author::Answer => self.agents.set_last_text(path, &text),
            Author::Task => self.agents.set_task(path, &text),
            Author::Thought | Author::Harness => (),
        }
        let mut block = Vec::new();
        self.write_text(voice, &text, &mut block);
        for part in &message.parts {
            match part {
                Part::Image { media_type, data } => {
                    let data = data.to_str();
                    let picture = Picture::Data {
                        media_type,
                        data: &data,
                    };
                    self.markup.picture(&picture, &mut block);
                }
                Part::ImageUrl { url } => {
                    let url = url.to_str();
                    self.markup.picture(&Picture::Url(&url), &mut block);
                }
                Part::Other(raw) if source(raw).is_some() => (),
                Part::Other(raw) => self.write_text(Author::Task, &compact(raw), &mut block),
            }
        }
        let sources = sources(&message.parts);
        if !sources.is_empty() {
            self.markup.sources(&sources, &mut block);
        }
        self.place(path, &block, out);
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let mut block = Vec::new();
        self.write_text(Author::Thought, &reasoning.text.to_str(), &mut block);
        if reasoning.text.is_empty() && reasoning.encrypted.is_some() {
            self.losses.count("hidden reasoning");
            let text = "thinking that only the model can read";
            self.markup.notice(Level::Info, text, &mut block);
        }
        self.place(path, &block, out);
    }

    /// Messages are never truncated.
    fn write_text(&self, voice: Author, text: &str, block: &mut Vec<u8>) {
        if !text.trim().is_empty() {
            self.markup.prose(voice, text, block);
        }
    }

    fn compaction(&mut self, compaction: &Compaction<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let summary = compaction.summary.as_ref().map(Text::to_str);
        let summary = summary.unwrap_or_default();
        self.aside(&summary::compacted(compaction), &summary, path, out);
    }

    fn other(&mut self, other: &Other<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let text = match &other.text {
            Some(text) => text.to_str(),
            None => other.data.get().into(),
        };
        self.aside(&other.name, &text, path, out);
    }

    fn aside(&mut self, name: &str, text: &str, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let mut block = Vec::new();
        self.markup.aside(name, truncated::<M>(text), &mut block);
        if text.len() > M::MAX_SHOWN {
            self.losses.count("cut text");
        }
        self.place(path, &block, out);
    }

    fn usage(&mut self, usage: &Usage<'_>, path: &[ItemId<'_>]) {
        match usage.scope {
            Scope::Call if path.is_empty() => self.run.n_requests += 1,
            Scope::Call | Scope::Run | Scope::Session => (),
        }
        self.losses.count("usage report");
    }

    fn notice(&mut self, notice: &Notice<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        if notice.detail.is_some() {
            self.losses.count("notice detail");
        }
        // The call itself will say that it was denied.
        let is_told = notice.code == "permission_denied"
            && (notice.item.as_ref()).is_some_and(|id| self.calls.iter().any(|it| it.item == *id));
        if is_told {
            return;
        }
        match notice.level {
            Level::Debug => return self.losses.count("debug notice"),
            Level::Error => self.run.error = Some(notice.text.clone().into_owned()),
            Level::Info | Level::Warning => (),
        }
        let mut text = notice.text.to_str();
        if notice.code.starts_with("task_") {
            // The text is only the task's own name.
            text = format!("{}: {text}", notice.code.replace('_', " ")).into();
        }
        let mut block = Vec::new();
        self.markup
            .notice(notice.level, truncated::<M>(&text), &mut block);
        self.place(path, &block, out);
    }

    /// A word of our own about what is going on.
    fn remark(&mut self, path: &[ItemId<'_>], text: &str, out: &mut Vec<u8>) {
        let mut block = Vec::new();
        self.markup.notice(Level::Info, text, &mut block);
        self.place(path, &block, out);
    }

    fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.begin(None, out);
        let rest = self.agents.release(&self.markup);
        out.extend(rest);
        if let Some(answer) = &ended.answer
            && !self.run.has_answer
            && ended.outcome == Outcome::Completed
        {
            let mut block = Vec::new();
            self.write_text(Author::Answer, &answer.to_str(), &mut block);
            out.extend(block);
        }
        self.calls.clear();
        self.plans.clear();
        let run = std::mem::take(&mut self.run);
        // A session that was not found fails at once, and there is nothing to go on with.
        self.can_resume |=
            run.has_items || !matches!(ended.outcome, Outcome::Lost | Outcome::Failed);
        self.totals.add(ended, self.session.as_ref());
        self.verdict(ended, &run, out);
    }

    fn verdict(&mut self, ended: &RunEnded<'_>, run: &PageRun, out: &mut Vec<u8>) {
        let verdict = summary::outcome_label(ended.outcome, ended.duration_ms);
        let facts = summary::summary_line(ended, run.n_requests, "request");
        let reason = ended.error.as_ref().map(|it| &it.message);
        let reason = reason.filter(|it| {
            let is_told = run.error.as_ref() == Some(it) || verdict.contains(&*it.to_str());
            !is_told && !it.is_blank()
        });
        let reason = reason.map(Text::to_str);
        let end = PageTurnEnd {
            n: self.n_turns,
            outcome: ended.outcome,
            verdict: &verdict,
            facts: &facts,
            reason: reason.as_deref().map(truncated::<M>),
        };
        self.markup.turn_end(&end, out);
    }
}

impl<M: Renderer> Writer for PageTranscript<M> {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.early.is_some() {
            if self.engine.is_empty() {
                self.engine = event.engine.clone().into_owned();
            }
            self.at = self.at.or(event.at);
        }
        self.write(event, out);
        if self.early.as_ref().is_some_and(|it| it.len() > MAX_EARLY) {
            self.begin(None, out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.run.is_open {
            self.ended(&RunEnded::new(Outcome::Lost, None), out);
        }
        self.begin(None, out);
        let rest = self.agents.release(&self.markup);
        out.extend(rest);
        let session = self.session.as_ref();
        let resume = session.filter(|_| self.can_resume);
        let resume = resume.and_then(summary::resume_hint);
        let foot = Footer {
            session,
            totals: &self.totals,
            resume: resume.as_deref(),
        };
        self.markup.foot(&foot, out);
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn clone_box(&self) -> Box<dyn Writer> {
        Box::new(self.clone())
    }
}

/// As much of a text as is shown.
pub(crate) fn truncated<M: Renderer>(text: &str) -> &str {
    &text[..text.floor_char_boundary(M::MAX_SHOWN)]
}

#[cfg(test)]
mod tests;
