//! Whole streams through whole machines.

mod fixtures;
mod goldens;
mod takopi_rules;
mod takopi_upstream;
