//! The journal as the program meets it: where it lies, and how it is opened.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{Config, Fault, Journal, Session, Sqlite, SystemClock};
use model::SessionId;
use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::DataDir;
use crate::exit::{Code, Failure, chain};

/// The directory of sessions and tokens.
pub(crate) fn folder(said: &DataDir) -> Result<PathBuf, Failure> {
    let variable = || env::var_os("LINKSPAN_DATA_DIR").filter(|it| !it.is_empty());
    let said = said.dir.clone().or_else(|| variable().map(PathBuf::from));
    said.or_else(runner::data_folder).ok_or_else(|| {
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

/// Opens the journal, and makes it if there is none.
pub(crate) async fn open(folder: &Path) -> Result<Arc<dyn Journal>, Failure> {
    make(folder).map_err(|err| {
        let doing = format!("cannot keep sessions in `{}`", folder.display());
        Failure::io(
            &doing,
            &err,
            Some("name another directory with `--data-dir`"),
        )
    })?;
    // A limit on the size of files is an error to be told, not the end of the program.
    let over = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    over.map_err(|err| Failure::io("cannot listen for signals", &err, None))
        .map(drop)?;
    let path = file(folder);
    let config = Config {
        clock: Arc::new(SystemClock::default()),
        cut: None,
    };
    match Sqlite::open(&path, config).await {
        Ok(journal) => Ok(Arc::new(journal)),
        Err(fault) => Err(unusable(&path, &fault)),
    }
}

/// A session by its id here or by the agent's.
pub(crate) async fn find(journal: &dyn Journal, id: &str) -> Result<Option<Session>, Failure> {
    let id = SessionId::new(id);
    match journal.find_session(&id).await.map_err(failed)? {
        Some(session) => Ok(Some(session)),
        None => journal.find_native(&id).await.map_err(failed),
    }
}

pub(crate) fn not_found(id: &str) -> Failure {
    Failure::usage(
        format!("no session is called `{}`", crate::exit::shown(id)),
        "`linkspan sessions` lists them",
    )
}

pub(crate) fn failed(err: journal::Error) -> Failure {
    Failure::Said {
        code: Code::Io,
        message: chain(&err),
        hint: None,
    }
}

/// For commands that look something up and leave.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::io("cannot start", &err, None))
}

fn file(folder: &Path) -> PathBuf {
    folder.join("journal.sqlite")
}

/// Transcripts are nobody else's.
fn make(folder: &Path) -> std::io::Result<()> {
    let is_new = !folder.exists();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    match is_new {
        true => fs::set_permissions(folder, fs::Permissions::from_mode(0o700)),
        false => Ok(()),
    }
}

fn unusable(path: &Path, fault: &Fault) -> Failure {
    let hint = match fault {
        Fault::Newer { .. } => "use the newer linkspan, or another `--data-dir`",
        Fault::Corrupt(_) => {
            "move the file away to begin anew; `sqlite3 FILE .recover` saves what it can"
        }
        Fault::Full => "make room, or name another directory with `--data-dir`",
        Fault::ReadOnly => "name a directory you may write to with `--data-dir`",
        Fault::Busy | Fault::Closed | Fault::Io(_) | Fault::Database(_) => {
            "name another directory with `--data-dir`"
        }
    };
    Failure::Said {
        code: Code::Io,
        message: format!("cannot use `{}`: {}", path.display(), chain(fault)),
        hint: Some(hint.to_owned()),
    }
}
