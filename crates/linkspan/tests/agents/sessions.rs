//! Sessions that go on: the log of the model's requests proves what the agent remembered.

use scripted_model::Turn;

use crate::finished_run::FinishedRun;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("a session is resumed", |test_env| {
        resumed(test_env, Call::new)
    }),
    ("a session is resumed, talked with", |test_env| {
        resumed(test_env, Call::attended);
    }),
    ("a session is forked", forked),
    ("the newest session is continued", continued),
    ("a session that does not exist", |test_env| {
        unknown(test_env, Call::new, test_env.peer.not_found);
    }),
    ("a session that does not exist, talked with", |test_env| {
        unknown(test_env, Call::attended, test_env.peer.unknown);
    }),
];

const SECRET: &str = "The secret word is xylophone.";

fn first(test_env: &TestEnv) -> FinishedRun {
    test_env.script([
        Turn::text("I shall remember the marimba."),
        Turn::text("Said again."),
    ]);
    let ran = test_env.start(&Call::new(SECRET)).end();
    ran.ended("completed", 0);
    (test_env.peer.age)(&test_env.path("home"));
    ran
}

/// The last thing that the model was asked holds all that was said before.
fn remembers(test_env: &TestEnv, ran: &FinishedRun) {
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "Said again.");
    let last = test_env.asked().pop().unwrap().body;
    for words in [SECRET, "I shall remember the marimba.", &ran.prompt] {
        assert!(last.contains(words), "the history lacks: {words}");
    }
}

fn resumed<'a>(test_env: &'a TestEnv, call: impl Fn(&'a str) -> Call<'a>) {
    let first = first(test_env);
    let call = call("What was the word?").flags(&["--resume", first.session()]);
    let ran = test_env.start(&call).end();
    remembers(test_env, &ran);
    assert_eq!(ran.session(), first.session());
}

fn forked(test_env: &TestEnv) {
    let first = first(test_env);
    let call = Call::new("What was the word?").flags(&["--fork", first.session()]);
    let ran = test_env.start(&call).end();
    remembers(test_env, &ran);
    assert_ne!(ran.session(), first.session());
}

fn continued(test_env: &TestEnv) {
    let first = first(test_env);
    let call = Call::new("What was the word?").flags(&["--continue"]);
    let ran = test_env.start(&call).end();
    remembers(test_env, &ran);
    assert_eq!(ran.session(), first.session());
    // The journal has one session for both.
    let kept = |it: &FinishedRun| it.events[0]["session"].clone();
    assert_eq!(kept(&ran), kept(&first));
    let n_events = first.events.len() as u64;
    assert_eq!(ran.events[0]["seq"].as_u64(), Some(n_events + 1));
}

fn unknown<'a>(test_env: &'a TestEnv, call: impl Fn(&'a str) -> Call<'a>, words: &str) {
    test_env.script([Turn::text("This must not be said.")]);
    let call = call("Go on.").flags(&["--resume", test_env.peer.unknown]);
    let ran = test_env.start(&call).end();
    ran.ended("failed", 1);
    assert_eq!(test_env.asked(), [], "it went on with another session");
    assert!(ran.error().contains(words), "{}", ran.error());
}
