//! Commands to the owner, and the asks that are answered through them.
//!
//! Whoever adds a command locks the row of the log first: the next statement sees what others have added
//! meanwhile, so the limit is exact and a number is given once. All of it is one round trip.

use bytes::Bytes;
use model::{AskId, Decision, RunId, SessionId, Timestamp};
use tokio_postgres::Row;

use super::append::now_millis;
use super::checksum::sum;
use super::client::Client;
use super::query::{Query, bytes, cursor, flight, get, number, optional_text, text};
use super::sessions::{CREATE, bind_new};
use super::text::Text;
use crate::command::{
    Command, CommandBody, CommandStatus, Enqueued, MAX_COMMANDS, PromptTarget, WaitingAsk,
};
use crate::error::{Damage, Error, Result};
use crate::node::Node;
use crate::write_id::WriteId;

const LOCK: &str = "SELECT l.session FROM linkspan.logs l
WHERE l.session = (SELECT key FROM linkspan.sessions WHERE id = $1) FOR UPDATE";

/// The number of the command with this id, or of a new one where there is room; and whether it is new.
const ADD: &str = concat!(
    "WITH known AS (SELECT number, session FROM linkspan.commands WHERE id = $2),
room AS (
  SELECT l.session FROM linkspan.logs l
  WHERE l.session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND NOT EXISTS (SELECT 1 FROM known)
    AND (SELECT count(*) FROM (
      SELECT 1 FROM linkspan.commands c WHERE c.session = l.session AND c.done_at IS NULL LIMIT $6) q) < $6),
n AS (
  UPDATE linkspan.logs l SET commands = commands + 1 FROM room WHERE l.session = room.session
  RETURNING l.session, l.home, l.commands),
stamp AS (UPDATE linkspan.sessions s SET changed_at = clock_timestamp() FROM n WHERE s.key = n.session),
i AS (
  INSERT INTO linkspan.commands (session, number, id, home, at, word, ask, body)
  SELECT session, commands, $2, home, ",
    now_millis!(),
    ", $3, $4, $5 FROM n RETURNING number, session)
SELECT number, session, true FROM i UNION ALL SELECT number, session, false FROM known"
);

/// A command that waits now.
#[derive(Debug)]
pub(super) struct AddedCommand {
    pub(super) number: u64,
    /// The key of the session.
    pub(super) session: i64,
    is_new: bool,
}

impl AddedCommand {
    fn read(rows: &[Row]) -> Result<Option<Self>> {
        let read = |row| {
            Ok(Self {
                number: number(row, 0)?,
                session: get(row, 1)?,
                is_new: get(row, 2)?,
            })
        };
        rows.first().map(read).transpose()
    }
}

fn add<'a>(session: &'a SessionId<'_>, id: WriteId, order: &'a CommandBody) -> Result<Query<'a>> {
    let (word, ask, body) = match order {
        CommandBody::Prompt(body) => ("prompt", None, body),
        CommandBody::Abort(body) => ("abort", None, body),
        CommandBody::Settle { ask, answer } => ("settle", Some(cursor(*ask)), answer),
        CommandBody::Damaged => return Err(Error::damaged(session, Damage::Command(0))),
    };
    Ok(Query::new(ADD)
        .text(session.as_str())
        .id(id)
        .text(word)
        .bind(ask)
        .bind(&body[..])
        .bind(MAX_COMMANDS as i64))
}

pub(super) async fn command(
    client: &Client,
    session: &SessionId<'_>,
    id: WriteId,
    order: &CommandBody,
) -> Result<AddedCommand> {
    let queries = [
        Query::new("BEGIN"),
        Query::new(LOCK).text(session.as_str()),
        add(session, id, order)?,
        Query::new("COMMIT"),
    ];
    let answers = flight(client, &queries).await?;
    let added = AddedCommand::read(&answers[2])?;
    added.ok_or_else(|| not_added(session, &answers[1]))
}

/// Why there is no new command; `locked` is the row of the log.
fn not_added(session: &SessionId<'_>, locked: &[Row]) -> Error {
    match locked {
        [] => Error::no_session(session),
        _ => Error::TooManyCommands {
            session: session.clone().into_owned(),
            pending: MAX_COMMANDS,
        },
    }
}

const POSITION: &str = "SELECT
  (SELECT count(*) FROM linkspan.commands c JOIN linkspan.commands own ON own.id = $1 AND own.session = c.session
   WHERE c.done_at IS NULL AND c.word = 'prompt' AND c.number < own.number)
