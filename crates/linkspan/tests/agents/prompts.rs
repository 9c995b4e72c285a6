//! Prompts of every kind, and an answer.

use scripted_model::Turn;
use serde_json::Value;

use crate::ran::Ran;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("a text", |world| text(world, Call::new("Say hello."))),
    ("a text, talked with", |world| {
        text(world, Call::attended("Say hello."));
    }),
    ("a prompt that begins with a dash", |world| {
        arrives(world, "--model is a flag, and -p is one too", Call::new);
    }),
    ("a prompt in many scripts", |world| {
        let prompt = "Grüße, \"世界\" — שלום 'мир' $HOME `id` \\n 👩‍🚀\u{2028}नमस्ते\n\ttwo lines";
        arrives(world, prompt, Call::new);
    }),
    ("a prompt of a megabyte", |world| {
        arrives(world, &megabyte(), Call::new);
    }),
    ("a prompt of a megabyte, talked with", |world| {
        arrives(world, &megabyte(), Call::attended);
    }),
];

pub(crate) const HELLO: &str = "Hello from the scripted model.";

fn text(world: &World, call: Call<'_>) {
    world.script([Turn::text(HELLO)]);
    let ran = world.start(&call).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    assert_ne!(ran.session(), "");
}

/// The model is asked exactly what the user has said.
fn arrives<'a>(world: &'a World, prompt: &'a str, call: impl Fn(&'a str) -> Call<'a>) {
    world.script([Turn::text(HELLO)]);
    let ran: Ran = world.start(&call(prompt)).end();
    ran.ended("completed", 0);
    let body = &world.asked()[0].body;
    let body: Value = serde_json::from_str(body).unwrap();
    assert!(says(&body, prompt), "the model was not asked that");
    assert_eq!(ran.answer(), HELLO);
}

/// Whether a text in it is this one. Agents may add a line of their own at its end.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(it) => it.trim_end() == text,
        Value::Array(it) => it.iter().any(|it| says(it, text)),
        Value::Object(it) => it.values().any(|it| says(it, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn megabyte() -> String {
    // Ten bytes; Codex takes no more than a MiB.
    let line = "A long é\n";
    format!("{}The end.", line.repeat(99_999))
}
