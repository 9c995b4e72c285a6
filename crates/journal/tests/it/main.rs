//! Every engine held to the journal's words, and the store on disk held to its promises.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue should stop"
)]

mod conformance;
mod connections;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod damage;
mod database;
mod failover;
mod harness;
#[cfg(unix)]
mod losses;
mod partition;
mod postgres;
mod properties;
mod proxy;
#[cfg(unix)]
mod repair;
#[cfg(unix)]
mod salvage;
#[cfg(unix)]
mod store;
mod tail;
#[cfg(unix)]
mod upgrade;
