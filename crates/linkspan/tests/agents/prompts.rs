//! Prompts of every kind, and an answer.

use scripted_model::Turn;
use serde_json::Value;

use crate::finished_run::FinishedRun;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("a text", |test_env| text(test_env, Call::new("Say hello."))),
    ("a text, talked with", |test_env| {
        text(test_env, Call::attended("Say hello."));
    }),
    ("a prompt that begins with a dash", |test_env| {
        arrives(test_env, "--model is a flag, and -p is one too", Call::new);
    }),
    ("a prompt in many scripts", |test_env| {
        let prompt = "Grüße, \"世界\" — שלום 'мир' $HOME `id` \\n 👩‍🚀\u{2028}नमस्ते\n\ttwo lines";
        arrives(test_env, prompt, Call::new);
    }),
    ("a prompt of a megabyte", |test_env| {
        arrives(test_env, &megabyte(), Call::new);
    }),
    ("a prompt of a megabyte, talked with", |test_env| {
        arrives(test_env, &megabyte(), Call::attended);
    }),
];

pub(crate) const HELLO: &str = "Hello from the scripted model.";

fn text(test_env: &TestEnv, call: Call<'_>) {
    test_env.script([Turn::text(HELLO)]);
    let ran = test_env.start(&call).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    assert_ne!(ran.session(), "");
}

/// The model is asked exactly what the user has said.
fn arrives<'a>(test_env: &'a TestEnv, prompt: &'a str, call: impl Fn(&'a str) -> Call<'a>) {
    test_env.script([Turn::text(HELLO)]);
    let ran: FinishedRun = test_env.start(&call(prompt)).end();
    ran.ended("completed", 0);
    let body = &test_env.asked()[0].body;
    let body: Value = serde_json::from_str(body).unwrap();
    assert!(contains_text(&body, prompt), "the model was not asked that");
    assert_eq!(ran.answer(), HELLO);
}

/// Whether a text in it is this one. Agents may add a line of their own at its end.
fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(it) => it.trim_end() == text,
        Value::Array(it) => it.iter().any(|it| contains_text(it, text)),
        Value::Object(it) => it.values().any(|it| contains_text(it, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn megabyte() -> String {
    // Ten bytes; Codex takes no more than a MiB.
    let line = "A long é\n";
    format!("{}The end.", line.repeat(99_999))
}
