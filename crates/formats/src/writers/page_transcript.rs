//! The layout of a page for people; `html` and `markdown` only give it a look.
//!
//! Pages are written as things end: a call stands in one piece where it ended, with the decisions
//! about it and everything its sub-agent did. What sub-agents do is held until their call ends, up
//! to [`agents::MAX_HELD`] bytes; beyond that it is written in parts. The header waits for the first
//! prompt, because that is the title.

mod agents;
pub(crate) mod card;
mod renderer;
mod totals;

use std::borrow::Cow;

use model::{
    AskSettled, Cause, Event, Level, Losses, Other, Plan, PlanStatus, RunEnded, Status, Subagent,
    Text, Timestamp, Tool, ToolKind,
};

use self::agents::PageAgents;
use self::card::{CardOutcome, CardPart, LastText, ToolCard};
pub(crate) use self::renderer::{DIFF_CONTEXT, Footer, PageHeader, Renderer};
use self::totals::PageTotals;
use super::asks::OpenAsk;
use super::labels::title;
use super::sources::SourceLink;
use super::summary::SessionSummary;
use super::transcript::{
    Author, ClosedCall, Layout, OpenCall, Picture, Place, PlanDisplay, RunEnd, RunStart,
    SessionChange, ShownPlan, Transcript,
};

/// What is held of a page before its header, in case the first prompt comes late.
const MAX_EARLY: usize = 64 * 1024;

/// A page that is being written.
pub(crate) type PageTranscript<M> = Transcript<PageLayout<M>>;

#[derive(Clone, Debug)]
pub(crate) struct PageLayout<M> {
    markup: M,
    /// The first time that an event before the header has.
    at: Option<Timestamp>,
    /// What is written so far, while the header is not.
    early: Option<Vec<u8>>,
    session: Option<SessionSummary>,
    engine: String,
    agents: PageAgents,
    totals: PageTotals,
    losses: Losses,
}

impl<M: Renderer> PageTranscript<M> {
    pub(crate) fn page(markup: M) -> Self {
        Self::new(PageLayout {
            markup,
            at: None,
            early: Some(Vec::new()),
            session: None,
            engine: String::new(),
            agents: PageAgents::default(),
            totals: PageTotals::default(),
            losses: Losses::default(),
        })
    }
}

impl<M: Renderer> PageLayout<M> {
    /// Writes a block in its place: on the page, or among what a sub-agent does.
    fn place(&mut self, place: &mut Place<'_>, write: impl FnOnce(&M, &mut Vec<u8>)) {
        let mut block = Vec::new();
        write(&self.markup, &mut block);
        if !place.path.is_empty() {
            let Some(overflow) = self.agents.hold(place.path, &block, &self.markup) else {
                return;
            };
            // What overflows is written at once, so that memory stays bounded.
            self.losses.count("sub-agent in parts");
            block = overflow;
        }
        let Some(early) = &mut self.early else {
            return place.out.extend(block);
        };
        early.extend(block);
        if early.len() > MAX_EARLY {
            self.begin(None, place.out);
        }
    }

    /// Writes the header, and what waited for it.
    fn begin(&mut self, prompt: Option<&str>, out: &mut Vec<u8>) {
        let Some(early) = self.early.take() else {
            return;
        };
        let title = match prompt.and_then(title) {
            Some(title) => title,
            None if self.engine.is_empty() => "A session".to_owned(),
            None => format!("A session with {}", self.engine),
        };
        let head = PageHeader {
            title: &title,
            session: self.session.as_ref(),
            at: self.at,
        };
        self.markup.head(&head, out);
        out.extend(early);
    }

    fn aside(&mut self, name: &str, text: &str, place: &mut Place<'_>) {
        if text.trim().is_empty() {
            return self.notice(Level::Info, name, place);
        }
        if text.len() > M::MAX_SHOWN {
            self.losses.count("cut text");
        }
        self.place(place, |markup, out| {
            markup.aside(name, truncated::<M>(text), out);
        });
    }
}

