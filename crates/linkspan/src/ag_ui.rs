//! AG-UI for any axum app: agents and models behind `POST /{engine}`, as in `linkspan serve`.
//!
//! ```ignore
//! let ag_ui = linkspan::ag_ui::router(linkspan::ag_ui::Config::new(&["claude"])?).await?;
//! let app = axum::Router::new().nest("/ag-ui", ag_ui.router);
//! ```
//!
//! The application that mounts it must control access: a client of this router can run commands
//! through an agent.

use std::env;
use std::path::Path;
use std::sync::Arc;

use hub::{HubConfig, Limits, QueueLife};
use journal::{Journal, Memory, Sqlite};
use runner::config::{self, Config as Settings};
use runner::locks::Locks;
use runner::process::Guard;
pub use server::{AgUiRouter as Router, Error};

/// What is served, and what is kept of it.
pub struct Config {
    /// The user's settings: engines and their endpoints, time-outs, permissions.
    pub settings: Settings,
    /// The engines that clients may name; the first is the default.
    pub engines: Vec<String>,
    takes_settings: bool,
    journal: Arc<dyn Journal>,
    guard: Guard,
}

/// Why the endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Settings(#[from] config::Error),
    #[error("cannot keep threads in `{path}`")]
    Journal {
        path: String,
        #[source]
        source: journal::Fault,
    },
}

impl Config {
    /// These engines with the user's own settings; threads are kept until the program ends.
    pub fn new(engines: &[&str]) -> Result<Self, ConfigError> {
        let variable = |name: &str| env::var(name).ok();
        let file = config::File::find(None, variable);
        Ok(Self {
            settings: Settings::load(file.as_ref(), variable)?,
            engines: engines.iter().map(|it| (*it).to_owned()).collect(),
            takes_settings: false,
            journal: Arc::new(Memory::new(journal::Config::default())),
            guard: Guard::None,
        })
    }

    /// Keeps threads in this file, so that they outlive the program.
    pub async fn keep_in(mut self, path: &Path) -> Result<Self, ConfigError> {
        let journal = Sqlite::open(path, journal::Config::default()).await;
        self.journal = Arc::new(journal.map_err(|source| ConfigError::Journal {
            path: path.display().to_string(),
            source,
        })?);
        Ok(self)
    }

    /// Lets clients say with `forwardedProps.linkspan` where an agent works, with which permissions
    /// and so on. Such a client controls the machine, so this is off by default.
    pub fn with_client_settings(mut self) -> Self {
        self.takes_settings = true;
        self
    }

    /// A `linkspan` program as the guard of the agents. Without one they are ended with the router, but not
    /// when this process is killed.
    pub fn guarded_by(mut self, linkspan: &Path) -> Self {
        self.guard = Guard::Exe(linkspan.to_owned());
        self
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("engines", &self.engines)
            .finish_non_exhaustive()
    }
}

/// Opens the journal and makes the routes: `POST /`, `POST /{engine}`, `POST /{engine}/abort` and
/// `GET /{engine}/capabilities`.
pub async fn router(config: Config) -> Result<Router, Error> {
    server::ag_ui_router(server::AgUiConfig {
        hub: HubConfig {
            journal: config.journal,
            settings: config.settings,
            guard: config.guard,
            locks: runner::state_folder().map(|it| Locks::new(it.join("locks"))),
            owner: hub::own_name(),
            queue: QueueLife::Durable,
            limits: Limits::default(),
        },
        engines: config.engines,
        takes_settings: config.takes_settings,
    })
    .await
}
