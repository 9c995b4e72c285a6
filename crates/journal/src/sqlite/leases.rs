//! Who may write a session.

use std::time::Duration;

use model::SessionId;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::checksum::EPOCHS;
use super::logs::LogRow;
use crate::clock::Moment;
use crate::error::{Error, Fault, Result};
use crate::lease::{Lease, Owner, Takeover};

pub(super) fn acquire(
    conn: &Connection,
    session: &SessionId<'static>,
    owner: &Owner,
    now: &Moment,
    ttl: Duration,
    takeover: &Takeover,
) -> Result<Lease> {
    let mut log = LogRow::find(conn, session)?;
    if let Some(holder) = log.holder(now) {
        holder.check_takeover(session, takeover)?;
    }
    // Also for the same owner: an append from before a crash must not pass.
    log.epoch = next_epoch(conn)?;
    log.held = Some((owner.clone(), now.plus(ttl)));
    log.write(conn)?;
    Ok(Lease {
        session: session.clone(),
        owner: owner.clone(),
        epoch: log.epoch,
        head: log.head,
    })
}

pub(super) fn renew(conn: &Connection, lease: &Lease, now: &Moment, ttl: Duration) -> Result<()> {
    let mut log = LogRow::fence(conn, lease)?;
    if let Some((_, until)) = &mut log.held {
        *until = now.plus(ttl);
    }
    log.write(conn)
}

pub(super) fn release(conn: &Connection, lease: &Lease) -> Result<()> {
    let mut log = match LogRow::fence(conn, lease) {
        Ok(log) => log,
        // The session has another owner or is gone: there is nothing left to release.
        Err(Error::Fenced { .. } | Error::NoSession { .. }) => return Ok(()),
        Err(err) => return Err(err),
    };
    // A new epoch also fences an append of this owner that is still on its way.
    log.epoch = next_epoch(conn)?;
    log.held = None;
    log.write(conn)
}

/// An epoch that was given out before would let an old owner pass: a damaged counter gives none.
fn next_epoch(conn: &Connection) -> Result<u64> {
    let sql = format!("SELECT {} FROM epochs", EPOCHS.list(""));
    let (is_whole, row, last) = conn.prepare_cached(&sql)?.query_row([], |row| {
        let last = row.get::<_, i64>(1);
        Ok((EPOCHS.is_whole(row, 0), row.get::<_, i64>(0)?, last))
    })?;
    if !is_whole {
        let what = "the counter of leases is damaged".to_owned();
        return Err(Fault::Corrupt(what).into());
    }
    let next = last? + 1;
    let sum = EPOCHS.sum(&[ValueRef::Integer(row), ValueRef::Integer(next)]);
    conn.prepare_cached("UPDATE epochs SET last = ?1, sum = ?2")?
        .execute([next, sum])?;
    Ok(next as u64)
}
