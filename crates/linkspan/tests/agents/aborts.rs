//! Ctrl-C, at every bad moment.

use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use scripted_model::{Block, Turn};

use crate::running::Running;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("an abort before the first word", |test_env| {
        before_the_first_word(test_env, Call::new);
    }),
    ("an abort before the first word, talked with", |test_env| {
        before_the_first_word(test_env, Call::attended);
    }),
    ("an abort during a text", |test_env| {
        during_a_text(test_env, Call::new)
    }),
    ("an abort during a text, talked with", |test_env| {
        during_a_text(test_env, Call::attended);
    }),
    ("an abort during a tool", during_a_tool),
    (
        "an abort during a tool, talked with",
        during_an_allowed_tool,
    ),
    ("an abort during a question", during_a_question),
    ("a second Ctrl-C", twice),
];

/// Nobody waits longer than this for an agent that was told to stop.
const SOON: Duration = Duration::from_secs(12);

fn stopped(running: Running<'_>) {
    let began = Instant::now();
    running.interrupt();
    running.end().ended("aborted", 130);
    let took = began.elapsed();
    assert!(took < SOON, "it took {took:?} to stop");
}

fn before_the_first_word<'a>(test_env: &'a TestEnv, call: impl Fn(&'a str) -> Call<'a>) {
    test_env.script([Turn::text("Too late.").delay(Duration::from_secs(120))]);
    let running = test_env.start(&call("Think long."));
    test_env.wait_for_requests(1);
    stopped(running);
}

/// Words that go on for minutes.
fn endless() -> Turn {
    let words = Turn::of([Block::text("tick ".repeat(2_000))]);
    let chunk = NonZeroUsize::new(5).unwrap();
    words.chunk(chunk).pace(Duration::from_millis(50))
}

fn during_a_text<'a>(test_env: &'a TestEnv, call: impl Fn(&'a str) -> Call<'a>) {
    test_env.script([endless()]);
    let call = call("Count the ticks.");
    let streams = call.is_attended() || test_env.peer.streams;
    let mut running = test_env.start(&call);
    if streams {
        running.wait_for("some text", |it| {
            it["type"] == "item.delta" && it["data"]["channel"] == "text"
        });
    } else {
        // It shows whole messages only; the model has said some words by then.
        test_env.wait_for_requests(1);
        thread::sleep(Duration::from_millis(500));
    }
    stopped(running);
}

/// A command that says when it runs, and never ends by itself.
pub(crate) const STAY: &str = "touch started; tail -f /dev/null";

fn during_a_tool(test_env: &TestEnv) {
    test_env.script([
        Turn::of([(test_env.peer.shell)(STAY)]),
        Turn::text("Too late."),
    ]);
    let running = test_env.start(&Call::new("Start something that stays."));
    test_env.wait_for_file("started");
    stopped(running);
}

fn run_with_ask(test_env: &TestEnv) -> Running<'_> {
    test_env.script([
        Turn::of([(test_env.peer.asking)(STAY)]),
        Turn::text("Too late."),
    ]);
    let mut running = test_env.start(&Call::attended("Start something that stays."));
    running.wait_for("the question", |it| it["type"] == "ask.opened");
    running
}

fn during_an_allowed_tool(test_env: &TestEnv) {
    let mut running = run_with_ask(test_env);
    running.wait_for_text("[y] allow once");
    running.answer("y");
    test_env.wait_for_file("started");
    stopped(running);
}

fn during_a_question(test_env: &TestEnv) {
    stopped(run_with_ask(test_env));
    assert!(!test_env.file("started").exists(), "nobody allowed it");
}

fn twice(test_env: &TestEnv) {
    test_env.script([
        Turn::of([(test_env.peer.shell)(STAY)]),
        Turn::text("Too late."),
    ]);
    let running = test_env.start(&Call::new("Start something that stays."));
    test_env.wait_for_file("started");
    running.interrupt();
    let began = Instant::now();
    running.wait_for_text("a second signal kills it");
    running.interrupt();
    running.end().ended("aborted", 130);
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "it was not killed at once"
    );
}
