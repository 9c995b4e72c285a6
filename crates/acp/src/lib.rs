//! Any engine as an agent of the Agent Client Protocol, version 1: JSON-RPC on a pair of pipes.
//!
//! `connection` reads the client's messages and knows its sessions; each session is a task
//! (`session`) that runs an agent, records it in the journal and updates the client through the
//! writer of `formats`. History goes through the same writer, so that a loaded session looks as it
//! did live. All output goes through one thread, in order (`runner::pipes`).

mod connection;
mod content;
mod flush_timer;
mod history;
mod options;
mod question;
mod session;
mod stats;

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use formats::wire::acp as wire;
use formats::wire::json_rpc as rpc;
use journal::Journal;
use runner::RunOptions;
use runner::config::Config;
use runner::locks::Locks;
use runner::pipes;
use runner::process::Guard;
use tokio::sync::watch;
use tokio::time::timeout;

pub use stats::Summary;

/// How long the last lines may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the sessions of a connection are run with.
#[derive(Clone)]
pub struct AcpConfig {
    /// The version of the program, for the client.
    pub version: &'static str,
    /// As in `linkspan run --engine`.
    pub engine: String,
    /// How sessions begin; the client may change it.
    pub options: RunOptions,
    /// A profile of the format `acp`.
    pub profile: Option<String>,
    pub settings: Config,
    pub guard: Guard,
    /// Where the agents' own sessions are locked.
    pub locks: Option<Locks>,
}

impl fmt::Debug for AcpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpConfig")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// Serves one client until it closes the pipe, or until `stop`. All sessions end with it; they are
/// stored in the journal, which is opened during the handshake.
pub async fn serve(
    config: AcpConfig,
    journal: impl Future<Output = Arc<dyn Journal>>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Summary {
    let stats = Arc::new(stats::Stats::default());
    let written = Arc::clone(&stats);
    let pipes = pipes::open(input, output, move |n_bytes, wait| {
        written.wrote(n_bytes, wait);
    });
    let (opened, kept) = watch::channel(None);
    let shared = session::Shared {
        config: Arc::new(config),
        journal: kept,
        outbound: pipes.outbound,
        stats: Arc::clone(&stats),
        client: wire::ClientCapabilities::default(),
    };
    let connection = connection::Connection::new(shared);
    let opening = async {
        opened.send_replace(Some(journal.await));
    };
    tokio::join!(connection.run(pipes.inbound, stop), opening);
    // A client that does not read must not block the end.
    timeout(LAST_WORDS, pipes.written).await.ok();
    stats.summary()
}

#[cfg(test)]
mod tests;
