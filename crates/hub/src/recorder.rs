//! A session that a program runs by itself, without a hub: recorded under the session's lease, so that
//! nobody else writes it meanwhile, and everybody can follow it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use formats::ag_ui::History;
use journal::{Command, Error, Journal, Lease, NewSession, Order, Owner, Parent, Result, Takeover};
use model::{Event, RunId, SessionId, Sink, error_chain};
use runner::{Answer, Asked, Earlier, StartError};
use tokio::time::timeout;

use crate::append::{Appender, Remedy};
use crate::config::{Limits, is_dead};

use crate::history;
use crate::lost;
use crate::order::{Abort, Told, bytes};
use crate::record::{Record, failed};

/// What is left to be stored at the end may take so long.
const LAST: Duration = Duration::from_secs(5);

/// Takes what an agent tells, and stores it.
pub struct Recorder {
    journal: Arc<dyn Journal>,
    appender: Appender,
    record: Record,
    /// The last command that was looked at.
    n_seen: u64,
}

/// What somebody else wants from whoever runs the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Abort,
    /// Let go of the session once it has nothing more to do: somebody else wants it.
    Leave,
    /// Give the agent this answer to what it asked.
    Settle {
        ask: String,
        answer: Answer,
        /// Nobody has answered in time, see [`Recorder::settle_overdue`].
        is_late: bool,
    },
}

/// A run that was stored with its prompt before its agent was started.
#[derive(Clone, Debug)]
pub struct Announced {
    pub run: RunId<'static>,
    /// What was stored, as canonical lines.
    lines: Vec<Bytes>,
}

impl Announced {
    /// Shows what was stored to somebody who does not read the journal.
    pub fn tell(&self, sink: &mut dyn Sink) {
        let lines = self.lines.iter().filter_map(|it| str::from_utf8(it).ok());
        for event in lines.filter_map(|it| Event::from_json(it).ok()) {
            sink.event(&event);
        }
    }
}

/// What is on its way into the journal.
pub struct Storing<'a>(&'a mut Appender);

