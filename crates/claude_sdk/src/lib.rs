//! Any engine as the `claude` program of the Claude Agent SDK: stream-json and its control protocol on a
//! pair of pipes.
//!
//! One process is one session, as with Claude Code itself. `connection` is its loop, `control` what the host
//! asks for, `asks` what the host is asked, `messages` the lines both ways. Facts are from
//! `@anthropic-ai/claude-agent-sdk` 0.3.325 driving Claude Code 2.1.325. What another engine cannot do is
//! refused by its name; `docs/sdks.md` has the table.

mod asks;
mod connection;
mod control;
mod messages;
pub mod modes;

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use formats::ClaudeClient;
use hub::{ClientSession, ClientSessionConfig, SessionLog, SetupError};
use journal::Journal;
use tokio::time::timeout;

/// How long the last lines may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the session is run with.
#[derive(Clone)]
pub struct ClaudeSdkConfig {
    /// The version of the program, for the host.
    pub version: &'static str,
    pub session: ClientSessionConfig,
    pub client: ClaudeClient,
    /// The host answers asks; without it they are denied.
    pub asks_host: bool,
    /// The host wants to know when the session works, waits or is idle.
    pub reports_state: bool,
}

impl fmt::Debug for ClaudeSdkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaudeSdkConfig")
            .field("engine", &self.session.engine)
            .finish_non_exhaustive()
    }
}

/// Serves one host until it closes the pipe and its prompts are worked on, or until `stop`. `log` is that of
/// a session that is resumed.
pub async fn serve(
    config: ClaudeSdkConfig,
    journal: Arc<dyn Journal>,
    log: Option<SessionLog>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), SetupError> {
    let mut core = ClientSession::new(config.session.clone())?;
    if let Some(log) = log {
        core.resumes(log);
    }
    let pipes = runner::pipes::open(input, output, |_, _| ());
    let connection = connection::Connection::new(config, core, journal, pipes.outbound);
    connection.run(pipes.inbound, stop).await;
    // A host that does not read must not block the end.
    timeout(LAST_WORDS, pipes.written).await.ok();
    Ok(())
}
