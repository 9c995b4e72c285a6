//! All sessions, and what is asked about them together.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId, Timestamp};

use super::log::MemoryLog;
use crate::clock::Moment;
use crate::command::{CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
use crate::entry::Batch;
use crate::error::{Error, Result};
use crate::lease::{Lease, Owner, Takeover};
use crate::node::Node;
use crate::retention::{Candidate, Removed, Retention};
use crate::run::{OpenRun, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery, searchable};
use crate::write_id::WriteId;

#[derive(Debug, Default)]
pub(super) struct MemoryStore {
    /// In the order they were made.
    logs: Vec<MemoryLog>,
    /// The last epoch of any lease: a session made again under its old name must not honour an old one.
    epoch: u64,
    /// The last number in the order of the list.
    activity: u64,
}

impl MemoryStore {
    pub(super) fn log(&self, id: &SessionId<'_>) -> Result<&MemoryLog> {
        let found = self.logs.iter().find(|it| it.id == *id);
        found.ok_or_else(|| Error::no_session(id))
    }

    pub(super) fn log_mut(&mut self, id: &SessionId<'_>) -> Result<&mut MemoryLog> {
        let found = self.logs.iter_mut().find(|it| it.id == *id);
        found.ok_or_else(|| Error::no_session(id))
    }

    pub(super) fn create(&mut self, new: NewSession, now: Timestamp) -> Result<Session> {
        if self.log(&new.id).is_ok() {
            return Err(Error::SessionExists { session: new.id });
        }
        self.activity += 1;
        let log = MemoryLog::new(new, now, self.activity);
        let session = log.session();
        self.logs.push(log);
        Ok(session)
    }

    pub(super) fn acquire(
        &mut self,
        session: &SessionId<'static>,
        owner: &Owner,
        now: &Moment,
        ttl: Duration,
        takeover: &Takeover,
    ) -> Result<Lease> {
        let epoch = self.epoch + 1;
        let log = self.log_mut(session)?;
        if let Some(holder) = log.holder(now) {
            holder.check_takeover(session, takeover)?;
        }
        log.held = Some((owner.clone(), now.plus(ttl)));
        log.epoch = epoch;
        let head = log.head();
        self.epoch = epoch;
        Ok(Lease {
            session: session.clone(),
            owner: owner.clone(),
            epoch,
            head,
        })
    }

    pub(super) fn renew(&mut self, lease: &Lease, now: &Moment, ttl: Duration) -> Result<()> {
        let log = self.fence(lease)?;
        log.held = Some((lease.owner.clone(), now.plus(ttl)));
        Ok(())
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        let epoch = self.epoch + 1;
        if let Ok(log) = self.fence(lease) {
            // A new epoch also fences an append of this owner that is still on its way.
            log.epoch = epoch;
            log.held = None;
            self.epoch = epoch;
        }
    }

    pub(super) fn append(
        &mut self,
        lease: &Lease,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<Range<u64>> {
        let activity = self.activity;
        let log = self.fence(lease)?;
        let appended = log.append(batch, now, activity)?;
        self.activity = activity.max(log.facts.activity);
        Ok(appended)
    }

    pub(super) fn enqueue(
        &mut self,
        target: &PromptTarget,
        id: WriteId,
        prompt: Bytes,
        now: Timestamp,
    ) -> Result<Enqueued> {
        let is_known = self
            .log(target.session())
            .is_ok_and(|it| it.find_number(id).is_some());
        if !is_known {
            target.create(|new| self.create(new.clone(), now))?;
        }
        let log = self.log_mut(target.session())?;
        let number = log.command(id, CommandBody::Prompt(prompt), now)?;
        let position = log.position(number);
        Ok(Enqueued { number, position })
    }

    pub(super) fn remove(&mut self, lease: &Lease) -> Result<()> {
        self.fence(lease)?;
        self.logs.retain(|it| it.id != lease.session);
        Ok(())
    }

    fn fence(&mut self, lease: &Lease) -> Result<&mut MemoryLog> {
        let log = self.log_mut(&lease.session)?;
        lease.check_epoch(log.epoch)?;
        Ok(log)
    }

    pub(super) fn find_native(&self, native: &SessionId<'_>) -> Option<Session> {
        self.newest_first()
            .into_iter()
            .find(|it| it.facts.natives.contains(native))
            .map(MemoryLog::session)
    }

    pub(super) fn list(
        &self,
        query: &SessionQuery,
        after: Option<&ListCursor>,
        limit: u32,
    ) -> Listing {
        // One more than wanted tells whether there is another page.
        let limit = limit.max(1) as usize;
        let sessions = self
            .newest_first()
            .into_iter()
            .map(MemoryLog::session)
            .filter(|it| after.is_none_or(|after| is_older(it, after)) && matches(it, query))
            .take(limit + 1)
            .collect();
        Listing::page(sessions, limit)
    }

    fn newest_first(&self) -> Vec<&MemoryLog> {
        let mut logs: Vec<_> = self.logs.iter().collect();
        logs.sort_by_key(|it| std::cmp::Reverse(it.facts.activity));
        logs
    }

    pub(super) fn find_run(&self, run: &RunId<'_>) -> Option<Run> {
        self.logs
            .iter()
            .flat_map(|log| log.facts.runs.iter())
            .filter(|it| it.run == *run)
            .max_by_key(|it| it.started_at)
            .cloned()
    }

    /// The sessions of a home, or all.
    fn of_home(&self, home: Option<&Node>) -> impl Iterator<Item = &MemoryLog> {
        let is_there = move |it: &&MemoryLog| home.is_none_or(|home| *home == it.home);
        self.logs.iter().filter(is_there)
    }

    pub(super) fn open_runs(&self, home: Option<&Node>, now: &Moment) -> Vec<OpenRun> {
        let mut open: Vec<_> = self
            .of_home(home)
            .flat_map(|log| {
                let open = log.facts.runs.iter().filter(|it| it.end.is_none());
                open.map(|run| OpenRun {
                    run: run.clone(),
                    holder: log.holder(now),
                })
            })
            .collect();
        open.sort_by_key(|it| it.run.started_at);
        open
    }

    pub(super) fn find_command(&self, id: WriteId) -> Option<CommandStatus> {
        self.logs.iter().find_map(|it| it.find_command(id))
    }

    pub(super) fn pending(&self, home: Option<&Node>) -> Vec<SessionId<'static>> {
        let pending = self.of_home(home).filter(|it| it.has_commands());
        pending.map(|it| it.id.clone()).collect()
    }

    pub(super) fn asks(&self, home: Option<&Node>) -> Vec<WaitingAsk> {
        let mut asks: Vec<_> = self.of_home(home).flat_map(MemoryLog::waiting).collect();
        asks.sort_by_key(|it| it.at);
        asks
    }

    pub(super) fn retain(
        &mut self,
        retention: &Retention,
        now: Timestamp,
        steady: &Moment,
    ) -> Removed {
        for log in &mut self.logs {
            log.forget_done(now);
        }
        let mut logs = self.newest_first();
        logs.reverse();
        let candidates = logs
            .into_iter()
            .map(|log| Candidate {
                key: log.id.clone(),
                active_at: log.facts.active_at.millis(),
                bytes: log.bytes(),
                busy: log.is_busy(steady),
            })
            .collect();
        let victims = retention.victims(candidates, now.millis());
        self.logs
            .retain(|log| victims.iter().all(|it| it.key != log.id));
        Removed {
            sessions: victims.len() as u64,
            bytes: victims.iter().map(|it| it.bytes).sum(),
        }
    }
}

fn is_older(session: &Session, place: &ListCursor) -> bool {
    session.activity < place.activity
}

fn matches(session: &Session, query: &SessionQuery) -> bool {
    let text = searchable([
        Some(session.id.as_str()),
        session.native.as_ref().map(SessionId::as_str),
        session.title.as_deref(),
        session.cwd.as_deref(),
    ]);
    query.home.as_ref().is_none_or(|it| *it == session.home)
        && query.engine.as_ref().is_none_or(|it| *it == session.engine)
        && query.state.is_none_or(|it| it == session.state)
        && query
            .text
            .as_ref()
            .is_none_or(|it| text.contains(&it.to_lowercase()))
}
