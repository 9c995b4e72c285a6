//! Removing sessions. The rows that make one visible go at once; its events are swept away in small steps, so
//! that nobody waits for the removal of a large session.

use tokio_postgres::Row;

use super::append::now_millis;
use super::client::Client;
use super::leases::fenced;
use super::query::{Query, flight, get, number};
use crate::command::KEEP_DONE_MILLIS;
use crate::error::{Error, Fault, Result};
use crate::lease::Lease;
use crate::retention::{Candidate, Excess, Removed, Retention};

/// Sessions that are looked at in one transaction.
const PAGE: i64 = 1000;
/// Rows that one step deletes.
const SWEEP: i64 = 1000;

/// Makes the sessions vanish whose logs `gone` names.
macro_rules! remove {
    ($gone:literal) => {
        concat!(
            "WITH gone AS (",
            $gone,
            " RETURNING session),
a AS (DELETE FROM linkspan.sessions USING gone WHERE key = gone.session),
b AS (DELETE FROM linkspan.runs r USING gone WHERE r.session = gone.session),
c AS (DELETE FROM linkspan.asks k USING gone WHERE k.session = gone.session),
d AS (DELETE FROM linkspan.commands m USING gone WHERE m.session = gone.session),
e AS (DELETE FROM linkspan.natives n USING gone WHERE n.session = gone.session),
f AS (DELETE FROM linkspan.words w USING gone WHERE w.session = gone.session)
INSERT INTO linkspan.doomed (session) SELECT session FROM gone RETURNING session"
        )
    };
}

const REMOVE: &str = remove!(
    "DELETE FROM linkspan.logs
     WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND epoch = $2"
);

/// Removes the session that a lease is for, and returns its key.
pub(super) async fn remove(client: &Client, lease: &Lease) -> Result<i64> {
    let query = Query::new(REMOVE)
        .text(lease.session.as_str())
        .bind(lease.epoch as i64);
    match query.row(client).await? {
        Some(row) => get(&row, 0),
        None => Err(fenced(client, lease).await),
    }
}

const REMOVE_ALL: &str = remove!("DELETE FROM linkspan.logs WHERE session = ANY($1)");

const TOTALS: &str = concat!(
    "SELECT count(*), coalesce(sum(bytes), 0)::bigint, ",
    now_millis!(),
    " FROM linkspan.logs"
);

/// The logs stay locked until the end of the transaction: nobody takes a session that is about to go. One
/// that somebody writes right now is not idle.
const LOCK: &str = "SELECT l.session, s.activity FROM linkspan.sessions s
JOIN linkspan.logs l ON l.session = s.key WHERE s.activity > $1 ORDER BY s.activity LIMIT $2
FOR UPDATE OF l SKIP LOCKED";

/// One whose home cannot be reached is busy: its agent may still work.
const CANDIDATES: &str = "SELECT s.key, s.active_at, l.bytes,
  EXISTS (SELECT 1 FROM linkspan.runs r WHERE r.session = s.key AND r.last IS NULL)
  OR EXISTS (SELECT 1 FROM linkspan.commands c WHERE c.session = s.key AND c.done_at IS NULL)
  OR coalesce(l.until > clock_timestamp(), false)
  OR EXISTS (SELECT 1 FROM linkspan.nodes n
             WHERE n.name = s.home AND n.until <= now() AND n.retired_at IS NULL) AS busy
FROM linkspan.sessions s JOIN linkspan.logs l ON l.session = s.key
WHERE s.key = ANY($1) ORDER BY s.activity";

/// A step of a retention: what it took away, and where the next one begins.
#[derive(Debug)]
pub(super) struct RetentionStep {
    pub(super) removed: Removed,
    pub(super) next: Option<i64>,
}

