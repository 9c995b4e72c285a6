//! `linkspan run --attach`: follows a session that is run by another process.
//!
//! It only reads the journal, so the owner of the session is not involved. Detaching does not stop
//! the run. The run of an owner that dies is closed as lost, as whoever finds it does.

use std::time::Duration;

use hub::LogPages;
use journal::{Deltas, Journal, Scope, Session, State, Stored};
use model::{Body, Outcome, SessionId, Sink};

use super::output::RunOutput;
use super::signals::InterruptSignals;
use super::status_line::TICK;
use super::{every, exit_of};
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::store;

/// Between two checks that the owner is alive.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(
    args: &RunArgs,
    id: &str,
    output: RunOutput,
    stops: InterruptSignals,
) -> Result<(), Failure> {
    let folder = store::folder(&args.data)?;
    let (journal, session) = store::open_session(&folder, id).await?;
    if session.state == State::Queued && server::running(&folder).is_empty() {
        exit::print_line(
            "linkspan: its prompts wait for a server; `linkspan serve` starts one, and Ctrl-C leaves\n",
        );
    }
    let mut attached = Attached {
        journal: &*journal,
        session: session.id,
        after: 0,
        outcome: None,
        output,
    };
    attached.follow(stops).await?;
    attached.output.end()?;
    exit_of(attached.outcome)
}

struct Attached<'a> {
    journal: &'a dyn Journal,
    session: SessionId<'static>,
    after: u64,
    /// Of the last run that has ended.
    outcome: Option<Outcome>,
    output: RunOutput,
}

impl Attached<'_> {
    /// Shows everything until nothing runs and nothing waits.
    async fn follow(&mut self, mut stops: InterruptSignals) -> Result<(), Failure> {
        // Before the first read: what is stored in between still wakes the loop.
        let mut watch = self.journal.watch(Scope::Session(self.session.clone()));
        let (mut ticks, mut checks) = (every(TICK), every(CHECK_INTERVAL));
        loop {
            self.read().await?;
            if self.is_over().await? {
                return Ok(());
            }
            loop {
                let is_moving = self.output.view.is_some();
                tokio::select! {
                    is_open = watch.changed() => match is_open {
                        true => break,
                        false => return Ok(()),
                    },
                    () = stops.next() => {
                        self.output.erase()?;
                        return Err(Failure::Silent(Code::Interrupted));
                    }
                    _ = ticks.tick(), if is_moving => self.output.tick()?,
                    // The watch says when something was closed; a failure is tried again.
                    _ = checks.tick() => {
                        hub::close_lost_runs(self.journal).await.ok();
                    }
                }
            }
        }
    }

    /// Shows what is new.
    async fn read(&mut self) -> Result<(), Failure> {
        let head = self.find().await?.map_or(0, |it| it.head);
        let span = self.after..head;
        let mut pages = LogPages::new(self.journal, &self.session, span, Deltas::Keep);
        while let Some(events) = pages.next().await.map_err(store::failed)? {
            for event in events.iter().filter_map(Stored::event) {
                if let Body::RunEnded(ended) = &event.body {
                    self.outcome = Some(ended.outcome);
                }
                self.output.event(&event);
            }
            self.output.flush()?;
        }
        self.after = self.after.max(head);
        Ok(())
    }

    async fn find(&self) -> Result<Option<Session>, Failure> {
        let found = self.journal.find_session(&self.session).await;
        found.map_err(store::failed)
    }

    async fn is_over(&self) -> Result<bool, Failure> {
        let Some(found) = self.find().await? else {
            return Ok(true);
        };
        // Aborts and answers that a dead owner has not read do not count as pending work.
        Ok(found.state == State::Idle && found.head <= self.after)
    }
}
