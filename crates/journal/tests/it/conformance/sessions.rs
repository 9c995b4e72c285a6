//! Sessions are made once, found by either name, and listed from the newest.

use std::time::Duration;

use journal::{Error, ListCursor, NewSession, Node, Parent, Session, SessionQuery, State};
use model::{Binding, Outcome, SessionId};

use super::for_every_engine;
use crate::harness::{Engine, Harness, START, ask_opened, bound, ended, note, started};

for_every_engine!(
    a_session_is_made_once,
    ids_are_values_whatever_they_look_like,
    a_session_is_found_by_every_native_id_it_had,
    the_list_is_paged_from_the_newest,
    runs_move_a_session_up_and_events_do_not,
    the_list_is_filtered,
    a_session_is_renamed,
    the_list_stays_in_order_when_the_clock_goes_back,
    a_fork_names_what_it_began_with,
);

async fn a_session_is_made_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let new = NewSession {
        home: Node::default(),
        id: SessionId::new("s"),
        engine: "codex".to_owned(),
        cwd: Some("/home/ann/shop".to_owned()),
        title: Some("Mend the till".to_owned()),
        parent: None,
    };
    let made = harness.journal.create(new.clone()).await.unwrap();
    let session = Session {
        id: SessionId::new("s"),
        home: Node::default(),
        engine: "codex".to_owned(),
        native: None,
        cwd: Some("/home/ann/shop".to_owned()),
        title: Some("Mend the till".to_owned()),
        created_at: harness.time(START, made.created_at),
        active_at: harness.time(START, made.active_at),
        activity: 1,
        head: 0,
        bytes: 0,
        state: State::Idle,
        queued: 0,
        parent: None,
    };
    assert_eq!(made, session);
    assert_eq!(harness.find("s").await, session);
    assert!(matches!(
        harness.journal.create(new).await,
        Err(Error::SessionExists { .. })
    ));
    let unknown = SessionId::new("unknown");
    assert_eq!(harness.journal.find_session(&unknown).await.unwrap(), None);
}

async fn ids_are_values_whatever_they_look_like(engine: Engine) {
    let harness = Harness::new(engine).await;
    let long = "x".repeat(4096);
    let odd = [
        "",
        "..",
        "/etc/passwd",
        "a\\b",
        "CON",
        "a'; DROP TABLE sessions; --",
        "%",
        "a\nb",
        "\u{202e}rtl",
        "nul\0inside",
        &long,
    ];
    for id in odd {
        harness.create(id).await;
    }
    for id in odd {
        assert_eq!(harness.find(id).await.id, SessionId::new(id));
    }
}

async fn a_session_is_found_by_every_native_id_it_had(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let bodies = vec![
        bound("first", Binding::Init),
        bound("second", Binding::Fork),
        bound("stranger", Binding::Mismatch),
    ];
    harness.append(&lease, 1, bodies).await.unwrap();
    let find = async |native: &str| {
        let native = SessionId::new(native);
        harness.journal.find_native(&native).await.unwrap()
    };
    let session = harness.find("s").await;
    assert_eq!(session.native, Some(SessionId::new("second")));
    assert_eq!(find("first").await.as_ref(), Some(&session));
    assert_eq!(find("second").await.as_ref(), Some(&session));
    assert_eq!(find("stranger").await, None);

    harness.pass(Duration::from_millis(1));
    let newer = harness.lease("newer").await;
    let bodies = vec![bound("first", Binding::Resume)];
    harness.append(&newer, 1, bodies).await.unwrap();
    assert_eq!(find("first").await.unwrap().id, SessionId::new("newer"));
}

async fn the_list_is_paged_from_the_newest(engine: Engine) {
    let harness = Harness::new(engine).await;
    // Two share a moment; the id decides.
    for (id, pause) in [("a", 1), ("b", 0), ("c", 1), ("d", 1)] {
        harness.create(id).await;
        harness.pass(Duration::from_millis(pause));
    }
    let mut pages = Vec::new();
    let mut after: Option<ListCursor> = None;
    loop {
        let query = SessionQuery::default();
        let listing = harness.journal.list(query, after.take(), 3).await.unwrap();
        let ids: Vec<_> = listing
            .sessions
            .iter()
            .map(|it| it.id.to_string())
            .collect();
        pages.push(ids);
        after = listing.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec!["d", "c", "b"], vec!["a"]]);
}

async fn list(harness: &Harness, query: SessionQuery) -> Vec<String> {
    let listing = harness.journal.list(query, None, 100).await.unwrap();
    let sessions = listing.sessions.into_iter();
    sessions.map(|it| it.id.to_string()).collect()
}

