//! Prompts wait in line, one run at a time.

use hub::Submit;
use model::Outcome;
use runner::Mode;

use crate::bench::Bench;

#[tokio::test]
async fn prompts_of_a_session_run_one_after_the_other() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let first = hub
        .submit(bench.submit("replay:tools", "one"))
        .await
        .unwrap();
    let session = first.session;
    for prompt in ["two", "three"] {
        let submitted = hub.submit(bench.submit_to(&session, prompt)).await.unwrap();
        assert_eq!(submitted.session, session);
    }
    let outcomes = bench.outcomes(&session, 3).await;
    assert_eq!(outcomes, [Outcome::Completed; 3]);
    let runs = bench.runs(&session).await;
    let names: Vec<_> = runs.iter().map(|it| it.run.as_str()).collect();
    assert_eq!(names, ["r1", "r2", "r3"]);
    let read = journal::Read {
        after: 0,
        deltas: journal::Deltas::Keep,
        max_events: 1,
        max_bytes: 1,
    };
    let frames = bench.journal.frames(&session, read).await.unwrap();
    let recording = &runner::engines::REPLAYS[0];
    let mut lines = recording.bytes.split(|it| *it == b'\n');
    assert_eq!(frames[0].bytes, lines.next().unwrap());
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn what_happens_inside_a_sub_agent_is_told_of_that_of_its_own_run() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = bench.submit("replay:subagents", "one");
    let session = hub.submit(submit).await.unwrap().session;
    hub.submit(bench.submit_to(&session, "two")).await.unwrap();
    bench.outcomes(&session, 2).await;
    let lines = bench.lines(&session).await;
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
async fn prompts_that_wait_are_seen_and_can_be_taken_back() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let first = hub.submit(bench.submit("claude", "wait")).await.unwrap();
    let session = first.session;
    bench.running(&session).await;
    let second = hub
        .submit(bench.submit_to(&session, "second"))
        .await
        .unwrap();
    let third = hub
        .submit(bench.submit_to(&session, "third"))
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
    let outcomes = bench.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Aborted, Outcome::Completed]);
    assert!(!hub.abort(&session).await.unwrap());
    let lines = bench.lines(&session).await.join("\n");
    assert!(lines.contains("third") && !lines.contains("second"));
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_recording_is_stopped_like_an_agent() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = Submit {
        speed: Some(0.01),
        ..bench.submit("replay:tools", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    bench.running(&session).await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Aborted]);
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_stays_for_the_next_prompt_with_the_same_settings() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = hub
        .submit(bench.submit("claude", "one"))
        .await
        .unwrap()
        .session;
    bench.outcomes(&session, 1).await;
    let again = |model: Option<&str>| Submit {
        model: model.map(str::to_owned),
        ..bench.submit_to(&session, "again")
    };
    hub.submit(again(None)).await.unwrap();
    bench.outcomes(&session, 2).await;
    assert_eq!(bench.n_starts(), 1);
    hub.submit(again(Some("other"))).await.unwrap();
    let outcomes = bench.outcomes(&session, 3).await;
    assert_eq!(
        (outcomes, bench.n_starts()),
        (vec![Outcome::Completed; 3], 2)
    );
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_a_run_that_failed() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = Submit {
        permissions: Some(Mode::Deny),
        ..bench.submit("acp:/nowhere/agent", "hello")
    };
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Failed]);
    assert!(
        bench
            .journal
            .commands(&session, 0)
            .await
            .unwrap()
            .is_empty()
    );
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_run_and_keeps_the_queue() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = hub
        .submit(bench.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    bench.running(&session).await;
    hub.submit(bench.submit_to(&session, "later"))
        .await
        .unwrap();
    hub.stop().await;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Aborted]);
    let hub = bench.hub().await;
    let outcomes = bench.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Aborted, Outcome::Completed]);
    bench.check(&session).await;
    hub.stop().await;
}
