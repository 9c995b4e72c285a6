//! Events on their way into the journal: numbered, with the agent's own frames beside them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use formats::ItemIds;
use journal::{Batch, Deltas, Entry, Journal, Result, Stored};
use model::{
    Body, BodyKind, Cause, ClientRun, Event, Frame, Item, ItemClosed, ItemId, Message, Origin,
    Outcome, Role, RunEnded, RunError, RunId, RunStarted, SessionId, Sink, Status, Text, Timestamp,
};
use runner::ResumePoint;
use runner::engines::family;
use tracing::{info, warn};

use crate::acceptor::Accepted;
use crate::counts::RunCounts;
use crate::paging::LogPages;

/// Maximum unsaved backlog in bytes before the agent is no longer read.
const MAX_WAITING: usize = 8 << 20;

/// Bytes stored of an agent's own frame. The content of a longer one is in its events, and a second
/// copy would double the cost of the longest lines.
const MAX_FRAME: usize = 1 << 20;

/// Bytes of an error's code in the log of the server, and of one with digits.
const MAX_CODE: usize = 40;
const MAX_NUMBERED_CODE: usize = 12;

/// An ask without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenAsk {
    pub(crate) seq: u64,
    pub(crate) id: String,
}

/// Collects an agent's events.
#[derive(Debug)]
pub(crate) struct Record {
    session: SessionId<'static>,
    engine: String,
    seq: u64,
    n_runs: u64,
    /// The run without an end.
    open_run: Option<RunId<'static>>,
    items: ItemIds,
    asks: Vec<OpenAsk>,
    frame: Option<Bytes>,
    /// Bytes of the frame beyond the limit.
    frame_cut: u64,
    /// Events of a step that has not returned; they must not be published yet.
    staged: Vec<Entry>,
    committed: Batch,
    n_unsaved: usize,
    counting: Option<RunTimer>,
}

/// Where runs are counted, and when the open one has begun.
#[derive(Debug)]
struct RunTimer {
    counts: Arc<RunCounts>,
    began: Option<Instant>,
    /// The prompt of the open run, until its agent's first event.
    accepted: Option<Accepted>,
}

impl Record {
    /// Continues a session after event `head`.
    pub(crate) async fn open(
        journal: &dyn Journal,
        session: &journal::Session,
        head: u64,
    ) -> Result<Self> {
        let runs = journal.runs(&session.id, None, u32::MAX).await?;
        let numbers = runs
            .iter()
            .filter_map(|it| it.run.as_str().strip_prefix('r'));
        let highest = numbers.filter_map(|it| it.parse().ok()).max();
        Ok(Self {
            items: items(journal, &session.id, head).await?,
            session: session.id.clone(),
            engine: session.engine.clone(),
            seq: head,
            // Whichever is higher: no run id may be used twice in a session.
            n_runs: highest.unwrap_or(0).max(runs.len() as u64),
            open_run: None,
            asks: Vec::new(),
            frame: None,
            frame_cut: 0,
            staged: Vec::new(),
            committed: Batch::default(),
            n_unsaved: 0,
            counting: None,
        })
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Where the session's next process continues; an announced run is its first.
    pub(crate) fn resume_point(&self) -> ResumePoint {
        let n_open = u64::from(self.open_run.is_some());
        ResumePoint {
            seq: self.seq,
            previous: formats::PreviousStreams {
                n_runs: self.n_runs - n_open,
                items: self.items.clone(),
            },
        }
    }

    pub(crate) fn asks(&self) -> &[OpenAsk] {
        &self.asks
    }

    /// The step has returned: its events may be stored and published.
    pub(crate) fn commit(&mut self) {
        self.committed.entries.append(&mut self.staged);
    }

    /// Marks a command as done with the events so far.
    pub(crate) fn done(&mut self, command: u64) {
        self.committed.done.push(command);
    }

    /// Everything that may be stored; nothing when there is nothing.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        // A batch in flight does not count: there is never more than one.
        self.n_unsaved = 0;
        self.is_ready().then(|| std::mem::take(&mut self.committed))
    }

    /// The lines of what may be stored.
    pub(crate) fn ready_lines(&self) -> Vec<Bytes> {
        self.committed.entries.iter().map(Entry::line).collect()
    }

