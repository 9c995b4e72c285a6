//! `linkspan run`: one prompt for one agent, shown as it works.
//!
//! On a terminal the transcript with a line that moves under it, and questions that are answered with
//! a key; in a pipe the chosen format, written as it comes. The first Ctrl-C stops the agent in its own
//! way, the second ends it. The exit code is the outcome's.

mod plan;
mod prompt;
mod question;
mod stops;
mod tty;
mod view;

use std::env;
use std::io::{self, IsTerminal, StdoutLock, Write};

use formats::{WriterConfig, registry};
use model::{Body, Event, Outcome, Sink, Writer};
use runner::locks::Held;
use runner::{
    Agent, Answer, Asked, NotSettled, Permissions, Setup, StartError, Step, Verdict, nobody,
    verdict,
};
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::plan::Plan;
use self::question::{Question, Reply};
use self::stops::Stops;
use self::tty::Tty;
use self::view::{TICK, View};
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::unknown;

/// What is held back while somebody is asked; past it the transcript goes on.
const MAX_HELD: usize = 1024 * 1024;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = Output::new(args)?;
    let tty = is_attended().then(Tty::open).flatten();
    let plan = Plan::new(args, tty.is_some())?;
    let stops = Stops::new().map_err(|err| Failure::io("cannot listen for signals", &err, None))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))?;
    runtime.block_on(follow(args, plan, output, tty, stops))
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
    let (permissions, prompt) = (plan.permissions, plan.prompt);
    let agent = started(plan.setup).await?;
    let mut session = Session {
        agent,
        output,
        permissions,
        asking: Asking {
            tty,
            question: None,
            settled: Vec::new(),
        },
        stops,
        n_presses: 0,
    };
    while let Done::Busy(native) = session.run().await? {
        // Nothing was shown yet: begin anew, with the session by its name, which is waited for.
        session.agent.step_to_end().await;
        let is_attended = session.asking.tty.is_some();
        let Some(prompt) = prompt.clone() else {
            break;
        };
        let plan = Plan::for_agent(args, is_attended, prompt, Some(&native))?;
        session.output = Output::new(args)?;
        session.agent = started(plan.setup).await?;
    }
    session.end()
}

async fn started(setup: Setup) -> Result<Agent, Failure> {
    let agent = Agent::start(setup, |held| exit::say(&waiting(held))).await;
    agent.map_err(not_started)
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
    permissions: Permissions,
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
}

impl Session {
    async fn run(&mut self) -> Result<Done, Failure> {
        let mut ticks = ticks();
        loop {
            let Self {
                agent,
                output,
                asking,
                stops,
                ..
            } = self;
            let is_moving = output.view.is_some();
            let woken = tokio::select! {
                biased;
                () = stops.next() => Woken::Pressed,
                step = agent.step(output) => Woken::Stepped(step),
                line = asking.line(), if asking.question.is_some() => Woken::Typed(line),
                _ = ticks.tick(), if is_moving => Woken::Ticked,
            };
            match woken {
                Woken::Pressed => self.pressed()?,
                Woken::Typed(line) => self.typed(line)?,
                Woken::Ticked => self.output.tick()?,
                Woken::Stepped(Step::Busy) => {
                    let native = self.agent.native().unwrap_or_default();
                    return Ok(Done::Busy(native.to_owned()));
                }
                Woken::Stepped(Step::Told) => self.show()?,
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

    /// Shows what was told, and sees to what is asked.
    fn show(&mut self) -> Result<(), Failure> {
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
            // It was withdrawn.
            self.asking.question = None;
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
            exit::say(&self.output.denied());
        }
        let outcome = self.agent.last().map(|it| it.outcome);
        match outcome.unwrap_or(Outcome::Lost) {
            Outcome::Completed => Ok(()),
            Outcome::Failed | Outcome::Lost => Err(Failure::Silent(Code::Failed)),
            Outcome::Refused | Outcome::Limit => Err(Failure::Silent(Code::Unfinished)),
            Outcome::Aborted => Err(Failure::Silent(Code::Interrupted)),
        }
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
                "  cannot edit: {err}; name an editor in `EDITOR`\n{}",
                question.prompt()
            )),
        }
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Where the events go.
struct Output {
    writer: Box<dyn Writer>,
    /// Written, and not yet allowed to be shown.
    bytes: Vec<u8>,
    stdout: StdoutLock<'static>,
    view: Option<View>,
    is_gone: bool,
    /// The tools that were not allowed.
    denied: Vec<String>,
}

impl Output {
    fn new(args: &RunArgs) -> Result<Self, Failure> {
        let is_terminal = io::stdout().is_terminal();
        let color = args.color.is_wanted(is_terminal);
        let config = WriterConfig {
            profile: args.profile.clone(),
            live: is_terminal || args.to != "text",
            began: None,
            color,
        };
        let writer = registry::writer(&args.to, &config).map_err(unknown::target)?;
        let is_dumb = env::var_os("TERM").is_some_and(|it| it == "dumb");
        let is_watched = is_terminal && args.to == "text" && !is_dumb;
        Ok(Self {
            writer,
            bytes: Vec::new(),
            stdout: io::stdout().lock(),
            view: is_watched.then(|| View::new(color)),
            is_gone: false,
            denied: Vec::new(),
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Self { bytes, stdout, .. } = self;
        if self.is_gone {
            bytes.clear();
            return Ok(());
        }
        // Somebody is being asked; what comes meanwhile is shown afterwards.
        let is_paused = self.view.as_ref().is_some_and(View::is_paused);
        if is_paused && bytes.len() < MAX_HELD {
            return Ok(());
        }
        let written = match &mut self.view {
            Some(view) => view.print(bytes, stdout),
            None if bytes.is_empty() => Ok(()),
            None => stdout.write_all(bytes).and_then(|()| stdout.flush()),
        };
        bytes.clear();
        written.map_err(|err| Failure::write("stdout", &err))
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let Some(view) = &mut self.view else {
            return Ok(());
        };
        view.tick(&mut self.stdout)
            .map_err(|err| Failure::write("stdout", &err))
    }

    fn erase(&mut self) -> Result<(), Failure> {
        let Some(view) = &mut self.view else {
            return Ok(());
        };
        view.erase(&mut self.stdout)
            .map_err(|err| Failure::write("stdout", &err))
    }

    fn pause(&mut self, is_paused: bool) {
        if let Some(view) = &mut self.view {
            view.pause(is_paused);
        }
    }

    /// True when the transcript on the screen ends with this question.
    fn ends_with(&self, ask: &str) -> bool {
        self.view.as_ref().is_some_and(|it| it.ends_with(ask))
    }

    /// What to say about the tools that were not allowed.
    fn denied(&self) -> String {
        let flags: Vec<String> = self
            .denied
            .iter()
            .map(|it| format!("--allow {it}"))
            .collect();
        match &*self.denied {
            [] => String::new(),
            denied => formats::display_safe(&format!(
                "linkspan: not allowed: {}\n\nhint: `{}` allows it, `--permissions` says what else may be done\n",
                denied.join(", "),
                flags.join(" ")
            ))
            .into_owned(),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.pause(false);
        self.writer.end(&mut self.bytes);
        self.erase()?;
        self.flush()
    }
}

impl Sink for Output {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(view) = &mut self.view {
            view.event(event);
        }
        if let Body::RunEnded(ended) = &event.body {
            for denial in &ended.denials {
                if !self.denied.iter().any(|it| *it == denial.tool) {
                    self.denied.push(denial.tool.to_string());
                }
            }
        }
        self.writer.event(event, &mut self.bytes);
    }
}
