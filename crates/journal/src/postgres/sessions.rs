//! Sessions: made, found, listed, renamed.

use model::{SessionId, Timestamp};
use tokio_postgres::Row;

use super::append::now_millis;
use super::client::Client;
use super::query::{Query, flight, get, number, optional_text, text};
use super::text::Text;
use crate::error::{Error, Fault, Result};
use crate::node::Node;
use crate::session::{
    ListCursor, Listing, NewSession, Parent, Session, SessionQuery, State, searchable,
};
use crate::write_id::WriteId;

/// What [`session`] reads.
macro_rules! session_columns {
    () => {
        "SELECT s.id, s.home, s.engine, s.native, s.cwd, s.title, s.created_at, s.active_at, s.activity,
  s.parent, s.parent_seq, l.head, l.bytes,
  (SELECT count(*) FROM linkspan.commands c
   WHERE c.session = s.key AND c.done_at IS NULL AND c.word = 'prompt') AS queued,
  CASE WHEN EXISTS (SELECT 1 FROM linkspan.asks a
                    WHERE a.session = s.key AND a.decision IS NULL AND NOT a.answered) THEN 'waiting'
       WHEN EXISTS (SELECT 1 FROM linkspan.runs r WHERE r.session = s.key AND r.last IS NULL AND r.heard)
       THEN 'running'
       WHEN EXISTS (SELECT 1 FROM linkspan.runs r WHERE r.session = s.key AND r.last IS NULL) THEN 'starting'
       WHEN EXISTS (SELECT 1 FROM linkspan.commands c
                    WHERE c.session = s.key AND c.done_at IS NULL AND c.word = 'prompt') THEN 'queued'
       ELSE 'idle' END AS state
FROM linkspan.sessions s JOIN linkspan.logs l ON l.session = s.key "
    };
}

/// No row: the name is taken, by another or by an earlier try.
pub(super) const CREATE: &str = concat!(
    "WITH s AS (
  INSERT INTO linkspan.sessions
    (id, made, home, engine, cwd, title, search, parent, parent_seq, created_at, active_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ",
    now_millis!(),
    ", ",
    now_millis!(),
    ") ON CONFLICT (id) DO NOTHING RETURNING key, home)
INSERT INTO linkspan.logs (session, home) SELECT key, home FROM s RETURNING session"
);

/// The parameters of [`CREATE`].
pub(super) fn bind_new<'a>(query: Query<'a>, new: &'a NewSession, id: WriteId) -> Query<'a> {
    let (title, cwd) = (new.title.as_deref(), new.cwd.as_deref());
    let parent = new.parent.as_ref();
    query
        .text(new.id.as_str())
        .id(id)
        .text(new.home.as_str())
        .text(&new.engine)
        .bind(cwd.map(Text::from))
        .bind(title.map(Text::from))
        .bind(Text::from(searchable([Some(new.id.as_str()), title, cwd])))
        .bind(parent.map(|it| Text::from(it.session.as_str())))
        .bind(parent.map(|it| it.seq as i64))
}

/// The new session and its key; `id` tells an earlier try of this call from the session of another.
pub(super) async fn create(
    client: &Client,
    new: &NewSession,
    id: WriteId,
) -> Result<(Session, i64)> {
    let made = "SELECT key FROM linkspan.sessions WHERE id = $1 AND made = $2";
    let queries = [
        bind_new(Query::new(CREATE), new, id),
        Query::new(made).text(new.id.as_str()).id(id),
        Query::new(FIND).text(new.id.as_str()),
    ];
    let answers = flight(client, &queries).await?;
    let Some(made) = answers[1].first() else {
        let session = new.id.clone();
        return Err(Error::SessionExists { session });
    };
    let found = answers[2].first().map(session).transpose()?;
    let found = found.ok_or_else(|| Error::no_session(&new.id))?;
    Ok((found, get(made, 0)?))
}

const FIND: &str = concat!(session_columns!(), "WHERE s.id = $1");

pub(super) fn find_query<'a>(id: &'a SessionId<'_>) -> Query<'a> {
    Query::new(FIND).text(id.as_str())
}

pub(super) async fn find(client: &Client, id: &SessionId<'_>) -> Result<Option<Session>> {
    let row = find_query(id).row(client).await?;
    row.as_ref().map(session).transpose()
}

const FIND_NATIVE: &str = concat!(
    session_columns!(),
    "JOIN linkspan.natives n ON n.session = s.key WHERE n.native = $1 ORDER BY s.activity DESC LIMIT 1"
);

pub(super) async fn find_native(client: &Client, id: &SessionId<'_>) -> Result<Option<Session>> {
    let row = Query::new(FIND_NATIVE)
        .text(id.as_str())
        .row(client)
        .await?;
    row.as_ref().map(session).transpose()
}

const FILTER: &str = "WHERE s.activity < $1
  AND ($2::text IS NULL OR s.engine = $2)
  AND ($3::text IS NULL OR strpos(s.search, $3) > 0)
  AND ($4::text IS NULL OR s.home = $4)";

/// Where to look for sessions in a state: few are in any but the last, so these are not looked for among all.
/// An array, so that the planner begins with it whatever it expects.
fn of_state(state: State) -> &'static str {
    match state {
        State::Waiting => {
            " AND s.key = ANY (ARRAY(SELECT session FROM linkspan.asks WHERE decision IS NULL))"
        }
        State::Running | State::Starting => {
            " AND s.key = ANY (ARRAY(SELECT session FROM linkspan.runs WHERE last IS NULL))"
        }
        State::Queued => {
            " AND s.key = ANY (ARRAY(SELECT session FROM linkspan.commands WHERE done_at IS NULL))"
        }
        State::Idle => "",
    }
}

