//! When followers are woken, by a clock that stands still.

use std::borrow::Cow;

use journal::{Batch, Config, Entry, Lease, Memory, NewSession, Owner, SystemClock, Takeover};
use model::{Body, Event, Level, Notice, Origin, Text};

use super::*;

const LEASE: Duration = Duration::from_secs(3600);

/// A session that is written.
struct TestLog {
    journal: Arc<dyn Journal>,
    lease: Lease,
    seq: u64,
}

impl TestLog {
    async fn new() -> Self {
        let journal: Arc<dyn Journal> = Arc::new(Memory::new(Config {
            clock: Arc::new(SystemClock::new()),
            cut: None,
        }));
        let session = NewSession {
            id: SessionId::new("s"),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        };
        let session = journal.create(session).await.unwrap().id;
        let owner = Owner::new("test".to_owned());
        let lease = journal.acquire(&session, &owner, LEASE, Takeover::Lapsed);
        Self {
            lease: lease.await.unwrap(),
            journal: Arc::clone(&journal),
            seq: 0,
        }
    }

    /// Stores so many events at once.
    async fn append(&mut self, n_events: u64) {
        let mut batch = Batch::default();
        for _ in 0..n_events {
            self.seq += 1;
            let notice = Notice {
                level: Level::Info,
                code: Cow::Borrowed("test"),
                text: Text::new("hello"),
                item: None,
                detail: None,
            };
            let event = Event {
                seq: self.seq,
                at: None,
                session: self.lease.session.clone(),
                run: None,
                engine: Cow::Borrowed("claude"),
                path: Cow::Borrowed(&[]),
                origin: Origin::Linkspan,
                frame: None,
                native: None,
                why: None,
                extra: Cow::Borrowed(&[]),
                body: Body::NoticeRaised(notice),
            };
            batch.entries.push(Entry::of(&event, None).unwrap());
        }
        self.journal.append(&self.lease, batch).await.unwrap();
    }
}

async fn wait(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_goes_out_at_intervals_and_a_fast_one_at_once() {
    let mut log = TestLog::new().await;
    let session = Arc::new(log.lease.session.clone());
    let style = Style {
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
    };
    let render = Render::new(Arc::clone(&session), &style, 0).unwrap();
    let channels = Channels::default();
    let channel = channels.open(&log.journal, &session, &style, || render);
    let ring = &channel.ring;
    let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
    wait(1).await;
    // After a silence at once, then with what comes within 50 ms.
    log.append(1).await;
    wait(1).await;
    assert_eq!(ring.end(), 1);
    log.append(1).await;
    wait(10).await;
    log.append(1).await;
    wait(35).await;
    assert_eq!(ring.end(), 1);
    wait(5).await;
    assert_eq!(ring.end(), 3);
    // Ten are worth a write to each of a hundred.
    log.append(5).await;
    wait(1).await;
    assert_eq!(ring.end(), 3);
    log.append(5).await;
    wait(1).await;
    assert_eq!(ring.end(), 13);
    log.append(10).await;
    wait(1).await;
    assert_eq!(ring.end(), 23);
}
