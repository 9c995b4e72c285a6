//! `linkspan run`: one prompt for one agent, shown as it works.
//!
//! On a terminal the transcript with a line that moves under it, and questions that are answered with
//! a key; in a pipe the chosen format, written as it comes. The first Ctrl-C stops the agent in its own
//! way, the second ends it. The exit code is the outcome's.

mod attach;
mod keep;
mod output;
pub(crate) mod plan;
mod prompt;
mod question;
mod start;
mod stops;
mod tty;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use hub::{Announced, Wish};
use model::Outcome;
use runner::{Agent, Answer, Asked, NotSettled, Permissions, Step, Verdict, nobody, verdict};
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::keep::{BEAT, Keep};
use self::output::{Output, Told};
use self::plan::Plan;
use self::question::{Question, Reply};
use self::start::{Started, Unplaced, started};
use self::stops::Stops;
use self::tty::Tty;
use self::view::TICK;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::store;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = Output::new(args)?;
    let stops = || Stops::new().map_err(|err| Failure::io("cannot listen for signals", &err, None));
    if let Some(id) = &args.attach {
        return store::runtime()?.block_on(attach::run(args, id, output, stops()?));
    }
    let tty = is_attended().then(Tty::open).flatten();
    let plan = Plan::new(args, tty.is_some())?;
    store::runtime()?.block_on(follow(args, plan, output, tty, stops()?))
}

/// Whether there may be somebody to answer.
fn is_attended() -> bool {
    io::stderr().is_terminal() || io::stdout().is_terminal()
}

async fn follow(
    args: &RunArgs,
    plan: Plan,
    output: Output,
    tty: Option<Tty>,
    stops: Stops,
) -> Result<(), Failure> {
    let (permissions, prompt) = (plan.permissions.clone(), plan.prompt.clone());
    let (config, said) = (plan.config.clone(), plan.said.clone());
    let list = plan.list.clone();
    let ask_limit = plan.ask_limit;
    let unplaced = Unplaced::of(&plan);
    let Started {
        agent,
        keep,
        announced,
    } = started(args, plan).await?;
    for line in said {
        exit::say(&format!("linkspan: {line}\n"));
    }
    let mut session = Session {
        agent,
        output,
        keep,
        permissions,
        list,
        unplaced,
        asking: Asking {
            tty,
            question: None,
            settled: Vec::new(),
        },
        stops,
        n_presses: 0,
    };
    session.show_announced(announced.as_ref())?;
    loop {
        session.agent.set_ask_limit(ask_limit);
        let ran = session.run(args).await;
        let keep = std::mem::take(&mut session.keep);
        match ran {
            Ok(Done::Busy(_)) => keep.discard().await,
            Ok(Done::Gone) | Err(_) => keep.finish().await,
        }
        let (Done::Busy(native), Some(prompt)) = (ran?, &prompt) else {
            return session.end();
        };
        // Nothing was shown yet: begin anew, with the session by its name, which is waited for.
        session.agent.step_to_end().await;
        let is_attended = session.asking.tty.is_some();
        let plan = Plan::for_agent(args, &config, is_attended, prompt.clone(), Some(&native))?;
        session.output = Output::new(args)?;
        session.unplaced = None;
        let started = started(args, plan).await?;
        (session.agent, session.keep) = (started.agent, started.keep);
        session.show_announced(started.announced.as_ref())?;
    }
}

/// A run that is being watched.
struct Session {
    agent: Agent,
    output: Output,
    keep: Keep,
    permissions: Permissions,
    /// The tools that run without a question.
    list: Vec<String>,
    unplaced: Option<Unplaced>,
    asking: Asking,
    stops: Stops,
    n_presses: u32,
}

/// How following an agent ended.
enum Done {
    Gone,
    /// The newest session was asked for, and this one is it, and in use.
    Busy(String),
}

struct Asking {
    tty: Option<Tty>,
    question: Option<Question>,
    /// Asks that were answered, in case the agent is slow to notice.
    settled: Vec<String>,
}

/// What woke the loop.
enum Woken {
    Stepped(Step),
    Pressed,
    Typed(Option<String>),
    Ticked,
    Kept(journal::Result<()>),
    Beat,
}

