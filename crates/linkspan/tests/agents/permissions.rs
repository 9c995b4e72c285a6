//! Who may do what: asked on a terminal, or decided beforehand.

use scripted_model::{Block, Turn};

use crate::finished_run::FinishedRun;
use crate::running::Running;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("a permission is asked for and given", given),
    ("a permission is asked for and refused", refused),
    ("everything is allowed", allowed),
    ("nothing is allowed", denied),
];

const TOUCH: &str = "touch made.txt";

fn script(test_env: &TestEnv, call: Block) {
    test_env.script([Turn::of([call]), Turn::text("That was it.")]);
}

fn run_with_answer(test_env: &TestEnv, answer: impl Fn(&mut Running<'_>)) -> FinishedRun {
    script(test_env, (test_env.peer.asking)(TOUCH));
    let mut running = test_env.start(&Call::attended("Make a file."));
    running.wait_for("the question", |it| it["type"] == "ask.opened");
    assert!(
        !test_env.file("made.txt").exists(),
        "it did not wait for the answer"
    );
    // What is typed before the question is put does not answer it.
    running.wait_for_text("[y] allow once");
    answer(&mut running);
    running.end()
}

fn given(test_env: &TestEnv) {
    let ran = run_with_answer(test_env, |it| it.answer("y"));
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "That was it.");
    assert!(test_env.file("made.txt").exists());
    let decisions: Vec<_> = ran.of("ask.settled").map(|it| &it["decision"]).collect();
    assert_eq!(decisions, ["allowed"]);
    assert_eq!(ran.calls()[0].0, "ok");
}

fn refused(test_env: &TestEnv) {
    let ran = run_with_answer(test_env, |it| {
        it.answer("n");
        it.wait_for_text("why not?");
        it.answer("not in this house");
    });
    ran.ended("completed", 0);
    assert!(!test_env.file("made.txt").exists());
    let decisions: Vec<_> = ran.of("ask.settled").map(|it| &it["decision"]).collect();
    assert_eq!(decisions, ["denied"]);
    assert_eq!(ran.calls()[0].0, "denied");
}

fn allowed(test_env: &TestEnv) {
    script(test_env, (test_env.peer.shell)(TOUCH));
    let ran = test_env.start(&Call::new("Make a file.")).end();
    ran.ended("completed", 0);
    assert!(test_env.file("made.txt").exists());
    assert_eq!(ran.of("ask.opened").count(), 0);
}

fn denied(test_env: &TestEnv) {
    script(test_env, (test_env.peer.shell)(TOUCH));
    let flags = ["--permissions", "deny"];
    let ran = test_env.start(&Call::with("Make a file.", &flags)).end();
    ran.ended("completed", 0);
    assert!(!test_env.file("made.txt").exists());
    assert_eq!(ran.answer(), "That was it.");
}
