//! Workers with an agent that asks and talks, without a hub around them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hub::{Progress, SessionLog, Worker};
use journal::NewSession;
use model::{Body, Decision, Event, Frame, Outcome, SessionId, Sink};
use runner::engines::{self, LaunchContext};
use runner::process::Guard;
use runner::{
    Answer, AskDefault, AskLimit, Interaction, Mode, Permissions, Request, Resume, RunOptions,
    Setup,
};
use tokio::time::timeout;

use crate::harness::{Harness, PATIENCE};
use crate::scripted_journal::ScriptedJournal;

/// What the agent can say before too much waits to be stored: eight megabytes, as lines and as frames.
const ROOM: usize = 4 << 20;
/// What it has to say.
const FLOOD: usize = 20_000_000;

fn permissions(mode: Mode) -> Permissions {
    Permissions {
        mode,
        ..Permissions::default()
    }
}

fn setup(harness: &Harness, prompt: &str) -> Setup {
    let settings = harness.config().settings;
    let request = Request {
        prompt: prompt.to_owned(),
        resume: Resume::Fresh,
        options: RunOptions::default(),
        permissions: permissions(Mode::Ask),
        mcp_servers: Vec::new(),
        cwd: harness.dir.path().to_owned(),
        talk: Interaction::Dialogue,
    };
    let around = LaunchContext {
        limits: settings.limits(),
        guard: Guard::None,
        locks: None,
        holder: "test".to_owned(),
        no_wait: false,
    };
    let selected = engines::select("claude", &settings).unwrap();
    hub::setup(&selected, "s", &request, around).unwrap()
}

/// Keeps what the tests compare.
#[derive(Default)]
struct TestSink {
    ends: Vec<Outcome>,
    settled: Vec<Decision>,
    n_bytes: usize,
}

