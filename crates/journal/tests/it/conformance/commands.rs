//! Commands wait for the owner, in order, until it marks them as done.

use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Command, CommandBody, CommandStatus, Enqueued, Entry, Error, PromptTarget, Retention,
    State, WriteId,
};
use model::{Origin, SessionId};

use super::for_every_engine;
use crate::harness::{Engine, Harness, START, TTL, entries, event, new_session, note, started};

for_every_engine!(
    commands_come_in_order_until_they_are_done,
    a_fenced_owner_cannot_finish_a_command,
    the_next_owner_gets_what_was_not_done,
    a_queue_has_an_end,
    a_session_and_its_first_prompt_are_made_together,
    an_overview_is_a_consistent_snapshot,
    who_gave_a_command_is_told_what_became_of_it,
);

fn prompt(text: &'static str) -> CommandBody {
    CommandBody::Prompt(Bytes::from_static(text.as_bytes()))
}

async fn commands_come_in_order_until_they_are_done(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = &lease.session;
    let orders = [
        prompt("one"),
        CommandBody::Abort(Bytes::from_static(b"\xFF")),
        prompt("three"),
    ];
    let mut commands = Vec::new();
    for (number, order) in (1..).zip(orders) {
        let given = harness
            .journal
            .command(session, WriteId::new(), order.clone())
            .await
            .unwrap();
        assert_eq!(given, number);
        let stored = harness.journal.commands(session, number - 1).await.unwrap();
        commands.push(Command {
            number,
            at: harness.time(START, stored[0].at),
            order,
        });
    }
    assert_eq!(
        harness.journal.commands(session, 0).await.unwrap(),
        commands
    );
    let pending = harness.journal.pending(None).await.unwrap();
    assert_eq!(pending, std::slice::from_ref(session));
    assert_eq!(
        harness.journal.commands(session, 2).await.unwrap(),
        commands[2..]
    );

    // The abort is done before the prompt in front of it, together with what it caused.
    let batch = Batch::new(entries(&lease, 1, vec![note("aborted")])).with_done(vec![2]);
    harness.journal.append(&lease, batch).await.unwrap();
    commands.remove(1);
    assert_eq!(
        harness.journal.commands(session, 0).await.unwrap(),
        commands
    );
    let number = harness
        .journal
        .command(session, WriteId::new(), prompt("four"))
        .await;
    assert_eq!(number.unwrap(), 4);
    let batch = Batch::new(Vec::new()).with_done(vec![1, 3, 4]);
    harness.journal.append(&lease, batch).await.unwrap();
    assert_eq!(harness.journal.pending(None).await.unwrap(), []);
}