    /// Whether something may be stored.
    pub(crate) fn is_ready(&self) -> bool {
        !self.committed.entries.is_empty() || !self.committed.done.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_ready() && self.staged.is_empty()
    }

    /// Returns false when the unsaved backlog is full; stop stepping the agent until it drains.
    pub(crate) fn has_room(&self) -> bool {
        self.n_unsaved < MAX_WAITING
    }

    /// Announces a run before its agent starts: `run.started`, the client's name for it and the
    /// prompt. `number` is the prompt's in the queue, if it was there. Returns the run's id.
    pub(crate) fn announce(
        &mut self,
        prompt: &str,
        number: Option<u64>,
        client: Option<&ClientRun>,
    ) -> RunId<'static> {
        self.n_runs += 1;
        let run = RunId::new(format!("r{}", self.n_runs));
        self.open_run = Some(run.clone());
        let id = ItemId::new(format!("prompt-{}", self.n_runs));
        let message = |text: &str| {
            Item::Message(Message {
                id: id.clone(),
                role: Role::User,
                group: None,
                text: Text::new(text.to_owned()),
                parts: Vec::new(),
            })
        };
        let started = RunStarted {
            cause: Cause::Prompt,
            prompt: number,
        };
        self.emit(&run, Origin::Linkspan, Body::RunStarted(started));
        if let Some(client) = client {
            let notice = runner::client_notice(client);
            self.emit(&run, Origin::Client, Body::NoticeRaised(notice));
        }
        // The answer to a call has no prompt text.
        if !prompt.is_empty() {
            // The agent's reader must not reuse this id for another item.
            self.items.reserve(&id);
            let (status, item) = (Status::Ok, message(prompt));
            self.emit(&run, Origin::Client, Body::ItemOpened(message("")));
            let closed = Body::ItemClosed(ItemClosed { status, item });
            self.emit(&run, Origin::Client, closed);
        }
        self.commit();
        run
    }

    /// Ends the open run that no agent has ended.
    pub(crate) fn end_run(&mut self, ended: RunEnded<'_>) {
        if let Some(run) = self.open_run.take() {
            self.emit(&run, Origin::Linkspan, Body::RunEnded(ended));
            self.commit();
        }
    }

    /// The run without an end.
    pub(crate) fn open_run(&self) -> Option<&RunId<'static>> {
        self.open_run.as_ref()
    }

    fn emit(&mut self, run: &RunId<'_>, origin: Origin, body: Body<'_>) {
        let event = Event {
            seq: self.seq + 1,
            at: Some(now()),
            session: self.session.clone(),
            run: Some(run.by_ref()),
            engine: Cow::Owned(self.engine.clone()),
            path: Cow::Borrowed(&[]),
            origin,
            frame: None,
            native: None,
            why: None,
            extra: Cow::Borrowed(&[]),
            body,
        };
        self.push(&event);
    }

    /// From now on its runs are counted.
    pub(crate) fn count_in(&mut self, counts: &Arc<RunCounts>) {
        self.counting = Some(RunTimer {
            counts: Arc::clone(counts),
            began: None,
            accepted: None,
        });
    }

    /// The open run is for this prompt, and its agent has not emitted anything yet.
    pub(crate) fn expect_first_event(&mut self, accepted: Option<Accepted>) {
        if let Some(counting) = &mut self.counting {
            counting.accepted = accepted;
        }
    }

    fn count(&mut self, event: &Event<'_>) {
        let Some(counting) = &mut self.counting else {
            return;
        };
        if let Body::RunStarted(_) = event.body {
            counting.began = Some(Instant::now());
            info!(
                session = self.session.as_str(),
                run = event.run.as_ref().map(RunId::as_str),
                engine = family(&self.engine),
                "run started"
            );
        }
        // Events added by linkspan or the client say nothing about the agent's speed.
        if event.origin == Origin::Agent
            && let Some(accepted) = counting.accepted.take()
        {
            counting.counts.answered(&self.engine, accepted.age());
        }
        if let Body::RunEnded(ended) = &event.body {
            counting.accepted = None;
            // Its start may have been recorded by another process.
            let took = counting.began.take().map(|it| it.elapsed());
            let took = took.unwrap_or_default();
            counting.counts.ended(&self.engine, ended.outcome, took);
            self.log_end(event, ended, took);
        }
    }

    /// A run that failed is a warning.
    fn log_end(&self, event: &Event<'_>, ended: &RunEnded<'_>, took: Duration) {
        let session = self.session.as_str();
        let run = event.run.as_ref().map(RunId::as_str);
        let (engine, outcome) = (family(&self.engine), ended.outcome.name());
        let code = ended.error.as_ref().and_then(plain_code);
        // An aborted run has the code `aborted`, too.
        let code = code.filter(|it| *it != outcome);
        let seconds = (took.as_secs_f64() * 1e3).round() / 1e3;
        match ended.outcome {
            Outcome::Failed | Outcome::Lost => {
                warn!(session, run, engine, outcome, code, seconds, "run ended");
            }
            Outcome::Completed | Outcome::Aborted | Outcome::Refused | Outcome::Limit => {
                info!(session, run, engine, outcome, code, seconds, "run ended");
            }
        }
    }

    fn push(&mut self, event: &Event<'_>) {
        self.seq = event.seq;
        self.count(event);
        // Stored once, with the first of the events that the frame became.
        let frame = self.frame.take();
        self.n_unsaved += frame.as_ref().map_or(0, Bytes::len);
        let entry = Entry::fitted(event, frame).expect("events are plain data with string keys");
        let entry = entry.with_frame_cut(std::mem::take(&mut self.frame_cut));
        self.n_unsaved += entry.line_length();
        self.staged.push(entry);
    }

    fn apply(&mut self, event: &Event<'_>) {
        match &event.body {
            Body::RunStarted(_) => {
                self.n_runs += 1;
                self.open_run = event.run.clone().map(RunId::into_owned);
            }
            Body::RunEnded(_) => self.open_run = None,
            Body::ItemOpened(item) => self.items.reserve(item.id()),
            Body::AskOpened(ask) => self.asks.push(OpenAsk {
                seq: event.seq,
                id: ask.id.to_string(),
            }),
            Body::AskSettled(settled) => {
                self.asks.retain(|it| it.id != settled.id.as_str());
            }
            Body::SessionBound(_)
            | Body::ItemUpdated(_)
            | Body::ItemDelta(_)
            | Body::ItemClosed(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_) => (),
        }
    }
}

