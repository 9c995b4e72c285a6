//! The listener: accepts connections, with TLS if configured, and shuts down gracefully.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hub::{Hub, HubConfig};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower_service::Service;
use tracing::{info, warn};

use crate::auth::PeerAddr;
use crate::bridge::Bridge;
use crate::config::{
    Error, Exposure, HANDSHAKE, HEAD, Listen, STOP, ServeConfig, WRITE, max_unauthenticated,
};
use crate::cors::AllowedOrigins;
use crate::host_origin::HostNames;
use crate::listener::{Connection, Listener};
use crate::roots::Roots;
use crate::routes;
use crate::running_servers::{RunningNote, RunningServer};
use crate::state::{App, AppConfig};
use crate::unauthenticated::{Unauthenticated, UnauthenticatedSlot};
use crate::write_timeout::WriteTimeout;

/// Until a connection is accepted after one could not be.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What links begin with where there is no port: the client knows the socket.
const SOCKET_BASE: &str = "http://localhost";

/// Poll interval while waiting for connections to close.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A server that listens, and answers nothing before it runs.
pub struct Server {
    app: Arc<App>,
    listener: Listener,
    tls: Option<TlsAcceptor>,
    /// None for a socket, which browsers cannot open.
    urls: Option<ServerUrls>,
    note: io::Result<Option<RunningNote>>,
    tasks: Vec<JoinHandle<()>>,
}

/// The addresses of a server with a port.
#[derive(Debug)]
pub struct ServerUrls {
    /// Where it can be reached on this machine.
    pub url: String,
    /// Where people open the page: the first of its public names, if it has one.
    pub page: String,
}

/// Opens the hub and the listener.
pub async fn bind(config: ServeConfig) -> Result<Server, Error> {
    config.check()?;
    let roots = Roots::new(&config.roots)?;
    let tls = match &config.exposure {
        Exposure::Tls { cert, key } => Some(acceptor(cert, key)?),
        Exposure::Loopback | Exposure::BehindProxy => None,
    };
    let listener = Listener::bind(&config.listen).await?;
    let is_tls = tls.is_some();
    let (bind, keys, origins, urls) = match config.listen {
        Listen::Tcp { address, keys } => {
            let failed = |source| Error::Listen { address, source };
            let address = listener.address().map_err(failed)?.unwrap_or(address);
            let allowed = AllowedOrigins::new(config.allow_origins);
            let origins = HostNames::new(address, is_tls, &config.public, allowed);
            let url = url(address, is_tls);
            let page = config.public.first().unwrap_or(&url).clone();
            let urls = Some(ServerUrls { url, page });
            (address.to_string(), Some(keys), origins, urls)
        }
        Listen::Unix(path) => {
            let bind = format!("unix:{}", path.display());
            (bind, None, HostNames::none(), None)
        }
    };
    let mut own = config.own;
    own.push(config.data_dir.clone());
    // The certificate is public; only its key has to be hidden.
    if let Exposure::Tls { key, .. } = config.exposure {
        own.push(key);
    }
    let settings = config.hub.settings.clone().for_server();
    let hub = HubConfig {
        settings: settings.clone(),
        ..config.hub
    };
    // After the listener: where the port is taken, no recovery has begun.
    let hub = Hub::open(hub).await?;
    let base = urls.as_ref().map_or(SOCKET_BASE, |it| &it.page);
    let app = App::new(AppConfig {
        hub,
        settings,
        keys,
        origins,
        roots,
        own,
        bridge: Bridge::open(&config.data_dir),
        base: base.trim_end_matches('/').to_owned(),
        bind,
        max_clients: config.max_clients,
    });
    // Others on this machine find a page by it, which a socket has not.
    let note = urls.as_ref().map(|it| {
        let server = RunningServer::own(it.url.clone(), it.page.clone());
        RunningNote::write(&config.data_dir, &server)
    });
    Ok(Server {
        tasks: vec![app.watch_keys()],
        app,
        listener,
        tls,
        urls,
        note: note.transpose(),
    })
}

