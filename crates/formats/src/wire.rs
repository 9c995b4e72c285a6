//! Foreign JSON as it travels: serde types only, no logic.

#[macro_use]
pub(crate) mod lenient;

pub(crate) mod claude;
pub(crate) mod openhands;
