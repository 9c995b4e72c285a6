//! `linkspan run`: one prompt for one agent, shown as it works.
//!
//! On a terminal the transcript with a line that moves under it, and questions that are answered with
//! a key; in a pipe the chosen format, written as it comes. The first Ctrl-C stops the agent in its own
//! way, the second ends it. The exit code is the outcome's.

mod plan;
mod prompt;
mod question;
mod tty;
mod view;

use std::fs;
use std::io::{self, IsTerminal, StdoutLock, Write};

use formats::{WriterConfig, registry};
use model::{Event, Outcome, Sink, Writer};
use runner::locks::Held;
use runner::{Agent, Answer, Asked, Permissions, StartError, Step, Verdict, nobody, verdict};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::plan::Plan;
use self::question::{Question, Reply};
use self::tty::Tty;
use self::view::{TICK, View};
use crate::cli::RunArgs;
use crate::exit::{self, Code, Failure};
use crate::unknown;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = Output::new(args)?;
    let tty = asked_on(args).then(Tty::open).flatten();
    let plan = Plan::new(args, tty.is_some())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))?;
    runtime.block_on(follow(plan, output, tty))
}

/// Whether there may be somebody to answer.
fn asked_on(_args: &RunArgs) -> bool {
    io::stderr().is_terminal() || io::stdout().is_terminal()
}

async fn follow(plan: Plan, output: Output, tty: Option<Tty>) -> Result<(), Failure> {
    let permissions = plan.permissions.clone();
    let started = Agent::start(plan.setup, |held| exit::say(&waiting(held))).await;
    let agent = started.map_err(not_started)?;
    let mut session = Session {
        agent,
        output,
        permissions,
        asking: Asking {
            tty,
            question: None,
            skipped: Vec::new(),
        },
        n_presses: 0,
    };
    session.run().await?;
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
}

impl Session {
    async fn run(&mut self) -> Result<(), Failure> {
        let mut stops =
            stops().map_err(|err| Failure::io("cannot listen for signals", &err, None))?;
        let mut ticks = ticks();
        loop {
            let Self {
                agent,
                output,
                asking,
                ..
            } = self;
            let is_moving = output.view.is_some();
            let woken = tokio::select! {
                biased;
                Some(()) = stops.recv() => Woken::Pressed,
                step = agent.step(output) => Woken::Stepped(step),
                line = asking.line(), if asking.question.is_some() => Woken::Typed(line),
                _ = ticks.tick(), if is_moving => Woken::Ticked,
            };
            match woken {
                Woken::Pressed => self.pressed()?,
                Woken::Typed(line) => self.typed(line)?,
                Woken::Ticked => self.output.tick()?,
                Woken::Stepped(step) => {
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
        let outcome = self.agent.last().map(|it| it.outcome);
        match outcome.unwrap_or(Outcome::Lost) {
            Outcome::Completed => Ok(()),
            Outcome::Failed | Outcome::Lost => Err(Failure::Silent(Code::Failed)),
            Outcome::Refused | Outcome::Limit => Err(Failure::Silent(Code::Unfinished)),
            Outcome::Aborted => Err(Failure::Silent(Code::Interrupted)),
        }
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

/// Everything that means: stop. The channel is what the loop waits on: it is cheaper than the signals,
/// and the loop turns once for every piece of text.
fn stops() -> io::Result<mpsc::Receiver<()>> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let (tx, rx) = mpsc::channel(1);
    let ignored = ignored();
    for kind in kinds {
        // Whoever started us with a signal ignored, as `nohup` does, wants it that way.
        if ignored >> (kind.as_raw_value() - 1) & 1 == 0 {
            let (mut signal, tx) = (signal(kind)?, tx.clone());
            tokio::spawn(async move {
                while signal.recv().await.is_some() && tx.send(()).await.is_ok() {}
            });
        }
    }
    Ok(rx)
}

/// The signals that are ignored, a bit each, the first for signal 1. None where nobody tells.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok())
        .unwrap_or_default()
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
        let is_watched = is_terminal && args.to == "text";
        Ok(Self {
            writer,
            bytes: Vec::new(),
            stdout: io::stdout().lock(),
            view: is_watched.then(|| View::new(color)),
            is_gone: false,
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Self { bytes, stdout, .. } = self;
        if self.is_gone {
            bytes.clear();
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

    fn end(&mut self) -> Result<(), Failure> {
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
        self.writer.event(event, &mut self.bytes);
    }
}
