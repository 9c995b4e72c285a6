//! A program to be killed: appends batches to a store and prints each number when it is acknowledged.
//!
//! `appender STORE OWNER DEAD SEED` takes the session from the owner DEAD and appends until it is killed.
//! `appender STORE OWNER DEAD SEED LIMIT` may not write files of more than LIMIT bytes: it reports when that
//! fails, lifts the limit, and continues for a while. The tests know each event from its number.

#![expect(
    clippy::print_stdout,
    reason = "the acknowledgements are what it is for"
)]
#![expect(clippy::unwrap_used, reason = "a program made to die may do so")]

#[path = "shared/notice.rs"]
mod notice;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Config, Entry, Error, Journal, Lease, NewSession, Owner, Sqlite, SystemClock, Takeover,
};
use model::SessionId;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::notice::notice;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, owner, dead, seed, limit @ ..] = &args[..] else {
        panic!("usage: appender STORE OWNER DEAD SEED [LIMIT]");
    };
    let config = Config {
        clock: Arc::new(SystemClock::new()),
        cut: None,
    };
    let journal = Sqlite::open(Path::new(path), config).await.unwrap();
    let lease = take(&journal, owner, dead).await;
    let mut seed: u64 = seed.parse().unwrap();
    let mut head = lease.head;
    let mut left = None;
    if let Some(limit) = limit.first() {
        limit_files(Some(limit.parse().unwrap()));
    }
    while left != Some(0) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let next = head + 1 + (seed >> 33) % 20;
        let entries = (head + 1..=next).map(|seq| entry(&lease, seq)).collect();
        let batch = Batch::new(entries);
        match journal.append(&lease, batch).await {
            Ok(range) => {
                head = range.end - 1;
                println!("{head}");
                left = left.map(|it: u32| it - 1);
            }
            Err(Error::Storage(fault)) => {
                println!("{fault}");
                limit_files(None);
                left = Some(20);
            }
            Err(err) => panic!("{err}"),
        }
        std::io::stdout().flush().unwrap();
    }
}

async fn take(journal: &Sqlite, owner: &str, dead: &str) -> Lease {
    let session = SessionId::new("s");
    let new = NewSession {
        home: journal::Node::default(),
        id: session.clone(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    match journal.create(new).await {
        Ok(_) | Err(Error::SessionExists { .. }) => (),
        Err(err) => panic!("{err}"),
    }
    let takeover = Takeover::Dead(Owner::new(dead));
    let ttl = Duration::from_secs(3600);
    let owner = Owner::new(owner);
    journal
        .acquire(&session, &owner, ttl, takeover)
        .await
        .unwrap()
}

/// The limit is soft, so that it can be lifted again.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit {
        current: bytes.or(maximum),
        maximum,
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

fn entry(lease: &Lease, seq: u64) -> Entry {
    let text = format!("{seq} ").repeat((seq % 97) as usize * 5 + 1);
    let event = notice(lease, seq, None, "appended", &text);
    Entry::of(&event, Some(Bytes::from(text.clone()))).unwrap()
}
