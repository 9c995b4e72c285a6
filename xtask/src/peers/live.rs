//! Lets real clients talk with `linkspan acp`: with a recording, and with the real Claude Code and the
//! real SDK of OpenHands on the scripted model. Each of them has a world of its own: an empty home, an
//! empty project, a model whose script begins anew.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Result, ensure};

use super::{Validator, command, install::Interpreters};
use crate::{
    model::Model,
    process::{capture, root, run},
    report::print_line,
};

/// Clients with cases of their own, which they count, and their self-tests.
pub(super) const CLIENTS: [Validator; 2] = [Validator::AcpLive, Validator::AcpLivePython];

/// What the model says in the lane `allow` of the scenario, around a call that it writes a file with.
const WORDS: &str = "I will write it.\n\nIt is written, as you can see.";

/// The programs that are tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct LivePrograms<'a> {
    pub(super) linkspan: &'a Path,
    pub(super) model: &'a Path,
    /// Where the agents are.
    pub(super) agents: &'a Path,
    /// A Python with the SDK of OpenHands.
    pub(super) python: Option<&'a Path>,
}

/// What is talked with.
#[derive(Clone, Copy, Debug)]
struct Dialogue {
    /// The cases, by their name in the clients.
    plan: &'static str,
    /// Given to `linkspan`; the config of a world says where the engines are.
    args: &'static str,
    /// The agent's word for the tool that the scenario calls.
    shell: &'static str,
}

const REPLAY: Dialogue = Dialogue {
    plan: "replay",
    args: "acp --engine replay:tools",
    shell: SHELL,
};

const CLAUDE: Dialogue = Dialogue {
    plan: "model",
    args: "acp --engine claude",
    shell: SHELL,
};

const OPENHANDS: Dialogue = Dialogue {
    plan: "model",
    args: "acp --engine openhands",
    shell: "terminal",
};

/// As the scenario has it.
const SHELL: &str = "Bash";

impl Dialogue {
    /// In one line, for the clients that want it so.
    fn command(self, programs: LivePrograms<'_>) -> String {
        format!("{} {}", programs.linkspan.display(), self.args)
    }
}

/// Tries them all; the names of those that are not content. What they talk with is the `linkspan` that
/// has `scripted-model` beside it.
pub(super) fn run_all(linkspan: &Path, interpreters: &Interpreters) -> Vec<&'static str> {
    let mut failures = Vec::new();
    let Some(agents) = interpreters.agents() else {
        return failures;
    };
    let programs = LivePrograms {
        linkspan,
        model: &linkspan.with_file_name("scripted-model"),
        agents,
        python: interpreters.of(Validator::OpenHands),
    };
    let mut note = |name: &'static str, result: Result<()>| {
        if let Err(err) = result {
            print_line(&format!("{err:#}"));
            failures.push(name);
        }
    };
    for judge in CLIENTS {
        if let Some(interpreter) = interpreters.of(judge) {
            note(judge.script(), drive(programs, judge, interpreter));
        }
    }
    if let Some(clients) = interpreters.acp_clients() {
        note("acpx", acpx(programs, clients));
    }
    if let Some(python) = programs.python {
        note("OpenHands", openhands(programs, python));
    }
    failures
}

fn drive(programs: LivePrograms<'_>, judge: Validator, interpreter: &Path) -> Result<()> {
    let openhands = programs.python.map(|_| OPENHANDS);
    for talk in [REPLAY, CLAUDE].into_iter().chain(openhands) {
        let Dialogue { plan, args, .. } = talk;
        print_line(&format!("{} talks with `linkspan {args}`", judge.script()));
        let world = TestEnv::new(programs, talk)?;
        let mut client = command(judge, interpreter);
        client.arg(plan).arg(programs.linkspan);
        client.args(args.split(' '));
        run(world.sandbox(&mut client))?;
    }
    Ok(())
}

/// One prompt, whose answer is the only thing printed.
fn acpx(programs: LivePrograms<'_>, clients: &Path) -> Result<()> {
    print_line("acpx talks with `linkspan acp --engine claude`");
    let world = TestEnv::new(programs, CLAUDE)?;
    let mut client = Command::new(super::install::node_of(clients)?);
    client.arg(clients.join("acpx/dist/cli.js"));
    client.arg("--agent").arg(CLAUDE.command(programs));
    client.args(["--approve-all", "--format", "quiet", "exec"]);
    client.arg("please [[lane:allow]]");
    world.judge(&mut client, &format!("{WORDS}\n"))
}

