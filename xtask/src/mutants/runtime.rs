//! The switch itself, as the crates with mutants see it; it is part of the copy alone.
//!
//! `MUTANT` is the id of the one that is on. Where `MUTANTS_SEEN` names a file, it gets the ids that are asked for,
//! each once by each process and at once, because some processes are killed.

use std::{
    env,
    fs::{File, OpenOptions},
    io::Write,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

static SEEN: [AtomicBool; N_MUTANTS] = [const { AtomicBool::new(false) }; N_MUTANTS];

static ON: LazyLock<usize> = LazyLock::new(|| {
    let id = env::var("MUTANT").ok();
    id.and_then(|it| it.parse().ok()).unwrap_or(0)
});

static SEEN_FILE: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = env::var_os("MUTANTS_SEEN")?;
    OpenOptions::new().create(true).append(true).open(path).ok()
});

/// Whether this mutant is on.
pub fn on(id: usize) -> bool {
    if let Some(mut file) = SEEN_FILE.as_ref()
        && !SEEN[id].swap(true, Relaxed)
    {
        // A full disk is one of the things that are tested.
        drop(file.write_all(format!("{id}\n").as_bytes()));
    }
    *ON == id
}