impl Session {
    async fn run(&mut self, args: &RunArgs) -> Result<Done, Failure> {
        let mut ticks = every(TICK);
        let mut beats = every(BEAT);
        loop {
            let Self {
                agent,
                output,
                keep,
                asking,
                stops,
                ..
            } = self;
            let is_moving = output.view.is_some();
            let has_room = keep.has_room();
            let (record, mut storing) = keep.parts();
            let mut told = Told { output, record };
            let woken = tokio::select! {
                biased;
                () = stops.next() => Woken::Pressed,
                kept = storing.next() => Woken::Kept(kept),
                step = agent.step(&mut told), if has_room => Woken::Stepped(step),
                line = asking.line(), if asking.question.is_some() => Woken::Typed(line),
                _ = ticks.tick(), if is_moving => Woken::Ticked,
                _ = beats.tick() => Woken::Beat,
            };
            match woken {
                Woken::Pressed => self.pressed()?,
                Woken::Typed(line) => self.typed(line)?,
                Woken::Ticked => self.output.tick()?,
                Woken::Kept(kept) => self.keep.stored(kept),
                Woken::Beat => {
                    self.obey().await;
                    self.settle_overdue().await;
                }
                Woken::Stepped(Step::Busy) => {
                    let native = self.agent.native().unwrap_or_default();
                    return Ok(Done::Busy(native.to_owned()));
                }
                Woken::Stepped(Step::Found) => self.place(args).await?,
                Woken::Stepped(Step::Told) => {
                    self.show()?;
                    self.settle_overdue().await;
                }
                Woken::Stepped(Step::Ended) => {
                    self.show()?;
                    self.agent.close();
                }
                Woken::Stepped(Step::Gone) => {
                    self.show()?;
                    return Ok(Done::Gone);
                }
            }
        }
    }

    /// The newest session has a name: the run joins the session that the journal has under it, or begins one.
    async fn place(&mut self, args: &RunArgs) -> Result<(), Failure> {
        let Some(Unplaced { mut kept, prompt }) = self.unplaced.take() else {
            self.agent.place(None);
            return Ok(());
        };
        kept.native = self.agent.native().map(str::to_owned);
        self.keep = match Keep::open(args, &kept).await {
            Ok(keep) => keep,
            Err(failure) => {
                self.agent.step_to_end().await;
                return Err(failure);
            }
        };
        let announced = self.keep.announce(prompt.as_deref()).await;
        self.agent.place(self.keep.place(announced.as_ref()));
        self.show_announced(announced.as_ref())
    }

    /// Shows what the agent will not tell, because the journal has it already.
    fn show_announced(&mut self, announced: Option<&Announced>) -> Result<(), Failure> {
        if let Some(announced) = announced {
            announced.tell(&mut self.output);
        }
        self.flush()
    }

    /// Does what others want, who found the run in the journal.
    async fn obey(&mut self) {
        for wish in self.keep.beat().await {
            match wish {
                Wish::Abort => self.agent.abort(),
                // It is let go of at the end of the run.
                Wish::Leave => (),
                Wish::Settle {
                    ask,
                    answer,
                    is_late: false,
                } => self.settle(&ask, &answer),
                Wish::Settle { ask, answer, .. } => self.settle_late(&ask, &answer),
            }
        }
    }

    /// Answers what nobody has answered in time: through the journal where there is one, so that the
    /// first answer counts, whoever gives it.
    async fn settle_overdue(&mut self) {
        let mut overdue = self.agent.overdue();
        overdue.retain(|it| {
            !self
                .asking
                .settled
                .iter()
                .any(|id| it.0.ask.id.as_str() == id)
        });
        if overdue.is_empty() || self.keep.settle_overdue(&overdue).await {
            return;
        }
        for (asked, answer) in overdue {
            self.settle_late(asked.ask.id.as_str(), &answer);
        }
    }

    fn settle_late(&mut self, id: &str, answer: &Answer) {
        // One that was answered or withdrawn meanwhile needs no answer.
        self.agent.settle_late(id, answer).ok();
        self.asking.settled.push(id.to_owned());
    }

    /// Keeps and shows what was told, and sees to what is asked.
    fn show(&mut self) -> Result<(), Failure> {
        self.keep.commit();
        self.flush()?;
        self.ask()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match self.output.flush() {
            Err(Failure::BrokenPipe) => {
                // Whoever read it has enough; so has the agent.
                self.output.is_gone = true;
                self.agent.abort();
                Ok(())
            }
            flushed => flushed,
        }
    }

    fn pressed(&mut self) -> Result<(), Failure> {
        self.n_presses += 1;
        self.output.erase()?;
        if self.n_presses == 1 {
            exit::say("\nlinkspan: stopping; once more kills it\n");
            self.agent.abort();
        } else {
            self.agent.kill();
        }
        Ok(())
    }