impl<M: Renderer> Layout for PageLayout<M> {
    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn before(&mut self, event: &Event<'_>) {
        if self.early.is_some() {
            if self.engine.is_empty() {
                self.engine = event.engine.clone().into_owned();
            }
            self.at = self.at.or(event.at);
        }
    }

    fn session(&mut self, session: &SessionSummary, change: SessionChange, out: &mut Vec<u8>) {
        self.session = Some(session.clone());
        let has_header = self.early.is_none();
        let text = match change {
            // The header will show it.
            SessionChange::First | SessionChange::Update(_) if !has_header => return,
            SessionChange::First => session.headline(),
            SessionChange::Other { .. } => format!("now {}", session.headline()),
            SessionChange::Update(news) => format!("now {news}"),
        };
        self.notice(Level::Info, &text, &mut Place::top(out));
    }

    fn run_started(&mut self, run: &RunStart, out: &mut Vec<u8>) {
        let place = &mut Place::top(out);
        self.place(place, |markup, out| markup.run_started(run, out));
        match run.cause {
            Cause::Prompt => (),
            Cause::WakeUp => self.notice(Level::Info, "woken by background work", place),
        }
    }

    fn run_ended(&mut self, end: &RunEnd<'_>, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.begin(None, out);
        // A background agent may outlive the run, but not the section of the page that ends here.
        out.extend(self.agents.release(&self.markup));
        if let Some(answer) = &end.answer {
            self.prose(Author::Answer, answer, &mut Place::top(out));
        }
        self.totals.add(ended, self.session.as_ref());
        let reason = end.reason.as_deref().map(truncated::<M>);
        self.markup.run_ended(end, reason, out);
    }

    /// Messages are never truncated.
    fn prose(&mut self, author: Author, text: &str, place: &mut Place<'_>) {
        match author {
            Author::Prompt => self.begin(Some(text), place.out),
            // A prompt that follows the first answer is not what the page is about.
            Author::Answer if place.path.is_empty() => self.begin(None, place.out),
            Author::Answer => self.agents.set_last_text(place.path, text),
            Author::Task => self.agents.set_task(place.path, text),
            Author::Thought | Author::Harness => (),
        }
        if !text.trim().is_empty() {
            self.place(place, |markup, out| markup.prose(author, text, out));
        }
    }

    fn attachment(&mut self, text: &str, place: &mut Place<'_>) {
        let author = Author::Task;
        self.place(place, |markup, out| markup.prose(author, text, out));
    }

    fn picture(&mut self, picture: &Picture<'_>, place: &mut Place<'_>) {
        self.place(place, |markup, out| markup.picture(picture, out));
    }

    fn sources(&mut self, sources: &[SourceLink], place: &mut Place<'_>) {
        self.place(place, |markup, out| markup.sources(sources, out));
    }

    fn hidden_reasoning(&mut self, text: &str, place: &mut Place<'_>) {
        self.notice(Level::Info, text, place);
    }

    fn compaction(&mut self, label: &str, summary: &str, place: &mut Place<'_>) {
        self.aside(label, summary, place);
    }

    fn other(&mut self, other: &Other<'_>, place: &mut Place<'_>) {
        let text = match &other.text {
            Some(text) => text.to_str(),
            None => other.data.get().into(),
        };
        self.aside(&other.name, &text, place);
    }

    fn notice(&mut self, level: Level, text: &str, place: &mut Place<'_>) {
        let text = truncated::<M>(text);
        self.place(place, |markup, out| markup.notice(level, text, out));
    }

    fn call_known(&mut self, _: &Tool<'_>, _: &mut OpenCall, _: &mut Place<'_>) {
        // A card is written when its call has ended.
    }

