//! Tickets: one file for each place in a queue, named by session and number. Everything here blocks.
//!
//! The file `queue` holds the last number, and is locked while the next one is drawn. Numbers are
//! never reused, so removing the ticket of a dead owner, however late, never removes that of a living one.
//! Owners remove their ticket before they unlock it: a ticket that is free but still there belongs
//! to a dead one.
//!
//! A ticket that only reads the session ends in `.read`, and the note of an agent that idles in
//! `.idle`. Notes are not tickets: no one waits for them, and a writer of the session removes them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, SystemTime};

use model::Timestamp;
use serde::{Deserialize, Serialize};

use super::LockHolder;
use crate::process::ProcessTag;

/// The guard of a dead linkspan ends its agent in less; an agent without a guard is ended by us then.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// Grace period for an agent without a guard.
const ORPHAN_LIMIT: Duration = Duration::from_secs(10);

/// A ticket holds two short lines; something longer is none.
const MAX_TICKET: u64 = 64 << 10;

/// A session of an engine as part of a file name: ids are opaque and may hold anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionKey(u128);

impl SessionKey {
    /// FNV-1a: the same in every version of the program. Two sessions that share a key only wait for
    /// each other.
    pub(super) fn new(engine: &str, id: &str) -> Self {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = u64::try_from(engine.len())
            .unwrap_or(u64::MAX)
            .to_le_bytes();
        // With its length, so that no other split into engine and id gives the same bytes.
        let bytes = length.iter().chain(engine.as_bytes()).chain(id.as_bytes());
        Self(bytes.fold(BASIS, |hash, byte| {
            (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
        }))
    }

    fn file_name(self, number: u64, kind: TicketKind) -> String {
        format!("{:032x}.{number:020}{}", self.0, kind.suffix())
    }

    /// The number and kind of a file of this session.
    fn find(self, file_name: &str) -> Option<(u64, TicketKind)> {
        let (key, rest) = file_name.split_once('.')?;
        let key = u128::from_str_radix(key, 16).ok()?;
        let (number, kind) = match rest.split_once('.') {
            None => (rest, TicketKind::Write),
            Some((number, "read")) => (number, TicketKind::Read),
            Some((number, "idle")) => (number, TicketKind::Idle),
            Some(_) => return None,
        };
        (key == self.0).then(|| number.parse().ok().map(|it| (it, kind)))?
    }
}

/// The purpose of a file of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TicketKind {
    /// Its owner writes the session: exclusive.
    Write,
    /// Its owner reads the session, as others may at the same time.
    Read,
    /// The agent of its owner has the session in memory and is idle.
    Idle,
}

impl TicketKind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Write => "",
            Self::Read => ".read",
            Self::Idle => ".idle",
        }
    }

    /// Whether a ticket of this kind waits for one of the `other` kind.
    fn waits_for(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Idle) | (Self::Idle, _) | (Self::Read, Self::Read) => false,
            (Self::Write, Self::Write | Self::Read) | (Self::Read, Self::Write) => true,
        }
    }
}

/// A place in a queue.
#[derive(Debug)]
pub(super) struct DrawnTicket {
    pub(super) ticket: Ticket,
    pub(super) held: Option<LockHolder>,
    pub(super) turn: TurnWait,
}

/// The wait of a ticket for its turn. It is separate from the ticket, which is dropped at once when
/// its owner stops waiting.
#[derive(Debug)]
pub(super) struct TurnWait {
    key: SessionKey,
    kind: TicketKind,
    /// The tickets before ours.
    ahead: Vec<PathBuf>,
}

impl TurnWait {
    /// Waits for all earlier tickets. A writer removes the notes of idle agents, which are out of
    /// date from now on.
    pub(super) fn wait(&self, dir: &Path) -> io::Result<()> {
        wait_for_agent(&self.ahead)?;
        match self.kind {
            TicketKind::Write => self.remove_notes(dir),
            TicketKind::Read | TicketKind::Idle => Ok(()),
        }
    }

    /// The same for the owner of a note; false when the session was written since the note was left.
    pub(super) fn wait_as(&self, dir: &Path, note: &IdleNote) -> io::Result<bool> {
        wait_for_agent(&self.ahead)?;
        // A writer in between has removed the name, which the open file shows without a race.
        let is_valid = note.file.metadata()?.nlink() > 0;
        if is_valid {
            self.remove_notes(dir)?;
        }
        Ok(is_valid)
    }

