//! Opening a store: its file, its settings, its version, and whether it is whole.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::Fault;

/// Each step takes the store from the version of its index to the next; a released step never changes.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// How long a writer waits for another program's transaction; those take milliseconds.
const BUSY: Duration = Duration::from_secs(5);

/// A check reads every page: below this it takes tens of milliseconds, above it only what lists and
/// leases live on is checked.
const CHECK_WHOLE_BELOW: u64 = 64 << 20;

pub(super) fn writer(path: &Path) -> Result<Connection, Fault> {
    // SQLite does not wait for others where the mode of the log changes: one opens at a time.
    let _turn = make_private(path)?;
    let mut conn = connect(path)?;
    // Before the first table, or it has no effect: lets retention give space back to the disk.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // Readers never wait for the writer, and a commit is one append to one file.
    conn.pragma_update(None, "journal_mode", "WAL")?;
    // In WAL mode NORMAL does not sync a commit: an acknowledged event could be gone with the power.
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync leaves the data in the drive's cache; elsewhere this changes nothing.
    conn.pragma_update(None, "fullfsync", true)?;
    // So many kilobytes hold the right edges of some twenty sessions' trees, and the rest is in the cache
    // of the system anyway.
    conn.pragma_update(None, "cache_size", -300)?;
    // A burst may grow the log of changes; what is left of it after a checkpoint is given back.
    conn.pragma_update(None, "journal_size_limit", 16 << 20)?;
    migrate(&mut conn)?;
    check(&conn, path)?;
    Ok(conn)
}

pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let conn = connect(path)?;
    conn.pragma_update(None, "query_only", true)?;
    conn.pragma_update(None, "cache_size", -200)?;
    Ok(conn)
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    // Without SQLITE_OPEN_URI, a path is never more than a path; one thread uses a connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    // Otherwise a statement with a bound limit is compiled again whenever it is used.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// The log holds everything the agent saw: nobody but its owner may read it. Returns the right to be the
/// only one that opens it, which ends when it is dropped.
fn make_private(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(dir)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push("-open");
    let turn = private().create(true).truncate(false).open(name)?;
    turn.lock()?;
    match private().create_new(true).open(path) {
        Ok(_) => (),
        // Opening it just to look would be worse than useless: closing it again would end every lock
        // that SQLite holds on it in this process.
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => tighten(path)?,
        Err(err) => return Err(err),
    }
    Ok(turn)
}

/// How a file that only its owner may read is made.
fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn tighten(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn tighten(_: &Path) -> io::Result<()> {
    Ok(())
}

fn migrate(conn: &mut Connection) -> Result<(), Fault> {
    let known = MIGRATIONS.len() as i64;
    // Two programs may open a new store at once: the version is read where only one can be.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(Fault::Newer { found, known });
    }
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        tx.execute_batch(step)?;
    }
    tx.pragma_update(None, "user_version", known)?;
    Ok(tx.commit()?)
}

fn check(conn: &Connection, path: &Path) -> Result<(), Fault> {
    if fs::metadata(path)?.len() < CHECK_WHOLE_BELOW {
        return check_one(conn, "PRAGMA quick_check(1)");
    }
    for table in ["sessions", "logs", "runs", "asks", "commands"] {
        check_one(conn, &format!("PRAGMA quick_check({table})"))?;
    }
    Ok(())
}

fn check_one(conn: &Connection, check: &str) -> Result<(), Fault> {
    let word: String = conn.query_row(check, [], |row| row.get(0))?;
    if word == "ok" {
        Ok(())
    } else {
        Err(Fault::Corrupt(word))
    }
}
