//! A checksum for every row, so that altered data is an error and never an answer.
//!
//! It covers the columns named here in their order, with their types, and begins with the name of
//! the table. The keys are among them: a row that turns up in another's place does not fit there.
//! The hash is XXH3 in 64 bits: a changed row passes once in 2^64, and a kilobyte costs less than a
//! tenth of a microsecond. It guards against accidents, not against an attacker who can write the
//! file.

use model::SessionId;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, ToSql, params_from_iter};
use twox_hash::XxHash3_64;

use crate::error::{Damage, Error, Fault, Result};

/// A table whose rows carry a checksum in their column `sum`.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The covered columns. A new column must be added here, and its migration must recompute the
    /// checksums of existing rows.
    pub(super) columns: &'static [&'static str],
    /// How many of these, from the first on, name a row.
    pub(super) n_keys: usize,
}

/// `search` is made of the others and never shown.
pub(super) const SESSIONS: Table = Table::new(
    "sessions",
    &[
        "key",
        "id",
        "engine",
        "native",
        "cwd",
        "title",
        "created_at",
        "active_at",
        "activity",
        "parent",
        "parent_seq",
        "home",
    ],
    1,
);
pub(super) const LOGS: Table = Table::new(
    "logs",
    &[
        "session",
        "head",
        "bytes",
        "commands",
        "epoch",
        "owner",
        "lease_era",
        "lease_until",
        "batch",
    ],
    1,
);
pub(super) const EPOCHS: Table = Table::new("epochs", &["rowid", "last"], 1);
pub(super) const ACTIVITIES: Table = Table::new("activities", &["rowid", "last"], 1);
pub(super) const EVENTS: Table = Table::new("events", &["key", "at", "kind", "cut", "line"], 1);
pub(super) const FRAMES: Table = Table::new("frames", &["key", "cut", "bytes"], 1);
pub(super) const RUNS: Table = Table::new(
    "runs",
    &[
        "session",
        "first",
        "run",
        "started_at",
        "last",
        "ended_at",
        "outcome",
        "heard",
        "activity",
    ],
    2,
);
pub(super) const ASKS: Table = Table::new(
    "asks",
    &["session", "seq", "ask", "run", "at", "answered", "decision"],
    2,
);
pub(super) const COMMANDS: Table = Table::new(
    "commands",
    &["session", "number", "at", "word", "ask", "body", "id"],
    2,
);
pub(super) const DONE: Table = Table::new("done", &["id", "session", "number", "at", "reply"], 1);
pub(super) const NATIVES: Table = Table::new("natives", &["native", "session"], 2);

pub(super) const TABLES: [&Table; 11] = [
    &SESSIONS,
    &LOGS,
    &EPOCHS,
    &ACTIVITIES,
    &EVENTS,
    &FRAMES,
    &RUNS,
    &ASKS,
    &COMMANDS,
    &DONE,
    &NATIVES,
];

