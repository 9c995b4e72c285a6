//! `linkspan serve`: from flags to the end of the last run.

mod log;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::{env, process};

use hub::{HubConfig, Limits};
use runner::config::{Config, File};
use runner::locks::Locks;
use runner::process::Guard;
use serde_json::json;
use server::{
    Exposure, Keys, MAX_CLIENTS, MIN_TOKEN, RunningServer, Secret, ServeConfig, Server, TokenError,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::log::Log;
use crate::cli::ServeArgs;
use crate::exit::{self, Code, Failure, chain, printable};
use crate::settings;
use crate::store::{self, OpenMode};

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let loaded = settings::load(&args.file)?;
    let own = own_paths(args, loaded.file.as_ref());
    let mut settings = loaded.config;
    settings::flags(&mut settings, args.keep.flags())?;
    settings::asks(&mut settings, &args.asks)?;
    let flags = [
        ("journal.cut_above", "--cut-above", &args.cut_above),
        ("serve.log_format", "--log-format", &args.log_format),
        ("serve.log_level", "--log-level", &args.log_level),
    ];
    settings::flags(&mut settings, flags)?;
    let mut log = Log::start(settings.log_format(), settings.log_level());
    let folder = store::folder(&args.data)?;
    let keys = keys(&folder, args.token_file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))?;
    let served = runtime.block_on(async {
        let roots = roots(args, &settings)?;
        let hub = HubConfig {
            journal: store::open_as_found(
                &folder,
                hub::truncation(&settings),
                OpenMode::OrReadOnly,
            )
            .await?,
            settings,
            guard: Guard::own(),
            locks: Locks::own(),
            owner: hub::own_name(),
            limits: Limits::default(),
        };
        serve(args, hub, &folder, keys, roots, own, &mut log).await
    });
    // Do not wait for blocking file operations at exit.
    runtime.shutdown_background();
    served
}

/// The tokens of the data directory; `LINKSPAN_TOKEN` is one without a file.
pub(super) fn keys(folder: &Path, file: Option<&Path>) -> Result<Keys, Failure> {
    let given = env::var("LINKSPAN_TOKEN").ok();
    // A file that is named on the command line wins over the environment.
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
        | server::Error::Token(_)
        | server::Error::Hub(_) => Code::Io,
    };
    Failure::new(code, chain(err)).hint(err.hint().map(str::to_owned))
}

/// The address may be in use by a server of the same data directory.
fn address_in_use(err: &server::Error, listen: SocketAddr, others: &[RunningServer]) -> Failure {
    let failure = refused(err);
    let listen = listen.to_string();
    let is_there = |it: &RunningServer| it.url.split_once("://").is_some_and(|it| it.1 == listen);
    match err {
        server::Error::Listen { .. } if others.iter().any(is_there) => {
            let hint = "another server of this data directory listens there; `linkspan token` prints its address, `--listen 127.0.0.1:0` starts one beside it";
            failure.hint(Some(hint.to_owned()))
        }
        _ => failure,
    }
}

/// Where agents may work: as the flags say, else the config.
fn roots(args: &ServeArgs, settings: &Config) -> Result<Vec<PathBuf>, Failure> {
    if !args.root.is_empty() {
        return Ok(args.root.clone());
    }
    let roots = settings.roots();
    // A service may be started in any directory, so a relative path could mean anything.
    match roots.iter().find(|it| !it.is_absolute()) {
        None => Ok(roots),
        Some(root) => Err(Failure::usage(
            format!(
                "`serve.roots` names `{}`, wherever that is",
                printable(&root.to_string_lossy())
            ),
            "begin it with `/` or `~/`",
        )),
    }
}

/// What is linkspan's own besides the data directory: settings and tokens, also those of a server that
/// was started without flags.
fn own_paths(args: &ServeArgs, config: Option<&File>) -> Vec<PathBuf> {
    let usual = File::find(None, |_| None);
    let folder = usual.and_then(|it| Some(it.path.parent()?.to_owned()));
    let named = config.filter(|it| it.is_named).map(|it| it.path.clone());
    let places = [
        folder,
        named,
        runner::data_folder(),
        args.token_file.clone(),
    ];
    places.into_iter().flatten().collect()
}

