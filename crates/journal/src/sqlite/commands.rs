//! Commands to the owner, and the asks that are answered through them.

use bytes::Bytes;
use model::{AskId, RunId, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::key;
use super::sessions::find_key;
use crate::command::{Command, MAX_COMMANDS, Order, WaitingAsk};
use crate::error::{Error, Result};
use crate::words;

pub(super) fn command(
    conn: &Connection,
    id: &SessionId<'static>,
    order: &Order,
    now: Timestamp,
) -> Result<u64> {
    let session = find_key(conn, id)?;
    let pending: i64 = conn
        .prepare_cached("SELECT count(*) FROM commands WHERE session = ?1")?
        .query_row([session], |row| row.get(0))?;
    if pending as u64 >= MAX_COMMANDS {
        return Err(Error::TooManyCommands {
            session: id.clone(),
            pending: pending as u64,
        });
    }
    let number: i64 = conn
        .prepare_cached(
            "UPDATE logs SET commands = commands + 1 WHERE session = ?1 RETURNING commands",
        )?
        .query_row([session], |row| row.get(0))?;
    let (word, ask, body) = match order {
        Order::Prompt(body) => ("prompt", None, body),
        Order::Abort(body) => ("abort", None, body),
        Order::Settle { ask, answer } => ("settle", Some(*ask as i64), answer),
    };
    conn.prepare_cached(
        "INSERT INTO commands (session, number, at, word, ask, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![session, number, now.millis(), word, ask, &body[..]])?;
    Ok(number as u64)
}

pub(super) fn commands(
    conn: &Connection,
    session: &SessionId<'static>,
    after: u64,
) -> Result<Vec<Command>> {
    let session = find_key(conn, session)?;
    let mut statement = conn.prepare_cached(
        "SELECT number, at, word, ask, body FROM commands
         WHERE session = ?1 AND number > ?2 ORDER BY number",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![session, after], |row| {
        Ok(Command {
            number: row.get::<_, i64>(0)? as u64,
            at: Timestamp::from_millis(row.get(1)?),
            order: order(row)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn pending(conn: &Connection) -> Result<Vec<SessionId<'static>>> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM sessions WHERE key IN (SELECT session FROM commands) ORDER BY key",
    )?;
    let rows = statement.query_map([], |row| Ok(SessionId::new(row.get::<_, String>(0)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn order(row: &Row<'_>) -> rusqlite::Result<Order> {
    let body = Bytes::from(row.get::<_, Vec<u8>>(4)?);
    match row.get_ref(2)?.as_str()? {
        "prompt" => Ok(Order::Prompt(body)),
        "abort" => Ok(Order::Abort(body)),
        "settle" => Ok(Order::Settle {
            ask: row.get::<_, i64>(3)? as u64,
            answer: body,
        }),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

pub(super) fn asks(conn: &Connection) -> Result<Vec<WaitingAsk>> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id, a.seq, a.ask, a.run, a.at, a.answered, a.session
         FROM asks a JOIN sessions s ON s.key = a.session
         WHERE a.decision IS NULL ORDER BY a.at, a.session, a.seq",
    )?;
    let mut line = conn.prepare_cached("SELECT line FROM events WHERE key = ?1")?;
    let rows = statement.query_map([], |row| {
        let seq = row.get::<_, i64>(1)? as u64;
        Ok(WaitingAsk {
            session: SessionId::new(row.get::<_, String>(0)?),
            seq,
            ask: AskId::new(row.get::<_, String>(2)?),
            run: row.get::<_, Option<String>>(3)?.map(RunId::new),
            at: Timestamp::from_millis(row.get(4)?),
            answered: row.get(5)?,
            line: line.query_row([key(row.get(6)?, seq)], |row| {
                Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_bytes()?))
            })?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn settle(
    conn: &Connection,
    id: &SessionId<'static>,
    seq: u64,
    answer: Bytes,
    now: Timestamp,
) -> Result<u64> {
    let session = find_key(conn, id)?;
    let found = conn
        .prepare_cached("SELECT answered, decision FROM asks WHERE session = ?1 AND seq = ?2")?
        .query_row(
            params![session, i64::try_from(seq).unwrap_or(i64::MAX)],
            |row| Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?)),
        )
        .optional()?;
    match found {
        None => {
            return Err(Error::NoAsk {
                session: id.clone(),
                seq,
            });
        }
        Some((false, None)) => (),
        Some((_, decision)) => {
            return Err(Error::Answered {
                session: id.clone(),
                seq,
                decision: decision.and_then(|it| words::find_decision(&it)),
            });
        }
    }
    conn.prepare_cached("UPDATE asks SET answered = 1 WHERE session = ?1 AND seq = ?2")?
        .execute(params![session, seq as i64])?;
    command(conn, id, &Order::Settle { ask: seq, answer }, now)
}
