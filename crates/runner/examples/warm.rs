//! Two prompts in one Claude session, and how soon each was answered: what `cargo xtask bench run`
//! measures of a process that stays.
//!
//! `warm LINKSPAN PROGRAM PROMPT PROMPT` prints, for each prompt, the milliseconds until the agent's
//! first event and until its first text. The first prompt's count from before the process was started.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{Body, Event, Origin, Sink};
use runner::config::Config;
use runner::engines::{self, LaunchContext, Machine, Selected};
use runner::process::{Guard, PATIENCE, find_program};
use runner::{Agent, Interaction, Limits, Permissions, Request, Resume, RunOptions, Setup, Step};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, linkspan, program, first, second] = &args[..] else {
        return Err("usage: warm LINKSPAN PROGRAM PROMPT PROMPT".into());
    };
    let mut clock = Clock::start();
    let mut agent = Agent::start(setup(linkspan, program, first)?, |_| ()).await?;
    while agent.step(&mut clock).await == Step::Progress {}
    let mut answered = vec![clock.json()?];
    clock = Clock::start();
    agent.prompt(&second.as_str().into());
    while agent.step(&mut clock).await == Step::Progress {}
    answered.push(clock.json()?);
    agent.close();
    while agent.step(&mut clock).await != Step::Exited {}
    writeln!(io::stdout(), "{}", json!(answered))?;
    Ok(())
}

fn setup(linkspan: &str, program: &str, prompt: &str) -> Result<Setup, Box<dyn Error>> {
    let Selected::Agent(mut chosen) = engines::select("claude", &Config::load(None, |_| None)?)?
    else {
        return Err("claude is an agent".into());
    };
    chosen.config.program = Some(program.to_owned());
    chosen.config.use_api_billing = engines::Billing::Key;
    let request = Request {
        prompt: prompt.to_owned(),
        resume: Resume::Fresh,
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        cwd: env::current_dir()?,
        permissions: Permissions::default(),
        talk: Interaction::Dialogue,
    };
    let find = |name: &str| find_program(name.as_ref(), env::var_os("PATH").as_deref());
    let around = LaunchContext {
        limits: Limits {
            start: None,
            idle: None,
            patience: PATIENCE,
        },
        guard: Guard::Exe(PathBuf::from(linkspan)),
        locks: None,
        holder: String::new(),
        no_wait: false,
    };
    Ok(chosen.setup(&request, around, find, Machine::own())?)
}

/// When the agent was first heard of.
struct Clock {
    began: Instant,
    event: Option<Duration>,
    text: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            event: None,
            text: None,
        }
    }

    fn json(&self) -> Result<serde_json::Value, &'static str> {
        let millis = |it: Duration| it.as_secs_f64() * 1e3;
        let (Some(event), Some(text)) = (self.event, self.text) else {
            return Err("the agent gave no answer");
        };
        Ok(json!({ "event_ms": millis(event), "text_ms": millis(text) }))
    }
}

impl Sink for Clock {
    fn event(&mut self, event: &Event<'_>) {
        // What the user said is told at once; only the agent's own words show that it is at work.
        if event.origin == Origin::Agent {
            self.event.get_or_insert_with(|| self.began.elapsed());
        }
        if let Body::ItemDelta(_) = &event.body {
            self.text.get_or_insert_with(|| self.began.elapsed());
        }
    }
}
