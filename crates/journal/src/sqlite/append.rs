//! Appending: the fence, the numbers, the events, and what they change beside the log.

use std::ops::Range;

use model::{AskId, Decision, Outcome, RunId, Timestamp};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use super::checksum::{ASKS, EVENTS, FRAMES, NATIVES, RUNS, SESSIONS};
use super::logs::LogRow;
use super::sessions::next_activity;
use crate::entry::{Batch, Effect, Entry};
use crate::error::{Damage, Error, Result};
use crate::lease::Lease;
use crate::session::searchable;
use crate::sql_enum;

/// Room for the event's number in a key: 68 thousand million events in each of 134 million sessions.
pub(super) const SEQ_BITS: u32 = 36;

pub(super) fn key(session: i64, seq: u64) -> i64 {
    let limit = (1 << SEQ_BITS) - 1;
    session << SEQ_BITS | i64::try_from(seq).unwrap_or(limit).min(limit)
}

pub(super) fn seq(key: i64) -> u64 {
    (key & ((1 << SEQ_BITS) - 1)) as u64
}

/// A canonical line is UTF-8 already; SQLite takes it without another look.
struct SqlLine<'a>(&'a [u8]);

impl ToSql for SqlLine<'_> {
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
    let mut log = LogRow::fence(conn, lease)?;
    let first = log.head + 1;
    let mut next = first;
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (key, at, kind, cut, line, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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
        let (kind, cut) = (entry.kind.name(), entry.line_cut as i64);
        let line = entry.line();
        let sum = EVENTS.sum(&[
            ValueRef::Integer(key),
            ValueRef::Integer(at),
            ValueRef::Text(kind.as_bytes()),
            ValueRef::Integer(cut),
            ValueRef::Text(&line),
        ]);
        insert.raw_bind_parameter(1, key)?;
        insert.raw_bind_parameter(2, at)?;
        insert.raw_bind_parameter(3, kind)?;
        insert.raw_bind_parameter(4, cut)?;
        insert.raw_bind_parameter(5, SqlLine(&line))?;
        insert.raw_bind_parameter(6, sum)?;
        // SQLite has a copy now and makes another one: a giant line must not exist four times.
        drop(line);
        insert.raw_execute()?;
        if let Some(frame) = &entry.frame {
            insert_frame(conn, key, entry.frame_cut as i64, frame)?;
        }
        apply(conn, lease, log.session, entry, at, now)?;
        next += 1;
    }
    if batch.entries.iter().any(|it| it.is_agents) {
        acknowledge_activity(conn, lease, log.session)?;
    }
    log.head = next - 1;
    log.bytes += batch.length() as u64;
    log.write(conn)?;
    for number in &batch.done {
        conn.prepare_cached("DELETE FROM commands WHERE session = ?1 AND number = ?2")?
            .execute(params![log.session, *number as i64])?;
    }
    Ok(first..next)
}

