//! Prompts wait in line, one run at a time.

use hub::Submit;
use model::Outcome;
use runner::{Mode, RunOptions};

use crate::harness::Harness;

#[tokio::test]
async fn prompts_of_a_session_run_one_after_the_other() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let first = hub
        .submit(harness.submit("replay:tools", "one"))
        .await
        .unwrap();
    let session = first.session;
    for prompt in ["two", "three"] {
        let submitted = hub
            .submit(harness.submit_to(&session, prompt))
            .await
            .unwrap();
        assert_eq!(submitted.session, session);
    }
    let outcomes = harness.outcomes(&session, 3).await;
    assert_eq!(outcomes, [Outcome::Completed; 3]);
    let runs = harness.runs(&session).await;
    let names: Vec<_> = runs.iter().map(|it| it.run.as_str()).collect();
    assert_eq!(names, ["r1", "r2", "r3"]);
    let read = journal::Read {
        after: 0,
        deltas: journal::Deltas::Keep,
        max_events: 1,
        max_bytes: 1,
    };
    let frames = harness.journal.frames(&session, read).await.unwrap();
    let recording = &runner::engines::REPLAYS[0];
    let mut lines = recording.bytes.split(|it| *it == b'\n');
    assert_eq!(frames[0].bytes, lines.next().unwrap());
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn sub_agent_events_carry_the_path_of_their_own_run() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = harness.submit("replay:subagents", "one");
    let session = hub.submit(submit).await.unwrap().session;
    hub.submit(harness.submit_to(&session, "two"))
        .await
        .unwrap();
    harness.outcomes(&session, 2).await;
    let lines = harness.lines(&session).await;
    let events = lines.iter().map(|it| model::Event::from_json(it).unwrap());
    let mut opened = Vec::new();
    let mut n_inside = 0;
    for event in events {
        match &event.body {
            model::Body::RunStarted(_) => opened.clear(),
            model::Body::ItemOpened(item) => opened.push(item.id().clone().into_owned()),
            _ => (),
        }
        n_inside += event.path.len();
        assert!(event.path.iter().all(|it| opened.contains(it)), "{event:?}");
    }
    assert!(n_inside > 0);
    hub.stop().await;
}

#[tokio::test]
async fn queued_prompts_are_listed_and_can_be_removed() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let first = hub.submit(harness.submit("claude", "wait")).await.unwrap();
    let session = first.session;
    harness.running(&session).await;
    let second = hub
        .submit(harness.submit_to(&session, "second"))
        .await
        .unwrap();
    let third = hub
        .submit(harness.submit_to(&session, "third"))
        .await
        .unwrap();
    let positions = [first.position, second.position, third.position];
    assert_eq!(positions, [0, 1, 2]);
    let queue = hub.queue(&session).await.unwrap();
    let queue: Vec<_> = queue.iter().map(|it| (it.number, &*it.prompt)).collect();
    assert_eq!(queue, [(second.number, "second"), (third.number, "third")]);
    assert!(hub.remove_queued(&session, second.number).await.unwrap());
    assert!(!hub.remove_queued(&session, second.number).await.unwrap());
    assert!(hub.abort(&session).await.unwrap());
    let outcomes = harness.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Aborted, Outcome::Completed]);
    assert!(!hub.abort(&session).await.unwrap());
    let lines = harness.lines(&session).await.join("\n");
    assert!(lines.contains("third") && !lines.contains("second"));
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_recording_is_stopped_like_an_agent() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: RunOptions {
            speed: Some(0.01),
            ..RunOptions::default()
        },
        ..harness.submit("replay:tools", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    harness.running(&session).await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_stays_for_the_next_prompt_with_the_same_settings() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = hub
        .submit(harness.submit("claude", "one"))
        .await
        .unwrap()
        .session;
    harness.outcomes(&session, 1).await;
    let again = |model: Option<&str>| Submit {
        options: RunOptions {
            model: model.map(str::to_owned),
            ..RunOptions::default()
        },
        ..harness.submit_to(&session, "again")
    };
    hub.submit(again(None)).await.unwrap();
    harness.outcomes(&session, 2).await;
    assert_eq!(harness.n_starts(), 1);
    hub.submit(again(Some("other"))).await.unwrap();
    let outcomes = harness.outcomes(&session, 3).await;
    assert_eq!(
        (outcomes, harness.n_starts()),
        (vec![Outcome::Completed; 3], 2)
    );
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_that_cannot_start_fails_its_run() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: RunOptions {
            permissions: Some(Mode::Deny),
            ..RunOptions::default()
        },
        ..harness.submit(&harness.broken_agent(), "hello")
    };
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Failed]);
    assert!(
        harness
            .journal
            .commands(&session, 0)
            .await
            .unwrap()
            .is_empty()
    );
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_run_and_keeps_the_queue() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = hub
        .submit(harness.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    harness.running(&session).await;
    hub.submit(harness.submit_to(&session, "later"))
        .await
        .unwrap();
    hub.stop().await;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    let hub = harness.hub().await;
    let outcomes = harness.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Aborted, Outcome::Completed]);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_prompt_is_cancelled_in_the_queue_and_at_work() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let first = hub.submit(harness.submit("claude", "wait")).await.unwrap();
    let session = first.session;
    harness.running(&session).await;
    let second = hub.submit(harness.submit_to(&session, "second")).await;
    let second = second.unwrap();
    assert!(hub.cancel_queued(&session, second.number).await.unwrap());
    assert_eq!(hub.queue(&session).await.unwrap(), []);
    // A number that is done with stops no other run.
    assert!(!hub.cancel_queued(&session, second.number).await.unwrap());
    assert!(hub.cancel_queued(&session, first.number).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    let head = harness.lines(&session).await.len() as u64;
    let history = hub.history(&session, head).await.unwrap();
    let texts: Vec<String> = history.messages.iter().map(|it| it.text()).collect();
    assert_eq!(texts, ["wait"]);
    hub.stop().await;
}

#[tokio::test]
async fn a_prompt_without_an_engine_goes_to_the_default() {
    let harness = Harness::new();
    let file = (
        std::path::Path::new("test.toml"),
        "default_engine = \"replay:tools\"\n",
    );
    let config = hub::HubConfig {
        settings: runner::config::Config::parse(Some(file), |_| None).unwrap(),
        ..harness.config()
    };
    let hub = hub::Hub::open(config).await.unwrap();
    assert_eq!(hub.default_engine().unwrap(), "replay:tools");
    let submit = Submit {
        engine: None,
        ..harness.submit("", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(
        hub.find(session.as_str()).await.unwrap().engine,
        "replay:tools"
    );
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    hub.stop().await;
}

#[test]
fn a_title_is_the_first_line_of_a_prompt() {
    assert_eq!(hub::title("\n  fix the tests \nplease"), "fix the tests");
    assert_eq!(hub::title(&"é".repeat(100)), "é".repeat(80));
    assert_eq!(hub::title(" \n"), "");
}
