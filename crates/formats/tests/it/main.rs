//! Whole streams through whole machines.

mod fixtures;
mod goldens;
mod laws;
mod properties;
mod takopi_rules;
mod takopi_upstream;
