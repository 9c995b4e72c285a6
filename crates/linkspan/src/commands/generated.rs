//! `linkspan completions` and `linkspan man`: printed from the same definitions as `--help`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{self, Failure};
use crate::suggestions;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "linkspan", &mut script);
    exit::print(&script)
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut program = Cli::command();
    // Fills in the names and usages of subcommands, which their pages show.
    program.build();
    let page = match &args.command {
        None => program,
        Some(name) => find(&program, name)?,
    };
    let roff = render(page).expect("writing to memory does not fail");
    exit::print(&roff)
}

fn render(page: clap::Command) -> io::Result<Vec<u8>> {
    let examples = page.get_before_help().map(ToString::to_string);
    let codes = page.get_after_long_help().map(ToString::to_string);
    let has_commands = page.has_subcommands();
    let man = Man::new(page).source(concat!("linkspan ", env!("CARGO_PKG_VERSION")));
    let mut roff = Vec::new();
    // Not `Man::render`, which has no sections for the exit codes and the examples.
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if has_commands {
        man.render_subcommands_section(&mut roff)?;
    }
    verbatim("EXIT STATUS", codes.as_deref(), &mut roff)?;
    verbatim("EXAMPLES", examples.as_deref(), &mut roff)?;
    Ok(roff)
}

/// A section of lines as they stand; the first one is the heading that `--help` gives them.
fn verbatim(heading: &str, text: Option<&str>, roff: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = text else { return Ok(()) };
    let lines: Vec<&str> = text.lines().skip(1).collect();
    // roff takes a backslash for an escape, and prints a plain `-` as a hyphen that no shell takes.
    let lines = lines.join("\n").replace('\\', r"\e").replace('-', r"\-");
    writeln!(roff, ".SH {heading}\n.nf\n{lines}\n.fi")
}

/// The command, which `build` has named `linkspan-convert`, as the pages of git are.
fn find(program: &clap::Command, name: &str) -> Result<clap::Command, Failure> {
    let offer = || program.get_subcommands().map(clap::Command::get_name);
    program
        .find_subcommand(name)
        .cloned()
        .ok_or_else(|| suggestions::command(name, &offer().collect::<Vec<_>>()))
}
