//! Commands to the owner, and the asks that are answered through them.

use bytes::Bytes;
use model::{AskId, Decision, RunId, SessionId, Timestamp};
use rusqlite::types::ValueRef::{self, Integer};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::checksum::{ASKS, COMMANDS, DONE};
use super::log::with_line;
use super::logs::LogRow;
use super::sessions::{self, find_key};
use crate::command::{
    Command, CommandBody, CommandStatus, Enqueued, KEEP_DONE_MILLIS, MAX_COMMANDS, PromptTarget,
    WaitingAsk,
};
use crate::error::{Damage, Error, Result};
use crate::node::Node;
use crate::write_id::WriteId;

pub(super) fn command(
    conn: &Connection,
    session: &SessionId<'static>,
    id: WriteId,
    order: &CommandBody,
    now: Timestamp,
) -> Result<u64> {
    match find_number(conn, id)? {
        Some(number) => Ok(number),
        None => add(conn, session, id, order, now),
    }
}

/// The number of the command that has this id, also when it is done.
fn find_number(conn: &Connection, id: WriteId) -> Result<Option<u64>> {
    let sql = "SELECT number FROM commands WHERE id = ?1
               UNION ALL SELECT number FROM done WHERE id = ?1";
    Ok(conn
        .prepare_cached(sql)?
        .query_row([id.as_bytes()], |row| Ok(row.get::<_, i64>(0)? as u64))
        .optional()?)
}

fn add(
    conn: &Connection,
    id: &SessionId<'static>,
    write: WriteId,
    order: &CommandBody,
    now: Timestamp,
) -> Result<u64> {
    let mut log = LogRow::find(conn, id)?;
    let session = log.session;
    let pending: i64 = conn
        .prepare_cached("SELECT count(*) FROM commands WHERE session = ?1")?
        .query_row([session], |row| row.get(0))?;
    if pending as u64 >= MAX_COMMANDS {
        return Err(Error::TooManyCommands {
            session: id.clone(),
            pending: pending as u64,
        });
    }
    // Counted in the log: the number of a command that is done is never used again.
    log.commands += 1;
    log.write(conn)?;
    let number = log.commands as i64;
    let (word, ask, body) = match order {
        CommandBody::Prompt(body) => ("prompt", None, body),
        CommandBody::Abort(body) => ("abort", None, body),
        CommandBody::Settle { ask, answer } => ("settle", Some(*ask as i64), answer),
        CommandBody::Damaged => return Err(Error::damaged(id, Damage::Command(log.commands))),
    };
    let row = [
        Integer(session),
        Integer(number),
        Integer(now.millis()),
        word.into(),
        ask.map_or(ValueRef::Null, Integer),
        ValueRef::Blob(body),
        ValueRef::Blob(write.as_bytes()),
    ];
    COMMANDS.insert(conn, &row)?;
    Ok(log.commands)
}

/// Leaves a prompt, in a session that is made for it if need be.
pub(super) fn enqueue(
    conn: &Connection,
    target: &PromptTarget,
    id: WriteId,
    prompt: Bytes,
    now: Timestamp,
) -> Result<Enqueued> {
    let session = target.session();
    let number = match find_number(conn, id)? {
        Some(number) => number,
        None => {
            target.create(|new| sessions::create(conn, new, now))?;
            add(conn, session, id, &CommandBody::Prompt(prompt), now)?
        }
    };
    let position: i64 = conn
        .prepare_cached(
            "SELECT (SELECT count(*) FROM commands WHERE session = ?1 AND word = 'prompt' AND number < ?2)
                  + (SELECT count(*) FROM runs WHERE session = ?1 AND last IS NULL)",
        )?
        .query_row([find_key(conn, session)?, number as i64], |row| row.get(0))?;
    Ok(Enqueued {
        number,
        position: position as u64,
    })
}

/// The command of this id, as long as it is known.
pub(super) fn find_command(conn: &Connection, id: WriteId) -> Result<Option<CommandStatus>> {
    let sql = "SELECT number, 0, NULL FROM commands WHERE id = ?1
               UNION ALL SELECT number, 1, reply FROM done WHERE id = ?1";
    let status = |row: &Row<'_>| {
        Ok(CommandStatus {
            number: row.get::<_, i64>(0)? as u64,
            is_done: row.get(1)?,
            reply: row.get::<_, Option<Vec<u8>>>(2)?.map(Bytes::from),
        })
    };
    // A reply that was altered is not told; the command is done all the same.
    let is_whole = DONE.check(conn, &[&id.as_bytes()])?.unwrap_or(true);
    let found = conn.prepare_cached(sql)?.query_row([id.as_bytes()], status);
    let found = found.optional()?;
    Ok(found.map(|it| CommandStatus {
        reply: it.reply.filter(|_| is_whole),
        ..it
    }))
}

/// Marks a command as done; its id is kept for a day, see [`forget_done`].
pub(super) fn finish(
    conn: &Connection,
    session: i64,
    number: i64,
    reply: Option<&[u8]>,
    now: Timestamp,
) -> Result<()> {
    let key = params![session, number];
    let id: Option<Option<Vec<u8>>> = conn
        .prepare_cached("SELECT id FROM commands WHERE session = ?1 AND number = ?2")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    conn.prepare_cached("DELETE FROM commands WHERE session = ?1 AND number = ?2")?
        .execute(key)?;
    if let Some(id) = id.flatten() {
        let row = [
            ValueRef::Blob(&id),
            Integer(session),
            Integer(number),
            Integer(now.millis()),
            reply.map_or(ValueRef::Null, ValueRef::Blob),
        ];
        DONE.insert(conn, &row)?;
    }
    Ok(())
}

