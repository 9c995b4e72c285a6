//! Foreign JSON as it travels: serde types only, no logic.