/// The statement of a list.
fn list_sql(state: Option<State>) -> String {
    let columns = session_columns!();
    match state {
        None => format!("{columns}{FILTER} ORDER BY s.activity DESC LIMIT $5"),
        Some(state) => format!(
            "SELECT * FROM ({columns}{FILTER}{}) q WHERE state = '{}' ORDER BY activity DESC LIMIT $5",
            of_state(state),
            state.name()
        ),
    }
}

pub(super) async fn list(
    client: &Client,
    query: &SessionQuery,
    after: Option<&ListCursor>,
    limit: u32,
) -> Result<Listing> {
    // One more than wanted tells whether there is another page.
    let limit = limit.max(1) as usize;
    let after = after.map_or(i64::MAX, |it| super::query::cursor(it.activity));
    let sql = list_sql(query.state);
    let text = query.text.as_ref().map(|it| Text::from(it.to_lowercase()));
    let home = query.home.as_ref().map(|it| Text::from(it.as_str()));
    let rows = Query::new(&sql)
        .bind(after)
        .bind(query.engine.as_deref().map(Text::from))
        .bind(text)
        .bind(home)
        .bind(limit as i64 + 1)
        .rows(client)
        .await?;
    let sessions = rows.iter().map(session).collect::<Result<_>>()?;
    Ok(Listing::page(sessions, limit))
}

const RENAME: &str = "UPDATE linkspan.sessions SET title = $2, changed_at = clock_timestamp() WHERE id = $1 RETURNING key";

/// Returns the key of the session.
pub(super) async fn rename(client: &Client, id: &SessionId<'_>, title: &str) -> Result<i64> {
    let queries = [
        Query::new("BEGIN"),
        Query::new(RENAME).text(id.as_str()).text(title),
    ];
    let answers = flight(client, &queries).await?;
    let Some(row) = answers[1].first() else {
        Query::new("ROLLBACK").rows(client).await?;
        return Err(Error::no_session(id));
    };
    let search = read_search(client, id).await?;
    flight(client, &[search.query(), Query::new("COMMIT")]).await?;
    get(row, 0)
}

/// The searchable text of a session. It is made here, because lower case depends on the locale in a database.
pub(super) struct Search {
    id: String,
    text: String,
}

impl Search {
    pub(super) fn query(&self) -> Query<'_> {
        Query::new("UPDATE linkspan.sessions SET search = $2 WHERE id = $1")
            .text(&self.id)
            .text(&self.text)
    }
}

/// Reads a session that this transaction has changed, and so holds.
pub(super) async fn read_search(client: &Client, id: &SessionId<'_>) -> Result<Search> {
    let query = Query::new("SELECT native, title, cwd FROM linkspan.sessions WHERE id = $1");
    let row = query.text(id.as_str()).row(client).await?;
    let row = row.ok_or_else(|| Error::no_session(id))?;
    let [native, title, cwd] = [0, 1, 2].map(|it| optional_text(&row, it));
    let (native, title, cwd) = (native?, title?, cwd?);
    let fields = [
        Some(id.as_str()),
        native.as_deref(),
        title.as_deref(),
        cwd.as_deref(),
    ];
    Ok(Search {
        id: id.as_str().to_owned(),
        text: searchable(fields),
    })
}

pub(super) fn session(row: &Row) -> Result<Session> {
    let parent = optional_text(row, 9)?.zip(get::<Option<i64>>(row, 10)?);
    let state = State::find(get(row, 14)?);
    Ok(Session {
        id: SessionId::new(text(row, 0)?),
        home: Node::stored(text(row, 1)?),
        engine: text(row, 2)?,
        native: optional_text(row, 3)?.map(SessionId::new),
        cwd: optional_text(row, 4)?,
        title: optional_text(row, 5)?,
        created_at: Timestamp::from_millis(get(row, 6)?),
        active_at: Timestamp::from_millis(get(row, 7)?),
        activity: number(row, 8)?,
        parent: parent.map(|(session, seq)| Parent {
            session: SessionId::new(session),
            seq: seq as u64,
        }),
        head: number(row, 11)?,
        bytes: number(row, 12)?,
        queued: number(row, 13)?,
        state: state.ok_or_else(|| Fault::Corrupt("an unknown state of a session".to_owned()))?,
    })
}