/// Looks at the sessions after `after` in the order of the list, from the oldest on. What is over the limits
/// is counted anew by each step, so that one whose answer was lost can be repeated.
pub(super) async fn step(
    client: &Client,
    retention: &Retention,
    after: i64,
) -> Result<RetentionStep> {
    // One node at a time: two would each remove what is over the limits.
    let alone = "SELECT pg_try_advisory_xact_lock(hashtextextended('linkspan retention', 0))";
    let queries = [
        Query::new("BEGIN"),
        Query::new(alone),
        Query::new(TOTALS),
        Query::new(LOCK).bind(after).bind(PAGE),
    ];
    let answers = flight(client, &queries).await?;
    let is_alone = |it: &Row| get(it, 0).unwrap_or(false);
    let mut step = RetentionStep {
        removed: Removed::default(),
        next: None,
    };
    if answers[1].first().is_some_and(is_alone)
        && let (Some(totals), Some(last)) = (answers[2].first(), answers[3].last())
    {
        let totals = (number(totals, 0)?, number(totals, 1)?, get(totals, 2)?);
        let excess = retention.excess(totals.0, totals.1, totals.2);
        let keys = answers[3]
            .iter()
            .map(|it| get(it, 0))
            .collect::<Result<_>>()?;
        let (removed, is_over) = remove_some(client, keys, excess).await?;
        step.removed = removed;
        step.next = is_over.then(|| get(last, 1)).transpose()?;
    }
    Query::new("COMMIT").rows(client).await?;
    Ok(step)
}

/// Removes what goes of these sessions; also says whether newer ones may have to go.
async fn remove_some(
    client: &Client,
    keys: Vec<i64>,
    mut excess: Excess,
) -> Result<(Removed, bool)> {
    let rows = Query::new(CANDIDATES).bind(keys).rows(client).await?;
    let mut removed = Removed::default();
    let mut gone = Vec::new();
    let mut is_over = false;
    for row in &rows {
        let candidate = candidate(row)?;
        if excess.goes(&candidate) {
            removed.sessions += 1;
            removed.bytes += candidate.bytes;
            gone.push(candidate.key);
        }
        is_over = excess.may_go(candidate.active_at);
    }
    Query::new(REMOVE_ALL).bind(gone).rows(client).await?;
    Ok((removed, is_over))
}

fn candidate(row: &Row) -> Result<Candidate<i64>> {
    Ok(Candidate {
        key: get(row, 0)?,
        active_at: get(row, 1)?,
        bytes: number(row, 2)?,
        busy: get(row, 3)?,
    })
}

/// One step of sweeping; whether there is more to do.
pub(super) async fn sweep(client: &Client) -> Result<bool> {
    let doomed = Query::new("SELECT session FROM linkspan.doomed LIMIT 1");
    let Some(row) = doomed.row(client).await? else {
        return Ok(false);
    };
    let session: i64 = get(&row, 0)?;
    let delete = |sql| Query::new(sql).bind(session).bind(SWEEP);
    let queries = [
        delete(
            "WITH gone AS (DELETE FROM linkspan.events WHERE session = $1 AND seq <= $2 + (
               SELECT coalesce(min(seq), 0) FROM linkspan.events WHERE session = $1) RETURNING 1)
             SELECT count(*) FROM gone",
        ),
        delete(
            "WITH gone AS (DELETE FROM linkspan.frames WHERE session = $1 AND seq <= $2 + (
               SELECT coalesce(min(seq), 0) FROM linkspan.frames WHERE session = $1) RETURNING 1)
             SELECT count(*) FROM gone",
        ),
    ];
    let answers = flight(client, &queries).await?;
    let counts = answers.iter().flatten().map(|it| number(it, 0));
    // An empty step means that none is left.
    if counts.sum::<Result<u64>>()? == 0 {
        let done = "DELETE FROM linkspan.doomed WHERE session = $1";
        Query::new(done).bind(session).rows(client).await?;
    }
    Ok(true)
}

/// Nobody sends a command again after a day, and nobody waits for a call that is over. Whether there is more.
pub(super) async fn forget_done(client: &Client) -> Result<bool> {
    let commands = "WITH gone AS (DELETE FROM linkspan.commands WHERE (session, number) IN (
        SELECT session, number FROM linkspan.commands
        WHERE done_at < now() - $1 * interval '1 ms' ORDER BY done_at LIMIT $2) RETURNING 1)
      SELECT count(*) FROM gone";
    let queries = [
        Query::new(commands).bind(KEEP_DONE_MILLIS).bind(SWEEP),
        Query::new("DELETE FROM linkspan.calls WHERE until < now() - interval '1 hour'"),
    ];
    let answers = flight(client, &queries).await?;
    let row = answers[0].first().ok_or(Error::from(Fault::Lost))?;
    Ok(number(row, 0)? >= SWEEP as u64)
}
