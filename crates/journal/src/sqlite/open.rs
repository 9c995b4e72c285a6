//! Opening a store: its file, its settings, and whether it is whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use model::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::files::Files;
use super::migrate;
use super::witness::{self, SUFFIX, Slot, Witness};
use crate::error::Fault;
use crate::open_note::{LostData, OpenNote};

/// How long a writer waits for another program's transaction; those take milliseconds.
const BUSY: Duration = Duration::from_secs(5);

/// Between two attempts to lock a store.
const AGAIN: Duration = Duration::from_millis(5);

/// A check reads every page: below this it takes tens of milliseconds, above it only what lists and
/// leases live on is checked.
const CHECK_WHOLE_BELOW: u64 = 64 << 20;

/// Kilobytes of the writer's cache, as SQLite counts them: they hold the right edges of some twenty sessions'
/// trees, and the rest is in the cache of the system anyway.
const WRITER_CACHE: i64 = -300;
/// The same for each reader, which goes through a log once.
const READER_CACHE: i64 = -200;

/// A burst may grow the write-ahead log; what is beyond this is released after a checkpoint.
const WAL_BYTES: i64 = 16 << 20;

/// A store that is ready to be written.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) conn: Connection,
    pub(super) files: Files,
    /// Absent where it could not be made: the store works without.
    pub(super) witness: Option<Witness>,
}

pub(super) fn writer(path: &Path, notify: &mut dyn FnMut(OpenNote)) -> Result<Opened, Fault> {
    // SQLite does not wait for other connections while the journal mode changes: one opens at a time.
    let lock = OpenLock::take(path)?;
    if let Some(lost) = find_losses(path, lock.is_new)? {
        notify(OpenNote::Lost(lost));
    }
    migrate::check_alone(path)?;
    let mut conn = connect(path)?;
    // Before the first table, or it has no effect: lets retention give space back to the disk.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // Readers never wait for the writer, and a commit is one append to one file.
    conn.pragma_update(None, "journal_mode", "WAL")?;
    // In WAL mode NORMAL does not sync a commit: an acknowledged event could be lost with the
    // power.
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync leaves the data in the drive's cache; elsewhere this changes nothing.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE)?;
    conn.pragma_update(None, "journal_size_limit", WAL_BYTES)?;
    migrate::migrate(&mut conn, notify)?;
    check(&conn, path)?;
    let witness = Witness::open(path, store_id(&conn)?).ok();
    Ok(Opened {
        files: Files::of(path),
        conn,
        witness,
    })
}

/// Compares the store with its witness, before anything is written. Where something is missing, the files
/// are copied as they are: opening the store for good overwrites what may still be in them.
fn find_losses(path: &Path, is_new: bool) -> Result<Option<LostData>, Fault> {
    let witness = Witness::path(path);
    let Some((id, noted)) = witness::read(&witness) else {
        return Ok(None);
    };
    if noted.is_empty() {
        return Ok(None);
    }
    if is_new {
        let lost = LostData {
            is_gone: true,
            sessions: noted.iter().map(Slot::all_lost).collect(),
            ..LostData::default()
        };
        return Ok(Some(keep_copy(lost, path, &[SUFFIX])));
    }
    let conn = connect(path)?;
    // Closing it would fold the log into the store, and delete it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let sessions = match migrate::version(&conn)? {
        // The file was truncated or replaced by an empty one.
        0 => noted.iter().map(Slot::all_lost).collect(),
        migrate::KNOWN if store_id(&conn)? == id => witness::missing(&conn, &noted)?,
        _ => Vec::new(),
    };
    drop(conn);
    if sessions.is_empty() {
        return Ok(None);
    }
    let lost = LostData {
        sessions,
        ..LostData::default()
    };
    let kept = keep_copy(lost, path, &["", "-wal", SUFFIX]);
    // The loss is reported once.
    fs::remove_file(witness).ok();
    Ok(Some(kept))
}

