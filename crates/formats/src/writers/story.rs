//! What a page for people tells, in which order; `html` and `markdown` only give it a look.
//!
//! Pages are written as things end: a call stands in one piece where it ended, with the decisions
//! about it and everything its sub-agent did. What sub-agents do is held until their call ends, up
//! to [`agents::MAX_HELD`] bytes; beyond that it is written in parts. The header waits for the first
//! prompt, because that is the title. Left out and counted: debug notices, details of notices,
//! unmapped frames, usage of single requests, what is too long.

mod agents;
pub(crate) mod card;
mod totals;

use std::fmt::Debug;

use model::{
    Ask, AskSettled, Body, Cause, Channel, Compaction, Decision, Delta, Event, Item, ItemClosed,
    ItemId, Level, Losses, Message, Notice, Other, Outcome, Part, Plan, PlanStatus, Reasoning,
    Role, RunEnded, RunStarted, Scope, SessionBound, Status, Subagent, Text, Timestamp, Tool,
    ToolKind, Usage, Writer,
};

use self::agents::Agents;
use self::card::{Card, Ending, Heard, OpenCall, Piece};
pub(crate) use self::totals::Totals;
use super::WriterConfig;
use super::asks::OpenAsk;
use super::facts::{self, Session};
use super::words::{cut, size, words};

/// What is held of a page before its header, in case the first prompt comes late.
const MAX_EARLY: usize = 64 * 1024;
/// What a tool printed that is kept in case no result comes.
const MAX_PRINTED: usize = 64 * 1024;
/// Characters of the first prompt that make the title.
const MAX_TITLE: usize = 100;

/// Lines of context on each side of a change.
pub(crate) const DIFF_CONTEXT: usize = 20;

/// The look of a page. Every text it is given is foreign and unsafe, unless it says otherwise.
pub(crate) trait Markup: Clone + Debug + Send + 'static {
    /// Bytes of one text that are shown; what is longer is cut, and its size said.
    const MAX_SHOWN: usize;

    fn head(&self, head: &Head<'_>, out: &mut Vec<u8>);
    fn turn(&self, turn: &Turn, out: &mut Vec<u8>);
    fn turn_end(&self, end: &TurnEnd<'_>, out: &mut Vec<u8>);
    fn foot(&self, foot: &Foot<'_>, out: &mut Vec<u8>);
    fn words(&self, voice: Voice, text: &str, out: &mut Vec<u8>);
    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>);
    fn card(&self, card: &Card<'_>, out: &mut Vec<u8>);
    fn plan(&self, plan: &Plan<'_>, shown: Shown, out: &mut Vec<u8>);
    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>);
    /// Something with a name and more to say about it.
    fn aside(&self, name: &str, text: &str, out: &mut Vec<u8>);
    fn ask(&self, question: &str, decision: Decision, answer: &str, out: &mut Vec<u8>);
}

#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) title: &'a str,
    pub(crate) session: Option<&'a Session>,
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) n: u64,
    pub(crate) cause: Cause,
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct TurnEnd<'a> {
    pub(crate) n: u64,
    pub(crate) outcome: Outcome,
    /// A mark and a few words of ours.
    pub(crate) verdict: &'a str,
    pub(crate) facts: &'a [String],
    pub(crate) reason: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct Foot<'a> {
    pub(crate) session: Option<&'a Session>,
    pub(crate) totals: &'a Totals,
    pub(crate) resume: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// What a person asked for.
    Prompt,
    Answer,
    Thought,
    /// What an agent was told by another agent.
    Task,
    /// What an agent was told by its own program.
    Harness,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Picture<'a> {
    Data { media_type: &'a str, data: &'a str },
    Url(&'a str),
}

/// How much room a plan gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Whole,
    /// It was shown before; this is a step on the way.
    Folded,
}

/// A page that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Story<M> {
    markup: M,
    /// When it began, if nothing in it says so.
    began: Option<Timestamp>,
    at: Option<Timestamp>,
    /// What is written so far, while the header is not.
    early: Option<Vec<u8>>,
    session: Option<Session>,
    engine: String,
    can_resume: bool,
    calls: Vec<OpenCall>,
    agents: Agents,
    asks: Vec<OpenAsk>,
    plans: Vec<OpenPlan>,
    n_turns: u64,
    run: Run,
    totals: Totals,
    losses: Losses,
}

/// What is known of the run so far.
#[derive(Clone, Debug, Default)]
struct Run {
    is_open: bool,
    has_answer: bool,
    n_requests: u64,
    /// The last error that was told, so that the end does not tell it again.
    error: Option<Text<'static>>,
}

#[derive(Clone, Debug)]
struct OpenPlan {
    item: ItemId<'static>,
    /// As it was written last.
    is_whole: bool,
    entries: Vec<(String, PlanStatus)>,
}