impl Sink for Record {
    fn event(&mut self, event: &Event<'_>) {
        self.apply(event);
        // A recording of canonical events speaks of the session it was taken from.
        if event.session == self.session {
            return self.push(event);
        }
        let mut ours = event.clone();
        ours.session = self.session.clone();
        self.push(&ours);
    }

    fn frame(&mut self, frame: Frame<'_>) {
        self.frame = match frame {
            Frame::Data(data) => {
                let kept = data.len().min(MAX_FRAME);
                self.frame_cut = (data.len() - kept) as u64;
                Some(Bytes::copy_from_slice(&data[..kept]))
            }
            Frame::Oversized { .. } => {
                self.frame_cut = 0;
                None
            }
        };
    }
}

/// The end of a run that came to nothing.
pub(crate) fn failed(code: &'static str, message: String) -> RunEnded<'static> {
    let error = RunError::new(code, Text::new(message));
    RunEnded::new(Outcome::Failed, Some(error))
}

/// The code of an error, if it looks like one: an agent or a recording may put any text there, and logs hold none
/// of it. Codes with digits (`http_429`, `-32603`) are shorter than any key.
fn plain_code<'a>(error: &'a RunError<'_>) -> Option<&'a str> {
    let is_word = |it: &str| it.bytes().all(|it| it.is_ascii_alphabetic() || it == b'_');
    let is_number = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    let is_plain = |it: &&str| match it.len() {
        ..=MAX_NUMBERED_CODE => it.bytes().all(is_number),
        length => length <= MAX_CODE && is_word(it),
    };
    Some(&*error.code).filter(is_plain)
}

pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}

/// The ids of all items of a session.
async fn items(journal: &dyn Journal, session: &SessionId<'_>, head: u64) -> Result<ItemIds> {
    let mut items = ItemIds::default();
    let mut pages = LogPages::new(journal, session, 0..head, Deltas::Skip);
    while let Some(events) = pages.next().await? {
        let opened = events.iter().filter(|it| it.kind == BodyKind::ItemOpened);
        for event in opened.filter_map(Stored::event) {
            if let Body::ItemOpened(item) = &event.body {
                items.reserve(item.id());
            }
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests;
