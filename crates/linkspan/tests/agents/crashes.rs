//! An agent that is killed in the middle of its work.

use scripted_model::Turn;

use crate::aborts::STAY;
use crate::running::Running;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("a killed agent, and the next prompt", |test_env| {
        test_env.script([Turn::of([(test_env.peer.shell)(STAY)])]);
        killed(test_env, test_env.start(&Call::new(PROMPT)));
    }),
    (
        "a killed agent, talked with, and the next prompt",
        |test_env| {
            test_env.script([Turn::of([(test_env.peer.asking)(STAY)])]);
            let mut running = test_env.start(&Call::attended(PROMPT));
            running.wait_for("the question", |it| it["type"] == "ask.opened");
            running.wait_for_text("[y] allow once");
            running.answer("y");
            killed(test_env, running);
        },
    ),
];

const PROMPT: &str = "Start something that stays.";

fn killed(test_env: &TestEnv, mut running: Running<'_>) {
    test_env.wait_for_file("started");
    running.wait_for("the session", |it| it["type"] == "session.bound");
    running.kill_agent();
    let ran = running.end();
    ran.ended("failed", 1);
    assert!(ran.error().contains("signal 9"), "{}", ran.error());

    test_env.script([Turn::text("Here I am again.")]);
    let call = Call::new("Are you there?").flags(&["--resume", ran.session()]);
    let next = test_env.start(&call).end();
    next.ended("completed", 0);
    assert_eq!(next.answer(), "Here I am again.");
    let last = test_env.asked().pop().unwrap().body;
    assert!(last.contains(PROMPT), "it forgot what was before");
}
