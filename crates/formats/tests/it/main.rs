//! Whole streams through whole machines.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod fixtures;
mod goldens;
mod laws;
mod properties;
mod takopi_rules;
mod takopi_upstream;
