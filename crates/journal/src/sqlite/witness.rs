//! The witness: a small file beside the store that remembers what was acknowledged.
//!
//! SQLite's log of changes carries checksums, and from the first that is wrong on everything is dropped in
//! silence: a flipped bit takes acknowledged sessions away, and the store looks whole. So after each commit
//! the place of every session that it changed is noted here: how many events, how many commands. At the next
//! start the store has to have come at least as far.
//!
//! The file is never synced. It is written after the commit is durable, so it never claims too much; after
//! the power failed it may claim too little. It has room for [`N_SLOTS`] sessions, the newest by number.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use model::SessionId;
use rusqlite::{Connection, OptionalExtension, params};
use twox_hash::XxHash3_64;

use super::open::{beside, private};
use crate::error::Fault;
use crate::open_note::LostSession;

pub(super) const SUFFIX: &str = "-witness";

/// Sessions that are remembered. The write-ahead log is checkpointed after some hundred commits,
/// and checkpointed data is not lost with the log.
const N_SLOTS: u64 = 1024;
const SLOT: usize = 128;
/// Of a session's name so much is kept.
const NAME: usize = SLOT - 5 * 8 - 1;
const MAGIC: &[u8; 16] = b"linkspan witness";

/// How far a session has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) key: i64,
    pub(super) head: u64,
    pub(super) commands: u64,
    pub(super) epoch: u64,
    pub(super) id: String,
}

#[derive(Debug)]
pub(super) struct Witness(File);

impl Witness {
    pub(super) fn path(store: &Path) -> PathBuf {
        beside(store, SUFFIX)
    }

    /// Begins anew with what the store holds now, unless the file is this store's own.
    pub(super) fn open(store: &Path, id: i64) -> io::Result<Self> {
        let path = Self::path(store);
        if read(&path).is_some_and(|it| it.0 == id) {
            return Ok(Self(OpenOptions::new().write(true).open(path)?));
        }
        let file = private().create(true).truncate(true).open(path)?;
        let mut header = Vec::from(MAGIC);
        header.extend_from_slice(&id.to_le_bytes());
        header.resize(SLOT - 8, 0);
        header.extend_from_slice(&hash(&header).to_le_bytes());
        (&file).write_all(&header)?;
        // Room is taken now: a full disk later does not end the notes.
        (&file).write_all(&vec![0; SLOT * N_SLOTS as usize])?;
        Ok(Self(file))
    }

    /// Notes how far a session has come.
    pub(super) fn note(&self, slot: &Slot) -> io::Result<()> {
        self.write(slot.key, &slot.bytes())
    }

    /// A session that is about to be removed is not missed later.
    pub(super) fn forget(&self, key: i64) -> io::Result<()> {
        self.write(key, &[0; SLOT])
    }

    fn write(&self, key: i64, bytes: &[u8; SLOT]) -> io::Result<()> {
        // Slot 0 is the header.
        let place = key.unsigned_abs() % N_SLOTS + 1;
        (&self.0).seek(SeekFrom::Start(place * SLOT as u64))?;
        // Not synced: after a power failure it may be behind the store, which `missing` allows for.
        (&self.0).write_all(bytes)
    }
}

impl Slot {
    /// The session of this key as it stands; absent when there is none.
    pub(super) fn of(conn: &Connection, key: i64) -> Result<Option<Self>, Fault> {
        let found = conn
            .prepare_cached(
                "SELECT l.head, l.commands, l.epoch, s.id
                 FROM logs l JOIN sessions s ON s.key = l.session WHERE l.session = ?1",
            )?
            .query_row(params![key], |row| {
                let n = |it| Ok::<_, rusqlite::Error>(row.get::<_, i64>(it)? as u64);
                Ok(Self {
                    key,
                    head: n(0)?,
                    commands: n(1)?,
                    epoch: n(2)?,
                    id: row.get(3)?,
                })
            })
            .optional()?;
        Ok(found)
    }

    /// Nothing of the session is left.
    pub(super) fn all_lost(&self) -> LostSession {
        LostSession {
            id: SessionId::new(self.id.clone()),
            head: None,
            acknowledged: self.head,
            commands: self.commands,
        }
    }

