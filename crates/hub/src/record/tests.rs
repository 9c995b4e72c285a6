//! What is kept of an agent's events: numbers, frames, room, open runs and asks, and the operator's log.

use std::sync::Mutex;

use model::{Ask, AskId, AskKind, AskSettled, Decision};
use tracing::field::{Field, Visit};
use tracing::span;

use super::*;
use crate::config::QueueLife;
use crate::test_log::{TestLog, event, notice};

async fn record(log: &TestLog) -> Record {
    let session = log.session().await;
    Record::open(&*log.journal, &session, session.head)
        .await
        .unwrap()
}

fn started() -> Body<'static> {
    Body::RunStarted(RunStarted::new(Cause::Prompt))
}

fn ended() -> Body<'static> {
    Body::RunEnded(RunEnded::new(Outcome::Completed, None))
}

#[tokio::test]
async fn a_long_frame_is_stored_in_part_and_says_how_much_is_missing() {
    let log = TestLog::new().await;
    let session = &log.lease.session;
    let mut record = record(&log).await;
    let lengths = [3, MAX_FRAME, MAX_FRAME + 5];
    for (length, seq) in lengths.iter().zip(1..) {
        record.frame(Frame::Data(&vec![b'x'; *length]));
        record.event(&event(session, seq, None, notice("first")));
    }
    // An event that comes from no frame of its own, and one whose frame was never held.
    record.event(&event(session, 4, None, notice("second")));
    record.frame(Frame::Data(&vec![b'x'; MAX_FRAME + 7]));
    record.frame(Frame::Oversized {
        length: 1 << 40,
        head: b"x",
    });
    record.event(&event(session, 5, None, notice("third")));
    record.commit();
    let batch = record.take().unwrap();
    log.journal.append(&log.lease, batch).await.unwrap();
    let read = journal::Read {
        max_bytes: usize::MAX,
        ..journal::Read::page(0)
    };
    let frames = log.journal.frames(session, read).await.unwrap();
    let stored: Vec<_> = frames
        .iter()
        .map(|it| (it.seq, it.bytes.len(), it.cut))
        .collect();
    assert_eq!(stored, [(1, 3, 0), (2, MAX_FRAME, 0), (3, MAX_FRAME, 5)]);
}

#[tokio::test]
async fn the_backlog_is_full_at_its_limit_and_empty_once_it_is_taken() {
    let log = TestLog::new().await;
    let session = &log.lease.session;
    let mut record = record(&log).await;
    // A frame of a megabyte and its line: seven leave room, eight do not.
    for seq in 1..=7 {
        record.frame(Frame::Data(&vec![b'x'; MAX_FRAME]));
        record.event(&event(session, seq, None, notice("hello")));
    }
    assert!(record.has_room());
    let left = MAX_WAITING - record.n_unsaved;
    assert!(left < MAX_FRAME, "the lines count too");
    record.n_unsaved += left - 1;
    assert!(record.has_room());
    record.n_unsaved += 1;
    assert!(!record.has_room());
    record.commit();
    assert_eq!(record.take().map(|it| it.entries.len()), Some(7));
    assert!(record.has_room());
    assert!(record.take().is_none());
}

#[tokio::test]
async fn what_is_staged_may_not_be_stored_before_its_step_has_returned() {
    let log = TestLog::new().await;
    let mut record = record(&log).await;
    assert!(record.is_empty() && !record.is_ready());
    record.event(&event(&log.lease.session, 1, None, notice("hello")));
    assert!(!record.is_empty() && !record.is_ready());
    assert!(record.take().is_none());
    record.commit();
    assert!(!record.is_empty() && record.is_ready());
    assert_eq!(record.ready_lines().len(), 1);
    assert!(record.take().is_some());
    assert!(record.is_empty());
    // A command that is done is something to store, too.
    record.done(7);
    assert!(!record.is_empty() && record.is_ready());
    assert_eq!(record.take().unwrap().done, [7]);
}

#[tokio::test]
async fn an_agent_continues_behind_the_runs_of_the_log() {
    let mut log = TestLog::new().await;
    log.append_runs(2).await;
    let session = log.lease.session.clone();
    let mut record = record(&log).await;
    let point = |record: &Record| {
        let point = record.resume_point();
        (point.seq, point.previous.n_runs)
    };
    assert_eq!(point(&record), (4, 2));
    // The announced run is the first of the agent.
    let run = record.announce("hello", None, None);
    assert_eq!((run.as_str(), point(&record)), ("r3", (7, 2)));
    assert_eq!(record.open_run(), Some(&run));
    record.event(&event(&session, 8, Some("r3"), ended()));
    assert_eq!((record.open_run(), point(&record)), (None, (8, 3)));
    // A run that background work began.
    record.event(&event(&session, 9, Some("r4"), started()));
    assert_eq!(record.open_run(), Some(&RunId::new("r4")));
    assert_eq!(point(&record), (9, 3));
    record.end_run(RunEnded::new(Outcome::Aborted, None));
    assert_eq!((record.open_run(), point(&record)), (None, (10, 4)));
    // Nothing is open: there is nothing to end.
    record.end_run(RunEnded::new(Outcome::Aborted, None));
    assert_eq!(record.seq(), 10);
}

