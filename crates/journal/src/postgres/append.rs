//! Appending: the fence, the numbers and the events in one statement, and what they change beside the log in
//! the transaction around it.

use std::ops::Range;

use bytes::Bytes;
use model::{SessionId, Timestamp};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use super::checksum::sum;
use super::effects;
use super::leases::fenced;
use super::log::LogHead;
use super::query::{Query, flight, get, number};
use super::sessions::{Search, read_search};
use super::text::Text;
use crate::entry::{Batch, Effect, Entry};
use crate::error::{Error, Fault, Result};
use crate::lease::Lease;

/// The time of the database in milliseconds: no node's clock decides what lists and retention go by.
macro_rules! now_millis {
    () => {
        "floor(extract(epoch FROM now()) * 1000)::bigint"
    };
}
pub(super) use now_millis;

/// All or nothing, in order, fenced. Without events the number is not compared, because there is none.
const APPEND: &str = concat!(
    "WITH fence AS (
  UPDATE linkspan.logs SET head = head + $5, bytes = bytes + $6, batch = $4
  WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND epoch = $2
    AND ($5 = 0 OR head = $3 - 1)
  RETURNING session, epoch, head),
ins AS (
  INSERT INTO linkspan.events (session, seq, at, epoch, kind, cut, sum, line)
  SELECT f.session, $3 + e.n - 1, coalesce(e.at, ",
    now_millis!(),
    "), f.epoch, e.kind, e.cut, e.sum, e.line
  FROM fence f, unnest($7::bigint[], $8::text[], $9::bigint[], $10::bigint[], $11::bytea[])
    WITH ORDINALITY AS e(at, kind, cut, sum, line, n)),
frames AS (
  INSERT INTO linkspan.frames (session, seq, cut, sum, bytes)
  SELECT f.session, e.seq, e.cut, e.sum, e.bytes
  FROM fence f, unnest($12::bigint[], $13::bigint[], $14::bigint[], $15::bytea[]) AS e(seq, cut, sum, bytes)),
done AS (
  UPDATE linkspan.commands c SET done_at = now(), reply = d.reply
  FROM fence f, unnest($16::bigint[], $18::bytea[]) AS d(number, reply)
  WHERE c.session = f.session AND c.number = d.number AND c.done_at IS NULL),
heard AS (
  UPDATE linkspan.runs r SET heard = true FROM fence f
  WHERE r.session = f.session AND r.last IS NULL AND NOT r.heard AND $17)
SELECT session, head, ",
    now_millis!(),
    " FROM fence"
);

/// Events that are stored now.
#[derive(Debug)]
pub(super) struct AppendedRows {
    pub(super) numbers: Range<u64>,
    /// The key of the session, and the time of the database. Absent for a batch that was stored before: its
    /// time is not known any more.
    pub(super) stored: Option<(i64, Timestamp)>,
}

pub(super) async fn append(client: &Client, lease: &Lease, batch: &Batch) -> Result<AppendedRows> {
    // The statement numbers events by itself: a gap would be closed by it.
    if !is_contiguous(&batch.entries) {
        return refused(client, lease, batch).await;
    }
    let columns = Columns::of(&lease.session, &batch.entries);
    let query = columns.query(lease, batch);
    let has_effects = batch.entries.iter().any(|it| it.effect != Effect::None);
    let appended = match has_effects {
        true => with_effects(client, lease, batch, query).await,
        false => query.row(client).await,
    };
    match appended.map_err(|err| too_large(err, batch))? {
        Some(row) => answer(&row, batch),
        None => refused(client, lease, batch).await,
    }
}

fn answer(row: &Row, batch: &Batch) -> Result<AppendedRows> {
    let end = number(row, 1)? + 1;
    let stored = (get(row, 0)?, Timestamp::from_millis(get(row, 2)?));
    Ok(AppendedRows {
        numbers: end - batch.entries.len() as u64..end,
        stored: Some(stored),
    })
}

/// All but the commit goes in one flight. The fence is looked at first: the effects of a fenced owner do find
/// rows to change, and only the rollback undoes them.
async fn with_effects(
    client: &Client,
    lease: &Lease,
    batch: &Batch,
    append: Query<'_>,
) -> Result<Option<Row>> {
    let session = &lease.session;
    let effects = effects::of(session, &batch.entries);
    let (mut queries, rules): (Vec<_>, Vec<_>) = effects.into_iter().unzip();
    queries.splice(0..0, [Query::new("BEGIN"), append]);
    let mut answers = flight(client, &queries).await?.into_iter().skip(1);
    let appended = answers.next().and_then(|it| it.into_iter().next());
    let broken = rules
        .into_iter()
        .zip(answers.by_ref())
        .find_map(|(rule, rows)| rule.broken(&rows));
    if appended.is_none() || broken.is_some() {
        Query::new("ROLLBACK").rows(client).await?;
        return broken.filter(|_| appended.is_some()).map_or(Ok(None), Err);
    }
    let is_bound = |it: &Entry| matches!(it.effect, Effect::Bound { .. });
    let search = match batch.entries.iter().any(is_bound) {
        true => Some(read_search(client, session).await?),
        false => None,
    };
    let mut queries: Vec<_> = search.iter().map(Search::query).collect();
    queries.push(Query::new("COMMIT"));
    flight(client, &queries).await?;
    Ok(appended)
}

