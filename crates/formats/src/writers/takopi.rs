//! Takopi's three events: `started`, `action`, `completed`, one JSON object per line.
//!
//! The default shape follows the Claude-to-Takopi mapping of takopi's own documents: what a tool did
//! with its raw input and result, a warning for every bad line and every denial, usage unchanged.
//! The profile `upstream` follows what takopi 0.22.3 really emits, `debug` adds notes to the default.
//! Takopi shows the final answer only, so words before it are counted as lost.

mod actions;
mod codex;
mod end;
mod notes;
mod session;
#[cfg(test)]
mod tests;
mod tools;
mod upstream;

use model::{
    Binding, Body, Event, Item, ItemClosed, ItemId, Losses, Message, Role, RunEnded, SessionBound,
    Text, Writer,
};

use self::actions::Action;
use self::notes::Note;
use self::session::TakopiSession;
use super::{WriterConfig, missing_end};
use crate::wire::takopi as wire;

/// Notes that wait for the run they will belong to; streams hold little before their first run.
const MAX_WAITING: usize = 64 * 1024;
/// Denials from notices, held until the end of the run so that each is shown once.
const MAX_DENIED: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TakopiProfile {
    #[default]
    Seed,
    Upstream,
    Debug,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Takopi {
    profile: TakopiProfile,
    engine: String,
    session: Option<TakopiSession>,
    run: TakopiRun,
    n_turns: u64,
    /// Notes from between runs, as the lines they will be.
    waiting: Vec<u8>,
    n_waiting: usize,
    losses: Losses,
}

/// The run that is under way, or the one that will be.
#[derive(Clone, Debug, Default)]
struct TakopiRun {
    is_open: bool,
    /// `started` has been written, so `completed` has to come.
    has_started: bool,
    /// Assistant text that will be the answer, unless more comes.
    has_text: bool,
    /// All of it, where that is the answer.
    words: String,
    n_notes: u64,
    /// Codex reported a retry.
    is_retrying: bool,
    actions: Vec<Action>,
    denied: Vec<DeniedCall>,
}

#[derive(Clone, Debug)]
struct DeniedCall {
    item: Option<ItemId<'static>>,
    text: Text<'static>,
}

impl Takopi {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        Self {
            profile: match config.profile.as_deref() {
                Some("upstream") => TakopiProfile::Upstream,
                Some("debug") => TakopiProfile::Debug,
                _ => TakopiProfile::Seed,
            },
            ..Self::default()
        }
    }

    fn bound(&mut self, event: &Event<'_>, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        if bound.how == Binding::Mismatch {
            // The run fails with a reason; it still belongs to the session that was asked for.
            return;
        }
        if bound.version.is_some() || !bound.commands.is_empty() {
            self.losses.count("session detail");
        }
        // Other agents report more about a session later; `started` is written with what is known by then.
        let is_new = TakopiSession::learn(&mut self.session, event, bound);
        // A session that repeats itself between two runs may do so without another run to come,
        // and one whose model is not known yet reports it with its next frame.
        let is_due = is_new && bound.model.is_some();
        if self.run.is_open || is_due {
            self.started(out);
        }
    }

    fn run_started(&mut self, out: &mut Vec<u8>) {
        self.run.is_open = true;
        self.release(out);
        self.started(out);
    }

    /// Writes `started` once a run, as soon as the session is known.
    fn started(&mut self, out: &mut Vec<u8>) {
        if self.session.is_none() || std::mem::replace(&mut self.run.has_started, true) {
            return;
        }
        self.release(out);
        let Some(session) = &self.session else { return };
        let title = match self.profile {
            TakopiProfile::Upstream => upstream::session_title(&self.engine),
            TakopiProfile::Seed | TakopiProfile::Debug => None,
        };
        session.write_started(&self.engine, title, out);
        if self.profile == TakopiProfile::Debug {
            let id = next_id(&self.engine, "note", &mut self.run.n_notes);
            session.write_note(&self.engine, &id, out);
        }
    }

    /// Writes the notes that waited for a run.
    fn release(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.waiting);
        self.n_waiting = 0;
    }

    fn item(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.tool(event, tool, out),
            Item::Plan(plan) => self.plan(plan, out),
            // These are written when they close.
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn closed(&mut self, event: &Event<'_>, closed: &ItemClosed<'_>, out: &mut Vec<u8>) {
        match &closed.item {
            Item::Tool(tool) => self.tool_closed(event, tool, closed.status, out),
            Item::Message(message) => self.message(event, message),
            Item::Reasoning(reasoning) => self.reasoning(event, reasoning, out),
            Item::Plan(_) => (), // Its last update had the same entries.
            // The call that started it is the action; a background agent's end comes after that.
            Item::Subagent(subagent) if subagent.background => {
                // Takopi has no action that outlives the call it belongs to.
                self.losses.count("end of a background sub-agent");
            }
            Item::Subagent(_) => (),
            Item::Compaction(compaction) => self.compaction(compaction, closed.status, out),
            Item::Other(other) if self.profile == TakopiProfile::Debug => {
                let title = other
                    .text
                    .as_ref()
                    .map_or_else(|| Text::new(&*other.name), Text::by_ref);
                let detail = wire::RawDetail { raw: &other.data };
                self.note(out, Note::new(wire::Level::Info, title, detail));
            }
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn message(&mut self, event: &Event<'_>, message: &Message<'_>) {
        if message.text.is_empty() && message.parts.is_empty() {
            return;
        }
        match message.role {
            Role::User => self.losses.count("user message"),
            Role::Harness => self.losses.count("harness message"),
            Role::Assistant if !event.path.is_empty() => self.losses.count("sub-agent message"),
            Role::Assistant => {
                if self.is_upstream_of(upstream::opencode::ENGINE) {
                    // Takopi's OpenCode runner answers with everything that was written, not with the last text.
                    return upstream::opencode::push_text(&mut self.run.words, &message.text);
                }
                // The last words are the answer; those before them have no place.
                if std::mem::replace(&mut self.run.has_text, true) {
                    self.losses.count("assistant message");
                }
            }
        }
    }

    /// True when it is written what takopi itself makes of an agent.
    fn is_upstream_of(&self, engine: &str) -> bool {
        self.profile == TakopiProfile::Upstream && self.engine == engine
    }

    fn run_ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        if self.profile == TakopiProfile::Upstream {
            // Takopi resumes the session that the `result` frame names.
            self.learn_from_result(ended);
        }
        // The session may have become known with the end only.
        self.started(out);
        // Every action that was started is completed before its run.
        self.left_open(out);
        match self.profile {
            TakopiProfile::Upstream => self.upstream_end(ended, out),
            TakopiProfile::Seed | TakopiProfile::Debug => self.end_run(ended, out),
        }
        self.run = TakopiRun::default();
        if let Some(session) = &mut self.session {
            session.had_run = true;
        }
    }
}

fn next_id(engine: &str, what: &str, n: &mut u64) -> String {
    *n += 1;
    format!("{engine}.{what}.{n}")
}

impl Writer for Takopi {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.engine != event.engine {
            self.engine = event.engine.clone().into_owned();
        }
        if self.profile == TakopiProfile::Upstream && self.engine == "codex" {
            return self.codex_event(event, out);
        }
        match &event.body {
            Body::SessionBound(bound) => self.bound(event, bound, out),
            Body::RunStarted(_) => self.run_started(out),
            Body::RunEnded(ended) => self.run_ended(ended, out),
            Body::ItemOpened(item) | Body::ItemUpdated(item) => self.item(event, item, out),
            Body::ItemDelta(_) => (), // The whole comes when the item closes.
            Body::ItemClosed(closed) => self.closed(event, closed, out),
            Body::AskOpened(_) => self.losses.count("ask"),
            Body::AskSettled(_) => (), // Counted when it was opened.
            Body::UsageReported(_) => self.losses.count("usage report"),
            Body::NoticeRaised(notice) => self.notice(notice, out),
            Body::FrameUnmapped(unmapped) => self.unmapped(unmapped, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.run.is_open || self.run.has_started {
            self.run_ended(&missing_end(), out);
        }
        // A note needs a run to belong to, and there will be none.
        for _ in 0..self.n_waiting {
            self.losses.count("notice outside a run");
        }
        self.waiting.clear();
        self.n_waiting = 0;
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}
