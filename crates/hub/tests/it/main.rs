//! Hubs on real journals in memory, with recordings and with a small agent that is a shell script.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod accepted;
mod acceptors;
mod asks;
mod crash;
mod disk_full;
mod exports;
mod follow;
mod forks;
mod harness;
mod leases;
mod pages;
mod paused;
mod queue;
mod retention;
mod scripted_journal;
mod session_logs;
mod time_limits;
mod workers;
