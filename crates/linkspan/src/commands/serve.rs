//! `linkspan serve`: the doors, from flags to the end of the last run.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use std::{env, fs};

use hub::{HubConfig, Limits};
use runner::config::Config;
use runner::locks::Locks;
use runner::process::Guard;
use server::{Exposure, Keys, MAX_CLIENTS, MIN_TOKEN, Secret, ServeConfig, Tls, TokenError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::ServeArgs;
use crate::exit::{self, Code, Failure, chain, shown};
use crate::{settings, store};

/// The note of a running server in its data directory.
pub(super) const ADDRESS: &str = "address";
/// How long a server on this machine may take to be there.
const KNOCK: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut settings = settings::load(&args.file)?.config;
    settings::keep(&mut settings, &args.keep)?;
    if let Some(text) = &args.cut_above {
        let set = settings.flag("journal.cut_above", "--cut-above", text);
        set.map_err(settings::bad_config)?;
    }
    let folder = store::folder(&args.data)?;
    let keys = keys(&folder, args.token_file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))?;
    let served = runtime.block_on(async {
        let roots = roots(args, &settings)?;
        let hub = HubConfig {
            journal: store::open(&folder, hub::cut(&settings)).await?,
            settings,
            guard: Guard::own(),
            locks: Locks::own(),
            owner: hub::own_name(),
            limits: Limits::default(),
        };
        serve(args, hub, &folder, keys, roots).await
    });
    // Whatever still reads or writes a file does not keep anybody waiting.
    runtime.shutdown_background();
    served
}

/// The tokens of the data directory; `LINKSPAN_TOKEN` is one without a file.
pub(super) fn keys(folder: &Path, file: Option<&Path>) -> Result<Keys, Failure> {
    let given = env::var("LINKSPAN_TOKEN").ok();
    let given = given.filter(|it| !it.is_empty() && file.is_none());
    Keys::open(folder, file, given.map(Secret::new)).map_err(token_failed)
}

pub(super) fn token_failed(err: TokenError) -> Failure {
    let hint = server::Error::from(err);
    refused(&hint)
}

fn refused(err: &server::Error) -> Failure {
    let code = match err {
        server::Error::Exposed(_) | server::Error::BadOrigin(_) | server::Error::Root { .. } => {
            Code::Usage
        }
        server::Error::Token(TokenError::NoKey(_)) => Code::Usage,
        server::Error::Listen { .. }
        | server::Error::Tls { .. }
        | server::Error::Write { .. }
        | server::Error::Token(_)
        | server::Error::Hub(_) => Code::Io,
    };
    Failure::Said {
        code,
        message: chain(err),
        hint: err.hint().map(str::to_owned),
    }
}

/// Where another server of this data directory listens, if there is one.
fn other(folder: &Path) -> Option<String> {
    let url = fs::read_to_string(folder.join(ADDRESS)).ok()?;
    let address = url.split_once("://")?.1.parse().ok()?;
    // What a crash has left behind answers nobody.
    TcpStream::connect_timeout(&address, KNOCK)
        .is_ok()
        .then_some(url)
}

/// A place that is taken may be taken by a server of ours.
fn met(err: &server::Error, listen: SocketAddr, other: Option<&str>) -> Failure {
    let failure = refused(err);
    let is_other = other
        .and_then(|it| it.split_once("://"))
        .is_some_and(|it| it.1 == listen.to_string());
    match (failure, err) {
        (Failure::Said { code, message, .. }, server::Error::Listen { .. }) if is_other => {
            let hint = "the server of this data directory listens there; `linkspan token` prints its address";
            Failure::Said {
                code,
                message,
                hint: Some(hint.to_owned()),
            }
        }
        (failure, _) => failure,
    }
}

/// Where agents may work: as the flags say, else the config.
fn roots(args: &ServeArgs, settings: &Config) -> Result<Vec<PathBuf>, Failure> {
    if !args.root.is_empty() {
        return Ok(args.root.clone());
    }
    let roots = settings.roots();
    match roots.iter().find(|it| !it.is_absolute()) {
        None => Ok(roots),
        Some(root) => Err(Failure::usage(
            format!(
                "`serve.roots` names `{}`, wherever that is",
                shown(&root.to_string_lossy())
            ),
            "begin it with `/` or `~/`",
        )),
    }
}

async fn serve(
    args: &ServeArgs,
    hub: HubConfig,
    folder: &Path,
    keys: Keys,
    roots: Vec<PathBuf>,
) -> Result<(), Failure> {
    let signals = |err| Failure::io("cannot listen for signals", &err, None);
    let mut stops = Stops::new().map_err(signals)?;
    if keys.first().reveal().len() < MIN_TOKEN {
        exit::say(&format!(
            "linkspan: the token is short enough to be found by trying; give it {MIN_TOKEN} characters\n"
        ));
    }
    let page = keys
        .is_new
        .then(|| format!("/#token={}", keys.first().reveal()));
    let config = ServeConfig {
        hub,
        listen: args.listen,
        data_dir: folder.to_owned(),
        keys,
        exposure: match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => Exposure::Tls(Tls {
                cert: cert.clone(),
                key: key.clone(),
            }),
            _ if args.behind_proxy => Exposure::BehindProxy,
            _ => Exposure::Loopback,
        },
        public: args.origin.clone(),
        roots,
        max_clients: MAX_CLIENTS,
    };
    let other = other(folder);
    let bound = server::bind(config).await;
    let server = bound.map_err(|err| met(&err, args.listen, other.as_deref()))?;
    let url = server.url();
    exit::say(&format!("listening on {url}\n"));
    if let Some(other) = other {
        exit::say(&format!(
            "linkspan: {other} serves the same data directory; both show the same sessions\n"
        ));
    }
    if let Some(page) = page {
        exit::say(&format!("open {url}{page}\n"));
    }
    let (tx, rx) = tokio::sync::oneshot::channel::<()>();
    let mut running = pin!(server.run(async {
        rx.await.ok();
    }));
    tokio::select! {
        () = &mut running => return Ok(()),
        () = stops.next() => (),
    }
    exit::say("linkspan: stopping; once more leaves at once\n");
    // An error means that it has ended by itself.
    tx.send(()).ok();
    tokio::select! {
        () = running => (),
        () = stops.next() => (),
    }
    Ok(())
}

/// Everything that means: stop.
pub(super) struct Stops([Signal; 3]);

impl Stops {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    pub(super) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        }
    }
}