/// How a server at this address is reached from this machine.
fn url(mut address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    // `0.0.0.0` is an address to listen on, not one to open in a browser.
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("{scheme}://{address}")
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("listen", &self.listen())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Where it listens: an address and a port, or `unix:` and a path.
    pub fn listen(&self) -> &str {
        &self.app.bind
    }

    /// Its addresses; a socket has none.
    pub fn urls(&self) -> Option<&ServerUrls> {
        self.urls.as_ref()
    }

    /// Why others on this machine cannot find it, if they cannot. It serves all the same: looking at
    /// old sessions needs no room on the disk.
    pub fn note_error(&self) -> Option<&io::Error> {
        self.note.as_ref().err()
    }

    /// Serves until `stop`, then lets clients finish and ends all runs.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (address, tls) = (self.listen(), self.tls.is_some());
        info!(address, tls, pid = std::process::id(), "server started");
        let router = routes::router(&self.app);
        let clients = Arc::new(Semaphore::new(self.app.max_clients));
        let unauthenticated = Unauthenticated::new(max_unauthenticated());
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accept = async {
                // The permit first: a connection that has to wait stays in the kernel's backlog and costs no file.
                let permit = Arc::clone(&clients).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                accepted = accept => accepted,
                () = &mut stop => break,
                // Reaps finished tasks.
                Some(_) = connections.join_next() => continue,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(err) => {
                    // Too many open files, or the client has already disconnected.
                    warn!(error = %err, "connection not accepted");
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            let slot = Arc::new(unauthenticated.enter());
            if self.app.only_caller().is_some() {
                slot.mark_authenticated();
            }
            // A connection over a socket is one of this machine.
            let peer = peer.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
            let serve = connect(
                stream,
                (PeerAddr(peer), Arc::clone(&slot)),
                self.tls.clone(),
                router.clone(),
                self.app.stop.subscribe(),
            );
            connections.spawn(async move {
                // An evicted connection is dropped in the middle of whatever it does.
                tokio::select! {
                    () = serve => (),
                    () = slot.evicted() => (),
                }
                drop(permit);
            });
        }
        // New clients are refused from here on, so that a proxy can send them elsewhere.
        drop(self.listener);
        info!("server stopping");
        self.app.stop.send_replace(true);
        let all = async {
            while connections.join_next().await.is_some() {}
            // WebSockets are detached from their connections and close by themselves.
            while self.app.metrics.n_followers() > 0 {
                sleep(LOOK_AGAIN).await;
            }
        };
        if timeout(STOP, all).await.is_err() {
            connections.shutdown().await;
        }
        self.app.hub.stop().await;
        for task in &self.tasks {
            task.abort();
        }
        drop(self.note);
        info!("server stopped");
    }
}

async fn connect(
    stream: Box<dyn Connection>,
    who: (PeerAddr, Arc<UnauthenticatedSlot>),
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let stream = WriteTimeout::new(stream, WRITE);
    match tls {
        None => serve(stream, who, router, stop).await,
        Some(tls) => {
            // A failed handshake needs no response.
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(stream)).await {
                serve(stream, who, router, stop).await;
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    who: (PeerAddr, Arc<UnauthenticatedSlot>),
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(who.0);
        request.extensions_mut().insert(Arc::clone(&who.1));
        router.clone().call(request)
    });
    // Not `axum::serve`: its accept loop has neither TLS nor time limits.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        // How a connection ends is the client's affair.
        ended = connection.as_mut() => drop(ended),
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await.ok();
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the server has stopped.
    stop.wait_for(|it| *it).await.ok();
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let failed = |path: &Path, source: Box<dyn std::error::Error + Send + Sync>| Error::Tls {
        path: path.to_owned(),
        source,
    };
    let certs =
        CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certs = certs.map_err(|err| failed(cert, err.into()))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|err| failed(key, err.into()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|it| it.with_no_client_auth().with_single_cert(certs, key))
        .map_err(|err| failed(cert, err.into()))?;
    // Without it a browser may try HTTP/2, over which a WebSocket needs another handshake.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
