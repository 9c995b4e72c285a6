//! How the program ends: the exit codes, and errors as one line and a hint.
//!
//! The codes are documented in `docs/cli.md`; a test keeps both the same.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use formats::{WriterConfig, display_safe, registry, visible};
use serde::Serialize;

use crate::cli::Cli;
use crate::suggestions;

/// The part of `--help` about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
  0    success, or the reader of the output closed it
  2    bad usage or a bad config
  3    the input could not be read or the output could not be written
  130  interrupted";

/// The part about exit codes in the help of commands that convert: `convert`, `replay` and `show`.
pub(crate) const CONVERT_HELP: &str = "\
Exit codes:
  0    success, even if the converted run failed or the reader of the output closed it
  2    bad usage, a bad config, or an unknown session, format or profile
  3    the input could not be read or the output could not be written
  130  interrupted";

/// The part of `sessions --help` about exit codes.
pub(crate) const SESSIONS_HELP: &str = "\
Exit codes:
  0    success, or the reader of the output closed it
  2    bad usage, or an unknown session
  3    the journal could not be read or written
  5    the session that was to be removed is in use";

/// The part of `run --help` about exit codes.
pub(crate) const RUN_HELP: &str = "\
Exit codes:
  0    the run completed, or the reader of the output closed it
  1    the run failed, or the agent could not be started
  2    bad usage, a bad config, or an unknown engine, format or profile
  3    the input could not be read or the output could not be written
  4    the model refused, or a limit on turns, tokens or cost was reached
  5    the session is in use, and `--no-wait` was given
  130  the run was aborted";

/// The part of `exec --help` about exit codes.
pub(crate) const EXEC_HELP: &str = "\
Exit codes:
  0    the turn completed, or the reader of the output closed it
  1    the turn failed, or the agent could not be started
  2    bad usage, a bad config, or a flag that the engine does not support
  3    the input could not be read or the output could not be written";

/// The part of `serve --help` about exit codes.
pub(crate) const SERVE_HELP: &str = "\
Exit codes:
  0    stopped by a signal, or by the end of stdin with `--until-stdin-closes`
  2    bad usage, a bad config, or an address that needs TLS
  3    the address, the data directory, the token or the certificate cannot be used";

/// The part of `stdio --help` about exit codes.
pub(crate) const STDIO_HELP: &str = "\
Exit codes:
  0    stdin ended, a signal stopped it, or the reader of the output closed it
  2    bad usage, a bad config, or an unknown format or profile
  3    the journal failed after it was opened";

/// The part of `doctor --help` about exit codes.
pub(crate) const DOCTOR_HELP: &str = "\
Exit codes:
  0    no problem was found, or the journal was repaired
  1    there is a problem
  2    bad usage
  3    the journal could not be repaired, or is in use";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Failed,
    Usage,
    Io,
    /// The model refused, or a limit was reached.
    Unfinished,
    Busy,
    Interrupted,
}

impl Code {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Io => 3,
            Self::Unfinished => 4,
            Self::Busy => 5,
            Self::Interrupted => 130,
        }
    }
}

/// Why the program ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to say: one line in lower case, and what to do about it.
    Message {
        code: Code,
        message: String,
        hint: Option<String>,
    },
    /// Help was printed where a command was expected.
    Silent(Code),
    /// The reader of our output has closed it.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::Message {
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Code::Usage, message).hint(Some(hint.into()))
    }

    /// `doing` says what failed, such as ``cannot read `x` ``.
    pub(crate) fn io(doing: &str, err: &io::Error, hint: Option<&str>) -> Self {
        let message = format!("{doing}: {}", model::error_chain(err));
        Self::new(Code::Io, message).hint(hint.map(str::to_owned))
    }

    pub(crate) fn signals(err: io::Error) -> Self {
        Self::io("cannot listen for signals", &err, None)
    }

    /// The same failure with this hint.
    pub(crate) fn hint(self, hint: Option<String>) -> Self {
        match self {
            Self::Message { code, message, .. } => Self::Message {
                code,
                message,
                hint,
            },
            Self::Silent(_) | Self::BrokenPipe => self,
        }
    }

    /// Something could not be written to `name`.
    pub(crate) fn write(name: &str, err: &io::Error) -> Self {
        if err.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        let hint = match err.kind() {
            io::ErrorKind::NotFound => Some("the folder has to exist"),
            io::ErrorKind::PermissionDenied => Some("choose a place you may write to"),
            io::ErrorKind::StorageFull => Some("make room, or write somewhere else"),
            _ => None,
        };
        Self::io(&format!("cannot write `{}`", printable(name)), err, hint)
    }

    /// What went wrong, in one line.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Message { message, .. } => format!("linkspan: {message}"),
            Self::Silent(_) | Self::BrokenPipe => String::new(),
        }
    }

    /// Prints the failure to stderr.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            // `linkspan … | head` is not an error.
            Self::BrokenPipe => ExitCode::SUCCESS,
            Self::Silent(code) => ExitCode::from(code.number()),
            Self::Message {
                code,
                message,
                hint,
            } => {
                let mut text = format!("linkspan: {message}\n");
                if let Some(hint) = hint {
                    text.push_str("\nhint: ");
                    text.push_str(&hint);
                    text.push('\n');
                }
                print_line(&text);
                ExitCode::from(code.number())
            }
        }
    }
}

