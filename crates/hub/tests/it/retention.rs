//! Sessions beyond the limits are removed when a hub is opened, unless they are in use.

use std::time::Duration;

use hub::{Hub, Scope};
use journal::{Journal, SessionQuery};
use tokio::time::timeout;

use crate::harness::{Harness, PATIENCE};

async fn ids(journal: &dyn Journal) -> Vec<String> {
    let listing = journal.list(SessionQuery::default(), None, 100).await;
    let sessions = listing.unwrap().sessions.into_iter();
    sessions.map(|it| it.id.to_string()).collect()
}

#[tokio::test]
async fn a_hub_removes_what_is_over_the_limits_and_nothing_in_use() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let mut done = Vec::new();
    for prompt in ["one", "two", "three"] {
        let submit = harness.submit("replay:tools", prompt);
        let session = hub.submit(submit).await.unwrap().session;
        harness.outcomes(&session, 1).await;
        harness.clock.pass(Duration::from_secs(1));
        done.push(session);
    }
    // From now on they have no owner.
    hub.stop().await;
    let hub = harness.hub().await;
    let submit = harness.submit("claude", "wait");
    let running = hub.submit(submit).await.unwrap().session;
    harness.running(&running).await;
    let later = harness.submit_to(&running, "later");
    hub.submit(later).await.unwrap();
    harness.clock.pass(Duration::from_secs(1));
    let submit = harness.submit("claude", "wait");
    let newest = hub.submit(submit).await.unwrap().session;
    harness.running(&newest).await;
    let strict = harness.config_with("[journal]\nkeep_sessions = 1\n");
    let other = Hub::open(strict).await.unwrap();
    let mut changes = other.changes();
    let look_again = async { while changes.next().await.is_some() {} };
    timeout(PATIENCE, look_again)
        .await
        .expect("no change was reported");
    let mut left = ids(&*harness.journal).await;
    left.sort();
    let mut expected = [running.to_string(), newest.to_string()];
    expected.sort();
    assert_eq!(left, expected);
    let follow = |session: &model::SessionId<'static>| hub::Follow {
        scope: Scope::Session {
            id: session.clone(),
            after: 0,
        },
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
        bridge: None,
    };
    assert!(other.follow(follow(&done[0])).await.is_err());
    assert!(other.follow(follow(&running)).await.is_ok());
    assert!(hub.abort(&running).await.unwrap());
    harness.outcomes(&running, 2).await;
    hub.stop().await;
}
