//! `linkspan run`: one prompt for one agent, shown as it works.
//!
//! On a terminal the transcript with a line that moves under it, and questions that are answered with
//! a key; in a pipe the chosen format, written as it comes. The first Ctrl-C stops the agent in its own
//! way, the second ends it. The exit code is the outcome's.

mod attach;
mod output;
pub(crate) mod plan;
pub(crate) mod prompt;
mod question;
mod recording;
mod signals;
mod start;
mod status_line;
mod tty;

use std::io::{self, IsTerminal};
use std::time::Duration;

use hub::{Announced, Progress, Request, SessionLog, Worker};
use model::Outcome;
use runner::{Agent, Answer, PendingAsk, no_one_to_ask_message};
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::output::RunOutput;
use self::plan::RunPlan;
use self::question::{Question, Reply};
use self::signals::InterruptSignals;
use self::start::{Unplaced, started};
use self::status_line::TICK;
use self::tty::Tty;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::store;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = RunOutput::new(args)?;
    // Not before the prompt is read: until then Ctrl-C ends the program at once.
    let stops = || InterruptSignals::new().map_err(Failure::signals);
    if let Some(id) = &args.attach {
        return store::runtime()?.block_on(attach::run(args, id, output, stops()?));
    }
    // `/dev/tty` can be opened even if all output goes elsewhere and no question would be seen.
    let tty = is_attended().then(Tty::open).flatten();
    let plan = RunPlan::new(args, tty.is_some())?;
    store::runtime()?.block_on(follow(args, plan, output, tty, stops()?))
}

/// Whether a user can answer.
fn is_attended() -> bool {
    io::stderr().is_terminal() || io::stdout().is_terminal()
}

async fn follow(
    args: &RunArgs,
    plan: RunPlan,
    output: RunOutput,
    tty: Option<Tty>,
    stops: InterruptSignals,
) -> Result<(), Failure> {
    let (request, notices) = (plan.request.clone(), plan.notices.clone());
    let list = plan.list.clone();
    let unplaced = Unplaced::of(&plan);
    let (worker, announced) = started(args, plan).await?;
    for line in notices {
        exit::print_line(&format!("linkspan: {line}\n"));
    }
    let mut session = WatchedRun {
        worker,
        output,
        list,
        unplaced,
        asking: OpenQuestion {
            tty,
            question: None,
        },
        stops,
        n_presses: 0,
    };
    session.show_announced(announced.as_ref())?;
    loop {
        let ran = session.run(args).await;
        // Also after an error: the rest has to be stored, and the lease released.
        let log = std::mem::replace(session.worker.log_mut(), SessionLog::off());
        match ran {
            Ok(FollowEnd::Busy(_)) => recording::discard(log).await,
            Ok(FollowEnd::Exited(_)) | Err(_) => recording::finish(log).await,
        }
        let mut agent = match ran? {
            FollowEnd::Busy(agent) => agent,
            FollowEnd::Exited(agent) => return session.end(&agent),
        };
        // Nothing was shown yet: start again with the session's name, and wait for it.
        agent.step_to_end().await;
        let native = agent.native().unwrap_or_default();
        let plan = RunPlan::in_session(args, request.clone(), native)?;
        session.output = RunOutput::new(args)?;
        // The plan names the session now, so `started` opens its log.
        session.unplaced = None;
        let (worker, announced) = started(args, plan).await?;
        session.worker = worker;
        session.show_announced(announced.as_ref())?;
    }
}

/// A run that is being watched.
struct WatchedRun {
    worker: Worker,
    output: RunOutput,
    /// The tools that run without a question.
    list: Vec<String>,
    unplaced: Option<Unplaced>,
    asking: OpenQuestion,
    stops: InterruptSignals,
    n_presses: u32,
}

/// How following an agent ended.
enum FollowEnd {
    Exited(Box<Agent>),
    /// The newest session was asked for, and it is in use.
    Busy(Box<Agent>),
}

struct OpenQuestion {
    tty: Option<Tty>,
    question: Option<Question>,
}

/// What woke the loop.
enum Wakeup {
    Worker(Progress),
    Pressed,
    Typed(Option<String>),
    Ticked,
}

