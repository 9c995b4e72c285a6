//! `linkspan doctor`: checks everything that linkspan depends on, and reports it in plain words.
//!
//! Looking changes nothing. `--repair` rescues what is whole of a damaged journal, keeps the old one, and
//! closes the runs that dead programs left open.

mod engines;
mod folder;
mod journal;

use std::io::IsTerminal;
use std::{env, io};

use runner::config::{Config, File};
use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::exit::{self, Code, Failure, printable};
use crate::{settings, store};

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let folder = store::folder(&args.data)?;
    if args.repair {
        let findings = journal::repair(&folder)?;
        return print_findings(args, &findings);
    }
    let mut findings = Vec::new();
    let config = config(args, &mut findings);
    folder::check(&folder, &mut findings);
    journal::check(&folder, &mut findings);
    folder::check_tokens(&folder, args.token_file.as_deref(), &mut findings);
    folder::check_locks(&mut findings);
    engines::check(config.as_ref(), &mut findings);
    print_findings(args, &findings)
}

/// Something that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: FindingLevel,
    /// What it is about: `config`, `data`, `journal`, `tokens`, `locks` or an engine.
    about: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FindingLevel {
    Ok,
    /// It works, but may be unintended.
    Warn,
    /// Something does not work, or is lost.
    Problem,
}

impl FindingLevel {
    /// Its name, and the colour of it on a terminal.
    fn style(self) -> (&'static str, &'static str) {
        match self {
            Self::Ok => ("ok", "\x1b[32m"),
            Self::Warn => ("warn", "\x1b[33m"),
            Self::Problem => ("problem", "\x1b[31m"),
        }
    }
}

impl Finding {
    fn new(level: FindingLevel, about: &str, text: impl Into<String>) -> Self {
        Self {
            level,
            about: about.to_owned(),
            text: text.into(),
            hint: None,
        }
    }

    fn ok(about: &str, text: impl Into<String>) -> Self {
        Self::new(FindingLevel::Ok, about, text)
    }

    fn warn(about: &str, text: impl Into<String>) -> Self {
        Self::new(FindingLevel::Warn, about, text)
    }

    fn problem(about: &str, text: impl Into<String>) -> Self {
        Self::new(FindingLevel::Problem, about, text)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn print_findings(args: &DoctorArgs, findings: &[Finding]) -> Result<(), Failure> {
    let text = match args.json {
        true => exit::json_lines(findings),
        false => page(findings, io::stdout().is_terminal()),
    };
    exit::print(text.as_bytes())?;
    match findings.iter().any(|it| it.level == FindingLevel::Problem) {
        // The findings have said it all; only the exit code is missing.
        true => Err(Failure::Silent(Code::Failed)),
        false => Ok(()),
    }
}

fn page(findings: &[Finding], is_terminal: bool) -> String {
    let has_color = crate::cli::Color::Auto.is_wanted(is_terminal);
    let width = findings.iter().map(|it| it.about.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (level, color) = finding.level.style();
        let level = match has_color {
            true => format!("{color}{level:7}\x1b[0m"),
            false => format!("{level:7}"),
        };
        let (about, what) = (printable(&finding.about), printable(&finding.text));
        let hint = finding.hint.as_ref();
        let hint = hint.map_or(String::new(), |it| format!("; {}", printable(it)));
        text.push_str(&format!("{level}  {about:width$}  {what}{hint}\n"));
    }
    text
}

/// The config, if it can be used.
fn config(args: &DoctorArgs, findings: &mut Vec<Finding>) -> Option<Config> {
    let about = "config";
    let named = File::find(args.file.path.as_deref(), |name| env::var(name).ok());
    let place = named.map_or("no file".to_owned(), |it| it.path.display().to_string());
    match settings::load(&args.file) {
        Ok(settings) => {
            let finding = match settings.file.filter(|it| it.path.exists()) {
                None => Finding::ok(about, format!("`{place}` is not there: all defaults")),
                Some(file) => match folder::others(&file.path) {
                    folder::OthersAccess::Write => {
                        Finding::problem(about, format!("others can write `{place}`"))
                            .hint("`chmod 600` it: it decides which programs are started")
                    }
                    folder::OthersAccess::Read if has_secrets(&settings.config) => Finding::warn(
                        about,
                        format!("others can read `{place}`, and it holds keys"),
                    )
                    .hint("`chmod 600` it"),
                    folder::OthersAccess::Read | folder::OthersAccess::Nothing => {
                        Finding::ok(about, format!("`{place}` is valid"))
                    }
                },
            };
            findings.push(finding);
            Some(settings.config)
        }
        Err(failure) => {
            let (message, hint) = match failure {
                Failure::Message { message, hint, .. } => (message, hint),
                Failure::Silent(_) | Failure::BrokenPipe => (format!("`{place}`"), None),
            };
            findings.push(Finding {
                hint,
                ..Finding::problem(about, message)
            });
            None
        }
    }
}

fn has_secrets(config: &Config) -> bool {
    use runner::config::Value;
    let mut settings = config.settings().iter();
    settings.any(|it| match &it.value {
        Value::Secret(_) => true,
        // Tables are the environments of agents, which often hold keys.
        Value::Table(table) => !table.is_empty(),
        Value::Unset
        | Value::Text(_)
        | Value::Switch(_)
        | Value::List(_)
        | Value::Seconds(_)
        | Value::Number(_)
        | Value::Count(_) => false,
    })
}
