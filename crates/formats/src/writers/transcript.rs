//! What a transcript shows, and in which words: the one state machine of `text`, `markdown` and `html`.
//!
//! It follows the session, its runs, calls, asks and plans, and decides what is worth showing. A
//! [`Layout`] puts that where it belongs: `text` in order of time, pages with each sub-agent inside
//! its call. Left out and counted: debug notices, unmapped frames, usage of single requests.

mod work;

use std::borrow::Cow;
use std::fmt::Debug;

use model::{
    AskSettled, Body, Cause, Channel, Compaction, Delta, Event, Item, ItemClosed, ItemId, Level,
    Losses, Message, Notice, Other, Outcome, Part, Plan, Reasoning, Role, RunEnded, RunStarted,
    Scope, SessionBound, Status, Subagent, Text, Timestamp, Tool, Usage, Writer,
};

pub(crate) use self::work::{OpenCall, ShownPlan};
use super::asks::OpenAsk;
use super::labels::compact;
use super::sources::{SourceLink, source, sources};
use super::summary::{self, SessionSummary, notice_text};

/// What a tool printed that is kept in case no result comes.
const MAX_PRINTED: usize = 64 * 1024;

/// Where a part of a transcript goes.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The sub-agents around it, outermost first.
    pub(crate) path: &'a [ItemId<'static>],
    pub(crate) out: &'a mut Vec<u8>,
}

impl<'a> Place<'a> {
    /// Outside of every sub-agent.
    pub(crate) fn top(out: &'a mut Vec<u8>) -> Self {
        Self { path: &[], out }
    }
}

