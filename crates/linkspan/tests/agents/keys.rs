//! A first run with an empty home, and nothing but an API key in the environment.

use std::fs;
use std::path::Path;

use scripted_model::Turn;

use crate::prompts::HELLO;
use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("nothing but a key", |test_env| {
        only_a_key(test_env, Call::new("Say hello."));
    }),
    ("nothing but a key, talked with", |test_env| {
        only_a_key(test_env, Call::attended("Say hello."));
    }),
];

const KEY: &str = "sk-canary-5e1f09b2c4";

fn only_a_key(test_env: &TestEnv, call: Call<'_>) {
    let (variable, header) = match test_env.peer.engine {
        "claude" => ("ANTHROPIC_API_KEY", "x-api-key"),
        // It looks at this one only when it is told to.
        "codex" => ("OPENAI_API_KEY", "authorization"),
        other => panic!("{other} has no key here"),
    };
    leave_the_key_to_linkspan(test_env);
    test_env.script([Turn::text(HELLO)]);
    let ran = test_env.start(&call.env(variable, KEY)).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    let used = format!("is not logged in, so it uses {variable}");
    assert!(ran.stderr.contains(&used), "{}", ran.stderr);
    let asked = test_env.asked();
    let has_key = asked[0].headers.iter().any(|it| it.0 == header);
    assert!(has_key, "{:?}", asked[0].headers);
    assert!(!ran.events.iter().any(|it| it.to_string().contains(KEY)));
    is_nowhere_below(&test_env.path("home"));
}

/// Takes everything about keys out of the config, so that the environment and the empty home decide.
fn leave_the_key_to_linkspan(test_env: &TestEnv) {
    let config = fs::read_to_string(test_env.path("config.toml")).unwrap();
    let config = config.replace("use_api_billing = true\n", "").replace(
        "scripted.env_key=\\\"DUMMY_KEY\\\"",
        "scripted.requires_openai_auth=true",
    );
    fs::write(test_env.path("config.toml"), config).unwrap();
}

/// The key is kept in memory alone: no file of the home has it, and nobody was logged in.
fn is_nowhere_below(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            is_nowhere_below(&path);
            continue;
        }
        assert_ne!(path.file_name().unwrap(), "auth.json");
        let bytes = fs::read(&path).unwrap();
        let has_key = bytes.windows(KEY.len()).any(|it| it == KEY.as_bytes());
        assert!(!has_key, "the key is in {}", path.display());
    }
}
