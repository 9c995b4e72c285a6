//! Removing sessions. The rows that make one visible go at once; its events are swept away in small
//! steps, so that appends do not wait for the removal of a large session.

use model::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::append::key;
use super::checksum::{LOGS, SESSIONS};
use super::commands::forget_done;
use super::logs::LogRow;
use crate::clock::Moment;
use crate::error::Result;
use crate::lease::Lease;
use crate::retention::{Candidate, Removed, Retention};

/// Rows that one step deletes: a few milliseconds.
const SWEEP: i64 = 500;

/// Pages that one step gives back to the disk.
const VACUUM: i64 = 500;

/// Removes the session that a lease is for.
pub(super) fn remove(conn: &Connection, lease: &Lease) -> Result<()> {
    mark_removed(conn, LogRow::fence(conn, lease)?.session)
}

pub(super) fn retain(
    conn: &Connection,
    retention: &Retention,
    now: Timestamp,
    steady: &Moment,
) -> Result<Removed> {
    let victims = retention.victims(candidates(conn, steady)?, now.millis());
    forget_done(conn, now)?;
    let mut removed = Removed::default();
    for victim in victims {
        mark_removed(conn, victim.key)?;
        removed.sessions += 1;
        removed.bytes += victim.bytes;
    }
    Ok(removed)
}

fn mark_removed(conn: &Connection, key: i64) -> Result<()> {
    // Events and frames may be many: `sweep` deletes them later, in small steps.
    for sql in [
        "DELETE FROM sessions WHERE key = ?1",
        "DELETE FROM logs WHERE session = ?1",
        "DELETE FROM runs WHERE session = ?1",
        "DELETE FROM asks WHERE session = ?1",
        "DELETE FROM commands WHERE session = ?1",
        "DELETE FROM done WHERE session = ?1",
        "DELETE FROM natives WHERE session = ?1",
        "INSERT INTO doomed (session) VALUES (?1)",
    ] {
        conn.prepare_cached(sql)?.execute([key])?;
    }
    Ok(())
}

/// All sessions, the longest idle first. A damaged one counts as busy: its times cannot be trusted.
fn candidates(conn: &Connection, steady: &Moment) -> Result<Vec<Candidate<i64>>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {}, {},
                EXISTS (SELECT 1 FROM runs WHERE session = s.key AND last IS NULL)
                OR EXISTS (SELECT 1 FROM commands WHERE session = s.key)
         FROM sessions s JOIN logs l ON l.session = s.key ORDER BY s.activity",
        SESSIONS.list("s."),
        LOGS.list("l.")
    ))?;
    let n_columns = SESSIONS.columns.len() + 1;
    let rows = statement.query_map([], |row| {
        let log = LogRow::read(row, n_columns)?.filter(|_| SESSIONS.is_whole(row, 0));
        let is_held = |it: &LogRow| it.holder(steady).is_some_and(|it| !it.lapsed);
        Ok(Candidate {
            key: row.get(0)?,
            active_at: row.get(7).unwrap_or_default(),
            bytes: log.as_ref().map_or(0, |it| it.bytes),
            busy: row.get(n_columns + LOGS.columns.len() + 1)? || log.as_ref().is_none_or(is_held),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One step of sweeping; whether there is more to do.
pub(super) fn sweep(conn: &Connection) -> Result<bool> {
    let doomed: Option<i64> = conn
        .prepare_cached("SELECT session FROM doomed LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(session) = doomed else {
        return release_pages(conn);
    };
    let mut n_deleted = 0;
    for sql in [
        "DELETE FROM events WHERE key IN
             (SELECT key FROM events WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
        "DELETE FROM frames WHERE key IN
             (SELECT key FROM frames WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
    ] {
        n_deleted += conn.prepare_cached(sql)?.execute(params![
            key(session, 0),
            key(session + 1, 0),
            SWEEP
        ])?;
    }
    // Events and frames are deleted in steps; an empty step means that none is left.
    if n_deleted == 0 {
        conn.prepare_cached("DELETE FROM doomed WHERE session = ?1")?
            .execute([session])?;
    }
    Ok(true)
}

/// Gives free pages back to the disk; whether there are more that can be given.
fn release_pages(conn: &Connection) -> Result<bool> {
    let n_before = free_pages(conn)?;
    // The pragma frees pages while its rows are stepped through, so all of them are read.
    let mut vacuum = conn.prepare_cached(&format!("PRAGMA incremental_vacuum({VACUUM})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    let n_after = free_pages(conn)?;
    // A store from before `auto_vacuum` never shrinks: without progress this would loop.
    Ok(n_after > 0 && n_after < n_before)
}

fn free_pages(conn: &Connection) -> Result<i64> {
    Ok(conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?)
}