impl WatchedRun {
    async fn run(&mut self, args: &RunArgs) -> Result<FollowEnd, Failure> {
        let mut ticks = every(TICK);
        loop {
            let Self {
                worker,
                output,
                asking,
                stops,
                ..
            } = self;
            let is_moving = output.view.is_some();
            let wakeup = tokio::select! {
                // Ctrl-C first: an agent with endless output must not delay it.
                biased;
                () = stops.next() => Wakeup::Pressed,
                progress = worker.step(output) => Wakeup::Worker(progress),
                line = asking.line(), if asking.question.is_some() => Wakeup::Typed(line),
                _ = ticks.tick(), if is_moving => Wakeup::Ticked,
            };
            match wakeup {
                Wakeup::Pressed => self.on_signal()?,
                Wakeup::Typed(line) => self.on_input(line)?,
                Wakeup::Ticked => self.output.tick()?,
                Wakeup::Worker(Progress::Busy(agent)) => return Ok(FollowEnd::Busy(agent)),
                Wakeup::Worker(Progress::Gone(agent)) => {
                    self.show()?;
                    return Ok(FollowEnd::Exited(agent));
                }
                Wakeup::Worker(Progress::Found) => self.place(args).await?,
                Wakeup::Worker(progress) => self.progressed(progress)?,
            }
        }
    }

    fn progressed(&mut self, progress: Progress) -> Result<(), Failure> {
        match progress {
            Progress::Events => self.show()?,
            Progress::Ended => {
                self.show()?;
                // A run is one prompt: an agent that stays would wait for the next.
                self.worker.close();
            }
            Progress::LogLost(lost) => {
                // Unlike in the server, the run continues: its user is watching it here.
                recording::not_kept(&lost.error);
                self.worker.stop_logging();
            }
            Progress::Requests(requests) => {
                for request in requests {
                    self.requested(&request);
                }
            }
            Progress::Stored { .. }
            | Progress::StoreFailed(_)
            | Progress::Started
            | Progress::NotStarted(_)
            | Progress::Found
            | Progress::Gone(_)
            | Progress::Busy(_) => (),
        }
        Ok(())
    }

    /// Carries out a command of another process.
    fn requested(&mut self, request: &Request) {
        match request {
            Request::Abort { .. } => self.worker.abort(),
            Request::RemovePrompt { prompt, .. } => self.worker.log_mut().done(*prompt),
            // The lease is released at the end of the run; the next owner runs the queued prompts.
            Request::Leave { .. } | Request::Prompt { .. } | Request::Damaged { .. } => (),
        }
    }

    /// The newest session has a name: the run joins the session that the journal has under it, or begins one.
    async fn place(&mut self, args: &RunArgs) -> Result<(), Failure> {
        let Some(agent) = self.worker.agent_mut() else {
            return Ok(());
        };
        let Some(Unplaced { mut kept, prompt }) = self.unplaced.take() else {
            agent.place(None);
            return Ok(());
        };
        kept.native = agent.native().map(str::to_owned);
        let mut log = match recording::open(args, &kept).await {
            Ok(log) => log,
            Err(failure) => {
                agent.step_to_end().await;
                return Err(failure);
            }
        };
        let announced = recording::announce(&mut log, prompt.as_deref()).await;
        agent.place(log.place(announced.as_ref()));
        *self.worker.log_mut() = log;
        self.show_announced(announced.as_ref())
    }

    /// Shows the prompt, which the agent does not repeat.
    fn show_announced(&mut self, announced: Option<&Announced>) -> Result<(), Failure> {
        if let Some(announced) = announced {
            announced.replay(&mut self.output);
        }
        self.flush()
    }

    /// Shows new output, and handles open asks.
    fn show(&mut self) -> Result<(), Failure> {
        self.flush()?;
        self.ask()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match self.output.flush() {
            Err(Failure::BrokenPipe) => {
                // The reader of our output has closed it, so stop the agent.
                self.output.is_gone = true;
                self.worker.abort();
                Ok(())
            }
            flushed => flushed,
        }
    }

    fn on_signal(&mut self) -> Result<(), Failure> {
        self.n_presses += 1;
        self.output.erase()?;
        if self.n_presses == 1 {
            exit::print_line("\nlinkspan: stopping; a second signal kills it\n");
            self.worker.abort();
        } else {
            self.worker.kill();
        }
        Ok(())
    }