async fn runs_move_a_session_up_and_events_do_not(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("a").await;
    harness.pass(Duration::from_millis(1));
    harness.create("b").await;
    harness.pass(Duration::from_millis(1));
    harness.append(&lease, 1, vec![note("x")]).await.unwrap();
    assert_eq!(list(&harness, SessionQuery::default()).await, ["b", "a"]);
    harness.append(&lease, 2, vec![started()]).await.unwrap();
    assert_eq!(list(&harness, SessionQuery::default()).await, ["a", "b"]);
    harness.pass(Duration::from_millis(1));
    harness.create("c").await;
    harness.pass(Duration::from_millis(1));
    let bodies = vec![ended(Outcome::Completed)];
    harness.append(&lease, 3, bodies).await.unwrap();
    assert_eq!(
        list(&harness, SessionQuery::default()).await,
        ["a", "c", "b"]
    );
    let active_at = harness.find("a").await.active_at;
    assert_eq!(active_at, harness.time(START.plus_millis(4), active_at));
}

async fn the_list_is_filtered(engine: Engine) {
    let harness = Harness::new(engine).await;
    for (id, engine, title, cwd) in [
        ("one", "claude", Some("ÄRGER im Lager"), None),
        ("two", "codex", None, Some("/home/Ann/shop")),
        ("three", "codex", Some("100% of_it"), None),
    ] {
        let new = NewSession {
            home: Node::default(),
            id: SessionId::new(id),
            engine: engine.to_owned(),
            cwd: cwd.map(str::to_owned),
            title: title.map(str::to_owned),
            parent: None,
        };
        harness.journal.create(new).await.unwrap();
        harness.pass(Duration::from_millis(1));
    }
    let lease = harness.acquire("two", "owner").await.unwrap();
    let bodies = vec![bound("Native-7", Binding::Init), started()];
    harness.append(&lease, 1, bodies).await.unwrap();
    let lease = harness.acquire("three", "owner").await.unwrap();
    harness
        .append(&lease, 1, vec![started(), ask_opened("a")])
        .await
        .unwrap();

    let text = async |text: &str| {
        let text = Some(text.to_owned());
        let query = SessionQuery {
            text,
            ..SessionQuery::default()
        };
        list(&harness, query).await
    };
    assert_eq!(text("ärger IM").await, ["one"]);
    assert_eq!(text("ann/SHOP").await, ["two"]);
    assert_eq!(text("native-7").await, ["two"]);
    assert_eq!(text("0% OF_").await, ["three"]);
    assert_eq!(text("thr").await, ["three"]);
    assert_eq!(text("%").await, ["three"]);
    assert_eq!(text("nowhere").await, Vec::<String>::new());

    let codex = SessionQuery {
        engine: Some("codex".to_owned()),
        ..SessionQuery::default()
    };
    assert_eq!(list(&harness, codex.clone()).await, ["three", "two"]);
    for (state, expected) in [
        (State::Idle, vec![]),
        (State::Running, vec!["two"]),
        (State::Waiting, vec!["three"]),
    ] {
        let query = SessionQuery {
            state: Some(state),
            ..codex.clone()
        };
        assert_eq!(list(&harness, query).await, expected);
    }
}

async fn a_session_is_renamed(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("s").await;
    let session = SessionId::new("s");
    harness
        .journal
        .rename(&session, "New".to_owned())
        .await
        .unwrap();
    assert_eq!(harness.find("s").await.title.as_deref(), Some("New"));
    let query = SessionQuery {
        text: Some("new".to_owned()),
        ..SessionQuery::default()
    };
    assert_eq!(list(&harness, query).await, ["s"]);
    let unknown = SessionId::new("unknown");
    assert!(matches!(
        harness.journal.rename(&unknown, String::new()).await,
        Err(Error::NoSession { .. })
    ));
}

async fn the_list_stays_in_order_when_the_clock_goes_back(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("a").await;
    harness.create("b").await;
    harness.set_wall(START.plus_millis(-3_600_000));
    harness.create("c").await;
    assert_eq!(
        list(&harness, SessionQuery::default()).await,
        ["c", "b", "a"]
    );
    harness.append(&lease, 1, vec![started()]).await.unwrap();
    assert_eq!(
        list(&harness, SessionQuery::default()).await,
        ["a", "c", "b"]
    );
}

async fn a_fork_names_what_it_began_with(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("source").await;
    let parent = Some(Parent {
        session: SessionId::new("source"),
        seq: 7,
    });
    let new = NewSession {
        home: Node::default(),
        id: SessionId::new("fork"),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: parent.clone(),
    };
    assert_eq!(harness.journal.create(new).await.unwrap().parent, parent);
    assert_eq!(harness.find("fork").await.parent, parent);
    assert_eq!(harness.find("source").await.parent, None);
}
