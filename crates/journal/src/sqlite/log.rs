//! Reading the log: lines and frames as they were stored, nothing parsed.

use bytes::Bytes;
use model::{BodyKind, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::{key, seq};
use super::checksum::{EVENTS, FRAMES};
use super::logs::LogRow;
use crate::damage::placeholder;
use crate::entry::{Deltas, Page, PageBudget, Read, Stored, StoredFrame};
use crate::error::{Damage, Error, Fault, Result};

pub(super) fn read(conn: &Connection, session: &SessionId<'static>, read: Read) -> Result<Page> {
    // One transaction: the head must not be older than the events.
    let tx = conn.unchecked_transaction()?;
    let log = LogRow::find(&tx, session)?;
    page(&tx, session, log.session, log.head, read)
}

/// A page of the log of a session that has this key and ends with event `head`.
pub(super) fn page(
    conn: &Connection,
    session: &SessionId<'static>,
    key: i64,
    head: u64,
    read: Read,
) -> Result<Page> {
    let mut reading = PageReader {
        conn,
        session,
        key,
        head,
        deltas: read.deltas,
        room: PageBudget::of(read),
        last: read.after,
        events: Vec::new(),
    };
    match reading.scan() {
        // A damaged page ends the scan; rows on other pages are still found by their keys.
        Ok(()) | Err(Error::Storage(Fault::Corrupt(_))) => reading.look_up()?,
        Err(err) => return Err(err),
    }
    Ok(Page {
        next: reading.last,
        events: reading.events,
        head: reading.head,
    })
}

/// A page on its way. The numbers of a log have no gaps, so a row that is not there is noticed as one that
/// was altered is.
struct PageReader<'a> {
    conn: &'a Connection,
    session: &'a SessionId<'static>,
    key: i64,
    head: u64,
    deltas: Deltas,
    room: PageBudget,
    /// The last number that was looked at.
    last: u64,
    events: Vec<Stored>,
}

impl PageReader<'_> {
    /// Goes through the rows in order, until the page is full or a number is missing.
    fn scan(&mut self) -> Result<()> {
        // Skipped deltas are not read from disk.
        let sql = match self.deltas {
            Deltas::Keep => {
                "SELECT key, at, kind, cut, line, sum FROM events
                 WHERE key > ?1 AND key <= ?2 ORDER BY key"
            }
            Deltas::Skip => {
                "SELECT key, at, kind, cut, iif(kind = 'item.delta', NULL, line), sum FROM events
                 WHERE key > ?1 AND key <= ?2 ORDER BY key"
            }
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        let (first, last) = (self.key(self.last), self.key(self.head));
        let mut rows = statement.query(params![first, last])?;
        while self.room.has_some() {
            let Some(row) = rows.next()? else { break };
            // The rows come in order: another number means that one is missing before it.
            let found = row.get(0).map(seq).ok();
            if found != Some(self.last + 1) {
                break;
            }
            self.take(Some(row));
        }
        Ok(())
    }

    /// Looks up the rows that [`Self::scan`] could not reach, one by one.
    fn look_up(&mut self) -> Result<()> {
        let sql = "SELECT key, at, kind, cut, line, sum FROM events WHERE key = ?1";
        while self.room.has_some() && self.last < self.head {
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query([self.key(self.last + 1)])?;
            match rows.next() {
                Ok(row) => self.take(row),
                Err(err) => match Fault::from(err) {
                    Fault::Corrupt(_) => self.take(None),
                    fault => return Err(fault.into()),
                },
            }
        }
        Ok(())
    }

    /// Takes the next number with the row that should be its own.
    fn take(&mut self, row: Option<&Row<'_>>) {
        self.last += 1;
        if self.deltas == Deltas::Skip && row.is_some_and(is_delta) {
            return;
        }
        let event = row.and_then(event).unwrap_or_else(|| {
            let at = self.events.last().map(|it| it.at);
            placeholder(
                self.session,
                self.last,
                at.unwrap_or(Timestamp::from_millis(0)),
            )
        });
        self.room.take(event.line.len());
        self.events.push(event);
    }

    fn key(&self, seq: u64) -> i64 {
        key(self.key, seq)
    }
}

pub(super) fn frames(
    conn: &Connection,
    session: &SessionId<'static>,
    read: Read,
) -> Result<Vec<StoredFrame>> {
    let log = LogRow::find(conn, session)?;
    let mut statement = conn.prepare_cached(
        "SELECT key, cut, bytes, sum FROM frames WHERE key > ?1 AND key <= ?2 ORDER BY key",
    )?;
    let keys = [read.after, log.head].map(|it| key(log.session, it));
    let mut rows = statement.query(keys)?;
    let mut frames = Vec::new();
    let mut room = PageBudget::of(read);
    while room.has_some() {
        let Some(row) = rows.next()? else { break };
        let frame = match frame(row) {
            Some(frame) => frame,
            None if frames.is_empty() => {
                return Err(Error::damaged(session, Damage::Frame(seq(row.get(0)?))));
            }
            // Report the missing rows to the reader.
            None => break,
        };
        room.take(frame.bytes.len());
        frames.push(frame);
    }
    Ok(frames)
}

/// Calls `read` with the line of an event in SQLite's memory, because it may be long. `None` when it is
/// damaged.
pub(super) fn with_line<T>(
    conn: &Connection,
    session: i64,
    seq: u64,
    read: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>> {
    let sql = "SELECT key, at, kind, cut, line, sum FROM events WHERE key = ?1";
    let read = |row: &Row<'_>| match EVENTS.is_whole(row, 0) {
        true => Ok(row.get_ref(4)?.as_bytes().ok().map(read)),
        false => Ok(None),
    };
    let found = conn
        .prepare_cached(sql)?
        .query_row([key(session, seq)], read)
        .optional()?;
    Ok(found.flatten())
}

fn is_delta(row: &Row<'_>) -> bool {
    let kind = row.get_ref(2).ok();
    kind.and_then(|it| it.as_str().ok()) == Some(BodyKind::ItemDelta.name())
}

/// The columns of [`EVENTS`]; absent when they are damaged.
pub(super) fn event(row: &Row<'_>) -> Option<Stored> {
    if !EVENTS.is_whole(row, 0) {
        return None;
    }
    let kind = row.get_ref(2).ok()?;
    Some(Stored {
        seq: seq(row.get(0).ok()?),
        at: Timestamp::from_millis(row.get(1).ok()?),
        kind: BodyKind::find(kind.as_str().ok()?)?,
        cut: row.get::<_, i64>(3).ok()? as u64,
        line: Bytes::copy_from_slice(row.get_ref(4).ok()?.as_bytes().ok()?),
        is_damaged: false,
    })
}

/// The columns of [`FRAMES`]; absent when they are damaged.
pub(super) fn frame(row: &Row<'_>) -> Option<StoredFrame> {
    if !FRAMES.is_whole(row, 0) {
        return None;
    }
    Some(StoredFrame {
        seq: seq(row.get(0).ok()?),
        cut: row.get::<_, i64>(1).ok()? as u64,
        bytes: Bytes::copy_from_slice(row.get_ref(2).ok()?.as_blob().ok()?),
    })
}
