//! Logs and workers as `linkspan run`, `linkspan acp` and `Conversation` use them, under a paused clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub::{Progress, Request, SessionLog, Worker};
use journal::{Error, NewSession, Owner, Session, Takeover, WriteId};
use model::{Body, Event, MessageContent, Outcome, RunId, SessionId};
use runner::config::Config;
use runner::engines::{self, LaunchContext};
use runner::process::Guard;
use runner::{Interaction, Permissions, Resume, RunOptions, Setup, StartError};
use tokio::time::sleep;

use crate::harness::{LEASE, lines};
use crate::paused::Paused;
use crate::scripted_journal::ScriptedJournal;

const ENGINE: &str = "replay:approval";

fn new_session(id: &str) -> NewSession {
    NewSession {
        home: journal::Node::default(),
        id: SessionId::new(id.to_owned()),
        engine: ENGINE.to_owned(),
        cwd: None,
        title: None,
        parent: None,
    }
}

async fn created(paused: &Paused, id: &str) -> SessionLog {
    let journal = Arc::clone(&paused.journal);
    SessionLog::create(journal, new_session(id)).await.unwrap()
}

async fn find(paused: &Paused, id: &str) -> Option<Session> {
    let id = SessionId::new(id.to_owned());
    paused.journal.find_session(&id).await.unwrap()
}

fn setup(session: &str) -> Setup {
    let settings = Config::parse(None, |_| None).unwrap();
    let request = runner::Request {
        prompt: "work".to_owned(),
        resume: Resume::Fresh,
        options: RunOptions::default(),
        permissions: Permissions::default(),
        mcp_servers: Vec::new(),
        cwd: "/".into(),
        talk: Interaction::Dialogue,
    };
    let around = LaunchContext {
        limits: settings.limits(),
        guard: Guard::None,
        locks: None,
        holder: "test".to_owned(),
        no_wait: false,
    };
    let selected = engines::select(ENGINE, &settings).unwrap();
    hub::setup(&selected, session, &request, around).unwrap()
}

/// The names of a session's events.
async fn names(paused: &Paused, id: &str) -> Vec<&'static str> {
    let lines = lines(&*paused.journal, &SessionId::new(id.to_owned())).await;
    let events = lines.iter().map(|it| Event::from_json(it).unwrap());
    events.map(|it| it.body.name()).collect()
}

