//! A session at work: its lease, its queue, its agent, one loop.
//!
//! A desk lives as long as there is something to do for its session or an agent is kept warm for it.
//! It takes its orders from the journal alone, so that it does not matter which program left them.

mod claim;
mod work;

pub(crate) use claim::acquire;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Batch, Command, Error, Order, Watch};
use model::{RunId, SessionId};
use runner::{Agent, Permissions, StartError};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::{MissedTickBehavior, interval_at, sleep_until};

use crate::append::{Appender, Failed, Remedy, Stored};
use crate::order::{Prompt, Settings};
use crate::record::Record;
use crate::shared::{Shared, Status};

type Starting = Pin<Box<dyn Future<Output = Result<Agent, StartError>> + Send>>;

pub(crate) struct Desk {
    shared: Arc<Shared>,
    session: SessionId<'static>,
    native: Option<String>,
    record: Record,
    appender: Appender,
    queue: VecDeque<Waiting>,
    /// The last command that was looked at.
    n_seen: u64,
    current: Option<Current>,
    starting: Option<Starting>,
    agent: Option<Agent>,
    /// What the agent was started with.
    settings: Option<Settings>,
    /// It was told to go.
    is_leaving: bool,
    /// It may stay without work, until then.
    warm: Option<(OwnedSemaphorePermit, Instant)>,
    /// Asks that were seen to, in case the agent is slow to notice.
    answered: Vec<String>,
    is_stopping: bool,
    /// Its run was told to stop.
    is_aborting: bool,
    /// Somebody else waits for the session.
    is_wanted: bool,
}

/// A prompt that waits.
struct Waiting {
    number: u64,
    prompt: Prompt,
}

/// The prompt that is worked on.
struct Current {
    number: u64,
    prompt: Prompt,
    permissions: Permissions,
    run: RunId<'static>,
    /// The last event before its run.
    before: u64,
    /// The agent was there before it.
    is_warm: bool,
}

/// How a desk came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Done,
    /// Somebody else has the session.
    Fenced,
    /// What was told did not fit into the log: begin again.
    Torn,
}

/// What woke the loop.
enum Woken {
    Stored(Result<Stored, Failed>),
    Hint(bool),
    Started(Result<Box<Agent>, StartError>),
    Stepped(runner::Step),
    Tick,
    Idle,
    Stop,
    Abort,
}

/// Sees to a session until there is nothing more to do for it.
/// `abort` stops its run when the journal cannot say so.
pub(crate) async fn run(shared: Arc<Shared>, session: SessionId<'static>, abort: Arc<Notify>) {
    let scope = journal::Scope::Orders(session.clone());
    let mut watch = shared.config.journal.watch(scope);
    let mut stop = shared.stop.subscribe();
    while let Some(mut desk) = claim::claim(&shared, &session, &mut watch, &mut stop).await {
        let left = desk.serve(&mut watch, &mut stop, &abort).await;
        shared.set_status(&session, Status::default());
        let lease = desk.appender.lease.clone();
        drop(desk);
        if left != Left::Fenced {
            // Who cannot write it now waits until the lease has run out.
            shared.config.journal.release(&lease).await.ok();
        }
        if left != Left::Torn {
            break;
        }
    }
}

impl Desk {
    async fn serve(
        &mut self,
        watch: &mut Watch,
        stop: &mut watch::Receiver<bool>,
        abort: &Notify,
    ) -> Left {
        let period = (self.shared.config.limits.lease / 3).max(Duration::from_millis(1));
        // The lease was taken just now.
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.read_commands().await;
        loop {
            self.begin();
            self.settle_overdue().await;
            self.rest();
            self.show_status();
            self.appender.begin(&mut self.record);
            if self.is_done() {
                return Left::Done;
            }
            match self.wait(watch, stop, abort, &mut ticks).await {
                Woken::Stored(Ok(stored)) => {
                    self.shared.is_well();
                    // Whoever follows its events is told by the journal.
                    if stored.has_effects {
                        self.shared.touch(&self.session);
                    }
                }
                Woken::Stored(Err(failed)) => match self.failed(failed) {
                    Remedy::Wait => (),
                    Remedy::GiveUp => return Left::Fenced,
                    Remedy::Lose => {
                        self.lose().await;
                        return Left::Torn;
                    }
                },
                Woken::Hint(is_open) => {
                    if !is_open {
                        return Left::Fenced;
                    }
                    self.read_commands().await;
                }
                Woken::Started(started) => self.started(started),
                Woken::Stepped(step) => self.stepped(step),
                Woken::Tick => {
                    if self.is_fenced().await {
                        return Left::Fenced;
                    }
                    self.read_commands().await;
                }
                Woken::Idle => self.leave(),
                Woken::Stop => self.stop(),
                Woken::Abort => {
                    self.abort();
                }
            }
        }
    }

