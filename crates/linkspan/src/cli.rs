//! The flags, defined once: `--help`, the completions and the man pages are printed from here.

mod options;
mod sdks;
mod store;

use std::env;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use formats::registry::{FORMATS, Format};

use crate::exit;

pub(crate) use options::OptionArgs;
pub(crate) use sdks::{ClaudeSdkArgs, ExecArgs, ExecCommand, Sandbox};
pub(crate) use store::{
    AskArgs, DataDir, DoctorArgs, FakeAgent, ListenAddress, ReplayArgs, ServeArgs, SessionsArgs,
    StdioArgs, TokenArgs,
};

const EXAMPLE: &str = "\
Examples:
  linkspan serve
  linkspan run 'explain this repository'
  claude -p 'fix the test' --output-format stream-json --verbose |
    linkspan convert --to ag-ui";

const CONVERT_EXAMPLE: &str = "\
Examples:
  linkspan convert --to text run.jsonl
  linkspan convert --from claude --to takopi < run.jsonl > run.takopi.jsonl";

const SHOW_EXAMPLE: &str = "\
Examples:
  linkspan show run.jsonl
  linkspan show --no-pager run.jsonl | head
  linkspan show 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b";

const RUN_EXAMPLE: &str = "\
Examples:
  linkspan run 'fix the failing test'
  linkspan run --engine codex --to ag-ui 'explain this repository'
  git diff | linkspan run 'review this change:' -
  linkspan run --attach 01991a2b-5c6d-7e8f-9a0b-1c2d3e4f5a6b
  linkspan run --engine replay:tools";

const ACP_EXAMPLE: &str = "\
Example, as an editor's command:
  linkspan acp --engine claude";

const FORMATS_EXAMPLE: &str = "\
Example:
  linkspan formats";

const ENGINES_EXAMPLE: &str = "\
Examples:
  linkspan engines
  linkspan engines --json | jq -r 'select(.installed).name'";

const SCHEMA_EXAMPLE: &str = "\
Examples:
  linkspan schema > linkspan.schema.json
  linkspan schema --format thread";

const CONFIG_EXAMPLE: &str = "\
Examples:
  linkspan config
  LINKSPAN_ENGINE=codex linkspan config --config work.toml";

const COMPLETIONS_EXAMPLE: &str = "\
Example:
  linkspan completions bash > ~/.local/share/bash-completion/completions/linkspan";

const MAN_EXAMPLE: &str = "\
Example:
  linkspan man convert | man -l -";

/// The version, and which build of it this is: `build.rs` knows.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("LINKSPAN_BUILD"), ")");

/// Run any coding agent, watch what it does, and convert its events between formats
#[derive(Debug, Parser)]
#[command(
    name = "linkspan",
    version = VERSION,
    before_help = EXAMPLE,
    after_long_help = exit::HELP,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(before_help = store::SERVE_EXAMPLE, after_long_help = exit::SERVE_HELP)]
    Serve(ServeArgs),
    #[command(before_help = RUN_EXAMPLE, after_long_help = exit::RUN_HELP)]
    Run(Box<RunArgs>),
    #[command(before_help = ACP_EXAMPLE, after_long_help = exit::HELP)]
    Acp(AcpArgs),
    #[command(before_help = sdks::EXEC_EXAMPLE, after_long_help = exit::EXEC_HELP)]
    Exec(Box<ExecArgs>),
    #[command(before_help = sdks::CLAUDE_SDK_EXAMPLE, after_long_help = exit::HELP)]
    ClaudeSdk(ClaudeSdkArgs),
    #[command(before_help = store::STDIO_EXAMPLE, after_long_help = exit::STDIO_HELP)]
    Stdio(StdioArgs),
    #[command(before_help = store::SESSIONS_EXAMPLE, after_long_help = exit::SESSIONS_HELP)]
    Sessions(SessionsArgs),
    #[command(before_help = SHOW_EXAMPLE, after_long_help = exit::CONVERT_HELP)]
    Show(ShowArgs),
    #[command(before_help = store::REPLAY_EXAMPLE, after_long_help = exit::CONVERT_HELP)]
    Replay(ReplayArgs),
    #[command(before_help = CONVERT_EXAMPLE, after_long_help = exit::CONVERT_HELP)]
    Convert(ConvertArgs),
    #[command(before_help = ENGINES_EXAMPLE)]
    Engines(EnginesArgs),
    #[command(before_help = FORMATS_EXAMPLE)]
    Formats(FormatsArgs),
    #[command(before_help = SCHEMA_EXAMPLE)]
    Schema(SchemaArgs),
    #[command(before_help = store::TOKEN_EXAMPLE, after_long_help = exit::HELP)]
    Token(TokenArgs),
    #[command(before_help = CONFIG_EXAMPLE)]
    Config(ConfigArgs),
    #[command(before_help = store::DOCTOR_EXAMPLE, after_long_help = exit::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    #[command(before_help = COMPLETIONS_EXAMPLE)]
    Completions(CompletionsArgs),
    #[command(before_help = MAN_EXAMPLE)]
    Man(ManArgs),
}

