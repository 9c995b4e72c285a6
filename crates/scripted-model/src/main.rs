//! The `scripted-model` program: the server for tests in any language.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use scripted_model::{Playback, Scenario, serve};
use tokio::net::TcpListener;

/// Plays a scripted model on loopback, so that coding agents run offline.
///
/// Example: scripted-model --scenario hello.json --log requests.jsonl
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// The script; see docs/scripted-model.md
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Append every request to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // There is nowhere to report that stderr is closed.
            drop(writeln!(io::stderr(), "scripted-model: {failure}"));
            ExitCode::from(3)
        }
    }
}

fn run(cli: &Cli) -> Result<(), String> {
    let stage = Playback::new(scenario(cli)?);
    if let Some(path) = &cli.log {
        let log = File::options().create(true).append(true).open(path);
        stage
            .log_to(log.map_err(|err| format!("cannot open the log `{}`: {err}", path.display()))?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|err| format!("cannot start: {err}"))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(cli.listen).await;
        let listener = listener.map_err(|err| format!("cannot listen on {}: {err}", cli.listen))?;
        announce(&listener).map_err(|err| format!("cannot print the address: {err}"))?;
        serve(listener, stage)
            .await
            .map_err(|err| format!("cannot serve: {err}"))
    })
}

fn scenario(cli: &Cli) -> Result<Scenario, String> {
    let path = cli.scenario.display();
    let text = fs::read_to_string(&cli.scenario);
    let text = text.map_err(|err| format!("cannot read the scenario `{path}`: {err}"))?;
    Scenario::from_json(&text).map_err(|err| {
        format!("bad scenario `{path}`: {err}\n\nhint: a scenario is {{\"lanes\": {{\"main\": [{{\"blocks\": […]}}]}}}}")
    })
}

fn announce(listener: &TcpListener) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on http://{}", listener.local_addr()?)?;
    stdout.flush()
}
