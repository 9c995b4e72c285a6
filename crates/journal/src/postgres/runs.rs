//! Runs: those of a session, and open ones.

use model::{Outcome, RunId, SessionId, Timestamp};
use tokio_postgres::Row;

use super::client::Client;
use super::commands::{asks_of, of_home, pending_of, read as read_command, read_asks};
use super::query::{Query, cursor, flight, get, number, optional_text, text};
use super::sessions::{find_query, session};
use crate::error::{Error, Fault, Result};
use crate::lease::{Holder, Owner};
use crate::node::Node;
use crate::run::{OpenRun, Overview, Run, RunEnd};

/// What [`run`] reads.
macro_rules! run_columns {
    () => {
        "SELECT s.id, r.run, r.first, r.started_at, r.activity, r.last, r.ended_at, r.outcome"
    };
}

const RUNS: &str = concat!(
    run_columns!(),
    " FROM linkspan.runs r JOIN linkspan.sessions s ON s.key = r.session
WHERE s.id = $1 AND r.first < $2 ORDER BY r.first DESC LIMIT $3"
);

fn runs_of<'a>(session: &'a SessionId<'_>, before: Option<u64>, limit: u32) -> Query<'a> {
    Query::new(RUNS)
        .text(session.as_str())
        .bind(before.map_or(i64::MAX, cursor))
        .bind(i64::from(limit))
}

pub(super) async fn runs(
    client: &Client,
    session: &SessionId<'_>,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<Run>> {
    let queries = [
        Query::new("SELECT key FROM linkspan.sessions WHERE id = $1").text(session.as_str()),
        runs_of(session, before, limit),
    ];
    let answers = flight(client, &queries).await?;
    match answers[0][..] {
        [] => Err(Error::no_session(session)),
        _ => answers[1].iter().map(run).collect(),
    }
}

/// Everything about a session as it is at one moment: a run could end between two queries, and the parts
/// would contradict each other.
pub(super) async fn overview(
    client: &Client,
    id: &SessionId<'_>,
    n_runs: u32,
) -> Result<Option<Overview>> {
    let queries = [
        Query::new("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        find_query(id),
        runs_of(id, None, n_runs),
        pending_of(id, 0),
        asks_of(id),
        Query::new("COMMIT"),
    ];
    let answers = flight(client, &queries).await?;
    let Some(found) = answers[1].first() else {
        return Ok(None);
    };
    Ok(Some(Overview {
        session: session(found)?,
        runs: answers[2].iter().map(run).collect::<Result<_>>()?,
        commands: answers[3].iter().map(read_command).collect::<Result<_>>()?,
        asks: read_asks(&answers[4])?,
    }))
}

const FIND: &str = concat!(
    run_columns!(),
    " FROM linkspan.runs r JOIN linkspan.sessions s ON s.key = r.session
WHERE r.run = $1 ORDER BY r.started_at DESC, s.key DESC LIMIT 1"
);

pub(super) async fn find_run(client: &Client, id: &RunId<'_>) -> Result<Option<Run>> {
    let row = Query::new(FIND).text(id.as_str()).row(client).await?;
    row.as_ref().map(run).transpose()
}

const OPEN: &str = concat!(
    run_columns!(),
    ", l.owner, l.epoch, l.until <= clock_timestamp() AS lapsed
FROM linkspan.runs r JOIN linkspan.sessions s ON s.key = r.session JOIN linkspan.logs l ON l.session = r.session
WHERE r.last IS NULL AND ($1::text IS NULL OR r.home = $1) ORDER BY r.started_at, r.session, r.first"
);

pub(super) async fn open_runs(client: &Client, home: Option<&Node>) -> Result<Vec<OpenRun>> {
    let rows = of_home(OPEN, home).rows(client).await?;
    let open = |row: &Row| {
        let holder = match optional_text(row, 8)? {
            None => None,
            Some(owner) => Some(Holder {
                owner: Owner::new(owner),
                epoch: number(row, 9)?,
                lapsed: get::<Option<bool>>(row, 10)?.unwrap_or(true),
            }),
        };
        let run = run(row)?;
        Ok(OpenRun { run, holder })
    };
    rows.iter().map(open).collect()
}

fn run(row: &Row) -> Result<Run> {
    let last: Option<i64> = get(row, 5)?;
    Ok(Run {
        session: SessionId::new(text(row, 0)?),
        run: RunId::new(text(row, 1)?),
        first: number(row, 2)?,
        started_at: Timestamp::from_millis(get(row, 3)?),
        activity: number(row, 4)?,
        end: last.map(|last| run_end(row, last as u64)).transpose()?,
    })
}

fn run_end(row: &Row, seq: u64) -> Result<RunEnd> {
    let outcome = Outcome::find(get(row, 7)?);
    Ok(RunEnd {
        seq,
        at: Timestamp::from_millis(get(row, 6)?),
        outcome: outcome.ok_or_else(|| Fault::Corrupt("an unknown end of a run".to_owned()))?,
    })
}
