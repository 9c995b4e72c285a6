//! Repair: copies undamaged data into a new store. The old one stays beside it, unchanged.
//!
//! A session is rebuilt from its events, including runs, asks and names, so those rows may be
//! damaged. A damaged event is replaced by a notice, and the numbers stay the same.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use model::{Origin, SessionId, Timestamp};
use rusqlite::types::Value;
use rusqlite::types::ValueRef::Integer;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params, params_from_iter};

use super::checksum::{ASKS, COMMANDS, EPOCHS, FRAMES, LOGS, NATIVES, RUNS, SESSIONS};
use super::examine::{ExaminedSessions, head, open_read_only};
use super::logs::LogRow;
use super::open::{self, OpenLock};
use super::{append, leases, log, migrate, sessions, witness};
use crate::clock::{Clock, Moment, SystemClock};
use crate::entry::{Batch, Effect, Entry, Read, Stored, StoredFrame};
use crate::error::{Damage, Error, Fault, Result};
use crate::lease::{Lease, Owner, Takeover};
use crate::line::Line;
use crate::node::Node;
use crate::report::{DamagedRow, Repaired};
use crate::session::NewSession;

pub(super) fn repair(path: &Path) -> Result<Repaired, Fault> {
    let turn = OpenLock::take_of(path)?;
    // What another program wrote meanwhile would be lost with the old file.
    migrate::check_unused(path)?;
    let old = open_read_only(path)?;
    let found = migrate::version(&old)?;
    if found != migrate::KNOWN {
        let known = migrate::KNOWN;
        return Err(Fault::Newer { found, known });
    }
    let new_path = open::beside(path, ".new");
    // A repair that was cut short may have left one.
    remove(&new_path)?;
    let result = copy(&old, &new_path);
    drop(old);
    let (sessions, events, lost) = match result {
        Ok(it) => it,
        Err(err) => {
            remove(&new_path)?;
            return Err(match err {
                Error::Storage(fault) => fault,
                other => Fault::Corrupt(other.to_string()),
            });
        }
    };
    let aside = open::backup_path(path, open::DAMAGED);
    let mut kept = Vec::new();
    // SQLite would apply a log of changes that is left behind to the new store.
    for suffix in ["", "-wal", witness::SUFFIX] {
        let (from, to) = (open::beside(path, suffix), open::beside(&aside, suffix));
        match fs::rename(from, &to) {
            Ok(()) => kept.push(to),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(err.into()),
        }
    }
    // It describes the old write-ahead log, which has been moved away.
    remove_file(&open::beside(path, "-shm"))?;
    fs::rename(&new_path, path)?;
    fs::rename(
        open::beside(&new_path, witness::SUFFIX),
        open::beside(path, witness::SUFFIX),
    )?;
    remove(&new_path)?;
    drop(turn);
    Ok(Repaired {
        sessions,
        events,
        lost,
        kept,
    })
}

fn remove(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-open", witness::SUFFIX] {
        remove_file(&open::beside(path, suffix))?;
    }
    Ok(())
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

/// Counts of the saved sessions and events, and the losses.
fn copy(old: &Connection, path: &Path) -> Result<(u64, u64, Vec<DamagedRow>)> {
    let opened = open::writer(path, &mut |_| ())?;
    let mut conn = opened.conn;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut saving = Salvage {
        old,
        new: &tx,
        now: SystemClock::new().now(),
        steady: SystemClock::new().steady(),
        n_events: 0,
        lost: Vec::new(),
    };
    saving.epochs()?;
    let mut all = ExaminedSessions::read(old);
    // The order of the list is that in which sessions were active.
    all.keys.sort_by_key(|it| activity(old, it.0));
    for (key, id) in &all.keys {
        saving.session(*key, id.as_ref())?;
    }
    let (n_events, mut lost) = (saving.n_events, saving.lost);
    tx.commit()?;
    // Only the main file is moved into place, so nothing may be left in the log of changes.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    DamagedRow::sort(&mut lost);
    Ok((all.keys.len() as u64, n_events, lost))
}

