//! Reading the log: lines and frames as they were stored, nothing parsed.

use bytes::Bytes;
use model::{BodyKind, SessionId, Timestamp};
use tokio_postgres::Row;

use uuid::Uuid;

use super::checksum::sum;
use super::client::Client;
use super::query::{Query, bytes, cursor, get, number, optional_text};
use crate::damage::placeholder;
use crate::entry::{Deltas, Page, PageBudget, Read, Stored, StoredFrame};
use crate::error::{Damage, Error, Result};
use crate::lease::{Lease, Owner};
use crate::write_id::WriteId;

/// Where a log stands.
pub(super) struct LogHead {
    pub(super) head: u64,
    pub(super) epoch: u64,
    pub(super) batch: Option<WriteId>,
    pub(super) owner: Option<Owner>,
}

impl LogHead {
    pub(super) async fn read(client: &Client, session: &SessionId<'_>) -> Result<Self> {
        let query = Query::new(
            "SELECT head, epoch, batch, owner FROM linkspan.logs
             WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1)",
        )
        .text(session.as_str());
        let row = query.row(client).await?;
        let row = row.ok_or_else(|| Error::no_session(session))?;
        Ok(Self {
            head: number(&row, 0)?,
            epoch: number(&row, 1)?,
            batch: get::<Option<Uuid>>(&row, 2)?.map(WriteId::from_uuid),
            owner: optional_text(&row, 3)?.map(Owner::new),
        })
    }

    /// Fails with a fence error if the lease was taken over.
    pub(super) async fn fence(client: &Client, lease: &Lease) -> Result<Self> {
        let log = Self::read(client, &lease.session).await?;
        lease.check_epoch(log.epoch)?;
        Ok(log)
    }
}

/// The head is read by the same statement, so it is not older than the events. Rows are counted first and
/// then their lengths, which are known without reading the lines; the last row is the one that reaches the
/// limit. There is always a row for the log itself.
const READ: &str = "SELECT l.head, e.seq, e.at, e.kind, e.cut, e.sum, e.line
FROM linkspan.logs l LEFT JOIN LATERAL (
  SELECT * FROM (
    SELECT p.*, sum(octet_length(p.line)) OVER (ORDER BY p.seq) - octet_length(p.line) AS n_before FROM (
      SELECT seq, at, kind, cut, sum, line FROM linkspan.events
      WHERE session = l.session AND seq > $2 AND seq <= l.head AND (NOT $5 OR kind <> 'item.delta')
      ORDER BY seq LIMIT $3) p) q
  WHERE q.n_before < $4) e ON true
WHERE l.session = (SELECT key FROM linkspan.sessions WHERE id = $1) ORDER BY e.seq";

pub(super) async fn read(client: &Client, session: &SessionId<'_>, read: Read) -> Result<Page> {
    let rows = limited(READ, session, read)
        .bind(read.deltas == Deltas::Skip)
        .rows(client)
        .await?;
    let Some(first) = rows.first() else {
        return Err(Error::no_session(session));
    };
    let mut page = PageBuilder {
        session,
        read,
        room: PageBudget::of(read),
        last: read.after,
        events: Vec::new(),
    };
    let head = number(first, 0)?;
    for row in &rows {
        if let Some(seq) = get::<Option<i64>>(row, 1)? {
            let line = bytes(row, 6)?;
            // Of the line as it is stored, also when it is damaged: that is what the database has counted.
            let length = line.len();
            page.take(seq as u64, event(row, session, line)?, length);
        }
    }
    Ok(page.finish(head))
}

fn limited<'a>(sql: &'a str, session: &'a SessionId<'_>, read: Read) -> Query<'a> {
    Query::new(sql)
        .text(session.as_str())
        .bind(cursor(read.after))
        .bind(i64::from(read.max_events.max(1)))
        .bind(cursor(read.max_bytes.max(1) as u64))
}

