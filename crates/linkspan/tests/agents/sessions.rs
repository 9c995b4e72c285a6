//! Sessions that go on: the log of the model's requests proves what the agent remembered.

use scripted_model::Turn;

use crate::ran::Ran;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("a session is resumed", |world| resumed(world, Call::new)),
    ("a session is resumed, talked with", |world| {
        resumed(world, Call::attended);
    }),
    ("a session is forked", forked),
    ("the newest session is continued", continued),
    ("a session that does not exist", |world| {
        unknown(world, Call::new, world.peer.not_found);
    }),
    ("a session that does not exist, talked with", |world| {
        unknown(world, Call::attended, world.peer.unknown);
    }),
];

const SECRET: &str = "The secret word is xylophone.";

fn first(world: &World) -> Ran {
    world.script([
        Turn::text("I shall remember the marimba."),
        Turn::text("Said again."),
    ]);
    let ran = world.start(&Call::new(SECRET)).end();
    ran.ended("completed", 0);
    (world.peer.age)(&world.path("home"));
    ran
}

/// The last thing that the model was asked holds all that was said before.
fn remembers(world: &World, ran: &Ran) {
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "Said again.");
    let last = world.asked().pop().unwrap().body;
    for words in [SECRET, "I shall remember the marimba.", &ran.prompt] {
        assert!(last.contains(words), "the history lacks: {words}");
    }
}

fn resumed<'a>(world: &'a World, call: impl Fn(&'a str) -> Call<'a>) {
    let first = first(world);
    let call = call("What was the word?").flags(&["--resume", first.session()]);
    let ran = world.start(&call).end();
    remembers(world, &ran);
    assert_eq!(ran.session(), first.session());
}

fn forked(world: &World) {
    let first = first(world);
    let call = Call::new("What was the word?").flags(&["--fork", first.session()]);
    let ran = world.start(&call).end();
    remembers(world, &ran);
    assert_ne!(ran.session(), first.session());
}

fn continued(world: &World) {
    let first = first(world);
    let call = Call::new("What was the word?").flags(&["--continue"]);
    let ran = world.start(&call).end();
    remembers(world, &ran);
    assert_eq!(ran.session(), first.session());
    // The journal has one session for both.
    let kept = |it: &Ran| it.events[0]["session"].clone();
    assert_eq!(kept(&ran), kept(&first));
    let n_events = first.events.len() as u64;
    assert_eq!(ran.events[0]["seq"].as_u64(), Some(n_events + 1));
}

fn unknown<'a>(world: &'a World, call: impl Fn(&'a str) -> Call<'a>, words: &str) {
    world.script([Turn::text("This must not be said.")]);
    let call = call("Go on.").flags(&["--resume", world.peer.unknown]);
    let ran = world.start(&call).end();
    ran.ended("failed", 1);
    assert_eq!(world.asked(), [], "it went on with another session");
    assert!(ran.error().contains(words), "{}", ran.error());
}
