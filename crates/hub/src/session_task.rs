//! The session worker: one loop that owns a session's lease, queue and agent.
//!
//! A worker lives as long as its session has work or an agent is kept warm. It takes its commands
//! from the journal only, so it does not matter which process enqueued them.

mod claim;
mod transitions;

use std::collections::VecDeque;
use std::sync::Arc;

use model::{RunId, SessionId};
use runner::Agent;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{error, warn};

use crate::command::{Prompt, Settings};
use crate::record::{OpenAsk, Record};
use crate::shared::{Shared, WorkerStatus};
use crate::worker::{LogLost, Progress, Request, Worker};

pub(crate) struct SessionTask {
    shared: Arc<Shared>,
    session: SessionId<'static>,
    native: Option<String>,
    worker: Worker,
    queue: VecDeque<QueuedPrompt>,
    current: Option<CurrentPrompt>,
    /// What the agent was started with.
    settings: Option<Settings>,
    /// The agent was asked to exit.
    is_releasing: bool,
    /// It may stay without work, until then.
    warm: Option<(OwnedSemaphorePermit, Instant)>,
    is_stopping: bool,
    /// The run was aborted.
    is_aborting: bool,
    /// Another process waits for the session.
    release_requested: bool,
}

/// A queued prompt.
struct QueuedPrompt {
    number: u64,
    prompt: Prompt,
}

/// The prompt of the current run.
struct CurrentPrompt {
    number: u64,
    prompt: Prompt,
    run: RunId<'static>,
    /// The last event before its run.
    before: u64,
    /// The agent was there before it.
    is_warm: bool,
}

/// Why the worker stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done,
    /// Our lease was fenced.
    Fenced,
    /// The journal rejected the batch: start over.
    Rejected,
}

/// What woke the loop.
enum Wakeup {
    Worker(Progress),
    Idle,
    Stop,
    Abort,
}

/// Works on a session until there is nothing left to do. `abort` stops its run when the journal is
/// unavailable.
pub(crate) async fn run(shared: Arc<Shared>, session: SessionId<'static>, abort: Arc<Notify>) {
    let mut stop = shared.stop.subscribe();
    while let Some(mut session_task) = claim::claim(&shared, &session, &mut stop).await {
        let exit = session_task.serve(&mut stop, &abort).await;
        shared.set_status(&session, WorkerStatus::default());
        let log = session_task.worker.into_log();
        // A lease that was fenced is no longer ours to release.
        if exit != Exit::Fenced {
            log.release_lease().await;
        }
        if exit != Exit::Rejected {
            break;
        }
    }
}

impl SessionTask {
    async fn serve(&mut self, stop: &mut watch::Receiver<bool>, abort: &Notify) -> Exit {
        let mut no_sink = NoSink;
        loop {
            self.start_next();
            self.keep_warm();
            // Before the wait: the hub decides about answers and aborts by this status.
            self.publish_status();
            if self.is_done() {
                return Exit::Done;
            }
            let idle = self.warm.as_ref().map(|it| it.1);
            let wakeup = tokio::select! {
                progress = self.worker.step(&mut no_sink) => Wakeup::Worker(progress),
                () = until(idle), if idle.is_some() => Wakeup::Idle,
                _ = stop.wait_for(|it| *it), if !self.is_stopping => Wakeup::Stop,
                () = abort.notified() => Wakeup::Abort,
            };
            match wakeup {
                Wakeup::Worker(progress) => {
                    if let Some(exit) = self.progressed(progress).await {
                        return exit;
                    }
                }
                Wakeup::Idle => self.release_agent(),
                Wakeup::Stop => self.stop(),
                Wakeup::Abort => {
                    self.abort();
                }
            }
        }
    }