/// Two prompts in one `Conversation`, whose agent is an `ACPAgent`.
fn openhands(programs: LivePrograms<'_>, python: &Path) -> Result<()> {
    print_line("a Conversation of OpenHands talks with `linkspan acp --engine claude`");
    let world = TestEnv::new(programs, CLAUDE)?;
    let mut client = Command::new(python);
    client.arg(root().join("examples/openhands/conversation.py"));
    client.arg("--command").arg(CLAUDE.command(programs));
    client.args(["please [[lane:allow]]", "please [[lane:after]]"]);
    world.judge(&mut client, &format!("{WORDS}\nStill here.\n"))
}

/// Where the engines are, and the models of OpenHands and of the endpoint; Claude Code has its own from the
/// environment.
fn config(programs: LivePrograms<'_>, model: &str) -> String {
    let claude = programs.agents.join("claude");
    let mut config = format!(
        "start_timeout = 0\n\
         [engines.claude]\n\
         program = {claude:?}\n\
         use_api_billing = true\n\
         [engines.claude.env]\n\
         CLAUDE_CODE_MAX_RETRIES = \"1\"\n\
         CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\"\n\
         IS_SANDBOX = \"1\"\n"
    );
    config.push_str(&format!(
        "[engines.responses.scripted]\n\
         base_url = \"{model}/v1\"\n\
         model = \"scripted\"\n\
         stateful = false\n"
    ));
    if let Some(python) = programs.python {
        config.push_str(&format!(
            "[engines.openhands]\n\
             program = {python:?}\n\
             model = \"openai/scripted\"\n\
             [engines.openhands.env]\n\
             LLM_BASE_URL = \"{model}/v1\"\n\
             LLM_API_KEY = \"dummy\"\n"
        ));
    }
    config
}

/// What a client has around it; gone when it is dropped.
#[derive(Debug)]
pub(super) struct TestEnv {
    folder: PathBuf,
    model: Model,
}

impl TestEnv {
    fn new(programs: LivePrograms<'_>, talk: Dialogue) -> Result<Self> {
        let scenario = fs::read_to_string(root().join("peers/acp/scenario.json"))?;
        let [is, becomes] = [SHELL, talk.shell].map(|it| format!("{it:?}"));
        Self::playing(programs, "acp", &scenario.replace(&is, &becomes))
    }

    /// With the scenario of this file.
    pub(super) fn with_scenario(programs: LivePrograms<'_>, file: &str) -> Result<Self> {
        let scenario = fs::read_to_string(root().join(file))?;
        Self::playing(programs, "sdks", &scenario)
    }

    /// `name` is that of the step: two of them may run at once.
    fn playing(programs: LivePrograms<'_>, name: &str, scenario: &str) -> Result<Self> {
        // Not in the tree: an agent looks at the repository it is started in.
        let folder = env::temp_dir().join(format!("linkspan-{name}-{}", process::id()));
        for name in ["home/.config/linkspan", "project", "tmp"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let path = folder.join("scenario.json");
        fs::write(&path, scenario)?;
        let model = Model::start(programs.model, &path)?;
        let config = config(programs, model.address());
        fs::write(folder.join("home/.config/linkspan/config.toml"), config)?;
        Ok(Self { folder, model })
    }

    /// Gives a program this world, and nothing else.
    pub(super) fn sandbox<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.join("home"))
            .env("TMPDIR", self.folder.join("tmp"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ANTHROPIC_BASE_URL", self.model.address())
            .env("ANTHROPIC_API_KEY", "dummy")
            .current_dir(self.folder.join("project"))
    }

    /// A client that is content says this, and the agent has written its file.
    fn judge(&self, client: &mut Command, expected: &str) -> Result<()> {
        let said = capture(self.sandbox(client))?.stdout;
        let said = String::from_utf8_lossy(&said);
        let is_written = self.folder.join("project/allowed").exists();
        let is_content = said == expected && is_written;
        print_line(&format!(
            "{} passed, {} failed",
            u8::from(is_content),
            u8::from(!is_content)
        ));
        ensure!(said == expected, "it printed {said:?}, not {expected:?}");
        ensure!(is_written, "the agent's tool has written nothing");
        Ok(())
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_dir_all(&self.folder) {
            print_line(&format!("cannot remove {}: {err}", self.folder.display()));
        }
    }
}
