//! Who may do what: asked on a terminal, or decided beforehand.

use scripted_model::{Block, Turn};

use crate::ran::Ran;
use crate::running::Running;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("a permission is asked for and given", given),
    ("a permission is asked for and refused", refused),
    ("everything is allowed", allowed),
    ("nothing is allowed", denied),
];

const TOUCH: &str = "touch made.txt";

fn script(world: &World, call: Block) {
    world.script([Turn::of([call]), Turn::text("That was it.")]);
}

fn asked(world: &World, answer: impl Fn(&mut Running<'_>)) -> Ran {
    script(world, (world.peer.asking)(TOUCH));
    let mut running = world.start(&Call::attended("Make a file."));
    running.wait_for("the question", |it| it["type"] == "ask.opened");
    assert!(
        !world.file("made.txt").exists(),
        "it did not wait for the answer"
    );
    // What is typed before the question is put does not answer it.
    running.wait_for_word("[y] allow once");
    answer(&mut running);
    running.end()
}

fn given(world: &World) {
    let ran = asked(world, |it| it.answer("y"));
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "That was it.");
    assert!(world.file("made.txt").exists());
    let decisions: Vec<_> = ran.of("ask.settled").map(|it| &it["decision"]).collect();
    assert_eq!(decisions, ["allowed"]);
    assert_eq!(ran.calls()[0].0, "ok");
}

fn refused(world: &World) {
    let ran = asked(world, |it| {
        it.answer("n");
        it.wait_for_word("why not?");
        it.answer("not in this house");
    });
    ran.ended("completed", 0);
    assert!(!world.file("made.txt").exists());
    let decisions: Vec<_> = ran.of("ask.settled").map(|it| &it["decision"]).collect();
    assert_eq!(decisions, ["denied"]);
    assert_eq!(ran.calls()[0].0, "denied");
}

fn allowed(world: &World) {
    script(world, (world.peer.shell)(TOUCH));
    let ran = world.start(&Call::new("Make a file.")).end();
    ran.ended("completed", 0);
    assert!(world.file("made.txt").exists());
    assert_eq!(ran.of("ask.opened").count(), 0);
}

fn denied(world: &World) {
    script(world, (world.peer.shell)(TOUCH));
    let flags = ["--permissions", "deny"];
    let ran = world.start(&Call::with("Make a file.", &flags)).end();
    ran.ended("completed", 0);
    assert!(!world.file("made.txt").exists());
    assert_eq!(ran.answer(), "That was it.");
}
