//! Asks: each is opened once and settled once.

use expect_test::expect;
use model::{Ask, AskId, AskSettled, Decision, ItemId, Outcome, Raw, Status};

use super::super::open_items::MAX_OPEN;
use super::{ask, call, check, dialogue, emitted, ended};

#[test]
fn as_many_asks_wait_as_may_be_and_then_all_are_lost() {
    let ids: Vec<String> = (0..=MAX_OPEN).map(|n| format!("a{n}")).collect();
    let ask = |id: &str| Ask {
        id: AskId::new(id.to_owned()),
        ..ask("", None)
    };
    let mut lifecycle = dialogue();
    emitted(&mut lifecycle, |it, cx| {
        ids[..MAX_OPEN].iter().for_each(|id| it.ask(cx, ask(id)));
    });
    assert!(lifecycle.is_asked("a0"));
    let last = emitted(&mut lifecycle, |it, cx| it.ask(cx, ask(&ids[MAX_OPEN])));
    assert_eq!(last.lines().count(), MAX_OPEN + 1);
    expect![[r#"ask permission a1024 "May I? 1" input=1 tool=Call"#]]
        .assert_eq(last.lines().last().unwrap());
    assert!(!lifecycle.is_asked("a0") && lifecycle.is_asked(&ids[MAX_OPEN]));
}

#[test]
fn an_ask_is_opened_once_and_settled_once() {
    check(
        expect![[r#"
        run.started prompt
        + tool c class={other "a call"} name=Call
        ask permission a "May I? 1" input=1 item=c tool=Call
        ask.settled a allowed
        ask permission a~2 "May I? 1" input=1 tool=Call
        ask.settled a~2 allowed input=2
        ask permission b "May I? 1" input=1 item=c tool=Call
        ask.settled b lost (left_open)
        - lost tool c class={other "a call"} name=Call (left_open)
        run.ended completed error={crashed "the agent exited with 3"}
    "#]],
        |it, cx| {
            it.open(cx, call("c").into());
            it.ask(cx, ask("a", Some("c")));
            it.ask(cx, ask("a", Some("c")));
            assert_eq!(it.item_of_ask("a"), Some(ItemId::new("c")));
            assert_eq!(it.ask_of_item(&ItemId::new("c")), Some(AskId::new("a")));
            let settled = AskSettled {
                // What was asked, which is no news.
                input: Some(Raw::of(&1)),
                ..AskSettled::new(AskId::new("a"), Decision::Allowed)
            };
            it.settle(cx, settled.clone());
            it.settle(cx, settled);
            // The id again, for another question; and one more that the end settles.
            it.ask(cx, ask("a", None));
            let settled = AskSettled {
                input: Some(Raw::of(&2)),
                ..AskSettled::new(AskId::new("a"), Decision::Allowed)
            };
            it.settle(cx, settled);
            it.ask(cx, ask("b", Some("c")));
            it.settle_by_status(cx, &ItemId::new("other"), Status::Ok);
            it.end_run(cx, ended(Outcome::Completed));
        },
    );
}

#[test]
fn what_became_of_a_call_says_how_its_ask_was_settled() {
    let all = [
        Status::Ok,
        Status::Error,
        Status::Denied,
        Status::Cancelled,
        Status::Lost,
    ];
    check(
        expect![[r#"
        run.started prompt
        ask permission a "May I? 1" input=1 item=c tool=Call
        ask.settled a allowed
        ask permission a~2 "May I? 1" input=1 item=c tool=Call
        ask.settled a~2 allowed
        ask permission a~3 "May I? 1" input=1 item=c tool=Call
        ask.settled a~3 denied
        ask permission a~4 "May I? 1" input=1 item=c tool=Call
        ask.settled a~4 withdrawn
        ask permission a~5 "May I? 1" input=1 item=c tool=Call
        ask.settled a~5 lost
    "#]],
        |it, cx| {
            for status in all {
                it.ask(cx, ask("a", Some("c")));
                it.settle_by_status(cx, &ItemId::new("c"), status);
            }
        },
    );
}
