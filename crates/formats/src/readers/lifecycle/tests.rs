//! The rules of the lifecycle that no recording reaches: bounds, ends and repetitions.

mod asks;
mod items;

use expect_test::{Expect, expect};
use model::{
    Ask, AskId, AskKind, Body, Cause, Channel, Class, Event, Item, ItemId, Message, Origin,
    Outcome, Raw, Role, RunEnded, RunError, RunId, RunStarted, SessionId, Text, Tool, ToolKind,
    Why,
};

use super::{FrameContext, Lifecycle, MAX_DENIALS};
use crate::readers::test_notation::event_line;
use crate::readers::{ReaderConfig, RunEnds};

/// What a lifecycle emits, a line for each event.
fn emitted(
    lifecycle: &mut Lifecycle,
    act: impl FnOnce(&mut Lifecycle, &mut FrameContext<'_>),
) -> String {
    let mut shown = String::new();
    let mut sink = |event: &Event<'_>| shown.push_str(&(event_line(event) + "\n"));
    act(lifecycle, &mut FrameContext::new(&mut sink));
    shown
}

/// Of an agent that takes one prompt.
fn one_run() -> Lifecycle {
    let config = ReaderConfig {
        run_ends: RunEnds::AtExit,
        ..ReaderConfig::default()
    };
    Lifecycle::new("test", &config)
}

fn check(expect: Expect, act: impl FnOnce(&mut Lifecycle, &mut FrameContext<'_>)) {
    expect.assert_eq(&emitted(&mut dialogue(), act));
}

/// Of an agent that takes one prompt after another.
fn dialogue() -> Lifecycle {
    let config = ReaderConfig {
        run_ends: RunEnds::AtResult,
        ..ReaderConfig::default()
    };
    Lifecycle::new("test", &config)
}

fn message(id: &'static str, text: &'static str) -> Item<'static> {
    Message::new(ItemId::new(id), Role::Assistant, Text::new(text)).into()
}

fn call(id: &'static str) -> Tool<'static> {
    let class = Class::plain(ToolKind::Other, Text::new("a call"));
    Tool::new(ItemId::new(id), "Call", class)
}

fn ask(id: &'static str, item: Option<&'static str>) -> Ask<'static> {
    Ask {
        id: AskId::new(id),
        kind: AskKind::Permission,
        item: item.map(ItemId::new),
        tool: "Call".into(),
        title: Text::new("May I?"),
        description: None,
        input: Some(Raw::of(&1)),
        suggestions: None,
        deadline: None,
    }
}

fn ended(outcome: Outcome) -> RunEnded<'static> {
    let error = RunError::new("process_exit", Text::new("the agent exited with 3"));
    RunEnded::new(outcome, Some(error))
}

#[test]
fn the_end_of_a_run_repeats_as_many_denials_as_may_be() {
    let mut lifecycle = dialogue();
    let mut n_denials = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body {
            n_denials.push(ended.denials.len());
        }
    };
    let mut cx = FrameContext::new(&mut sink);
    for n in [0, 1, MAX_DENIALS, MAX_DENIALS + 1] {
        lifecycle.start_run(&mut cx, Cause::Prompt);
        (0..n).for_each(|_| lifecycle.deny(&call("c")));
        lifecycle.end_run(&mut cx, ended(Outcome::Completed));
    }
    assert_eq!(n_denials, [0, 1, MAX_DENIALS, MAX_DENIALS]);
}

#[test]
fn last_words_explain_a_failure_that_linkspan_noticed() {
    let shown = |why, outcome| {
        emitted(&mut dialogue(), |it, cx| {
            it.start_run(cx, Cause::Prompt);
            it.plain_text_line(cx, "no such model");
            cx.because(why, |cx| it.end_run(cx, ended(outcome)));
        })
    };
    let is_explained = |why, outcome| shown(why, outcome).contains("exited with 3\\nno such model");
    for why in [Why::ProcessExit, Why::MissingEnd] {
        assert!(is_explained(Some(why), Outcome::Failed));
        assert!(is_explained(Some(why), Outcome::Lost));
        assert!(!is_explained(Some(why), Outcome::Aborted));
        assert!(!is_explained(Some(why), Outcome::Limit));
    }
    assert!(!is_explained(None, Outcome::Failed));
    assert!(!is_explained(Some(Why::LeftOpen), Outcome::Failed));
}

#[test]
fn last_words_are_those_since_the_last_message_and_bounded() {
    let mut lifecycle = dialogue();
    emitted(&mut lifecycle, |it, cx| {
        it.plain_text_line(cx, " one ");
        it.plain_text_line(cx, "two");
    });
    assert_eq!(lifecycle.last_words.as_deref(), Some("one\ntwo"));
    lifecycle.note_continued();
    assert_eq!(lifecycle.last_words, None);
    emitted(&mut lifecycle, |it, cx| {
        it.plain_text_line(cx, &"x".repeat(2040));
        it.plain_text_line(cx, "123456789");
        it.plain_text_line(cx, "lost");
    });
    let words = lifecycle.last_words.unwrap();
    assert_eq!(&words[2038..], "xx\n1234567");
}

