//! The program as its users meet it: started as a process, fed through pipes, files and terminals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(target_os = "linux")]
mod acp;
#[path = "../agents/table.rs"]
mod agents_table;
#[cfg(target_os = "linux")]
mod asks;
mod config;
mod conversation;
mod convert;
mod engines;
mod errors;
mod openhands;
mod pages;
mod program;
mod prompts;
mod run;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod serve;
mod show;
mod streaming;
#[cfg(target_os = "linux")]
mod terminal;