#[tokio::test]
async fn the_next_run_has_a_number_of_its_own() {
    for (names, next) in [(["r7", "r2"], "r8"), (["r1", "other"], "r3")] {
        let mut log = TestLog::new().await;
        let bodies = names.map(|run| [(Some(run), started()), (Some(run), ended())]);
        log.store(bodies.into_iter().flatten()).await;
        let run = record(&log).await.announce("hello", None, None);
        assert_eq!(run.as_str(), next);
    }
}

#[tokio::test]
async fn an_ask_is_open_until_its_own_settlement() {
    let log = TestLog::new().await;
    let session = &log.lease.session;
    let mut record = record(&log).await;
    for (seq, id) in [(1, "a"), (2, "b")] {
        let ask = Ask {
            id: AskId::new(id),
            kind: AskKind::Permission,
            item: None,
            tool: "Bash".into(),
            title: Text::new("ls"),
            description: None,
            input: None,
            suggestions: None,
            deadline: None,
        };
        record.event(&event(session, seq, Some("r1"), Body::AskOpened(ask)));
    }
    let open = |record: &Record| -> Vec<(u64, String)> {
        let asks = record.asks().iter();
        asks.map(|it| (it.seq, it.id.clone())).collect()
    };
    assert_eq!(open(&record), [(1, "a".to_owned()), (2, "b".to_owned())]);
    let settled = AskSettled::new(AskId::new("a"), Decision::Allowed);
    record.event(&event(session, 3, Some("r1"), Body::AskSettled(settled)));
    assert_eq!(open(&record), [(2, "b".to_owned())]);
}

#[tokio::test]
async fn the_events_of_a_recording_become_those_of_the_session() {
    let log = TestLog::new().await;
    let mut record = record(&log).await;
    let recorded = SessionId::new("recorded");
    record.event(&event(&recorded, 1, None, notice("hello")));
    record.commit();
    let lines = record.ready_lines();
    let line = str::from_utf8(&lines[0]).unwrap();
    assert_eq!(Event::from_json(line).unwrap().session, log.lease.session);
}

#[test]
fn only_what_looks_like_a_code_is_logged() {
    let code = |code: &str| {
        let error = RunError::new(code.to_owned(), Text::new(""));
        plain_code(&error).map(str::to_owned)
    };
    let longest = "x".repeat(MAX_CODE);
    let numbered = "1".repeat(MAX_NUMBERED_CODE);
    for plain in [
        "rate_limited",
        "rate_limited_for_long",
        "http_429",
        "-32603",
        "",
        &numbered,
        &longest,
    ] {
        assert_eq!(code(plain).as_deref(), Some(plain));
    }
    for other in [
        "a b",
        "a:b",
        &format!("{numbered}1"),
        &format!("{longest}x"),
    ] {
        assert_eq!(code(other), None, "{other}");
    }
}

/// Keeps the operator's log as text, one line for each event.
#[derive(Default)]
struct LogLines(Arc<Mutex<Vec<String>>>);

struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl tracing::Subscriber for LogLines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = LogLine(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_run_is_logged_at_its_end_with_its_outcome_and_code() {
    let log = TestLog::new().await;
    let session = &log.lease.session;
    let record = record(&log).await;
    let lines = Arc::default();
    let logged = LogLines(Arc::clone(&lines));
    tracing::subscriber::with_default(logged, || {
        let took = Duration::from_micros(1_234_567);
        let error = |code: &'static str| Some(RunError::new(code, Text::new("secret")));
        for (outcome, error) in [
            (Outcome::Completed, None),
            (Outcome::Failed, error("http_429")),
            (Outcome::Aborted, error("aborted")),
        ] {
            let ended = RunEnded::new(outcome, error);
            let event = event(session, 1, Some("r1"), notice("any"));
            record.log_end(&event, &ended, took);
        }
    });
    let expected = [
        r#"INFO message=run ended session="s" run="r1" engine="claude" outcome="completed" seconds=1.235"#,
        r#"WARN message=run ended session="s" run="r1" engine="claude" outcome="failed" code="http_429" seconds=1.235"#,
        r#"INFO message=run ended session="s" run="r1" engine="claude" outcome="aborted" seconds=1.235"#,
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}

#[tokio::test]
async fn runs_are_counted_and_timed_from_the_prompt_to_the_agents_first_event() {
    let log = TestLog::new().await;
    let session = &log.lease.session;
    let counts = Arc::new(RunCounts::default());
    let mut record = record(&log).await;
    record.count_in(&counts);
    record.announce("hello", None, None);
    record.expect_first_event(Some(Accepted::now("test", QueueLife::Durable)));
    let answered = || {
        counts
            .first_events()
            .values()
            .map(|it| it.count())
            .sum::<u64>()
    };
    // What linkspan adds is not the agent's.
    let mut ours = event(session, 4, Some("r1"), notice("ours"));
    ours.origin = Origin::Linkspan;
    record.event(&ours);
    assert_eq!(answered(), 0);
    for seq in 5..7 {
        record.event(&event(session, seq, Some("r1"), notice("agent's")));
        assert_eq!(answered(), 1);
    }
    record.event(&event(session, 7, Some("r1"), ended()));
    let ends: Vec<_> = counts
        .all()
        .into_iter()
        .map(|(key, it)| (key, it.count()))
        .collect();
    assert_eq!(ends, [(("claude".to_owned(), "completed"), 1)]);
}
