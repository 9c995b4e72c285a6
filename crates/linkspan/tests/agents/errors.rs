//! What the model's server refuses, and what breaks on the way.

use scripted_model::{Cut, HeaderName, HeaderValue, Scenario, StatusCode, Turn};

use crate::prompts::HELLO;
use crate::ran::Ran;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("a bad request", |world| {
        fails(world, hello(), refusal(StatusCode::BAD_REQUEST), WORDS);
    }),
    ("a bad request, talked with", |world| {
        let call = Call::attended("Say hello.");
        fails(world, call, refusal(StatusCode::BAD_REQUEST), WORDS);
    }),
    ("a key that is refused", |world| {
        let turn = refusal(StatusCode::UNAUTHORIZED);
        fails(world, hello(), turn, world.peer.no_key);
    }),
    ("an overloaded model that recovers", recovers),
    ("a model that fails for good", |world| {
        let turn = soon(refusal(StatusCode::INTERNAL_SERVER_ERROR));
        fails(world, hello(), turn, world.peer.gave_up);
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

fn fails(world: &World, call: Call<'_>, turn: Turn, words: &str) {
    world.server.set(Scenario::main([turn]).repeat_last());
    let ran = world.start(&call).end();
    ran.ended("failed", 1);
    assert!(ran.error().contains(words), "{}", ran.error());
}

fn recovers(world: &World) {
    let busy = soon(refusal(StatusCode::TOO_MANY_REQUESTS));
    world.script([busy, Turn::text(HELLO)]);
    let ran = world.start(&hello()).end();
    greeted(world, &ran);
}

fn breaks_off(world: &World) {
    world.script([
        Turn::text("These words break off in the middle.").cut_after_chunks(1, Cut::Drop),
        Turn::text(HELLO),
        Turn::text(HELLO),
    ]);
    let ran = world.start(&hello()).end();
    if world.peer.asks_again {
        return greeted(world, &ran);
    }
    ran.ended("failed", 1);
    assert_ne!(ran.error(), "");
    assert!("These words break off in the middle.".starts_with(ran.answer()));
}

fn greeted(world: &World, ran: &Ran) {
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    assert!(world.asked().len() > 1, "it did not try again");
}
