//! Asks: by the rules first, else by whoever answers first.

use std::time::Duration;

use hub::{Error, Hub, Submit};
use model::{Outcome, SessionId, Timestamp};
use runner::{Answer, AskDefault, Mode};
use serde_json::{Value, json};

use crate::bench::Bench;

async fn asked(bench: &Bench, session: &SessionId<'static>) -> u64 {
    bench
        .until(session, async |journal| {
            let asks = journal.asks().await.unwrap();
            asks.first().map(|it| it.seq)
        })
        .await
}

async fn submit(bench: &Bench, hub: &Hub, mode: Mode) -> SessionId<'static> {
    let submit = Submit {
        permissions: Some(mode),
        ..bench.submit("claude", "ask")
    };
    hub.submit(submit).await.unwrap().session
}

#[tokio::test]
async fn of_two_answers_one_is_taken() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = submit(&bench, &hub, Mode::Ask).await;
    let seq = asked(&bench, &session).await;
    let answer = Answer::Allow { input: None };
    hub.settle(&session, seq, answer.clone()).await.unwrap();
    let second = hub.settle(&session, seq, answer).await;
    assert!(matches!(
        second,
        Err(Error::Journal(journal::Error::Answered { .. }))
    ));
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let lines = bench.lines(&session).await;
    let settled = lines
        .iter()
        .filter(|it| it.contains(r#""type":"ask.settled""#));
    assert_eq!(settled.count(), 1);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn the_rules_answer_before_anybody_is_asked() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = submit(&bench, &hub, Mode::Deny).await;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let lines = bench.lines(&session).await.join("\n");
    assert!(lines.contains(r#""decision":"denied""#), "{lines}");
    hub.stop().await;
}

/// The first ask of a session, as its event tells it.
async fn opened(bench: &Bench, session: &SessionId<'static>) -> Value {
    let lines = bench.lines(session).await.into_iter();
    let mut asks = lines.filter(|it| it.contains(r#""type":"ask.opened""#));
    serde_json::from_str(&asks.next().unwrap()).unwrap()
}

/// The settlements of a session, as lines.
async fn settled(bench: &Bench, session: &SessionId<'static>) -> Vec<String> {
    let lines = bench.lines(session).await.into_iter();
    lines
        .filter(|it| it.contains(r#""type":"ask.settled""#))
        .collect()
}

#[tokio::test]
async fn an_ask_that_nobody_answers_is_settled_by_the_default_once() {
    for (default, word) in [
        (None, "denied"),
        (Some(AskDefault::Deny), "denied"),
        (Some(AskDefault::Allow), "allowed"),
    ] {
        let bench = Bench::new();
        let hub = bench.hub().await;
        let submit = Submit {
            permissions: Some(Mode::Ask),
            ask_timeout: Some(Duration::from_millis(50)),
            ask_default: default,
            ..bench.submit("claude", "ask")
        };
        let session = hub.submit(submit).await.unwrap().session;
        assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
        let opened = opened(&bench, &session).await;
        let at = |it: &Value| Timestamp::parse(it.as_str().unwrap()).unwrap();
        let deadline = json!({
            "at": at(&opened["at"]).plus_millis(50).to_string(), "decision": word,
        });
        assert_eq!(opened["data"]["deadline"], deadline);
        let settled = settled(&bench, &session).await;
        assert_eq!(settled.len(), 1);
        let decision = format!(r#""decision":"{word}""#);
        assert!(settled[0].contains(&decision), "{}", settled[0]);
        assert!(settled[0].contains(r#""why":"deadline""#), "{}", settled[0]);
        bench.check(&session).await;
        hub.stop().await;
    }
}

#[tokio::test]
async fn the_deadline_of_the_config_holds_for_its_engine_and_after_a_restart() {
    let bench = Bench::new();
    let hub = Hub::open(bench.config_with("ask_timeout = 0.05\n"))
        .await
        .unwrap();
    let session = submit(&bench, &hub, Mode::Ask).await;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    hub.stop().await;
    let n_settled = settled(&bench, &session).await.len();
    let hub = Hub::open(bench.config_with("ask_timeout = 0.05\n"))
        .await
        .unwrap();
    assert_eq!(settled(&bench, &session).await.len(), n_settled);
    hub.submit(bench.submit_to(&session, "ask")).await.unwrap();
    bench.outcomes(&session, 2).await;
    let settled = settled(&bench, &session).await;
    assert_eq!((n_settled, settled.len()), (1, 2));
    assert!(settled.iter().all(|it| it.contains(r#""why":"deadline""#)));
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn whoever_answers_before_the_deadline_is_heard() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = Submit {
        permissions: Some(Mode::Ask),
        ask_timeout: Some(Duration::from_secs(3600)),
        ..bench.submit("claude", "ask")
    };
    let session = hub.submit(submit).await.unwrap().session;
    let seq = asked(&bench, &session).await;
    let answer = Answer::Allow { input: None };
    hub.settle(&session, seq, answer).await.unwrap();
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let settled = settled(&bench, &session).await;
    assert_eq!(settled.len(), 1);
    assert!(!settled[0].contains("deadline"), "{}", settled[0]);
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_that_waits_for_ever_tells_no_deadline() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = submit(&bench, &hub, Mode::Ask).await;
    asked(&bench, &session).await;
    assert_eq!(
        opened(&bench, &session).await["data"]["deadline"],
        Value::Null
    );
    hub.stop().await;
}

#[tokio::test]
async fn what_a_recording_asks_is_answered_by_the_recording() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = Submit {
        ask_timeout: Some(Duration::from_nanos(1)),
        // Slow enough that a deadline would come first.
        speed: Some(5.0),
        ..bench.submit("replay:approval", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let opened = opened(&bench, &session).await;
    assert_eq!(opened["data"]["deadline"], Value::Null);
    let settled = settled(&bench, &session).await.join("\n");
    assert!(
        !settled.is_empty() && !settled.contains("deadline"),
        "{settled}"
    );
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_ends_with_its_run() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = submit(&bench, &hub, Mode::Ask).await;
    let seq = asked(&bench, &session).await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Aborted]);
    assert_eq!(bench.journal.asks().await.unwrap(), []);
    let late = hub
        .settle(&session, seq, Answer::Allow { input: None })
        .await;
    assert!(late.is_err());
    bench.check(&session).await;
    hub.stop().await;
}
