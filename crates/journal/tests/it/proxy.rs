//! A network that fails: a proxy in front of the database that cuts, stalls and swallows answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What the network does to all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Whole,
    /// What is sent arrives, and the answers do not.
    Deaf,
    /// Nothing arrives, and nobody is told.
    Stalled,
    /// Connections are closed, and new ones refused.
    Cut,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    network: watch::Sender<Network>,
    n_lost: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (network, receiver) = watch::channel(Network::Whole);
        let n_lost = Arc::new(AtomicU32::new(0));
        let task = tokio::spawn(accept(listener, server, receiver, Arc::clone(&n_lost)));
        Self {
            port,
            network,
            n_lost,
            task,
        }
    }

    /// For a while the network is like this, then all connections are cut, and then it is whole again.
    pub(crate) async fn fail(&self, network: Network, duration: Duration) {
        for (network, duration) in [
            (network, duration),
            (Network::Cut, Duration::from_millis(20)),
        ] {
            self.network.send_replace(network);
            tokio::time::sleep(duration).await;
        }
        self.network.send_replace(Network::Whole);
    }

    /// Answers that did not arrive.
    pub(crate) fn n_lost(&self) -> u32 {
        self.n_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: u16,
    network: watch::Receiver<Network>,
    n_lost: Arc<AtomicU32>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (network, n_lost) = (network.clone(), Arc::clone(&n_lost));
        connections.spawn(async move {
            forward(client, server, network, n_lost).await.ok();
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Until one side closes or the network is cut.
async fn forward(
    client: TcpStream,
    server: u16,
    mut network: watch::Receiver<Network>,
    n_lost: Arc<AtomicU32>,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (to, back) = (network.clone(), network.clone());
    let lost = AtomicU32::new(0);
    tokio::select! {
        _ = network.wait_for(|it| *it == Network::Cut) => Ok(()),
        done = pump(&mut from_client, &mut to_server, to, Network::Cut, &lost) => done,
        done = pump(&mut from_server, &mut to_client, back, Network::Deaf, &n_lost) => done,
    }
}

/// Moves bytes unless the network is stalled, and drops them where it is `dropping`.
async fn pump(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    dropping: Network,
    n_dropped: &AtomicU32,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        let is_dropped = *network.borrow() == dropping;
        if is_dropped {
            n_dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        network.wait_for(|it| *it != Network::Stalled).await.ok();
        to.write_all(&buf[..n]).await?;
    }
}
