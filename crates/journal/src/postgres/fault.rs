//! PostgreSQL's errors in the journal's words.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use tokio_postgres::error::SqlState;

use crate::error::Fault;

/// An error of a statement that was sent.
impl From<tokio_postgres::Error> for Fault {
    fn from(err: tokio_postgres::Error) -> Self {
        match err.code() {
            Some(state) => of_state(state.clone(), err),
            None if is_broken(&err) => Self::Lost,
            // A timeout, or an answer that cannot be read: what became of the statement is not known.
            None => Self::Database(Arc::new(err)),
        }
    }
}

fn of_state(state: SqlState, err: tokio_postgres::Error) -> Fault {
    match state {
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW => {
            Fault::Lost
        }
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED
        | SqlState::TOO_MANY_CONNECTIONS => Fault::Busy,
        // Two nodes made one name at the same moment: the next try finds it.
        SqlState::UNIQUE_VIOLATION => Fault::Busy,
        SqlState::READ_ONLY_SQL_TRANSACTION => Fault::ReadOnly,
        SqlState::DISK_FULL => Fault::Full,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Fault::Corrupt(message(&err)),
        // The transaction was ended because it was left alone for too long, or its connection broke.
        state if state.code().starts_with("08") || state.code() == "25P03" => Fault::Lost,
        _ => Fault::Database(Arc::new(err)),
    }
}

/// An error of a connection that was not made: nothing was sent.
pub(super) fn of_connecting(err: tokio_postgres::Error) -> Fault {
    match err.code() {
        // It starts or stops; another host of the address, or the same one soon, takes the connection.
        None => Fault::Io(Arc::new(err)),
        Some(&SqlState::CANNOT_CONNECT_NOW | &SqlState::ADMIN_SHUTDOWN) => Fault::Io(Arc::new(err)),
        Some(_) => Fault::from(err),
    }
}

impl Fault {
    /// Whether the same statement may succeed a moment later, on this connection or on another.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Lost | Self::Busy | Self::ReadOnly | Self::Io(_))
    }
}

fn is_broken(err: &tokio_postgres::Error) -> bool {
    let is_io = |it: &(dyn std::error::Error + 'static)| it.is::<io::Error>();
    err.is_closed() || err.source().is_some_and(is_io)
}

fn message(err: &tokio_postgres::Error) -> String {
    err.as_db_error()
        .map_or_else(|| err.to_string(), |it| it.message().to_owned())
}
