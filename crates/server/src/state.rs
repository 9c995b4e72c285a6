//! What all requests share.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use formats::ServedThread;
use hub::Hub;
use runner::config::Config;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::ag_ui::AgUi;
use crate::api::engines::Engines;
use crate::bridge::Bridge;
use crate::host_origin::HostNames;
use crate::max_output::MaxOutput;
use crate::metrics::Metrics;
use crate::private::OwnPaths;
use crate::rate_limit::AuthRateLimit;
use crate::repeats::Repeats;
use crate::roots::Roots;
use crate::tokens::{Caller, Keys};

/// How often the token file is read: a revoked token is refused a second later.
const REFRESH: Duration = Duration::from_millis(500);

pub(crate) struct App {
    pub(crate) hub: Arc<Hub>,
    pub(crate) ag_ui: Arc<AgUi>,
    /// None where only the user can connect, so that no token is asked for.
    keys: Option<RwLock<Keys>>,
    /// Notified when tokens have changed.
    pub(crate) revoked: watch::Sender<()>,
    pub(crate) origins: HostNames,
    pub(crate) roots: Roots,
    /// The files and directories of linkspan itself.
    pub(crate) own: OwnPaths,
    pub(crate) rate_limit: AuthRateLimit,
    pub(crate) metrics: Metrics,
    pub(crate) bridge: Bridge,
    pub(crate) engines: Engines,
    pub(crate) repeats: Arc<Repeats>,
    /// The address that links begin with.
    pub(crate) base: String,
    /// Where it listens, for people.
    pub(crate) bind: String,
    pub(crate) max_clients: usize,
    pub(crate) began: Instant,
    pub(crate) stop: watch::Sender<bool>,
}

/// What an [`App`] is made of.
pub(crate) struct AppConfig {
    pub(crate) hub: Hub,
    pub(crate) settings: Config,
    pub(crate) keys: Option<Keys>,
    pub(crate) origins: HostNames,
    pub(crate) roots: Roots,
    pub(crate) own: Vec<PathBuf>,
    pub(crate) bridge: Bridge,
    pub(crate) base: String,
    pub(crate) bind: String,
    pub(crate) max_clients: usize,
}

impl App {
    pub(crate) fn new(config: AppConfig) -> Arc<Self> {
        let hub = Arc::new(config.hub);
        Arc::new(Self {
            ag_ui: Arc::new(AgUi::new(Arc::clone(&hub), config.settings.clone())),
            hub,
            keys: config.keys.map(RwLock::new),
            revoked: watch::Sender::new(()),
            origins: config.origins,
            roots: config.roots,
            own: OwnPaths::new(config.own),
            rate_limit: AuthRateLimit::default(),
            metrics: Metrics::default(),
            bridge: config.bridge,
            engines: Engines::new(config.settings),
            repeats: Arc::default(),
            base: config.base,
            bind: config.bind,
            max_clients: config.max_clients,
            began: Instant::now(),
            stop: watch::Sender::new(false),
        })
    }

    /// What is added to `thread` for clients. `output` is how much of a tool's output they want.
    pub(crate) fn served(&self, output: Option<MaxOutput>) -> ServedThread {
        ServedThread {
            base: self.base.clone(),
            max_output: output.map_or(Some(ServedThread::MAX_OUTPUT), |it| it.0),
        }
    }

    /// The caller of every connection, where nobody but the user can connect.
    pub(crate) fn only_caller(&self) -> Option<Caller> {
        self.keys.is_none().then(Caller::user)
    }

    /// The owner of a token. An unknown one may have been made a moment ago.
    pub(crate) fn find_caller(&self, token: &str) -> Option<Caller> {
        let all = self.keys.as_ref()?;
        let keys = all.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = keys.find(token) {
            return Some(caller);
        }
        if !keys.may_have_changed() {
            return None;
        }
        // `refresh_keys` takes the lock for writing.
        drop(keys);
        self.refresh_keys();
        let keys = all.read().unwrap_or_else(PoisonError::into_inner);
        keys.find(token)
    }

    /// Reloads the token file and disconnects clients whose token was revoked.
    fn refresh_keys(&self) {
        let Some(keys) = &self.keys else { return };
        let mut keys = keys.write().unwrap_or_else(PoisonError::into_inner);
        // If the file cannot be read, the known tokens stay valid.
        if keys.refresh().unwrap_or(false) {
            self.revoked.send_replace(());
            self.bridge
                .forget(|id| keys.list().iter().any(|it| it.id == id));
        }
    }

    /// Whether a connected client's token is still valid.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        let Some(keys) = &self.keys else { return true };
        let keys = keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.knows(caller)
    }

    /// Resolves when a connected client has to go, and says why.
    pub(crate) async fn no_longer_served(self: Arc<Self>, caller: Caller) -> &'static str {
        let (mut stop, mut revoked) = (self.stop.subscribe(), self.revoked.subscribe());
        loop {
            tokio::select! {
                _ = stop.wait_for(|it| *it) => return "the server is stopping",
                changed = revoked.changed() => {
                    // Tokens have changed, but not necessarily this one.
                    if changed.is_err() || !self.knows(&caller) {
                        return "the token was revoked";
                    }
                }
            }
        }
    }

    /// Watches for created and revoked tokens while the server runs.
    pub(crate) fn watch_keys(self: &Arc<Self>) -> JoinHandle<()> {
        // Weak, so that this task does not keep the journal open when the server is dropped.
        let app = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(REFRESH).await;
                let Some(app) = app.upgrade() else { return };
                app.refresh_keys();
            }
        })
    }
}
