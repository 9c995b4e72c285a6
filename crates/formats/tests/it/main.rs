//! Whole streams through whole machines.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read fixtures, and say where they cannot go on"
)]

mod fixtures;
mod goldens;
mod laws;
mod properties;
mod takopi_rules;
mod takopi_upstream;
