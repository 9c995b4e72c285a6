//! Items: what opens, grows and closes them.

use expect_test::expect;
use model::{
    Body, Channel, Event, Item, ItemId, Message, Outcome, Raw, Reasoning, Role, RunEnded, Status,
    Text, Tool,
};

use super::super::items::text_of;
use super::super::open_items::{MAX_OPEN, MAX_STREAMED};
use super::super::{FrameContext, Lifecycle};
use super::{call, check, dialogue, emitted, message};

#[test]
fn an_item_that_grows_too_long_goes_on_under_another_id() {
    let half = "x".repeat(MAX_STREAMED / 2);
    let whole = half.repeat(3);
    let mut seen = Vec::new();
    let mut sink = |event: &Event<'_>| {
        let (id, text) = match &event.body {
            Body::ItemOpened(item) => (item.id(), text_of(item)),
            Body::ItemClosed(closed) => (closed.item.id(), text_of(&closed.item)),
            Body::ItemDelta(delta) => (&delta.item, &delta.text),
            _ => return,
        };
        let n_halves = text.to_str().len() / half.len();
        seen.push(format!("{} {id} {n_halves}", event.body.name()));
    };
    let mut cx = FrameContext::new(&mut sink);
    let mut lifecycle = dialogue();
    lifecycle.open(&mut cx, message("m", ""));
    let id = ItemId::new("m");
    for _ in 0..3 {
        lifecycle.delta(&mut cx, &id, Channel::Text, Text::new(&*half));
    }
    let closed = Message::new(id, Role::Assistant, Text::new(&*whole));
    lifecycle.close_text(&mut cx, closed.into(), Status::Ok);
    let expected = [
        "item.opened m 0",
        "item.delta m 1",
        "item.delta m 1",
        "item.closed m 2",
        "item.opened m~2 0",
        "item.delta m~2 1",
        // The agent repeats the whole text in the end, and the last item has it.
        "item.delta m~2 2",
        "item.closed m~2 3",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn as_many_items_stay_open_as_may_be_and_the_oldest_goes() {
    let ids: Vec<String> = (0..=MAX_OPEN).map(|n| format!("m{n}")).collect();
    let open = |lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>, id: &str| {
        let id = ItemId::new(id.to_owned());
        lifecycle.open(cx, Message::new(id, Role::Assistant, Text::EMPTY).into());
    };
    let mut lifecycle = dialogue();
    emitted(&mut lifecycle, |it, cx| {
        ids[..MAX_OPEN].iter().for_each(|id| open(it, cx, id));
    });
    assert!(lifecycle.is_open(&ItemId::new("m0")));
    let last = emitted(&mut lifecycle, |it, cx| open(it, cx, &ids[MAX_OPEN]));
    expect![[r#"
        - lost message m0 "" role=assistant (left_open)
        + message m1024 "" role=assistant
    "#]]
    .assert_eq(&last);
    assert!(lifecycle.is_open(&ItemId::new("m1")));
}

#[test]
fn a_call_without_a_name_keeps_the_one_it_had() {
    let nameless = |id| Tool {
        name: " ".into(),
        ..call(id)
    };
    check(
        expect![[r#"
        run.started prompt
        + tool c class={other "a call"} name=tool
        + tool d class={other "a call"} name=Call
        ~ tool d class={other "a call"} input=1 name=Call
    "#]],
        |it, cx| {
            it.open(cx, nameless("c").into());
            it.open(cx, call("d").into());
            it.update(cx, nameless("d").into());
            it.update(
                cx,
                Tool {
                    input: Some(Raw::of(&1)),
                    ..nameless("d")
                }
                .into(),
            );
        },
    );
}

#[test]
fn what_was_streamed_of_a_call_is_its_input_unless_it_has_one() {
    check(
        expect![[r#"
        run.started prompt
        + tool whole class={other "a call"} name=Call
        . whole input "{\"a\":"
        . whole input "1}"
        - ok tool whole class={other "a call"} input={"a":1} name=Call
        + tool cut class={other "a call"} name=Call
        . cut input "{\"a\":"
        - ok tool cut class={other "a call"} input="{\"a\":" name=Call
        + tool known class={other "a call"} input=1 name=Call
        . known input 2
        - ok tool known class={other "a call"} input=1 name=Call
        + tool none class={other "a call"} name=Call
        - ok tool none class={other "a call"} name=Call
        + tool text class={other "a call"} name=Call
        notice warning never_opened "a piece of `text`, which was never opened"
        . text output out
        + message m "" role=assistant
        notice warning never_opened "a piece of `m`, which was never opened"
    "#]],
        |it, cx| {
            let input = |id| (ItemId::new(id), Channel::Input);
            it.open(cx, call("whole").into());
            let (id, channel) = input("whole");
            it.delta(cx, &id, channel, Text::new("{\"a\":"));
            it.delta(cx, &id, channel, Text::new("1}"));
            it.close(cx, &id, Status::Ok, |_| ());
            it.open(cx, call("cut").into());
            let (id, channel) = input("cut");
            it.delta(cx, &id, channel, Text::new("{\"a\":"));
            it.close(cx, &id, Status::Ok, |_| ());
            it.open(
                cx,
                Tool {
                    input: Some(Raw::of(&1)),
                    ..call("known")
                }
                .into(),
            );
            let (id, channel) = input("known");
            it.delta(cx, &id, channel, Text::new("2"));
            it.close(cx, &id, Status::Ok, |_| ());
            it.open(cx, call("none").into());
            it.close(cx, &ItemId::new("none"), Status::Ok, |_| ());
            // What is no piece of such an item is kept as a notice.
            it.open(cx, call("text").into());
            it.delta(cx, &ItemId::new("text"), Channel::Text, Text::new("x"));
            it.delta(cx, &ItemId::new("text"), Channel::Output, Text::new("out"));
            it.delta(cx, &ItemId::new("text"), Channel::Output, Text::EMPTY);
            it.open(cx, message("m", ""));
            it.delta(cx, &ItemId::new("m"), Channel::Input, Text::new("x"));
        },
    );
}

#[test]
fn texts_end_with_what_was_streamed_or_with_what_they_say_at_last() {
    let reasoning = |id: &'static str, text: &'static str| -> Item<'static> {
        Reasoning::new(ItemId::new(id), Text::new(text)).into()
    };
    check(
        expect![[r#"
        run.started prompt
        + message kept before role=assistant
        - ok message kept before role=assistant
        + reasoning kept~2 before
        - ok reasoning kept~2 before
        + message streamed "" role=assistant
        . streamed text one
        - ok message streamed one role=assistant
        + reasoning streamed~3 ""
        . streamed~3 text one
        - ok reasoning streamed~3 one
        + message longer "" role=assistant
        . longer text one
        . longer text " two"
        - ok message longer "one two" role=assistant
        + message other "" role=assistant
        . other text one
        - lost message other one role=assistant (left_open)
        notice warning text_differs "the streamed text is not the final text"
        + message other~4 "" role=assistant
        - ok message other~4 two role=assistant
        + reasoning unseen ""
        - ok reasoning unseen all
        + message left "" role=assistant
        . left text one
        - lost message left one role=assistant (left_open)
        run.ended completed answer=one
    "#]],
        |it, cx| {
            let stream = |it: &mut Lifecycle, cx: &mut FrameContext<'_>, id: &'static str| {
                it.delta(cx, &ItemId::new(id), Channel::Text, Text::new("one"));
            };
            it.open(cx, message("kept", "before"));
            it.close(cx, &ItemId::new("kept"), Status::Ok, |_| ());
            it.open(cx, reasoning("kept", "before"));
            it.close(cx, &ItemId::new("kept"), Status::Ok, |_| ());
            it.open(cx, message("streamed", ""));
            stream(it, cx, "streamed");
            it.close_streamed(cx, &ItemId::new("streamed"), Vec::new());
            it.open(cx, reasoning("streamed", ""));
            stream(it, cx, "streamed");
            it.close_streamed(cx, &ItemId::new("streamed"), Vec::new());
            it.open(cx, message("longer", ""));
            stream(it, cx, "longer");
            it.close_text(cx, message("longer", "one two"), Status::Ok);
            it.open(cx, message("other", ""));
            stream(it, cx, "other");
            it.close_text(cx, message("other", "two"), Status::Ok);
            it.close_whole(cx, reasoning("unseen", "all"), Status::Ok);
            it.open(cx, message("left", ""));
            stream(it, cx, "left");
            it.end_run(cx, RunEnded::new(Outcome::Completed, None));
        },
    );
}

#[test]
fn one_id_for_two_kinds_of_things_ends_the_first() {
    check(
        expect![[r#"
        run.started prompt
        + message x "" role=assistant
        - lost message x "" role=assistant (left_open)
        + tool x~2 class={other "a call"} name=Call
        - lost tool x~2 class={other "a call"} name=Call (left_open)
        + message x~3 text role=assistant
        - lost message x~3 text role=assistant (left_open)
        + tool x~4 class={other "a call"} name=Call (never_opened)
        - error tool x~4 class={other "a call"} name=Call
        + message x~5 "" role=assistant
        - ok message x~5 text role=assistant
    "#]],
        |it, cx| {
            it.open(cx, message("x", ""));
            it.open(cx, call("x").into());
            it.update(cx, message("x", "text"));
            it.close_whole(cx, call("x").into(), Status::Error);
            it.close_text(cx, message("x", "text"), Status::Ok);
        },
    );
}

#[test]
fn a_repeated_call_is_an_update_only_if_it_changed() {
    check(
        expect![[r#"
        run.started prompt
        + tool c class={other "a call"} input=1 name=Call
        ~ tool c class={other "a call"} input=2 name=Call
        - ok tool c class={other "a call"} input=3 name=Call
        + tool c~2 class={other "a call"} input=4 name=Call (never_opened)
        - ok tool c~2 class={other "a call"} input=4 name=Call
    "#]],
        |it, cx| {
            let with_input = |n: u32| -> Item<'static> {
                Tool {
                    input: Some(Raw::of(&n)),
                    ..call("c")
                }
                .into()
            };
            it.open(cx, with_input(1));
            it.open(cx, with_input(1));
            it.open(cx, with_input(2));
            it.update(cx, with_input(2));
            assert_eq!(it.open_tool(&ItemId::new("c")).unwrap().name, "Call");
            it.close_whole(cx, with_input(3), Status::Ok);
            it.close_whole(cx, with_input(4), Status::Ok);
        },
    );
}