    /// Handles the asks that the policy leaves open: on the terminal, else with a denial.
    fn ask(&mut self) -> Result<(), Failure> {
        let open = self.worker.open_asks();
        let is_open = |id: &str| open.iter().any(|it| it.ask.id.as_str() == id);
        let question = self.asking.question.as_ref();
        if question.is_some_and(|it| !is_open(it.id())) {
            // It was withdrawn, or answered elsewhere or by its deadline: the line under the question
            // is still empty.
            self.asking.question = None;
            self.asking.show("\n")?;
            self.resume()?;
        }
        for asked in open {
            if self.asking.tty.is_none() {
                let message = no_one_to_ask_message(&asked);
                self.settle(asked.ask.id.as_str(), &Answer::Deny { message });
            } else if self.asking.question.is_none() {
                return self.put(asked);
            }
        }
        Ok(())
    }

    fn put(&mut self, asked: PendingAsk) -> Result<(), Failure> {
        // The status line would be drawn over the question.
        self.output.erase()?;
        // Before the pause, which forgets what the transcript ends with.
        let is_shown = self.output.ends_with(asked.ask.id.as_str());
        self.output.pause(true);
        let takes_changes = self.worker.agent().is_some_and(Agent::takes_changes);
        let question = Question::new(asked, takes_changes);
        let mut words = question.prompt();
        if !is_shown {
            words.insert_str(0, &question.heading());
        }
        self.asking.question = Some(question);
        if let Some(tty) = &mut self.asking.tty {
            tty.forget();
        }
        self.asking.show(&words)
    }

    /// Continues the transcript, which was held back during the question.
    fn resume(&mut self) -> Result<(), Failure> {
        self.output.pause(false);
        self.flush()
    }

    fn on_input(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(question) = &mut self.asking.question else {
            return Ok(());
        };
        let id = question.id().to_owned();
        let reply = match line {
            Some(line) => question.typed(&line),
            // The terminal was closed: there is no one left to answer.
            None => Reply::Settle(Answer::Deny {
                message: "nobody answered".to_owned(),
            }),
        };
        self.on_reply(&id, reply)
    }

    fn on_reply(&mut self, id: &str, reply: Reply) -> Result<(), Failure> {
        match reply {
            Reply::Show(text) => self.asking.show(&text),
            Reply::Edit(text) => {
                // Ctrl-C in an editor is for the editor.
                self.stops.lend(true);
                let reply = self.asking.edit(&text);
                self.stops.lend(false);
                self.on_reply(id, reply)
            }
            Reply::Settle(answer) => {
                if !self.settle(id, &answer) {
                    let prompt = self.asking.question.as_ref().map(Question::prompt);
                    return self.asking.show(&prompt.unwrap_or_default());
                }
                self.asking.question = None;
                self.resume()?;
                // Other asks may have been opened during this one.
                self.ask()
            }
        }
    }

    /// False when the agent cannot be given this answer: the question stays.
    fn settle(&mut self, id: &str, answer: &Answer) -> bool {
        let settled = self.worker.settle(id, answer);
        if let Err(err) = &settled {
            exit::print_line(&format!("linkspan: {err}\n"));
        }
        settled.is_ok()
    }

    fn end(mut self, agent: &Agent) -> Result<(), Failure> {
        self.output.end()?;
        if self.output.is_gone {
            return Ok(());
        }
        // At a terminal the user has denied them, and knows.
        if self.asking.tty.is_none() {
            let mode = self.worker.permissions().mode;
            exit::print_line(&self.output.denied(&self.list, mode));
        }
        exit_of(agent.last().map(|it| it.outcome))
    }
}

/// The exit code tells how the run ended.
fn exit_of(outcome: Option<Outcome>) -> Result<(), Failure> {
    match outcome.unwrap_or(Outcome::Lost) {
        Outcome::Completed => Ok(()),
        Outcome::Failed | Outcome::Lost => Err(Failure::Silent(Code::Failed)),
        Outcome::Refused | Outcome::Limit => Err(Failure::Silent(Code::Unfinished)),
        Outcome::Aborted => Err(Failure::Silent(Code::Interrupted)),
    }
}

impl OpenQuestion {
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
    // After a slow write the missed ticks would come in a burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
