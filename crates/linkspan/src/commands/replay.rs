//! `linkspan replay`: a session of the journal in any format, or a recording as an agent.

mod fake_agent;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use formats::{WriterConfig, registry};
use hub::{Cursor, Export};
use journal::{Journal, Session};

use crate::cli::ReplayArgs;
use crate::exit::Failure;
use crate::{store, suggestions};

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    if let Some(agent) = args.fake {
        return fake_agent::run(args, agent);
    }
    let to = args.to.as_deref().unwrap_or(registry::TRANSCRIPT);
    let config = WriterConfig {
        profile: args.profile.clone(),
        color: args.color.is_wanted(io::stdout().is_terminal()),
        ..WriterConfig::default()
    };
    // Before the journal is opened, which may have to be upgraded first.
    registry::writer(to, &config).map_err(suggestions::target)?;
    let folder = store::folder(&args.data)?;
    store::runtime()?.block_on(async {
        let (journal, session) = store::open_session(&folder, &args.id).await?;
        let mut stdout = io::stdout().lock();
        write(journal, &session, to, &config, &mut stdout).await
    })
}

/// Writes all of a session.
pub(super) async fn write(
    journal: Arc<dyn Journal>,
    session: &Session,
    to: &str,
    config: &WriterConfig,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let export = Export::new(journal, session, to, config, Cursor::default(), None);
    let mut export = export.map_err(suggestions::target)?;
    while let Some(piece) = export.next().await.map_err(store::failed)? {
        out.write_all(&piece)
            .map_err(|err| Failure::write("stdout", &err))?;
    }
    out.flush().map_err(|err| Failure::write("stdout", &err))
}
