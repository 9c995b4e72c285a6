//! Asks: by the rules first, else by whoever answers first.

use hub::{Error, Hub, Submit};
use model::{Outcome, SessionId};
use runner::{Answer, Mode};

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