impl Table {
    const fn new(name: &'static str, columns: &'static [&'static str], n_keys: usize) -> Self {
        Self {
            name,
            columns,
            n_keys,
        }
    }

    /// The checksum of a row with these values, in the order of the columns.
    pub(super) fn sum(&self, values: &[ValueRef<'_>]) -> i64 {
        let mut sum = hash(0, self.name.as_bytes());
        for value in values {
            // Each kind of value begins elsewhere: an empty text is not nothing.
            sum = match value {
                ValueRef::Null => hash(sum, &[]),
                ValueRef::Integer(n) => hash(sum ^ 1, &n.to_le_bytes()),
                ValueRef::Real(n) => hash(sum ^ 2, &n.to_le_bytes()),
                ValueRef::Text(bytes) => hash(sum ^ 3, bytes),
                ValueRef::Blob(bytes) => hash(sum ^ 4, bytes),
            };
        }
        sum as i64
    }

    /// Verifies the checksum of a row: its columns from `first` on, followed by `sum`.
    pub(super) fn is_whole(&self, row: &Row<'_>, first: usize) -> bool {
        // An array, because every row that is read passes here; `SESSIONS` is the widest table.
        let mut values = [ValueRef::Null; 12];
        let values = &mut values[..self.columns.len()];
        for (n, value) in values.iter_mut().enumerate() {
            match row.get_ref(first + n) {
                Ok(it) => *value = it,
                Err(_) => return false,
            }
        }
        let sum = row.get_ref(first + self.columns.len());
        matches!(sum, Ok(ValueRef::Integer(sum)) if sum == self.sum(values))
    }

    /// The covered columns and `sum`, each behind `prefix`.
    pub(super) fn list(&self, prefix: &str) -> String {
        let names = self.columns.iter().chain(&["sum"]);
        let names: Vec<_> = names.map(|it| format!("{prefix}{it}")).collect();
        names.join(", ")
    }

    fn condition(&self) -> String {
        let keys = self.columns[..self.n_keys].iter().enumerate();
        let keys: Vec<_> = keys.map(|(n, key)| format!("{key} = ?{}", n + 1)).collect();
        keys.join(" AND ")
    }

    /// Verifies the row with this key; `None` when there is none.
    pub(super) fn check(&self, conn: &Connection, key: &[&dyn ToSql]) -> Result<Option<bool>> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {}",
            self.list(""),
            self.name,
            self.condition()
        );
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(key))?;
        Ok(rows.next()?.map(|row| self.is_whole(row, 0)))
    }

    /// Fails when the row with this key is damaged, which is `damage` of `session`.
    pub(super) fn verify(
        &self,
        conn: &Connection,
        key: &[&dyn ToSql],
        (session, damage): (&SessionId<'_>, Damage),
    ) -> Result<()> {
        match self.check(conn, key)? {
            Some(false) => Err(Error::damaged(session, damage)),
            Some(true) | None => Ok(()),
        }
    }

    /// Changes a row, unless it is damaged: a new checksum would hide that. The statement takes the key
    /// first, then `values`.
    pub(super) fn update(
        &self,
        conn: &Connection,
        key: &[&dyn ToSql],
        damage: (&SessionId<'_>, Damage),
        statement: &str,
        values: &[&dyn ToSql],
    ) -> Result<()> {
        self.verify(conn, key, damage)?;
        conn.prepare_cached(statement)?
            .execute(params_from_iter(key.iter().chain(values)))?;
        self.seal(conn, key)
    }

    /// Adds a row of these values, in the order of the columns, with its checksum.
    pub(super) fn insert(&self, conn: &Connection, row: &[ValueRef<'_>]) -> rusqlite::Result<()> {
        self.put("INSERT", conn, row)
    }

    /// The same; false when a unique column has the value already.
    pub(super) fn insert_new(&self, conn: &Connection, row: &[ValueRef<'_>]) -> Result<bool> {
        match self.insert(conn, row) {
            Err(err) if err.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(false)
            }
            inserted => Ok(inserted.map(|()| true)?),
        }
    }

    /// The same in place of the row that has the key, if there is one.
    pub(super) fn replace(&self, conn: &Connection, row: &[ValueRef<'_>]) -> rusqlite::Result<()> {
        self.put("REPLACE", conn, row)
    }

    fn put(&self, verb: &str, conn: &Connection, row: &[ValueRef<'_>]) -> rusqlite::Result<()> {
        let (name, columns) = (self.name, self.list(""));
        let marks = vec!["?"; row.len() + 1].join(", ");
        let sql = format!("{verb} INTO {name} ({columns}) VALUES ({marks})");
        let sum = ValueRef::Integer(self.sum(row));
        let values = row.iter().chain([&sum]);
        conn.prepare_cached(&sql)?
            .execute(params_from_iter(
                values.map(|it| ToSqlOutput::Borrowed(*it)),
            ))
            .map(drop)
    }

    /// Writes the checksum of a row. Call [`Self::verify`] before changing a row: a new checksum on
    /// a damaged row would hide the damage.
    pub(super) fn seal(&self, conn: &Connection, key: &[&dyn ToSql]) -> Result<()> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {}",
            self.columns.join(", "),
            self.name,
            self.condition()
        );
        // Of the row as it is now: a change names only some of the columns.
        let sum = conn
            .prepare_cached(&sql)?
            .query_row(params_from_iter(key), |row| self.of(row, 0))?;
        let sql = format!(
            "UPDATE {} SET sum = ?{} WHERE {}",
            self.name,
            self.n_keys + 1,
            self.condition()
        );
        let values = key.iter().copied().chain([&sum as &dyn ToSql]);
        conn.prepare_cached(&sql)?
            .execute(params_from_iter(values))?;
        Ok(())
    }

    fn of(&self, row: &Row<'_>, first: usize) -> rusqlite::Result<i64> {
        let values: rusqlite::Result<Vec<_>> = (0..self.columns.len())
            .map(|it| row.get_ref(first + it))
            .collect();
        Ok(self.sum(&values?))
    }
}

/// Rows between two reports of progress.
const PIECE: i64 = 2000;

/// Gives every row of these tables its checksum; `progress` is called with how many of how many have one.
pub(super) fn seal_all(
    conn: &Connection,
    tables: &[&Table],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    let mut total = 0;
    for table in tables {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let n: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
        total += n.unsigned_abs();
    }
    let mut n_done = 0;
    for table in tables {
        let mut after = i64::MIN;
        loop {
            let piece = piece(conn, table, after)?;
            let Some((last, _)) = piece.last() else { break };
            after = *last;
            let sql = format!("UPDATE {} SET sum = ?2 WHERE rowid = ?1", table.name);
            for (rowid, sum) in &piece {
                conn.prepare_cached(&sql)?.execute([rowid, sum])?;
            }
            n_done += piece.len() as u64;
            progress(n_done, total);
        }
    }
    Ok(())
}

/// The next rows with their checksums, as a list: SQLite leaves undefined what a query returns for rows that
/// are changed while it runs.
fn piece(conn: &Connection, table: &Table, after: i64) -> Result<Vec<(i64, i64)>, Fault> {
    let sql = format!(
        "SELECT rowid, {} FROM {} WHERE rowid > ?1 ORDER BY rowid LIMIT {PIECE}",
        table.columns.join(", "),
        table.name
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map([after], |row| Ok((row.get(0)?, table.of(row, 1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores that were written have to be read: the checksum of a row never changes.
    #[test]
    fn a_checksum_is_what_it_always_was() {
        let values = [
            ValueRef::Integer(1 << 36 | 7),
            ValueRef::Integer(-1),
            ValueRef::Text(b"item.closed"),
            ValueRef::Null,
            ValueRef::Text(&[b'x'; 1000]),
        ];
        assert_eq!(EVENTS.sum(&values), SUM);
        let mut other = values;
        other[0] = ValueRef::Integer(2 << 36 | 7);
        assert_ne!(EVENTS.sum(&other), SUM);
        assert_ne!(FRAMES.sum(&values), SUM);
    }

    const SUM: i64 = 1_087_813_367_802_124_798;

    #[test]
    fn the_kind_of_a_value_counts() {
        let one = |value| NATIVES.sum(&[value]);
        let values = [
            ValueRef::Null,
            ValueRef::Integer(0),
            ValueRef::Real(0.0),
            ValueRef::Text(&[0; 8]),
            ValueRef::Blob(&[0; 8]),
            ValueRef::Text(b""),
            ValueRef::Blob(b""),
        ];
        let mut sums = values.map(one).to_vec();
        sums.sort_unstable();
        sums.dedup();
        assert_eq!(sums.len(), values.len());
    }
}