/// Where the parts of a transcript go, and how they look. It also counts what it leaves out.
pub(crate) trait Layout: Clone + Debug + Send + 'static {
    fn losses(&self) -> &Losses;
    fn losses_mut(&mut self) -> &mut Losses;
    /// An ask is shown when it opens, not with the call it is about.
    fn is_live(&self) -> bool {
        false
    }
    /// Sees every event first.
    fn before(&mut self, _event: &Event<'_>) {}
    fn session(&mut self, session: &SessionSummary, change: SessionChange, out: &mut Vec<u8>);
    fn run_started(&mut self, run: &RunStart, out: &mut Vec<u8>);
    fn run_ended(&mut self, end: &RunEnd<'_>, ended: &RunEnded<'_>, out: &mut Vec<u8>);
    /// The text of a message; it may be blank.
    fn prose(&mut self, author: Author, text: &str, place: &mut Place<'_>);
    /// A part of a message that is neither text nor picture.
    fn attachment(&mut self, text: &str, place: &mut Place<'_>);
    fn picture(&mut self, picture: &Picture<'_>, place: &mut Place<'_>);
    /// What an answer refers to.
    fn sources(&mut self, sources: &[SourceLink], place: &mut Place<'_>);
    fn hidden_reasoning(&mut self, text: &str, place: &mut Place<'_>);
    fn compaction(&mut self, label: &str, summary: &str, place: &mut Place<'_>);
    fn other(&mut self, other: &Other<'_>, place: &mut Place<'_>);
    fn notice(&mut self, level: Level, text: &str, place: &mut Place<'_>);
    /// A call opened, or more is known of it.
    fn call_known(&mut self, tool: &Tool<'_>, call: &mut OpenCall, place: &mut Place<'_>);
    fn call_closed(&mut self, closed: ClosedCall<'_>, place: &mut Place<'_>);
    fn agent_known(&mut self, _: &Subagent<'_>, _: Option<&OpenCall>, _: &Place<'_>) {}
    /// A sub-agent ended after the call that started it.
    fn agent_closed(&mut self, agent: &Subagent<'_>, status: Status, place: &mut Place<'_>);
    fn ask_opened(&mut self, _: &OpenAsk, _: &mut Place<'_>) {}
    /// An ask was settled that is about no call, or in a live layout.
    fn ask_settled(&mut self, ask: &OpenAsk, settled: &AskSettled<'_>, place: &mut Place<'_>);
    fn plan(
        &mut self,
        plan: &Plan<'_>,
        shown: PlanDisplay,
        before: Option<&ShownPlan>,
        place: &mut Place<'_>,
    );
    fn finish(&mut self, resume: Option<&str>, out: &mut Vec<u8>);
}

/// What is new about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionChange {
    First,
    /// It is another one; how to resume the one before.
    Other {
        resume: Option<String>,
    },
    Update(String),
}

#[derive(Debug)]
pub(crate) struct RunStart {
    pub(crate) n: u64,
    pub(crate) cause: Cause,
    pub(crate) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct RunEnd<'a> {
    pub(crate) n: u64,
    pub(crate) outcome: Outcome,
    /// A mark and a few words of ours.
    pub(crate) verdict: &'a str,
    pub(crate) facts: &'a [String],
    /// Why it failed, unless that was shown.
    pub(crate) reason: Option<Cow<'a, str>>,
    /// The final answer, unless a message was it.
    pub(crate) answer: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// What a person asked for.
    Prompt,
    Answer,
    Thought,
    /// A prompt from another agent.
    Task,
    /// A message from the agent program.
    Harness,
}

#[derive(Clone, Debug)]
pub(crate) enum Picture<'a> {
    Data {
        media_type: Cow<'a, str>,
        /// In base64.
        data: Cow<'a, str>,
    },
    Url(Cow<'a, str>),
}

/// How much room a plan gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanDisplay {
    Whole,
    /// It was shown before; this is a step on the way.
    Folded,
}

/// A call that has ended, and what is known of its life.
#[derive(Debug)]
pub(crate) struct ClosedCall<'a> {
    pub(crate) tool: &'a Tool<'a>,
    pub(crate) status: Status,
    pub(crate) open: OpenCall,
    /// How long it took, if that was long enough to notice.
    pub(crate) took: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Transcript<L> {
    pub(super) layout: L,
    /// When that happened which is being written.
    now: Option<Timestamp>,
    session: Option<SessionSummary>,
    /// The session has done something worth resuming.
    can_resume: bool,
    calls: Vec<OpenCall>,
    asks: Vec<OpenAsk>,
    plans: Vec<ShownPlan>,
    n_runs: u64,
    run: RunProgress,
}

/// What is known of the run so far.
#[derive(Clone, Debug, Default)]
struct RunProgress {
    is_open: bool,
    has_answer: bool,
    /// The agent was active in it.
    has_items: bool,
    n_requests: u64,
    /// The last error that was shown, so that the end does not repeat it.
    error: Option<Text<'static>>,
}

impl<L: Layout> Transcript<L> {
    pub(crate) fn new(layout: L) -> Self {
        Self {
            layout,
            now: None,
            session: None,
            can_resume: false,
            calls: Vec::new(),
            asks: Vec::new(),
            plans: Vec::new(),
            n_runs: 0,
            run: RunProgress::default(),
        }
    }

    fn bound(&mut self, bound: &SessionBound<'_>, engine: &str, out: &mut Vec<u8>) {
        let now = SessionSummary::new(bound, engine);
        if let Some(session) = &mut self.session
            && session.native == now.native
        {
            let has_mode = bound.permission_mode.is_some();
            if let Some(news) = session.update(now, has_mode) {
                let change = SessionChange::Update(news);
                self.layout.session(session, change, out);
            }
            return;
        }
        let change = match &self.session {
            None => SessionChange::First,
            Some(_) => SessionChange::Other {
                resume: self.resume_hint(),
            },
        };
        // The new session has done nothing yet.
        self.can_resume = false;
        let session = self.session.insert(now);
        self.layout.session(session, change, out);
    }

    fn started(&mut self, started: &RunStarted, out: &mut Vec<u8>) {
        self.n_runs += 1;
        self.run = RunProgress {
            is_open: true,
            ..RunProgress::default()
        };
        let run = RunStart {
            n: self.n_runs,
            cause: started.cause,
            at: self.now,
        };
        self.layout.run_started(&run, out);
    }

    fn opened(&mut self, item: &Item<'_>, place: &mut Place<'_>) {
        match item {
            Item::Tool(tool) => self.call_known(tool, place),
            Item::Plan(plan) => self.plan(plan, place),
            Item::Subagent(agent) => self.agent_known(agent, place),
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

    fn closed(&mut self, closed: &ItemClosed<'_>, place: &mut Place<'_>) {
        match &closed.item {
            Item::Message(message) => self.message(message, place),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, place),
            Item::Tool(tool) => self.call_closed(tool, closed.status, place),
            Item::Plan(plan) => self.plan_closed(plan, place),
            Item::Subagent(agent) => self.agent_closed(agent, closed.status, place),
            Item::Compaction(compaction) => self.compaction(compaction, place),
            Item::Other(other) => self.layout.other(other, place),
        }
    }

    fn message(&mut self, message: &Message<'_>, place: &mut Place<'_>) {
        let author = match message.role {
            Role::Assistant => Author::Answer,
            Role::User if place.path.is_empty() => Author::Prompt,
            Role::User => Author::Task,
            Role::Harness => Author::Harness,
        };
        let text = message.text.to_str();
        self.run.has_answer |=
            author == Author::Answer && place.path.is_empty() && !text.is_empty();
        self.layout.prose(author, &text, place);
        for part in &message.parts {
            match part {
                Part::Image { media_type, data } => {
                    let picture = Picture::Data {
                        media_type: Cow::Borrowed(media_type),
                        data: data.to_str(),
                    };
                    self.layout.picture(&picture, place);
                }
                Part::ImageUrl { url } => {
                    self.layout.picture(&Picture::Url(url.to_str()), place);
                }
                // Citations come one by one; the list of sources below has each once.
                Part::Other(raw) if source(raw).is_some() => (),
                Part::Other(raw) => self.layout.attachment(&compact(raw), place),
            }
        }
        let sources = sources(&message.parts);
        if !sources.is_empty() {
            self.layout.sources(&sources, place);
        }
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, place: &mut Place<'_>) {
        let text = reasoning.text.to_str();
        self.layout.prose(Author::Thought, &text, place);
        if text.is_empty() && reasoning.encrypted.is_some() {
            self.layout.losses_mut().count("hidden reasoning");
            let text = "thinking that only the model can read";
            self.layout.hidden_reasoning(text, place);
        }
    }

    fn compaction(&mut self, compaction: &Compaction<'_>, place: &mut Place<'_>) {
        let summary = compaction.summary.as_ref().map(Text::to_str);
        let label = summary::compacted(compaction);
        self.layout
            .compaction(&label, &summary.unwrap_or_default(), place);
    }

    fn usage(&mut self, usage: &Usage<'_>, place: &Place<'_>) {
        match usage.scope {
            // Not all requests of sub-agents are shown, so that only those of the main agent can be counted.
            Scope::Call if place.path.is_empty() => self.run.n_requests += 1,
            Scope::Call | Scope::Run | Scope::Session => (),
        }
        self.layout.losses_mut().count("usage report");
    }

    fn notice(&mut self, notice: &Notice<'_>, place: &mut Place<'_>) {
        if notice.detail.is_some() {
            self.layout.losses_mut().count("notice detail");
        }
        // The call itself will show that it was denied.
        let is_shown = notice.code == "permission_denied"
            && (notice.item.as_ref()).is_some_and(|id| self.calls.iter().any(|it| it.item == *id));
        if is_shown {
            return;
        }
        match notice.level {
            Level::Debug => return self.layout.losses_mut().count("debug notice"),
            Level::Error => self.run.error = Some(notice.text.clone().into_owned()),
            Level::Info | Level::Warning => (),
        }
        let text = notice_text(&notice.code, &notice.text.to_str());
        self.layout.notice(notice.level, &text, place);
    }

    fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.calls.clear();
        self.plans.clear();
        let run = std::mem::take(&mut self.run);
        // A session that was not found fails at once, and there is nothing to resume.
        self.can_resume |=
            run.has_items || !matches!(ended.outcome, Outcome::Lost | Outcome::Failed);
        let verdict = summary::outcome_label(ended.outcome, ended.duration_ms);
        let reason = ended.error.as_ref().map(|it| &it.message);
        let reason = reason.filter(|it| {
            let text = it.to_str();
            let is_verdict = verdict.contains(&*text) || *text == *ended.outcome.name();
            let is_shown = is_verdict || run.error.as_ref() == Some(it);
            !is_shown && !it.is_blank()
        });
        // A slash command answers in the end of its run alone; a failed run repeats its last text there.
        let is_missing = !run.has_answer && ended.outcome == Outcome::Completed;
        let end = RunEnd {
            n: self.n_runs,
            outcome: ended.outcome,
            verdict: &verdict,
            facts: &summary::summary_line(ended, run.n_requests),
            reason: reason.map(Text::to_str),
            answer: ended
                .answer
                .as_ref()
                .filter(|_| is_missing)
                .map(Text::to_str),
        };
        self.layout.run_ended(&end, ended, out);
    }

    fn resume_hint(&self) -> Option<String> {
        let session = self.session.as_ref().filter(|_| self.can_resume);
        session.and_then(summary::resume_hint)
    }
}

impl<L: Layout> Writer for Transcript<L> {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let place = &mut Place {
            path: &event.path,
            out,
        };
        self.now = event.at;
        self.layout.before(event);
        match &event.body {
            Body::SessionBound(bound) => self.bound(bound, &event.engine, place.out),
            Body::RunStarted(started) => self.started(started, place.out),
            Body::RunEnded(ended) => self.ended(ended, place.out),
            Body::ItemOpened(item) => {
                self.run.has_items |= summary::is_of_agent(item);
                self.opened(item, place);
            }
            Body::ItemUpdated(item) => self.opened(item, place),
            Body::ItemDelta(delta) => self.delta(delta),
            Body::ItemClosed(closed) => {
                self.run.has_items |= summary::is_of_agent(&closed.item);
                self.closed(closed, place);
            }
            Body::AskOpened(ask) => self.ask_opened(ask, place),
            Body::AskSettled(settled) => self.ask_settled(settled, place),
            Body::UsageReported(usage) => self.usage(usage, place),
            Body::NoticeRaised(notice) => self.notice(notice, place),
            Body::FrameUnmapped(_) => self.layout.losses_mut().count("unmapped frame"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.run.is_open {
            self.ended(&RunEnded::new(Outcome::Lost, None), out);
        }
        let resume = self.resume_hint();
        self.layout.finish(resume.as_deref(), out);
    }

    fn losses(&self) -> &Losses {
        self.layout.losses()
    }
}

#[cfg(test)]
mod tests;
