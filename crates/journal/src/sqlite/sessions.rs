//! Sessions: made, found, listed, renamed.

use model::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::write_search;
use super::logs::Log;
use super::sum::{NATIVES, SESSIONS};
use crate::error::{Damage, Error, Result};
use crate::session::{Listing, NewSession, Place, Session, SessionQuery, State, searchable};

/// The columns [`session`] reads: those of [`SESSIONS`], then the rest. The index is named because the
/// planner would walk every ask there ever was.
const COLUMNS: &str =
    "s.key, s.id, s.engine, s.native, s.cwd, s.title, s.created_at, s.active_at, s.sum, l.head, l.bytes,
    CASE WHEN EXISTS (SELECT 1 FROM asks INDEXED BY waiting_asks
                      WHERE session = s.key AND decision IS NULL AND NOT answered)
         THEN 'waiting'
         WHEN EXISTS (SELECT 1 FROM runs WHERE session = s.key AND last IS NULL) THEN 'running'
         ELSE 'idle' END AS state
    FROM sessions s JOIN logs l ON l.session = s.key";

pub(super) fn create(conn: &Connection, new: &NewSession, now: Timestamp) -> Result<Session> {
    let search = searchable([
        Some(new.id.as_str()),
        new.title.as_deref(),
        new.cwd.as_deref(),
    ]);
    let n_new = conn
        .prepare_cached(
            "INSERT OR IGNORE INTO sessions (id, engine, cwd, title, search, created_at, active_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
        )?
        .execute(params![
            new.id.as_str(),
            new.engine,
            new.cwd,
            new.title,
            search,
            now.millis()
        ])?;
    if n_new == 0 {
        return Err(Error::SessionExists {
            session: new.id.clone(),
        });
    }
    let key = conn.last_insert_rowid();
    SESSIONS.seal(conn, &[&key])?;
    Log::make(conn, key)?;
    Ok(Session {
        id: new.id.clone(),
        engine: new.engine.clone(),
        native: None,
        cwd: new.cwd.clone(),
        title: new.title.clone(),
        created_at: now,
        active_at: now,
        head: 0,
        bytes: 0,
        state: State::Idle,
    })
}

pub(super) fn find(conn: &Connection, id: &SessionId<'static>) -> Result<Option<Session>> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} WHERE s.id = ?1"))?
        .query_row([id.as_str()], session)
        .optional()?;
    whole(found, id)
}

pub(super) fn find_native(
    conn: &Connection,
    native: &SessionId<'static>,
) -> Result<Option<Session>> {
    let found = conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} JOIN natives n ON n.session = s.key WHERE n.native = ?1
             ORDER BY s.active_at DESC, s.id DESC LIMIT 1"
        ))?
        .query_row([native.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, session(row)?))
        })
        .optional()?;
    // A name that leads to another session than it was given to would have an agent go on with that.
    if let Some((key, _)) = &found
        && NATIVES.check(conn, &[&native.as_str(), key])? == Some(false)
    {
        return Err(Error::Damaged {
            session: native.clone(),
            row: Damage::Native,
        });
    }
    whole(found.map(|it| it.1), native)
}

fn whole(found: Option<Option<Session>>, id: &SessionId<'static>) -> Result<Option<Session>> {
    match found {
        None => Ok(None),
        Some(Some(session)) => Ok(Some(session)),
        Some(None) => Err(Error::Damaged {
            session: id.clone(),
            row: Damage::Entry,
        }),
    }
}

pub(super) fn list(
    conn: &Connection,
    query: &SessionQuery,
    after: Option<&Place>,
    limit: u32,
) -> Result<Listing> {
    let limit = limit.max(1) as usize;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS}
         WHERE (s.active_at, s.id) < (?1, ?2)
           AND (?3 IS NULL OR s.engine = ?3)
           AND (?4 IS NULL OR instr(s.search, ?4) > 0)
           AND (?5 IS NULL OR state = ?5)
         ORDER BY s.active_at DESC, s.id DESC LIMIT ?6"
    ))?;
    let rows = statement.query_map(
        params![
            after.map_or(i64::MAX, |it| it.active_at.millis()),
            after.map_or("", |it| it.id.as_str()),
            query.engine,
            query.text.as_ref().map(|it| it.to_lowercase()),
            query.state.map(word),
            limit as i64 + 1
        ],
        |row| session(row)?.map_or_else(|| stand_in(row), Ok),
    )?;
    let mut sessions = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let next = sessions.last().filter(|_| has_more).map(Session::place);
    Ok(Listing { sessions, next })
}

pub(super) fn rename(conn: &Connection, id: &SessionId<'static>, title: &str) -> Result<()> {
    let key = find_key(conn, id)?;
    if SESSIONS.check(conn, &[&key])? == Some(false) {
        return Err(Error::Damaged {
            session: id.clone(),
            row: Damage::Entry,
        });
    }
    conn.prepare_cached("UPDATE sessions SET title = ?2 WHERE key = ?1")?
        .execute(params![key, title])?;
    write_search(conn, key)?;
    SESSIONS.seal(conn, &[&key])
}

pub(super) fn find_key(conn: &Connection, id: &SessionId<'static>) -> Result<i64> {
    conn.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Error::NoSession {
            session: id.clone(),
        })
}

/// Absent when its entry is damaged.
fn session(row: &Row<'_>) -> rusqlite::Result<Option<Session>> {
    if !SESSIONS.is_whole(row, 0) {
        return Ok(None);
    }
    Ok(Some(Session {
        id: SessionId::new(row.get::<_, String>(1)?),
        engine: row.get(2)?,
        native: row.get::<_, Option<String>>(3)?.map(SessionId::new),
        cwd: row.get(4)?,
        title: row.get(5)?,
        created_at: Timestamp::from_millis(row.get(6)?),
        active_at: Timestamp::from_millis(row.get(7)?),
        head: row.get::<_, i64>(9)? as u64,
        bytes: row.get::<_, i64>(10)? as u64,
        state: state(row)?,
    }))
}

/// A session whose entry is damaged, in its place in the list. Nothing in the row is to be trusted but its
/// key, so it cannot be found under this name either.
fn stand_in(row: &Row<'_>) -> rusqlite::Result<Session> {
    let at = Timestamp::from_millis(row.get(7).unwrap_or_default());
    Ok(Session {
        id: SessionId::new(format!("damaged-{}", row.get::<_, i64>(0)?)),
        engine: "unknown".to_owned(),
        native: None,
        cwd: None,
        title: Some(
            "damaged in the journal; `linkspan doctor --repair` rescues its events".to_owned(),
        ),
        created_at: at,
        active_at: at,
        head: 0,
        bytes: 0,
        state: State::Idle,
    })
}

fn state(row: &Row<'_>) -> rusqlite::Result<State> {
    let state = row.get_ref(11)?.as_str()?;
    [State::Idle, State::Running, State::Waiting]
        .into_iter()
        .find(|it| word(*it) == state)
        .ok_or(rusqlite::Error::InvalidQuery)
}

fn word(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Running => "running",
        State::Waiting => "waiting",
    }
}
