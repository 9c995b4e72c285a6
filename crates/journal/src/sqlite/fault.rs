//! SQLite's errors in the journal's words.

use std::io;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::error::{Error, Fault};

impl From<rusqlite::Error> for Fault {
    fn from(err: rusqlite::Error) -> Self {
        // There is no room for what the programs that use a store share.
        let has_no_room = err
            .sqlite_error()
            .is_some_and(|it| it.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        match err.sqlite_error_code() {
            _ if has_no_room => Self::Full,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt(err.to_string())
            }
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Io(Arc::new(err)),
            _ => Self::Database(Arc::new(err)),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(err: rusqlite::Error) -> Self {
        Self::Storage(err.into())
    }
}

impl From<io::Error> for Fault {
    fn from(err: io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io(Arc::new(err)),
        }
    }
}

impl Fault {
    /// Whether the transaction as a whole is in doubt, and not just the statement that failed.
    pub(super) fn spoils_transaction(&self) -> bool {
        !matches!(self, Self::Database(_))
    }
}
