//! Appending: the fence, the numbers and the events in one statement, and what they change beside the log in
//! the transaction around it.

use std::iter;
use std::ops::Range;

use bytes::Bytes;
use model::{SessionId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::checksum::sum;
use super::client::Client;
use super::effects;
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
const FENCE: &str = "WITH fence AS (
  UPDATE linkspan.logs SET head = head + $5, bytes = bytes + $6, batch = $4
  WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND epoch = $2
    AND ($5 = 0 OR head = $3 - 1)
  RETURNING session, epoch, head)";

const EVENTS: &str = concat!(
    ", ins AS (
  INSERT INTO linkspan.events (session, seq, at, epoch, kind, cut, sum, line)
  SELECT f.session, $3 + e.n - 1, coalesce(e.at, ",
    now_millis!(),
    "), f.epoch, e.kind, e.cut, e.sum, e.line
  FROM fence f, unnest($7::bigint[], $8::text[], $9::bigint[], $10::bigint[], $11::bytea[])
    WITH ORDINALITY AS e(at, kind, cut, sum, line, n))"
);

/// The agent of the open run has emitted an event.
const HEARD: &str = ", heard AS (
  UPDATE linkspan.runs SET heard = true
  WHERE session = (SELECT session FROM fence) AND last IS NULL AND NOT heard)";

const FRAMES: &str = ", frames AS (
  INSERT INTO linkspan.frames (session, seq, cut, sum, bytes)
  SELECT f.session, e.seq, e.cut, e.sum, e.bytes
  FROM fence f, unnest($12::bigint[], $13::bigint[], $14::bigint[], $15::bytea[]) AS e(seq, cut, sum, bytes))";

const DONE: &str = ", done AS (
  UPDATE linkspan.commands c SET done_at = now(), reply = d.reply
  FROM unnest($16::bigint[], $17::bytea[]) AS d(number, reply)
  WHERE c.session = (SELECT session FROM fence) AND c.number = d.number AND c.done_at IS NULL)";

const ANSWER: &str = concat!(" SELECT session, head, ", now_millis!(), " FROM fence");

/// The statement for a batch. Most have events and nothing else, and planning the rest would take longer than
/// storing them; `$12` to `$17` are sent when any of it is needed.
fn append_sql(batch: &Batch, is_responsive: bool) -> String {
    let has_frames = frames(&batch.entries).next().is_some();
    let is_news = !is_responsive && batch.entries.iter().any(|it| it.is_agents);
    let parts = [
        (!batch.entries.is_empty(), EVENTS),
        (is_news, HEARD),
        (has_frames, FRAMES),
        (!batch.done.is_empty(), DONE),
    ];
    let parts = parts.iter().filter(|it| it.0).map(|it| it.1);
    iter::once(FENCE).chain(parts).chain([ANSWER]).collect()
}

/// Events that are stored now.
#[derive(Debug)]
pub(super) struct AppendedRows {
    pub(super) numbers: Range<u64>,
    /// The key of the session, and the time of the database. Absent for a batch that was stored before: its
    /// time is not known any more.
    pub(super) stored: Option<(i64, Timestamp)>,
}

/// `is_responsive`: the open run of the session is known as one whose agent has emitted an event.
pub(super) async fn append(
    client: &Client,
    lease: &Lease,
    batch: &Batch,
    is_responsive: bool,
) -> Result<AppendedRows> {
    // The statement numbers events by itself: a gap would be closed by it.
    if !is_contiguous(&batch.entries) {
        return refused(client, lease, batch).await;
    }
    let columns = Columns::of(&lease.session, &batch.entries);
    let sql = append_sql(batch, is_responsive);
    let query = columns.query(&sql, lease, batch);
    let has_effects = batch.entries.iter().any(|it| it.effect != Effect::None);
    let appended = match has_effects {
        true => with_effects(client, lease, batch, query).await,
        false => query.hot().row(client).await,
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
    let log = LogHead::fence(client, lease).await?;
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
    let state = match &err {
        Error::Storage(Fault::Database(source)) => source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code),
        _ => None,
    };
    if state != Some(&SqlState::PROGRAM_LIMIT_EXCEEDED) {
        return err;
    }
    let (length, limit) = (batch.length(), MAX_NAME);
    Error::TooLarge { length, limit }
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

    fn query<'a>(&'a self, sql: &'a str, lease: &'a Lease, batch: &'a Batch) -> Query<'a> {
        let entries = &batch.entries;
        let times = entries.iter().map(|it| Some(it.at?.millis()));
        let kinds = entries.iter().map(|it| Text::from(it.kind.name()));
        let query = Query::new(sql)
            .text(lease.session.as_str())
            .bind(lease.epoch as i64)
            .bind(entries.first().map_or(0, |it| it.seq as i64))
            .id(batch.id)
            .bind(entries.len() as i64)
            .bind(batch.length() as i64)
            .bind(times.collect::<Vec<_>>())
            .bind(kinds.collect::<Vec<_>>())
            .bind(list(entries.iter().map(|it| it.line_cut)))
            .bind(self.sums.clone())
            .bind(self.lines.iter().map(|it| &it[..]).collect::<Vec<_>>());
        match self.frame_sums.is_empty() && batch.done.is_empty() {
            true => query,
            false => self.with_frames_and_done(query, batch),
        }
    }

    fn with_frames_and_done<'a>(&'a self, query: Query<'a>, batch: &'a Batch) -> Query<'a> {
        let frames = || frames(&batch.entries);
        let replies = batch.done.iter();
        let replies = replies.map(|it| Some(&batch.replies.get(it)?[..]));
        query
            .bind(list(frames().map(|it| it.0)))
            .bind(list(frames().map(|it| it.2)))
            .bind(self.frame_sums.clone())
            .bind(frames().map(|it| &it.1[..]).collect::<Vec<_>>())
            .bind(list(batch.done.iter().copied()))
            .bind(replies.collect::<Vec<_>>())
    }
}

fn list(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    numbers.map(|it| it as i64).collect()
}

/// The frames with their numbers and what they lack.
fn frames(entries: &[Entry]) -> impl Iterator<Item = (u64, &Bytes, u64)> {
    entries
        .iter()
        .filter_map(|it| Some((it.seq, it.frame.as_ref()?, it.frame_cut)))
}