impl std::fmt::Debug for Storing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storing").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("session", &self.appender.lease.session)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Begins a session.
    pub async fn create(
        journal: Arc<dyn Journal>,
        session: NewSession,
        owner: &str,
    ) -> Result<Self> {
        let id = journal.create(session).await?.id;
        Self::open(journal, &id, owner).await
    }

    /// Goes on with a session; fails with [`Error::Held`] while somebody else has it.
    pub async fn open(
        journal: Arc<dyn Journal>,
        session: &SessionId<'static>,
        owner: &str,
    ) -> Result<Self> {
        let lease = acquire(&*journal, session, &Owner::new(owner)).await?;
        match record(&*journal, &lease).await {
            Ok(record) => Ok(Self {
                appender: Appender::new(Arc::clone(&journal), lease),
                journal,
                record,
                n_seen: 0,
            }),
            Err(err) => {
                // Others need not wait until it lapses; why it failed is what counts.
                journal.release(&lease).await.ok();
                Err(err)
            }
        }
    }

    pub fn session(&self) -> &SessionId<'static> {
        &self.appender.lease.session
    }

    /// Where the agent's events go on.
    pub fn earlier(&self) -> Earlier {
        self.record.earlier()
    }

    /// What the session holds, as the messages of a thread.
    pub fn history(&self) -> impl Future<Output = Result<History>> + Send + use<> {
        let journal = Arc::clone(&self.journal);
        let (session, seq) = (self.session().clone(), self.earlier().seq);
        async move { history::read(&*journal, &session, seq).await }
    }

    /// Stores a run and its prompt before the agent is started, so that everybody sees them at once. The agent
    /// is started with [`Announced::run`], and with what [`Recorder::earlier`] says after this.
    pub async fn announce(&mut self, prompt: &str) -> Result<Announced> {
        self.flush_all().await?;
        let run = self.record.announce(prompt, None);
        let lines = self.record.ready_lines();
        // Where the store cannot be written now, that is no reason not to work.
        self.flush_all().await?;
        Ok(Announced { run, lines })
    }

    /// Ends a run that was announced and whose agent could not be started.
    pub fn not_started(&mut self, err: &StartError) {
        self.record
            .end_run(failed("start_failed", error_chain(err)));
    }

    /// A step of the agent has returned: what it told may be stored.
    pub fn commit(&mut self) {
        self.mark();
        self.go_on();
    }

    /// The same, with whatever goes on its way next.
    pub fn mark(&mut self) {
        self.record.commit();
    }

    /// What may be stored goes on its way, unless something is on it.
    pub fn go_on(&mut self) {
        self.appender.begin(&mut self.record);
    }

    /// False: what is told faster than it is stored has to wait.
    pub fn has_room(&self) -> bool {
        self.record.has_room()
    }

    /// Where the agent tells, and what is on its way meanwhile.
    pub fn parts(&mut self) -> (&mut (dyn Sink + Send), Storing<'_>) {
        (&mut self.record, Storing(&mut self.appender))
    }

    /// What was asked of the session's owner since the last time. Prompts stay in the queue: whoever
    /// has the session next works on them.
    pub async fn wishes(&mut self) -> Result<Vec<Wish>> {
        let session = self.session().clone();
        let commands = self.journal.commands(&session, self.n_seen).await?;
        let mut wishes = Vec::new();
        for Command { number, order, .. } in commands {
            self.n_seen = number;
            match order {
                Order::Prompt(_) => continue,
                Order::Abort(body) => match serde_json::from_slice(&body) {
                    Ok(Abort {
                        prompt: Some(prompt),
                        ..
                    }) => self.record.done(prompt),
                    Ok(Abort { leave: true, .. }) => wishes.push(Wish::Leave),
                    Err(_) => (),
                    Ok(Abort { .. }) => wishes.push(Wish::Abort),
                },
                Order::Settle { ask, answer } => wishes.extend(self.answer(ask, &answer)),
                // Nobody knows any more what was wanted.
                Order::Damaged => (),
            }
            self.record.done(number);
        }
        self.go_on();
        Ok(wishes)
    }

    fn answer(&self, seq: u64, answer: &[u8]) -> Option<Wish> {
        let ask = self.record.asks().iter().find(|it| it.seq == seq)?;
        let answer = serde_json::from_slice::<Told>(answer).ok()?;
        Some(Wish::Settle {
            ask: ask.id.clone(),
            is_late: answer.is_late(),
            answer: answer.into(),
        })
    }

    /// Answers what nobody has answered in time, as anybody else would: the first answer counts, and
    /// comes back as a wish.
    pub async fn settle_overdue(&mut self, overdue: Vec<(Asked, Answer)>) {
        for (asked, answer) in overdue {
            let mut asks = self.record.asks().iter();
            let Some(ask) = asks.find(|it| it.id == asked.ask.id.as_str()) else {
                continue;
            };
            let answer = bytes(&Told::late(answer));
            let session = &self.appender.lease.session;
            // One that is not stored yet, or cannot be now, is tried again; another answer counts as well.
            self.journal.settle(session, ask.seq, answer).await.ok();
        }
    }

    /// Keeps the session for a while longer.
    pub async fn renew(&mut self) -> Result<()> {
        let ttl = Limits::default().lease;
        match self.journal.renew(&self.appender.lease, ttl).await {
            // Only the next owner takes it away; a disk that is full does not.
            Err(Error::Storage(_)) => Ok(()),
            renewed => renewed,
        }
    }

    /// Stores what is left, and lets the session go; false when not everything could be stored.
    pub async fn finish(mut self) -> bool {
        let is_stored = self.flush().await;
        // Who finds it lapsed takes it anyway.
        self.journal.release(&self.appender.lease).await.ok();
        is_stored
    }

    /// Stores what is left; false when not everything could be stored in time.
    pub async fn flush(&mut self) -> bool {
        matches!(self.flush_all().await, Ok(true))
    }

    /// The same; an error means that nothing will be stored any more.
    async fn flush_all(&mut self) -> Result<bool> {
        self.commit();
        let all = async {
            while self.appender.is_busy() {
                self.parts().1.next().await?;
                self.go_on();
            }
            Ok::<(), Error>(())
        };
        match timeout(LAST, all).await {
            Ok(stored) => stored.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Lets go of a session in which nothing was done; if nothing was ever told in it, it is removed.
    pub async fn discard(self) -> Result<()> {
        let Self {
            journal, appender, ..
        } = self;
        let lease = appender.lease;
        let found = journal.find_session(&lease.session).await?;
        let is_empty = found.is_some_and(|it| it.head == 0);
        match is_empty && journal.commands(&lease.session, 0).await?.is_empty() {
            true => journal.remove(&lease).await,
            false => journal.release(&lease).await,
        }
    }
}

impl Storing<'_> {
    /// Waits until something more is stored; for ever when nothing is on its way. What could not be
    /// stored is tried again; an error means that nothing will be.
    pub async fn next(&mut self) -> Result<()> {
        let Err(failed) = self.0.stored().await else {
            return Ok(());
        };
        let error = failed.error.clone();
        match self.0.failed(failed) {
            Remedy::Wait => Ok(()),
            Remedy::GiveUp | Remedy::Lose => Err(error),
        }
    }
}

/// What a fork of the agent's session `native` begins with, as far as the journal has it.
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

/// Takes a session whose owner has let go of it, or is dead.
pub(crate) async fn acquire(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    owner: &Owner,
) -> Result<Lease> {
    let ttl = Limits::default().lease;
    match journal.acquire(session, owner, ttl, Takeover::Lapsed).await {
        Err(Error::Held { owner: dead, .. }) if is_dead(&dead) => {
            let takeover = Takeover::Dead(dead);
            journal.acquire(session, owner, ttl, takeover).await
        }
        acquired => acquired,
    }
}

/// The record of a session, with nothing left open in its log.
async fn record(journal: &dyn Journal, lease: &Lease) -> Result<Record> {
    let head = lost::close(journal, lease).await?;
    let found = journal.find_session(&lease.session).await?;
    let session = found.ok_or_else(|| Error::NoSession {
        session: lease.session.clone(),
    })?;
    Record::open(journal, &session, head).await
}
