//! What events change beside the log: runs, asks, and the names of the session.

use model::{AskId, RunId, SessionId};
use tokio_postgres::Row;

use super::append::now_millis;
use super::query::Query;
use super::text::Text;
use crate::entry::{Effect, Entry};
use crate::error::Error;

/// The error when a statement changed no row.
pub(super) enum Expectation {
    None,
    Changes(Error),
}

impl Expectation {
    pub(super) fn broken(self, rows: &[Row]) -> Option<Error> {
        match self {
            Self::Changes(error) if rows.is_empty() => Some(error),
            Self::Changes(_) | Self::None => None,
        }
    }
}

type Step<'a> = (Query<'a>, Expectation);

/// The statements for the effects of a batch, in order.
pub(super) fn of<'a>(session: &'a SessionId<'static>, entries: &'a [Entry]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for entry in entries {
        let at = entry.at.map(|it| it.millis());
        let seq = entry.seq as i64;
        match &entry.effect {
            Effect::None => (),
            Effect::Bound { native, cwd } => bound(&mut steps, session, native, cwd.as_deref()),
            Effect::RunStarted(run) => {
                steps.push(touch(session));
                let query = Query::new(START_RUN)
                    .text(session.as_str())
                    .text(run.as_str());
                let query = query.bind(seq).bind(at).bind(entry.is_agents);
                steps.push((query, Expectation::Changes(run_started(session, run))));
            }
            Effect::RunEnded(run, outcome) => {
                let query = Query::new(END_RUN)
                    .text(session.as_str())
                    .text(run.as_str());
                let query = query.bind(seq).bind(at).text(outcome.name());
                steps.push((query, Expectation::Changes(run_not_open(session, run))));
                steps.push(touch(session));
            }
            Effect::AskOpened(ask, run) => {
                let run = run.as_ref().map(|it| Text::from(it.as_str()));
                let query = Query::new(OPEN_ASK)
                    .text(session.as_str())
                    .text(ask.as_str());
                let query = query.bind(seq).bind(at).bind(run);
                steps.push((query, Expectation::Changes(ask_open(session, ask))));
            }
            Effect::AskSettled(ask, decision) => {
                let query = Query::new(SETTLE_ASK)
                    .text(session.as_str())
                    .text(ask.as_str());
                let query = query.text(decision.name());
                steps.push((query, Expectation::Changes(ask_not_open(session, ask))));
            }
        }
    }
    // Once for a batch, after its runs have been opened.
    if entries.iter().any(|it| it.is_agents) {
        steps.push((Query::new(HEARD).text(session.as_str()), Expectation::None));
    }
    steps
}

fn bound<'a>(
    steps: &mut Vec<Step<'a>>,
    session: &'a SessionId<'static>,
    native: &'a SessionId<'static>,
    cwd: Option<&'a str>,
) {
    let names = [NAME, BIND].map(|it| Query::new(it).text(session.as_str()).text(native.as_str()));
    let [name, bind] = names;
    steps.push((name, Expectation::None));
    steps.push((bind.bind(cwd.map(Text::from)), Expectation::None));
}

/// An agent names its session again with every resume.
const NAME: &str = "INSERT INTO linkspan.natives (native, session)
SELECT $2, key FROM linkspan.sessions WHERE id = $1 ON CONFLICT DO NOTHING";

const BIND: &str = "UPDATE linkspan.sessions
SET native = $2, cwd = coalesce(cwd, $3), changed_at = clock_timestamp() WHERE id = $1";

/// The session is active: it moves to the top of the list.
fn touch<'a>(session: &'a SessionId<'_>) -> Step<'a> {
    const TOUCH: &str = concat!(
        "UPDATE linkspan.sessions SET activity = nextval('linkspan.activities'), active_at = ",
        now_millis!(),
        ", changed_at = clock_timestamp() WHERE id = $1"
    );
    (Query::new(TOUCH).text(session.as_str()), Expectation::None)
}

const START_RUN: &str = concat!(
    "INSERT INTO linkspan.runs (session, home, run, first, started_at, heard, activity)
SELECT key, home, $2, $3, coalesce($4, ",
    now_millis!(),
    "), $5, activity FROM linkspan.sessions WHERE id = $1
ON CONFLICT DO NOTHING RETURNING first"
);

const END_RUN: &str = concat!(
    "UPDATE linkspan.runs SET last = $3, ended_at = coalesce($4, ",
    now_millis!(),
    "), outcome = $5
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND run = $2 AND last IS NULL
RETURNING first"
);

const OPEN_ASK: &str = concat!(
    "INSERT INTO linkspan.asks (session, home, seq, ask, run, at)
SELECT key, home, $3, $2, $5, coalesce($4, ",
    now_millis!(),
    ") FROM linkspan.sessions WHERE id = $1
ON CONFLICT DO NOTHING RETURNING seq"
);

const SETTLE_ASK: &str = "UPDATE linkspan.asks SET decision = $3
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND ask = $2 AND decision IS NULL
RETURNING seq";

/// The agent of the open run has emitted an event.
const HEARD: &str = "UPDATE linkspan.runs SET heard = true
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND last IS NULL AND NOT heard";

fn run_started(session: &SessionId<'static>, run: &RunId<'static>) -> Error {
    let (session, run) = (session.clone(), run.clone());
    Error::RunStarted { session, run }
}

fn run_not_open(session: &SessionId<'static>, run: &RunId<'static>) -> Error {
    let (session, run) = (session.clone(), run.clone());
    Error::RunNotOpen { session, run }
}

fn ask_open(session: &SessionId<'static>, ask: &AskId<'static>) -> Error {
    let (session, ask) = (session.clone(), ask.clone());
    Error::AskOpen { session, ask }
}

fn ask_not_open(session: &SessionId<'static>, ask: &AskId<'static>) -> Error {
    let (session, ask) = (session.clone(), ask.clone());
    Error::AskNotOpen { session, ask }
}
