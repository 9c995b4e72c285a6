//! Where a session's log stands and who may write it: the one row that every append changes.

use model::SessionId;
use rusqlite::types::ValueRef::{Blob, Integer, Null};
use rusqlite::{Connection, OptionalExtension, Row};

use super::checksum::LOGS;
use crate::clock::Moment;
use crate::error::{Damage, Error, Result};
use crate::lease::{Holder, Lease, Owner};
use crate::write_id::WriteId;

#[derive(Debug)]
pub(super) struct LogRow {
    pub(super) session: i64,
    pub(super) head: u64,
    pub(super) bytes: u64,
    /// The number of the last command.
    pub(super) commands: u64,
    pub(super) epoch: u64,
    pub(super) held: Option<(Owner, Moment)>,
    /// The last one that was appended.
    pub(super) batch: Option<WriteId>,
}

impl LogRow {
    pub(super) fn find(conn: &Connection, id: &SessionId<'static>) -> Result<Self> {
        let log = conn
            .prepare_cached(&format!(
                "SELECT {} FROM logs WHERE session = (SELECT key FROM sessions WHERE id = ?1)",
                LOGS.list("")
            ))?
            .query_row([id.as_str()], |row| Self::read(row, 0))
            .optional()?
            .ok_or_else(|| Error::no_session(id))?;
        log.ok_or_else(|| Error::damaged(id, Damage::Log))
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
            batch: row
                .get::<_, Option<Vec<u8>>>(first + 8)?
                .and_then(|it| WriteId::from_slice(&it)),
        }))
    }

    /// Fails with a fence error if the lease was taken over.
    pub(super) fn fence(conn: &Connection, lease: &Lease) -> Result<Self> {
        let log = Self::find(conn, &lease.session)?;
        // A lapsed lease still writes: only the next owner ends it, so no clock decides what is stored.
        lease.check_epoch(log.epoch)?;
        Ok(log)
    }

    pub(super) fn make(conn: &Connection, session: i64) -> Result<()> {
        let log = Self {
            session,
            head: 0,
            bytes: 0,
            commands: 0,
            epoch: 0,
            held: None,
            batch: None,
        };
        log.write(conn)
    }

    pub(super) fn write(&self, conn: &Connection) -> Result<()> {
        let (owner, until) = self
            .held
            .as_ref()
            .map(|(owner, until)| (owner, until))
            .unzip();
        let row = [
            Integer(self.session),
            Integer(self.head as i64),
            Integer(self.bytes as i64),
            Integer(self.commands as i64),
            Integer(self.epoch as i64),
            owner.map(Owner::as_str).into(),
            until.map(|it| &*it.era).into(),
            until.map_or(Null, |it| Integer(it.millis)),
            self.batch.as_ref().map_or(Null, |it| Blob(it.as_bytes())),
        ];
        Ok(LOGS.replace(conn, &row)?)
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