    fn bytes(&self) -> [u8; SLOT] {
        let mut bytes = Vec::with_capacity(SLOT);
        bytes.extend_from_slice(&self.key.to_le_bytes());
        for n in [self.head, self.commands, self.epoch] {
            bytes.extend_from_slice(&n.to_le_bytes());
        }
        let name = &self.id.as_bytes()[..self.id.floor_char_boundary(NAME)];
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name);
        bytes.resize(SLOT - 8, 0);
        bytes.extend_from_slice(&hash(&bytes).to_le_bytes());
        // The length always fits; an empty slot would be as good as none.
        bytes.try_into().unwrap_or([0; SLOT])
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let body = checked(bytes)?;
        let n = |it: usize| Some(u64::from_le_bytes(body.get(it..it + 8)?.try_into().ok()?));
        let length = usize::from(*body.get(32)?);
        let name = body.get(33..33 + length)?;
        // Keys begin with 1, so an empty slot is none.
        let key = i64::try_from(n(0)?).ok().filter(|it| *it != 0)?;
        Some(Self {
            key,
            head: n(8)?,
            commands: n(16)?,
            epoch: n(24)?,
            id: String::from_utf8(name.to_vec()).ok()?,
        })
    }
}

/// The name of the store and the sessions that were noted; absent when there is no witness that can be read.
/// A slot that is half written or damaged is as good as none.
pub(super) fn read(path: &Path) -> Option<(i64, Vec<Slot>)> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    // Any file may be in its place: no more is read than a witness has.
    let longest = SLOT as u64 * (N_SLOTS + 1);
    file.take(longest).read_to_end(&mut bytes).ok()?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<(i64, Vec<Slot>)> {
    let (header, slots) = bytes.split_at_checked(SLOT)?;
    let header = checked(header)?.strip_prefix(MAGIC)?;
    let id = i64::from_le_bytes(header.get(..8)?.try_into().ok()?);
    let slots = slots.chunks_exact(SLOT).filter_map(Slot::read);
    Some((id, slots.collect()))
}

/// What the store lacks of what was noted.
pub(super) fn missing(conn: &Connection, noted: &[Slot]) -> Result<Vec<LostSession>, Fault> {
    let mut lost = Vec::new();
    for slot in noted {
        let found = Slot::of(conn, slot.key)?;
        let (head, commands) = found.as_ref().map_or((0, 0), |it| (it.head, it.commands));
        if found.is_some() && head >= slot.head && commands >= slot.commands {
            continue;
        }
        lost.push(LostSession {
            id: SessionId::new(slot.id.clone()),
            head: found.map(|it| it.head),
            // After a power failure the witness may be behind the store.
            acknowledged: slot.head.max(head),
            commands: slot.commands.saturating_sub(commands),
        });
    }
    Ok(lost)
}

/// The bytes before a checksum that fits them.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    (hash(body) == u64::from_le_bytes(*sum)).then_some(body)
}

fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("journal.db");
        let slot = |key, id: &str| Slot {
            key,
            head: 7,
            commands: 2,
            epoch: 3,
            id: id.to_owned(),
        };
        let witness = Witness::open(&store, -5).unwrap();
        let long = "ä".repeat(100);
        // The last of all places is that of 1023.
        let last = slot(1023, "last");
        for slot in [
            slot(1, "one"),
            slot(2, &long),
            slot(3, "three"),
            last.clone(),
        ] {
            witness.note(&slot).unwrap();
        }
        witness.forget(3).unwrap();
        // The same place belongs to the newer one.
        witness.note(&slot(1025, "new")).unwrap();
        let kept = &long[..long.floor_char_boundary(NAME)];
        let expected = (-5, vec![slot(1025, "new"), slot(2, kept), last]);
        assert_eq!(read(&Witness::path(&store)), Some(expected.clone()));
        drop(Witness::open(&store, -5).unwrap());
        assert_eq!(read(&Witness::path(&store)), Some(expected));
        drop(Witness::open(&store, 6).unwrap());
        assert_eq!(read(&Witness::path(&store)), Some((6, vec![])));
    }

    #[test]
    fn a_damaged_witness_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("journal.db");
        let witness = Witness::open(&store, 1).unwrap();
        let slot = Slot {
            key: 1,
            head: 7,
            commands: 0,
            epoch: 0,
            id: "s".to_owned(),
        };
        witness.note(&slot).unwrap();
        let path = Witness::path(&store);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..SLOT * 16 {
            let mut bytes = whole.clone();
            bytes[2 * SLOT * (bit / (SLOT * 8)) + bit % (SLOT * 8) / 8] ^= 1 << (bit % 8);
            // The header is the first of them, the note of session 1 the third.
            let left = (bit >= SLOT * 8).then(|| (1, vec![]));
            assert_eq!(parse(&bytes), left, "bit {bit}");
        }
    }
}