/// Copies files of a store aside, under one name with the time.
fn keep_copy(mut lost: LostData, path: &Path, suffixes: &[&str]) -> LostData {
    let aside = backup_path(path, LOST);
    for suffix in suffixes {
        let (from, to) = (beside(path, suffix), beside(&aside, suffix));
        match fs::copy(&from, &to) {
            Ok(_) => lost.kept.push(to),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => lost.not_kept = Some(model::error_chain(&err)),
        }
    }
    lost
}

/// What is put between the name of a store and the time, for a copy of one that lost something.
pub(super) const LOST: &str = ".lost-";
/// The same for one that was repaired.
pub(super) const DAMAGED: &str = ".damaged-";

/// A new name beside the store for the copy of the old one.
pub(super) fn backup_path(path: &Path, why: &str) -> PathBuf {
    let now = Timestamp::from(SystemTime::now()).to_string();
    let now: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    beside(path, &format!("{why}{now}"))
}

/// The file of that name and suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn store_id(conn: &Connection) -> Result<i64, Fault> {
    Ok(conn.query_row("SELECT id FROM store", [], |row| row.get(0))?)
}

/// A connection that needs no disk space, not even for shared memory; it has exclusive access to
/// the store while it is open.
pub(super) fn looker(path: &Path) -> Result<Connection, Fault> {
    let began = Instant::now();
    loop {
        let conn = connect(path)?;
        // Two that wait for each other with half of the lock each would do so until both give up.
        conn.busy_timeout(Duration::ZERO)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Before the first look at the store, or it has no effect.
        conn.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        conn.pragma_update(None, "query_only", true)?;
        match migrate::version(&conn) {
            Ok(migrate::KNOWN) => return Ok(conn),
            Ok(found) => {
                let known = migrate::KNOWN;
                return Err(Fault::Newer { found, known });
            }
            // SQLite does not wait for this lock. A writer that tries whether there is room again may hold
            // its own for as long as it waits for ours, so this one waits longer than that.
            Err(Fault::Busy) if began.elapsed() < 2 * BUSY => thread::sleep(AGAIN),
            Err(fault) => return Err(fault),
        }
    }
}

pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let conn = connect(path)?;
    conn.pragma_update(None, "query_only", true)?;
    conn.pragma_update(None, "cache_size", READER_CACHE)?;
    Ok(conn)
}

pub(super) fn connect(path: &Path) -> Result<Connection, Fault> {
    // Without SQLITE_OPEN_URI, a path is never more than a path; one thread uses a connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    // Otherwise a statement with a bound limit is compiled again whenever it is used.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// The right to be the only one that opens a store, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct OpenLock {
    _file: File,
    /// There was no store.
    is_new: bool,
}

impl OpenLock {
    /// Creates the file if necessary, readable only by its owner: the log holds everything the
    /// agent saw.
    fn take(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(dir)?;
        }
        let file = Self::wait(path)?;
        let is_new = match private().create_new(true).open(path) {
            Ok(_) => true,
            // Opening it just to look would be worse than useless: closing it again would end every lock
            // that SQLite holds on it in this process.
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                restrict_access(path)?;
                false
            }
            Err(err) => return Err(err),
        };
        Ok(Self {
            _file: file,
            is_new,
        })
    }

    /// For a store that is there.
    pub(super) fn take_of(path: &Path) -> io::Result<Self> {
        fs::metadata(path)?;
        Ok(Self {
            _file: Self::wait(path)?,
            is_new: false,
        })
    }

    fn wait(path: &Path) -> io::Result<File> {
        let name = beside(path, "-open");
        let file = private().create(true).truncate(false).open(name)?;
        file.lock()?;
        Ok(file)
    }
}

/// How a file that only its owner may read is made.
pub(super) fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn restrict_access(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict_access(_: &Path) -> io::Result<()> {
    Ok(())
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