/// The place of a session in the list; that of a damaged one is as good as it can be read.
fn activity(old: &Connection, key: i64) -> i64 {
    let sql = "SELECT activity FROM sessions WHERE key = ?1";
    let found = old.query_row(sql, [key], |row| row.get(0));
    found.unwrap_or_default()
}

struct Salvage<'a> {
    old: &'a Connection,
    new: &'a Connection,
    now: Timestamp,
    steady: Moment,
    n_events: u64,
    lost: Vec<DamagedRow>,
}

/// What is known of a session's entry.
struct KnownEntry {
    new: NewSession,
    created_at: Timestamp,
    active_at: Timestamp,
}

impl Salvage<'_> {
    /// No lease that was ever given may pass in the new store.
    fn epochs(&self) -> Result<()> {
        let max = |sql: &str| -> i64 {
            let found = self
                .old
                .query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
            found.ok().flatten().unwrap_or(0)
        };
        // The counter may be damaged; every log has the epoch of its last lease.
        let last = max("SELECT max(last) FROM epochs").max(max("SELECT max(epoch) FROM logs"));
        self.new.execute("UPDATE epochs SET last = ?1", [last])?;
        EPOCHS.seal(self.new, &[&1_i64])
    }

    fn session(&mut self, key: i64, id: Option<&SessionId<'static>>) -> Result<()> {
        let head = head(self.old, key)?;
        // One without an id is damaged.
        let entry = id.map(|_| self.entry(key)).transpose()?.flatten();
        let known = entry.unwrap_or_else(|| {
            let known = self.guess(key, head);
            self.record_loss(&known.new.id, Damage::Entry);
            known
        });
        let id = known.new.id.clone();
        sessions::create(self.new, &known.new, known.created_at)?;
        // Its time does not matter: a lapsed lease writes, too, and no other program is here.
        let owner = Owner::new("repair");
        let lease = leases::acquire(
            self.new,
            &id,
            &owner,
            &self.steady,
            Duration::ZERO,
            &Takeover::Lapsed,
        )?;
        self.events(&lease, key, head)?;
        self.ends(&id, key)?;
        self.natives(&id, key)?;
        self.commands(&id, key)?;
        leases::release(self.new, &lease)?;
        // The appends have noted the time of the repair; the session keeps its own.
        let new_key = sessions::find_key(self.new, &id)?;
        self.new
            .prepare_cached("UPDATE sessions SET created_at = ?2, active_at = ?3 WHERE key = ?1")?
            .execute(params![
                new_key,
                known.created_at.millis(),
                known.active_at.millis()
            ])?;
        SESSIONS.seal(self.new, &[&new_key])
    }

    fn entry(&self, key: i64) -> Result<Option<KnownEntry>> {
        let sql = format!("SELECT {} FROM sessions WHERE key = ?1", SESSIONS.list(""));
        let found = self
            .old
            .prepare_cached(&sql)?
            .query_row([key], |row| {
                Ok(KnownEntry {
                    new: NewSession {
                        id: SessionId::new(row.get::<_, String>(1)?),
                        home: Node::stored(row.get(11)?),
                        engine: row.get(2)?,
                        cwd: row.get(4)?,
                        title: row.get(5)?,
                        parent: sessions::parent(row)?,
                    },
                    created_at: Timestamp::from_millis(row.get(6)?),
                    active_at: Timestamp::from_millis(row.get(7)?),
                })
            })
            .optional()?;
        Ok(found)
    }

    /// A session with a damaged entry, rebuilt from its first undamaged event.
    fn guess(&self, key: i64, head: u64) -> KnownEntry {
        let name = SessionId::new(format!("damaged-{key}"));
        let mut known = KnownEntry {
            new: NewSession {
                id: name.clone(),
                home: Node::default(),
                engine: "unknown".to_owned(),
                cwd: None,
                title: None,
                parent: None,
            },
            created_at: self.now,
            active_at: self.now,
        };
        let mut after = 0;
        while after < head {
            let Ok(page) = log::page(self.old, &name, key, head, Read::page(after)) else {
                break;
            };
            after = page.next;
            let whole = page.events.iter().find(|it| !it.is_damaged);
            let Some((stored, event)) = whole.and_then(|it| Some((it, it.event()?))) else {
                continue;
            };
            known.new.id = event.session.clone().into_owned();
            known.new.engine = event.engine.into_owned();
            known.created_at = stored.at;
            known.active_at = stored.at;
            break;
        }
        let last = log::page(self.old, &name, key, head, Read::one(head));
        let last = last.ok().and_then(|it| it.events.into_iter().next());
        if let Some(last) = last.filter(|it| !it.is_damaged) {
            known.active_at = last.at;
        }
        known
    }

    fn events(&mut self, lease: &Lease, key: i64, head: u64) -> Result<()> {
        let mut after = 0;
        while after < head {
            let page = log::page(self.old, &lease.session, key, head, Read::page(after))?;
            for stored in &page.events {
                if stored.is_damaged {
                    self.record_loss(&lease.session, Damage::Event(stored.seq));
                } else {
                    self.n_events += 1;
                }
                let frame = self.frame(&lease.session, key, stored.seq)?;
                self.append(lease, stored, frame)?;
            }
            after = page.next;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        id: &SessionId<'static>,
        key: i64,
        seq: u64,
    ) -> Result<Option<StoredFrame>> {
        let sql = format!("SELECT {} FROM frames WHERE key = ?1", FRAMES.list(""));
        let found = self
            .old
            .prepare_cached(&sql)?
            .query_row([append::key(key, seq)], |row| Ok(log::frame(row)))
            .optional();
        match found {
            Ok(None) => Ok(None),
            Ok(Some(Some(frame))) => Ok(Some(frame)),
            Ok(Some(None)) | Err(_) => {
                self.record_loss(id, Damage::Frame(seq));
                Ok(None)
            }
        }
    }

    /// An event that no longer fits its run is kept without its effects.
    fn append(&self, lease: &Lease, stored: &Stored, frame: Option<StoredFrame>) -> Result<()> {
        let event = stored.event();
        let mut entry = Entry {
            seq: stored.seq,
            line: Line::Whole(stored.line.clone()),
            at: Some(stored.at),
            kind: stored.kind,
            effect: event.as_ref().map_or(Effect::None, Effect::of),
            is_agents: event.as_ref().is_some_and(|it| it.origin == Origin::Agent),
            frame_cut: frame.as_ref().map_or(0, |it| it.cut),
            frame: frame.map(|it| it.bytes),
            line_cut: stored.cut,
        };
        let put = |entry: Entry| -> Result<()> {
            let batch = Batch::new(vec![entry]);
            append::append(self.new, lease, &batch, self.now).map(drop)
        };
        // A failed append leaves half of its rows, so each has a savepoint.
        self.new.execute_batch("SAVEPOINT event")?;
        match put(entry.clone()) {
            Ok(()) => (),
            Err(Error::Storage(fault)) => return Err(fault.into()),
            Err(_) => {
                self.new.execute_batch("ROLLBACK TO event")?;
                entry.effect = Effect::None;
                put(entry)?;
            }
        }
        Ok(self.new.execute_batch("RELEASE event")?)
    }

    /// Ended runs and settled asks stay so, even if the event that recorded it is lost.
    fn ends(&self, id: &SessionId<'static>, key: i64) -> Result<()> {
        let session = sessions::find_key(self.new, id)?;
        for (table, change, columns) in [
            (
                &RUNS,
                "UPDATE runs SET last = ?3, ended_at = ?4, outcome = ?5
                 WHERE session = ?1 AND first = ?2 AND last IS NULL",
                &[4, 5, 6][..],
            ),
            (
                &ASKS,
                "UPDATE asks SET answered = ?3, decision = ?4
                 WHERE session = ?1 AND seq = ?2 AND decision IS NULL",
                &[5, 6],
            ),
        ] {
            let (names, name) = (table.list(""), table.name);
            let sql = format!("SELECT {names} FROM {name} WHERE session = ?1");
            let mut statement = self.old.prepare_cached(&sql)?;
            let mut rows = statement.query([key])?;
            // An unreadable page ends the table early; the runs and asks of the events are there anyway.
            while let Ok(Some(row)) = rows.next() {
                if !table.is_whole(row, 0) {
                    continue;
                }
                let mut values = vec![Value::Integer(session), row.get(1)?];
                for column in columns {
                    values.push(row.get(*column)?);
                }
                let place: i64 = row.get(1)?;
                let mut change = self.new.prepare_cached(change)?;
                if change.execute(params_from_iter(values))? > 0 {
                    table.seal(self.new, &[&session, &place])?;
                }
            }
        }
        Ok(())
    }

    fn natives(&mut self, id: &SessionId<'static>, key: i64) -> Result<()> {
        let session = sessions::find_key(self.new, id)?;
        let sql = format!(
            "SELECT {} FROM natives WHERE session = ?1",
            NATIVES.list("")
        );
        let mut statement = self.old.prepare_cached(&sql)?;
        let mut rows = statement.query([key])?;
        while let Ok(Some(row)) = rows.next() {
            let native: String = match row.get(0) {
                Ok(native) if NATIVES.is_whole(row, 0) => native,
                _ => {
                    self.record_loss(id, Damage::Native);
                    continue;
                }
            };
            NATIVES.insert_new(self.new, &[native.as_str().into(), Integer(session)])?;
        }
        Ok(())
    }

    /// Pending commands, under their old numbers.
    fn commands(&mut self, id: &SessionId<'static>, key: i64) -> Result<()> {
        let mut log = LogRow::find(self.new, id)?;
        let sql = format!("SELECT {} FROM logs WHERE session = ?1", LOGS.list(""));
        let old = self.old.query_row(&sql, [key], |row| LogRow::read(row, 0));
        log.commands = old.ok().flatten().map_or(0, |it| it.commands);
        let sql = format!(
            "SELECT {} FROM commands WHERE session = ?1",
            COMMANDS.list("")
        );
        let mut statement = self.old.prepare_cached(&sql)?;
        let mut rows = statement.query([key])?;
        while let Ok(Some(row)) = rows.next() {
            let number: i64 = row.get(1).unwrap_or_default();
            // The old row may be damaged, and no number may be given twice.
            log.commands = log.commands.max(number as u64);
            if !COMMANDS.is_whole(row, 0) {
                self.record_loss(id, Damage::Command(number as u64));
                continue;
            }
            let mut values = [Integer(log.session); 7];
            for (n, value) in values.iter_mut().enumerate().skip(1) {
                *value = row.get_ref(n)?;
            }
            COMMANDS.insert(self.new, &values)?;
            if let Some(ask) = row.get::<_, Option<i64>>(4)? {
                let change = "UPDATE asks SET answered = 1 WHERE session = ?1 AND seq = ?2";
                self.new
                    .prepare_cached(change)?
                    .execute([log.session, ask])?;
                // Its ask may be lost.
                if ASKS.check(self.new, &[&log.session, &ask])?.is_some() {
                    ASKS.seal(self.new, &[&log.session, &ask])?;
                }
            }
        }
        log.write(self.new)
    }

    fn record_loss(&mut self, session: &SessionId<'static>, row: Damage) {
        let session = session.clone();
        self.lost.push(DamagedRow { session, row });
    }
}
