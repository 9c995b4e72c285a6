//! A session's log as its worker sees it: the recorded events, the lease, and the commands of others.
//!
//! There need not be one: a run works without a journal, an editor's session is stored only from its first
//! prompt on, and a session that another program wants is released.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use formats::History;
use journal::{Batch, Command, Error, Journal, Lease, NewSession, Owner, Parent, Result, WriteId};
use model::{Event, Frame, Outcome, RunEnded, RunId, SessionId, Sink, error_chain};
use runner::{Answer, Place, ResumePoint, StartError};
use tokio::time::{Instant, sleep, timeout};

use super::open_log::{JournalLink, OpenLog, acquire, record};
use crate::append::{AppendFailure, FailedAppend};
use crate::command::{StoredAnswer, request_release, to_bytes};
use crate::config::{Limits, own_name};
use crate::history;
use crate::record::{Record, failed};

/// Time limit for storing the rest at the end.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// How long another program may take to release a session.
const REACQUIRE_LIMIT: Duration = Duration::from_secs(10);
/// Between two attempts to acquire a session that another program holds.
const RETRY: Duration = Duration::from_millis(200);

/// A run that was stored with its prompt before its agent was started.
#[derive(Clone, Debug)]
pub struct Announced {
    pub run: RunId<'static>,
    /// What was stored, as canonical lines.
    lines: Vec<Bytes>,
}

impl Announced {
    /// Shows what was stored to a sink that does not read the journal.
    pub fn replay(&self, sink: &mut dyn Sink) {
        let lines = self.lines.iter().filter_map(|it| str::from_utf8(it).ok());
        for event in lines.filter_map(|it| Event::from_json(it).ok()) {
            sink.event(&event);
        }
    }
}

/// Where the events of a session go.
#[derive(Debug)]
pub struct SessionLog(State);

#[derive(Debug)]
enum State {
    /// Nothing is recorded.
    Off,
    /// Events are held back until there is a reason to keep them.
    Deferred(Vec<String>),
    Open(Box<OpenLog>),
    /// Another program has the session, or may have it.
    Released(SessionId<'static>),
}

impl SessionLog {
    /// Nothing is recorded.
    pub fn off() -> Self {
        Self(State::Off)
    }

    /// Nothing is recorded before [`SessionLog::begin`].
    pub fn deferred() -> Self {
        Self(State::Deferred(Vec::new()))
    }

    /// Begins a session.
    pub async fn create(journal: Arc<dyn Journal>, session: NewSession) -> Result<Self> {
        let id = journal.create(session).await?.id;
        Self::open(journal, &id).await
    }

    /// Continues a session; fails with [`Error::Held`] while another program holds it.
    pub async fn open(journal: Arc<dyn Journal>, session: &SessionId<'static>) -> Result<Self> {
        let ttl = Limits::default().lease;
        let lease = acquire(&*journal, session, &Owner::new(own_name()), ttl).await?;
        Self::with_lease(journal, lease, ttl).await
    }

    /// The log of a session whose lease was just acquired; runs left open in it are closed as lost.
    pub(crate) async fn with_lease(
        journal: Arc<dyn Journal>,
        lease: Lease,
        ttl: Duration,
    ) -> Result<Self> {
        match record(&*journal, &lease).await {
            Ok(record) => Ok(Self(State::Open(Box::new(OpenLog::new(
                journal, lease, record, ttl,
            ))))),
            Err(err) => {
                // Release at once so that others need not wait; the original error is the one to
                // report.
                journal.release(&lease).await.ok();
                Err(err)
            }
        }
    }

    fn opened(&self) -> Option<&OpenLog> {
        match &self.0 {
            State::Open(log) => Some(log),
            State::Off | State::Deferred(_) | State::Released(_) => None,
        }
    }

    fn opened_mut(&mut self) -> Option<&mut OpenLog> {
        match &mut self.0 {
            State::Open(log) => Some(log),
            State::Off | State::Deferred(_) | State::Released(_) => None,
        }
    }

    /// The longest flush interval.
    pub fn set_longest_rest(&mut self, rest: Duration) {
        if let Some(log) = self.opened_mut() {
            log.link.appender.set_longest_rest(rest);
        }
    }

