//! Appending: the fence, the numbers, the events, and what they change beside the log.

use std::ops::Range;

use model::{AskId, Decision, Outcome, RunId, Timestamp};
use rusqlite::types::ValueRef::{self, Integer, Null};
use rusqlite::types::{ToSql, ToSqlOutput};
use rusqlite::{Connection, OptionalExtension, params};

use super::checksum::{ASKS, EVENTS, FRAMES, NATIVES, RUNS, SESSIONS};
use super::commands::finish;
use super::logs::LogRow;
use super::sessions::next_activity;
use crate::entry::{Batch, Effect, Entry};
use crate::error::{Damage, Error, Result};
use crate::lease::Lease;
use crate::session::searchable;

/// Room for the event's number in a key: 68 thousand million events in each of 134 million sessions.
pub(super) const SEQ_BITS: u32 = 36;

/// The highest number: a larger one would reach into the key of the next session.
const MAX_SEQ: i64 = (1 << SEQ_BITS) - 1;

pub(super) fn key(session: i64, seq: u64) -> i64 {
    (session << SEQ_BITS) + i64::try_from(seq).unwrap_or(MAX_SEQ).min(MAX_SEQ)
}

pub(super) fn seq(key: i64) -> u64 {
    (key & MAX_SEQ) as u64
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
    if let Some(stored) = batch.stored_range(log.batch, log.head) {
        return Ok(stored);
    }
    let first = log.head + 1;
    let mut next = first;
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (key, at, kind, cut, line, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for entry in &batch.entries {
        // The key alone would accept a gap.
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
            Integer(key),
            Integer(at),
            kind.into(),
            Integer(cut),
            ValueRef::Text(&line),
        ]);
        // One by one, so that the line can go before the statement runs.
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
            let cut = Integer(entry.frame_cut as i64);
            FRAMES.insert(conn, &[Integer(key), cut, ValueRef::Blob(frame)])?;
        }
        apply(conn, lease, log.session, entry, at, now)?;
        next += 1;
    }
    // Once for a batch, after its runs have been opened.
    if batch.entries.iter().any(|it| it.is_agents) {
        acknowledge_activity(conn, lease, log.session)?;
    }
    log.head = next - 1;
    log.bytes += batch.length() as u64;
    log.batch = Some(batch.id);
    log.write(conn)?;
    for number in &batch.done {
        let reply = batch.replies.get(number).map(|it| &it[..]);
        finish(conn, log.session, *number as i64, reply, now)?;
    }
    Ok(first..next)
}

fn apply(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    entry: &Entry,
    at: i64,
    now: Timestamp,
) -> Result<()> {
    let seq = entry.seq as i64;
    match &entry.effect {
        Effect::None => Ok(()),
        Effect::Bound { native, cwd } => {
            // An agent names its session again with every resume.
            NATIVES.insert_new(conn, &[native.as_str().into(), Integer(session)])?;
            let (native, cwd) = (native.as_str(), cwd.as_deref());
            let change = "UPDATE sessions SET native = ?2, cwd = coalesce(cwd, ?3) WHERE key = ?1";
            change_session(conn, lease, session, change, &[&native, &cwd])?;
            write_search(conn, session)
        }
        Effect::RunStarted(run) => {
            let activity = touch(conn, lease, session, now)?;
            let row = [
                Integer(session),
                Integer(seq),
                run.as_str().into(),
                Integer(at),
                Null,
                Null,
                Null,
                Integer(entry.is_agents.into()),
                Integer(activity),
            ];
            match RUNS.insert_new(conn, &row)? {
                true => Ok(()),
                false => Err(Error::RunStarted {
                    session: lease.session.clone(),
                    run: run.clone(),
                }),
            }
        }
        Effect::RunEnded(run, outcome) => {
            end_run(conn, lease, session, run, *outcome, seq, at)?;
            touch(conn, lease, session, now).map(drop)
        }
        Effect::AskOpened(ask, run) => {
            let row = [
                Integer(session),
                Integer(seq),
                ask.as_str().into(),
                run.as_ref().map(RunId::as_str).into(),
                Integer(at),
                Integer(0),
                Null,
            ];
            match ASKS.insert_new(conn, &row)? {
                true => Ok(()),
                false => Err(Error::AskOpen {
                    session: lease.session.clone(),
                    ask: ask.clone(),
                }),
            }
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
    seq: i64,
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
    let change =
        "UPDATE runs SET last = ?3, ended_at = ?4, outcome = ?5 WHERE session = ?1 AND first = ?2";
    change_run(
        conn,
        lease,
        session,
        first,
        change,
        &[&seq, &at, &outcome.name()],
    )
}

fn change_run(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    first: i64,
    change: &str,
    values: &[&dyn ToSql],
) -> Result<()> {
    let damage = (&lease.session, Damage::Run(first as u64));
    RUNS.update(conn, &[&session, &first], damage, change, values)
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
    let change = "UPDATE asks SET decision = ?3 WHERE session = ?1 AND seq = ?2";
    let damage = (&lease.session, Damage::Ask(seq as u64));
    ASKS.update(conn, &[&session, &seq], damage, change, &[&decision.name()])
}

/// The session is active: it moves to the top of the list. Returns its number there.
fn touch(conn: &Connection, lease: &Lease, session: i64, now: Timestamp) -> Result<i64> {
    let activity = next_activity(conn)?;
    let change = "UPDATE sessions SET active_at = ?2, activity = ?3 WHERE key = ?1";
    change_session(conn, lease, session, change, &[&now.millis(), &activity])?;
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
    let change = "UPDATE runs SET heard = 1 WHERE session = ?1 AND first = ?2";
    change_run(conn, lease, session, first, change, &[])
}

fn change_session(
    conn: &Connection,
    lease: &Lease,
    session: i64,
    change: &str,
    values: &[&dyn ToSql],
) -> Result<()> {
    let damage = (&lease.session, Damage::Entry);
    SESSIONS.update(conn, &[&session], damage, change, values)
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
