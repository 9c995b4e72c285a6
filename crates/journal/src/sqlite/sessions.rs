//! Sessions: made, found, listed, renamed.

use model::{SessionId, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::write_search;
use super::checksum::{ACTIVITIES, NATIVES, SESSIONS};
use super::logs::LogRow;
use crate::error::{Damage, Error, Result};
use crate::node::Node;
use crate::session::{
    ListCursor, Listing, NewSession, Parent, Session, SessionQuery, State, searchable,
};

/// The columns [`session`] reads: those of [`SESSIONS`], then the rest. The index is named because the
/// planner would walk every ask there ever was.
const COLUMNS: &str =
    "s.key, s.id, s.engine, s.native, s.cwd, s.title, s.created_at, s.active_at, s.activity, s.parent,
    s.parent_seq, s.home, s.sum, l.head, l.bytes,
    (SELECT count(*) FROM commands WHERE session = s.key AND word = 'prompt') AS queued,
    CASE WHEN EXISTS (SELECT 1 FROM asks INDEXED BY waiting_asks
                      WHERE session = s.key AND decision IS NULL AND NOT answered)
         THEN 'waiting'
         WHEN EXISTS (SELECT 1 FROM runs WHERE session = s.key AND last IS NULL AND heard)
         THEN 'running'
         WHEN EXISTS (SELECT 1 FROM runs WHERE session = s.key AND last IS NULL) THEN 'starting'
         WHEN EXISTS (SELECT 1 FROM commands WHERE session = s.key AND word = 'prompt')
         THEN 'queued'
         ELSE 'idle' END AS state
    FROM sessions s JOIN logs l ON l.session = s.key";

pub(super) fn create(conn: &Connection, new: &NewSession, now: Timestamp) -> Result<Session> {
    let search = searchable([
        Some(new.id.as_str()),
        new.title.as_deref(),
        new.cwd.as_deref(),
    ]);
    // Checked first: a violated constraint would not name the session.
    if find_key(conn, &new.id).is_ok() {
        return Err(Error::SessionExists {
            session: new.id.clone(),
        });
    }
    let activity = next_activity(conn)?;
    conn.prepare_cached(
            "INSERT INTO sessions
                 (id, engine, cwd, title, search, created_at, active_at, parent, parent_seq, activity,
                  home)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            new.id.as_str(),
            new.engine,
            new.cwd,
            new.title,
            search,
            now.millis(),
            new.parent.as_ref().map(|it| it.session.as_str()),
            new.parent.as_ref().map(|it| it.seq as i64),
            activity,
            new.home.as_str()
        ])?;
    let key = conn.last_insert_rowid();
    // The checksum covers the key, which is known only now.
    SESSIONS.seal(conn, &[&key])?;
    LogRow::make(conn, key)?;
    find(conn, &new.id)?.ok_or_else(|| Error::no_session(&new.id))
}

/// The next number in the order of the list. A damaged counter continues after the newest session.
pub(super) fn next_activity(conn: &Connection) -> Result<i64> {
    let list = ACTIVITIES.list("");
    let sql = format!("SELECT {list} FROM activities");
    let known = conn.prepare_cached(&sql)?.query_row([], |row| {
        let is_whole = ACTIVITIES.is_whole(row, 0);
        Ok(is_whole.then_some(row.get::<_, i64>(1)?))
    })?;
    let last = match known {
        Some(last) => last,
        None => conn
            .prepare_cached("SELECT coalesce(max(activity), 0) FROM sessions")?
            .query_row([], |row| row.get(0))?,
    };
    let next = last + 1;
    let sum = ACTIVITIES.sum(&[ValueRef::Integer(1), ValueRef::Integer(next)]);
    conn.prepare_cached("UPDATE activities SET last = ?1, sum = ?2")?
        .execute([next, sum])?;
    Ok(next)
}

pub(super) fn find(conn: &Connection, id: &SessionId<'static>) -> Result<Option<Session>> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} WHERE s.id = ?1"))?
        .query_row([id.as_str()], session)
        .optional()?;
    undamaged(found, id)
}

pub(super) fn find_native(
    conn: &Connection,
    native: &SessionId<'static>,
) -> Result<Option<Session>> {
    let found = conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} JOIN natives n ON n.session = s.key WHERE n.native = ?1
             ORDER BY s.activity DESC LIMIT 1"
        ))?
        .query_row([native.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, session(row)?))
        })
        .optional()?;
    // A damaged name could make an agent resume another session.
    if let Some((key, _)) = &found {
        NATIVES.verify(conn, &[&native.as_str(), key], (native, Damage::Native))?;
    }
    undamaged(found.map(|it| it.1), native)
}

