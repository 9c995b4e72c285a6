//! `linkspan stdio`: the bridge on stdin and stdout, for the program that started this one.

use std::io::{self, IsTerminal};

use formats::{WriterConfig, registry};
use hub::{HubConfig, Limits, QueueLife};
use runner::locks::Locks;
use runner::process::Guard;
use server::StdioConfig;

use super::serve::{StopSignals, refused};
use crate::cli::StdioArgs;
use crate::exit::{self, Failure};
use crate::{settings, store, suggestions};

pub(crate) fn run(args: &StdioArgs) -> Result<(), Failure> {
    let mut settings = settings::load(&args.file)?.config;
    settings::asks(&mut settings, &args.asks)?;
    let profile = WriterConfig {
        profile: args.profile.clone(),
        ..WriterConfig::default()
    };
    registry::writer(&args.to, &profile).map_err(suggestions::target)?;
    // Started by hand it would wait for JSON without a word.
    if io::stdin().is_terminal() {
        exit::print_line("linkspan: type controls, one JSON object per line; see docs/stdio.md\n");
    }
    store::runtime()?.block_on(async {
        let mut stops = StopSignals::new()?;
        let cut = hub::truncation(&settings);
        let config = StdioConfig {
            hub: HubConfig {
                journal: store::open_or_memory(&args.data, cut).await,
                settings,
                guard: Guard::own(),
                locks: Locks::own(),
                owner: hub::own_name(),
                queue: QueueLife::OfHub,
                limits: Limits::default(),
            },
            format: args.to.clone(),
            profile: args.profile.clone(),
            version: env!("CARGO_PKG_VERSION"),
        };
        let stop = async move { stops.next().await };
        let served = server::serve_stdio(config, io::stdin(), io::stdout(), stop).await;
        served.map_err(|err| refused(&err))
    })
}
