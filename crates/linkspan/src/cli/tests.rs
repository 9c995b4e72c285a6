//! The flags, and every command line that the manual shows.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use runner::config::Config;
use runner::engines::{self, Error};

use super::*;
use crate::commands::acp;

#[test]
fn the_flags_do_not_contradict_each_other() {
    Cli::command().debug_assert();
}

/// The manual, and what leads to it.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|it| it.unwrap().path());
    let pages = docs.filter(|it| it.extension().is_some_and(|it| it == "md"));
    pages.chain([root.join("README.md")]).collect()
}

/// What is typed in the console blocks of a page, one command line each.
fn typed(page: &str) -> Vec<String> {
    let mut typed: Vec<String> = Vec::new();
    let (mut is_console, mut is_open) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            typed.push(command.to_owned());
        } else if let Some(last) = typed.last_mut().filter(|_| is_open) {
            *last = format!("{} {line}", last.trim_end_matches('\\'));
        }
        is_open = is_console && line.ends_with(['|', '\\']);
    }
    typed
}

/// The commands of a line that are ours, as words; where their output goes is the shell's business.
fn ours(line: &str) -> Vec<Vec<String>> {
    // What others are typed like is their own business.
    if !line.contains("linkspan") {
        return Vec::new();
    }
    let words = shell_words::split(line).unwrap();
    let commands = words.split(|it| it == "|").map(|words| {
        let words = words.iter().take_while(|it| !it.starts_with(['<', '>']));
        words.cloned().collect::<Vec<_>>()
    });
    let is_ours = |it: &Vec<String>| it.first().is_some_and(|it| it == "linkspan");
    commands.filter(is_ours).collect()
}

/// The engine and the options of a command that starts an agent.
fn options(command: &Command) -> Option<(&str, &OptionArgs)> {
    match command {
        Command::Run(args) => Some((args.engine.as_deref()?, &args.options)),
        Command::Acp(args) => Some((args.engine.as_deref()?, &args.options)),
        _ => None,
    }
}

#[test]
fn what_the_manual_types_is_understood() {
    let config = Config::parse(None, |_| None).unwrap();
    let mut n_checked = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for words in typed(&text).iter().flat_map(|it| ours(it)) {
            let shown = format!("{}: {}", page.display(), words.join(" "));
            let cli = Cli::try_parse_from(&words).unwrap_or_else(|err| panic!("{shown}\n{err}"));
            n_checked += 1;
            let Some((engine, options)) = options(&cli.command) else {
                continue;
            };
            let checked = engines::select(engine, &config)
                .and_then(|it| acp::check(&it, engine, &options.run_options(), &config));
            // Endpoints are those of the reader's own config.
            if !matches!(checked, Ok(()) | Err(Error::NoEndpoint(_))) {
                panic!("{shown}\n{checked:?}");
            }
        }
    }
    assert!(n_checked > 30, "{n_checked}");
}
