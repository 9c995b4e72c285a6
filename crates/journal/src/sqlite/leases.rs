//! Who may write a session.

use std::time::Duration;

use model::SessionId;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::append::fence;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::lease::{Holder, Lease, Owner, Takeover};

pub(super) fn acquire(
    conn: &Connection,
    session: &SessionId<'static>,
    owner: &Owner,
    now: &Moment,
    ttl: Duration,
    takeover: &Takeover,
) -> Result<Lease> {
    let found = conn
        .prepare_cached(
            "SELECT session, head, epoch, owner, lease_era, lease_until FROM logs
             WHERE session = (SELECT key FROM sessions WHERE id = ?1)",
        )?
        .query_row([session.as_str()], |row| {
            let (key, head): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((key, head as u64, holder(row, 2, now)?))
        })
        .optional()?;
    let Some((key, head, holder)) = found else {
        return Err(Error::NoSession {
            session: session.clone(),
        });
    };
    if let Some(holder) = holder.filter(|it| !it.may_be_replaced(takeover)) {
        return Err(Error::Held {
            session: session.clone(),
            owner: holder.owner,
        });
    }
    let until = now.plus(ttl);
    let epoch = next_epoch(conn)?;
    conn.prepare_cached(
        "UPDATE logs SET epoch = ?2, owner = ?3, lease_era = ?4, lease_until = ?5 WHERE session = ?1",
    )?
    .execute(params![
        key,
        epoch as i64,
        owner.as_str(),
        until.era,
        until.millis
    ])?;
    Ok(Lease {
        session: session.clone(),
        owner: owner.clone(),
        epoch,
        head,
    })
}

pub(super) fn renew(conn: &Connection, lease: &Lease, now: &Moment, ttl: Duration) -> Result<()> {
    let log = fence(conn, lease)?;
    let until = now.plus(ttl);
    conn.prepare_cached("UPDATE logs SET lease_era = ?2, lease_until = ?3 WHERE session = ?1")?
        .execute(params![log.session, until.era, until.millis])?;
    Ok(())
}

pub(super) fn release(conn: &Connection, lease: &Lease) -> Result<()> {
    let log = match fence(conn, lease) {
        Ok(log) => log,
        Err(Error::Fenced { .. } | Error::NoSession { .. }) => return Ok(()),
        Err(err) => return Err(err),
    };
    conn.prepare_cached(
        "UPDATE logs SET epoch = ?2, owner = NULL, lease_era = NULL, lease_until = NULL
         WHERE session = ?1",
    )?
    .execute(params![log.session, next_epoch(conn)? as i64])?;
    Ok(())
}

fn next_epoch(conn: &Connection) -> Result<u64> {
    let epoch: i64 = conn
        .prepare_cached("UPDATE epochs SET last = last + 1 RETURNING last")?
        .query_row([], |row| row.get(0))?;
    Ok(epoch as u64)
}

/// Reads `epoch, owner, lease_era, lease_until` from column `first` on.
pub(super) fn holder(
    row: &Row<'_>,
    first: usize,
    now: &Moment,
) -> rusqlite::Result<Option<Holder>> {
    let Some(owner) = row.get::<_, Option<String>>(first + 1)? else {
        return Ok(None);
    };
    let until = Moment {
        era: row.get(first + 2)?,
        millis: row.get(first + 3)?,
    };
    Ok(Some(Holder {
        owner: Owner::new(owner),
        epoch: row.get::<_, i64>(first)? as u64,
        lapsed: until.is_over(now),
    }))
}
