//! A connection as the statements see it, with those that the server knows already.
//!
//! A statement that the server has planned once takes a quarter of its time. Only a direct connection can keep
//! them: behind a pooler in transaction mode the next statement may go to another server process.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Statement};

/// Whether connections lead to the database itself; nobody says so before it is found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Directness(Arc<Signs>);

#[derive(Debug, Default)]
struct Signs {
    /// A node hears itself.
    can_listen: AtomicBool,
    /// A statement was forgotten by the server, so there is a pooler whatever else it lets through.
    has_forgotten: AtomicBool,
}

impl Directness {
    pub(super) fn set_can_listen(&self, can_listen: bool) {
        self.0.can_listen.store(can_listen, Ordering::Relaxed);
    }

    fn is_direct(&self) -> bool {
        let Signs {
            can_listen,
            has_forgotten,
        } = &*self.0;
        can_listen.load(Ordering::Relaxed) && !has_forgotten.load(Ordering::Relaxed)
    }
}

pub(super) struct Client {
    client: tokio_postgres::Client,
    directness: Directness,
    /// The statements that are prepared on this connection; there are a few, so none is ever dropped.
    prepared: Mutex<HashMap<String, Statement>>,
}

impl Client {
    pub(super) fn new(client: tokio_postgres::Client, directness: Directness) -> Self {
        Self {
            client,
            directness,
            prepared: Mutex::default(),
        }
    }

    /// Runs a statement that is used all the time, prepared where that is possible.
    pub(super) async fn query_hot(
        &self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        if !self.directness.is_direct() {
            return self.client.query_typed(sql, params).await;
        }
        let values: Vec<_> = params.iter().map(|it| it.0).collect();
        let statement = self.prepare(sql, params).await?;
        match self.client.query(&statement, &values).await {
            // There is a pooler in between after all. The statement was not run.
            Err(err) if is_unprepared(&err) => {
                self.directness
                    .0
                    .has_forgotten
                    .store(true, Ordering::Relaxed);
                self.client.query_typed(sql, params).await
            }
            answer => answer,
        }
    }

    async fn prepare(
        &self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Statement, Error> {
        if let Some(statement) = self.prepared().get(sql) {
            return Ok(statement.clone());
        }
        let types: Vec<_> = params.iter().map(|it| it.1.clone()).collect();
        let statement = self.client.prepare_typed(sql, &types).await?;
        self.prepared().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn prepared(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.prepared
            .lock()
            .expect("no panic while holding the lock")
    }
}

impl Deref for Client {
    type Target = tokio_postgres::Client;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

fn is_unprepared(err: &Error) -> bool {
    let states = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
    ];
    err.code().is_some_and(|it| states.contains(it))
}
