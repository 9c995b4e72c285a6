//! The small world of one case: an empty home, a project, a model, and nothing else.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use scripted_model::{Request, Scenario, Server, Turn};

use crate::peers::Peer;
use crate::running::Running;
use crate::terminal::Terminal;

/// Every process of a case carries it, so that those that are left are found.
pub(crate) const MARK: &str = "LINKSPAN_AGENTS_CASE";

/// How long something may take that must happen. The agents are slow when many run at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Linux takes at most 128 KiB in one argument.
const MAX_ARGUMENT: usize = 100_000;

/// Behaviours by their names in the table, and how each is tried.
pub(crate) type Tests = &'static [(&'static str, fn(&TestEnv))];

pub(crate) struct TestEnv {
    pub(crate) peer: &'static Peer,
    pub(crate) server: Server,
    pub(crate) mark: String,
    folder: PathBuf,
    /// What was run, for whoever has to find out why a case failed.
    said: RefCell<String>,
}

/// One call of `linkspan run`.
pub(crate) struct Call<'a> {
    prompt: &'a str,
    flags: Vec<&'a str>,
    env: Vec<(&'a str, &'a str)>,
    /// Whether somebody sits at a terminal: then the agent is talked with.
    is_attended: bool,
}

impl<'a> Call<'a> {
    /// Nobody is there, and everything is allowed.
    pub(crate) fn new(prompt: &'a str) -> Self {
        Self::with(prompt, &["--permissions", "allow"])
    }

    pub(crate) fn with(prompt: &'a str, flags: &[&'a str]) -> Self {
        Self {
            prompt,
            flags: flags.to_vec(),
            env: Vec::new(),
            is_attended: false,
        }
    }

    /// Somebody is there to be asked.
    pub(crate) fn attended(prompt: &'a str) -> Self {
        Self::attended_with(prompt, &["--permissions", "ask"])
    }

    pub(crate) fn attended_with(prompt: &'a str, flags: &[&'a str]) -> Self {
        Self {
            is_attended: true,
            ..Self::with(prompt, flags)
        }
    }

    pub(crate) fn is_attended(&self) -> bool {
        self.is_attended
    }

    /// With this variable in the environment, over those of the agent.
    pub(crate) fn env(mut self, name: &'a str, value: &'a str) -> Self {
        self.env.push((name, value));
        self
    }

    pub(crate) fn flags(mut self, flags: &[&'a str]) -> Self {
        self.flags.extend(flags);
        self
    }
}

impl TestEnv {
    pub(crate) fn new(peer: &'static Peer) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", process::id());
        let folder = env::temp_dir().join(format!("linkspan-agents-{mark}"));
        for name in ["home", "project", "tmp"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let test_env = Self {
            peer,
            server: Server::start(Scenario::default()).unwrap(),
            mark,
            folder,
            said: RefCell::default(),
        };
        fs::write(test_env.path("config.toml"), (peer.config)(&test_env)).unwrap();
        (peer.furnish)(&test_env.path("home"));
        test_env
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file of the project.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("project").join(name)
    }

    /// What the model says from now on.
    pub(crate) fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        self.server.set(Scenario::main(turns));
    }

    /// What the model was asked so far, without the titles of sessions.
    pub(crate) fn asked(&self) -> Vec<Request> {
        let mut requests = self.server.requests();
        requests.retain(|it| it.lane.as_deref() == Some(Scenario::MAIN));
        requests
    }

    pub(crate) fn wait_for_requests(&self, n: usize) {
        self.wait_for(&format!("{n} requests"), || self.asked().len() >= n);
    }

    pub(crate) fn wait_for_file(&self, name: &str) {
        self.wait_for(name, || self.file(name).exists());
    }

    fn wait_for(&self, what: &str, is_there: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn start<'a>(&'a self, call: &Call<'a>) -> Running<'a> {
        let terminal = call.is_attended.then(Terminal::open);
        let mut command = self.command(terminal.is_some());
        command.args(["run", "--engine", self.peer.engine, "--to", "linkspan"]);
        command.arg("--config").arg(self.path("config.toml"));
        command.args(&call.flags);
        command.envs(call.env.iter().copied());
        // What fits into no argument goes by stdin, with all else that could be there.
        let stdin = if call.prompt.len() > MAX_ARGUMENT {
            call.prompt
        } else {
            command.arg("--").arg(call.prompt);
            ""
        };
        fs::write(self.path("stdin"), stdin).unwrap();
        command.stdin(File::open(self.path("stdin")).unwrap());
        self.say(&format!("$ {command:?}\n"));
        Running::start(self, command, call.prompt, terminal)
    }

    pub(crate) fn command(&self, is_attended: bool) -> Command {
        let program = env!("CARGO_BIN_EXE_linkspan");
        let mut command = match is_attended {
            // Makes its stdin the terminal that questions are asked on, then becomes the program.
            true => {
                let mut command = Command::new("setsid");
                command.args([
                    "--ctty",
                    "sh",
                    "-c",
                    "exec \"$0\" \"$@\" <../stdin",
                    program,
                ]);
                command
            }
            false => Command::new(program),
        };
        self.house(&mut command);
        command
    }

    /// Gives a program this world, and nothing else.
    pub(crate) fn house(&self, command: &mut Command) {
        command.env_clear();
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home"));
        command.env("TMPDIR", self.path("tmp"));
        command.env("TERM", "xterm-256color");
        command.env(MARK, &self.mark);
        command.envs((self.peer.env)(&self.server.url()));
        command.current_dir(self.path("project"));
    }

    pub(crate) fn say(&self, words: &str) {
        self.said.borrow_mut().push_str(words);
    }

    pub(crate) fn transcript(&self) -> String {
        let requests = self.server.requests();
        let requests = requests.iter().map(|it| {
            let body: String = it.body.chars().take(300).collect();
            format!("{} {} lane={:?} {body}\n", it.method, it.path, it.lane)
        });
        format!("{}{}", self.said.borrow(), requests.collect::<String>())
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The Python that has the SDK of OpenHands, if somebody has named one.
pub(crate) fn python() -> Option<PathBuf> {
    env::var_os("LINKSPAN_PYTHON").map(PathBuf::from)
}

/// Where the programs of the agents are.
pub(crate) fn program(name: &str) -> PathBuf {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/agents/node_modules/.bin");
    let folder = env::var_os("LINKSPAN_AGENTS").map_or(installed, PathBuf::from);
    folder.join(name)
}