/// Convert a stream from one format to another
///
/// The output for each input line is written before the next line is read, and memory use does not
/// grow with the input. A stream that breaks off still gets a valid end.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The format of the input; `auto` detects it and reports it on stderr
    #[arg(long, value_name = "FORMAT", default_value = linkspan::AUTO, value_parser = sources())]
    pub(crate) from: String,

    /// The format of the output
    #[arg(long, value_name = "FORMAT", value_parser = targets())]
    pub(crate) to: String,

    /// The file to read; `-` or no file means stdin
    pub(crate) input: Option<PathBuf>,

    /// The file to write; `-` or no file means stdout
    ///
    /// An existing file is overwritten. Lines are written as they are converted.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,

    /// The profile, a variant of the format; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print to stderr what the output format cannot express, by kind and count
    #[arg(long)]
    pub(crate) report: bool,

    /// Print the report as one JSON object
    #[arg(long, requires = "report")]
    pub(crate) json: bool,

    /// Whether output made for people is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Show a recording or a session as a transcript, in a pager on a terminal
///
/// The pager is `PAGER` if it is set, otherwise `less -FRX`. If there is no pager, or stdout is not a
/// terminal, the transcript is printed.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The format of the recording; `auto` detects it
    #[arg(long, value_name = "FORMAT", default_value = linkspan::AUTO, value_parser = sources())]
    pub(crate) from: String,

    /// The file to read, or the id of a session; `-` or no file means stdin
    pub(crate) input: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// Do not use a pager, even on a terminal
    #[arg(long)]
    pub(crate) no_pager: bool,

    /// Whether the transcript is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Run a prompt with an agent, and show what it does
///
/// On a terminal the transcript appears as the agent works, and you answer its questions with a key.
/// In a pipe the events are written in the chosen format as they happen. Ctrl-C stops the agent; a
/// second Ctrl-C kills it and everything it started.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The prompt; `-` among its words, or no prompt at all, reads stdin
    ///
    /// A separate line such as `claude --resume ID` in the prompt names the session to resume.
    pub(crate) prompt: Vec<String>,

    /// The agent: claude, codex, opencode, gemini, openhands, acp:COMMAND, replay:FILE; see `linkspan
    /// engines`
    #[arg(short, long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,

    /// The format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = targets())]
    pub(crate) to: String,

    /// The profile, a variant of the format; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Resume a session, given by the agent's own id or the id from `linkspan sessions`
    #[arg(long, value_name = "ID", group = "session")]
    pub(crate) resume: Option<String>,

    /// Resume the newest session in the directory
    #[arg(long, group = "session")]
    pub(crate) r#continue: bool,

    /// Fork a session: continue in a copy and leave the original unchanged
    #[arg(long, value_name = "ID", group = "session")]
    pub(crate) fork: Option<String>,

    /// Watch a session that another program is running; Ctrl-C leaves it running
    #[arg(long, value_name = "ID", group = "session", conflicts_with = "prompt")]
    pub(crate) attach: Option<String>,

    /// Where the agent works; by default the nearest git root, or else the current directory
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: OptionArgs,

    /// If the session is in use, fail with exit code 5 instead of waiting
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// The agent's program, instead of the one on the PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) data: DataDir,

    /// The speed of a recording: 1, the default, is its original pace; 0 plays it without pauses
    #[arg(long, value_name = "N", value_parser = speed)]
    pub(crate) speed: Option<f64>,

    /// Whether output made for people is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[arg(skip)]
    pub(crate) caller: RunCaller,
}

