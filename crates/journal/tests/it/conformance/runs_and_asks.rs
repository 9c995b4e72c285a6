//! A run ends once, an ask is settled once, and runs that a dead owner left open are found.

use std::time::Duration;

use bytes::Bytes;
use journal::{
    CommandBody, Error, Holder, OpenRun, Owner, Run, RunEnd, State, WaitingAsk, WriteId,
};
use model::{AskId, Decision, Outcome, RunId, SessionId};

use super::for_every_engine_and_network;
use crate::harness::{
    Engine, Harness, START, TTL, ask_opened, ended, entries, note, settled, started,
};

for_every_engine_and_network!(
    a_run_is_open_until_it_ends_and_ends_once,
    runs_are_listed_from_the_newest,
    open_runs_name_their_holder,
    a_session_runs_waits_and_rests,
    an_ask_is_answered_once,
    an_ask_the_agent_took_back_cannot_be_answered,
    an_id_that_is_used_again_is_another_ask,
    of_many_answers_at_once_one_counts,
);

async fn a_run_is_open_until_it_ends_and_ends_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let run = RunId::new("run");
    assert_eq!(harness.journal.find_run(&run).await.unwrap(), None);
    assert!(matches!(
        harness
            .append(&lease, 1, vec![ended(Outcome::Failed)])
            .await,
        Err(Error::RunNotOpen { .. })
    ));
    harness
        .append(&lease, 1, vec![started(), note("x")])
        .await
        .unwrap();
    let find = async || harness.journal.find_run(&run).await.unwrap().unwrap();
    let found = find().await;
    let mut expected = Run {
        session: SessionId::new("s"),
        run: RunId::new("run"),
        first: 1,
        started_at: harness.time(START, found.started_at),
        // A database leaves out the numbers of what it has rolled back.
        activity: found.activity.max(2),
        end: None,
    };
    assert_eq!(found, expected);

    harness.pass(Duration::from_millis(7));
    harness
        .append(&lease, 3, vec![ended(Outcome::Limit)])
        .await
        .unwrap();
    let found = find().await;
    expected.started_at = harness.time(START, found.started_at);
    expected.end = Some(RunEnd {
        seq: 3,
        at: harness.time(START.plus_millis(7), found.end.unwrap().at),
        outcome: Outcome::Limit,
    });
    assert_eq!(found, expected);
    assert!(matches!(
        harness.append(&lease, 4, vec![ended(Outcome::Lost)]).await,
        Err(Error::RunNotOpen { .. })
    ));
    assert!(matches!(
        harness.append(&lease, 4, vec![started()]).await,
        Err(Error::RunStarted { .. })
    ));
    assert_eq!(harness.read("s").await.head, 3);
}

