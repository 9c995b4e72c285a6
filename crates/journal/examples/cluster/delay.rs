//! How long an event takes from a writer on one node to a follower on another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Batch, Journal, Lease, Postgres, Read, Scope};
use private_postgres::Server;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::session::{acquire, database, entry, open};

const SESSIONS: usize = 20;
/// A second, of all sessions together.
const EVENTS: u32 = 500;
const DURATION: Duration = Duration::from_secs(8);

/// Prints milliseconds: the median, the 99th percentile and the longest.
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
pub(crate) async fn measure(server: &Server) {
    let url = database(server);
    let (writer, reader) = (open(&url, 16).await, open(&url, 8).await);
    let (writer, reader) = (Arc::new(writer), Arc::new(reader));
    // Until both listen.
    sleep(Duration::from_secs(1)).await;
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for n in 0..SESSIONS {
        let lease = acquire(&writer, n).await;
        let (writer, reader) = (Arc::clone(&writer), Arc::clone(&reader));
        tasks.spawn(async move {
            let made = write(&writer, &lease, begun);
            let seen = follow(&reader, &lease, begun);
            let (made, seen) = tokio::join!(made, seen);
            let delays = made.into_iter().zip(seen);
            delays.map(|(made, seen)| seen - made).collect::<Vec<_>>()
        });
    }
    let mut delays: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    delays.sort();
    let at = |share: f64| {
        let place = ((delays.len() - 1) as f64 * share) as usize;
        delays[place].as_secs_f64() * 1e3
    };
    let (p50, p99, longest) = (at(0.5), at(0.99), at(1.0));
    let n_events = delays.len();
    println!(r#"{{"events":{n_events},"p50":{p50:.1},"p99":{p99:.1},"max":{longest:.1}}}"#);
}

/// When each event was made.
async fn write(journal: &Postgres, lease: &Lease, begun: Instant) -> Vec<Duration> {
    let mut ticks = interval(Duration::from_secs(1) * SESSIONS as u32 / EVENTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut made = Vec::new();
    for seq in 1..=n_events() {
        ticks.tick().await;
        made.push(begun.elapsed());
        let batch = Batch::new(vec![entry(lease, seq)]);
        journal.append(lease, batch).await.unwrap();
    }
    made
}

/// When each event was read.
async fn follow(journal: &Postgres, lease: &Lease, begun: Instant) -> Vec<Duration> {
    let session = &lease.session;
    let mut watch = journal.watch(Scope::Session(session.clone()));
    let mut seen = Vec::new();
    while seen.len() < n_events() as usize && watch.changed().await {
        let page = journal.read(session, Read::page(seen.len() as u64)).await;
        seen.extend(page.unwrap().events.iter().map(|_| begun.elapsed()));
    }
    seen
}

/// Of each session.
fn n_events() -> u64 {
    u64::from(EVENTS) * DURATION.as_secs() / SESSIONS as u64
}