/// A page on its way. The numbers of a log have no gaps, so a row that is not there is noticed as one that
/// was altered is; where deltas are left out, only altered ones are.
struct PageBuilder<'a> {
    session: &'a SessionId<'a>,
    read: Read,
    room: PageBudget,
    /// The last number that is in the page.
    last: u64,
    events: Vec<Stored>,
}

impl PageBuilder<'_> {
    /// Takes the row of the number `seq` with a line of this length; it is absent when it is damaged.
    fn take(&mut self, seq: u64, event: Option<Stored>, length: usize) {
        if self.read.deltas == Deltas::Keep {
            self.fill(seq - 1);
        }
        let event = event.unwrap_or_else(|| self.missing(seq));
        self.push(event, length);
    }

    /// Marks the numbers up to `last` as missing.
    fn fill(&mut self, last: u64) {
        while self.last < last && self.room.has_some() {
            let event = self.missing(self.last + 1);
            let length = event.line.len();
            self.push(event, length);
        }
    }

    fn missing(&self, seq: u64) -> Stored {
        let at = self.events.last().map(|it| it.at);
        placeholder(self.session, seq, at.unwrap_or(Timestamp::from_millis(0)))
    }

    fn push(&mut self, event: Stored, length: usize) {
        if self.room.has_some() {
            self.room.take(length);
            self.last = event.seq;
            self.events.push(event);
        }
    }

    fn finish(mut self, head: u64) -> Page {
        if self.read.deltas == Deltas::Keep {
            self.fill(head);
        }
        let next = match self.room.has_some() {
            // A cursor beyond the log must not go back.
            true => head.max(self.read.after),
            false => self.last,
        };
        let events = self.events;
        Page { events, next, head }
    }
}

/// Absent when it is damaged, or of a kind that a later version has stored.
fn event(row: &Row, session: &SessionId<'_>, line: Bytes) -> Result<Option<Stored>> {
    let seq = number(row, 1)?;
    let kind = BodyKind::find(get(row, 3)?);
    let Some(kind) =
        kind.filter(|_| get(row, 5).is_ok_and(|it: i64| it == sum(session, seq, &line)))
    else {
        return Ok(None);
    };
    Ok(Some(Stored {
        seq,
        at: Timestamp::from_millis(get(row, 2)?),
        kind,
        line,
        cut: number(row, 4)?,
        is_damaged: false,
    }))
}

const FRAMES: &str = "SELECT l.head, f.seq, f.cut, f.sum, f.bytes
FROM linkspan.logs l LEFT JOIN LATERAL (
  SELECT * FROM (
    SELECT p.*, sum(octet_length(p.bytes)) OVER (ORDER BY p.seq) - octet_length(p.bytes) AS n_before FROM (
      SELECT seq, cut, sum, bytes FROM linkspan.frames
      WHERE session = l.session AND seq > $2 AND seq <= l.head ORDER BY seq LIMIT $3) p) q
  WHERE q.n_before < $4) f ON true
WHERE l.session = (SELECT key FROM linkspan.sessions WHERE id = $1) ORDER BY f.seq";

pub(super) async fn frames(
    client: &Client,
    session: &SessionId<'_>,
    read: Read,
) -> Result<Vec<StoredFrame>> {
    let rows = limited(FRAMES, session, read).rows(client).await?;
    if rows.is_empty() {
        return Err(Error::no_session(session));
    }
    let mut frames = Vec::new();
    for row in &rows {
        let Some(seq) = get::<Option<i64>>(row, 1)? else {
            continue;
        };
        let (seq, bytes) = (seq as u64, bytes(row, 4)?);
        if get::<i64>(row, 3)? == sum(session, seq, &bytes) {
            let cut = number(row, 2)?;
            frames.push(StoredFrame { seq, bytes, cut });
        } else if frames.is_empty() {
            return Err(Error::damaged(session, Damage::Frame(seq)));
        } else {
            // The next page begins with the damaged one, and says so.
            break;
        }
    }
    Ok(frames)
}
