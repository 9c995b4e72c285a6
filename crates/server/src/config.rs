//! The server's configuration, and the rules for its listener.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hub::HubConfig;

use crate::tokens::{Keys, TokenError};

/// Bytes of a request's body.
pub(crate) const MAX_BODY: usize = 4 << 20;
/// Bytes of a message over the WebSocket.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;
/// Bytes of a prompt.
pub(crate) const MAX_PROMPT: usize = 1 << 20;
/// Default maximum of concurrent connections; further ones wait to be accepted.
pub const MAX_CLIENTS: usize = 4096;
/// Connections without a valid token, where enough files can be open; one more closes the oldest.
const MAX_UNAUTHENTICATED: usize = 256;
/// However few files can be open.
const MIN_UNAUTHENTICATED: usize = 4;

/// The limit on connections without a valid token: a quarter of the files that this process may open, so
/// that the journal, the agents and authenticated clients have the rest.
pub(crate) fn max_unauthenticated() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    unauthenticated_for(files)
}

fn unauthenticated_for(files: Option<u64>) -> usize {
    // None is no limit at all.
    let files = files.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    (files / 4).clamp(MIN_UNAUTHENTICATED, MAX_UNAUTHENTICATED)
}

/// Sessions that one WebSocket follows one by one.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 64;
/// Until a connection is encrypted.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(5);
/// Timeout for a request's head, and for idle keep-alive connections.
pub(crate) const HEAD: Duration = Duration::from_secs(30);
/// Until a request's body is there.
pub(crate) const BODY: Duration = Duration::from_secs(30);
/// Interval between pings.
pub(crate) const PING: Duration = Duration::from_secs(20);
/// Without any sign of life before a client is taken for dead.
pub(crate) const DEAD: Duration = Duration::from_secs(60);
/// Timeout for a single write to a client.
pub(crate) const WRITE: Duration = Duration::from_secs(10);
/// Bytes that are on their way to one client at once, besides the last frame of them.
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 10;
/// What clients get to finish when the server stops.
pub(crate) const STOP: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct ServeConfig {
    pub hub: HubConfig,
    pub listen: Listen,
    /// Where the server keeps its own notes.
    pub data_dir: PathBuf,
    /// Files and directories of linkspan besides `data_dir` that are never shown and in which no
    /// agent works: the config, a token file elsewhere.
    pub own: Vec<PathBuf>,
    pub exposure: Exposure,
    /// Other addresses of the page, such as `https://agents.example.com`.
    pub public: Vec<String>,
    /// Pages of other origins that may use `/ag-ui`, `/api` and `/ws`.
    pub allow_origins: Vec<String>,
    /// Where agents may work. `None`: anywhere for an `admin`; for others below the server's
    /// working directory and those of sessions and projects.
    pub roots: Vec<PathBuf>,
    /// How many clients there may be at a time, such as [`MAX_CLIENTS`].
    pub max_clients: usize,
}

/// Where the server listens, and how it knows its clients.
#[derive(Debug)]
pub enum Listen {
    /// Port 0 picks one. Clients have a token.
    Tcp { address: SocketAddr, keys: Keys },
    /// A socket in the file system, which its owner alone can open: no token is asked for.
    Unix(PathBuf),
}

/// How a port is exposed.
#[derive(Debug)]
pub enum Exposure {
    /// This machine alone.
    Loopback,
    /// Any host, with TLS; both files are PEM.
    Tls { cert: PathBuf, key: PathBuf },
    /// A proxy that encrypts, and that alone can reach the listener.
    BehindProxy,
}

impl ServeConfig {
    /// Refuses to listen unencrypted beyond loopback.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Listen::Tcp { address, .. } = self.listen
            && !address.ip().is_loopback()
            && matches!(self.exposure, Exposure::Loopback)
        {
            return Err(Error::Exposed(address));
        }
        let mut origins = self.public.iter().chain(&self.allow_origins);
        origins.try_for_each(|it| check_origin(it))
    }
}

/// An origin as browsers write it: scheme, name, perhaps a port, and nothing else.
fn check_origin(origin: &str) -> Result<(), Error> {
    let bad = || Error::BadOrigin(origin.to_owned());
    let (scheme, host) = origin.split_once("://").ok_or_else(bad)?;
    // Browsers write origins in lower case, and they are compared to the letter.
    let is_part = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || ".-:[]".contains(it);
    match matches!(scheme, "http" | "https") && !host.is_empty() && host.chars().all(is_part) {
        true => Ok(()),
        false => Err(bad()),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` can be reached from other machines, and nothing would be encrypted")]
    Exposed(SocketAddr),
    #[error("`{0}` is not the address of a page")]
    BadOrigin(String),
    #[error("agents cannot work in `{}`", path.display())]
    Root {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on `{address}`")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on `unix:{}`", path.display())]
    Socket {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot use `{}` to encrypt", path.display())]
    Tls {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Hub(#[from] hub::Error),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exposed(_) => Some(
                "give `--tls-cert` and `--tls-key`, or `--behind-proxy` if a proxy in front encrypts",
            ),
            Self::BadOrigin(_) => {
                Some("write it as browsers do, such as `https://agents.example.com`")
            }
            Self::Root { .. } => {
                Some("name a directory that exists with `--root` or in `serve.roots`")
            }
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    Some("another program listens there; `--listen 127.0.0.1:0` picks a free port")
                }
                io::ErrorKind::PermissionDenied => {
                    Some("ports below 1024 are for the administrator; take a higher one")
                }
                io::ErrorKind::AddrNotAvailable => Some("this machine has no such address"),
                _ => None,
            },
            Self::Socket { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    Some("another program listens there; name another file")
                }
                io::ErrorKind::AlreadyExists => {
                    Some("there is a file that is no socket; name another one")
                }
                io::ErrorKind::NotFound => Some("the directory has to exist"),
                io::ErrorKind::PermissionDenied => Some("choose a directory you may write to"),
                io::ErrorKind::InvalidInput => {
                    Some("the system limits a socket's path to about 100 bytes; take a shorter one")
                }
                _ => None,
            },
            Self::Tls { .. } => Some(
                "`--tls-cert` is a file of certificates in PEM, `--tls-key` the private key of the first",
            ),
            Self::Token(err) => err.hint(),
            Self::Hub(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthenticated_connections_leave_files_for_others() {
        let room = [0, 16, 64, 256, 1024, 1 << 20].map(|it| unauthenticated_for(Some(it)));
        assert_eq!(room, [4, 4, 16, 64, 256, 256]);
        assert_eq!(unauthenticated_for(None), 256);
    }
}
