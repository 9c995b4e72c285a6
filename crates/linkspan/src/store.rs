//! The journal as the program meets it: where it lies, and how it is opened.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::SessionPages;
use journal::{
    Config, Fault, Journal, LostData, Memory, OpenNote, Session, SessionQuery, Sqlite, Truncate,
};
use model::SessionId;
use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::DataDir;
use crate::exit::{self, Code, Failure, chain, printable};

/// Characters from either end of an id that are enough, if no other has them there.
pub(crate) const MIN_PART: usize = 6;
/// How many ids are listed if a part of an id is ambiguous.
const MAX_NAMED: usize = 5;
/// Between two reports on an upgrade that takes long.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// The directory of sessions and tokens.
pub(crate) fn folder(flag: &DataDir) -> Result<PathBuf, Failure> {
    let variable = || env::var_os("LINKSPAN_DATA_DIR").filter(|it| !it.is_empty());
    let named = flag.dir.clone().or_else(|| variable().map(PathBuf::from));
    named.or_else(runner::data_folder).ok_or_else(|| {
        Failure::usage(
            "there is no home directory to keep sessions in",
            "name a directory with `--data-dir` or `LINKSPAN_DATA_DIR`",
        )
    })
}

/// Whether anything was ever kept there.
pub(crate) fn exists(folder: &Path) -> bool {
    file(folder).exists()
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenMode {
    ReadWrite,
    /// Only reading is possible where nothing can be written, such as on a full disk.
    OrReadOnly,
}

/// Opens the journal, and makes it if there is none; runs that a dead program left open are closed.
pub(crate) async fn open(
    folder: &Path,
    cut: Option<Truncate>,
    mode: OpenMode,
) -> Result<Arc<dyn Journal>, Failure> {
    let journal = open_as_found(folder, cut, mode).await?;
    // A store that cannot be written can be read.
    if let Err(err) = hub::close_lost_runs(&*journal).await {
        exit::print_line(&format!(
            "linkspan: the runs of a program that died stay open: {}\n",
            chain(&err)
        ));
    }
    Ok(journal)
}

/// The same without closing anything, which a hub does by itself.
pub(crate) async fn open_as_found(
    folder: &Path,
    cut: Option<Truncate>,
    mode: OpenMode,
) -> Result<Arc<dyn Journal>, Failure> {
    // The default action of SIGXFSZ, at a limit on the size of files, would end the program; with a
    // handler the write fails instead.
    let over = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    over.map_err(Failure::signals).map(drop)?;
    let path = file(folder);
    let config = Config {
        cut,
        ..Config::default()
    };
    let mut notes = StderrNotes::default();
    let print = move |note| notes.print(&note);
    let opened = match mode {
        OpenMode::ReadWrite => Sqlite::open_with_notes(&path, config, print).await,
        OpenMode::OrReadOnly => Sqlite::open_or_read_only(&path, config, print).await,
    };
    match opened {
        Ok(journal) => Ok(Arc::new(journal)),
        Err(fault) => Err(unusable(&path, &fault)),
    }
}

/// The journal of all, for a client that has no use for an error: without it, sessions are in memory.
pub(crate) async fn open_or_memory(data: &DataDir, cut: Option<Truncate>) -> Arc<dyn Journal> {
    let opened = match folder(data) {
        Ok(folder) => open(&folder, cut, OpenMode::ReadWrite).await,
        Err(failure) => Err(failure),
    };
    opened.unwrap_or_else(|failure| {
        let message = failure.message();
        exit::print_line(&format!("{message}; sessions end with the connection\n"));
        Arc::new(Memory::new(Config::default()))
    })
}

/// The journal, and the session of it that is named.
pub(crate) async fn open_session(
    folder: &Path,
    id: &str,
) -> Result<(Arc<dyn Journal>, Session), Failure> {
    if !exists(folder) {
        return Err(not_found(id));
    }
    let journal = open(folder, None, OpenMode::OrReadOnly).await?;
    let session = find(&*journal, id).await?;
    Ok((journal, session.ok_or_else(|| not_found(id))?))
}

/// A session by its id here or by the agent's, or by the beginning or the end of one of them.
pub(crate) async fn find(journal: &dyn Journal, id: &str) -> Result<Option<Session>, Failure> {
    let name = SessionId::new(id);
    if let Some(session) = journal.find_session(&name).await.map_err(failed)? {
        return Ok(Some(session));
    }
    match journal.find_native(&name).await.map_err(failed)? {
        Some(session) => Ok(Some(session)),
        None => find_part(journal, id).await,
    }
}

/// The one session whose id begins or ends like this: ids begin with the time, so those of one hour differ
/// at the end.
async fn find_part(journal: &dyn Journal, part: &str) -> Result<Option<Session>, Failure> {
    if part.chars().count() < MIN_PART {
        return Ok(None);
    }
    // The journal finds the text anywhere in an id; the filter below wants it at either end.
    let query = SessionQuery {
        text: Some(part.to_owned()),
        ..SessionQuery::default()
    };
    let has_part = |id: &SessionId<'_>| {
        let id = id.as_str();
        id.starts_with(part) || id.ends_with(part)
    };
    let mut found: Vec<Session> = Vec::new();
    let mut pages = SessionPages::new(journal, query);
    while let Some(sessions) = pages.next().await.map_err(failed)? {
        let is_it = |it: &Session| has_part(&it.id) || it.native.as_ref().is_some_and(has_part);
        found.extend(sessions.into_iter().filter(is_it));
    }
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let names = found.iter().map(|it| it.id.as_str()).take(MAX_NAMED);
    let names: Vec<&str> = names.collect();
    let (n, part) = (found.len(), printable(part));
    let more = if n > MAX_NAMED { ", …" } else { "" };
    Err(Failure::usage(
        format!("the ids of {n} sessions begin or end with `{part}`"),
        format!(
            "give the end of the one that is meant: {}{more}",
            names.join(", ")
        ),
    ))
}