    async fn wait(
        &mut self,
        watch: &mut Watch,
        stop: &mut watch::Receiver<bool>,
        abort: &Notify,
        ticks: &mut tokio::time::Interval,
    ) -> Woken {
        let Self {
            record,
            appender,
            starting,
            agent,
            warm,
            ..
        } = self;
        // An agent that was told to stop is heard to its end, whatever the store does.
        let is_ending = self.is_stopping || self.is_leaving || self.is_aborting;
        let may_step = record.has_room() || is_ending;
        let idle = warm.as_ref().map(|it| it.1);
        tokio::select! {
            stored = appender.stored(), if appender.is_busy() => Woken::Stored(stored),
            is_open = watch.changed() => Woken::Hint(is_open),
            started = next(starting), if starting.is_some() => Woken::Started(started.map(Box::new)),
            step = step(agent, record), if agent.is_some() && may_step => Woken::Stepped(step),
            _ = ticks.tick() => Woken::Tick,
            () = until(idle), if idle.is_some() => Woken::Idle,
            _ = stop.wait_for(|it| *it), if !self.is_stopping => Woken::Stop,
            () = abort.notified() => Woken::Abort,
        }
    }

    fn is_done(&self) -> bool {
        let is_idle = self.current.is_none() && self.starting.is_none() && self.agent.is_none();
        let is_stored = self.record.is_empty() && !self.appender.is_busy();
        let has_work = !self.queue.is_empty() && !self.is_stopping && !self.is_next_of_another();
        is_idle && is_stored && !has_work
    }

    /// The next prompt is one that another hub works on, which waits for the session.
    fn is_next_of_another(&self) -> bool {
        let next = self.queue.front();
        next.is_some_and(|it| !self.shared.may_work_on(it.prompt.accepted.as_ref()))
    }

    fn failed(&mut self, failed: Failed) -> Remedy {
        self.shared.in_trouble(&failed.error);
        self.appender.failed(failed)
    }

    async fn is_fenced(&mut self) -> bool {
        let ttl = self.shared.config.limits.lease;
        let journal = &self.shared.config.journal;
        let renewed = journal.renew(&self.appender.lease, ttl).await;
        // Any other failure may pass, and decides nothing: only the next owner does.
        matches!(renewed, Err(Error::Fenced { .. } | Error::NoSession { .. }))
    }

    /// The log does not take what the agent tells: neither the agent nor its prompt is of use any more.
    async fn lose(&mut self) {
        self.agent = None;
        let Some(current) = self.current.take() else {
            return;
        };
        let batch = Batch {
            entries: Vec::new(),
            done: vec![current.number],
        };
        let journal = &self.shared.config.journal;
        // If it cannot be taken out of the queue, it is worked on again.
        journal.append(&self.appender.lease, batch).await.ok();
    }

    /// Takes the orders that have come.
    async fn read_commands(&mut self) {
        let journal = &self.shared.config.journal;
        // What cannot be read now is read with the next tick.
        let Ok(commands) = journal.commands(&self.session, self.n_seen).await else {
            return;
        };
        for Command { number, order, .. } in commands {
            self.n_seen = number;
            match order {
                Order::Prompt(body) => self.queued(number, &body),
                Order::Abort(body) => self.told_to_abort(number, &body),
                Order::Settle { ask, answer } => self.told_to_settle(number, ask, &answer),
                // Nobody knows any more what was wanted.
                Order::Damaged => {
                    self.record.done(number);
                    self.shared.reply(&self.session, number, false);
                }
            }
        }
    }

    fn open_asks(&self) -> Vec<u64> {
        let asks = self.record.asks().iter();
        let open = asks.filter(|it| !self.answered.contains(&it.id));
        open.map(|it| it.seq).collect()
    }

    fn show_status(&self) {
        let status = Status {
            current: self.current.as_ref().map(|it| it.number),
            takes_changes: self.agent.as_ref().is_some_and(Agent::takes_changes),
            asks: self.open_asks(),
        };
        self.shared.set_status(&self.session, status);
    }
}

async fn next(starting: &mut Option<Starting>) -> Result<Agent, StartError> {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

async fn step(agent: &mut Option<Agent>, record: &mut Record) -> runner::Step {
    match agent {
        Some(agent) => agent.step(record).await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
