//! Connections to the database: a few, opened when needed, closed after a while without use.
//!
//! A connection goes back into the pool only after a call that ended well. One whose call failed or was
//! dropped may be broken or in the middle of a transaction, and is closed.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::address::Address;
use super::client::{Client, Directness};
use super::fault;
use super::query::{Query, get};
use crate::error::{Fault, Result};

/// A connection that was not used for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Until a connection is made and checked.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Pool {
    address: Address,
    directness: Directness,
    permits: Semaphore,
    /// The last one is used first, so that the others get old.
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Pool {
    pub(super) fn new(address: Address, directness: Directness, n_connections: usize) -> Self {
        Self {
            address,
            directness,
            permits: Semaphore::new(n_connections),
            idle: Mutex::default(),
        }
    }

    /// A connection for one call; waits while all are in use.
    pub(super) async fn get(&self) -> Result<Lent<'_>, Fault> {
        let permit = self.permits.acquire().await.map_err(|_| Fault::Closed)?;
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => Connection::open(&self.address, &self.directness).await?,
        };
        Ok(Lent {
            pool: self,
            connection,
            _permit: permit,
        })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        let now = Instant::now();
        idle.retain(|(connection, since)| !connection.is_closed() && now - *since < IDLE);
        idle.pop().map(|(connection, _)| connection)
    }

    /// Closes what is not in use: the server it leads to is gone, or is not the one that takes writes.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().expect("no panic while holding the lock")
    }
}

/// A connection of the pool during a call; dropped, it is closed.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    connection: Connection,
    _permit: SemaphorePermit<'a>,
}

impl Lent<'_> {
    pub(super) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.connection.client)
    }

    /// Hands it back for the next call.
    pub(super) fn release(self) {
        self.pool.idle().push((self.connection, Instant::now()));
    }
}

/// A client and the task that moves its bytes.
struct Connection {
    client: Arc<Client>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    async fn open(address: &Address, directness: &Directness) -> Result<Self, Fault> {
        let opened = Self::open_and_check(address, directness);
        let opened = timeout(CONNECT_TIMEOUT, opened).await;
        opened.unwrap_or_else(|_| {
            let elapsed = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(Fault::Io(Arc::new(elapsed)))
        })
    }

    async fn open_and_check(address: &Address, directness: &Directness) -> Result<Self, Fault> {
        let (client, mut messages) = address.connect().await.map_err(fault::of_connecting)?;
        let connection = Self {
            client: Arc::new(Client::new(client, directness.clone())),
            // It ends with the client; errors reach those who wait for answers.
            task: tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} }),
        };
        connection.check().await?;
        Ok(connection)
    }

    /// Fails where a write would not be taken, or not be durable when it is answered.
    async fn check(&self) -> Result<(), Fault> {
        let settings = "SELECT current_setting('synchronous_commit'),
            pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";
        let read = async || -> Result<(String, bool)> {
            let row = Query::new(settings).row(&self.client).await?;
            let read = |row: &Row| Ok((get(row, 0)?, get(row, 1)?));
            row.as_ref().map_or_else(|| Err(Fault::Lost.into()), read)
        };
        match read().await {
            Ok((_, true)) => Err(Fault::ReadOnly),
            Ok((commit, _)) if commit == "off" => Err(Fault::refused(
                "`synchronous_commit` is off, so what is stored could be lost",
                "ALTER ROLE … SET synchronous_commit = on",
            )),
            Ok(_) => Ok(()),
            Err(err) => Err(err.into_fault()),
        }
    }

    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A connection that leads nowhere would otherwise wait for the network.
        self.task.abort();
    }
}
