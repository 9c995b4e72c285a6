//! Whole streams through whole machines.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::disallowed_methods, reason = "tests own the files they read")]

mod acp_agent;
mod after_end;
mod approvals;
mod claude;
mod codex_thread;
mod completeness;
mod detect;
mod error_codes;
mod fates;
mod fixtures;
mod frames;
mod goldens;
mod interleaving;
mod invariants;
mod openhands_acp;
mod openresponses;
mod pages;
mod properties;
mod round_trips;
mod takopi_rules;
mod takopi_upstream;
#[path = "../../src/readers/test_notation.rs"]
mod test_notation;
mod transcripts;
