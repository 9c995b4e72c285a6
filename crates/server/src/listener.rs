//! What connections come in by: a TCP port, or a Unix socket that its owner alone can open.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::config::{Error, Listen};

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// Bytes both ways.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

impl Listener {
    pub(crate) async fn bind(listen: &Listen) -> Result<Self, Error> {
        match listen {
            Listen::Tcp { address, .. } => {
                let bound = TcpListener::bind(address).await;
                let failed = |source| Error::Listen {
                    address: *address,
                    source,
                };
                bound.map(Self::Tcp).map_err(failed)
            }
            Listen::Unix(path) => {
                let bound = UnixSocket::bind(path).map(Self::Unix);
                let failed = |source| Error::Socket {
                    path: path.clone(),
                    source,
                };
                bound.map_err(failed)
            }
        }
    }

    /// The address of a port, with its real number.
    pub(crate) fn address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    /// The next connection, and where it comes from if that is known.
    pub(crate) async fn accept(&self) -> io::Result<(Box<dyn Connection>, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Events are small and should be sent without delay.
                stream.set_nodelay(true).ok();
                Ok((Box::new(stream), Some(peer)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// A socket in the file system, which is removed with it.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The file that was made.
    inode: Option<u64>,
}

impl UnixSocket {
    fn bind(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        // Two servers that find the same dead socket must not both replace it.
        let folder = File::open(folder.unwrap_or(Path::new(".")))?;
        folder.lock()?;
        remove_dead(path)?;
        // From the start: with a later `chmod` others could connect for a moment.
        let before = umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        umask(before);
        Ok(Self {
            listener: bound?,
            inode: inode(path),
            path: path.to_owned(),
        })
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Somebody may have put another one in its place.
        if self.inode.is_some() && inode(&self.path) == self.inode {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|it| it.ino())
}

/// Removes the socket of a server that is gone.
fn remove_dead(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(err) => return Err(err),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(_) => (),
    }
    match BlockingStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(err) if err.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(err) => Err(err),
    }
}
