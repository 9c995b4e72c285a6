//! The `linkspan` program: flags in, an exit code out. What it says goes to stderr, data to stdout.

mod cli;
mod commands;
mod exit;
mod relative_time;
mod settings;
mod store;
mod streams;
mod suggestions;
mod table;

use std::env;
use std::process::ExitCode;

use clap::Parser;
#[cfg(target_os = "linux")]
use runner::process::GUARD;

use cli::{Cli, Command};

fn main() -> ExitCode {
    // Before clap: the guard takes a command line as it is, with flags that are not ours.
    #[cfg(target_os = "linux")]
    if env::args_os().nth(1).is_some_and(|it| it == GUARD) {
        return runner::guard::main(env::args_os().skip(2));
    }
    // `parse` would exit by itself, with clap's words and codes.
    let result = match Cli::try_parse() {
        Ok(cli) => run(&cli),
        Err(err) => {
            let command = env::args_os().nth(1);
            exit::parse_error(&err, command.as_deref().and_then(|it| it.to_str()))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), exit::Failure> {
    match &cli.command {
        Command::Convert(args) => commands::convert::run(args),
        Command::Show(args) => commands::show::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Acp(args) => commands::acp::run(args),
        Command::Stdio(args) => commands::stdio::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Token(args) => commands::token::run(args),
        Command::Sessions(args) => commands::sessions::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Formats(args) => commands::formats::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Engines(args) => commands::engines::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Config(args) => commands::config::run(args),
        Command::Completions(args) => commands::generated::completions(args),
        Command::Man(args) => commands::generated::man(args),
    }
}
