//! What an engine is told when it is opened.

use std::sync::Arc;

use crate::clock::Clock;
use crate::truncate::Truncate;

#[derive(Clone, Debug)]
pub struct Config {
    pub clock: Arc<dyn Clock>,
    /// Keep less of what is long; absent keeps everything.
    pub cut: Option<Truncate>,
}
