//! Runs: those of a session, and open ones.

use model::{Outcome, RunId, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::checksum::{LOGS, RUNS};
use super::commands;
use super::logs::LogRow;
use super::sessions::{self, find_key};
use crate::clock::Moment;
use crate::error::Result;
use crate::node::Node;
use crate::run::{OpenRun, Overview, Run, RunEnd};

/// The columns [`run`] reads: those of [`RUNS`], then the session's name.
const COLUMNS: &str =
    "r.session, r.first, r.run, r.started_at, r.last, r.ended_at, r.outcome, r.heard, r.activity, r.sum,
    s.id";

pub(super) fn runs(
    conn: &Connection,
    session: &SessionId<'static>,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<Run>> {
    let session = find_key(conn, session)?;
    let before = before.and_then(|it| i64::try_from(it).ok());
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.key = r.session
         WHERE r.session = ?1 AND r.first < ?2 ORDER BY r.first DESC LIMIT ?3"
    ))?;
    let rows = statement.query_map(params![session, before.unwrap_or(i64::MAX), limit], run)?;
    undamaged(rows)
}

/// Skips damaged rows; the events of those runs are still in the log.
fn undamaged<T>(rows: impl Iterator<Item = rusqlite::Result<Option<T>>>) -> Result<Vec<T>> {
    Ok(rows
        .filter_map(Result::transpose)
        .collect::<rusqlite::Result<_>>()?)
}

/// Everything about a session, read in one transaction.
pub(super) fn overview(
    conn: &Connection,
    session: &SessionId<'static>,
    n_runs: u32,
) -> Result<Option<Overview>> {
    // Otherwise a run could end between two queries, and the parts would contradict each other.
    let moment = conn.unchecked_transaction()?;
    let Some(found) = sessions::find(&moment, session)? else {
        return Ok(None);
    };
    Ok(Some(Overview {
        session: found,
        runs: runs(&moment, session, None, n_runs)?,
        commands: commands::commands(&moment, session, 0)?,
        asks: commands::asks(&moment, Some(session), None)?,
    }))
}

pub(super) fn find_run(conn: &Connection, id: &RunId<'static>) -> Result<Option<Run>> {
    Ok(conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM runs r JOIN sessions s ON s.key = r.session
             WHERE r.run = ?1 ORDER BY r.started_at DESC, s.key DESC LIMIT 1"
        ))?
        .query_row([id.as_str()], run)
        .optional()?
        .flatten())
}

pub(super) fn open_runs(
    conn: &Connection,
    home: Option<&Node>,
    now: &Moment,
) -> Result<Vec<OpenRun>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS}, {} FROM runs r JOIN sessions s ON s.key = r.session JOIN logs l ON l.session = r.session
         WHERE r.last IS NULL AND (?1 IS NULL OR s.home = ?1) ORDER BY r.started_at, s.key, r.first",
        LOGS.list("l.")
    ))?;
    let rows = statement.query_map([home.map(Node::as_str)], |row| {
        let (run, log) = (run(row)?, LogRow::read(row, 11)?);
        Ok(run.zip(log).map(|(run, log)| OpenRun {
            run,
            holder: log.holder(now),
        }))
    })?;
    undamaged(rows)
}

/// Absent when it is damaged.
fn run(row: &Row<'_>) -> rusqlite::Result<Option<Run>> {
    if !RUNS.is_whole(row, 0) {
        return Ok(None);
    }
    let last: Option<i64> = row.get(4)?;
    Ok(Some(Run {
        session: SessionId::new(row.get::<_, String>(10)?),
        run: RunId::new(row.get::<_, String>(2)?),
        first: row.get::<_, i64>(1)? as u64,
        started_at: Timestamp::from_millis(row.get(3)?),
        activity: row.get::<_, i64>(8)? as u64,
        end: last.map(|last| run_end(row, last as u64)).transpose()?,
    }))
}

fn run_end(row: &Row<'_>, seq: u64) -> rusqlite::Result<RunEnd> {
    let outcome = row.get_ref(6)?.as_str()?;
    Ok(RunEnd {
        seq,
        at: Timestamp::from_millis(row.get(5)?),
        outcome: Outcome::find(outcome).ok_or(rusqlite::Error::InvalidQuery)?,
    })
}
