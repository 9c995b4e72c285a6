//! One session: its events and what they say about runs and asks.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use model::{AskId, BodyKind, Decision, RunId, SessionId, Timestamp};

use crate::clock::Moment;
use crate::command::{
    Command, CommandBody, CommandStatus, KEEP_DONE_MILLIS, MAX_COMMANDS, WaitingAsk,
};
use crate::entry::{Batch, Deltas, Effect, Entry, Page, PageBudget, Read, Stored, StoredFrame};
use crate::error::{Error, Result};
use crate::lease::{Holder, Owner};
use crate::node::Node;
use crate::run::{Overview, Run, RunEnd};
use crate::session::{NewSession, Parent, Session, State};
use crate::write_id::WriteId;

#[derive(Debug)]
pub(super) struct MemoryLog {
    pub(super) id: SessionId<'static>,
    pub(super) home: Node,
    engine: String,
    pub(super) title: Option<String>,
    created_at: Timestamp,
    pub(super) epoch: u64,
    pub(super) held: Option<(Owner, Moment)>,
    events: Vec<Stored>,
    frames: Vec<StoredFrame>,
    pub(super) facts: LogState,
    commands: Vec<Command>,
    n_commands: u64,
    /// Of commands, also of those that are done.
    numbers: HashMap<WriteId, u64>,
    /// When commands were done, and their replies.
    done: HashMap<u64, (Timestamp, Option<Bytes>)>,
    /// The last one that was appended.
    batch: Option<WriteId>,
    parent: Option<Parent>,
}

/// What the events add up to.
#[derive(Clone, Debug)]
pub(super) struct LogState {
    cwd: Option<String>,
    /// In the order they became known; the last one counts.
    pub(super) natives: Vec<SessionId<'static>>,
    pub(super) active_at: Timestamp,
    pub(super) activity: u64,
    /// The agent of the open run has emitted an event.
    is_heard: bool,
    pub(super) runs: Vec<Run>,
    asks: Vec<Ask>,
}

#[derive(Clone, Debug)]
struct Ask {
    seq: u64,
    ask: AskId<'static>,
    run: Option<RunId<'static>>,
    at: Timestamp,
    answered: bool,
    decision: Option<Decision>,
}

impl MemoryLog {
    pub(super) fn new(new: NewSession, now: Timestamp, activity: u64) -> Self {
        Self {
            id: new.id,
            home: new.home,
            engine: new.engine,
            title: new.title,
            created_at: now,
            epoch: 0,
            held: None,
            events: Vec::new(),
            frames: Vec::new(),
            facts: LogState {
                cwd: new.cwd,
                natives: Vec::new(),
                active_at: now,
                activity,
                is_heard: false,
                runs: Vec::new(),
                asks: Vec::new(),
            },
            commands: Vec::new(),
            n_commands: 0,
            numbers: HashMap::new(),
            done: HashMap::new(),
            batch: None,
            parent: new.parent,
        }
    }

    pub(super) fn session(&self) -> Session {
        let is_waiting = |it: &Ask| it.decision.is_none() && !it.answered;
        let state = if self.facts.asks.iter().any(is_waiting) {
            State::Waiting
        } else if self.has_open_run() {
            match self.facts.is_heard {
                true => State::Running,
                false => State::Starting,
            }
        } else if self.n_queued() > 0 {
            State::Queued
        } else {
            State::Idle
        };
        Session {
            id: self.id.clone(),
            home: self.home.clone(),
            engine: self.engine.clone(),
            native: self.facts.natives.last().cloned(),
            cwd: self.facts.cwd.clone(),
            title: self.title.clone(),
            created_at: self.created_at,
            active_at: self.facts.active_at,
            activity: self.facts.activity,
            head: self.head(),
            bytes: self.bytes(),
            state,
            queued: self.n_queued(),
            parent: self.parent.clone(),
        }
    }

    pub(super) fn overview(&self, n_runs: u32) -> Overview {
        Overview {
            session: self.session(),
            runs: self.runs(None, n_runs),
            commands: self.commands.clone(),
            asks: self.waiting(),
        }
    }

    fn has_open_run(&self) -> bool {
        self.facts.runs.iter().any(|it| it.end.is_none())
    }

    fn n_queued(&self) -> u64 {
        self.commands.iter().filter(|it| is_prompt(it)).count() as u64
    }

    /// How many prompts come before the command of this number.
    pub(super) fn position(&self, number: u64) -> u64 {
        let is_before = |it: &&Command| it.number < number && is_prompt(it);
        let n_before = self.commands.iter().filter(is_before).count() as u64;
        n_before + u64::from(self.has_open_run())
    }

    pub(super) fn head(&self) -> u64 {
        self.events.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        let lines: usize = self.events.iter().map(|it| it.line.len()).sum();
        let frames: usize = self.frames.iter().map(|it| it.bytes.len()).sum();
        (lines + frames) as u64
    }