/// Writes a message with foreign text to stderr. If that is closed, there is nowhere to report it.
pub(crate) fn print_line(text: &str) {
    io::stderr().write_all(display_safe(text).as_bytes()).ok();
}

/// Prints data to stdout.
pub(crate) fn print(data: &[u8]) -> Result<(), Failure> {
    // U+2028 and the like end a line for some readers of JSON lines.
    let mut data = data.to_vec();
    model::escape_line_breaks(&mut data, 0);
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&data)
        .and_then(|()| stdout.flush())
        .map_err(|err| Failure::write("stdout", &err))
}

/// One JSON object per line.
pub(crate) fn json_lines<T: Serialize>(rows: impl IntoIterator<Item = T>) -> String {
    let line = |row| serde_json::to_string(&row).expect("rows are plain data with string keys");
    let lines = rows.into_iter().map(line);
    lines.map(|it| it + "\n").collect()
}

/// A name on one line, with nothing hidden in it that a terminal would obey or not show.
pub(crate) fn printable(name: &str) -> String {
    visible(name).into_owned()
}

/// An error and what caused it, in one line.
pub(crate) fn chain(err: &dyn Error) -> String {
    printable(&model::error_chain(err))
}

/// What the flags could not be parsed for; asking for help or the version is no failure. `command` is the
/// first argument.
pub(crate) fn parse_error(err: &clap::Error, command: Option<&str>) -> Result<(), Failure> {
    match err.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            err.print().map_err(|err| Failure::write("stdout", &err))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            print_line(&err.to_string());
            Err(Failure::Silent(Code::Usage))
        }
        _ => Err(unknown_name(err).unwrap_or_else(|| misused(err, command))),
    }
}

/// A command or a format that is in no table.
fn unknown_name(err: &clap::Error) -> Option<Failure> {
    if let Some(name) = context(err, ContextKind::InvalidSubcommand) {
        let commands = Cli::command();
        let commands = commands.get_subcommands().map(|it| it.get_name());
        return Some(suggestions::command(name, &commands.collect::<Vec<_>>()));
    }
    let value = context(err, ContextKind::InvalidValue).filter(|it| !it.is_empty())?;
    let flag = context(err, ContextKind::InvalidArg)?;
    // clap names a flag with its value, such as `--from <FORMAT>`.
    match flag.split(' ').next()? {
        "--from" => registry::find_reader(value).err().map(suggestions::source),
        "--to" => registry::writer(value, &WriterConfig::default())
            .err()
            .map(suggestions::target),
        _ => None,
    }
}

fn context(err: &clap::Error, kind: ContextKind) -> Option<&str> {
    match err.get(kind) {
        Some(ContextValue::String(it)) => Some(it.as_str()),
        _ => None,
    }
}

/// clap's own words, in our form.
fn misused(err: &clap::Error, command: Option<&str>) -> Failure {
    let text = err.to_string();
    // The first paragraph is the error; clap's tip and usage follow it.
    let message = text.split("\n\n").next().unwrap_or_default();
    // The values that would do are in the hint.
    let message = message.split("\n  [possible values").next();
    let message = message.unwrap_or_default();
    // The first word is clap's own `error:`.
    let words: Vec<&str> = message.split_whitespace().skip(1).collect();
    let line = |prefix| text.lines().find_map(|it| it.trim().strip_prefix(prefix));
    let hint = match (
        err.get(ContextKind::ValidValue),
        line("tip: "),
        line("Usage: "),
    ) {
        (Some(ContextValue::Strings(offer)), ..) if !offer.is_empty() => {
            let value = context(err, ContextKind::InvalidValue);
            suggestions::value(value.unwrap_or_default(), offer)
        }
        (_, Some(tip), _) => tip.to_owned(),
        (_, None, Some(usage)) => format!("usage: {usage}"),
        (_, None, None) => help_of(command),
    };
    Failure::usage(words.join(" "), hint)
}

/// Where a flag is described: in the help of the command that has it.
fn help_of(command: Option<&str>) -> String {
    let known = Cli::command();
    match command.filter(|it| known.find_subcommand(it).is_some()) {
        Some(command) => format!("see `linkspan {command} --help`"),
        None => "see `linkspan --help`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb é"), "a\u{241b}[2Jb é");
        assert_eq!(printable("a\u{202e}b\nc"), "a\\u{202e}b\u{240a}c");
    }

    #[test]
    fn the_manual_and_the_help_list_the_same_codes() {
        let manual = include_str!("../../../docs/cli.md");
        let all = [
            HELP,
            CONVERT_HELP,
            SESSIONS_HELP,
            RUN_HELP,
            EXEC_HELP,
            SERVE_HELP,
            STDIO_HELP,
            DOCTOR_HELP,
        ];
        for line in all.iter().flat_map(|it| it.lines().skip(1)) {
            let (code, meaning) = line.trim().split_once(' ').unwrap();
            let row = format!("| `{code}` | {} |", meaning.trim());
            assert!(manual.contains(&row), "docs/cli.md lacks: {row}");
        }
    }
}
