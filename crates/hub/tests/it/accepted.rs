//! A prompt is visible once it is accepted, whatever its agent does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use hub::{Error, Hub, Submit, Target};
use journal::{CommandBody, Owner, State, Takeover};
use model::{Body, Cause, Event, Item, Outcome, Role, SessionId};
use runner::RunOptions;

use crate::harness::{Harness, LEASE};

/// An agent that prints nothing until the file `go` exists, and then speaks Claude's stream-json.
const SLOW: &str = r#"#!/bin/sh
while read -r line; do
  case $line in *'"type":"user"'*)
    while [ ! -e "$(dirname "$0")/go" ]; do sleep 0.02; done
    echo '{"type":"system","subtype":"init","session_id":"native-1","cwd":"/","model":"m","tools":[]}'
    echo '{"type":"user","session_id":"native-1","isReplay":true,"message":{"role":"user","content":"hello"}}'
    echo '{"type":"assistant","session_id":"native-1","message":{"id":"m'$$'","role":"assistant","content":[{"type":"text","text":"done"}]}}'
    echo '{"type":"result","subtype":"success","is_error":false,"session_id":"native-1","result":"done"}'
    ;;
  esac
done
"#;

fn slow() -> Harness {
    let harness = Harness::new();
    let agent = harness.dir.path().join("agent");
    fs::write(&agent, SLOW).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    harness
}

/// The events of a session in one word each, with the texts of messages.
async fn event_names(harness: &Harness, session: &SessionId<'_>) -> Vec<String> {
    let lines = harness.lines(session).await;
    let events = lines.iter().map(|it| Event::from_json(it).unwrap());
    let mut names = Vec::new();
    for event in events {
        match &event.body {
            Body::RunStarted(it) if it.cause == Cause::Prompt => names.push("started".to_owned()),
            Body::RunEnded(it) => names.push(format!("{:?}", it.outcome)),
            Body::ItemClosed(it) => match &it.item {
                Item::Message(it) if it.role == Role::User => {
                    names.push(format!("user: {}", it.text))
                }
                Item::Message(it) => names.push(format!("agent: {}", it.text)),
                _ => (),
            },
            _ => (),
        }
    }
    names
}

async fn submitted(harness: &Harness, hub: &Hub, prompt: &str) -> SessionId<'static> {
    let submit = harness.submit("claude", prompt);
    hub.submit(submit).await.unwrap().session
}