pub(crate) fn not_found(id: &str) -> Failure {
    Failure::usage(
        format!("no session matches `{}`", printable(id)),
        format!("`linkspan sessions` lists them; the last {MIN_PART} characters of an id will do"),
    )
}

pub(crate) fn failed(err: journal::Error) -> Failure {
    Failure::new(Code::Io, chain(&err))
}

/// For commands that look something up and leave.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))
}

/// What a store says while it is opened, on stderr.
#[derive(Default)]
struct StderrNotes {
    /// When the upgrade was reported last.
    reported_at: Option<Instant>,
}

impl StderrNotes {
    fn print(&mut self, note: &OpenNote) {
        match note {
            OpenNote::Lost(lost) => exit::print_line(&losses(lost)),
            OpenNote::ReadOnly(why) => exit::print_line(&format!(
                "linkspan: {}: sessions can be looked at, and nothing is kept until that is over\n",
                printable(why)
            )),
            OpenNote::Upgrading { done, total } => self.upgrading(*done, *total),
        }
    }

    /// Prints nothing for operations that finish quickly.
    fn upgrading(&mut self, done: u64, total: u64) {
        let reported_at = self.reported_at.get_or_insert_with(Instant::now);
        if reported_at.elapsed() < REPORT_INTERVAL {
            return;
        }
        *reported_at = Instant::now();
        exit::print_line(&format!(
            "linkspan: upgrading the journal: {done} of {total} rows have their checksum\n"
        ));
    }
}

/// The sessions of a loss that are named.
const MAX_LOST: usize = 20;

fn losses(lost: &LostData) -> String {
    let n_sessions = lost.sessions.len();
    let mut text = match lost.is_gone {
        true => format!(
            "linkspan: the journal is missing; it held at least {n_sessions} sessions, and a new one was begun\n"
        ),
        false => format!(
            "linkspan: the journal lost its newest changes: {} events and {} prompts or answers of {n_sessions} \
             sessions, all of them acknowledged before\n",
            lost.events(),
            lost.commands()
        ),
    };
    for session in lost.sessions.iter().take(MAX_LOST) {
        let id = printable(session.id.as_str());
        text.push_str(&match session.head {
            _ if lost.is_gone => format!("  {id}: {} events\n", session.acknowledged),
            None => format!("  {id}: all of its {} events\n", session.acknowledged),
            Some(head) if head < session.acknowledged => {
                format!("  {id}: events {} to {}\n", head + 1, session.acknowledged)
            }
            Some(_) => format!("  {id}: {} prompts or answers\n", session.commands),
        });
    }
    if n_sessions > MAX_LOST {
        text.push_str(&format!("  and {} more\n", n_sessions - MAX_LOST));
    }
    match (&lost.kept[..], &lost.not_kept) {
        (_, Some(why)) => text.push_str(&format!(
            "linkspan: the files could not be copied aside as they were found: {why}\n"
        )),
        ([], None) => (),
        ([first, ..], None) => text.push_str(&format!(
            "linkspan: what was found was copied to `{}`…; `linkspan doctor` says more\n",
            printable(&first.to_string_lossy())
        )),
    }
    text
}

pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("journal.sqlite")
}

fn unusable(path: &Path, fault: &Fault) -> Failure {
    let hint = match fault {
        Fault::Newer { .. } => "use the newer linkspan, or another `--data-dir`",
        Fault::Corrupt(_) => {
            "`linkspan doctor` says what is damaged, and `linkspan doctor --repair` rescues what is whole"
        }
        Fault::InUse => "stop the older linkspan that uses it, and try again",
        Fault::Full => "make room, or name another directory with `--data-dir`",
        Fault::ReadOnly => "name a directory you may write to with `--data-dir`",
        Fault::Busy
        | Fault::Gone(_)
        | Fault::Closed
        | Fault::Lost
        | Fault::Io(_)
        | Fault::Database(_) => "name another directory with `--data-dir`",
    };
    let message = format!("cannot use `{}`: {}", path.display(), chain(fault));
    Failure::new(Code::Io, message).hint(Some(hint.to_owned()))
}
