//! A node finds what is its own, and anybody finds everything.

use bytes::Bytes;
use journal::{CommandBody, NewSession, Node, SessionQuery, WriteId};
use model::SessionId;

use super::for_every_engine;
use crate::harness::{Engine, Harness, ask_opened, started};

for_every_engine!(a_session_keeps_its_home, the_lists_of_a_node_stay_within_it,);

fn node(name: &str) -> Node {
    Node::find(name).unwrap()
}

/// Sessions `a1`, `a2` of node `a` and `b1` of node `b`, each with a run, an ask and a command.
async fn two_nodes(engine: Engine) -> Harness {
    let harness = Harness::new(engine).await;
    for (id, home) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
        let session = NewSession {
            id: SessionId::new(id),
            home: node(home),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        };
        harness.journal.create(session).await.unwrap();
        let lease = harness.acquire(id, home).await.unwrap();
        let bodies = vec![started(), ask_opened("q")];
        harness.append(&lease, 1, bodies).await.unwrap();
        let prompt = CommandBody::Prompt(Bytes::new());
        let (session, write) = (&lease.session, WriteId::new());
        harness
            .journal
            .command(session, write, prompt)
            .await
            .unwrap();
    }
    harness
}

async fn a_session_keeps_its_home(engine: Engine) {
    let harness = two_nodes(engine).await;
    let mut homes = Vec::new();
    for id in ["a1", "b1", "a2"] {
        homes.push(harness.find(id).await.home.to_string());
    }
    assert_eq!(homes, ["a", "b", "a"]);
}

async fn the_lists_of_a_node_stay_within_it(engine: Engine) {
    let harness = two_nodes(engine).await;
    let journal = &harness.journal;
    for (home, expected) in [
        (Some("a"), vec!["a1", "a2"]),
        (Some("b"), vec!["b1"]),
        (Some("c"), vec![]),
        (None, vec!["a1", "b1", "a2"]),
    ] {
        let home = home.map(node);
        let pending = journal.pending(home.as_ref()).await.unwrap();
        let runs = journal.open_runs(home.as_ref()).await.unwrap().into_iter();
        let asks = journal.asks(home.as_ref()).await.unwrap().into_iter();
        let query = SessionQuery {
            home: home.clone(),
            ..SessionQuery::default()
        };
        let listing = journal.list(query, None, 10).await.unwrap();
        let newest_first = listing.sessions.into_iter();
        let found = [
            pending,
            runs.map(|it| it.run.session).collect(),
            asks.map(|it| it.session).collect(),
            newest_first.rev().map(|it| it.id).collect(),
        ];
        let expected: Vec<_> = expected.into_iter().map(SessionId::new).collect();
        assert_eq!(found, [(); 4].map(|()| expected.clone()), "{home:?}");
    }
}