/// Drives a worker until its agent is gone, and returns the names of the events it showed.
async fn drive(worker: &mut Worker) -> Vec<&'static str> {
    let mut names = Vec::new();
    loop {
        let mut sink = |event: &Event<'_>| names.push(event.body.name());
        if let Progress::Gone(_) = worker.step(&mut sink).await {
            return names;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_run_is_stored_and_its_agent_continues_it() {
    let paused = Paused::new();
    let mut log = created(&paused, "s").await;
    assert!(log.is_open() && !log.is_deferred() && !log.is_released());
    assert_eq!(log.session(), Some(&SessionId::new("s")));
    let announced = log.announce("hello").await.unwrap().unwrap();
    let mut shown = Vec::new();
    announced.replay(&mut |event: &Event<'_>| shown.push((event.seq, event.body.name())));
    let expected = [(1, "run.started"), (2, "item.opened"), (3, "item.closed")];
    assert_eq!(shown, expected);
    assert_eq!(names(&paused, "s").await, expected.map(|it| it.1));
    let place = log.place(Some(&announced)).unwrap();
    assert_eq!(place.session, "s");
    assert_eq!(place.earlier.seq, 3);
    assert_eq!(place.announced.unwrap().as_str(), "r1");
    assert_eq!(log.resume_point().seq, 3);
    log.end_not_started(&StartError::Recall("no".into()));
    assert!(log.release().await);
    let ended = [&expected.map(|it| it.1)[..], &["run.ended"]].concat();
    assert_eq!(names(&paused, "s").await, ended);
    assert!(log.is_released() && !log.is_open());
    assert!(log.place(None).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_worker_stores_what_it_shows() {
    let paused = Paused::new();
    let log = created(&paused, "s").await;
    let mut worker = Worker::new(log, Permissions::default());
    worker.start_now(setup("s"), |_| ()).await.unwrap();
    assert!(worker.agent().is_some());
    let shown = drive(&mut worker).await;
    assert!(worker.agent().is_none());
    assert!(worker.log_mut().flush().await);
    assert_eq!(names(&paused, "s").await, shown);
    assert_eq!(shown.last(), Some(&"run.ended"));
    let history = worker.log_mut().history().await.unwrap();
    let is_user = |it: &MessageContent| matches!(it, MessageContent::User(_));
    assert!(history.messages.iter().any(|it| is_user(&it.content)));
    // A worker without a log shows the same.
    let mut silent = Worker::new(SessionLog::off(), Permissions::default());
    silent.start_now(setup("s"), |_| ()).await.unwrap();
    assert_eq!(drive(&mut silent).await, shown);
    assert!(silent.log_mut().announce("hello").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_killed_or_taken_away_is_gone() {
    let paused = Paused::new();
    let mut worker = Worker::new(created(&paused, "s").await, Permissions::default());
    worker.start(async { Ok(setup("s")) });
    assert!(worker.is_starting());
    worker.finish_start(Duration::from_secs(1)).await;
    assert!(worker.agent().is_some() && !worker.is_starting());
    worker.kill();
    drive(&mut worker).await;
    worker.start(async { Ok(setup("s")) });
    assert!(worker.cancel_start());
    assert!(!worker.cancel_start());
    worker.start_now(setup("s"), |_| ()).await.unwrap();
    assert!(worker.take_agent().is_some());
    assert!(worker.agent().is_none());
    worker.stop_logging();
    assert!(!worker.log().is_open());
}

#[tokio::test(start_paused = true)]
async fn a_deferred_log_begins_with_what_it_held_back() {
    let paused = Paused::new();
    let mut worker = Worker::new(SessionLog::deferred(), Permissions::default());
    assert!(worker.log().is_deferred());
    worker.start_now(setup("s"), |_| ()).await.unwrap();
    let shown = drive(&mut worker).await;
    assert_eq!(find(&paused, "s").await, None);
    let begun = worker.log_mut().begin(&paused.journal, new_session("s"));
    begun.await.unwrap();
    assert!(worker.log().is_open());
    assert!(worker.log_mut().release().await);
    assert_eq!(names(&paused, "s").await, shown);
    // One that was forgotten has nothing to begin with.
    let mut worker = Worker::new(SessionLog::deferred(), Permissions::default());
    worker.start_now(setup("t"), |_| ()).await.unwrap();
    drive(&mut worker).await;
    worker.log_mut().forget_deferred();
    let begun = worker.log_mut().begin(&paused.journal, new_session("t"));
    begun.await.unwrap();
    assert!(worker.log_mut().release().await);
    assert_eq!(names(&paused, "t").await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn a_released_session_is_acquired_again_within_ten_seconds() {
    let paused = Paused::new();
    let mut log = created(&paused, "s").await;
    assert!(log.release().await);
    let session = SessionId::new("s");
    let owner = Owner::new("another program");
    let acquire = paused
        .journal
        .acquire(&session, &owner, LEASE, Takeover::Lapsed);
    let lease = acquire.await.unwrap();
    let before = paused.elapsed();
    let held = log.reacquire(&paused.journal).await;
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");
    let took = paused.elapsed() - before;
    assert_eq!(took, Duration::from_secs(10));
    assert!(log.is_released());
    let later = async {
        sleep(Duration::from_millis(900)).await;
        paused.journal.release(&lease).await.unwrap();
    };
    let before = paused.elapsed();
    let (acquired, ()) = tokio::join!(log.reacquire(&paused.journal), later);
    acquired.unwrap();
    assert_eq!(paused.elapsed() - before, Duration::from_secs(1));
    assert!(log.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_session_in_which_nothing_was_done_is_removed() {
    let paused = Paused::new();
    created(&paused, "empty").await.discard().await.unwrap();
    assert_eq!(find(&paused, "empty").await, None);
    let mut log = created(&paused, "used").await;
    log.announce("hello").await.unwrap();
    log.discard().await.unwrap();
    assert!(find(&paused, "used").await.is_some());
    let log = created(&paused, "queued").await;
    let target = journal::PromptTarget::Session(SessionId::new("queued"));
    paused
        .journal
        .enqueue(target, WriteId::new(), "{}".into())
        .await
        .unwrap();
    log.discard().await.unwrap();
    assert!(find(&paused, "queued").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_parent_of_a_fork_is_found_by_the_agents_id() {
    let paused = Paused::new();
    let mut worker = Worker::new(created(&paused, "s").await, Permissions::default());
    worker.start_now(setup("s"), |_| ()).await.unwrap();
    let mut native = None;
    loop {
        let mut sink = |event: &Event<'_>| {
            if let Body::SessionBound(bound) = &event.body {
                native = Some(bound.native.to_string());
            }
        };
        if let Progress::Gone(_) = worker.step(&mut sink).await {
            break;
        }
    }
    assert!(worker.log_mut().release().await);
    let parent = hub::parent(&*paused.journal, native.as_deref()).await;
    let head = find(&paused, "s").await.unwrap().head;
    let expected = journal::Parent {
        session: SessionId::new("s"),
        seq: head,
    };
    assert_eq!(parent.unwrap(), Some(expected));
    let none = hub::parent(&*paused.journal, None).await.unwrap();
    let unknown = hub::parent(&*paused.journal, Some("unknown"))
        .await
        .unwrap();
    assert_eq!((none, unknown), (None, None));
}

/// The outcome of each run of a session, and the code of its error.
async fn ends(paused: &Paused, id: &str) -> Vec<(Outcome, Option<String>)> {
    let lines = lines(&*paused.journal, &SessionId::new(id.to_owned())).await;
    let mut ends = Vec::new();
    for line in &lines {
        if let Body::RunEnded(ended) = Event::from_json(line).unwrap().body {
            let code = ended.error.map(|it| it.code.to_string());
            ends.push((ended.outcome, code));
        }
    }
    ends
}

#[tokio::test(start_paused = true)]
async fn an_announced_run_without_an_agent_is_ended_once() {
    let paused = Paused::new();
    let mut worker = Worker::new(created(&paused, "s").await, Permissions::default());
    let failure = || Some(("start_failed", "no".to_owned()));
    let mut expected = Vec::new();
    for failure in [None, failure()] {
        let announced = worker.log_mut().announce("hello").await.unwrap().unwrap();
        // While it is open there is no other.
        assert!(worker.log_mut().announce("more").await.unwrap().is_none());
        worker.end_announced(&RunId::new("r9"), None);
        assert!(worker.log_mut().flush().await);
        assert_eq!(ends(&paused, "s").await, expected);
        expected.push(match failure {
            None => (Outcome::Aborted, None),
            Some((code, _)) => (Outcome::Failed, Some(code.to_owned())),
        });
        for _ in 0..2 {
            worker.end_announced(&announced.run, failure.clone());
        }
        assert!(worker.log_mut().flush().await);
        assert_eq!(ends(&paused, "s").await, expected);
    }
}

/// A log on a journal that a test controls.
async fn scripted(paused: &Paused, takes: Duration) -> (Arc<ScriptedJournal>, SessionLog) {
    let inner = Arc::clone(&paused.journal);
    let journal = Arc::new(ScriptedJournal {
        append_takes: takes,
        ..ScriptedJournal::new(inner, Arc::default())
    });
    let log = SessionLog::create(Arc::clone(&journal) as _, new_session("s")).await;
    (journal, log.unwrap())
}

/// When appends began, in milliseconds since the first one.
fn times(journal: &ScriptedJournal) -> Vec<u128> {
    let appends = journal.appends.lock().unwrap();
    let times = appends.iter().map(|it| (*it - appends[0]).as_millis());
    times.collect()
}

#[tokio::test(start_paused = true)]
async fn the_appends_of_a_slow_store_keep_their_distance() {
    for (longest, distance) in [(None, 10), (Some(5), 5), (Some(1), 2)] {
        let paused = Paused::new();
        let (journal, mut log) = scripted(&paused, Duration::from_millis(2)).await;
        if let Some(longest) = longest {
            log.set_longest_rest(Duration::from_millis(longest));
        }
        log.announce("hello").await.unwrap();
        log.end_not_started(&StartError::Recall("no".into()));
        assert!(log.flush().await);
        // After a pause there is nothing to wait for.
        sleep(Duration::from_millis(100)).await;
        log.announce("hello").await.unwrap();
        let pause = 100 + distance + 2;
        assert_eq!(times(&journal), [0, distance, pause]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_fast_enough_is_written_at_once() {
    let paused = Paused::new();
    let (journal, mut log) = scripted(&paused, Duration::ZERO).await;
    for _ in 0..3 {
        log.announce("hello").await.unwrap();
        log.end_not_started(&StartError::Recall("no".into()));
    }
    assert!(log.flush().await);
    assert_eq!(times(&journal), [0; 6]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_append_is_tried_again_at_growing_intervals() {
    let paused = Paused::new();
    let (journal, mut log) = scripted(&paused, Duration::ZERO).await;
    journal.is_full.store(true, Ordering::SeqCst);
    let before = paused.elapsed();
    // The run is worth more than its announcement: this is no error.
    assert!(log.announce("hello").await.unwrap().is_some());
    assert_eq!(paused.elapsed() - before, Duration::from_secs(5));
    assert!(!log.flush().await);
    let failed = log.history().await.map(|_| ());
    assert!(matches!(failed, Err(Error::Storage(_))), "{failed:?}");
    let expected = [
        0, 50, 150, 350, 750, 1550, 3150, 5150, 7150, 9150, 11150, 13150,
    ];
    assert_eq!(times(&journal)[..12], expected);
    journal.is_full.store(false, Ordering::SeqCst);
    assert!(log.flush().await);
    assert_eq!(names(&paused, "s").await.len(), 3);
    // After a success the intervals begin anew.
    journal.is_full.store(true, Ordering::SeqCst);
    log.end_not_started(&StartError::Recall("no".into()));
    assert!(!log.flush().await);
    let times = times(&journal);
    let again: Vec<u128> = times.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(again[again.len() - 3..], [400, 800, 1600]);
}

#[tokio::test(start_paused = true)]
async fn events_that_the_journal_refuses_are_no_longer_stored() {
    let paused = Paused::new();
    let (journal, log) = scripted(&paused, Duration::ZERO).await;
    journal.n_refused.store(1, Ordering::SeqCst);
    let mut worker = Worker::new(log, Permissions::default());
    worker.start_now(setup("s"), |_| ()).await.unwrap();
    let mut sink = |_: &Event<'_>| ();
    let lost = loop {
        match worker.step(&mut sink).await {
            Progress::LogLost(lost) => break lost,
            Progress::Gone(_) => panic!("it was stored"),
            _ => (),
        }
    };
    assert!(lost.is_refused);
    assert!(matches!(lost.error, Error::TooLarge { .. }));
    assert_eq!(names(&paused, "s").await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_log_decides_what_to_do_with_commands() {
    let paused = Paused::new();
    let mut worker = Worker::new(created(&paused, "s").await, Permissions::default());
    let session = SessionId::new("s");
    let target = journal::PromptTarget::Session(session.clone());
    paused
        .journal
        .enqueue(target, WriteId::new(), "{}".into())
        .await
        .unwrap();
    for body in [
        r#"{"prompt":1}"#,
        r#"{"of":1}"#,
        "{}",
        r#"{"leave":true}"#,
        "{",
    ] {
        let order = journal::CommandBody::Abort(body.into());
        paused
            .journal
            .command(&session, WriteId::new(), order)
            .await
            .unwrap();
    }
    let Progress::Requests(requests) = worker.step(&mut |_: &Event<'_>| ()).await else {
        panic!("there are commands");
    };
    let expected = [
        Request::Prompt {
            number: 1,
            body: "{}".into(),
        },
        Request::RemovePrompt {
            number: 2,
            prompt: 1,
        },
        Request::Abort {
            number: 3,
            of: Some(1),
        },
        Request::Abort {
            number: 4,
            of: None,
        },
        Request::Leave { number: 5 },
        Request::Damaged { number: 6 },
    ];
    assert_eq!(requests, expected);
    // All but the prompt are done; that one leaves the queue with its run.
    assert!(worker.log_mut().flush().await);
    let left = paused.journal.commands(&session, 0).await.unwrap();
    assert_eq!(left.iter().map(|it| it.number).collect::<Vec<_>>(), [1]);
    worker.log_mut().done(1);
    assert!(worker.log_mut().flush().await);
    assert_eq!(paused.journal.commands(&session, 0).await.unwrap(), []);
}
