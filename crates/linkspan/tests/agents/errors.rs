//! What the model's server refuses, and what breaks on the way.

use scripted_model::{Cut, HeaderName, HeaderValue, Scenario, StatusCode, Turn};

use crate::finished_run::FinishedRun;
use crate::prompts::HELLO;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("a bad request", |test_env| {
        fails(test_env, hello(), refusal(StatusCode::BAD_REQUEST), WORDS);
    }),
    ("a bad request, talked with", |test_env| {
        let call = Call::attended("Say hello.");
        fails(test_env, call, refusal(StatusCode::BAD_REQUEST), WORDS);
    }),
    ("a key that is refused", |test_env| {
        let turn = refusal(StatusCode::UNAUTHORIZED);
        fails(test_env, hello(), turn, test_env.peer.no_key);
    }),
    ("an overloaded model that recovers", recovers),
    ("a model that fails for good", |test_env| {
        let turn = soon(refusal(StatusCode::INTERNAL_SERVER_ERROR));
        fails(test_env, hello(), turn, test_env.peer.gave_up);
    }),
    ("an answer that breaks off", breaks_off),
];

/// What the server says.
pub(crate) const WORDS: &str = "the scripted reason";

fn refusal(status: StatusCode) -> Turn {
    Turn::error(status, WORDS)
}

/// Agents wait for seconds before they try again, unless they are told otherwise.
fn soon(turn: Turn) -> Turn {
    let header = |name| HeaderName::from_static(name);
    turn.header(header("retry-after"), HeaderValue::from_static("1"))
        .header(header("retry-after-ms"), HeaderValue::from_static("100"))
}

fn hello() -> Call<'static> {
    Call::new("Say hello.")
}

fn fails(test_env: &TestEnv, call: Call<'_>, turn: Turn, words: &str) {
    test_env.server.set(Scenario::main([turn]).repeat_last());
    let ran = test_env.start(&call).end();
    ran.ended("failed", 1);
    assert!(ran.error().contains(words), "{}", ran.error());
}

fn recovers(test_env: &TestEnv) {
    let busy = soon(refusal(StatusCode::TOO_MANY_REQUESTS));
    test_env.script([busy, Turn::text(HELLO)]);
    let ran = test_env.start(&hello()).end();
    greeted(test_env, &ran);
}

fn breaks_off(test_env: &TestEnv) {
    test_env.script([
        Turn::text("These words break off in the middle.").cut_after_chunks(1, Cut::Drop),
        Turn::text(HELLO),
        Turn::text(HELLO),
    ]);
    let ran = test_env.start(&hello()).end();
    if test_env.peer.asks_again {
        return greeted(test_env, &ran);
    }
    ran.ended("failed", 1);
    assert_ne!(ran.error(), "");
    assert!("These words break off in the middle.".starts_with(ran.answer()));
}

fn greeted(test_env: &TestEnv, ran: &FinishedRun) {
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    assert!(test_env.asked().len() > 1, "it did not try again");
}