fn insert_frame(conn: &Connection, key: i64, cut: i64, frame: &[u8]) -> Result<()> {
    let sum = FRAMES.sum(&[
        ValueRef::Integer(key),
        ValueRef::Integer(cut),
        ValueRef::Blob(frame),
    ]);
    conn.prepare_cached("INSERT INTO frames (key, cut, bytes, sum) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, cut, frame, sum])?;
    Ok(())
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
            let names: [&dyn ToSql; 2] = [&native.as_str(), &session];
            let n_new = conn
                .prepare_cached("INSERT OR IGNORE INTO natives (native, session) VALUES (?1, ?2)")?
                .execute(names)?;
            if n_new > 0 {
                NATIVES.seal(conn, &names)?;
            }
            change_session(conn, lease, session, || {
                conn.prepare_cached(
                    "UPDATE sessions SET native = ?2, cwd = coalesce(cwd, ?3) WHERE key = ?1",
                )?
                .execute(params![session, native.as_str(), cwd])?;
                write_search(conn, session)
            })
        }
        Effect::RunStarted(run) => {
            let activity = touch(conn, lease, session, now)?;
            let n_new = conn
                .prepare_cached(
                    "INSERT OR IGNORE INTO runs (session, run, first, started_at, heard, activity)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    session,
                    run.as_str(),
                    entry.seq as i64,
                    at,
                    entry.is_agents,
                    activity
                ])?;
            if n_new == 0 {
                return Err(Error::RunStarted {
                    session: lease.session.clone(),
                    run: run.clone(),
                });
            }
            RUNS.seal(conn, &[&session, &(entry.seq as i64)])
        }
        Effect::RunEnded(run, outcome) => {
            end_run(conn, lease, session, run, *outcome, entry.seq, at)?;
            touch(conn, lease, session, now)?;
            Ok(())
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
            ASKS.seal(conn, &[&session, &(entry.seq as i64)])
        }
        Effect::AskSettled(ask, decision) => end_ask(conn, lease, session, ask, *decision),
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
    let first: Option<i64> = conn
        .prepare_cached("SELECT first FROM runs WHERE session = ?1 AND run = ?2 AND last IS NULL")?
        .query_row(params![session, run.as_str()], |row| row.get(0))
        .optional()?;
    let Some(first) = first else {
        return Err(Error::RunNotOpen {
            session: lease.session.clone(),
            run: run.clone(),
        });
    };
    let key: [&dyn ToSql; 2] = [&session, &first];
    if RUNS.check(conn, &key)? == Some(false) {
        return Err(damaged(lease, Damage::Run(first as u64)));
    }
    conn.prepare_cached(
        "UPDATE runs SET last = ?3, ended_at = ?4, outcome = ?5 WHERE session = ?1 AND first = ?2",
    )?
    .execute(params![session, first, seq as i64, at, outcome.name()])?;
    RUNS.seal(conn, &key)
}

fn end_ask(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    ask: &AskId<'static>,
    decision: Decision,
) -> Result<()> {
    let seq: Option<i64> = conn
        .prepare_cached(
            "SELECT seq FROM asks WHERE session = ?1 AND ask = ?2 AND decision IS NULL",
        )?
        .query_row(params![session, ask.as_str()], |row| row.get(0))
        .optional()?;
    let Some(seq) = seq else {
        return Err(Error::AskNotOpen {
            session: lease.session.clone(),
            ask: ask.clone(),
        });
    };
    let key: [&dyn ToSql; 2] = [&session, &seq];
    if ASKS.check(conn, &key)? == Some(false) {
        return Err(damaged(lease, Damage::Ask(seq as u64)));
    }
    conn.prepare_cached("UPDATE asks SET decision = ?3 WHERE session = ?1 AND seq = ?2")?
        .execute(params![session, seq, sql_enum::decision(decision)])?;
    ASKS.seal(conn, &key)
}

/// The session is active: it moves to the top of the list. Returns its number there.
fn touch(conn: &Connection, lease: &Lease, session: i64, now: Timestamp) -> Result<i64> {
    let activity = next_activity(conn)?;
    change_session(conn, lease, session, || {
        conn.prepare_cached("UPDATE sessions SET active_at = ?2, activity = ?3 WHERE key = ?1")?
            .execute(params![session, now.millis(), activity])?;
        Ok(())
    })?;
    Ok(activity)
}

/// The agent of the open run has emitted an event.
fn acknowledge_activity(conn: &Connection, lease: &Lease, session: i64) -> Result<()> {
    let first: Option<i64> = conn
        .prepare_cached("SELECT first FROM runs WHERE session = ?1 AND last IS NULL AND NOT heard")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let Some(first) = first else {
        return Ok(());
    };
    let key: [&dyn ToSql; 2] = [&session, &first];
    if RUNS.check(conn, &key)? == Some(false) {
        return Err(damaged(lease, Damage::Run(first as u64)));
    }
    conn.prepare_cached("UPDATE runs SET heard = 1 WHERE session = ?1 AND first = ?2")?
        .execute(params![session, first])?;
    RUNS.seal(conn, &key)
}

fn change_session(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    change: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if SESSIONS.check(conn, &[&session])? == Some(false) {
        return Err(damaged(lease, Damage::Entry));
    }
    change()?;
    SESSIONS.seal(conn, &[&session])
}

fn damaged(lease: &Lease, row: Damage) -> Error {
    Error::Damaged {
        session: lease.session.clone(),
        row,
    }
}

/// Updates the searchable text.
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
