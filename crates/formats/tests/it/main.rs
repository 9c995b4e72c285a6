//! Whole streams through whole machines.

mod fixtures;
mod goldens;