/// Why nothing was appended: another owner, another number, or because it was stored before.
async fn refused(client: &Client, lease: &Lease, batch: &Batch) -> Result<AppendedRows> {
    let log = LogHead::read(client, &lease.session).await?;
    if log.epoch != lease.epoch {
        return Err(fenced(client, lease).await?);
    }
    if let Some(numbers) = batch.stored_range(log.batch, log.head) {
        let stored = None;
        return Ok(AppendedRows { numbers, stored });
    }
    let numbers = batch.entries.iter().map(|it| it.seq);
    let out_of_order = numbers.zip(log.head + 1..).find(|(got, next)| got != next);
    match out_of_order {
        Some((got, next)) => Err(Error::OutOfOrder {
            session: lease.session.clone(),
            next,
            got,
        }),
        // The log is as it should be now: another try, with the same id, finds out.
        None => Err(Fault::Busy.into()),
    }
}

fn is_contiguous(entries: &[Entry]) -> bool {
    let Some(first) = entries.first() else {
        return true;
    };
    let fits = i64::try_from(first.seq).is_ok_and(|it| (1..=i64::MAX - (1 << 32)).contains(&it));
    fits && entries
        .iter()
        .zip(first.seq..)
        .all(|(it, seq)| it.seq == seq)
}

/// A name of an agent can be too long for an index.
fn too_large(err: Error, batch: &Batch) -> Error {
    const MAX_NAME: usize = 2600;
    match &err {
        Error::Storage(Fault::Database(source))
            if source
                .downcast_ref::<tokio_postgres::Error>()
                .and_then(tokio_postgres::Error::code)
                .is_some_and(|it| *it == SqlState::PROGRAM_LIMIT_EXCEEDED) =>
        {
            let (length, limit) = (batch.length(), MAX_NAME);
            Error::TooLarge { length, limit }
        }
        _ => err,
    }
}

/// The columns of the rows of a batch.
struct Columns {
    lines: Vec<Bytes>,
    sums: Vec<i64>,
    frame_sums: Vec<i64>,
}

impl Columns {
    fn of(session: &SessionId<'_>, entries: &[Entry]) -> Self {
        let lines: Vec<_> = entries.iter().map(Entry::line).collect();
        let rows = entries.iter().zip(&lines);
        let sums = rows.map(|(it, line)| sum(session, it.seq, line)).collect();
        let frame_sums = frames(entries).map(|(seq, bytes, _)| sum(session, seq, bytes));
        let frame_sums = frame_sums.collect();
        Self {
            lines,
            sums,
            frame_sums,
        }
    }

    fn query<'a>(&'a self, lease: &'a Lease, batch: &'a Batch) -> Query<'a> {
        let entries = &batch.entries;
        let column = |read: fn(&Entry) -> i64| entries.iter().map(read).collect::<Vec<_>>();
        let frame =
            |read: fn((u64, &Bytes, u64)) -> i64| frames(entries).map(read).collect::<Vec<_>>();
        let replies = batch
            .done
            .iter()
            .map(|it| Some(&batch.replies.get(it)?[..]));
        Query::new(APPEND)
            .text(lease.session.as_str())
            .bind(lease.epoch as i64)
            .bind(entries.first().map_or(0, |it| it.seq as i64))
            .id(batch.id)
            .bind(entries.len() as i64)
            .bind(batch.length() as i64)
            .bind(
                entries
                    .iter()
                    .map(|it| Some(it.at?.millis()))
                    .collect::<Vec<_>>(),
            )
            .bind(
                entries
                    .iter()
                    .map(|it| Text::from(it.kind.name()))
                    .collect::<Vec<_>>(),
            )
            .bind(column(|it| it.line_cut as i64))
            .bind(self.sums.clone())
            .bind(self.lines.iter().map(|it| &it[..]).collect::<Vec<_>>())
            .bind(frame(|(seq, _, _)| seq as i64))
            .bind(frame(|(_, _, cut)| cut as i64))
            .bind(self.frame_sums.clone())
            .bind(
                frames(entries)
                    .map(|(_, bytes, _)| &bytes[..])
                    .collect::<Vec<_>>(),
            )
            .bind(batch.done.iter().map(|it| *it as i64).collect::<Vec<_>>())
            .bind(entries.iter().any(|it| it.is_agents))
            .bind(replies.collect::<Vec<_>>())
    }
}

/// The frames with their numbers and what they lack.
fn frames(entries: &[Entry]) -> impl Iterator<Item = (u64, &Bytes, u64)> {
    entries
        .iter()
        .filter_map(|it| Some((it.seq, it.frame.as_ref()?, it.frame_cut)))
}
