//! The flags, defined once: `--help`, the completions and the man pages are printed from here.

use std::env;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use formats::registry::{FORMATS, Format};

use crate::exit;

const EXAMPLE: &str = "\
Example:
  claude -p 'fix the test' --output-format stream-json --verbose |
    linkspan convert --to ag-ui";

const CONVERT_EXAMPLE: &str = "\
Examples:
  linkspan convert --to text run.jsonl
  linkspan convert --from claude --to takopi < run.jsonl > run.takopi.jsonl";

const SHOW_EXAMPLE: &str = "\
Examples:
  linkspan show run.jsonl
  linkspan show --no-pager run.jsonl | head";

const FORMATS_EXAMPLE: &str = "\
Example:
  linkspan formats";

const ENGINES_EXAMPLE: &str = "\
Examples:
  linkspan engines
  linkspan engines --json | jq -r 'select(.installed).name'";

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

/// Reads any coding agent's event stream and writes it as any consumer protocol
#[derive(Debug, Parser)]
#[command(
    name = "linkspan",
    version,
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
    #[command(before_help = CONVERT_EXAMPLE, after_long_help = exit::HELP)]
    Convert(ConvertArgs),
    #[command(before_help = SHOW_EXAMPLE, after_long_help = exit::HELP)]
    Show(ShowArgs),
    #[command(before_help = FORMATS_EXAMPLE)]
    Formats(FormatsArgs),
    #[command(before_help = ENGINES_EXAMPLE)]
    Engines(EnginesArgs),
    #[command(before_help = CONFIG_EXAMPLE)]
    Config(ConfigArgs),
    #[command(before_help = COMPLETIONS_EXAMPLE)]
    Completions(CompletionsArgs),
    #[command(before_help = MAN_EXAMPLE)]
    Man(ManArgs),
}

/// Convert a stream from one format to another
///
/// Everything an input line leads to is written before the next line is awaited, and memory does
/// not grow with the input. A stream that stops in the middle still gets a valid end.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The format of the input; `auto` tells it by the first lines, and says so on stderr
    #[arg(long, value_name = "FORMAT", default_value = linkspan::AUTO, value_parser = sources())]
    pub(crate) from: String,

    /// The format of the output
    #[arg(long, value_name = "FORMAT", value_parser = targets())]
    pub(crate) to: String,

    /// The file to read; `-` or nothing is stdin
    pub(crate) input: Option<PathBuf>,

    /// The file to write; `-` or nothing is stdout
    ///
    /// An existing file is overwritten. Lines arrive in it as they are converted.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,

    /// A shape of the output other than the default; see `linkspan formats`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Say on stderr what the output format had no place for, by kind and count
    #[arg(long)]
    pub(crate) report: bool,

    /// Print the report as one JSON object
    #[arg(long, requires = "report")]
    pub(crate) json: bool,

    /// Whether output made for people is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// Show a recording as a transcript, page by page on a terminal
///
/// The pager is the one that `PAGER` names, else `less -FRX`; without one, and when stdout is no
/// terminal, the transcript is printed.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The format of the recording; `auto` tells it by the first lines
    #[arg(long, value_name = "FORMAT", default_value = linkspan::AUTO, value_parser = sources())]
    pub(crate) from: String,

    /// The file to read; `-` or nothing is stdin
    pub(crate) input: Option<PathBuf>,

    /// Print without a pager, also on a terminal
    #[arg(long)]
    pub(crate) no_pager: bool,

    /// Whether the transcript is coloured
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
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

/// What the user's environment says about colour; the same by hand and in CI.
fn has_color() -> bool {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|it| it == "dumb");
    !is_unwanted && !is_dumb
}

/// List the formats, which way they go, and their profiles
#[derive(Args, Debug)]
pub(crate) struct FormatsArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the engines: what is installed, which version, and how to get the rest
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
/// Later ones win: defaults, the config file, environment variables, flags. Values of an agent's
/// environment are not printed, because they may be secrets.
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
    /// The config file; else the one that `LINKSPAN_CONFIG` names, else the user's own
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

/// Print the manual page, of the program or of one command
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    pub(crate) command: Option<String>,
}

fn sources() -> PossibleValuesParser {
    let auto = PossibleValue::new(linkspan::AUTO).help("told by the first lines");
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
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
