//! `linkspan run`: one prompt for one agent, shown as it works.
//!
//! On a terminal the transcript with a line that moves under it, and questions that are answered with
//! a key; in a pipe the chosen format, written as it comes. The first Ctrl-C stops the agent in its own
//! way, the second ends it. The exit code is the outcome's.

mod attach;
mod keep;
mod output;
mod plan;
mod prompt;
mod question;
mod tty;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use hub::Wish;
use model::Outcome;
use runner::locks::Held;
use runner::{Agent, Answer, Asked, Permissions, StartError, Step, Verdict, nobody, verdict};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::keep::{BEAT, Keep};
use self::output::{Output, Told};
use self::plan::Plan;
use self::question::{Question, Reply};
use self::tty::Tty;
use self::view::TICK;
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::store;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = Output::new(args)?;
    if let Some(id) = &args.attach {
        return store::runtime()?.block_on(attach::run(args, id, output));
    }
    // Whether there may be somebody to answer.
    let is_attended = io::stderr().is_terminal() || io::stdout().is_terminal();
    let tty = is_attended.then(Tty::open).flatten();
    let plan = Plan::new(args, tty.is_some())?;
    store::runtime()?.block_on(follow(args, plan, output, tty))
}

async fn follow(
    args: &RunArgs,
    mut plan: Plan,
    output: Output,
    tty: Option<Tty>,
) -> Result<(), Failure> {
    let permissions = plan.permissions.clone();
    let keep = Keep::open(args, &plan.kept).await?;
    keep.prepare(&mut plan.setup);
    let started = Agent::start(plan.setup, |held| exit::say(&waiting(held))).await;
    let agent = match started {
        Ok(agent) => agent,
        Err(err) => {
            keep.finish().await;
            return Err(not_started(err));
        }
    };
    let mut session = Session {
        agent,
        output,
        keep,
        permissions,
        asking: Asking {
            tty,
            question: None,
            skipped: Vec::new(),
        },
        n_presses: 0,
    };
    let ran = session.run().await;
    let keep = std::mem::take(&mut session.keep);
    keep.finish().await;
    ran?;
    session.end()
}

fn waiting(held: &Held) -> String {
    format!("linkspan: waiting for {held}\n")
}

fn not_started(err: StartError) -> Failure {
    let (code, hint) = match &err {
        StartError::Busy { .. } => (Code::Busy, Some("leave `--no-wait` out to wait for it")),
        StartError::Spawn(_)
        | StartError::NoReader(_)
        | StartError::Marker(_)
        | StartError::Lock { .. } => (Code::Failed, None),
    };
    Failure::Said {
        code,
        message: exit::chain(&err),
        hint: hint.map(str::to_owned),
    }
}

/// A run that is being watched.
struct Session {
    agent: Agent,
    output: Output,
    keep: Keep,
    permissions: Permissions,
    asking: Asking,
    n_presses: u32,
}

struct Asking {
    tty: Option<Tty>,
    question: Option<Question>,
    /// Asks that were seen to, in case the agent is slow to notice.
    skipped: Vec<String>,
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
    async fn run(&mut self) -> Result<(), Failure> {
        let mut stops =
            Stops::new().map_err(|err| Failure::io("cannot listen for signals", &err, None))?;
        let mut ticks = every(TICK);
        let mut beats = every(BEAT);
        loop {
            let Self {
                agent,
                output,
                keep,
                asking,
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
                Woken::Beat => self.obey().await,
                Woken::Stepped(step) => {
                    self.keep.commit();
                    self.flush()?;
                    self.ask()?;
                    match step {
                        Step::Told => (),
                        Step::Ended => self.agent.close(),
                        Step::Gone => return Ok(()),
                    }
                }
            }
        }
    }

    /// Does what others want, who found the run in the journal.
    async fn obey(&mut self) {
        for wish in self.keep.beat().await {
            match wish {
                Wish::Abort => self.agent.abort(),
                Wish::Settle { ask, answer } => self.settle(&ask, &answer),
            }
        }
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
        self.asking.skipped.retain(|it| is_open(it));
        if self
            .asking
            .question
            .as_ref()
            .is_some_and(|it| !is_open(it.id()))
        {
            // It was withdrawn.
            self.asking.question = None;
            self.output.pause(false);
        }
        for asked in open {
            let id = asked.ask.id.to_string();
            if self.asking.skipped.contains(&id) {
                continue;
            }
            match verdict(&self.permissions, &asked) {
                Verdict::Settle(answer) => self.settle(&id, &answer),
                Verdict::Ask if self.asking.tty.is_none() => {
                    let message = nobody(&asked);
                    exit::say(&denied(&asked));
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
        self.output.pause(true);
        let question = Question::new(asked, self.agent.takes_changes());
        let mut words = question.prompt();
        if self.output.view.is_none() {
            words.insert_str(0, &question.heading());
        }
        self.asking.question = Some(question);
        self.asking.show(&words)
    }

    fn typed(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(question) = &mut self.asking.question else {
            return Ok(());
        };
        let id = question.id().to_owned();
        let reply = match line {
            Some(line) => question.typed(&line),
            None => Reply::Settle(Answer::Deny {
                message: "the terminal is gone".to_owned(),
            }),
        };
        self.replied(&id, reply)
    }

    fn replied(&mut self, id: &str, reply: Reply) -> Result<(), Failure> {
        match reply {
            Reply::Show(text) => self.asking.show(&text),
            Reply::Edit(text) => {
                let reply = self.asking.edit(&text);
                self.replied(id, reply)
            }
            Reply::Settle(answer) => {
                self.asking.question = None;
                self.output.pause(false);
                self.settle(id, &answer);
                Ok(())
            }
        }
    }

    fn settle(&mut self, id: &str, answer: &Answer) {
        self.asking.skipped.push(id.to_owned());
        if let Err(err) = self.agent.settle(id, answer) {
            exit::say(&format!("linkspan: {err}\n"));
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        self.output.end()?;
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

fn denied(asked: &Asked) -> String {
    let ask = &asked.ask;
    let title = ask.title.to_str();
    let words = format!(
        "linkspan: denied {} {title}\n\nhint: `--allow {}` allows it, `--permissions` says what else may be done\n",
        ask.tool, ask.tool
    );
    formats::display_safe(&words).into_owned()
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
                "  cannot edit: {err}; name an editor in `EDITOR`\n{}",
                question.prompt()
            )),
        }
    }
}

/// Everything that means: stop.
struct Stops([Signal; 3]);

impl Stops {
    fn new() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
