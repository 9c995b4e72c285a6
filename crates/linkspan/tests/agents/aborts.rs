//! Ctrl-C, at every bad moment.

use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use scripted_model::{Block, Turn};

use crate::running::Running;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("an abort before the first word", |world| {
        before_the_first_word(world, Call::new);
    }),
    ("an abort before the first word, talked with", |world| {
        before_the_first_word(world, Call::attended);
    }),
    ("an abort during a text", |world| {
        during_a_text(world, Call::new)
    }),
    ("an abort during a text, talked with", |world| {
        during_a_text(world, Call::attended);
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

fn before_the_first_word<'a>(world: &'a World, call: impl Fn(&'a str) -> Call<'a>) {
    world.script([Turn::text("Too late.").delay(Duration::from_secs(120))]);
    let running = world.start(&call("Think long."));
    world.wait_for_requests(1);
    stopped(running);
}

/// Words that go on for minutes.
fn endless() -> Turn {
    let words = Turn::of([Block::text("tick ".repeat(2_000))]);
    let chunk = NonZeroUsize::new(5).unwrap();
    words.chunk(chunk).pace(Duration::from_millis(50))
}

fn during_a_text<'a>(world: &'a World, call: impl Fn(&'a str) -> Call<'a>) {
    world.script([endless()]);
    let call = call("Count the ticks.");
    let streams = call.is_attended() || world.peer.streams;
    let mut running = world.start(&call);
    if streams {
        running.wait_for("some text", |it| {
            it["type"] == "item.delta" && it["data"]["channel"] == "text"
        });
    } else {
        // It shows whole messages only; the model has said some words by then.
        world.wait_for_requests(1);
        thread::sleep(Duration::from_millis(500));
    }
    stopped(running);
}

/// A command that says when it runs, and never ends by itself.
pub(crate) const STAY: &str = "touch started; tail -f /dev/null";

fn during_a_tool(world: &World) {
    world.script([
        Turn::of([(world.peer.shell)(STAY)]),
        Turn::text("Too late."),
    ]);
    let running = world.start(&Call::new("Start something that stays."));
    world.wait_for_file("started");
    stopped(running);
}

fn asked(world: &World) -> Running<'_> {
    world.script([
        Turn::of([(world.peer.asking)(STAY)]),
        Turn::text("Too late."),
    ]);
    let mut running = world.start(&Call::attended("Start something that stays."));
    running.wait_for("the question", |it| it["type"] == "ask.opened");
    running
}

fn during_an_allowed_tool(world: &World) {
    let mut running = asked(world);
    running.wait_for_word("[y] allow once");
    running.answer("y");
    world.wait_for_file("started");
    stopped(running);
}

fn during_a_question(world: &World) {
    stopped(asked(world));
    assert!(!world.file("started").exists(), "nobody allowed it");
}

fn twice(world: &World) {
    world.script([
        Turn::of([(world.peer.shell)(STAY)]),
        Turn::text("Too late."),
    ]);
    let running = world.start(&Call::new("Start something that stays."));
    world.wait_for_file("started");
    running.interrupt();
    let began = Instant::now();
    running.wait_for_word("once more kills it");
    running.interrupt();
    running.end().ended("aborted", 130);
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "it was not killed at once"
    );
}
