//! A checksum for every row, so that what a disk has altered is an error and never an answer.
//!
//! It covers the columns named here in their order, with their types, and begins with the name of
//! the table. The keys are among them: a row that turns up in another's place does not fit there.
//! The hash is XXH3 in 64 bits: a changed row passes once in 2^64, and a kilobyte costs less than a
//! tenth of a microsecond. It guards against accidents, not against an attacker who can write the
//! file.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use twox_hash::XxHash3_64;

use crate::error::{Fault, Result};

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
pub(super) const SESSIONS: Table = Table {
    name: "sessions",
    columns: &[
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
    ],
    n_keys: 1,
};
pub(super) const LOGS: Table = Table {
    name: "logs",
    columns: &[
        "session",
        "head",
        "bytes",
        "commands",
        "epoch",
        "owner",
        "lease_era",
        "lease_until",
    ],
    n_keys: 1,
};
pub(super) const EPOCHS: Table = Table {
    name: "epochs",
    columns: &["rowid", "last"],
    n_keys: 1,
};
pub(super) const ACTIVITIES: Table = Table {
    name: "activities",
    columns: &["rowid", "last"],
    n_keys: 1,
};
pub(super) const EVENTS: Table = Table {
    name: "events",
    columns: &["key", "at", "kind", "cut", "line"],
    n_keys: 1,
};
pub(super) const FRAMES: Table = Table {
    name: "frames",
    columns: &["key", "cut", "bytes"],
    n_keys: 1,
};
pub(super) const RUNS: Table = Table {
    name: "runs",
    columns: &[
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
    n_keys: 2,
};
pub(super) const ASKS: Table = Table {
    name: "asks",
    columns: &["session", "seq", "ask", "run", "at", "answered", "decision"],
    n_keys: 2,
};
pub(super) const COMMANDS: Table = Table {
    name: "commands",
    columns: &["session", "number", "at", "word", "ask", "body"],
    n_keys: 2,
};
pub(super) const NATIVES: Table = Table {
    name: "natives",
    columns: &["native", "session"],
    n_keys: 2,
};

pub(super) const TABLES: [&Table; 10] = [
    &SESSIONS,
    &LOGS,
    &EPOCHS,
    &ACTIVITIES,
    &EVENTS,
    &FRAMES,
    &RUNS,
    &ASKS,
    &COMMANDS,
    &NATIVES,
];

impl Table {
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
        let mut values = [ValueRef::Null; 11];
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

    /// Writes the checksum of a row. Call [`Self::check`] before changing a row: a new checksum on
    /// a damaged row would hide the damage.
    pub(super) fn seal(&self, conn: &Connection, key: &[&dyn ToSql]) -> Result<()> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {}",
            self.columns.join(", "),
            self.name,
            self.condition()
        );
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

/// Rows that are looked at between two reports of progress.
const PIECE: i64 = 2000;

/// Gives every row of a store that had no checksums its own; `tell` hears how many of how many have one.
pub(super) fn seal_all(conn: &Connection, tell: &mut dyn FnMut(u64, u64)) -> Result<(), Fault> {
    let mut total = 0;
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let n: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
        total += n.unsigned_abs();
    }
    let mut n_done = 0;
    for table in TABLES {
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
            tell(n_done, total);
        }
    }
    Ok(())
}

/// The next rows with their checksums; they are changed when nothing reads the table.
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
