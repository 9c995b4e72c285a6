//! An agent that is killed in the middle of its work.

use scripted_model::Turn;

use crate::aborts::STAY;
use crate::running::Running;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("a killed agent, and the next prompt", |world| {
        world.script([Turn::of([(world.peer.shell)(STAY)])]);
        killed(world, world.start(&Call::new(PROMPT)));
    }),
    (
        "a killed agent, talked with, and the next prompt",
        |world| {
            world.script([Turn::of([(world.peer.asking)(STAY)])]);
            let mut running = world.start(&Call::attended(PROMPT));
            running.wait_for("the question", |it| it["type"] == "ask.opened");
            running.wait_for_word("[y] allow once");
            running.answer("y");
            killed(world, running);
        },
    ),
];

const PROMPT: &str = "Start something that stays.";

fn killed(world: &World, mut running: Running<'_>) {
    world.wait_for_file("started");
    running.wait_for("the session", |it| it["type"] == "session.bound");
    running.kill_agent();
    let ran = running.end();
    ran.ended("failed", 1);
    assert!(ran.error().contains("signal 9"), "{}", ran.error());

    world.script([Turn::text("Here I am again.")]);
    let call = Call::new("Are you there?").flags(&["--resume", ran.session()]);
    let next = world.start(&call).end();
    next.ended("completed", 0);
    assert_eq!(next.answer(), "Here I am again.");
    let last = world.asked().pop().unwrap().body;
    assert!(last.contains(PROMPT), "it forgot what was before");
}