async fn serve(
    args: &ServeArgs,
    hub: HubConfig,
    folder: &Path,
    keys: Keys,
    roots: Vec<PathBuf>,
    own: Vec<PathBuf>,
    log: &mut Log,
) -> Result<(), Failure> {
    // Before `bind`: a signal during the start then stops the server as soon as it runs.
    let mut stops = StopSignals::new()?;
    if keys.first().reveal().len() < MIN_TOKEN {
        exit::print_line(&format!(
            "linkspan: the token is short enough to be found by trying; give it {MIN_TOKEN} characters\n"
        ));
    }
    let new_token = keys.is_new.then(|| keys.first().clone());
    let allow_origins = match args.allow_origin.is_empty() {
        true => hub.settings.allow_origins(),
        false => args.allow_origin.clone(),
    };
    let config = ServeConfig {
        hub,
        listen: args.listen,
        data_dir: folder.to_owned(),
        keys,
        own,
        exposure: match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => Exposure::Tls {
                cert: cert.clone(),
                key: key.clone(),
            },
            _ if args.behind_proxy => Exposure::BehindProxy,
            _ => Exposure::Loopback,
        },
        public: args.origin.clone(),
        allow_origins,
        roots,
        max_clients: MAX_CLIENTS,
    };
    // Before `bind`, which adds this server to them.
    let others = server::running(folder);
    let bound = server::bind(config).await;
    let server = bound.map_err(|err| address_in_use(&err, args.listen, &others))?;
    announce(args, &server, &others)?;
    if let Some(token) = new_token {
        print_token(args, server.page(), &token);
    }
    log.write_lines();
    // The server stops by a message of its own, so that it is still polled while it does.
    let (tx, rx) = tokio::sync::oneshot::channel::<()>();
    let mut running = pin!(server.run(async {
        rx.await.ok();
    }));
    tokio::select! {
        () = &mut running => return Ok(()),
        () = stops.next() => (),
    }
    log.print("linkspan: stopping; once more leaves at once\n");
    // An error means that it has ended by itself.
    tx.send(()).ok();
    tokio::select! {
        () = running => (),
        () = stops.next() => (),
    }
    Ok(())
}

/// Prints this server's address first, in a format that no other address uses, for the program that
/// started it.
fn announce(args: &ServeArgs, server: &Server, others: &[RunningServer]) -> Result<(), Failure> {
    let url = server.url();
    exit::print_line(&format!("listening on {url}\n"));
    if args.json {
        let page = server.page();
        let line = json!({ "url": url, "page": page, "pid": process::id() });
        exit::print(format!("{line}\n").as_bytes())?;
    }
    if let Some(err) = server.note_error() {
        let cause = exit::chain(err);
        exit::print_line(&format!(
            "linkspan: `linkspan token` will not find this server, its address cannot be noted: {cause}\n"
        ));
    }
    for other in others {
        let (pid, address) = (other.pid, other.url.split_once("://").map_or("", |it| it.1));
        exit::print_line(&format!(
            "linkspan: process {pid} at {address} serves the same data directory; both show the same sessions\n"
        ));
    }
    Ok(())
}

/// Print the token only on a terminal; anywhere else it would end up in a log.
fn print_token(args: &ServeArgs, page: &str, token: &Secret) {
    if io::stderr().is_terminal() {
        return exit::print_line(&format!("open {page}/#token={}\n", token.reveal()));
    }
    let flag = |name: &str, path: &Path| format!(" {name} {}", printable(&path.to_string_lossy()));
    let data = args.data.dir.as_deref().map(|it| flag("--data-dir", it));
    let file = args.token_file.as_deref();
    let file = file.map(|it| flag("--token-file", it));
    let flags: String = [data, file].into_iter().flatten().collect();
    exit::print_line(&format!(
        "linkspan: `linkspan token{flags}` prints the address of the page with its token\n"
    ));
}

/// Everything that means: stop.
pub(super) struct StopSignals([Signal; 3]);

impl StopSignals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::signals);
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
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
