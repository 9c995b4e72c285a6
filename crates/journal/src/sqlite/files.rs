//! The files of a store, as they were when it was opened.
//!
//! A file that is deleted while it is open lives on until it is closed: writes seem to succeed and
//! are lost when the process exits. So before a write is acknowledged, the files are checked to be
//! still in place.

use std::fs;
use std::path::{Path, PathBuf};

use super::open::beside;
use crate::error::Fault;

#[derive(Clone, Debug)]
pub(super) struct Files(Vec<(PathBuf, FileId)>);

/// The identity of a file, independent of its name.
type FileId = (u64, u64);

impl Files {
    /// Those of an open store.
    pub(super) fn of(store: &Path) -> Self {
        let paths = ["", "-wal", "-shm"].map(|it| beside(store, it));
        Self(
            paths
                .into_iter()
                .filter_map(|it| Some((id(&it)?, it)))
                .map(|(id, path)| (path, id))
                .collect(),
        )
    }

    /// Only the main file, for a store on a full disk: without a writer the others come and go.
    pub(super) fn of_cramped(store: &Path) -> Self {
        Self(
            id(store)
                .map(|id| (store.to_owned(), id))
                .into_iter()
                .collect(),
        )
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.0.iter().find(|(path, was)| id(path) != Some(*was)) {
            None => Ok(()),
            Some((path, _)) => Err(Fault::Gone(path.clone())),
        }
    }
}

#[cfg(unix)]
fn id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let data = fs::metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

/// Files that are open cannot be deleted there.
#[cfg(not(unix))]
fn id(_: &Path) -> Option<FileId> {
    None
}
