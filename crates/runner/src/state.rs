//! Where linkspan keeps what all its processes share, and how it names its own sessions.

use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};
use uuid::Uuid;

/// The folder of locks and the like: one per user, whatever else is configured.
/// None without a home directory.
pub fn state_folder() -> Option<PathBuf> {
    let strategy = choose_base_strategy().ok()?;
    // Not every platform has a folder for state.
    let state = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    Some(state.join("linkspan"))
}

/// The folder of data that is worth keeping, such as the journal. None without a home directory.
pub fn data_folder() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.data_dir().join("linkspan"))
}

/// A new id of a session: unique, and later ones sort behind earlier ones.
pub fn new_id() -> String {
    // Version 7 begins with the time.
    Uuid::now_v7().to_string()
}
