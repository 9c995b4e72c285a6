//! How fast nodes write to PostgreSQL beside a bare loop with the same batches, and how soon others see it.
//!
//! Starts a server of its own that waits for its disk. `cluster ROUNDS` prints an object for each number of
//! writers, appends a second by round; `cluster delay` one with milliseconds from a writer on one node to a
//! follower on another. `cargo xtask bench cluster` makes a table of them; by itself it is
//! `cargo run --release -p linkspan-journal --example cluster 3`.

#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot continue should stop"
)]

mod delay;
#[path = "../shared/notice.rs"]
mod notice;
mod rates;
mod session;

use private_postgres::{Server, Sync};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let server = Server::start(Sync::Disk).unwrap();
    match &args[..] {
        [mode] if mode == "delay" => delay::measure(&server).await,
        [rounds] => rates::measure(&server, rounds.parse().unwrap()).await,
        _ => panic!("cluster ROUNDS, or cluster delay"),
    }
}
