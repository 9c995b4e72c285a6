//! `linkspan run --attach`: follows a session that is run by another process.
//!
//! It only reads the journal, so the owner of the session is not involved. Detaching does not stop
//! the run.

use journal::{Journal, Read, Scope, State};
use model::{Body, Outcome, SessionId, Sink};

use super::output::RunOutput;
use super::signals::InterruptSignals;
use super::status_line::TICK;
use super::{every, exit_of};
use crate::cli::RunArgs;
use crate::exit::{Code, Failure};
use crate::store;

pub(super) async fn run(
    args: &RunArgs,
    id: &str,
    output: RunOutput,
    stops: InterruptSignals,
) -> Result<(), Failure> {
    let folder = store::folder(&args.data)?;
    if !store::exists(&folder) {
        return Err(store::not_found(id));
    }
    let journal = store::open(&folder, None).await?;
    let session = store::find(&*journal, id).await?;
    let session = session.ok_or_else(|| store::not_found(id))?;
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
        let mut watch = self.journal.watch(Scope::Session(self.session.clone()));
        let mut ticks = every(TICK);
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
                }
            }
        }
    }

    /// Shows what is new.
    async fn read(&mut self) -> Result<(), Failure> {
        loop {
            let page = self
                .journal
                .read(&self.session, Read::page(self.after))
                .await;
            let page = page.map_err(store::failed)?;
            for stored in &page.events {
                if let Some(event) = stored.event() {
                    if let Body::RunEnded(ended) = &event.body {
                        self.outcome = Some(ended.outcome);
                    }
                    self.output.event(&event);
                }
            }
            self.output.flush()?;
            self.after = self.after.max(page.next);
            if page.is_last() {
                return Ok(());
            }
        }
    }

    async fn is_over(&self) -> Result<bool, Failure> {
        let found = self.journal.find_session(&self.session).await;
        let Some(found) = found.map_err(store::failed)? else {
            return Ok(true);
        };
        let waiting = self.journal.commands(&self.session, 0).await;
        let is_waiting = !waiting.map_err(store::failed)?.is_empty();
        Ok(found.state == State::Idle && found.head <= self.after && !is_waiting)
    }
}
