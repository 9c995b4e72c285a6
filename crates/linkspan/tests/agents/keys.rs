//! A first run with an empty home, and nothing but an API key in the environment.

use std::fs;
use std::path::Path;

use scripted_model::Turn;

use crate::prompts::HELLO;
use crate::world::{Call, Tests, World};

pub(crate) const TESTS: Tests = &[
    ("nothing but a key", |world| {
        only_a_key(world, Call::new("Say hello."));
    }),
    ("nothing but a key, talked with", |world| {
        only_a_key(world, Call::attended("Say hello."));
    }),
];

const KEY: &str = "sk-canary-5e1f09b2c4";

fn only_a_key(world: &World, call: Call<'_>) {
    let (variable, header) = match world.peer.engine {
        "claude" => ("ANTHROPIC_API_KEY", "x-api-key"),
        // It looks at this one only when it is told to.
        "codex" => ("OPENAI_API_KEY", "authorization"),
        other => panic!("{other} has no key here"),
    };
    leave_the_key_to_linkspan(world);
    world.script([Turn::text(HELLO)]);
    let ran = world.start(&call.env(variable, KEY)).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), HELLO);
    let used = format!("is not logged in, so it uses {variable}");
    assert!(ran.stderr.contains(&used), "{}", ran.stderr);
    let asked = world.asked();
    let has_key = asked[0].headers.iter().any(|it| it.0 == header);
    assert!(has_key, "{:?}", asked[0].headers);
    assert!(!ran.events.iter().any(|it| it.to_string().contains(KEY)));
    is_nowhere_below(&world.path("home"));
}

/// Takes everything about keys out of the config, so that the environment and the empty home decide.
fn leave_the_key_to_linkspan(world: &World) {
    let config = fs::read_to_string(world.path("config.toml")).unwrap();
    let config = config.replace("use_api_billing = true\n", "").replace(
        "scripted.env_key=\\\"DUMMY_KEY\\\"",
        "scripted.requires_openai_auth=true",
    );
    fs::write(world.path("config.toml"), config).unwrap();
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