    pub(super) fn holder(&self, now: &Moment) -> Option<Holder> {
        self.held.as_ref().map(|(owner, until)| Holder {
            owner: owner.clone(),
            epoch: self.epoch,
            lapsed: until.is_over(now),
        })
    }

    pub(super) fn is_busy(&self, now: &Moment) -> bool {
        self.has_open_run()
            || !self.commands.is_empty()
            || self.holder(now).is_some_and(|it| !it.lapsed)
    }

    /// `activity` is the last number in the order of the list.
    pub(super) fn append(
        &mut self,
        batch: &Batch,
        now: Timestamp,
        activity: u64,
    ) -> Result<Range<u64>> {
        if let Some(stored) = batch.stored_range(self.batch, self.head()) {
            return Ok(stored);
        }
        // A batch is stored whole or not at all: put back what its first entries changed.
        let (n_events, n_frames) = (self.events.len(), self.frames.len());
        let facts = self.facts.clone();
        let result = self.push_all(batch, now, activity);
        if result.is_err() {
            self.events.truncate(n_events);
            self.frames.truncate(n_frames);
            self.facts = facts;
        }
        result
    }

    fn push_all(&mut self, batch: &Batch, now: Timestamp, activity: u64) -> Result<Range<u64>> {
        let first = self.head() + 1;
        for entry in &batch.entries {
            let next = self.head() + 1;
            if entry.seq != next {
                return Err(Error::OutOfOrder {
                    session: self.id.clone(),
                    next,
                    got: entry.seq,
                });
            }
            if matches!(entry.effect, Effect::RunStarted(_) | Effect::RunEnded(..)) {
                self.facts.activity = self.facts.activity.max(activity) + 1;
            }
            self.push(entry, now)?;
        }
        self.commands.retain(|it| !batch.done.contains(&it.number));
        let reply = |number: &u64| (*number, (now, batch.replies.get(number).cloned()));
        self.done.extend(batch.done.iter().map(reply));
        self.batch = Some(batch.id);
        Ok(first..self.head() + 1)
    }

    fn push(&mut self, entry: &Entry, now: Timestamp) -> Result<()> {
        let at = entry.at.unwrap_or(now);
        self.events.push(Stored {
            seq: entry.seq,
            at,
            kind: entry.kind,
            line: entry.line.bytes(),
            cut: entry.line_cut,
            is_damaged: false,
        });
        if let Some(frame) = &entry.frame {
            self.frames.push(StoredFrame {
                seq: entry.seq,
                bytes: frame.clone(),
                cut: entry.frame_cut,
            });
        }
        self.apply(entry, at, now)
    }

    fn apply(&mut self, entry: &Entry, at: Timestamp, now: Timestamp) -> Result<()> {
        let session = self.id.clone();
        let is_start = matches!(entry.effect, Effect::RunStarted(_));
        self.facts.is_heard |= entry.is_agents && !is_start;
        match entry.effect.clone() {
            Effect::None => (),
            Effect::Bound { native, cwd } => {
                // An agent may return to an id it had before; the last one is what a resume needs.
                self.facts.natives.retain(|it| *it != native);
                self.facts.natives.push(native);
                self.facts.cwd = self.facts.cwd.take().or(cwd);
            }
            Effect::RunStarted(run) => {
                if self.facts.runs.iter().any(|it| it.run == run) {
                    return Err(Error::RunStarted { session, run });
                }
                self.facts.active_at = now;
                // Some agents report the start of a run themselves; otherwise linkspan announced it.
                self.facts.is_heard = entry.is_agents;
                self.facts.runs.push(Run {
                    session,
                    run,
                    first: entry.seq,
                    started_at: at,
                    activity: self.facts.activity,
                    end: None,
                });
            }
            Effect::RunEnded(run, outcome) => {
                let open = |it: &&mut Run| it.run == run && it.end.is_none();
                let Some(found) = self.facts.runs.iter_mut().find(open) else {
                    return Err(Error::RunNotOpen { session, run });
                };
                self.facts.active_at = now;
                found.end = Some(RunEnd {
                    seq: entry.seq,
                    at,
                    outcome,
                });
            }
            Effect::AskOpened(ask, run) => {
                if self.open_ask(&ask).is_some() {
                    return Err(Error::AskOpen { session, ask });
                }
                self.facts.asks.push(Ask {
                    seq: entry.seq,
                    ask,
                    run,
                    at,
                    answered: false,
                    decision: None,
                });
            }
            Effect::AskSettled(ask, decision) => match self.open_ask(&ask) {
                Some(found) => found.decision = Some(decision),
                None => return Err(Error::AskNotOpen { session, ask }),
            },
        }
        Ok(())
    }

