//! Looking at a store without changing it: its structure, every row, and what its witness remembers.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::SessionId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row};

use super::append::seq;
use super::checksum::{
    ASKS, COMMANDS, EPOCHS, EVENTS, FRAMES, LOGS, NATIVES, RUNS, SESSIONS, Table,
};
use super::logs::LogRow;
use super::witness::{self, Witness};
use super::{log, migrate, open, runs};
use crate::clock::{Clock, SystemClock};
use crate::entry::Read;
use crate::error::{Damage, Fault};
use crate::report::{DamagedRow, Report};

/// SQLite's messages that are kept.
const MAX_MESSAGES: u32 = 20;

pub(super) fn examine(path: &Path) -> Result<Report, Fault> {
    let conn = open_read_only(path)?;
    let mut report = Report {
        bytes: fs::metadata(path)?.len(),
        wal_bytes: fs::metadata(open::beside(path, "-wal")).map_or(0, |it| it.len()),
        version: migrate::version(&conn)?,
        known: migrate::KNOWN,
        aside: backups(path),
        ..Report::default()
    };
    // A file in which no store was made yet has no tables.
    if report.version == 0 {
        return Ok(report);
    }
    report.structure = structure(&conn);
    // Rows of other versions have other columns, or no checksums.
    if report.version != report.known {
        return Ok(report);
    }
    let mut sessions = ExaminedSessions::read(&conn);
    sessions.check(&conn);
    report.sessions = sessions.keys.len() as u64;
    report.events = sessions.n_events;
    // Damaged tables are reported above.
    let now = SystemClock::new().steady();
    report.open_runs = runs::open_runs(&conn, None, &now).unwrap_or_default();
    report.damaged = sessions.damaged;
    report.structure.extend(sessions.unreadable);
    DamagedRow::sort(&mut report.damaged);
    report.missing = match witness::read(&Witness::path(path)) {
        Some((id, noted)) if open::store_id(&conn)? == id => Some(witness::missing(&conn, &noted)?),
        _ => None,
    };
    Ok(report)
}

/// A connection that leaves everything as it is.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, Fault> {
    let conn = open::reader(path)?;
    // Otherwise closing it would fold the log of changes into the store, and delete it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