    /// Sees to what the agent asks: by the rules, else on the terminal, else not at all.
    fn ask(&mut self) -> Result<(), Failure> {
        let open: Vec<Asked> = self.agent.asks().to_vec();
        let is_open = |id: &str| open.iter().any(|it| it.ask.id.as_str() == id);
        self.asking.settled.retain(|it| is_open(it));
        if self
            .asking
            .question
            .as_ref()
            .is_some_and(|it| !is_open(it.id()))
        {
            // It was withdrawn, or answered elsewhere or by its deadline: the line under the question
            // is still empty.
            self.asking.question = None;
            self.asking.show("\n")?;
            self.resume()?;
        }
        for asked in open {
            let id = asked.ask.id.to_string();
            if self.asking.settled.contains(&id) {
                continue;
            }
            match verdict(&self.permissions, &asked) {
                Verdict::Settle(answer) => self.settle(&id, &answer),
                Verdict::Ask if self.asking.tty.is_none() => {
                    let message = nobody(&asked);
                    self.settle(&id, &Answer::Deny { message });
                }
                Verdict::Ask => {
                    if self.asking.question.is_none() {
                        return self.put(asked);
                    }
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, asked: Asked) -> Result<(), Failure> {
        self.output.erase()?;
        let is_told = self.output.ends_with(asked.ask.id.as_str());
        self.output.pause(true);
        let question = Question::new(asked, self.agent.takes_changes());
        let mut words = question.prompt();
        if !is_told {
            words.insert_str(0, &question.heading());
        }
        self.asking.question = Some(question);
        if let Some(tty) = &mut self.asking.tty {
            tty.forget();
        }
        self.asking.show(&words)
    }

    /// Goes on with the transcript, which has waited for an answer.
    fn resume(&mut self) -> Result<(), Failure> {
        self.output.pause(false);
        self.flush()
    }

    fn typed(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(question) = &mut self.asking.question else {
            return Ok(());
        };
        let id = question.id().to_owned();
        let reply = match line {
            Some(line) => question.typed(&line),
            None => Reply::Settle(Answer::Deny {
                message: "nobody answered".to_owned(),
            }),
        };
        self.replied(&id, reply)
    }

    fn replied(&mut self, id: &str, reply: Reply) -> Result<(), Failure> {
        match reply {
            Reply::Show(text) => self.asking.show(&text),
            Reply::Edit(text) => {
                // Ctrl-C in an editor is for the editor.
                self.stops.lend(true);
                let reply = self.asking.edit(&text);
                self.stops.lend(false);
                self.replied(id, reply)
            }
            Reply::Settle(answer) => {
                self.settle(id, &answer);
                if !self.asking.settled.iter().any(|it| it == id) {
                    let prompt = self.asking.question.as_ref().map(Question::prompt);
                    return self.asking.show(&prompt.unwrap_or_default());
                }
                self.asking.question = None;
                self.resume()?;
                self.ask()
            }
        }
    }

    fn settle(&mut self, id: &str, answer: &Answer) {
        match self.agent.settle(id, answer) {
            Ok(()) | Err(NotSettled::NotOpen) => self.asking.settled.push(id.to_owned()),
            Err(err @ (NotSettled::BadInput | NotSettled::FixedInput)) => {
                exit::say(&format!("linkspan: {err}\n"));
            }
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        self.output.end()?;
        if self.output.is_gone {
            return Ok(());
        }
        if self.asking.tty.is_none() {
            let mode = self.permissions.mode;
            exit::say(&self.output.denied(&self.list, mode));
        }
        told_by(self.agent.last().map(|it| it.outcome))
    }
}

/// The exit code tells how the run ended.
fn told_by(outcome: Option<Outcome>) -> Result<(), Failure> {
    match outcome.unwrap_or(Outcome::Lost) {
        Outcome::Completed => Ok(()),
        Outcome::Failed | Outcome::Lost => Err(Failure::Silent(Code::Failed)),
        Outcome::Refused | Outcome::Limit => Err(Failure::Silent(Code::Unfinished)),
        Outcome::Aborted => Err(Failure::Silent(Code::Interrupted)),
    }
}

impl Asking {
    async fn line(&mut self) -> Option<String> {
        match &mut self.tty {
            Some(tty) => tty.line().await,
            None => None,
        }
    }

    fn show(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.tty {
            Some(tty) => tty
                .show(text)
                .map_err(|err| Failure::write("the terminal", &err)),
            None => Ok(()),
        }
    }

    fn edit(&mut self, text: &str) -> Reply {
        let (Some(tty), Some(question)) = (&self.tty, &self.question) else {
            return Reply::Show(String::new());
        };
        match tty.edit(text) {
            Ok(text) => question.edited(&text),
            Err(err) => Reply::Show(format!(
                "  cannot edit: {}; name an editor in `EDITOR`\n{}",
                exit::chain(&err),
                question.prompt()
            )),
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