fn undamaged(found: Option<Option<Session>>, id: &SessionId<'static>) -> Result<Option<Session>> {
    found
        .map(|it| it.ok_or_else(|| Error::damaged(id, Damage::Entry)))
        .transpose()
}

pub(super) fn list(
    conn: &Connection,
    query: &SessionQuery,
    after: Option<&ListCursor>,
    limit: u32,
) -> Result<Listing> {
    // One more than wanted tells whether there is another page.
    let limit = limit.max(1) as usize;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS}
         WHERE s.activity < ?1
           AND (?2 IS NULL OR s.engine = ?2)
           AND (?3 IS NULL OR instr(s.search, ?3) > 0)
           AND (?4 IS NULL OR state = ?4)
           AND (?6 IS NULL OR s.home = ?6)
         ORDER BY s.activity DESC LIMIT ?5"
    ))?;
    let rows = statement.query_map(
        params![
            after.map_or(i64::MAX, |it| i64::try_from(it.activity)
                .unwrap_or(i64::MAX)),
            query.engine,
            query.text.as_ref().map(|it| it.to_lowercase()),
            query.state.map(State::name),
            limit as i64 + 1,
            query.home.as_ref().map(Node::as_str)
        ],
        |row| session(row)?.map_or_else(|| placeholder(row), Ok),
    )?;
    let sessions = rows.collect::<rusqlite::Result<_>>()?;
    Ok(Listing::page(sessions, limit))
}

pub(super) fn rename(conn: &Connection, id: &SessionId<'static>, title: &str) -> Result<()> {
    let key = find_key(conn, id)?;
    let change = "UPDATE sessions SET title = ?2 WHERE key = ?1";
    SESSIONS.update(conn, &[&key], (id, Damage::Entry), change, &[&title])?;
    write_search(conn, key)
}

pub(super) fn find_key(conn: &Connection, id: &SessionId<'static>) -> Result<i64> {
    conn.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Error::no_session(id))
}

/// Absent when its entry is damaged.
fn session(row: &Row<'_>) -> rusqlite::Result<Option<Session>> {
    if !SESSIONS.is_whole(row, 0) {
        return Ok(None);
    }
    Ok(Some(Session {
        id: SessionId::new(row.get::<_, String>(1)?),
        home: Node::stored(row.get(11)?),
        engine: row.get(2)?,
        native: row.get::<_, Option<String>>(3)?.map(SessionId::new),
        cwd: row.get(4)?,
        title: row.get(5)?,
        created_at: Timestamp::from_millis(row.get(6)?),
        active_at: Timestamp::from_millis(row.get(7)?),
        activity: row.get::<_, i64>(8)? as u64,
        parent: parent(row)?,
        head: row.get::<_, i64>(13)? as u64,
        bytes: row.get::<_, i64>(14)? as u64,
        queued: row.get::<_, i64>(15)? as u64,
        state: state(row)?,
    }))
}

/// A placeholder in the list for a session with a damaged entry. Only the key of the row can be
/// trusted, so it cannot be found under this name either.
fn placeholder(row: &Row<'_>) -> rusqlite::Result<Session> {
    let at = Timestamp::from_millis(row.get(7).unwrap_or_default());
    Ok(Session {
        id: SessionId::new(format!("damaged-{}", row.get::<_, i64>(0)?)),
        home: Node::default(),
        engine: "unknown".to_owned(),
        native: None,
        cwd: None,
        title: Some(
            "damaged in the journal; `linkspan doctor --repair` rescues its events".to_owned(),
        ),
        created_at: at,
        active_at: at,
        activity: row.get::<_, i64>(8).unwrap_or_default() as u64,
        head: 0,
        bytes: 0,
        state: State::Idle,
        queued: 0,
        parent: None,
    })
}

fn state(row: &Row<'_>) -> rusqlite::Result<State> {
    let state = row.get_ref(16)?.as_str()?;
    State::find(state).ok_or(rusqlite::Error::InvalidQuery)
}

/// Of the columns of [`SESSIONS`].
pub(super) fn parent(row: &Row<'_>) -> rusqlite::Result<Option<Parent>> {
    let session = row.get::<_, Option<String>>(9)?;
    let seq = row.get::<_, Option<i64>>(10)?;
    Ok(session.map(|session| Parent {
        session: SessionId::new(session),
        seq: seq.unwrap_or(0) as u64,
    }))
}
