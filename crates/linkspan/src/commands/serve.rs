//! `linkspan serve`: from flags to the end of the last run.

mod log;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::{env, process, thread};

use hub::{HubConfig, Limits, QueueLife};
use runner::config::{Config, File};
use runner::locks::Locks;
use runner::process::Guard;
use serde_json::json;
use server::{
    Exposure, Keys, Listen, MAX_CLIENTS, MIN_TOKEN, RunningServer, Secret, ServeConfig, Server,
    ServerUrls, TokenError,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use self::log::Log;
use crate::cli::{ListenAddress, ServeArgs};
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
    let listen = listen(args, &folder)?;
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
            queue: QueueLife::Durable,
            limits: Limits::default(),
        };
        serve(args, hub, &folder, listen, roots, own, &mut log).await
    });
    // Do not wait for blocking file operations at exit.
    runtime.shutdown_background();
    served
}

/// Where to listen, with the tokens of those who connect to a port.
fn listen(args: &ServeArgs, folder: &Path) -> Result<Listen, Failure> {
    let path = match &args.listen {
        ListenAddress::Port(address) => {
            return Ok(Listen::Tcp {
                address: *address,
                keys: keys(folder, args.token_file.as_deref())?,
            });
        }
        ListenAddress::Socket(path) => path,
    };
    let of_ports = [
        ("--tls-cert", args.tls_cert.is_some()),
        ("--behind-proxy", args.behind_proxy),
        ("--origin", !args.origin.is_empty()),
        ("--allow-origin", !args.allow_origin.is_empty()),
        ("--token-file", args.token_file.is_some()),
    ];
    match of_ports.iter().find(|it| it.1) {
        None => Ok(Listen::Unix(path.clone())),
        Some((flag, _)) => Err(Failure::usage(
            format!("`{flag}` is for a port, and `unix:PATH` has none"),
            format!("leave `{flag}` out, or listen on an address such as `127.0.0.1:8787`"),
        )),
    }
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

pub(super) fn refused(err: &server::Error) -> Failure {
    let code = match err {
        server::Error::Exposed(_) | server::Error::BadOrigin(_) | server::Error::Root { .. } => {
            Code::Usage
        }
        server::Error::Token(TokenError::NoKey(_)) => Code::Usage,
        server::Error::Listen { .. }
        | server::Error::Socket { .. }
        | server::Error::Tls { .. }
        | server::Error::Token(_)
        | server::Error::Hub(_) => Code::Io,
    };
    Failure::new(code, chain(err)).hint(err.hint().map(str::to_owned))
}

/// The address may be in use by a server of the same data directory.
fn address_in_use(
    err: &server::Error,
    listen: &ListenAddress,
    others: &[RunningServer],
) -> Failure {
    let failure = refused(err);
    let ListenAddress::Port(listen) = listen else {
        return failure;
    };
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
    listen: Listen,
    roots: Vec<PathBuf>,
    own: Vec<PathBuf>,
    log: &mut Log,
) -> Result<(), Failure> {
    // Before `bind`: a signal during the start then stops the server as soon as it runs.
    let mut stops = StopSignals::new()?;
    let mut new_token = None;
    if let Listen::Tcp { keys, .. } = &listen {
        if keys.first().reveal().len() < MIN_TOKEN {
            exit::print_line(&format!(
                "linkspan: the token is short enough to be found by trying; give it {MIN_TOKEN} characters\n"
            ));
        }
        new_token = keys.is_new.then(|| keys.first().clone());
    }
    let allow_origins = match args.allow_origin.is_empty() {
        true => hub.settings.allow_origins(),
        false => args.allow_origin.clone(),
    };
    let config = ServeConfig {
        hub,
        listen,
        data_dir: folder.to_owned(),
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
    let server = bound.map_err(|err| address_in_use(&err, &args.listen, &others))?;
    announce(args, &server, &others)?;
    if let (Some(token), Some(urls)) = (new_token, server.urls()) {
        print_token(args, &urls.page, &token);
    }
    log.write_lines();
    // The server stops by a message of its own, so that it is still polled while it does.
    let (tx, rx) = oneshot::channel::<()>();
    let mut running = pin!(server.run(async {
        rx.await.ok();
    }));
    let mut stdin = args.until_stdin_closes.then(stdin_closed);
    tokio::select! {
        () = &mut running => return Ok(()),
        () = stops.next() => (),
        () = optional(&mut stdin) => (),
    }
    log.print("linkspan: stopping; a second signal stops at once\n");
    // An error means that it has ended by itself.
    tx.send(()).ok();
    tokio::select! {
        () = running => (),
        () = stops.next() => (),
    }
    Ok(())
}

/// Resolves when stdin ends. A thread of its own: a blocked read cannot be cancelled, and would hold up the
/// runtime's end.
fn stdin_closed() -> oneshot::Receiver<()> {
    let (closed, is_closed) = oneshot::channel();
    thread::spawn(move || {
        // A pipe that cannot be read has ended for us.
        io::copy(&mut io::stdin(), &mut io::sink()).ok();
        closed.send(()).ok();
    });
    is_closed
}

async fn optional(closed: &mut Option<oneshot::Receiver<()>>) {
    match closed {
        Some(closed) => {
            closed.await.ok();
        }
        None => std::future::pending().await,
    }
}

/// Prints where this server listens first, in a format that no other address uses, for the program that
/// started it.
fn announce(args: &ServeArgs, server: &Server, others: &[RunningServer]) -> Result<(), Failure> {
    let listen = server.listen();
    let url = server.urls().map(|it| it.url.as_str());
    if args.ready_json {
        let mut line = json!({ "listen": listen, "pid": process::id() });
        if let Some(ServerUrls { url, page }) = server.urls() {
            line["url"] = url.as_str().into();
            line["page"] = page.as_str().into();
        }
        exit::print(format!("{line}\n").as_bytes())?;
    } else {
        exit::print_line(&format!("listening on {}\n", url.unwrap_or(listen)));
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