+ (SELECT count(*) FROM linkspan.runs r
   WHERE r.session = (SELECT session FROM linkspan.commands WHERE id = $1) AND r.last IS NULL)";

/// Leaves a prompt, in a session that is made for it if need be.
pub(super) async fn enqueue(
    client: &Client,
    target: &PromptTarget,
    id: WriteId,
    order: &CommandBody,
) -> Result<(AddedCommand, Enqueued)> {
    let session = target.session();
    let create = match target {
        PromptTarget::Session(_) => Query::new("SELECT 1 WHERE false"),
        PromptTarget::New(new) | PromptTarget::Either(new) => bind_new(Query::new(CREATE), new, id),
    };
    let queries = [
        Query::new("BEGIN"),
        create,
        Query::new(LOCK).text(session.as_str()),
        add(session, id, order)?,
        Query::new(POSITION).id(id),
    ];
    let answers = flight(client, &queries).await?;
    let is_created = !answers[1].is_empty();
    let refusal = match (AddedCommand::read(&answers[3])?, target) {
        (None, _) => not_added(session, &answers[2]),
        (Some(added), PromptTarget::New(_)) if added.is_new && !is_created => {
            Error::SessionExists {
                session: session.clone(),
            }
        }
        (Some(added), _) => {
            Query::new("COMMIT").rows(client).await?;
            let position = answers[4].first().map_or(Ok(0), |it| number(it, 0))?;
            let number = added.number;
            return Ok((added, Enqueued { number, position }));
        }
    };
    Query::new("ROLLBACK").rows(client).await?;
    Err(refusal)
}

const COMMANDS: &str = "SELECT number, at, word, ask, body FROM linkspan.commands
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND number > $2 AND done_at IS NULL
ORDER BY number";

pub(super) async fn commands(
    client: &Client,
    session: &SessionId<'_>,
    after: u64,
) -> Result<Vec<Command>> {
    let queries = [
        Query::new("SELECT key FROM linkspan.sessions WHERE id = $1").text(session.as_str()),
        pending_of(session, after),
    ];
    let answers = flight(client, &queries).await?;
    match answers[0][..] {
        [] => Err(Error::no_session(session)),
        _ => answers[1].iter().map(self::read).collect(),
    }
}

pub(super) fn pending_of<'a>(session: &'a SessionId<'_>, after: u64) -> Query<'a> {
    Query::new(COMMANDS)
        .text(session.as_str())
        .bind(cursor(after))
}

pub(super) fn read(row: &Row) -> Result<Command> {
    let body = bytes(row, 4)?;
    Ok(Command {
        number: number(row, 0)?,
        at: Timestamp::from_millis(get(row, 1)?),
        order: match get::<&str>(row, 2)? {
            "prompt" => CommandBody::Prompt(body),
            "abort" => CommandBody::Abort(body),
            "settle" => CommandBody::Settle {
                ask: number(row, 3)?,
                answer: body,
            },
            // A word of a later version, or none: it must not be taken for another.
            _ => CommandBody::Damaged,
        },
    })
}

const FIND: &str = "SELECT number, done_at IS NOT NULL, reply FROM linkspan.commands WHERE id = $1";

pub(super) async fn find_command(client: &Client, id: WriteId) -> Result<Option<CommandStatus>> {
    let Some(row) = Query::new(FIND).id(id).row(client).await? else {
        return Ok(None);
    };
    let reply: Option<&[u8]> = get(&row, 2)?;
    Ok(Some(CommandStatus {
        number: number(&row, 0)?,
        is_done: get(&row, 1)?,
        reply: reply.map(Bytes::copy_from_slice),
    }))
}

const PENDING: &str = "SELECT s.id FROM linkspan.sessions s
WHERE s.key IN (
  SELECT session FROM linkspan.commands WHERE done_at IS NULL AND ($1::text IS NULL OR home = $1))
ORDER BY s.key";

pub(super) async fn pending(
    client: &Client,
    home: Option<&Node>,
) -> Result<Vec<SessionId<'static>>> {
    let rows = of_home(PENDING, home).rows(client).await?;
    rows.iter()
        .map(|it| Ok(SessionId::new(text(it, 0)?)))
        .collect()
}

pub(super) fn of_home<'a>(sql: &'a str, home: Option<&'a Node>) -> Query<'a> {
    Query::new(sql).bind(home.map(|it| Text::from(it.as_str())))
}

