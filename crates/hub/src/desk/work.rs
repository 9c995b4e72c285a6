//! What a desk does: starts runs, follows the agent, answers it, lets it go.

use std::sync::Arc;
use std::time::Instant;

use journal::Error;
use model::{Outcome, RunEnded, RunId};
use runner::{Agent, Answer, AskLimit, Asked, StartError, Step, Verdict, verdict};

use super::{Current, Desk, Waiting};
use crate::order::{Abort, Prompt, Told, bytes};
use crate::record::failed;
use crate::setup;
use model::error_chain;

impl Desk {
    pub(super) fn queued(&mut self, number: u64, body: &[u8]) {
        match serde_json::from_slice::<Prompt>(body) {
            Ok(prompt) => self.queue.push_back(Waiting { number, prompt }),
            // Nobody could ever work on it.
            Err(_) => self.record.done(number),
        }
    }

    pub(super) fn told_to_abort(&mut self, number: u64, body: &[u8]) {
        let is_done = match serde_json::from_slice(body) {
            Ok(Abort { leave: true, .. }) => {
                self.is_wanted = true;
                true
            }
            Ok(Abort {
                prompt: Some(prompt),
                ..
            }) => self.remove(prompt),
            Ok(Abort { of: Some(of), .. }) if !self.is_at(of) => false,
            Ok(Abort { .. }) => self.abort(),
            Err(_) => false,
        };
        self.record.done(number);
        self.shared.reply(&self.session, number, is_done);
    }

    pub(super) fn told_to_settle(&mut self, number: u64, seq: u64, answer: &[u8]) {
        self.record.done(number);
        let ask = self.record.asks().iter().find(|it| it.seq == seq);
        let told = serde_json::from_slice::<Told>(answer);
        let (Some(ask), Ok(told), Some(agent)) = (ask.cloned(), told, &mut self.agent) else {
            return;
        };
        self.answered.push(ask.id.clone());
        let is_late = told.is_late();
        let answer = Answer::from(told);
        let settled = match is_late {
            true => agent.settle_late(&ask.id, &answer),
            false => agent.settle(&ask.id, &answer),
        };
        if let Err(err) = settled {
            // It counts as answered, so something has to be said, and no is safe.
            let message = format!("the answer could not be given: {err}");
            agent.settle(&ask.id, &Answer::Deny { message }).ok();
        }
    }

    fn remove(&mut self, prompt: u64) -> bool {
        let Some(at) = self.queue.iter().position(|it| it.number == prompt) else {
            return false;
        };
        self.queue.remove(at);
        self.record.done(prompt);
        true
    }

    fn is_at(&self, prompt: u64) -> bool {
        self.current.as_ref().is_some_and(|it| it.number == prompt)
    }

