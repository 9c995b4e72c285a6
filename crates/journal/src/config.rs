//! Options for opening a journal.

use std::sync::Arc;

use crate::clock::Clock;
use crate::truncate::Truncate;

#[derive(Clone, Debug)]
pub struct Config {
    pub clock: Arc<dyn Clock>,
    /// Truncates long strings; absent keeps everything.
    pub cut: Option<Truncate>,
}