#[test]
fn a_long_line_of_plain_words_is_cut_for_people_and_kept_whole() {
    let details = |line: &str| {
        let mut seen = Vec::new();
        let mut sink = |event: &Event<'_>| {
            let Body::NoticeRaised(notice) = &event.body else {
                panic!("{event:?}")
            };
            seen.push((
                notice.text.to_string(),
                notice.detail.as_ref().map(|it| it.get().len() - 2),
            ));
        };
        dialogue().plain_text_line(&mut FrameContext::new(&mut sink), line);
        seen
    };
    let x = |n: usize| "x".repeat(n);
    assert_eq!(
        details(&x(200)),
        [(format!("not JSON: {}", x(200)), Some(200))]
    );
    assert_eq!(
        details(&x(201)),
        [(format!("not JSON: {}…", x(200)), Some(201))]
    );
    let cut = format!("not JSON: {}…; 2 of its bytes are left out", x(200));
    assert_eq!(
        details(&x(super::MAX_KEPT + 2)),
        [(cut, Some(super::MAX_KEPT))]
    );
}

#[test]
fn a_line_after_the_end_is_kept_once_and_starts_nothing() {
    let mut lifecycle = one_run();
    let shown = emitted(&mut lifecycle, |it, cx| {
        it.start_run(cx, Cause::Prompt);
        it.end_run(cx, ended(Outcome::Completed));
        // Not a line: nothing is there to be kept.
        it.open(cx, message("m", ""));
        cx.message = r#"{"late":1}"#;
        it.open(cx, message("m", ""));
        it.start_run(cx, Cause::Prompt);
        it.delta(cx, &ItemId::new("m"), Channel::Text, Text::new("x"));
        it.ask(cx, ask("a", None));
        it.end_run(cx, ended(Outcome::Failed));
    });
    expect![[r#"
        run.started prompt
        run.ended completed error={crashed "the agent exited with 3"}
        notice debug after_end "a line after the end of the run"
    "#]]
    .assert_eq(&shown);
    assert!(lifecycle.has_ended() && lifecycle.is_over() && lifecycle.has_one_run());
}

#[test]
fn a_dialogue_begins_a_run_with_whatever_belongs_to_one() {
    let mut lifecycle = dialogue();
    assert!(!lifecycle.has_ended() && !lifecycle.has_run() && !lifecycle.has_one_run());
    let shown = emitted(&mut lifecycle, |it, cx| {
        it.open(cx, message("m", ""));
        assert!(it.has_run() && !it.has_ended());
        it.end_run(cx, ended(Outcome::Aborted));
        assert!(it.has_ended() && !it.is_over());
        it.ask(cx, ask("a", None));
        it.end_run(cx, ended(Outcome::Aborted));
    });
    expect![[r#"
        run.started prompt
        + message m "" role=assistant
        - cancelled message m "" role=assistant (left_open)
        run.ended aborted error={crashed "the agent exited with 3"}
        run.started prompt
        ask permission a "May I? 1" input=1 tool=Call
        ask.settled a withdrawn (left_open)
        run.ended aborted error={crashed "the agent exited with 3"}
    "#]]
    .assert_eq(&shown);
    assert_eq!(lifecycle.n_runs(), 2);
    lifecycle.expect_announced_turns();
    assert!(lifecycle.is_over());
}

#[test]
fn the_numbers_of_a_file_go_on_however_wild_they_are() {
    let next_seq = |seq: u64| {
        let mut seen = Vec::new();
        let mut sink = |event: &Event<'_>| seen.push(event.seq);
        let mut lifecycle = dialogue();
        lifecycle.adopt(&event(seq));
        let mut cx = FrameContext::new(&mut sink);
        lifecycle.start_run(&mut cx, Cause::Prompt);
        // Only where the numbers begin is taken over.
        lifecycle.adopt(&event(seq + 7));
        lifecycle.end_run(&mut cx, ended(Outcome::Completed));
        seen
    };
    assert_eq!(next_seq(0), [1, 2]);
    assert_eq!(next_seq(5), [5, 6]);
    let half = u64::MAX / 2;
    assert_eq!(next_seq(u64::MAX - 7), [half + 1, half + 2]);
}

#[test]
fn the_names_of_a_file_are_taken_over() {
    let mut seen = Vec::new();
    let mut sink = |event: &Event<'_>| {
        let run = event.run.as_ref().map(ToString::to_string);
        seen.push((event.session.to_string(), event.engine.to_string(), run));
    };
    let mut lifecycle = dialogue();
    lifecycle.adopt(&event(1));
    lifecycle.start_run(&mut FrameContext::new(&mut sink), Cause::Prompt);
    let name = |it: &str| it.to_owned();
    assert_eq!(seen, [(name("other"), name("other"), Some(name("r7")))]);
}

#[test]
fn a_text_of_a_subagent_and_an_empty_one_are_no_answers() {
    let mut lifecycle = dialogue();
    let mut sink = |_: &Event<'_>| ();
    let mut cx = FrameContext::new(&mut sink);
    lifecycle.note_answer(&cx, &Text::new("the answer"));
    lifecycle.note_answer(&cx, &Text::EMPTY);
    let path = [ItemId::new("agent")];
    cx.inside(&path, |cx| {
        lifecycle.note_answer(cx, &Text::new("a report"))
    });
    assert_eq!(lifecycle.answer, Some(Text::new("the answer")));
}

/// Of another session, engine and run than the lifecycle's own.
fn event(seq: u64) -> Event<'static> {
    Event {
        seq,
        at: None,
        session: SessionId::new("other"),
        run: Some(RunId::new("r7")),
        engine: "other".into(),
        path: Vec::new().into(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Vec::new().into(),
        body: Body::RunStarted(RunStarted::new(Cause::Prompt)),
    }
}