/// What other commands that start a run set in addition to the flags.
#[derive(Debug, Default)]
pub(crate) struct RunCaller {
    /// The literal prompt.
    pub(crate) prompt: Option<String>,
    /// Arguments for the agent's own command line.
    pub(crate) agent_args: Vec<String>,
    /// Nothing is stored.
    pub(crate) is_unkept: bool,
}

/// Run as an ACP agent over stdio, for editors and other programs
///
/// This works with any engine. Sessions are kept in the journal that `run` and `serve` use, so the
/// client can list them and load them again.
#[derive(Args, Debug)]
pub(crate) struct AcpArgs {
    /// The agent: claude, codex, opencode, gemini, openhands, acp:COMMAND, replay:FILE; see `linkspan
    /// engines`
    #[arg(short, long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,

    #[command(flatten)]
    pub(crate) options: OptionArgs,

    /// A variant of the updates: `seed` matches the OpenHands CLI
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print statistics to stderr on exit
    #[arg(long)]
    pub(crate) stats: bool,

    /// Log in to the agent in this terminal, then exit
    #[arg(long)]
    pub(crate) login: bool,

    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) data: DataDir,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(0.0) => Ok(f64::INFINITY),
        Ok(speed) if speed >= 0.001 => Ok(speed),
        _ => Err("it is 0, or a number from 0.001 on".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether to colour what goes to a terminal, or to something else.
    pub(crate) fn is_wanted(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_terminal && has_color(),
        }
    }
}

/// The colour settings of the user's environment; the same by hand and in CI.
fn has_color() -> bool {
    // By the rules of no-color.org an empty value does not count.
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|it| it == "dumb");
    !is_unwanted && !is_dumb
}

/// List the formats, whether they can be read and written, and their profiles
#[derive(Args, Debug)]
pub(crate) struct FormatsArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the JSON Schema of the events of a format
///
/// Use it to generate types for other languages. It follows JSON Schema draft 2020-12.
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The format: `linkspan` (the canonical events) or `thread`
    #[arg(long, value_name = "FORMAT", default_value = formats::registry::CANONICAL)]
    pub(crate) format: String,
}

/// List the engines: which are installed, their versions, and how to get the others
#[derive(Args, Debug)]
pub(crate) struct EnginesArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) file: ConfigFile,
}

/// Print every setting and where its value came from
///
/// Flags override environment variables, which override the config file, which overrides the
/// defaults. Values of an agent's environment are not printed, because they may be secrets.
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) file: ConfigFile,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigFile {
    /// The config file; by default `LINKSPAN_CONFIG`, or else the user's own
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

/// Print the manual page of the program or of one command
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    pub(crate) command: Option<String>,
}

fn sources() -> PossibleValuesParser {
    let auto = PossibleValue::new(linkspan::AUTO).help("detected from the first lines");
    let mut values = values(|it| it.reader.is_some());
    values.insert(0, auto);
    values.into()
}

fn targets() -> PossibleValuesParser {
    values(|it| it.writer.is_some()).into()
}

fn values(wanted: fn(&Format) -> bool) -> Vec<PossibleValue> {
    let formats = FORMATS.iter().filter(|it| wanted(it));
    formats
        .map(|it| PossibleValue::new(it.name).help(it.summary))
        .collect()
}

#[cfg(test)]
mod tests;