async fn a_fenced_owner_cannot_finish_a_command(engine: Engine) {
    let harness = Harness::new(engine).await;
    let old = harness.lease("s").await;
    harness
        .journal
        .command(&old.session, WriteId::new(), prompt("x"))
        .await
        .unwrap();
    harness.pass(TTL);
    harness.acquire("s", "other").await.unwrap();
    let batch = Batch::new(vec![]).with_done(vec![1]);
    assert!(matches!(
        harness.journal.append(&old, batch).await,
        Err(Error::Fenced { .. })
    ));
    assert_eq!(
        harness
            .journal
            .commands(&old.session, 0)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn the_next_owner_gets_what_was_not_done(engine: Engine) {
    let harness = Harness::new(engine).await;
    let session = SessionId::new("s");
    harness.create("s").await;
    harness
        .journal
        .command(&session, WriteId::new(), prompt("before"))
        .await
        .unwrap();
    let dead = harness.acquire("s", "one").await.unwrap();
    harness
        .journal
        .command(&session, WriteId::new(), prompt("under"))
        .await
        .unwrap();
    let batch = Batch::new(entries(&dead, 1, vec![note("did the first")])).with_done(vec![1]);
    harness.journal.append(&dead, batch).await.unwrap();
    harness.pass(TTL);
    harness.acquire("s", "two").await.unwrap();
    let commands = harness.journal.commands(&session, 0).await.unwrap();
    let orders: Vec<_> = commands
        .into_iter()
        .map(|it| (it.number, it.order))
        .collect();
    assert_eq!(orders, [(2, prompt("under"))]);
}

async fn a_queue_has_an_end(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("s").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1001 {
        let journal = harness.journal.clone();
        let session = SessionId::new("s");
        tasks.spawn(async move {
            journal
                .command(&session, WriteId::new(), prompt("again"))
                .await
        });
    }
    let answers = tasks.join_all().await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(
        matches!(refused[..], [Error::TooManyCommands { pending: 1000, .. }]),
        "{refused:?}"
    );
    let unknown = SessionId::new("unknown");
    assert!(matches!(
        harness
            .journal
            .command(&unknown, WriteId::new(), prompt("x"))
            .await,
        Err(Error::NoSession { .. })
    ));
}

async fn a_session_and_its_first_prompt_are_made_together(engine: Engine) {
    let harness = Harness::new(engine).await;
    let enqueue = async |home| {
        let prompt = Bytes::from_static(b"go");
        harness.journal.enqueue(home, WriteId::new(), prompt).await
    };
    let placed = |number, position| Enqueued { number, position };
    let session = SessionId::new("s");
    assert_eq!(
        enqueue(PromptTarget::New(new_session("s"))).await.unwrap(),
        placed(1, 0)
    );
    assert!(matches!(
        enqueue(PromptTarget::New(new_session("s"))).await,
        Err(Error::SessionExists { .. })
    ));
    assert_eq!(
        enqueue(PromptTarget::Either(new_session("s")))
            .await
            .unwrap(),
        placed(2, 1)
    );
    assert_eq!(
        enqueue(PromptTarget::Either(new_session("t")))
            .await
            .unwrap(),
        placed(1, 0)
    );
    let at = PromptTarget::Session(session.clone());
    assert_eq!(enqueue(at).await.unwrap(), placed(3, 2));
    let unknown = PromptTarget::Session(SessionId::new("unknown"));
    assert!(matches!(
        enqueue(unknown).await,
        Err(Error::NoSession { .. })
    ));
    let found = harness.find("s").await;
    assert_eq!((found.state, found.queued), (State::Queued, 3));
    // One that is refused leaves no session behind.
    for _ in 0..997 {
        enqueue(PromptTarget::Session(session.clone()))
            .await
            .unwrap();
    }
    let refused = enqueue(PromptTarget::Either(new_session("s"))).await;
    assert!(matches!(refused, Err(Error::TooManyCommands { .. })));
    assert_eq!(harness.find("s").await.queued, 1000);
}

async fn an_overview_is_a_consistent_snapshot(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = &lease.session;
    harness
        .journal
        .command(session, WriteId::new(), prompt("one"))
        .await
        .unwrap();
    let mut begun = event(&lease, 1, started());
    begun.origin = Origin::Linkspan;
    let batch = Batch::new(vec![Entry::of(&begun, None).unwrap()]).with_done(vec![1]);
    harness.journal.append(&lease, batch).await.unwrap();
    let look = async || {
        harness
            .journal
            .overview(session, 10)
            .await
            .unwrap()
            .unwrap()
    };
    let found = look().await;
    assert_eq!(found.session, harness.find("s").await);
    assert_eq!(found.session.state, State::Starting);
    assert_eq!((found.runs.len(), found.commands), (1, vec![]));
    harness.append(&lease, 2, vec![note("x")]).await.unwrap();
    assert_eq!(look().await.session.state, State::Running);
    let unknown = SessionId::new("unknown");
    assert_eq!(harness.journal.overview(&unknown, 1).await.unwrap(), None);
}

async fn who_gave_a_command_is_told_what_became_of_it(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let (session, journal) = (&lease.session, &harness.journal);
    let ids = [WriteId::new(), WriteId::new(), WriteId::new()];
    for id in ids {
        journal.command(session, id, prompt("x")).await.unwrap();
    }
    let status = |number, is_done, reply: Option<&'static [u8]>| {
        let reply = reply.map(Bytes::from_static);
        Some(CommandStatus {
            number,
            is_done,
            reply,
        })
    };
    let batch = Batch::new(vec![])
        .with_done(vec![1])
        .with_reply(2, Bytes::from_static(b"\0reply"));
    // Its answer is lost, and it is sent again.
    for _ in 0..2 {
        journal.append(&lease, batch.clone()).await.unwrap();
    }
    let mut found = Vec::new();
    for id in ids.into_iter().chain([WriteId::new()]) {
        found.push(journal.find_command(id).await.unwrap());
    }
    let expected = [
        status(1, true, None),
        status(2, true, Some(b"\0reply")),
        status(3, false, None),
        None,
    ];
    assert_eq!(found, expected);
    // Nobody asks after a day.
    harness.pass(Duration::from_secs(25 * 3600));
    journal.retain(Retention::default()).await.unwrap();
    assert_eq!(journal.find_command(ids[1]).await.unwrap(), None);
    assert_eq!(journal.find_command(ids[2]).await.unwrap(), expected[2]);
}