    async fn progressed(&mut self, progress: Progress) -> Option<Exit> {
        match progress {
            Progress::Stored { has_effects } => {
                self.shared.clear_trouble();
                // Followers of the events are notified by the journal.
                if has_effects {
                    self.shared.touch(&self.session);
                }
            }
            Progress::StoreFailed(error) => self.shared.report_trouble(&error),
            Progress::LogLost(LogLost { error, is_refused }) => {
                match &error {
                    // Another process has written, so what kept us from it is over.
                    journal::Error::Fenced { .. } | journal::Error::NoSession { .. } => {
                        self.shared.clear_trouble();
                    }
                    error => self.shared.report_trouble(error),
                }
                let session = self.session.as_str();
                if !is_refused {
                    warn!(session, reason = lost_reason(&error), "lease lost");
                    return Some(Exit::Fenced);
                }
                error!(session, "events refused by the journal");
                // The journal refuses the agent's events, and would refuse them again: drop the prompt.
                if let Some(current) = self.current.take() {
                    self.worker.log_mut().give_up(current.number).await;
                }
                return Some(Exit::Rejected);
            }
            Progress::Requests(requests) => {
                for request in requests {
                    self.requested(request);
                }
            }
            // Only for requests of the newest session, which a hub never makes.
            Progress::Started | Progress::Found => (),
            Progress::NotStarted(err) => self.not_started(&err),
            Progress::Events => self.note_native(),
            Progress::Ended => self.ended(),
            Progress::Gone(agent) | Progress::Busy(agent) => self.on_agent_exit(&agent),
        }
        None
    }

    fn requested(&mut self, request: Request) {
        let (number, is_done) = match request {
            Request::Prompt { number, body } => return self.on_prompt(number, &body),
            Request::Leave { number } => {
                self.release_requested = true;
                (number, true)
            }
            Request::RemovePrompt { number, prompt } => (number, self.remove(prompt)),
            Request::Abort { number, of } => {
                (number, of.is_none_or(|it| self.is_at(it)) && self.abort())
            }
            Request::Damaged { number } => (number, false),
        };
        self.shared.reply(&self.session, number, is_done);
    }

    fn is_done(&self) -> bool {
        let has_agent = self.worker.agent().is_some() || self.worker.is_starting();
        let has_work = !self.queue.is_empty() && !self.is_stopping && !self.is_next_of_another();
        let is_idle = self.current.is_none() && !has_agent;
        // Commands that arrive after this check are handled by the next worker.
        is_idle && self.worker.log().is_stored() && !has_work && !self.worker.log().has_changed()
    }

    /// The next prompt belongs to another hub, which waits for the session.
    fn is_next_of_another(&self) -> bool {
        let next = self.queue.front();
        next.is_some_and(|it| !self.shared.may_work_on(it.prompt.accepted.as_ref()))
    }

    fn record(&mut self) -> &mut Record {
        let record = self.worker.log_mut().record_mut();
        record.expect("the log of a session task is open until the task ends")
    }

    fn publish_status(&self) {
        let asks = self
            .worker
            .log()
            .record()
            .map(Record::asks)
            .unwrap_or_default();
        let open = asks.iter().filter(|it| !self.worker.is_answered(&it.id));
        let status = WorkerStatus {
            current: self.current.as_ref().map(|it| it.number),
            takes_changes: self.worker.agent().is_some_and(Agent::takes_changes),
            asks: open.map(|it: &OpenAsk| it.seq).collect(),
        };
        self.shared.set_status(&self.session, status);
    }
}

/// Why this process no longer owns a session, as named in the log.
fn lost_reason(error: &journal::Error) -> &'static str {
    match error {
        journal::Error::Fenced { .. } => "taken_over",
        journal::Error::NoSession { .. } => "session_removed",
        _ => "journal_closed",
    }
}

/// Followers read the journal, and nothing else.
struct NoSink;

impl model::Sink for NoSink {
    fn event(&mut self, _: &model::Event<'_>) {}
}

pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_lease_has_its_reason() {
        let session = || SessionId::new("s");
        let fenced = journal::Error::Fenced {
            session: session(),
            epoch: 1,
            current: 2,
        };
        let removed = journal::Error::NoSession { session: session() };
        let closed = journal::Error::Storage(journal::Fault::Closed);
        let reasons = [fenced, removed, closed].map(|it| lost_reason(&it));
        assert_eq!(reasons, ["taken_over", "session_removed", "journal_closed"]);
    }
}