    pub fn session(&self) -> Option<&SessionId<'static>> {
        match &self.0 {
            State::Open(log) => Some(log.session()),
            State::Released(session) => Some(session),
            State::Off | State::Deferred(_) => None,
        }
    }

    pub fn is_open(&self) -> bool {
        self.opened().is_some()
    }

    pub fn is_deferred(&self) -> bool {
        matches!(self.0, State::Deferred(_))
    }

    pub fn is_released(&self) -> bool {
        matches!(self.0, State::Released(_))
    }

    /// Where an agent that is started now continues.
    pub fn resume_point(&self) -> ResumePoint {
        let record = self.record();
        record.map(Record::resume_point).unwrap_or_default()
    }

    /// What the session holds, as the messages of a thread.
    pub async fn history(&mut self) -> Result<History> {
        // The history is read from the journal, so all of it has to be there.
        if !self.flush().await {
            return Err(Error::Storage(journal::Fault::Busy));
        }
        match self.opened() {
            Some(log) => history::read(&*log.link.journal, log.session(), log.record.seq()).await,
            None => Ok(History::default()),
        }
    }

    /// Records from now on, with what was held back.
    pub async fn begin(&mut self, journal: &Arc<dyn Journal>, session: NewSession) -> Result<()> {
        let State::Deferred(held) = &mut self.0 else {
            return Ok(());
        };
        let held = std::mem::take(held);
        // If the session cannot be made, nothing is recorded: events would be held without end.
        self.0 = State::Off;
        *self = Self::create(Arc::clone(journal), session).await?;
        let (mut record, _) = self.parts();
        for line in &held {
            if let Ok(event) = Event::from_json(line) {
                record.event(&event);
            }
        }
        self.commit();
        self.append();
        Ok(())
    }

    /// Stores a run and its prompt before the agent is started, so that all followers see them at once. The
    /// agent continues at [`SessionLog::place`]. `None` where nothing is recorded, or while a run that
    /// background work began is open.
    pub async fn announce(&mut self, prompt: &str) -> Result<Option<Announced>> {
        self.store_all().await?;
        let Some(record) = self.record_mut().filter(|it| it.open_run().is_none()) else {
            return Ok(None);
        };
        let run = record.announce(prompt, None, None);
        let lines = record.ready_lines();
        // Where the store cannot be written now, that is no reason not to work.
        self.store_all().await?;
        Ok(Some(Announced { run, lines }))
    }

    /// Where the events of an agent that is started now continue; `None` where nothing is recorded.
    pub fn place(&self, announced: Option<&Announced>) -> Option<Place> {
        let log = self.opened()?;
        Some(Place {
            session: log.session().to_string(),
            earlier: log.record.resume_point(),
            announced: announced.map(|it| it.run.clone()),
        })
    }

    /// Ends a run that was announced and whose agent could not be started.
    pub fn end_not_started(&mut self, err: &StartError) {
        if let Some(record) = self.record_mut() {
            record.end_run(failed("start_failed", error_chain(err)));
        }
    }

