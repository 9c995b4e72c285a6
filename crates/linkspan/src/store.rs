//! The journal as the program meets it: where it lies, and how it is opened.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{Config, Cut, Fault, Journal, Session, Sqlite, SystemClock};
use model::SessionId;
use tokio::runtime::{Builder, Runtime};

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

/// Opens the journal, and makes it if there is none. Who only reads has nothing to cut.
pub(crate) async fn open(folder: &Path, cut: Option<Cut>) -> Result<Arc<dyn Journal>, Failure> {
    let path = file(folder);
    let config = Config {
        clock: Arc::new(SystemClock::default()),
        cut,
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