    fn call_closed(&mut self, closed: ClosedCall<'_>, place: &mut Place<'_>) {
        let ClosedCall {
            tool, status, open, ..
        } = closed;
        if place.path.is_empty() {
            self.begin(None, place.out);
        }
        let goes_on = open.in_background && status == Status::Ok;
        let agent = match goes_on {
            // A background agent keeps what it holds until it ends.
            true => None,
            false => self.agents.take(&tool.id, &self.markup),
        };
        let mut card = ToolCard::of_call(tool, status, goes_on);
        let task = agent.as_ref().and_then(|it| it.task);
        card.input::<M>(tool, task, &mut self.losses);
        card.pieces
            .extend(open.decisions.into_iter().map(CardPart::Decision));
        let mut last = LastText {
            hash: agent.as_ref().and_then(|it| it.last_text),
            ..LastText::default()
        };
        if let Some(agent) = agent {
            card.pieces.push(CardPart::Inside(agent.held));
        }
        if let Some(report) = &open.report {
            card.report::<M>(report, &mut last, &mut self.losses);
        }
        card.result::<M>(tool, status, &mut last, &open.printed, &mut self.losses);
        self.place(place, |markup, out| markup.card(&card, out));
    }

    fn agent_known(&mut self, agent: &Subagent<'_>, call: Option<&OpenCall>, place: &Place<'_>) {
        let label = call.and_then(|it| it.agent_label.clone());
        let label = label.unwrap_or_else(|| {
            let about = agent.description.as_ref().map(Text::to_string);
            (agent.name.to_string(), about)
        });
        self.agents.introduce(&agent.call, label, place.path);
    }

    fn agent_closed(&mut self, agent: &Subagent<'_>, status: Status, place: &mut Place<'_>) {
        let held = self.agents.take(&agent.call, &self.markup);
        // Its call has shown it.
        if held.is_none() && !agent.background {
            return;
        }
        let mut card = ToolCard {
            kind: ToolKind::Task,
            name: agent.name.to_string(),
            about: agent.description.as_ref().map(Text::to_string),
            ending: CardOutcome::of(status, None),
            pieces: Vec::new(),
        };
        let mut last = LastText::default();
        if let Some(held) = held {
            last.hash = held.last_text;
            (card.name, card.about) = (held.name, held.about);
            card.pieces.push(CardPart::Inside(held.held));
        }
        if let Some(report) = &agent.report {
            card.report::<M>(&report.to_str(), &mut last, &mut self.losses);
        }
        self.place(place, |markup, out| markup.card(&card, out));
    }

    fn ask_settled(&mut self, ask: &OpenAsk, settled: &AskSettled<'_>, place: &mut Place<'_>) {
        let answer = ask.decision(settled);
        self.place(place, |markup, out| {
            markup.ask(&ask.question, settled.decision, &answer, out);
        });
    }

    fn plan(
        &mut self,
        plan: &Plan<'_>,
        shown: PlanDisplay,
        _before: Option<&ShownPlan>,
        place: &mut Place<'_>,
    ) {
        self.place(place, |markup, out| markup.plan(plan, shown, out));
    }

    fn finish(&mut self, resume: Option<&str>, out: &mut Vec<u8>) {
        self.begin(None, out);
        out.extend(self.agents.release(&self.markup));
        let foot = Footer {
            session: self.session.as_ref(),
            totals: &self.totals,
            resume,
        };
        self.markup.foot(&foot, out);
    }
}

/// How many entries of a plan are done, of how many, and the one being done.
pub(crate) fn progress<'a>(plan: &'a Plan<'_>) -> (String, Option<Cow<'a, str>>) {
    let entries = || plan.entries.iter();
    let n_done = entries().filter(|it| it.status == PlanStatus::Completed);
    let mut doing = entries().filter(|it| it.status == PlanStatus::InProgress);
    let count = format!("{}/{}", n_done.count(), plan.entries.len());
    (count, doing.next().map(|it| it.text.to_str()))
}

/// As much of a text as is shown.
pub(crate) fn truncated<M: Renderer>(text: &str) -> &str {
    &text[..text.floor_char_boundary(M::MAX_SHOWN)]
}

#[cfg(test)]
mod tests;
