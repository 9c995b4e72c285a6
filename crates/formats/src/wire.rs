//! Foreign JSON as it travels: serde types only, no logic.

pub(crate) mod acp;
pub(crate) mod ag_ui;
