//! Options for opening a journal.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::truncate::Truncate;

#[derive(Clone, Debug)]
pub struct Config {
    pub clock: Arc<dyn Clock>,
    /// Truncates long strings; absent keeps everything.
    pub cut: Option<Truncate>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            cut: None,
        }
    }
}