    fn open_ask(&mut self, ask: &AskId<'_>) -> Option<&mut Ask> {
        self.facts
            .asks
            .iter_mut()
            .find(|it| it.ask == *ask && it.decision.is_none())
    }

    pub(super) fn read(&self, read: Read) -> Page {
        let head = self.head();
        let mut room = PageBudget::of(read);
        let mut events = Vec::new();
        let wanted = self.events.iter().filter(|it| {
            it.seq > read.after && (read.deltas == Deltas::Keep || it.kind != BodyKind::ItemDelta)
        });
        for event in wanted {
            room.take(event.line.len());
            events.push(event.clone());
            if !room.has_some() {
                let next = event.seq;
                return Page { events, next, head };
            }
        }
        // A cursor beyond the log must not go back.
        let next = head.max(read.after);
        Page { events, next, head }
    }

    pub(super) fn frames(&self, read: Read) -> Vec<StoredFrame> {
        let mut room = PageBudget::of(read);
        let after = self.frames.iter().filter(|it| it.seq > read.after);
        after
            .take_while(|it| {
                let fits = room.has_some();
                if fits {
                    room.take(it.bytes.len());
                }
                fits
            })
            .cloned()
            .collect()
    }

    pub(super) fn runs(&self, before: Option<u64>, limit: u32) -> Vec<Run> {
        let older = |it: &&Run| before.is_none_or(|before| it.first < before);
        let newest_first = self.facts.runs.iter().rev().filter(older);
        newest_first.take(limit as usize).cloned().collect()
    }

    /// The number of the command that has this id, also when it is done.
    pub(super) fn find_number(&self, id: WriteId) -> Option<u64> {
        self.numbers.get(&id).copied()
    }

    pub(super) fn find_command(&self, id: WriteId) -> Option<CommandStatus> {
        let number = self.find_number(id)?;
        let done = self.done.get(&number);
        Some(CommandStatus {
            number,
            is_done: done.is_some(),
            reply: done.and_then(|it| it.1.clone()),
        })
    }

    /// Nobody sends a command again after a day.
    pub(super) fn forget_done(&mut self, now: Timestamp) {
        let oldest = now.plus_millis(-KEEP_DONE_MILLIS);
        let (done, numbers) = (&mut self.done, &mut self.numbers);
        numbers.retain(|_, number| done.get(number).is_none_or(|it| it.0 >= oldest));
        done.retain(|_, it| it.0 >= oldest);
    }

    pub(super) fn command(
        &mut self,
        id: WriteId,
        order: CommandBody,
        now: Timestamp,
    ) -> Result<u64> {
        if let Some(number) = self.find_number(id) {
            return Ok(number);
        }
        let pending = self.commands.len() as u64;
        if pending >= MAX_COMMANDS {
            return Err(Error::TooManyCommands {
                session: self.id.clone(),
                pending,
            });
        }
        self.n_commands += 1;
        self.numbers.insert(id, self.n_commands);
        self.commands.push(Command {
            number: self.n_commands,
            at: now,
            order,
        });
        Ok(self.n_commands)
    }

    pub(super) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    pub(super) fn commands(&self, after: u64) -> Vec<Command> {
        let later = |it: &&Command| it.number > after;
        self.commands.iter().filter(later).cloned().collect()
    }

    pub(super) fn settle(
        &mut self,
        seq: u64,
        id: WriteId,
        answer: Bytes,
        now: Timestamp,
    ) -> Result<u64> {
        if let Some(number) = self.find_number(id) {
            return Ok(number);
        }
        let session = self.id.clone();
        let Some(at) = self.facts.asks.iter().position(|it| it.seq == seq) else {
            return Err(Error::NoAsk { session, seq });
        };
        let ask = &self.facts.asks[at];
        if ask.answered || ask.decision.is_some() {
            return Err(Error::Answered {
                session,
                seq,
                decision: ask.decision,
            });
        }
        let number = self.command(id, CommandBody::Settle { ask: seq, answer }, now)?;
        // Only after the command: where the queue is full, the ask stays open.
        self.facts.asks[at].answered = true;
        Ok(number)
    }

    pub(super) fn waiting(&self) -> Vec<WaitingAsk> {
        let waiting = self.facts.asks.iter().filter(|it| it.decision.is_none());
        waiting
            .map(|it| WaitingAsk {
                session: self.id.clone(),
                seq: it.seq,
                ask: it.ask.clone(),
                run: it.run.clone(),
                at: it.at,
                answered: it.answered,
                line: WaitingAsk::listed(&self.events[(it.seq - 1) as usize].line),
            })
            .collect()
    }
}

fn is_prompt(command: &Command) -> bool {
    matches!(command.order, CommandBody::Prompt(_))
}