#[tokio::test]
async fn a_prompt_is_journaled_before_its_agent_prints_anything() {
    let harness = slow();
    let hub = harness.hub().await;
    let session = submitted(&harness, &hub, "hello").await;
    let found = hub.overview(session.as_str(), 10).await.unwrap();
    assert_eq!(found.session.state, State::Starting);
    assert_eq!((found.queue, found.runs.len()), (Vec::new(), 1));
    assert_eq!(
        event_names(&harness, &session).await,
        ["started", "user: hello"]
    );
    fs::write(harness.dir.path().join("go"), "").unwrap();
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let whole = ["started", "user: hello", "agent: done", "Completed"];
    assert_eq!(event_names(&harness, &session).await, whole);
    // The same for an agent that is there already.
    fs::remove_file(harness.dir.path().join("go")).unwrap();
    hub.submit(harness.submit_to(&session, "hello"))
        .await
        .unwrap();
    let found = hub.find(session.as_str()).await.unwrap();
    assert_eq!(found.state, State::Starting);
    assert_eq!(
        event_names(&harness, &session).await[4..],
        ["started", "user: hello"]
    );
    fs::write(harness.dir.path().join("go"), "").unwrap();
    harness.outcomes(&session, 2).await;
    assert_eq!(event_names(&harness, &session).await[4..], whole);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_run_that_starts_can_be_aborted() {
    let harness = slow();
    let hub = harness.hub().await;
    let session = submitted(&harness, &hub, "hello").await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    let whole = ["started", "user: hello", "Aborted"];
    assert_eq!(event_names(&harness, &session).await, whole);
    assert_eq!(hub.find(session.as_str()).await.unwrap().state, State::Idle);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_that_cannot_start_ends_its_run_once() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = harness.submit(&harness.broken_agent(), "hello");
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Failed]);
    let whole = ["started", "user: hello", "Failed"];
    assert_eq!(event_names(&harness, &session).await, whole);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_crash_while_the_agent_starts_loses_the_run() {
    let harness = slow();
    let hub = harness.hub().await;
    let session = submitted(&harness, &hub, "hello").await;
    drop(hub);
    harness.clock.pass(LEASE);
    let hub = harness.hub().await;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Lost]);
    let whole = ["started", "user: hello", "Lost"];
    assert_eq!(event_names(&harness, &session).await, whole);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_prompt_that_waits_for_another_program_is_queued() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = submitted(&harness, &hub, "one").await;
    harness.outcomes(&session, 1).await;
    hub.stop().await;
    let owner = Owner::new("another program");
    let lease = harness
        .journal
        .acquire(&session, &owner, LEASE, Takeover::Lapsed)
        .await
        .unwrap();
    let hub = harness.hub().await;
    hub.submit(harness.submit_to(&session, "two"))
        .await
        .unwrap();
    let found = hub.overview(session.as_str(), 10).await.unwrap();
    let queue: Vec<_> = found.queue.iter().map(|it| &*it.prompt).collect();
    assert_eq!((found.session.state, queue), (State::Queued, vec!["two"]));
    harness.journal.release(&lease).await.unwrap();
    assert_eq!(harness.outcomes(&session, 2).await.len(), 2);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_session_is_never_idle_while_prompts_are_on_their_way() {
    let harness = Arc::new(Harness::new());
    let hub = harness.hub().await;
    let submit = harness.submit("replay:tools", "0");
    let session = hub.submit(submit).await.unwrap().session;
    for n in 1..20 {
        let submit = harness.submit_to(&session, &n.to_string());
        hub.submit(submit).await.unwrap();
    }
    let mut watch = harness
        .journal
        .watch(journal::Scope::Session(session.clone()));
    let all_done = async {
        while watch.changed().await {
            let found = harness
                .journal
                .overview(&session, 100)
                .await
                .unwrap()
                .unwrap();
            let n_ended = found.runs.iter().filter(|it| it.end.is_some()).count();
            let has_prompts = found
                .commands
                .iter()
                .any(|it| matches!(it.order, CommandBody::Prompt(_)));
            let is_idle = found.session.state == State::Idle;
            assert_eq!(is_idle, n_ended == 20 && !has_prompts, "{found:?}");
            if is_idle {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_done)
        .await
        .unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn a_refused_prompt_leaves_nothing_behind() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    for submit in [
        harness.submit("nobody", "hello"),
        harness.submit("claude", " "),
        Submit {
            target: Target::Fork("nobody's".to_owned()),
            cwd: Some("/nowhere".into()),
            ..harness.submit("claude", "hello")
        },
        harness.submit("acp:/nowhere/agent", "hello"),
        harness.submit("replay:nosuch.jsonl", "hello"),
        Submit {
            options: RunOptions {
                verbosity: Some("low".to_owned()),
                ..RunOptions::default()
            },
            ..harness.submit("claude", "hello")
        },
    ] {
        let refused: Result<_, Error> = hub.submit(submit).await;
        assert!(refused.is_err());
    }
    let listing = harness
        .journal
        .list(journal::SessionQuery::default(), None, 10);
    assert_eq!(listing.await.unwrap().sessions, []);
    hub.stop().await;
}

#[tokio::test]
async fn an_option_that_the_engine_lacks_is_refused_before_anything_is_stored() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = Submit {
        options: runner::RunOptions {
            effort: Some("high".to_owned()),
            ..runner::RunOptions::default()
        },
        ..harness.submit("gemini", "hello")
    };
    let refused = hub.submit(submit).await;
    assert!(matches!(refused, Err(hub::Error::Engine(_))), "{refused:?}");
    let listing = harness.journal.list(Default::default(), None, 10).await;
    assert_eq!(listing.unwrap().sessions, []);
    hub.stop().await;
}