const ASKS: &str = "SELECT s.id, a.seq, a.ask, a.run, a.at, a.answered, e.sum, e.line
FROM linkspan.asks a JOIN linkspan.sessions s ON s.key = a.session
JOIN linkspan.events e ON e.session = a.session AND e.seq = a.seq
WHERE a.decision IS NULL AND ($1::text IS NULL OR a.home = $1) ORDER BY a.at, a.session, a.seq";

const ASKS_OF: &str = "SELECT s.id, a.seq, a.ask, a.run, a.at, a.answered, e.sum, e.line
FROM linkspan.asks a JOIN linkspan.sessions s ON s.key = a.session
JOIN linkspan.events e ON e.session = a.session AND e.seq = a.seq
WHERE a.decision IS NULL AND s.id = $1 ORDER BY a.at, a.seq";

pub(super) async fn asks(client: &Client, home: Option<&Node>) -> Result<Vec<WaitingAsk>> {
    read_asks(&of_home(ASKS, home).rows(client).await?)
}

pub(super) fn asks_of<'a>(session: &'a SessionId<'_>) -> Query<'a> {
    Query::new(ASKS_OF).text(session.as_str())
}

/// Damaged ones are skipped: an altered question must not be answered.
pub(super) fn read_asks(rows: &[Row]) -> Result<Vec<WaitingAsk>> {
    let mut asks = Vec::new();
    for row in rows {
        let session = SessionId::new(text(row, 0)?);
        let (seq, line) = (number(row, 1)?, get::<&[u8]>(row, 7)?);
        if get::<i64>(row, 6)? == sum(&session, seq, line) {
            asks.push(WaitingAsk {
                session,
                seq,
                ask: AskId::new(text(row, 2)?),
                run: optional_text(row, 3)?.map(RunId::new),
                at: Timestamp::from_millis(get(row, 4)?),
                answered: get(row, 5)?,
                line: WaitingAsk::listed(line),
            });
        }
    }
    Ok(asks)
}

const ASK: &str = "SELECT a.answered, a.decision, e.sum, e.line
FROM linkspan.asks a LEFT JOIN linkspan.events e ON e.session = a.session AND e.seq = a.seq
WHERE a.session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND a.seq = $2";

const ANSWER: &str = "UPDATE linkspan.asks SET answered = true
WHERE session = (SELECT key FROM linkspan.sessions WHERE id = $1) AND seq = $2";

/// The first answer wins; the lock of the log makes the others wait, and find it.
pub(super) async fn settle(
    client: &Client,
    session: &SessionId<'_>,
    seq: u64,
    id: WriteId,
    answer: Bytes,
) -> Result<AddedCommand> {
    let key = |sql| Query::new(sql).text(session.as_str()).bind(cursor(seq));
    let order = CommandBody::Settle { ask: seq, answer };
    let queries = [
        Query::new("BEGIN"),
        Query::new(LOCK).text(session.as_str()),
        key(ASK),
        add(session, id, &order)?,
    ];
    let answers = flight(client, &queries).await?;
    let settled = match AddedCommand::read(&answers[3])? {
        // It was taken before, and its answer was lost.
        Some(added) if !added.is_new => Ok(added),
        _ if answers[1].is_empty() => Err(Error::no_session(session)),
        // What is wrong with the ask comes before a queue that is full: it stays wrong.
        added => check_ask(session, seq, answers[2].first())
            .and_then(|()| added.ok_or_else(|| not_added(session, &answers[1]))),
    };
    let end = match &settled {
        Ok(added) if added.is_new => vec![key(ANSWER), Query::new("COMMIT")],
        _ => vec![Query::new("ROLLBACK")],
    };
    flight(client, &end).await?;
    settled
}

/// Fails unless the ask is there, whole and waiting.
fn check_ask(session: &SessionId<'_>, seq: u64, ask: Option<&Row>) -> Result<()> {
    let id = session.clone().into_owned();
    let Some(row) = ask else {
        return Err(Error::NoAsk { session: id, seq });
    };
    let line = get::<Option<&[u8]>>(row, 3)?.unwrap_or_default();
    if get::<Option<i64>>(row, 2)? != Some(sum(session, seq, line)) {
        return Err(Error::damaged(session, Damage::Ask(seq)));
    }
    let decision = get::<Option<&str>>(row, 1)?;
    if !get::<bool>(row, 0)? && decision.is_none() {
        return Ok(());
    }
    Err(Error::Answered {
        session: id,
        seq,
        decision: decision.and_then(Decision::find),
    })
}
