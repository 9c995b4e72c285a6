//! How each agent is pointed at the scripted model, and what its tools are called.
//!
//! `docs/scripted-model.md` has the same as shell commands.

use std::fs;
use std::path::Path;

use scripted_model::Block;
use serde_json::json;

use crate::errors::WORDS;
use crate::test_env::{TestEnv, program, python};

pub(crate) struct Peer {
    pub(crate) engine: &'static str,
    /// The slowest is started first.
    pub(crate) slowness: u32,
    /// The config that linkspan is given.
    pub(crate) config: fn(&TestEnv) -> String,
    /// What the environment holds for it, given the address of the model.
    pub(crate) env: fn(&str) -> Vec<(String, String)>,
    /// What its home has to hold.
    pub(crate) furnish: fn(&Path),
    /// Makes the sessions in its home a minute older.
    pub(crate) age: fn(&Path),
    /// Whether one prompt shows text as it is written; all do when they are talked with.
    pub(crate) streams: bool,
    /// A session that it never had, and what is said about it.
    pub(crate) unknown: &'static str,
    pub(crate) not_found: &'static str,
    /// What it says when the model's server keeps failing with [`WORDS`].
    pub(crate) gave_up: &'static str,
    /// What it says when that server does not take the key, with [`WORDS`].
    pub(crate) no_key: &'static str,
    /// Whether it asks again when an answer breaks off.
    pub(crate) asks_again: bool,
    /// A call that fails, and what is said about it.
    pub(crate) failing: fn() -> (Block, &'static str),
    /// The model's call of a command that somebody has to allow.
    pub(crate) asking: fn(&str) -> Block,
    /// The model's call of a command.
    pub(crate) shell: fn(&str) -> Block,
}

/// In the order of the table's columns.
pub(crate) const PEERS: [Peer; 5] = [
    Peer {
        engine: "claude",
        slowness: 1,
        config: |_| {
            config(
                "claude",
                "use_api_billing = true\n\
                 [engines.claude.env]\n\
                 CLAUDE_CODE_MAX_RETRIES = \"1\"\n\
                 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\"\n\
                 # It runs as root in a container, where it refuses to be allowed everything.\n\
                 IS_SANDBOX = \"1\"\n",
            )
        },
        env: |url| pairs(&[("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "dummy")]),
        furnish: |_| (),
        age: |_| (),
        streams: true,
        unknown: "00000000-0000-4000-8000-000000000000",
        not_found: "No conversation found",
        gave_up: WORDS,
        no_key: WORDS,
        asks_again: true,
        failing: || (claude_shell(BREAK), "broken"),
        asking: claude_shell,
        shell: claude_shell,
    },
    Peer {
        engine: "codex",
        slowness: 2,
        config: |test_env| config("codex", &codex_args(&test_env.server.url())),
        env: |_| pairs(&[("DUMMY_KEY", "dummy")]),
        furnish: |_| (),
        age: |_| (),
        streams: false,
        unknown: "00000000-0000-4000-8000-000000000000",
        not_found: "no rollout found",
        gave_up: "experiencing high demand",
        no_key: WORDS,
        asks_again: true,
        failing: || (codex_shell(BREAK), "broken"),
        // It is up to the model to ask for what the sandbox forbids.
        asking: |command| {
            let input = json!({
                "cmd": command,
                "sandbox_permissions": "require_escalated",
                "justification": "it writes a file",
            });
            Block::tool("exec_command", &input)
        },
        shell: codex_shell,
    },
    Peer {
        engine: "opencode",
        slowness: 4,
        config: |_| config("opencode", "model = \"scripted/m1\"\n"),
        env: |url| {
            pairs(&[
                ("OPENCODE_CONFIG_CONTENT", &opencode_config(url)),
                ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ])
        },
        furnish: |_| (),
        age: |_| (),
        streams: false,
        unknown: "ses_00000000000000000000000000",
        not_found: "Session not found",
        gave_up: WORDS,
        no_key: WORDS,
        asks_again: true,
        failing: || (opencode_shell(BREAK), "broken"),
        asking: opencode_shell,
        shell: opencode_shell,
    },
    Peer {
        engine: "gemini",
        slowness: 3,
        config: |_| config("gemini", "model = \"gemini-2.5-flash\"\n"),
        env: |url| pairs(&[("GOOGLE_GEMINI_BASE_URL", url), ("GEMINI_API_KEY", "dummy")]),
        furnish: |home| {
            // Without it the key is not accepted for an address of one's own.
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"maxAttempts": 2, "enableAutoUpdate": false},
            });
            fs::create_dir_all(home.join(".gemini")).unwrap();
            fs::write(home.join(".gemini/settings.json"), settings.to_string()).unwrap();
        },
        age: age_gemini,
        streams: true,
        unknown: "00000000-0000-4000-8000-000000000000",
        not_found: "Error resuming session",
        gave_up: WORDS,
        no_key: WORDS,
        asks_again: false,
        failing: || {
            // It says nothing of the exit code of a command.
            let input = json!({"file_path": "missing.txt"});
            (Block::tool("read_file", &input), "not found")
        },
        asking: gemini_shell,
        shell: gemini_shell,
    },
    Peer {
        engine: "openhands",
        slowness: 5,
        config: |_| {
            let python = python().unwrap_or_default();
            format!("start_timeout = 0\n[engines.openhands]\nprogram = {python:?}\n")
        },
        env: |url| {
            pairs(&[
                ("LLM_MODEL", "openai/scripted"),
                ("LLM_BASE_URL", &format!("{url}/v1")),
                ("LLM_API_KEY", "dummy"),
                ("LLM_NUM_RETRIES", "2"),
                ("LLM_RETRY_MIN_WAIT", "0"),
                ("LLM_RETRY_MAX_WAIT", "1"),
            ])
        },
        furnish: |_| (),
        age: |_| (),
        streams: true,
        unknown: "00000000-0000-4000-8000-000000000000",
        not_found: "there is no conversation",
        gave_up: WORDS,
        no_key: "Your LLM API key appears to be invalid",
        asks_again: true,
        failing: || {
            // To OpenHands a command that fails is a tool that works.
            let input = json!({"command": "view", "path": "/nowhere/missing.txt"});
            (Block::tool("file_editor", &input), "does not exist")
        },
        asking: openhands_shell,
        shell: openhands_shell,
    },
];

const BREAK: &str = "echo broken >&2; exit 3";

fn claude_shell(command: &str) -> Block {
    Block::tool(
        "Bash",
        &json!({"command": command, "description": "try it"}),
    )
}

fn codex_shell(command: &str) -> Block {
    Block::tool("exec_command", &json!({"cmd": command}))
}

fn opencode_shell(command: &str) -> Block {
    Block::tool(
        "bash",
        &json!({"command": command, "description": "try it"}),
    )
}

fn gemini_shell(command: &str) -> Block {
    Block::tool(
        "run_shell_command",
        &json!({"command": command, "description": "try it"}),
    )
}

fn openhands_shell(command: &str) -> Block {
    Block::tool("terminal", &json!({"command": command}))
}

fn config(engine: &str, rest: &str) -> String {
    let program = program(engine);
    format!("start_timeout = 0\n[engines.{engine}]\nprogram = {program:?}\n{rest}")
}

fn codex_args(url: &str) -> String {
    let base_url = format!("model_providers.scripted.base_url=\"{url}/v1\"");
    let settings = [
        "model=\"gpt-5.5\"",
        "model_provider=\"scripted\"",
        "model_providers.scripted.name=\"scripted\"",
        &base_url,
        "model_providers.scripted.env_key=\"DUMMY_KEY\"",
        "model_providers.scripted.wire_api=\"responses\"",
        "model_providers.scripted.request_max_retries=1",
        "model_providers.scripted.stream_max_retries=1",
        "analytics.enabled=false",
    ];
    let args = settings.iter().flat_map(|it| ["-c", it]);
    format!("args = {:?}\n", args.collect::<Vec<_>>())
}

fn opencode_config(url: &str) -> String {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("{url}/v1"), "apiKey": "dummy"},
        "models": {"m1": {"limit": {"context": 1_000_000, "output": 8_000}}},
    });
    let config = json!({
        "provider": {"scripted": provider},
        // When it is talked with it prefers a model of its vendor.
        "enabled_providers": ["scripted"],
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "autoupdate": false,
        "share": "disabled",
    });
    config.to_string()
}

/// Gemini CLI names the file of a session after the minute in which it was begun or loaded. One that is
/// loaded over ACP in the minute of its beginning is overwritten before it is read.
fn age_gemini(home: &Path) {
    for project in fs::read_dir(home.join(".gemini/tmp")).unwrap() {
        let chats = project.unwrap().path().join("chats");
        for chat in fs::read_dir(chats).into_iter().flatten() {
            let path = chat.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let older = name.replace("session-20", "session-19");
            fs::rename(&path, path.with_file_name(older)).unwrap();
        }
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    owned.collect()
}
