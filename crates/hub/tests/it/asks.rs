//! Asks: answered by the policy, else by the first client.

use std::time::Duration;

use hub::{Error, Hub, Submit};
use model::{Outcome, SessionId, Timestamp};
use runner::{Answer, AskDefault, Mode, RunOptions};
use serde_json::{Value, json};

use crate::harness::Harness;

async fn wait_for_ask(harness: &Harness, session: &SessionId<'static>) -> u64 {
    harness
        .until(session, async |journal| {
            let asks = journal.asks(None).await.unwrap();
            asks.first().map(|it| it.seq)
        })
        .await
}

async fn submit(harness: &Harness, hub: &Hub, mode: Mode) -> SessionId<'static> {
    let submit = Submit {
        options: RunOptions {
            permissions: Some(mode),
            ..RunOptions::default()
        },
        ..harness.submit("claude", "ask")
    };
    hub.submit(submit).await.unwrap().session
}

#[tokio::test]
async fn the_first_of_two_answers_wins() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submit(&harness, &hub, Mode::Ask).await;
    let seq = wait_for_ask(&harness, &session).await;
    let answer = Answer::Allow { input: None };
    hub.settle(&session, seq, answer.clone()).await.unwrap();
    let second = hub.settle(&session, seq, answer).await;
    assert!(matches!(
        second,
        Err(Error::Journal(journal::Error::Answered { .. }))
    ));
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let lines = harness.lines(&session).await;
    let settled = lines
        .iter()
        .filter(|it| it.contains(r#""type":"ask.settled""#));
    assert_eq!(settled.count(), 1);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn the_policy_answers_before_a_client_is_asked() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submit(&harness, &hub, Mode::Deny).await;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let lines = harness.lines(&session).await.join("\n");
    assert!(lines.contains(r#""decision":"denied""#), "{lines}");
    hub.stop().await;
}

/// The event of a session's first ask.
async fn opened(harness: &Harness, session: &SessionId<'static>) -> Value {
    let lines = harness.lines(session).await.into_iter();
    let mut asks = lines.filter(|it| it.contains(r#""type":"ask.opened""#));
    serde_json::from_str(&asks.next().unwrap()).unwrap()
}

/// The settlements of a session, as lines.
async fn settled(harness: &Harness, session: &SessionId<'static>) -> Vec<String> {
    let lines = harness.lines(session).await.into_iter();
    lines
        .filter(|it| it.contains(r#""type":"ask.settled""#))
        .collect()
}

#[tokio::test]
async fn an_unanswered_ask_is_settled_by_the_default_once() {
    for (default, word) in [
        (None, "denied"),
        (Some(AskDefault::Deny), "denied"),
        (Some(AskDefault::Allow), "allowed"),
    ] {
        let harness = Harness::new();
        let hub = harness.hub().await;
        let submit = Submit {
            options: RunOptions {
                permissions: Some(Mode::Ask),
                ask_timeout: Some(Duration::from_millis(50)),
                ask_default: default,
                ..RunOptions::default()
            },
            ..harness.submit("claude", "ask")
        };
        let session = hub.submit(submit).await.unwrap().session;
        assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
        let opened = opened(&harness, &session).await;
        let at = |it: &Value| Timestamp::parse(it.as_str().unwrap()).unwrap();
        let deadline = json!({
            "at": at(&opened["at"]).plus_millis(50).to_string(), "decision": word,
        });
        assert_eq!(opened["data"]["deadline"], deadline);
        let settled = settled(&harness, &session).await;
        assert_eq!(settled.len(), 1);
        let decision = format!(r#""decision":"{word}""#);
        assert!(settled[0].contains(&decision), "{}", settled[0]);
        assert!(settled[0].contains(r#""why":"deadline""#), "{}", settled[0]);
        harness.check(&session).await;
        hub.stop().await;
    }
}

#[tokio::test]
async fn the_deadline_of_the_config_holds_for_its_engine_and_after_a_restart() {
    let harness = Harness::new();
    let hub = Hub::open(harness.config_with("ask_timeout = 0.05\n"))
        .await
        .unwrap();
    let session = submit(&harness, &hub, Mode::Ask).await;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    hub.stop().await;
    let n_settled = settled(&harness, &session).await.len();
    let hub = Hub::open(harness.config_with("ask_timeout = 0.05\n"))
        .await
        .unwrap();
    assert_eq!(settled(&harness, &session).await.len(), n_settled);
    hub.submit(harness.submit_to(&session, "ask"))
        .await
        .unwrap();
    harness.outcomes(&session, 2).await;
    let settled = settled(&harness, &session).await;
    assert_eq!((n_settled, settled.len()), (1, 2));
    assert!(settled.iter().all(|it| it.contains(r#""why":"deadline""#)));
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn an_answer_before_the_deadline_counts() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: RunOptions {
            permissions: Some(Mode::Ask),
            ask_timeout: Some(Duration::from_secs(3600)),
            ..RunOptions::default()
        },
        ..harness.submit("claude", "ask")
    };
    let session = hub.submit(submit).await.unwrap().session;
    let seq = wait_for_ask(&harness, &session).await;
    let answer = Answer::Allow { input: None };
    hub.settle(&session, seq, answer).await.unwrap();
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let settled = settled(&harness, &session).await;
    assert_eq!(settled.len(), 1);
    assert!(!settled[0].contains("deadline"), "{}", settled[0]);
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_that_waits_for_ever_tells_no_deadline() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submit(&harness, &hub, Mode::Ask).await;
    wait_for_ask(&harness, &session).await;
    assert_eq!(
        opened(&harness, &session).await["data"]["deadline"],
        Value::Null
    );
    hub.stop().await;
}

#[tokio::test]
async fn what_a_recording_asks_is_answered_by_the_recording() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: RunOptions {
            ask_timeout: Some(Duration::from_nanos(1)),
            speed: Some(5.0),
            ..RunOptions::default()
        },
        // Slow enough that a deadline would come first.
        ..harness.submit("replay:approval", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let opened = opened(&harness, &session).await;
    assert_eq!(opened["data"]["deadline"], Value::Null);
    let settled = settled(&harness, &session).await.join("\n");
    assert!(
        !settled.is_empty() && !settled.contains("deadline"),
        "{settled}"
    );
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_ends_with_its_run() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submit(&harness, &hub, Mode::Ask).await;
    let seq = wait_for_ask(&harness, &session).await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    assert_eq!(harness.journal.asks(None).await.unwrap(), []);
    let late = hub
        .settle(&session, seq, Answer::Allow { input: None })
        .await;
    assert!(late.is_err());
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_waits_until_it_is_answered() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submit(&harness, &hub, Mode::Ask).await;
    let seq = wait_for_ask(&harness, &session).await;
    while !hub.is_waiting(&session, seq).await.unwrap() {
        tokio::task::yield_now().await;
    }
    assert!(!hub.is_waiting(&session, seq + 1).await.unwrap());
    let other = SessionId::new("another");
    assert!(!hub.is_waiting(&other, seq).await.unwrap());
    // Another hub knows only the journal.
    let second = harness.hub().await;
    assert!(second.is_waiting(&session, seq).await.unwrap());
    assert!(hub.takes_changes(&session));
    assert!(!second.takes_changes(&session));
    let bad = Answer::Allow {
        input: Some("no object".to_owned()),
    };
    let refused = hub.settle(&session, seq, bad).await;
    assert!(matches!(refused, Err(Error::Answer(_))), "{refused:?}");
    let changed = Answer::Allow {
        input: Some(json!({"command": "true"}).to_string()),
    };
    hub.settle(&session, seq, changed).await.unwrap();
    assert!(!hub.is_waiting(&session, seq).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    // The worker has marked the answer as done.
    assert_eq!(harness.journal.commands(&session, 0).await.unwrap(), []);
    second.stop().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_ask_of_a_recording_cannot_be_answered() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: RunOptions {
            speed: Some(2.0),
            ..RunOptions::default()
        },
        ..harness.submit("replay:approval", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    let seq = wait_for_ask(&harness, &session).await;
    let answer = Answer::Allow { input: None };
    let settled = hub.settle(&session, seq, answer.clone()).await;
    // Its own answer may have come meanwhile.
    let is_over = harness.journal.asks(None).await.unwrap().is_empty();
    assert!(
        is_over || matches!(settled, Err(Error::Recorded)),
        "{settled:?}"
    );
    assert!(!hub.is_waiting(&session, seq).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    hub.stop().await;
}
