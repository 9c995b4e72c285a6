//! Appending: the fence, the numbers, the events, and what they change beside the log.

use std::ops::Range;

use model::{Decision, Outcome, RunId, Timestamp};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use crate::entry::{Batch, Effect, Entry};
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::session::searchable;
use crate::words;

/// Room for the event's number in a key: 68 thousand million events in each of 134 million sessions.
const SEQ_BITS: u32 = 36;

pub(super) fn key(session: i64, seq: u64) -> i64 {
    let limit = (1 << SEQ_BITS) - 1;
    session << SEQ_BITS | i64::try_from(seq).unwrap_or(limit).min(limit)
}

pub(super) fn seq(key: i64) -> u64 {
    (key & ((1 << SEQ_BITS) - 1)) as u64
}

/// A canonical line is UTF-8 already; SQLite takes it without another look.
struct Line<'a>(&'a [u8]);

impl ToSql for Line<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

pub(super) fn append(
    conn: &Connection,
    lease: &Lease,
    batch: &Batch,
    now: Timestamp,
) -> Result<Range<u64>> {
    let log = fence(conn, lease)?;
    let first = log.head + 1;
    let mut next = first;
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (key, at, kind, cut, line) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in &batch.entries {
        if entry.seq != next {
            return Err(Error::OutOfOrder {
                session: lease.session.clone(),
                next,
                got: entry.seq,
            });
        }
        let key = key(log.session, next);
        let at = entry.at.unwrap_or(now).millis();
        insert.execute(params![
            key,
            at,
            entry.kind.name(),
            entry.line_cut as i64,
            Line(&entry.line)
        ])?;
        if let Some(frame) = &entry.frame {
            conn.prepare_cached("INSERT INTO frames (key, cut, bytes) VALUES (?1, ?2, ?3)")?
                .execute(params![key, entry.frame_cut as i64, &frame[..]])?;
        }
        apply(conn, lease, log.session, entry, at, now)?;
        next += 1;
    }
    conn.prepare_cached("UPDATE logs SET head = ?2, bytes = bytes + ?3 WHERE session = ?1")?
        .execute(params![
            log.session,
            (next - 1) as i64,
            batch.length() as i64
        ])?;
    for number in &batch.done {
        conn.prepare_cached("DELETE FROM commands WHERE session = ?1 AND number = ?2")?
            .execute(params![log.session, *number as i64])?;
    }
    Ok(first..next)
}

/// A session's log as it stands.
pub(super) struct Log {
    pub(super) session: i64,
    pub(super) head: u64,
}

/// Lets nobody pass whose lease was taken over.
pub(super) fn fence(conn: &Connection, lease: &Lease) -> Result<Log> {
    let found = conn
        .prepare_cached(
            "SELECT session, head, epoch FROM logs
             WHERE session = (SELECT key FROM sessions WHERE id = ?1)",
        )?
        .query_row([lease.session.as_str()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })
        .optional()?;
    let Some((session, head, epoch)) = found else {
        return Err(Error::NoSession {
            session: lease.session.clone(),
        });
    };
    if epoch as u64 != lease.epoch {
        return Err(Error::Fenced {
            session: lease.session.clone(),
            epoch: lease.epoch,
            current: epoch as u64,
        });
    }
    Ok(Log {
        session,
        head: head as u64,
    })
}

fn apply(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    entry: &Entry,
    at: i64,
    now: Timestamp,
) -> Result<()> {
    match &entry.effect {
        Effect::None => Ok(()),
        Effect::Bound { native, cwd } => {
            conn.prepare_cached("INSERT OR IGNORE INTO natives (native, session) VALUES (?1, ?2)")?
                .execute(params![native.as_str(), session])?;
            conn.prepare_cached(
                "UPDATE sessions SET native = ?2, cwd = coalesce(cwd, ?3) WHERE key = ?1",
            )?
            .execute(params![session, native.as_str(), cwd])?;
            write_search(conn, session)
        }
        Effect::RunStarted(run) => {
            let n_new = conn
                .prepare_cached(
                    "INSERT OR IGNORE INTO runs (session, run, first, started_at) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![session, run.as_str(), entry.seq as i64, at])?;
            if n_new == 0 {
                return Err(Error::RunStarted {
                    session: lease.session.clone(),
                    run: run.clone(),
                });
            }
            touch(conn, session, now)
        }
        Effect::RunEnded(run, outcome) => {
            end_run(conn, lease, session, run, *outcome, entry.seq, at)?;
            touch(conn, session, now)
        }
        Effect::AskOpened(ask, run) => {
            let n_new = conn
                .prepare_cached(
                    "INSERT OR IGNORE INTO asks (session, seq, ask, run, at) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    session,
                    entry.seq as i64,
                    ask.as_str(),
                    run.as_ref().map(RunId::as_str),
                    at
                ])?;
            if n_new == 0 {
                return Err(Error::AskOpen {
                    session: lease.session.clone(),
                    ask: ask.clone(),
                });
            }
            Ok(())
        }
        Effect::AskSettled(ask, decision) => {
            if end_ask(conn, session, ask.as_str(), *decision)? == 0 {
                return Err(Error::AskNotOpen {
                    session: lease.session.clone(),
                    ask: ask.clone(),
                });
            }
            Ok(())
        }
    }
}

fn end_run(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    run: &RunId<'static>,
    outcome: Outcome,
    seq: u64,
    at: i64,
) -> Result<()> {
    let n_ended = conn
        .prepare_cached(
            "UPDATE runs SET last = ?3, ended_at = ?4, outcome = ?5
             WHERE session = ?1 AND run = ?2 AND last IS NULL",
        )?
        .execute(params![
            session,
            run.as_str(),
            seq as i64,
            at,
            words::outcome(outcome)
        ])?;
    if n_ended == 0 {
        return Err(Error::RunNotOpen {
            session: lease.session.clone(),
            run: run.clone(),
        });
    }
    Ok(())
}

fn end_ask(conn: &Connection, session: i64, ask: &str, decision: Decision) -> Result<usize> {
    Ok(conn
        .prepare_cached(
            "UPDATE asks SET decision = ?3 WHERE session = ?1 AND ask = ?2 AND decision IS NULL",
        )?
        .execute(params![session, ask, words::decision(decision)])?)
}

fn touch(conn: &Connection, session: i64, now: Timestamp) -> Result<()> {
    conn.prepare_cached("UPDATE sessions SET active_at = ?2 WHERE key = ?1")?
        .execute(params![session, now.millis()])?;
    Ok(())
}

/// Brings what the text filter looks at up to date.
pub(super) fn write_search(conn: &Connection, session: i64) -> Result<()> {
    let search = conn
        .prepare_cached("SELECT id, native, title, cwd FROM sessions WHERE key = ?1")?
        .query_row([session], |row| {
            let fields =
                [0, 1, 2, 3].map(|it| row.get_ref(it).and_then(|it| Ok(it.as_str_or_null()?)));
            let [id, native, title, cwd] = fields;
            Ok(searchable([id?, native?, title?, cwd?]))
        })?;
    conn.prepare_cached("UPDATE sessions SET search = ?2 WHERE key = ?1")?
        .execute(params![session, search])?;
    Ok(())
}
