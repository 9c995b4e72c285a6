//! Where a session's log stands and who may write it: the one row that every append changes.

use model::SessionId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::checksum::LOGS;
use crate::clock::Moment;
use crate::error::{Damage, Error, Result};
use crate::lease::{Holder, Lease, Owner};

#[derive(Debug)]
pub(super) struct LogRow {
    pub(super) session: i64,
    pub(super) head: u64,
    pub(super) bytes: u64,
    /// The number of the last command.
    pub(super) commands: u64,
    pub(super) epoch: u64,
    pub(super) held: Option<(Owner, Moment)>,
}

impl LogRow {
    pub(super) fn find(conn: &Connection, id: &SessionId<'static>) -> Result<Self> {
        let log = conn
            .prepare_cached(
                "SELECT session, head, bytes, commands, epoch, owner, lease_era, lease_until, sum
                 FROM logs WHERE session = (SELECT key FROM sessions WHERE id = ?1)",
            )?
            .query_row([id.as_str()], |row| Self::read(row, 0))
            .optional()?
            .ok_or_else(|| Error::NoSession {
                session: id.clone(),
            })?;
        log.ok_or_else(|| Error::Damaged {
            session: id.clone(),
            row: Damage::Log,
        })
    }

    /// The columns of [`LOGS`] from `first` on; absent when they are damaged.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Self>> {
        if !LOGS.is_whole(row, first) {
            return Ok(None);
        }
        let n = |it: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(first + it)? as u64);
        let owner: Option<String> = row.get(first + 5)?;
        let held = match owner {
            None => None,
            Some(owner) => Some((
                Owner::new(owner),
                Moment {
                    era: row.get(first + 6)?,
                    millis: row.get(first + 7)?,
                },
            )),
        };
        Ok(Some(Self {
            session: row.get(first)?,
            head: n(1)?,
            bytes: n(2)?,
            commands: n(3)?,
            epoch: n(4)?,
            held,
        }))
    }

    /// Fails with a fence error if the lease was taken over.
    pub(super) fn fence(conn: &Connection, lease: &Lease) -> Result<Self> {
        let log = Self::find(conn, &lease.session)?;
        if log.epoch != lease.epoch {
            return Err(Error::Fenced {
                session: lease.session.clone(),
                epoch: lease.epoch,
                current: log.epoch,
            });
        }
        Ok(log)
    }

    pub(super) fn make(conn: &Connection, session: i64) -> Result<()> {
        conn.prepare_cached("INSERT INTO logs (session) VALUES (?1)")?
            .execute([session])?;
        let log = Self {
            session,
            head: 0,
            bytes: 0,
            commands: 0,
            epoch: 0,
            held: None,
        };
        log.write(conn)
    }

    pub(super) fn write(&self, conn: &Connection) -> Result<()> {
        let [head, bytes, commands, epoch] =
            [self.head, self.bytes, self.commands, self.epoch].map(|it| it as i64);
        let owner = self.held.as_ref().map(|it| it.0.as_str());
        let era = self.held.as_ref().map(|it| &*it.1.era);
        let until = self.held.as_ref().map(|it| it.1.millis);
        let sum = LOGS.sum(&[
            ValueRef::Integer(self.session),
            ValueRef::Integer(head),
            ValueRef::Integer(bytes),
            ValueRef::Integer(commands),
            ValueRef::Integer(epoch),
            ValueRef::from(owner),
            ValueRef::from(era),
            until.map_or(ValueRef::Null, ValueRef::Integer),
        ]);
        conn.prepare_cached(
            "UPDATE logs SET head = ?2, bytes = ?3, commands = ?4, epoch = ?5, owner = ?6,
                    lease_era = ?7, lease_until = ?8, sum = ?9 WHERE session = ?1",
        )?
        .execute(params![
            self.session,
            head,
            bytes,
            commands,
            epoch,
            owner,
            era,
            until,
            sum
        ])?;
        Ok(())
    }

    pub(super) fn holder(&self, now: &Moment) -> Option<Holder> {
        let (owner, until) = self.held.as_ref()?;
        Some(Holder {
            owner: owner.clone(),
            epoch: self.epoch,
            lapsed: until.is_over(now),
        })
    }
}
