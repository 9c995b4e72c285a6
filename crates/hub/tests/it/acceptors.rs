//! A prompt is worked on by the hub that accepted it, and by another one only when that hub is gone.

use std::fs;

use hub::{Hub, HubConfig, QueueLife, Submit, Target};
use journal::{Lease, NewSession, Owner, Takeover};
use model::{Outcome, SessionId};

use crate::harness::{Harness, LEASE};

/// Enough for a race to be lost once.
const N_SESSIONS: usize = 8;

/// Another hub on the journal of the harness, with an agent program of its own.
fn other_config(harness: &Harness) -> HubConfig {
    let other = harness.dir.path().join("other-agent");
    fs::copy(harness.dir.path().join("agent"), &other).unwrap();
    let text = format!(
        "[engines.claude]\nprogram = {:?}\n",
        other.to_str().unwrap()
    );
    let file = Some((std::path::Path::new("other.toml"), &*text));
    HubConfig {
        settings: runner::config::Config::parse(file, |_| None).unwrap(),
        ..harness.config()
    }
}

/// How often the agent of each hub was started.
fn n_starts(harness: &Harness) -> [usize; 2] {
    let other = fs::read_to_string(harness.dir.path().join("other-agent.starts"));
    let n_other = other.unwrap_or_default().lines().count();
    [harness.n_starts(), n_other]
}

/// Sessions that another program holds, each with a prompt that `hub` has accepted.
async fn held_sessions(harness: &Harness, hub: &Hub) -> Vec<Lease> {
    let mut leases = Vec::new();
    for n in 0..N_SESSIONS {
        let id = SessionId::new(format!("held-{n}"));
        let new = NewSession {
            home: journal::Node::default(),
            id: id.clone(),
            engine: "claude".to_owned(),
            cwd: Some(harness.dir.path().to_str().unwrap().to_owned()),
            title: None,
            parent: None,
        };
        harness.journal.create(new).await.unwrap();
        let owner = Owner::new("another program");
        let lease = harness
            .journal
            .acquire(&id, &owner, LEASE, Takeover::Lapsed)
            .await;
        leases.push(lease.unwrap());
    }
    for lease in &leases {
        let session = &lease.session;
        let is_queued = harness.until(session, async |journal| {
            let commands = journal.commands(session, 0).await.unwrap();
            commands.first().map(|_| ())
        });
        // It would wait for a run that cannot begin.
        tokio::select! {
            submitted = hub.submit(harness.submit_to(session, "hello")) => drop(submitted.unwrap()),
            () = is_queued => (),
        }
    }
    leases
}

async fn release(harness: &Harness, leases: &[Lease]) {
    for lease in leases {
        harness.journal.release(lease).await.unwrap();
    }
    for lease in leases {
        let outcomes = harness.outcomes(&lease.session, 1).await;
        assert_eq!(outcomes, [Outcome::Completed]);
    }
}

#[tokio::test]
async fn a_prompt_is_left_to_the_living_hub_that_accepted_it() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let leases = held_sessions(&harness, &hub).await;
    let other = Hub::open(other_config(&harness)).await.unwrap();
    release(&harness, &leases).await;
    assert_eq!(n_starts(&harness), [N_SESSIONS, 0]);
    hub.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn the_prompts_of_a_dead_hub_are_taken_over() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let leases = held_sessions(&harness, &hub).await;
    let other = Hub::open(other_config(&harness)).await.unwrap();
    drop(hub);
    release(&harness, &leases).await;
    assert_eq!(n_starts(&harness), [0, N_SESSIONS]);
    other.stop().await;
}

#[tokio::test]
async fn a_session_goes_to_the_hub_whose_prompt_is_next() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let other = Hub::open(other_config(&harness)).await.unwrap();
    let submit = harness.submit("claude", "one");
    let session = hub.submit(submit).await.unwrap().session;
    harness.outcomes(&session, 1).await;
    // The agent of the first hub still idles in the session.
    for (n, hub) in [(2, &other), (3, &hub)] {
        hub.submit(harness.submit_to(&session, "next"))
            .await
            .unwrap();
        harness.outcomes(&session, n).await;
    }
    let outcomes = harness.outcomes(&session, 3).await;
    assert_eq!(
        (outcomes, n_starts(&harness)),
        (vec![Outcome::Completed; 3], [2, 1])
    );
    harness.check(&session).await;
    hub.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_queue_that_ends_with_its_hub_is_empty_afterwards_and_takes_nothing_over() {
    let harness = Harness::new();
    let of_hub = || HubConfig {
        queue: QueueLife::OfHub,
        ..harness.config()
    };
    let hub = Hub::open(of_hub()).await.unwrap();
    let first = hub.submit(harness.submit("claude", "wait")).await.unwrap();
    let session = first.session.clone();
    let later = Submit {
        target: Target::Session(session.to_string()),
        ..harness.submit("claude", "later")
    };
    assert_eq!(hub.submit(later.clone()).await.unwrap().position, 1);
    hub.stop().await;
    let commands = harness.journal.commands(&session, 0).await.unwrap();
    assert_eq!(commands, []);
    // A durable hub leaves what it has accepted, and only another durable one goes on with it.
    let durable = Hub::open(harness.config()).await.unwrap();
    let waiting = Submit {
        prompt: "wait".to_owned(),
        ..later.clone()
    };
    durable.submit(waiting).await.unwrap();
    durable.submit(later).await.unwrap();
    durable.stop().await;
    let n_before = harness.n_starts();
    let hub = Hub::open(of_hub()).await.unwrap();
    let own = hub.submit(harness.submit("claude", "hi")).await.unwrap();
    assert_ne!(own.session, session);
    harness.outcomes(&own.session, 1).await;
    assert_eq!(hub.queue(&session).await.unwrap().len(), 1);
    hub.stop().await;
    assert_eq!(hub.queue(&session).await.unwrap().len(), 1);
    assert_eq!(harness.n_starts(), n_before + 1);
}
