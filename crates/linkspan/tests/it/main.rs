//! The program as its users meet it: started as a process, fed through pipes, files and terminals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(target_os = "linux")]
mod acp;
mod ag_ui;
#[path = "../agents/table.rs"]
mod agents_table;
#[cfg(target_os = "linux")]
mod announced;
mod asks;
mod config;
mod conversation;
mod convert;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(target_os = "linux")]
mod dead_owners;
#[cfg(target_os = "linux")]
mod disk_full;
#[cfg(target_os = "linux")]
mod doctor;
mod engines;
#[cfg(target_os = "linux")]
mod error_messages;
mod errors;
mod hostile;
mod large_outputs;
#[cfg(target_os = "linux")]
mod leases;
mod models;
mod newest;
mod one_end;
mod openhands;
mod pages;
#[cfg(target_os = "linux")]
mod permissions;
mod program;
mod prompts;
#[cfg(target_os = "linux")]
mod removed;
mod run;
#[cfg(target_os = "linux")]
mod runner;
mod schema;
mod sdks;
#[cfg(target_os = "linux")]
mod secrets;
#[cfg(target_os = "linux")]
mod serve;
mod serve_log;
#[cfg(target_os = "linux")]
mod served;
#[cfg(target_os = "linux")]
mod sessions;
mod show;
#[cfg(target_os = "linux")]
mod slow_consumers;
#[cfg(target_os = "linux")]
mod started_server;
#[cfg(target_os = "linux")]
mod stdio;
mod streaming;
#[cfg(target_os = "linux")]
mod terminal;
mod tidy;
#[cfg(target_os = "linux")]
mod tls;