    pub(super) fn abort(&mut self) -> bool {
        if self.starting.take().is_some() {
            self.end_run(RunEnded::new(Outcome::Aborted, None));
            return true;
        }
        match &mut self.agent {
            Some(agent) if self.current.is_some() => {
                agent.abort();
                self.is_aborting = true;
                true
            }
            _ => false,
        }
    }

    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        if self.starting.take().is_some() {
            self.end_run(RunEnded::new(Outcome::Aborted, None));
        }
        match &mut self.agent {
            Some(agent) if self.current.is_some() => agent.abort(),
            _ => self.leave(),
        }
    }

    /// The next prompt, if its turn has come.
    pub(super) fn begin(&mut self) {
        // A run that background work began ends first.
        let has_run = self.current.is_some() || self.record.open_run().is_some();
        if has_run || self.is_stopping || self.is_leaving {
            return;
        }
        let Some(next) = self.queue.front() else {
            return;
        };
        if self.is_next_of_another() {
            return self.make_way();
        }
        if self.agent.is_some() && self.settings.as_ref() != Some(&next.prompt.settings) {
            return self.leave();
        }
        let Some(Waiting { number, prompt }) = self.queue.pop_front() else {
            return;
        };
        let permissions = setup::permissions(&self.shared.config, &prompt.settings);
        self.warm = None;
        // Everybody sees the prompt before its agent is there; with that it has left the queue.
        let before = self.record.seq();
        let run = self.record.announce(&prompt.prompt, prompt.client.as_ref());
        self.record.waits_for_agent(prompt.accepted.clone());
        self.record.done(number);
        self.current = Some(Current {
            number,
            permissions,
            run: run.clone(),
            before,
            is_warm: self.agent.is_some(),
            prompt: prompt.clone(),
        });
        let ask_limit = self.ask_limit();
        match &mut self.agent {
            Some(agent) => {
                agent.set_ask_limit(ask_limit);
                agent.announced(run, self.record.seq());
                agent.prompt(&prompt.prompt.as_str().into());
            }
            None => self.start(&prompt, run, before),
        }
    }

    /// Starts an agent for a run that was announced.
    fn start(&mut self, prompt: &Prompt, run: RunId<'static>, before: u64) {
        let native = self.native.as_deref();
        let session = self.session.as_str();
        let earlier = self.record.earlier();
        match setup::setup(
            &self.shared.config,
            session,
            native,
            prompt,
            earlier,
            before,
        ) {
            Ok(plan) => {
                self.settings = Some(prompt.settings.clone());
                let journal = Arc::clone(&self.shared.config.journal);
                self.starting = Some(Box::pin(async move {
                    let mut setup = plan.ready(&*journal).await?;
                    setup.announced = Some(run);
                    Agent::start(setup, |_| ()).await
                }));
            }
            Err(err) => self.end_run(failed("start_failed", error_chain(&err))),
        }
    }

    pub(super) fn started(&mut self, started: Result<Box<Agent>, StartError>) {
        self.starting = None;
        match started {
            Ok(mut agent) => {
                agent.set_ask_limit(self.ask_limit());
                self.agent = Some(*agent);
            }
            Err(err) => self.end_run(failed("start_failed", error_chain(&err))),
        }
    }

    /// For how long what is asked may wait.
    fn ask_limit(&self) -> Option<AskLimit> {
        let prompt = &self.current.as_ref()?.prompt;
        let settings = &self.shared.config.settings;
        let engine = &prompt.settings.engine;
        settings.ask_limit(engine, prompt.ask_timeout(), prompt.ask_default())
    }

    /// Answers what nobody has answered in time, as anybody else would: the first answer counts.
    pub(super) async fn settle_overdue(&mut self) {
        let overdue = self.agent.as_ref().map(Agent::overdue).unwrap_or_default();
        for (asked, answer) in overdue {
            let id = asked.ask.id.as_str();
            let ask = self.record.asks().iter().find(|it| it.id == id);
            let Some(seq) = ask.map(|it| it.seq) else {
                continue;
            };
            if self.answered.iter().any(|it| it == id) {
                continue;
            }
            let journal = &self.shared.config.journal;
            let answer = bytes(&Told::late(answer));
            match journal.settle(&self.session, seq, answer).await {
                Ok(_) | Err(Error::Answered { .. }) => self.answered.push(id.to_owned()),
                // It is not stored yet, or cannot be now: it is tried again when something happens.
                Err(_) => (),
            }
        }
    }

    /// Ends the run of the prompt, which its agent has not ended.
    fn end_run(&mut self, ended: RunEnded<'_>) {
        if self.current.take().is_some() {
            self.record.end_run(ended);
        }
    }

    /// Whether the run of the prompt that is worked on has its end.
    fn has_ended(&self, current: &Current) -> bool {
        self.record.open_run() != Some(&current.run)
    }

    pub(super) fn stepped(&mut self, step: Step) {
        self.record.commit();
        let Some(agent) = &self.agent else {
            return;
        };
        if let Some(native) = agent.native() {
            self.native = Some(native.to_owned());
        }
        match step {
            Step::Told => self.answer(),
            Step::Ended => {
                if self.current.as_ref().is_some_and(|it| self.has_ended(it)) {
                    self.current = None;
                    self.is_aborting = false;
                }
                if self.is_stopping {
                    self.leave();
                }
            }
            // Nobody asks for the newest session here, so none is in use.
            Step::Gone | Step::Busy | Step::Found => self.gone(),
        }
    }

    fn gone(&mut self) {
        self.agent = None;
        self.is_leaving = false;
        self.warm = None;
        self.answered.clear();
        if self.current.as_ref().is_some_and(|it| self.has_ended(it)) {
            self.current = None;
        }
        let is_aborted = std::mem::take(&mut self.is_aborting);
        // An agent that ended while it had no work, or whose session another program has written
        // meanwhile, ends no run: another one is started.
        if is_aborted || self.is_stopping {
            return self.end_run(RunEnded::new(Outcome::Aborted, None));
        }
        if let Some(current) = self.current.as_mut().filter(|it| it.is_warm) {
            current.is_warm = false;
            let (prompt, run, before) =
                (current.prompt.clone(), current.run.clone(), current.before);
            return self.start(&prompt, run, before);
        }
        let message = "the agent ended before it began to work".to_owned();
        self.end_run(failed("crashed", message));
    }

    /// Answers what needs nobody's attention.
    fn answer(&mut self) {
        let (Some(agent), Some(current)) = (&mut self.agent, &self.current) else {
            return;
        };
        let open: Vec<Asked> = agent.asks().to_vec();
        let is_open = |id: &String| open.iter().any(|it| it.ask.id.as_str() == id);
        self.answered.retain(is_open);
        for asked in open {
            let id = asked.ask.id.as_str();
            if self.answered.iter().any(|it| it == id) {
                continue;
            }
            if let Verdict::Settle(answer) = verdict(&current.permissions, &asked) {
                self.answered.push(id.to_owned());
                // One that was withdrawn meanwhile needs no answer.
                agent.settle(id, &answer).ok();
            }
        }
    }

    /// An agent without work may stay for a while, if there are not too many of them.
    pub(super) fn rest(&mut self) {
        let is_idle = self.agent.is_some() && self.current.is_none() && self.queue.is_empty();
        if !is_idle || self.is_leaving {
            return;
        }
        if self.is_wanted {
            return self.make_way();
        }
        if self.warm.is_some() {
            return;
        }
        match Arc::clone(&self.shared.warm).try_acquire_owned() {
            Ok(permit) => {
                let until = Instant::now() + self.shared.config.limits.warm;
                self.warm = Some((permit, until));
            }
            Err(_) => self.leave(),
        }
    }

    /// Somebody waits for the session, and the agent has nothing to finish.
    fn make_way(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.dismiss();
            self.is_leaving = true;
            self.warm = None;
        }
    }

    pub(super) fn leave(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.close();
            self.is_leaving = true;
            self.warm = None;
        }
    }
}