    fn remove_notes(&self, dir: &Path) -> io::Result<()> {
        for (_, kind, path) in files(dir, self.key)? {
            if kind == TicketKind::Idle {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Marks an idle agent of a session; removed once another process has written the session.
#[derive(Debug)]
pub(super) struct IdleNote {
    path: PathBuf,
    file: File,
}

impl IdleNote {
    /// Leaves a note in place of a ticket.
    pub(super) fn leave(ticket: &Ticket) -> io::Result<Self> {
        let mut path = ticket.path.clone().into_os_string();
        path.push(TicketKind::Idle.suffix());
        let path = PathBuf::from(path);
        let file = create(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for IdleNote {
    fn drop(&mut self) {
        // It may be gone already, and one that stays behind is removed by the next owner.
        fs::remove_file(&self.path).ok();
    }
}

/// Our ticket: locked as long as this process lives, removed when dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) path: PathBuf,
    file: File,
}

impl Ticket {
    pub(super) fn name_agent(&self, agent: ProcessTag) -> io::Result<()> {
        write_line(&self.file, &TicketLine::Agent(agent.to_string()))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // If either fails, closing the file frees it, and the next owner removes it.
        fs::remove_file(&self.path).ok();
        self.file.unlock().ok();
    }
}

/// A line of a ticket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TicketLine {
    Owner {
        pid: u32,
        holder: String,
        since: Timestamp,
    },
    /// The marker of the agent in the session; the last one counts.
    Agent(String),
}

/// Draws the next ticket of a session.
pub(super) fn draw(
    dir: &Path,
    key: SessionKey,
    kind: TicketKind,
    holder: &str,
) -> io::Result<DrawnTicket> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let queue = options.mode(0o600).open(dir.join("queue"))?;
    // Until the file is closed at the end: number and ticket appear as one to the others.
    lock(|| queue.lock())?;
    let mut files = files(dir, key)?;
    files.sort_unstable_by_key(|it| it.0);
    let highest = files.last().map_or(0, |it| it.0);
    let ahead = files.into_iter().filter(|it| kind.waits_for(it.1));
    let ahead: Vec<PathBuf> = ahead.map(|it| it.2).collect();
    let held = ahead.iter().find_map(|it| find_holder(it).transpose());
    let next = count(&queue, highest)?;
    let ticket = make(dir.join(key.file_name(next, kind)), holder)?;
    Ok(DrawnTicket {
        ticket,
        held: held.transpose()?,
        turn: TurnWait { key, kind, ahead },
    })
}

/// Everything of a session.
fn files(dir: &Path, key: SessionKey) -> io::Result<Vec<(u64, TicketKind, PathBuf)>> {
    let found = fs::read_dir(dir)?.filter_map(|entry| {
        let entry = entry.ok()?;
        let (number, kind) = key.find(entry.file_name().to_str()?)?;
        Some((number, kind, entry.path()))
    });
    Ok(found.collect())
}

/// The next number, above `highest` too: a crash of the machine may have lost the last one.
fn count(queue: &File, highest: u64) -> io::Result<u64> {
    let mut text = [0; 20];
    let n_read = queue.read_at(&mut text, 0)?;
    let last = str::from_utf8(&text[..n_read]).ok();
    let last = last.and_then(|it| it.parse().ok()).unwrap_or(0);
    let next = highest.max(last) + 1;
    // Always as long, so that it replaces the last one in one piece.
    queue.write_all_at(format!("{next:020}").as_bytes(), 0)?;
    Ok(next)
}

fn make(path: PathBuf, holder: &str) -> io::Result<Ticket> {
    let file = create(&path)?;
    let ticket = Ticket { path, file };
    // Before the queue is unlocked: a ticket that is not locked passes for that of a dead owner.
    lock(|| ticket.file.lock())?;
    let owner = TicketLine::Owner {
        pid: process::id(),
        holder: holder.to_owned(),
        since: SystemTime::now().into(),
    };
    write_line(&ticket.file, &owner)?;
    Ok(ticket)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Never an existing file: numbers are not reused, so that would be a ticket of another.
    options.append(true).create_new(true).mode(0o600);
    options.open(path)
}

/// The owner of a ticket, if it or its agent is alive.
fn find_holder(path: &Path) -> io::Result<Option<LockHolder>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    let is_dead = match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(err)) => return Err(err),
    };
    let (held, agent) = read(&file)?;
    let is_gone = is_dead && !agent.is_some_and(|it| it.is_alive());
    Ok(held.filter(|_| !is_gone))
}

/// Waits until all these tickets are gone.
fn wait_for_agent(tickets: &[PathBuf]) -> io::Result<()> {
    // Backwards: the ticket before ours waits for all the others, so that a release wakes one
    // process, not all.
    for path in tickets.iter().rev() {
        let Some(file) = open(path)? else {
            continue;
        };
        // Shared, because others may wait for the same one.
        lock(|| file.lock_shared())?;
        // Free but still there: its owner died, as a living one removes it first.
        if file.metadata()?.nlink() > 0 {
            remove_dead(path, &file)?;
        }
    }
    Ok(())
}

/// Removes the ticket of a dead owner, when its agent is gone too.
fn remove_dead(path: &Path, file: &File) -> io::Result<()> {
    if let (_, Some(agent)) = read(file)? {
        // A guard ends it more gently, and needs less time than this.
        agent.wait(ORPHAN_GRACE);
        if !agent.end(Duration::ZERO, ORPHAN_LIMIT) {
            let text = "the agent of a run that died is still in the session and cannot be ended";
            return Err(io::Error::new(ErrorKind::ResourceBusy, text));
        }
    }
    // Others wait for the same one.
    remove(path)
}

/// Removes a file that others may remove as well.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

/// The owner, unless it died while it wrote, and the agent, if there is one.
fn read(file: &File) -> io::Result<(Option<LockHolder>, Option<ProcessTag>)> {
    let mut text = Vec::new();
    file.take(MAX_TICKET).read_to_end(&mut text)?;
    let (mut owner, mut agent) = (None, None);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(TicketLine::Owner { pid, holder, since }) => {
                owner = Some(LockHolder { pid, holder, since })
            }
            Ok(TicketLine::Agent(tag)) => agent = tag.parse().ok(),
            // Half a line, of an owner that died while it wrote.
            Err(_) => (),
        }
    }
    Ok((owner, agent))
}

fn write_line(mut file: &File, line: &TicketLine) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Locks a file however often a signal interrupts it.
fn lock(attempt: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match attempt() {
            Err(err) if err.kind() == ErrorKind::Interrupted => (),
            locked => return locked,
        }
    }
}
