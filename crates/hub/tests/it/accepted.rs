//! A prompt is visible once it is accepted, whatever its agent does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use hub::{Error, Hub, Submit, Target};
use journal::{Order, Owner, State, Takeover};
use model::{Body, Cause, Event, Item, Outcome, Role, SessionId};

use crate::bench::{Bench, LEASE};

/// An agent that says nothing until the file `go` is there, and then speaks Claude's stream-json.
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

fn slow() -> Bench {
    let bench = Bench::new();
    let agent = bench.dir.path().join("agent");
    fs::write(&agent, SLOW).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    bench
}

/// What a session tells, in one word each, and what users said.
async fn told(bench: &Bench, session: &SessionId<'_>) -> Vec<String> {
    let lines = bench.lines(session).await;
    let events = lines.iter().map(|it| Event::from_json(it).unwrap());
    let mut told = Vec::new();
    for event in events {
        match &event.body {
            Body::RunStarted(it) if it.cause == Cause::Prompt => told.push("started".to_owned()),
            Body::RunEnded(it) => told.push(format!("{:?}", it.outcome)),
            Body::ItemClosed(it) => match &it.item {
                Item::Message(it) if it.role == Role::User => {
                    told.push(format!("user: {}", it.text))
                }
                Item::Message(it) => told.push(format!("agent: {}", it.text)),
                _ => (),
            },
            _ => (),
        }
    }
    told
}

async fn submitted(bench: &Bench, hub: &Hub, prompt: &str) -> SessionId<'static> {
    let submit = bench.submit("claude", prompt);
    hub.submit(submit).await.unwrap().session
}

#[tokio::test]
async fn a_prompt_is_in_the_log_before_its_agent_says_a_word() {
    let bench = slow();
    let hub = bench.hub().await;
    let session = submitted(&bench, &hub, "hello").await;
    let found = hub.overview(session.as_str(), 10).await.unwrap();
    assert_eq!(found.session.state, State::Starting);
    assert_eq!((found.queue, found.runs.len()), (Vec::new(), 1));
    assert_eq!(told(&bench, &session).await, ["started", "user: hello"]);
    fs::write(bench.dir.path().join("go"), "").unwrap();
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let whole = ["started", "user: hello", "agent: done", "Completed"];
    assert_eq!(told(&bench, &session).await, whole);
    // The same for an agent that is there already.
    fs::remove_file(bench.dir.path().join("go")).unwrap();
    hub.submit(bench.submit_to(&session, "hello"))
        .await
        .unwrap();
    let found = hub.find(session.as_str()).await.unwrap();
    assert_eq!(found.state, State::Starting);
    assert_eq!(
        told(&bench, &session).await[4..],
        ["started", "user: hello"]
    );
    fs::write(bench.dir.path().join("go"), "").unwrap();
    bench.outcomes(&session, 2).await;
    assert_eq!(told(&bench, &session).await[4..], whole);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_run_that_starts_can_be_aborted() {
    let bench = slow();
    let hub = bench.hub().await;
    let session = submitted(&bench, &hub, "hello").await;
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Aborted]);
    let whole = ["started", "user: hello", "Aborted"];
    assert_eq!(told(&bench, &session).await, whole);
    assert_eq!(hub.find(session.as_str()).await.unwrap().state, State::Idle);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn an_agent_that_cannot_start_ends_its_run_once() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let submit = bench.submit("acp:/nowhere/agent", "hello");
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Failed]);
    let whole = ["started", "user: hello", "Failed"];
    assert_eq!(told(&bench, &session).await, whole);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_crash_while_the_agent_starts_loses_the_run() {
    let bench = slow();
    let hub = bench.hub().await;
    let session = submitted(&bench, &hub, "hello").await;
    drop(hub);
    bench.clock.pass(LEASE);
    let hub = bench.hub().await;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Lost]);
    let whole = ["started", "user: hello", "Lost"];
    assert_eq!(told(&bench, &session).await, whole);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_prompt_that_waits_for_another_program_is_queued() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = submitted(&bench, &hub, "one").await;
    bench.outcomes(&session, 1).await;
    hub.stop().await;
    let owner = Owner::new("another program");
    let lease = bench
        .journal
        .acquire(&session, &owner, LEASE, Takeover::Lapsed)
        .await
        .unwrap();
    let hub = bench.hub().await;
    hub.submit(bench.submit_to(&session, "two")).await.unwrap();
    let found = hub.overview(session.as_str(), 10).await.unwrap();
    let queue: Vec<_> = found.queue.iter().map(|it| &*it.prompt).collect();
    assert_eq!((found.session.state, queue), (State::Queued, vec!["two"]));
    bench.journal.release(&lease).await.unwrap();
    assert_eq!(bench.outcomes(&session, 2).await.len(), 2);
    bench.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_session_is_never_idle_while_prompts_are_on_their_way() {
    let bench = Arc::new(Bench::new());
    let hub = bench.hub().await;
    let submit = bench.submit("replay:tools", "0");
    let session = hub.submit(submit).await.unwrap().session;
    for n in 1..20 {
        let submit = bench.submit_to(&session, &n.to_string());
        hub.submit(submit).await.unwrap();
    }
    let mut watch = bench
        .journal
        .watch(journal::Scope::Session(session.clone()));
    let all_done = async {
        while watch.changed().await {
            let found = bench
                .journal
                .overview(&session, 100)
                .await
                .unwrap()
                .unwrap();
            let n_ended = found.runs.iter().filter(|it| it.end.is_some()).count();
            let has_prompts = found
                .commands
                .iter()
                .any(|it| matches!(it.order, Order::Prompt(_)));
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
    let bench = Bench::new();
    let hub = bench.hub().await;
    for submit in [
        bench.submit("nobody", "hello"),
        bench.submit("claude", " "),
        Submit {
            target: Target::Fork("nobody's".to_owned()),
            cwd: Some("/nowhere".into()),
            ..bench.submit("claude", "hello")
        },
    ] {
        let refused: Result<_, Error> = hub.submit(submit).await;
        assert!(refused.is_err());
    }
    let listing = bench
        .journal
        .list(journal::SessionQuery::default(), None, 10);
    assert_eq!(listing.await.unwrap().sessions, []);
    hub.stop().await;
}