/// Nobody sends a command again after a day.
pub(super) fn forget_done(conn: &Connection, now: Timestamp) -> Result<()> {
    let oldest = now.plus_millis(-KEEP_DONE_MILLIS);
    conn.prepare_cached("DELETE FROM done WHERE at < ?1")?
        .execute([oldest.millis()])?;
    Ok(())
}

pub(super) fn commands(
    conn: &Connection,
    session: &SessionId<'static>,
    after: u64,
) -> Result<Vec<Command>> {
    let session = find_key(conn, session)?;
    let mut statement = conn.prepare_cached(
        "SELECT session, number, at, word, ask, body, id, sum FROM commands
         WHERE session = ?1 AND number > ?2 ORDER BY number",
    )?;
    // Cursors come from clients: a number beyond the column's type is simply the end.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![session, after], |row| {
        Ok(Command {
            number: row.get::<_, i64>(1)? as u64,
            // A damaged one is listed all the same: its owner has to mark it as done.
            at: Timestamp::from_millis(row.get(2).unwrap_or_default()),
            order: match COMMANDS.is_whole(row, 0) {
                true => order(row)?,
                false => CommandBody::Damaged,
            },
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn pending(conn: &Connection, home: Option<&Node>) -> Result<Vec<SessionId<'static>>> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM sessions
         WHERE key IN (SELECT session FROM commands) AND (?1 IS NULL OR home = ?1) ORDER BY key",
    )?;
    let rows = statement.query_map([home.map(Node::as_str)], |row| {
        Ok(SessionId::new(row.get::<_, String>(0)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn order(row: &Row<'_>) -> rusqlite::Result<CommandBody> {
    let body = Bytes::from(row.get::<_, Vec<u8>>(5)?);
    match row.get_ref(3)?.as_str()? {
        "prompt" => Ok(CommandBody::Prompt(body)),
        "abort" => Ok(CommandBody::Abort(body)),
        "settle" => Ok(CommandBody::Settle {
            ask: row.get::<_, i64>(4)? as u64,
            answer: body,
        }),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

/// Open asks of one session, of one home or of all. Damaged ones are skipped: an altered question must not be
/// answered.
pub(super) fn asks(
    conn: &Connection,
    session: Option<&SessionId<'static>>,
    home: Option<&Node>,
) -> Result<Vec<WaitingAsk>> {
    let mut statement = conn.prepare_cached(
        "SELECT a.session, a.seq, a.ask, a.run, a.at, a.answered, a.decision, a.sum, s.id
         FROM asks a JOIN sessions s ON s.key = a.session
         WHERE a.decision IS NULL AND (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR s.home = ?2)
         ORDER BY a.at, a.session, a.seq",
    )?;
    let (session, home) = (session.map(SessionId::as_str), home.map(Node::as_str));
    let mut rows = statement.query([session, home])?;
    let mut asks = Vec::new();
    while let Some(row) = rows.next()? {
        if !ASKS.is_whole(row, 0) {
            continue;
        }
        let seq = row.get::<_, i64>(1)? as u64;
        let Some(line) = with_line(conn, row.get(0)?, seq, WaitingAsk::listed)? else {
            continue;
        };
        asks.push(WaitingAsk {
            session: SessionId::new(row.get::<_, String>(8)?),
            seq,
            ask: AskId::new(row.get::<_, String>(2)?),
            run: row.get::<_, Option<String>>(3)?.map(RunId::new),
            at: Timestamp::from_millis(row.get(4)?),
            answered: row.get(5)?,
            line,
        });
    }
    Ok(asks)
}

pub(super) fn settle(
    conn: &Connection,
    id: &SessionId<'static>,
    seq: u64,
    write: WriteId,
    answer: Bytes,
    now: Timestamp,
) -> Result<u64> {
    if let Some(number) = find_number(conn, write)? {
        return Ok(number);
    }
    let session = find_key(conn, id)?;
    let key: [&dyn ToSql; 2] = [&session, &i64::try_from(seq).unwrap_or(i64::MAX)];
    // Both the ask and its event must be undamaged: an altered question must not be answered.
    if let Some(is_whole) = ASKS.check(conn, &key)?
        && !(is_whole && with_line(conn, session, seq, |_| ())?.is_some())
    {
        return Err(Error::damaged(id, Damage::Ask(seq)));
    }
    let found = conn
        .prepare_cached("SELECT answered, decision FROM asks WHERE session = ?1 AND seq = ?2")?
        .query_row(key, |row| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?))
        })
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
                decision: decision.as_deref().and_then(Decision::find),
            });
        }
    }
    let change = "UPDATE asks SET answered = 1 WHERE session = ?1 AND seq = ?2";
    ASKS.update(conn, &key, (id, Damage::Ask(seq)), change, &[])?;
    add(
        conn,
        id,
        write,
        &CommandBody::Settle { ask: seq, answer },
        now,
    )
}