    /// Ends an announced run that no agent has ended: as failed with this code and message, or as aborted.
    pub(crate) fn end_announced(
        &mut self,
        run: &RunId<'_>,
        failure: Option<(&'static str, String)>,
    ) {
        let record = self.record_mut();
        if let Some(record) = record.filter(|it| it.open_run() == Some(run)) {
            record.end_run(match failure {
                Some((code, message)) => failed(code, message),
                None => RunEnded::new(Outcome::Aborted, None),
            });
        }
    }

    /// The agent is gone, and the events before its first prompt are dropped with it.
    pub fn forget_deferred(&mut self) {
        if let State::Deferred(held) = &mut self.0 {
            held.clear();
        }
    }

    /// Stores the rest and releases the session, so that another program can acquire it. False when not
    /// everything could be stored.
    pub async fn release(&mut self) -> bool {
        let is_stored = self.flush().await;
        let before = std::mem::replace(&mut self.0, State::Off);
        self.0 = match before {
            State::Open(log) => {
                let lease = log.link.appender.lease;
                // If this fails, the next owner waits for the lease to lapse.
                log.link.journal.release(&lease).await.ok();
                State::Released(lease.session)
            }
            before => before,
        };
        is_stored
    }

    /// Acquires the session again; waits a little for another program that may be about to release it.
    pub async fn reacquire(&mut self, journal: &Arc<dyn Journal>) -> Result<()> {
        let State::Released(session) = &self.0 else {
            return Ok(());
        };
        let session = session.clone();
        let deadline = Instant::now() + REACQUIRE_LIMIT;
        loop {
            match Self::open(Arc::clone(journal), &session).await {
                Ok(log) => {
                    *self = log;
                    return Ok(());
                }
                Err(Error::Held { .. }) if Instant::now() < deadline => {
                    // An owner that cannot be asked may still release it.
                    request_release(&**journal, &session).await.ok();
                    sleep(RETRY).await;
                }
                // It stays released, so that the next prompt can try again.
                Err(err @ Error::Held { .. }) => return Err(err),
                Err(err) => {
                    self.0 = State::Off;
                    return Err(err);
                }
            }
        }
    }

    /// Stores the rest; false when not everything could be stored in time.
    pub async fn flush(&mut self) -> bool {
        matches!(self.store_all().await, Ok(true))
    }

    /// The same; an error means that nothing more will be stored.
    async fn store_all(&mut self) -> Result<bool> {
        self.commit();
        let Some(log) = self.opened_mut() else {
            return Ok(true);
        };
        match timeout(FLUSH_LIMIT, log.store_all()).await {
            Ok(stored) => stored.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Releases a session in which nothing was done; one that is empty is removed.
    pub async fn discard(self) -> Result<()> {
        let State::Open(log) = self.0 else {
            return Ok(());
        };
        let (journal, lease) = (log.link.journal, log.link.appender.lease);
        let found = journal.find_session(&lease.session).await?;
        let is_empty = found.is_some_and(|it| it.head == 0);
        // Another process may have sent a prompt to it.
        match is_empty && journal.commands(&lease.session, 0).await?.is_empty() {
            true => journal.remove(&lease).await,
            false => journal.release(&lease).await,
        }
    }

    /// False while the journal has fallen behind: the agent is not read until it has caught up.
    pub(crate) fn has_room(&self) -> bool {
        self.record().is_none_or(Record::has_room)
    }

    /// The events of the agent's steps so far may be stored and shown.
    pub(crate) fn commit(&mut self) {
        if let Some(record) = self.record_mut() {
            record.commit();
        }
    }

    /// Begins the next append, unless one is in flight.
    pub(crate) fn append(&mut self) {
        if let Some(log) = self.opened_mut() {
            log.link.appender.begin(&mut log.record);
        }
    }

    /// Where the agent's events go, and what has happened in the journal meanwhile.
    pub(crate) fn parts(&mut self) -> (LogSink<'_>, Option<&mut JournalLink>) {
        match &mut self.0 {
            State::Open(log) => (LogSink::Record(&mut log.record), Some(&mut log.link)),
            State::Deferred(held) => (LogSink::Held(held), None),
            State::Off | State::Released(_) => (LogSink::Off, None),
        }
    }

    pub(crate) fn record(&self) -> Option<&Record> {
        self.opened().map(|it| &it.record)
    }

    pub(crate) fn record_mut(&mut self) -> Option<&mut Record> {
        self.opened_mut().map(|it| &mut it.record)
    }

    /// Nothing is left to be stored.
    pub(crate) fn is_stored(&self) -> bool {
        let mut log = self.opened().into_iter();
        log.all(|it| it.record.is_empty() && !it.link.appender.is_busy())
    }

    /// There may be commands that were not read yet.
    pub(crate) fn has_changed(&self) -> bool {
        self.opened().is_some_and(|it| it.link.has_changed)
    }

    /// A command is done once the events so far are stored. For a queued prompt that means that it is removed.
    pub fn done(&mut self, command: u64) {
        if let Some(record) = self.record_mut() {
            record.done(command);
        }
    }

    /// The id of the ask that was event `seq`.
    pub(crate) fn ask(&self, seq: u64) -> Option<String> {
        let mut asks = self.record()?.asks().iter();
        asks.find(|it| it.seq == seq).map(|it| it.id.clone())
    }

    /// Answers an ask in the journal, because its time is up; false when that has to be tried again.
    pub(crate) async fn settle_late(&mut self, id: &str, answer: Answer) -> bool {
        let Some(log) = self.opened() else {
            return false;
        };
        let ask = log.record.asks().iter().find(|it| it.id == id);
        let Some(seq) = ask.map(|it| it.seq) else {
            return false;
        };
        let answer = to_bytes(&StoredAnswer {
            answer,
            is_late: true,
        });
        let settled = log
            .link
            .journal
            .settle(log.session(), seq, WriteId::new(), answer)
            .await;
        // It is not stored yet, or cannot be now; another answer counts as well.
        matches!(settled, Ok(_) | Err(Error::Answered { .. }))
    }

    pub(crate) fn failed(&mut self, failed: FailedAppend) -> AppendFailure {
        match self.opened_mut() {
            Some(log) => log.link.appender.failed(failed),
            None => AppendFailure::Fenced,
        }
    }

    /// Fails when the lease was taken over, or the session was removed.
    pub(crate) async fn renew_if_due(&mut self) -> Result<()> {
        let link = self.opened_mut().map(|it| &mut it.link);
        let Some(link) = link.filter(|it| it.is_renewal_due) else {
            return Ok(());
        };
        let renewed = link.journal.renew(&link.appender.lease, link.ttl).await;
        // Only now: a step may be dropped while the journal is asked.
        link.is_renewal_due = false;
        match renewed {
            Err(err @ (Error::Fenced { .. } | Error::NoSession { .. })) => Err(err),
            // Any other failure may pass, and decides nothing: only the next owner does.
            _ => Ok(()),
        }
    }

    /// The commands that have come since the last time.
    pub(crate) async fn commands(&mut self) -> Vec<Command> {
        let Some(OpenLog { link, .. }) = self.opened_mut() else {
            return Vec::new();
        };
        let session = &link.appender.lease.session;
        let commands = link.journal.commands(session, link.n_read).await;
        // Only now: a step that is dropped while it reads has to read again.
        link.has_changed = false;
        // After a failed read they are read with the next renewal.
        let commands = commands.unwrap_or_default();
        if let Some(last) = commands.last() {
            link.n_read = last.number;
        }
        commands
    }

    /// Removes a prompt from the queue whose events the journal refuses.
    pub(crate) async fn give_up(&mut self, prompt: u64) {
        if let Some(OpenLog { link, .. }) = self.opened_mut() {
            let batch = Batch::new(Vec::new()).with_done(vec![prompt]);
            // If it cannot be removed from the queue, it is run again.
            link.journal.append(&link.appender.lease, batch).await.ok();
        }
    }

    pub(crate) async fn release_lease(self) {
        if let State::Open(log) = self.0 {
            let JournalLink {
                journal, appender, ..
            } = log.link;
            // If this fails, the next owner waits for the lease to lapse.
            journal.release(&appender.lease).await.ok();
        }
    }
}

/// Where the events of an agent go.
pub(crate) enum LogSink<'a> {
    Record(&'a mut Record),
    Held(&'a mut Vec<String>),
    Off,
}

impl Sink for LogSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match self {
            Self::Record(record) => record.event(event),
            Self::Held(held) => {
                held.push(serde_json::to_string(event).expect("events are plain data"));
            }
            Self::Off => (),
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        if let Self::Record(record) = self {
            record.frame(frame);
        }
    }
}

/// The parent of a fork of the agent's session `native`, if it is in the journal.
pub async fn parent(journal: &dyn Journal, native: Option<&str>) -> Result<Option<Parent>> {
    let Some(native) = native else {
        return Ok(None);
    };
    let found = journal.find_native(&SessionId::new(native)).await?;
    Ok(found.map(|it| Parent {
        session: it.id,
        seq: it.head,
    }))
}