async fn runs_are_listed_from_the_newest(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    for n in 0..3 {
        let name = format!("run {n}");
        let bodies = [started(), ended(Outcome::Completed)];
        let entries = bodies.into_iter().zip(1..).map(|(body, place)| {
            let mut event = crate::harness::event(&lease, n * 2 + place, body);
            event.run = Some(RunId::new(name.clone()));
            journal::Entry::of(&event, None).unwrap()
        });
        let batch = journal::Batch::new(entries.collect());
        harness.journal.append(&lease, batch).await.unwrap();
    }
    let list = async |before, limit| {
        let runs = harness.journal.runs(&lease.session, before, limit).await;
        let runs = runs.unwrap().into_iter();
        runs.map(|it| it.run.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, ["run 2", "run 1", "run 0"]);
    assert_eq!(list(None, 2).await, ["run 2", "run 1"]);
    assert_eq!(list(Some(3), 10).await, ["run 0"]);
}

async fn open_runs_name_their_holder(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.append(&lease, 1, vec![started()]).await.unwrap();
    let check = async |holder| {
        let found = harness.journal.open_runs(None).await.unwrap();
        let run = Run {
            session: SessionId::new("s"),
            run: RunId::new("run"),
            first: 1,
            started_at: harness.time(START, found[0].run.started_at),
            activity: found[0].run.activity.max(2),
            end: None,
        };
        assert_eq!(found, [OpenRun { run, holder }]);
    };
    let holder = |lapsed| {
        Some(Holder {
            owner: Owner::new("owner"),
            epoch: 1,
            lapsed,
        })
    };
    check(holder(false)).await;
    harness.pass(TTL);
    check(holder(true)).await;
    harness.journal.release(&lease).await.unwrap();
    check(None).await;

    let lease = harness.acquire("s", "finder").await.unwrap();
    harness
        .append(&lease, lease.head + 1, vec![ended(Outcome::Lost)])
        .await
        .unwrap();
    assert_eq!(harness.journal.open_runs(None).await.unwrap(), []);
}

async fn a_session_runs_waits_and_rests(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let state = async || harness.find("s").await.state;
    assert_eq!(state().await, State::Idle);
    harness.append(&lease, 1, vec![started()]).await.unwrap();
    assert_eq!(state().await, State::Running);
    harness
        .append(&lease, 2, vec![ask_opened("a")])
        .await
        .unwrap();
    assert_eq!(state().await, State::Waiting);
    harness
        .journal
        .settle(&lease.session, 2, WriteId::new(), Bytes::new())
        .await
        .unwrap();
    assert_eq!(state().await, State::Running);
    let bodies = vec![settled("a", Decision::Allowed), ended(Outcome::Completed)];
    harness.append(&lease, 3, bodies).await.unwrap();
    assert_eq!(state().await, State::Idle);
}

async fn an_ask_is_answered_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = &lease.session;
    let lines = entries(&lease, 1, vec![ask_opened("a")]);
    harness
        .append(&lease, 1, vec![ask_opened("a")])
        .await
        .unwrap();
    let found = harness.journal.asks(None).await.unwrap();
    let mut waiting = WaitingAsk {
        session: SessionId::new("s"),
        seq: 1,
        ask: AskId::new("a"),
        run: Some(RunId::new("run")),
        at: harness.time(START, found[0].at),
        answered: false,
        line: lines[0].line(),
    };
    assert_eq!(found, [waiting.clone()]);
    assert!(matches!(
        harness
            .journal
            .settle(session, 2, WriteId::new(), Bytes::new())
            .await,
        Err(Error::NoAsk { seq: 2, .. })
    ));

    let yes = Bytes::from_static(b"yes");
    let number = harness
        .journal
        .settle(session, 1, WriteId::new(), yes.clone())
        .await
        .unwrap();
    let commands = harness.journal.commands(session, 0).await.unwrap();
    assert_eq!(
        (commands[0].number, &commands[0].order),
        (
            number,
            &CommandBody::Settle {
                ask: 1,
                answer: yes
            }
        )
    );
    waiting.answered = true;
    assert_eq!(harness.journal.asks(None).await.unwrap(), [waiting]);
    let no = Bytes::from_static(b"no");
    assert!(matches!(
        harness
            .journal
            .settle(session, 1, WriteId::new(), no.clone())
            .await,
        Err(Error::Answered { decision: None, .. })
    ));

    let bodies = vec![settled("a", Decision::Allowed)];
    harness.append(&lease, 2, bodies).await.unwrap();
    assert!(matches!(
        harness.journal.settle(session, 1, WriteId::new(), no).await,
        Err(Error::Answered {
            decision: Some(Decision::Allowed),
            ..
        })
    ));
    assert_eq!(harness.journal.asks(None).await.unwrap(), []);
    assert_eq!(harness.journal.commands(session, 0).await.unwrap().len(), 1);
    assert!(matches!(
        harness
            .append(&lease, 3, vec![settled("a", Decision::Denied)])
            .await,
        Err(Error::AskNotOpen { .. })
    ));
}

async fn an_ask_the_agent_took_back_cannot_be_answered(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let bodies = vec![ask_opened("a"), settled("a", Decision::Withdrawn)];
    harness.append(&lease, 1, bodies).await.unwrap();
    assert!(matches!(
        harness
            .journal
            .settle(&lease.session, 1, WriteId::new(), Bytes::new())
            .await,
        Err(Error::Answered {
            decision: Some(Decision::Withdrawn),
            ..
        })
    ));
    assert_eq!(
        harness.journal.commands(&lease.session, 0).await.unwrap(),
        []
    );
}

async fn an_id_that_is_used_again_is_another_ask(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness
        .append(&lease, 1, vec![ask_opened("1")])
        .await
        .unwrap();
    assert!(matches!(
        harness.append(&lease, 2, vec![ask_opened("1")]).await,
        Err(Error::AskOpen { .. })
    ));
    let bodies = vec![settled("1", Decision::Denied), ask_opened("1")];
    harness.append(&lease, 2, bodies).await.unwrap();
    assert!(matches!(
        harness
            .journal
            .settle(&lease.session, 1, WriteId::new(), Bytes::new())
            .await,
        Err(Error::Answered { .. })
    ));
    harness
        .journal
        .settle(&lease.session, 3, WriteId::new(), Bytes::new())
        .await
        .unwrap();
}

async fn of_many_answers_at_once_one_counts(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness
        .append(&lease, 1, vec![ask_opened("a")])
        .await
        .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..32_u8 {
        let journal = harness.journal.clone();
        let session = lease.session.clone();
        tasks.spawn(async move {
            let answer = Bytes::from(vec![n]);
            journal
                .settle(&session, 1, WriteId::new(), answer)
                .await
                .is_ok()
        });
    }
    let counted = tasks.join_all().await;
    assert_eq!(counted.iter().filter(|it| **it).count(), 1);
    assert_eq!(
        harness
            .journal
            .commands(&lease.session, 0)
            .await
            .unwrap()
            .len(),
        1
    );
}
