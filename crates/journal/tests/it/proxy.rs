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
    /// About every twelfth answer is swallowed, and its connection is cut.
    Flaky,
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
    answers: Arc<Answers>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Answers {
    n_sent: AtomicU32,
    n_lost: AtomicU32,
}

impl Proxy {
    pub(crate) async fn start(server: u16, network: Network) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (network, receiver) = watch::channel(network);
        let answers = Arc::<Answers>::default();
        let task = tokio::spawn(accept(listener, server, receiver, Arc::clone(&answers)));
        Self {
            port,
            network,
            answers,
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
        self.answers.n_lost.load(Ordering::Relaxed)
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
    answers: Arc<Answers>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (network, answers) = (network.clone(), Arc::clone(&answers));
        connections.spawn(async move {
            forward(client, server, network, answers).await.ok();
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Until one side closes or the network is cut.
async fn forward(
    client: TcpStream,
    server: u16,
    mut network: watch::Receiver<Network>,
    answers: Arc<Answers>,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (to, back) = (network.clone(), network.clone());
    tokio::select! {
        _ = network.wait_for(|it| *it == Network::Cut) => Ok(()),
        done = send(&mut from_client, &mut to_server, to) => done,
        done = answer(&mut from_server, &mut to_client, back, &answers) => done,
    }
}

async fn send(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut buf).await?;
        network.wait_for(|it| *it != Network::Stalled).await.ok();
        to.write_all(&buf[..n]).await?;
        if n == 0 {
            return Ok(());
        }
    }
}

async fn answer(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    answers: &Answers,
) -> io::Result<()> {
    let mut buf = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut buf).await?;
        let now = *network.borrow();
        // Not each twelfth: a try may take that many answers, and would never come through.
        let n_sent = answers.n_sent.fetch_add(1, Ordering::Relaxed);
        let is_unlucky = n_sent.wrapping_mul(0x9E37_79B1) >> 16 & 0xFF < 21;
        match now {
            Network::Flaky if is_unlucky => {
                answers.n_lost.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Network::Deaf if n > 0 => {
                answers.n_lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            _ => (),
        }
        network.wait_for(|it| *it != Network::Stalled).await.ok();
        to.write_all(&buf[..n]).await?;
        if n == 0 {
            return Ok(());
        }
    }
}
