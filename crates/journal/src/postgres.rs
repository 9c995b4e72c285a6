//! The journal in PostgreSQL, so that many nodes share sessions.
//!
//! Nothing of it has to live in a connection's state but LISTEN, which has a connection of its own: it works
//! behind a pooler in transaction mode. Leases are judged by the database's clock. Every write carries an id, so a
//! call that lost its answer is tried again by itself.

mod address;
mod append;
mod call;
mod checksum;
mod client;
mod commands;
mod config;
mod effects;
mod fault;
mod follow;
mod hints;
mod leases;
mod log;
mod migrate;
mod password;
mod pool;
mod query;
mod responsive;
mod retention;
mod runs;
mod sessions;
mod text;
mod tls;

use std::future::ready;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId};
use tokio::task::JoinHandle;

use self::client::{Client, Directness};
use self::hints::Hints;
use self::pool::Pool;
use self::responsive::ResponsiveRuns;
use crate::command::{Command, CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
use crate::entry::{Batch, Page, Read, StoredFrame};
use crate::error::{Error, Fault, Result};
use crate::journal::{Journal, Reply};
use crate::lease::{Lease, Owner, Takeover};
use crate::node::Node;
use crate::retention::{Removed, Retention};
use crate::run::{OpenRun, Overview, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery};
use crate::truncate::Truncate;
use crate::watch::{Change, Scope, Watch};
use crate::write_id::WriteId;

pub use self::address::AddressError;
pub use self::config::{PostgresAddress, PostgresConfig};

/// A journal in a database that other nodes use too.
#[derive(Debug)]
pub struct Postgres {
    pool: Arc<Pool>,
    hints: Arc<Hints>,
    responsive: ResponsiveRuns,
    cut: Option<Truncate>,
    tasks: [JoinHandle<()>; 2],
}

impl Postgres {
    /// Connects, and makes the schema or brings it up to date. Needs a tokio runtime for as long as it lives.
    pub async fn open(config: PostgresConfig) -> Result<Self, Fault> {
        let directness = Directness::default();
        let address = config.address.clone();
        let pool = Pool::new(address, directness.clone(), config.n_connections);
        let pool = Arc::new(pool);
        let lent = pool.get().await?;
        migrate::migrate(&lent.client())
            .await
            .map_err(Error::into_fault)?;
        lent.release();
        let hints = Arc::new(Hints::new());
        // What is found out of another address says nothing of this one.
        let (listen, directness) = match config.listen {
            Some(listen) => (listen, Directness::default()),
            None => (config.address, directness),
        };
        let follow = follow::follow(Arc::clone(&hints), Arc::clone(&pool), listen, directness);
        Ok(Self {
            tasks: [
                tokio::spawn(hints::send(Arc::clone(&hints), Arc::clone(&pool))),
                tokio::spawn(follow),
            ],
            pool,
            hints,
            responsive: ResponsiveRuns::default(),
            cut: config.cut,
        })
    }

    /// Makes the schema and the roles, as the owner of the database; what is there already stays.
    pub async fn init(config: &PostgresConfig) -> Result<(), Fault> {
        let pool = Pool::new(config.address.clone(), Directness::default(), 1);
        let lent = pool.get().await?;
        let client = lent.client();
        migrate::migrate(&client).await.map_err(Error::into_fault)?;
        client.batch_execute(migrate::ROLES).await?;
        Ok(())
    }

    /// The statements of [`Self::init`] for an empty database, for those who want to read or run them by hand.
    pub fn init_sql() -> String {
        migrate::sql()
    }

    /// A call that is small, as most are.
    fn call<'a, T: Send + 'a>(
        &'a self,
        work: impl Fn(Arc<Client>) -> Reply<'a, T> + Send + Sync + 'a,
    ) -> Reply<'a, T> {
        Box::pin(call::call(&self.pool, 0, work))
    }

    async fn append_batch(&self, lease: &Lease, mut batch: Batch) -> Result<Range<u64>> {
        batch.prepare(self.cut)?;
        let is_responsive = self.responsive.contains(lease);
        let appended = call::call(&self.pool, batch.length(), |client| {
            let batch = &batch;
            Box::pin(async move { append::append(&client, lease, batch, is_responsive).await })
        });
        let appended = appended.await?;
        self.responsive.note(lease, &batch);
        let session = lease.session.clone();
        match appended.stored {
            Some((key, now)) => {
                let change = Change::Log(session, batch.entries, now);
                self.hints.notify(Some(key), change);
            }
            // The time of the events is not known, so they are read from the store.
            None => self.hints.notify(None, Change::ForeignLog(session, None)),
        }
        Ok(appended.numbers)
    }

    /// What a step has removed whose answer was lost is not counted.
    async fn retain_all(&self, retention: Retention) -> Result<Removed> {
        let mut removed = Removed::default();
        // Without a limit nothing goes, and no log has to be locked to find that out.
        let mut after = (retention != Retention::default()).then_some(i64::MIN);
        while let Some(place) = after {
            let step = |client: Arc<Client>| -> Reply<'_, _> {
                Box::pin(async move { retention::step(&client, &retention, place).await })
            };
            let step = call::call(&self.pool, 0, step).await?;
            removed.sessions += step.removed.sessions;
            removed.bytes += step.removed.bytes;
            after = step.next;
        }
        self.hints.watchers.notify_all();
        self.sweep().await?;
        Ok(removed)
    }

    /// Gives back what removed sessions took, in small steps.
    async fn sweep(&self) -> Result<()> {
        let sweep = |client: Arc<Client>| -> Reply<'_, bool> {
            Box::pin(async move { retention::sweep(&client).await })
        };
        while call::call(&self.pool, 0, sweep).await? {}
        let forget = |client: Arc<Client>| -> Reply<'_, bool> {
            Box::pin(async move { retention::forget_done(&client).await })
        };
        while call::call(&self.pool, 0, forget).await? {}
        Ok(())
    }

    async fn remove_session(&self, lease: &Lease) -> Result<()> {
        let is_retry = std::sync::atomic::AtomicBool::new(false);
        let remove = |client: Arc<Client>| -> Reply<'_, Option<i64>> {
            let is_retry = is_retry.swap(true, std::sync::atomic::Ordering::Relaxed);
            Box::pin(async move {
                match retention::remove(&client, lease).await {
                    // The first try has removed it, and its answer was lost.
                    Err(Error::NoSession { .. }) if is_retry => Ok(None),
                    removed => removed.map(Some),
                }
            })
        };
        let key = call::call(&self.pool, 0, remove).await?;
        self.hints
            .notify(key, Change::Removed(lease.session.clone()));
        self.sweep().await
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Journal for Postgres {
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        owner: &'a Owner,
        ttl: Duration,
        takeover: Takeover,
    ) -> Reply<'a, Lease> {
        Box::pin(async move {
            let (id, takeover) = (WriteId::new(), &takeover);
            let (lease, key) = call::call(&self.pool, 0, |client| {
                Box::pin(async move {
                    leases::acquire(&client, session, owner, ttl, takeover, id).await
                })
            })
            .await?;
            let change = Change::Commands(lease.session.clone());
            self.hints.notify(Some(key), change);
            Ok(lease)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        self.call(move |client| Box::pin(async move { leases::renew(&client, lease, ttl).await }))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        Box::pin(async move {
            let release = |client: Arc<Client>| -> Reply<'_, _> {
                Box::pin(async move { leases::release(&client, lease).await })
            };
            let key = call::call(&self.pool, 0, release).await?;
            self.responsive.forget(lease);
            let change = Change::Commands(lease.session.clone());
            self.hints.notify(key, change);
            Ok(())
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, batch: Batch) -> Reply<'a, Range<u64>> {
        Box::pin(self.append_batch(lease, batch))
    }

    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page> {
        // Followers at the end of a log do not cost a read of the store.
        let id = session.clone().into_owned();
        if let Some(page) = self.hints.watchers.page(&id, read) {
            return Box::pin(ready(Ok(page)));
        }
        self.call(move |client| Box::pin(async move { log::read(&client, session, read).await }))
    }

    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>> {
        self.call(move |client| Box::pin(async move { log::frames(&client, session, read).await }))
    }

    fn watch(&self, scope: Scope) -> Watch {
        let watch = self.hints.watchers.watch(scope);
        self.hints.is_watched.notify_one();
        watch
    }

    fn command<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        id: WriteId,
        order: CommandBody,
    ) -> Reply<'a, u64> {
        Box::pin(async move {
            let order = &order;
            let added = call::call(&self.pool, order.length(), |client| {
                Box::pin(async move { commands::command(&client, session, id, order).await })
            });
            let added = added.await?;
            let change = Change::Commands(session.clone().into_owned());
            self.hints.notify(Some(added.session), change);
            Ok(added.number)
        })
    }

    fn enqueue(&self, target: PromptTarget, id: WriteId, prompt: Bytes) -> Reply<'_, Enqueued> {
        Box::pin(async move {
            let order = CommandBody::Prompt(prompt);
            let (added, enqueued) = call::call(&self.pool, order.length(), |client| {
                let (target, order) = (&target, &order);
                Box::pin(async move { commands::enqueue(&client, target, id, order).await })
            })
            .await?;
            let change = Change::Commands(target.session().clone());
            self.hints.notify(Some(added.session), change);
            Ok(enqueued)
        })
    }

    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        self.call(move |client| {
            Box::pin(async move { commands::commands(&client, session, after).await })
        })
    }

    fn find_command(&self, id: WriteId) -> Reply<'_, Option<CommandStatus>> {
        self.call(move |client| Box::pin(async move { commands::find_command(&client, id).await }))
    }

    fn pending<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<SessionId<'static>>> {
        self.call(move |client| Box::pin(async move { commands::pending(&client, home).await }))
    }

    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        Box::pin(self.remove_session(lease))
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Removed> {
        Box::pin(self.retain_all(retention))
    }

    fn create(&self, session: NewSession) -> Reply<'_, Session> {
        Box::pin(async move {
            let id = WriteId::new();
            let created = call::call(&self.pool, 0, |client| {
                let session = &session;
                Box::pin(async move { sessions::create(&client, session, id).await })
            });
            let (session, key) = created.await?;
            let change = Change::Commands(session.id.clone());
            self.hints.notify(Some(key), change);
            Ok(session)
        })
    }

    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.call(move |client| Box::pin(async move { sessions::find(&client, session).await }))
    }

    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<Overview>> {
        self.call(move |client| {
            Box::pin(async move { runs::overview(&client, session, n_runs).await })
        })
    }

    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.call(move |client| {
            Box::pin(async move { sessions::find_native(&client, native).await })
        })
    }

    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing> {
        Box::pin(async move {
            let list = |client: Arc<Client>| -> Reply<'_, Listing> {
                let (query, after) = (&query, after.as_ref());
                Box::pin(async move { sessions::list(&client, query, after, limit).await })
            };
            call::call(&self.pool, 0, list).await
        })
    }

    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()> {
        Box::pin(async move {
            let title = title.as_str();
            let key = call::call(&self.pool, title.len(), |client| {
                Box::pin(async move { sessions::rename(&client, session, title).await })
            });
            let change = Change::Commands(session.clone().into_owned());
            self.hints.notify(Some(key.await?), change);
            Ok(())
        })
    }

    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>> {
        self.call(move |client| {
            Box::pin(async move { runs::runs(&client, session, before, limit).await })
        })
    }

    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>> {
        self.call(move |client| Box::pin(async move { runs::find_run(&client, run).await }))
    }

    fn open_runs<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<OpenRun>> {
        self.call(move |client| Box::pin(async move { runs::open_runs(&client, home).await }))
    }

    fn asks<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<WaitingAsk>> {
        self.call(move |client| Box::pin(async move { commands::asks(&client, home).await }))
    }

    fn settle<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        seq: u64,
        id: WriteId,
        answer: Bytes,
    ) -> Reply<'a, u64> {
        Box::pin(async move {
            let added = call::call(&self.pool, answer.len(), |client| {
                let answer = answer.clone();
                Box::pin(async move { commands::settle(&client, session, seq, id, answer).await })
            });
            let added = added.await?;
            let change = Change::Commands(session.clone().into_owned());
            self.hints.notify(Some(added.session), change);
            Ok(added.number)
        })
    }
}
