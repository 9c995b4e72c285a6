//! Reading the log: lines and frames as they were stored, nothing parsed.

use bytes::Bytes;
use model::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::{key, seq};
use crate::entry::{Deltas, Kind, Page, Read, Room, Stored, StoredFrame};
use crate::error::{Error, Result};

pub(super) fn read(conn: &Connection, session: &SessionId<'static>, read: Read) -> Result<Page> {
    // One transaction: the head must not be older than the events.
    let tx = conn.unchecked_transaction()?;
    let (session, head) = find(&tx, session)?;
    let sql = match read.deltas {
        Deltas::Keep => {
            "SELECT key, at, kind, cut, line FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key"
        }
        Deltas::Skip => {
            "SELECT key, at, kind, cut, line FROM events
             WHERE key > ?1 AND key <= ?2 AND kind <> 'item.delta' ORDER BY key"
        }
    };
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query(params![key(session, read.after), key(session, head)])?;
    let mut events = Vec::new();
    let mut room = Room::of(read);
    while room.has_some() {
        let Some(row) = rows.next()? else {
            // What was skipped at the end need not be looked at again.
            return Ok(Page {
                events,
                next: head.max(read.after),
                head,
            });
        };
        let event = event(row)?;
        room.take(event.line.len());
        events.push(event);
    }
    Ok(Page {
        next: events.last().map_or(read.after, |it| it.seq),
        events,
        head,
    })
}

pub(super) fn frames(
    conn: &Connection,
    session: &SessionId<'static>,
    read: Read,
) -> Result<Vec<StoredFrame>> {
    let (session, head) = find(conn, session)?;
    let mut statement = conn.prepare_cached(
        "SELECT key, cut, bytes FROM frames WHERE key > ?1 AND key <= ?2 ORDER BY key",
    )?;
    let mut rows = statement.query(params![key(session, read.after), key(session, head)])?;
    let mut frames = Vec::new();
    let mut room = Room::of(read);
    while room.has_some() {
        let Some(row) = rows.next()? else { break };
        let frame = frame(row)?;
        room.take(frame.bytes.len());
        frames.push(frame);
    }
    Ok(frames)
}

/// The session's key and head.
fn find(conn: &Connection, session: &SessionId<'static>) -> Result<(i64, u64)> {
    conn.prepare_cached(
        "SELECT session, head FROM logs WHERE session = (SELECT key FROM sessions WHERE id = ?1)",
    )?
    .query_row([session.as_str()], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
    })
    .optional()?
    .ok_or_else(|| Error::NoSession {
        session: session.clone(),
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let name = row.get_ref(2)?.as_str()?;
    Ok(Stored {
        seq: seq(row.get(0)?),
        at: Timestamp::from_millis(row.get(1)?),
        kind: Kind::find(name).ok_or(rusqlite::Error::InvalidQuery)?,
        cut: row.get::<_, i64>(3)? as u64,
        line: Bytes::copy_from_slice(row.get_ref(4)?.as_bytes()?),
    })
}

fn frame(row: &Row<'_>) -> rusqlite::Result<StoredFrame> {
    Ok(StoredFrame {
        seq: seq(row.get(0)?),
        cut: row.get::<_, i64>(1)? as u64,
        bytes: Bytes::copy_from_slice(row.get_ref(2)?.as_blob()?),
    })
}
