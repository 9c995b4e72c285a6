//! Forks, and programs that resume a session elsewhere, do not wait for an idle agent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::{Hub, HubConfig, Limits, QueueLife, Submit, Target};
use journal::{Journal, Memory};
use model::{Outcome, SessionId};
use runner::locks::Locks;
use tokio::task::LocalSet;

use crate::harness::{Harness, outcomes};

/// Speaks Claude's stream-json. Its session is its own, the one it resumes, or a copy of it.
const AGENT: &str = r#"#!/bin/sh
id=native-$$
fork=no
while [ $# -gt 0 ]; do
  case $1 in
  --resume) old=$2 ;;
  --fork-session) fork=yes ;;
  esac
  shift
done
[ $fork = no ] && id=${old:-$id}
n=0
while read -r line; do
  case $line in *'"type":"user"'*)
    n=$((n + 1))
    echo '{"type":"system","subtype":"init","session_id":"'$id'","cwd":"/","model":"m","tools":[]}'
    echo '{"type":"assistant","session_id":"'$id'","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"text","text":"done"}]}}'
    echo '{"type":"result","subtype":"success","is_error":false,"session_id":"'$id'","result":"done"}'
    ;;
  esac
done
"#;

/// Far below the five minutes that an agent is kept, and more than a busy machine needs.
const DEADLINE: Duration = Duration::from_secs(10);
const N_SOURCES: usize = 10;
const N_ROUNDS: usize = 10;

fn config(harness: &Harness, journal: &Arc<dyn Journal>) -> HubConfig {
    HubConfig {
        journal: Arc::clone(journal),
        locks: Some(Locks::new(harness.dir.path().join("locks"))),
        owner: hub::own_name(),
        queue: QueueLife::Durable,
        limits: Limits {
            max_warm: N_SOURCES,
            ..Limits::default()
        },
        ..harness.config()
    }
}

fn harness() -> Harness {
    let harness = Harness::new();
    let agent = harness.dir.path().join("agent");
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    harness
}

/// Submits a prompt, and waits for its end.
async fn done(hub: &Hub, submit: Submit, n_runs: usize) -> SessionId<'static> {
    let began = Instant::now();
    let session = hub.submit(submit).await.unwrap().session;
    let ended = outcomes(&**hub.journal(), &session, n_runs).await;
    assert_eq!(ended, vec![Outcome::Completed; n_runs]);
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    session
}

#[tokio::test]
async fn forks_and_other_programs_do_not_wait_for_an_agent_that_idles() {
    let harness = Arc::new(harness());
    let other: Arc<dyn Journal> = Arc::new(Memory::new(journal::Config {
        clock: Arc::clone(&harness.clock) as Arc<dyn journal::Clock>,
        cut: None,
    }));
    let here = Arc::new(Hub::open(config(&harness, &harness.journal)).await.unwrap());
    let there = Arc::new(Hub::open(config(&harness, &other)).await.unwrap());
    let all = LocalSet::new();
    let mut tasks = Vec::new();
    for _ in 0..N_SOURCES {
        let (harness, here, there) = (Arc::clone(&harness), Arc::clone(&here), Arc::clone(&there));
        tasks.push(all.spawn_local(async move {
            let source = done(&here, harness.submit("claude", "begin"), 1).await;
            let native = here.find(source.as_str()).await.unwrap().native.unwrap();
            for round in 1..=N_ROUNDS {
                let fork = Submit {
                    target: Target::Fork(source.to_string()),
                    ..harness.submit("claude", "fork")
                };
                let resume = Submit {
                    target: Target::Native(native.to_string()),
                    ..harness.submit("claude", "resume")
                };
                let (fork, _) = tokio::join!(done(&here, fork, 1), done(&there, resume, round));
                let forked = here.find(fork.as_str()).await.unwrap();
                assert_ne!(forked.native.as_ref(), Some(&native));
                assert_eq!(forked.parent.unwrap().session, source);
            }
            // Its own agent is out of date by now, and another one continues.
            done(&here, harness.submit_to(&source, "continue"), 2).await;
            harness.check(&source).await;
        }));
    }
    all.await;
    for task in tasks {
        task.await.unwrap();
    }
    here.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_recording_is_neither_forked_nor_resumed() {
    let harness = harness();
    let hub = Hub::open(config(&harness, &harness.journal)).await.unwrap();
    let played = done(&hub, harness.submit("replay:tools", "play"), 1).await;
    let native = hub.find(played.as_str()).await.unwrap().native.unwrap();
    let targets = [
        ("replay:tools", Target::Fork(played.to_string())),
        ("replay:tools", Target::Fork(native.to_string())),
        ("replay:tools", Target::Fork("nobody".to_owned())),
        ("replay:tools", Target::Native("nobody".to_owned())),
        ("replay:approval", Target::Fork(played.to_string())),
        ("claude", Target::Fork(played.to_string())),
    ];
    let mut refused = Vec::new();
    for (engine, target) in targets {
        let submit = Submit {
            target,
            ..harness.submit(engine, "again")
        };
        let refusal = hub.submit(submit).await.unwrap_err().to_string();
        refused.push(refusal.replace(played.as_str(), "ID"));
    }
    assert_eq!(
        refused,
        [
            "engine `replay` cannot fork a session",
            "engine `replay` cannot fork a session",
            "engine `replay` cannot fork a session",
            "engine `replay` cannot resume a session",
            "session `ID` is one of `replay:tools`, not of `replay:approval`",
            "session `ID` is one of `replay:tools`, not of `claude`",
        ]
    );
    // The session itself takes another prompt, by either of its names.
    let resume = Submit {
        target: Target::Native(native.to_string()),
        ..harness.submit("replay:tools", "again")
    };
    assert_eq!(done(&hub, resume, 2).await, played);
    hub.stop().await;
}