impl<M: Markup> Story<M> {
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
            agents: Agents::default(),
            asks: Vec::new(),
            plans: Vec::new(),
            n_turns: 0,
            run: Run::default(),
            totals: Totals::default(),
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
            Body::AskOpened(ask) => self.asked(ask),
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
        let head = Head {
            title: &title,
            session: self.session.as_ref(),
            at: self.at.or(self.began),
        };
        self.markup.head(&head, out);
        out.extend(early);
    }

    fn bound(&mut self, bound: &SessionBound<'_>, engine: &str, out: &mut Vec<u8>) {
        let now = Session::new(bound, engine);
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
        self.run = Run {
            is_open: true,
            ..Run::default()
        };
        let turn = Turn {
            n: self.n_turns,
            cause: started.cause,
            at,
        };
        let mut block = Vec::new();
        self.markup.turn(&turn, &mut block);
        self.place(&[], &block, out);
    }

    fn opened(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
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
            Role::Assistant => Voice::Answer,
            Role::User if path.is_empty() => Voice::Prompt,
            Role::User => Voice::Task,
            Role::Harness => Voice::Harness,
        };
        let text = message.text.to_str();
        match voice {
            Voice::Prompt => self.begin(Some(&text), out),
            Voice::Answer if path.is_empty() => {
                self.run.has_answer |= !text.is_empty();
                self.begin(None, out);
            }
            Voice::Answer => self.agents.said(path, &text),
            Voice::Task => self.agents.told(path, &text),
            Voice::Thought | Voice::Harness => (),
        }
        let mut block = Vec::new();
        self.say(voice, &text, &mut block);
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
                Part::Other(raw) => self.say(Voice::Task, raw.get(), &mut block),
            }
        }
        self.place(path, &block, out);
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let mut block = Vec::new();
        self.say(Voice::Thought, &reasoning.text.to_str(), &mut block);
        if reasoning.text.is_empty() && reasoning.encrypted.is_some() {
            self.losses.count("hidden reasoning");
            let text = "thinking that only the model can read";
            self.markup.notice(Level::Info, text, &mut block);
        }
        self.place(path, &block, out);
    }

    fn say(&mut self, voice: Voice, text: &str, block: &mut Vec<u8>) {
        if text.trim().is_empty() {
            return;
        }
        let shown = shown::<M>(text);
        if shown.len() < text.len() {
            self.losses.count("cut text");
        }
        self.markup.words(voice, shown, block);
        if shown.len() < text.len() {
            let note = format!("cut here, {} in all", size(text.len()));
            self.markup.notice(Level::Info, &note, block);
        }
    }

    fn compaction(&mut self, compaction: &Compaction<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let summary = compaction.summary.as_ref().map(Text::to_str);
        let summary = summary.unwrap_or_default();
        self.aside(&facts::compacted(compaction), &summary, path, out);
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
        self.markup.aside(name, shown::<M>(text), &mut block);
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
            .notice(notice.level, shown::<M>(&text), &mut block);
        self.place(path, &block, out);
    }

    /// A word of our own about what is going on.
    fn remark(&mut self, path: &[ItemId<'_>], text: &str, out: &mut Vec<u8>) {
        let mut block = Vec::new();
        self.markup.notice(Level::Info, text, &mut block);
        self.place(path, &block, out);
    }

    fn call_known(&mut self, tool: &Tool<'_>) {
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let at = at.unwrap_or_else(|| {
            self.calls.push(OpenCall::new(&tool.id));
            self.calls.len() - 1
        });
        if tool.class.kind == ToolKind::Task {
            self.calls[at].words = Some(words(tool));
        }
    }

    fn call_closed(
        &mut self,
        tool: &Tool<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        if path.is_empty() {
            self.begin(None, out);
        }
        let at = self.calls.iter().position(|it| it.item == tool.id);
        let open = at.map(|at| self.calls.remove(at));
        let open = open.unwrap_or_else(|| OpenCall::new(&tool.id));
        let goes_on = open.in_background && status == Status::Ok;
        let agent = if goes_on {
            None
        } else {
            self.agents.take(&tool.id, &self.markup)
        };
        let mut card = Card::of_call(tool, status, goes_on);
        let told = agent.as_ref().and_then(|it| it.told);
        card.input::<M>(tool, told, &mut self.losses);
        card.pieces
            .extend(open.decisions.into_iter().map(Piece::Decision));
        let said = agent.as_ref().and_then(|it| it.last_said);
        if let Some(agent) = agent {
            card.pieces.push(Piece::Inside(agent.held));
        }
        let mut heard = Heard::new(said);
        if let Some(report) = &open.report {
            card.report::<M>(report, &mut heard, &mut self.losses);
        }
        card.result::<M>(tool, status, &mut heard, &open.printed, &mut self.losses);
        let mut block = Vec::new();
        self.markup.card(&card, &mut block);
        self.place(path, &block, out);
    }

    fn agent_known(&mut self, agent: &Subagent<'_>, path: &[ItemId<'_>]) {
        let mut words = None;
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.in_background = agent.background;
            words = open.words.clone();
        }
        let words = words.unwrap_or_else(|| {
            let about = agent.description.as_ref().map(Text::to_string);
            (agent.name.to_string(), about)
        });
        self.agents.introduce(&agent.call, words, path);
    }

    /// The report of an agent is what its call returns; only one that went on after that has its own.
    fn agent_closed(
        &mut self,
        agent: &Subagent<'_>,
        status: Status,
        path: &[ItemId<'_>],
        out: &mut Vec<u8>,
    ) {
        if let Some(open) = self.calls.iter_mut().find(|it| it.item == agent.call) {
            open.report = agent.report.as_ref().map(Text::to_string);
            return;
        }
        let held = self.agents.take(&agent.call, &self.markup);
        if held.is_none() && !agent.background {
            return;
        }
        let mut card = Card {
            kind: ToolKind::Task,
            name: agent.name.to_string(),
            about: agent.description.as_ref().map(Text::to_string),
            ending: Ending::of(status, None),
            pieces: Vec::new(),
        };
        let mut said = None;
        if let Some(held) = held {
            said = held.last_said;
            (card.name, card.about) = (held.name, held.about);
            card.pieces.push(Piece::Inside(held.held));
        }
        if let Some(report) = &agent.report {
            card.report::<M>(&report.to_str(), &mut Heard::new(said), &mut self.losses);
        }
        let mut block = Vec::new();
        self.markup.card(&card, &mut block);
        self.place(path, &block, out);
    }

    fn asked(&mut self, ask: &Ask<'_>) {
        self.asks.push(OpenAsk::new(ask));
    }

    /// A decision stands with the call it is about.
    fn settled(&mut self, settled: &AskSettled<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let Some(at) = self.asks.iter().position(|it| it.id == settled.id) else {
            return;
        };
        let ask = self.asks.remove(at);
        let answer = ask.decision(settled);
        let call = (self.calls.iter_mut()).find(|it| Some(&it.item) == ask.call.as_ref());
        if let Some(call) = call {
            call.decisions.push(answer);
            return;
        }
        let mut block = Vec::new();
        self.markup
            .ask(&ask.question, settled.decision, &answer, &mut block);
        self.place(path, &block, out);
    }

    /// The first list and a finished one are shown whole, the steps between in short.
    fn plan(&mut self, plan: &Plan<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let entries = entries(plan);
        let at = self.plans.iter().position(|it| it.item == plan.id);
        let before = at.map(|at| self.plans.remove(at));
        let is_new = before.as_ref().is_none_or(|it| it.entries.is_empty());
        let is_same = before.is_some_and(|it| it.entries == entries);
        let is_done = entries.iter().all(|it| it.1 == PlanStatus::Completed);
        self.plans.push(OpenPlan {
            item: plan.id.clone().into_owned(),
            is_whole: is_new || is_done,
            entries,
        });
        if plan.entries.is_empty() || is_same {
            return;
        }
        let shown = match is_new || is_done {
            true => Shown::Whole,
            false => Shown::Folded,
        };
        let mut block = Vec::new();
        self.markup.plan(plan, shown, &mut block);
        self.place(path, &block, out);
    }

    /// Shows what became of a plan, unless it stands there already.
    fn plan_closed(&mut self, plan: &Plan<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let at = self.plans.iter().position(|it| it.item == plan.id);
        let before = at.map(|at| self.plans.remove(at));
        let is_shown = before.is_some_and(|it| it.is_whole && it.entries == entries(plan));
        if plan.entries.is_empty() || is_shown {
            return;
        }
        let mut block = Vec::new();
        self.markup.plan(plan, Shown::Whole, &mut block);
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
            self.say(Voice::Answer, &answer.to_str(), &mut block);
            out.extend(block);
        }
        self.calls.clear();
        self.plans.clear();
        let run = std::mem::take(&mut self.run);
        self.can_resume |= run.n_requests > 0 || ended.outcome == Outcome::Completed;
        self.totals.add(ended, self.session.as_ref());
        self.verdict(ended, &run, out);
    }

    fn verdict(&mut self, ended: &RunEnded<'_>, run: &Run, out: &mut Vec<u8>) {
        let verdict = facts::verdict(ended.outcome, ended.duration_ms);
        let facts = facts::facts(ended, run.n_requests, "request");
        let reason = ended.error.as_ref().map(|it| &it.message);
        let reason = reason.filter(|it| {
            let is_told = run.error.as_ref() == Some(it) || verdict.contains(&*it.to_str());
            !is_told && !it.is_blank()
        });
        let reason = reason.map(Text::to_str);
        let end = TurnEnd {
            n: self.n_turns,
            outcome: ended.outcome,
            verdict: &verdict,
            facts: &facts,
            reason: reason.as_deref().map(shown::<M>),
        };
        self.markup.turn_end(&end, out);
    }
}

impl<M: Markup> Writer for Story<M> {
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
        let resume = resume.and_then(facts::resume_hint);
        let foot = Foot {
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

fn entries(plan: &Plan<'_>) -> Vec<(String, PlanStatus)> {
    let entries = plan.entries.iter();
    entries.map(|it| (it.text.to_string(), it.status)).collect()
}

/// As much of a text as is shown.
pub(crate) fn shown<M: Markup>(text: &str) -> &str {
    &text[..text.floor_char_boundary(M::MAX_SHOWN)]
}

#[cfg(test)]
mod tests;
