//! Bringing a store of an earlier version up to this one.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::checksum::{self, COMMANDS, LOGS, SESSIONS, TABLES, Table};
use super::open;
use crate::error::Fault;
use crate::open_note::OpenNote;

/// What takes the store from the version of its index to the next; a released step never changes.
struct Migration {
    sql: &'static str,
    /// The tables whose rows get checksums, or other ones because they have more columns.
    seals: &'static [&'static Table],
}

const STEPS: &[Migration] = &[
    Migration {
        sql: include_str!("schema.sql"),
        seals: &[],
    },
    Migration {
        sql: include_str!("sums.sql"),
        seals: &TABLES,
    },
    Migration {
        sql: include_str!("activity.sql"),
        seals: &TABLES,
    },
    Migration {
        sql: include_str!("ids.sql"),
        seals: &[&LOGS, &COMMANDS],
    },
    Migration {
        sql: include_str!("home.sql"),
        seals: &[&SESSIONS],
    },
];

pub(super) const KNOWN: i64 = STEPS.len() as i64;

pub(super) fn version(conn: &Connection) -> Result<i64, Fault> {
    Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// A process that has the older store open would continue to write old rows, so an upgrade needs
/// exclusive access.
pub(super) fn check_alone(path: &Path) -> Result<(), Fault> {
    let conn = open::connect(path)?;
    let found = version(&conn)?;
    if found == 0 || found >= KNOWN {
        return Ok(());
    }
    // It would itself be in the way of the exclusive lock.
    drop(conn);
    check_unused(path)
}

/// Fails when the store is in use.
pub(super) fn check_unused(path: &Path) -> Result<(), Fault> {
    let conn = open::connect(path)?;
    // Closing it would fold the log of changes into the store, and delete it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    // SQLite takes the lock with the first read.
    match version(&conn) {
        Err(Fault::Busy) => Err(Fault::InUse),
        found => found.map(drop),
    }
}

/// All steps are one transaction: a store is of one version or of another.
pub(super) fn migrate(
    conn: &mut Connection,
    notify: &mut dyn FnMut(OpenNote),
) -> Result<(), Fault> {
    // A read needs no space on a full disk; a transaction would.
    if version(conn)? == KNOWN {
        return Ok(());
    }
    // Two programs may open a new store at once: read the version again under the write lock.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&tx)?;
    let n_done = usize::try_from(found).ok();
    let Some(steps) = n_done.and_then(|it| STEPS.get(it..)) else {
        let known = KNOWN;
        return Err(Fault::Newer { found, known });
    };
    for step in steps {
        tx.execute_batch(step.sql)?;
    }
    let mut progress = |done, total| {
        // A new store passes through all steps, too, but that is no upgrade.
        if found > 0 {
            notify(OpenNote::Upgrading { done, total });
        }
    };
    checksum::seal_all(&tx, &tables_to_seal(steps), &mut progress)?;
    tx.pragma_update(None, "user_version", KNOWN)?;
    tx.commit()?;
    // The store's id must survive the loss of the write-ahead log: without it, the witness cannot be matched.
    Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

/// Each table once, however many steps change it.
fn tables_to_seal(steps: &[Migration]) -> Vec<&'static Table> {
    let is_changed = |table: &&Table| {
        let mut changed = steps.iter().flat_map(|step| step.seals);
        changed.any(|it| it.name == table.name)
    };
    TABLES.into_iter().filter(is_changed).collect()
}
