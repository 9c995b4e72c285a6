//! A write that is sent again under its id, because its answer was lost, counts once.

use bytes::Bytes;
use journal::{Batch, CommandBody, Enqueued, Error, PromptTarget, SessionQuery, WriteId};
use model::{Decision, Outcome, SessionId};

use super::for_every_engine_and_network;
use crate::harness::{
    Engine, Harness, ask_opened, ended, entries, new_session, note, settled, started,
};

for_every_engine_and_network!(
    a_batch_sent_twice_counts_once,
    a_batch_that_others_followed_is_out_of_order,
    a_batch_that_only_finishes_commands_counts_once,
    one_command_sent_many_times_at_once_has_one_number,
    a_command_that_is_done_is_not_taken_again,
    a_prompt_sent_twice_makes_one_session,
    an_answer_sent_twice_is_one_answer,
);

fn prompt() -> CommandBody {
    CommandBody::Prompt(Bytes::from_static(b"go"))
}

async fn a_batch_sent_twice_counts_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = &lease.session;
    let number = harness
        .journal
        .command(session, WriteId::new(), prompt())
        .await;
    let bodies = vec![started(), ask_opened("a"), note("x")];
    let batch = Batch::new(entries(&lease, 1, bodies)).with_done(vec![number.unwrap()]);
    for _ in 0..3 {
        let range = harness.journal.append(&lease, batch.clone()).await;
        assert_eq!(range.unwrap(), 1..4);
    }
    let page = harness.read("s").await;
    assert_eq!((page.events.len(), page.head), (3, 3));
    let bytes: u64 = page.events.iter().map(|it| it.line.len() as u64).sum();
    assert_eq!(harness.find("s").await.bytes, bytes);
    let bodies = vec![settled("a", Decision::Denied), ended(Outcome::Completed)];
    let batch = Batch::new(entries(&lease, 4, bodies));
    for _ in 0..2 {
        let range = harness.journal.append(&lease, batch.clone()).await;
        assert_eq!(range.unwrap(), 4..6);
    }
    let runs = harness.journal.runs(session, None, 10).await.unwrap();
    assert_eq!(runs.len(), 1);
}

async fn a_batch_that_others_followed_is_out_of_order(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let first = Batch::new(entries(&lease, 1, vec![note("first")]));
    harness.journal.append(&lease, first.clone()).await.unwrap();
    harness
        .append(&lease, 2, vec![note("second")])
        .await
        .unwrap();
    let late = harness.journal.append(&lease, first.clone()).await;
    assert!(
        matches!(
            late,
            Err(Error::OutOfOrder {
                next: 3,
                got: 1,
                ..
            })
        ),
        "{late:?}"
    );
    harness.journal.release(&lease).await.unwrap();
    let fenced = harness.journal.append(&lease, first).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
}

async fn a_batch_that_only_finishes_commands_counts_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.append(&lease, 1, vec![note("x")]).await.unwrap();
    let session = &lease.session;
    let number = harness
        .journal
        .command(session, WriteId::new(), prompt())
        .await;
    let batch = Batch::new(vec![]).with_done(vec![number.unwrap()]);
    for _ in 0..2 {
        let range = harness.journal.append(&lease, batch.clone()).await;
        assert_eq!(range.unwrap(), 2..2);
    }
    assert_eq!(harness.journal.commands(session, 0).await.unwrap(), []);
}

async fn one_command_sent_many_times_at_once_has_one_number(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("s").await;
    let id = WriteId::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let journal = harness.journal.clone();
        tasks.spawn(async move {
            let session = SessionId::new("s");
            journal.command(&session, id, prompt()).await.unwrap()
        });
    }
    assert_eq!(tasks.join_all().await, [1; 16]);
    let session = SessionId::new("s");
    let pending = harness.journal.commands(&session, 0).await.unwrap();
    assert_eq!(pending.len(), 1);
    let next = harness
        .journal
        .command(&session, WriteId::new(), prompt())
        .await;
    assert_eq!(next.unwrap(), 2);
}

async fn a_command_that_is_done_is_not_taken_again(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let (session, id) = (&lease.session, WriteId::new());
    let number = harness.journal.command(session, id, prompt()).await;
    assert_eq!(number.unwrap(), 1);
    let batch = Batch::new(vec![]).with_done(vec![1]);
    harness.journal.append(&lease, batch).await.unwrap();
    let number = harness.journal.command(session, id, prompt()).await;
    assert_eq!(number.unwrap(), 1);
    assert_eq!(harness.journal.commands(session, 0).await.unwrap(), []);
}

async fn a_prompt_sent_twice_makes_one_session(engine: Engine) {
    let harness = Harness::new(engine).await;
    let id = WriteId::new();
    for _ in 0..2 {
        let target = PromptTarget::New(new_session("s"));
        let enqueued = harness.journal.enqueue(target, id, Bytes::new()).await;
        let expected = Enqueued {
            number: 1,
            position: 0,
        };
        assert_eq!(enqueued.unwrap(), expected);
    }
    let listing = harness.journal.list(SessionQuery::default(), None, 9).await;
    let queued: Vec<_> = listing
        .unwrap()
        .sessions
        .iter()
        .map(|it| it.queued)
        .collect();
    assert_eq!(queued, [1]);
}

async fn an_answer_sent_twice_is_one_answer(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness
        .append(&lease, 1, vec![ask_opened("a")])
        .await
        .unwrap();
    let (session, id) = (&lease.session, WriteId::new());
    for _ in 0..2 {
        let number = harness.journal.settle(session, 1, id, Bytes::new()).await;
        assert_eq!(number.unwrap(), 1);
    }
    let other = harness
        .journal
        .settle(session, 1, WriteId::new(), Bytes::new())
        .await;
    assert!(matches!(other, Err(Error::Answered { .. })), "{other:?}");
    assert_eq!(harness.journal.commands(session, 0).await.unwrap().len(), 1);
}