fn structure(conn: &Connection) -> Vec<String> {
    let messages = || -> rusqlite::Result<Vec<String>> {
        let mut statement = conn.prepare(&format!("PRAGMA integrity_check({MAX_MESSAGES})"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    match messages() {
        Ok(messages) if messages == ["ok"] => Vec::new(),
        Ok(messages) => messages,
        Err(err) => vec![err.to_string()],
    }
}

/// The copies beside the store.
fn backups(path: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    let is_copy = |it: &String| {
        let rest = it.strip_prefix(&*name).unwrap_or_default();
        let of = |why| rest.strip_prefix(why);
        of(open::LOST)
            .or_else(|| of(open::DAMAGED))
            // The `-wal` and the witness of a copy are part of it, not copies.
            .is_some_and(|it| !it.contains('-'))
    };
    let mut copies: Vec<PathBuf> = names.filter(is_copy).map(|it| dir.join(it)).collect();
    copies.sort();
    copies
}

/// The sessions of a store and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct ExaminedSessions {
    /// By key, in order: its id, where that is known.
    pub(super) keys: Vec<(i64, Option<SessionId<'static>>)>,
    pub(super) damaged: Vec<DamagedRow>,
    /// Tables that cannot be gone through to their end.
    unreadable: Vec<String>,
    n_events: u64,
}

impl ExaminedSessions {
    pub(super) fn read(conn: &Connection) -> Self {
        let mut sessions = Self::default();
        let mut found = HashMap::new();
        sessions.each(conn, &SESSIONS, |row, is_whole| {
            if let Ok(key) = row.get::<_, i64>(0) {
                let id = row.get::<_, String>(1).ok().filter(|_| is_whole);
                found.insert(key, id.map(SessionId::new));
            }
        });
        // One whose entry cannot be read still has a log.
        sessions.each(conn, &LOGS, |row, _| {
            if let Ok(key) = row.get::<_, i64>(0) {
                found.entry(key).or_insert(None);
            }
        });
        // `check` goes through the same tables and reports them.
        sessions.unreadable.clear();
        sessions.keys = found.into_iter().collect();
        sessions.keys.sort_by_key(|it| it.0);
        sessions
    }

    /// Goes through every row.
    pub(super) fn check(&mut self, conn: &Connection) {
        for (table, damage) in TABLES {
            let mut damaged = Vec::new();
            self.each(conn, table, |row, is_whole| {
                if !is_whole {
                    damaged.push(damage(row));
                }
            });
            for (key, row) in damaged {
                let session = self.name(key);
                self.damaged.push(DamagedRow { session, row });
            }
        }
        // It belongs to no session; all that counts is whether it can be read.
        self.each(conn, &EPOCHS, |_, _| ());
        for (key, id) in self.keys.clone() {
            let id = id.unwrap_or_else(|| self.name(key));
            match head(conn, key) {
                Ok(head) => self.check_log(conn, key, &id, head),
                Err(fault) => self.unreadable.push(format!("the log of `{id}`: {fault}")),
            }
        }
    }

    fn check_log(&mut self, conn: &Connection, key: i64, id: &SessionId<'static>, head: u64) {
        let mut after = 0;
        while after < head {
            let read = Read::page(after);
            let Ok(page) = log::page(conn, id, key, head, read) else {
                let row = Damage::Log;
                let session = id.clone();
                return self.damaged.push(DamagedRow { session, row });
            };
            self.n_events += page.events.len() as u64;
            let damaged = page.events.iter().filter(|it| it.is_damaged);
            self.damaged.extend(damaged.map(|it| DamagedRow {
                session: id.clone(),
                row: Damage::Event(it.seq),
            }));
            after = page.next;
        }
    }

    fn name(&self, key: i64) -> SessionId<'static> {
        let known = self.keys.binary_search_by_key(&key, |it| it.0);
        let known = known.ok().and_then(|it| self.keys[it].1.clone());
        known.unwrap_or_else(|| SessionId::new(format!("damaged-{key}")))
    }

    /// Goes through the rows of a table as far as that is possible.
    fn each(&mut self, conn: &Connection, table: &Table, mut take: impl FnMut(&Row<'_>, bool)) {
        let mut go = || -> rusqlite::Result<()> {
            let sql = format!("SELECT {} FROM {}", table.list(""), table.name);
            let mut statement = conn.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                take(row, table.is_whole(row, 0));
            }
            Ok(())
        };
        if let Err(err) = go() {
            self.unreadable.push(format!("table {}: {err}", table.name));
        }
    }
}

/// The session and the name of a row; events are checked with their logs.
type RowName = fn(&Row<'_>) -> (i64, Damage);

const TABLES: [(&Table, RowName); 7] = [
    (&SESSIONS, |row| (int(row, 0), Damage::Entry)),
    (&LOGS, |row| (int(row, 0), Damage::Log)),
    (&FRAMES, |row| {
        let key = int(row, 0);
        (key >> super::append::SEQ_BITS, Damage::Frame(seq(key)))
    }),
    (&RUNS, |row| (int(row, 0), Damage::Run(int(row, 1) as u64))),
    (&ASKS, |row| (int(row, 0), Damage::Ask(int(row, 1) as u64))),
    (&COMMANDS, |row| {
        (int(row, 0), Damage::Command(int(row, 1) as u64))
    }),
    (&NATIVES, |row| (int(row, 1), Damage::Native)),
];

fn int(row: &Row<'_>, column: usize) -> i64 {
    row.get(column).unwrap_or_default()
}

/// The last event of a session: from its log row, or if that is damaged, the last event that exists.
pub(super) fn head(conn: &Connection, key: i64) -> Result<u64, Fault> {
    let sql = format!("SELECT {} FROM logs WHERE session = ?1", LOGS.list(""));
    let log = conn
        .prepare_cached(&sql)
        .and_then(|mut it| it.query_row([key], |row| LogRow::read(row, 0)));
    if let Ok(Some(log)) = log {
        return Ok(log.head);
    }
    let sql = format!(
        "SELECT max(key) FROM {} WHERE key > ?1 AND key < ?2",
        EVENTS.name
    );
    let keys = [super::append::key(key, 0), super::append::key(key + 1, 0)];
    let last: Option<i64> = conn.query_row(&sql, keys, |row| row.get(0))?;
    Ok(last.map_or(0, seq))
}
