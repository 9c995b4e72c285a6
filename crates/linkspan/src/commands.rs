//! One file per command; each prints data to stdout and fails with an exit code and a hint.

pub(crate) mod acp;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod engines;
pub(crate) mod formats;
pub(crate) mod generated;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod stdio;
pub(crate) mod token;