impl Sink for TestSink {
    fn event(&mut self, event: &Event<'_>) {
        if let Body::RunEnded(ended) = &event.body {
            self.ends.push(ended.outcome);
        }
        if let Body::AskSettled(settled) = &event.body {
            self.settled.push(settled.decision);
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        if let Frame::Data(data) = frame {
            self.n_bytes += data.len();
        }
    }
}

/// Steps until it is as wanted.
async fn step_until(
    worker: &mut Worker,
    sink: &mut TestSink,
    mut is_so: impl FnMut(&Worker, &TestSink, Progress) -> bool,
) {
    let steps = async {
        loop {
            let progress = worker.step(sink).await;
            if is_so(worker, sink, progress) {
                return;
            }
        }
    };
    timeout(PATIENCE, steps).await.expect("it never happened")
}

/// Until the agent can be prompted again.
async fn until_ended(worker: &mut Worker, sink: &mut TestSink) {
    let is_ended = |_: &Worker, _: &TestSink, it| matches!(it, Progress::Ended);
    step_until(worker, sink, is_ended).await;
}

async fn until_gone(worker: &mut Worker, sink: &mut TestSink) {
    let is_gone = |_: &Worker, _: &TestSink, it| matches!(it, Progress::Gone(_));
    step_until(worker, sink, is_gone).await;
}

/// The ask that the agent waits for.
async fn until_asked(worker: &mut Worker, sink: &mut TestSink) -> String {
    step_until(worker, sink, |it, _, _| !it.open_asks().is_empty()).await;
    worker.open_asks()[0].ask.id.to_string()
}

#[tokio::test]
async fn an_ask_is_open_until_it_is_answered() {
    let harness = Harness::new();
    let mut worker = Worker::new(SessionLog::off(), permissions(Mode::Ask));
    let mut sink = TestSink::default();
    worker
        .start_now(setup(&harness, "ask"), |_| ())
        .await
        .unwrap();
    let id = until_asked(&mut worker, &mut sink).await;
    assert_eq!(worker.agent_mut().unwrap().asks().len(), 1);
    let bad = Answer::Allow {
        input: Some("no object".to_owned()),
    };
    assert_eq!(worker.settle(&id, &bad), Err(runner::NotSettled::BadInput));
    assert_eq!(worker.open_asks().len(), 1);
    worker.settle(&id, &Answer::Allow { input: None }).unwrap();
    assert_eq!(worker.open_asks(), []);
    until_ended(&mut worker, &mut sink).await;
    assert_eq!(sink.settled, [Decision::Allowed]);
    // The agent stays, and asks again; an answer that it cannot take is a denial.
    worker.prompt(&"ask".into(), None);
    let id = until_asked(&mut worker, &mut sink).await;
    worker.settle_or_deny(&id, &bad);
    assert_eq!(worker.open_asks(), []);
    until_ended(&mut worker, &mut sink).await;
    assert_eq!(sink.settled, [Decision::Allowed, Decision::Denied]);
    assert_eq!(sink.ends, [Outcome::Completed; 2]);
    worker.close();
    until_gone(&mut worker, &mut sink).await;
    assert!(worker.agent_mut().is_none());
}

#[tokio::test]
async fn the_mode_decides_what_is_asked_from_then_on() {
    let harness = Harness::new();
    let mut worker = Worker::new(SessionLog::off(), permissions(Mode::Deny));
    assert_eq!(worker.permissions(), &permissions(Mode::Deny));
    let mut sink = TestSink::default();
    worker
        .start_now(setup(&harness, "ask"), |_| ())
        .await
        .unwrap();
    until_ended(&mut worker, &mut sink).await;
    worker.set_mode(Mode::Allow);
    assert_eq!(worker.permissions(), &permissions(Mode::Allow));
    worker.prompt(&"ask".into(), None);
    until_ended(&mut worker, &mut sink).await;
    worker.set_permissions(permissions(Mode::Ask));
    worker.prompt(&"ask".into(), None);
    until_asked(&mut worker, &mut sink).await;
    assert_eq!(sink.settled, [Decision::Denied, Decision::Allowed]);
    worker.kill();
    until_gone(&mut worker, &mut sink).await;
    assert_eq!(sink.ends.last(), Some(&Outcome::Aborted));
}

#[tokio::test]
async fn without_a_journal_an_overdue_ask_gets_its_default() {
    let harness = Harness::new();
    let mut worker = Worker::new(SessionLog::off(), permissions(Mode::Ask));
    worker.set_ask_limit(Some(AskLimit {
        timeout: Duration::from_millis(20),
        default: AskDefault::Allow,
    }));
    let mut sink = TestSink::default();
    worker
        .start_now(setup(&harness, "ask"), |_| ())
        .await
        .unwrap();
    until_ended(&mut worker, &mut sink).await;
    assert_eq!(sink.settled, [Decision::Allowed]);
    // The limit of an agent that is there can be changed.
    worker.set_ask_limit(Some(AskLimit {
        timeout: Duration::from_millis(20),
        default: AskDefault::Deny,
    }));
    worker.prompt(&"ask".into(), None);
    until_ended(&mut worker, &mut sink).await;
    assert_eq!(sink.settled, [Decision::Allowed, Decision::Denied]);
    worker.kill();
    until_gone(&mut worker, &mut sink).await;
}

/// A worker whose agent has said more than may wait to be stored, on a full disk.
async fn flooded(harness: &Harness, is_full: &AtomicBool) -> (Worker, TestSink) {
    let journal = Arc::clone(&harness.journal);
    let session = NewSession {
        home: journal::Node::default(),
        id: SessionId::new("s"),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    };
    let log = SessionLog::create(journal, session).await.unwrap();
    let mut worker = Worker::new(log, permissions(Mode::Ask));
    is_full.store(true, Ordering::SeqCst);
    worker
        .start_now(setup(harness, "flood"), |_| ())
        .await
        .unwrap();
    let mut sink = TestSink::default();
    let is_behind = |_: &Worker, sink: &TestSink, it| {
        matches!(it, Progress::StoreFailed(_)) && sink.n_bytes > ROOM
    };
    step_until(&mut worker, &mut sink, is_behind).await;
    (worker, sink)
}

fn full_disk() -> (Arc<AtomicBool>, Harness) {
    let is_full = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_full);
    let harness = Harness::with(|inner| Arc::new(ScriptedJournal::new(Arc::new(inner), switch)));
    (is_full, harness)
}

#[tokio::test]
async fn an_agent_is_not_read_while_the_journal_is_behind() {
    let (is_full, harness) = full_disk();
    let (mut worker, mut sink) = flooded(&harness, &is_full).await;
    // Three attempts to store it, each after a longer pause.
    let mut n_failed = 0;
    let has_failed = |_: &Worker, _: &TestSink, it| {
        n_failed += usize::from(matches!(it, Progress::StoreFailed(_)));
        n_failed == 3
    };
    step_until(&mut worker, &mut sink, has_failed).await;
    assert!(sink.n_bytes < FLOOD / 2, "{}", sink.n_bytes);
    is_full.store(false, Ordering::SeqCst);
    until_ended(&mut worker, &mut sink).await;
    assert_eq!(sink.ends, [Outcome::Completed]);
    assert!(sink.n_bytes > FLOOD);
    assert!(worker.log_mut().flush().await);
    harness.check(&SessionId::new("s")).await;
    worker.close();
    until_gone(&mut worker, &mut sink).await;
}

#[tokio::test]
async fn an_agent_that_is_stopped_is_read_to_its_end_on_a_full_disk() {
    let stops: [fn(&mut Worker); 3] = [Worker::abort, Worker::close, Worker::kill];
    for stop in stops {
        let (is_full, harness) = full_disk();
        let (mut worker, mut sink) = flooded(&harness, &is_full).await;
        stop(&mut worker);
        // The end of its run, however it ends.
        let has_ended = |_: &Worker, sink: &TestSink, _| !sink.ends.is_empty();
        step_until(&mut worker, &mut sink, has_ended).await;
        assert!(is_full.load(Ordering::SeqCst));
        worker.kill();
    }
}
