//! What every request becomes, whole, and what is refused.

mod codex;
mod hostile;
mod lists;
mod manual;
mod options;

use std::error::Error as _;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect, expect_file};

use super::*;
use crate::config::Config;
use crate::options::RunOptions;
use crate::permissions::MODES;
use crate::process::find_program;
use crate::request::{Interaction, Launch, McpServer, McpVia, Mode, Permissions, Resume, Stdin};

const ID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

fn request(mode: Mode, talk: Interaction, resume: Resume) -> Request {
    Request {
        prompt: "fix it".to_owned(),
        resume,
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        cwd: PathBuf::from("/work"),
        permissions: Permissions {
            mode,
            ..Permissions::default()
        },
        talk,
    }
}

fn config(text: &str) -> Config {
    Config::parse(Some((Path::new("config.toml"), text)), |_| None).unwrap()
}

fn agent(name: &str, config: &Config) -> SelectedAgent {
    match select(name, config).unwrap() {
        Selected::Agent(agent) => *agent,
        Selected::Responses(it) => panic!("{it:?} is no agent"),
        Selected::Replay(it) => panic!("{it:?} is no agent"),
    }
}

fn launch(name: &str, config: &Config, request: &Request) -> Result<Launch, Error> {
    agent(name, config).launch(request, |program| Ok(Path::new("/bin").join(program)))
}

/// One line that a shell would read back as the same arguments.
fn launch_line(launch: &Result<Launch, Error>) -> String {
    let it = match launch {
        Ok(it) => it,
        Err(err) => return format!("error: {err}; hint: {}", err.hint().unwrap_or_default()),
    };
    assert_eq!(it.cwd, Path::new("/work"));
    let text = |it: &std::ffi::OsString| it.to_str().unwrap().to_owned();
    let unset = it.env_remove.iter().map(|it| format!("-u {} ", text(it)));
    let set = it
        .env
        .iter()
        .map(|(name, value)| format!("{}={} ", text(name), shell_words::quote(&text(value))));
    let stdin = match &it.stdin {
        Stdin::Closed => "",
        Stdin::Open => " <open",
        Stdin::Text(text) if text.len() > 300 => " <<<long",
        Stdin::Text(text) => &format!(" <<<{text:?}"),
    };
    let private = it.private.as_ref();
    let private = private.map(|it| format!(" {}=<<<{}", it.flag, it.text));
    // A program that comes with linkspan is no news in every line.
    let args = it.args.iter().map(|it| match text(it) {
        it if it == openhands::SHIM => "SHIM".to_owned(),
        it => it,
    });
    format!(
        "{}{}{} {}{stdin}{}",
        unset.collect::<String>(),
        set.collect::<String>(),
        it.program.display(),
        shell_words::join(args),
        private.unwrap_or_default(),
    )
}

/// Every mode, way of talking and kind of resume of one engine.
fn matrix(name: &str) -> String {
    let id = || ID.to_owned();
    let resumes = [
        ("fresh", Resume::Fresh),
        ("resume", Resume::Session(id())),
        ("latest", Resume::Latest),
        ("fork", Resume::Fork(id())),
    ];
    let mut text = String::new();
    for (talk_name, talk) in [
        ("one-shot", Interaction::OneShot),
        ("dialogue", Interaction::Dialogue),
    ] {
        for (resume_name, resume) in &resumes {
            for info in MODES {
                let request = request(info.mode, talk, resume.clone());
                let launch = launch(name, &config(""), &request);
                text += &format!(
                    "# {talk_name} {resume_name} {}\n{}\n",
                    info.name,
                    launch_line(&launch)
                );
            }
        }
    }
    text
}

#[test]
fn every_request_becomes_these_arguments() {
    expect_file!["tests/claude.txt"].assert_eq(&matrix("claude"));
    expect_file!["tests/codex.txt"].assert_eq(&matrix("codex"));
    expect_file!["tests/opencode.txt"].assert_eq(&matrix("opencode"));
    expect_file!["tests/gemini.txt"].assert_eq(&matrix("gemini"));
    expect_file!["tests/openhands.txt"].assert_eq(&matrix("openhands"));
    expect_file!["tests/acp.txt"].assert_eq(&matrix("acp:helper --stdio 'two words'"));
}

/// Everything that a config and flags can add, in both ways of talking.
fn check_full(name: &str, config_text: &str, expect: Expect) {
    let mut text = String::new();
    for talk in [Interaction::OneShot, Interaction::Dialogue] {
        for mode in [Mode::Deny, Mode::Ask] {
            let mut request = request(mode, talk, Resume::Fresh);
            request.options.model = Some("m \"1\"".to_owned());
            // The others take no such lists.
            if matches!(name, "claude" | "opencode") {
                request.permissions.allow = Some(vec!["Bash(git log:*)".to_owned()]);
                request.permissions.deny = vec!["WebFetch".to_owned()];
            }
            text += &launch_line(&launch(name, &config(config_text), &request));
            text.push('\n');
        }
    }
    expect.assert_eq(&text);
}

#[test]
fn models_lists_and_settings_travel_as_values() {
    check_full(
        "claude",
        "[engines.claude]\nprogram = 'cl'\nargs = ['--add-dir', '../x']\nallowed_tools = ['Read']\n\
         use_api_billing = true\noutput_style = 'Explanatory'\nmodel = 'opus'\nenv = { IS_SANDBOX = '1' }",
        expect![[r#"
            IS_SANDBOX=1 /bin/cl -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --model 'm "1"' --permission-mode dontAsk '--allowedTools=Bash(git log:*)' '--disallowedTools=WebFetch' --settings '{"outputStyle":"Explanatory"}' --add-dir ../x -- 'fix it'
            IS_SANDBOX=1 /bin/cl -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --model 'm "1"' --permission-mode dontAsk '--allowedTools=Bash(git log:*)' '--disallowedTools=WebFetch' --settings '{"outputStyle":"Explanatory"}' --add-dir ../x -- 'fix it'
            IS_SANDBOX=1 /bin/cl -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --input-format stream-json --permission-prompt-tool stdio --model 'm "1"' --permission-mode dontAsk '--allowedTools=Bash(git log:*)' '--disallowedTools=WebFetch' --settings '{"outputStyle":"Explanatory","useAutoModeDuringPlan":false}' --add-dir ../x <open
            IS_SANDBOX=1 /bin/cl -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --input-format stream-json --permission-prompt-tool stdio --model 'm "1"' --permission-mode manual '--allowedTools=Bash(git log:*)' '--disallowedTools=WebFetch' --settings '{"outputStyle":"Explanatory","useAutoModeDuringPlan":false}' --add-dir ../x <open
        "#]],
    );
    check_full(
        "codex",
        "[engines.codex]\nsandbox = 'read-only'\nverbosity = 'low'\nargs = ['--oss']",
        expect![[r#"
            /bin/codex exec --json --skip-git-repo-check -c 'model='\''m "1"'\''' -c 'model_verbosity="low"' -c 'sandbox_mode="read-only"' -c 'approval_policy="never"' --oss -- 'fix it'
            /bin/codex exec --json --skip-git-repo-check -c 'model='\''m "1"'\''' -c 'model_verbosity="low"' -c 'sandbox_mode="read-only"' -c 'approval_policy="never"' --oss -- 'fix it'
            /bin/codex app-server -c 'model='\''m "1"'\''' -c 'model_verbosity="low"' -c 'sandbox_mode="read-only"' -c 'approval_policy="never"' --oss <open
            /bin/codex app-server -c 'model='\''m "1"'\''' -c 'model_verbosity="low"' -c 'sandbox_mode="read-only"' -c 'approval_policy="on-request"' --oss <open
        "#]],
    );
    check_full(
        "opencode",
        "[engines.opencode]\nallowed_tools = ['bash']",
        expect![[r#"
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"bash":{"*":"deny","git log:*":"allow"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"},"webfetch":{"*":"deny"}}' /bin/opencode run --format json --thinking --model 'm "1"' <<<"fix it"
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"bash":{"*":"deny","git log:*":"allow"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"},"webfetch":{"*":"deny"}}' /bin/opencode run --format json --thinking --model 'm "1"' <<<"fix it"
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"bash":{"*":"deny","git log:*":"allow"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"},"webfetch":{"*":"deny"}}' /bin/opencode acp <open
            OPENCODE_PERMISSION='{"*":{"*":"ask"},"bash":{"*":"ask","git log:*":"allow"},"edit":{"*":"ask"},"external_directory":{"*":"ask"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"},"webfetch":{"*":"deny"}}' /bin/opencode acp <open
        "#]],
    );
    check_full(
        "gemini",
        "[engines.gemini]\nallowed_tools = []",
        expect![[r#"
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode default -m 'm "1"' '--prompt=fix it'
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode default -m 'm "1"' '--prompt=fix it'
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --acp --approval-mode default -m 'm "1"' <open
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --acp --approval-mode default -m 'm "1"' <open
        "#]],
    );
    check_full(
        "acp:mine",
        "[engines.acp.mine]\nprogram = '/opt/mine'\nargs = ['acp']\nenv = { A = 'b c' }",
        expect![[r#"
            error: engine `acp` cannot run a prompt without being talked with; hint: an ACP agent is always talked with
            error: engine `acp` cannot run a prompt without being talked with; hint: an ACP agent is always talked with
            A='b c' /opt/mine acp <open
            A='b c' /opt/mine acp <open
        "#]],
    );
}

#[test]
fn codex_alone_runs_without_lists_and_takes_its_model_as_toml() {
    let mut request = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
    request.options.model = Some(r#"o"3\"#.to_owned());
    expect![[r#"/bin/codex exec --json --skip-git-repo-check -c 'model='\''o"3\'\''' -c 'sandbox_mode="read-only"' -c 'approval_policy="never"' -- 'fix it'"#]].assert_eq(&launch_line(&launch("codex", &config(""), &request)));
}

#[test]
fn prompts_that_do_not_fit_an_argument_go_by_stdin() {
    let long = "x".repeat(100 * 1024 + 1);
    let mut text = String::new();
    for prompt in [
        "-",
        "--help",
        "a\0b",
        "",
        "@file",
        "\"quoted\"",
        "$(id) 'q'\n",
        &long,
    ] {
        for name in ["claude", "codex", "opencode", "gemini"] {
            let mut request = request(Mode::Allow, Interaction::OneShot, Resume::Fresh);
            request.prompt = prompt.to_owned();
            text += &launch_line(&launch(name, &config(""), &request));
            text.push('\n');
        }
    }
    expect![[r#"
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions <<<"-"
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- - <<<"-"
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"-"
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo <<<"-"
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions -- --help
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- --help
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"--help"
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt=--help'
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions <<<"a\0b"
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- - <<<"a\0b"
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"a\0b"
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo <<<"a\0b"
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions -- ''
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- ''
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<""
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt='
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions -- @file
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- @file
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"@file"
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt=@file'
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions -- '"quoted"'
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- '"quoted"'
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"\"quoted\""
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt="quoted"'
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions -- '$(id) '\''q'\''
        '
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- '$(id) '\''q'\''
        '
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"$(id) 'q'\n"
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt=$(id) '\''q'\''
        '
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --dangerously-skip-permissions <<<long
        /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- - <<<long
        OPENCODE_PERMISSION='{"*":{"*":"allow"},"bash":{"*":"allow"},"edit":{"*":"allow"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<long
        GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo <<<long
    "#]].assert_eq(&text);
}

#[test]
fn engines_are_called_by_name_and_some_with_a_value() {
    let config = config(
        "[engines.acp.mine]\nprogram = 'm'\n\
         [engines.responses.mine]\nbase_url = 'http://localhost:18789'\n\
         [engines.responses.bad]\nbase_url = 'https://u:p@host'",
    );
    let mut text = String::new();
    for name in [
        "claude",
        "acp:mine",
        "acp:x --y 'z w'",
        "replay:tools",
        "replay:./tools",
        "claud",
        "",
        "acp",
        "acp:",
        "acp:''",
        "acp:'x",
        "responses:mine",
        "responses:other",
        "responses:bad",
        "responses",
        "replay",
        "replay:",
        "claude:x",
        ":x",
    ] {
        text += &match select(name, &config) {
            Ok(Selected::Agent(it)) => {
                format!(
                    "{name} → {} {} {:?}\n",
                    it.engine.name,
                    it.program().unwrap(),
                    it.config.args
                )
            }
            Ok(Selected::Responses(it)) => {
                format!("{name} → {} {}\n", it.provider, it.url())
            }
            Ok(Selected::Replay(Recording::Bundled(it))) => {
                format!("{name} → bundled {}\n", it.name)
            }
            Ok(Selected::Replay(Recording::File(it))) => {
                format!("{name} → file {}\n", it.display())
            }
            Err(err) => format!("{name} → {err}; hint: {}\n", err.hint().unwrap()),
        };
    }
    expect![[r#"
        claude → claude claude []
        acp:mine → acp m []
        acp:x --y 'z w' → acp x ["--y", "z w"]
        replay:tools → bundled tools
        replay:./tools → file ./tools
        claud → there is no engine `claud`; hint: did you mean `claude`? engines: claude, codex, opencode, gemini, openhands, acp:COMMAND, responses:NAME, replay:FILE
         → there is no engine ``; hint: engines: claude, codex, opencode, gemini, openhands, acp:COMMAND, responses:NAME, replay:FILE
        acp → engine `acp` needs a value; hint: write `acp:COMMAND`
        acp: → engine `acp` needs a value; hint: write `acp:COMMAND`
        acp:'' → cannot split the command of `acp:''` into words; hint: close every quote
        acp:'x → cannot split the command of `acp:'x` into words; hint: close every quote
        responses:mine → openclaw http://localhost:18789/v1/responses
        responses:other → the config has no endpoint `other`; hint: add `[engines.responses.other]` with its `base_url` to the config
        responses:bad → endpoint `bad` cannot be used: the address of an endpoint may not hold a password; hint: put the key into a variable, and its name into `api_key_env`
        responses → engine `responses` needs a value; hint: write `responses:NAME`
        replay → engine `replay` needs a value; hint: write `replay:FILE`
        replay: → engine `replay` needs a value; hint: write `replay:FILE`
        claude:x → engine `claude` takes no value; hint: write `claude`
        :x → there is no engine `:x`; hint: engines: claude, codex, opencode, gemini, openhands, acp:COMMAND, responses:NAME, replay:FILE
    "#]].assert_eq(&text);
}

#[test]
fn the_first_one_installed_is_the_default() {
    let config = config("[engines.claude]\nprogram = '/opt/claude'");
    let check = |installed: &[&str], expected: &str| {
        let find = |name: &str| match installed.contains(&name) {
            true => Ok(PathBuf::from(name)),
            false => find_program(name.as_ref(), None),
        };
        let found = first_installed(&config, find);
        let found = found.map_or_else(|err| err.to_string(), |it| it.name);
        assert_eq!(found, expected, "{installed:?}");
    };
    check(&["codex", "/opt/claude", "opencode", "gemini"], "codex");
    check(&["gemini", "/opt/claude"], "claude");
    check(&["gemini", "opencode", "claude"], "opencode");
    check(&["gemini"], "gemini");
    check(&[], "no agent is installed");
    expect![[r#"
        install one of these and run it again, or watch a recording, with the engine `replay:tools`
          npm install -g @anthropic-ai/claude-code
          npm install -g @openai/codex
          npm install -g opencode-ai
          npm install -g @google/gemini-cli
          pip install openhands-sdk openhands-tools"#]]
    .assert_eq(&Error::NoneInstalled.hint().unwrap());
}

#[test]
fn a_missing_program_names_its_install_command() {
    let request = request(Mode::Deny, Interaction::OneShot, Resume::Fresh);
    let err = agent("gemini", &config(""))
        .launch(&request, |it| find_program(it.as_ref(), None))
        .unwrap_err();
    expect![[r#"
        engine `gemini` cannot be started: `gemini` was not found
        install it with `npm install -g @google/gemini-cli`, or say where it is with `engines.gemini.program` in the config, or with `--program PATH` of `linkspan run`"#]].assert_eq(&format!("{err}: {}\n{}", err.source().unwrap(), err.hint().unwrap()));
}

#[test]
fn every_engine_speaks_formats_that_can_be_read() {
    for engine in ENGINES {
        for format in (engine.one_shot.iter()).chain(engine.dialogue.iter().map(|it| &it.format)) {
            assert!(
                formats::registry::find_reader(format).is_ok(),
                "{}: {format}",
                engine.name
            );
        }
    }
}

#[test]
fn bundled_recordings_match_their_descriptions() {
    for replay in REPLAYS {
        let first = replay.bytes.split(|it| *it == b'\n').next().unwrap();
        let first = std::str::from_utf8(first).unwrap();
        let row = formats::registry::FORMATS
            .iter()
            .find(|it| it.name == replay.format);
        assert!((row.unwrap().recognises)(first), "{}", replay.name);
    }
}

#[test]
fn the_model_of_the_config_is_chosen_in_a_session_that_is_talked_with() {
    let config = config("[engines.opencode]\nmodel = \"big\"\n");
    let request = request(Mode::Ask, Interaction::Dialogue, Resume::Fresh);
    let mut dialogue = agent("opencode", &config).dialogue(&request, None);
    let mut out = crate::dialogue::Outbox::default();
    dialogue.open(&mut out);
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","models":{"currentModelId":"small","availableModels":[]}}}"#,
    ] {
        dialogue.line(answer, &mut out);
    }
    assert_eq!(
        out.lines.last().map(String::as_str),
        Some(
            r#"{"jsonrpc":"2.0","id":3,"method":"session/set_model","params":{"sessionId":"s","modelId":"big"}}"#
        )
    );
}

#[test]
fn servers_of_tools_and_the_effort_reach_the_engines_that_take_them() {
    let mut request = request(Mode::Ask, Interaction::Dialogue, Resume::Fresh);
    request.options.effort = Some("high".to_owned());
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let server = |name: &str, via| McpServer {
        name: name.to_owned(),
        via,
    };
    request.mcp_servers = vec![
        server(
            "files",
            McpVia::Stdio {
                command: "/bin/files".to_owned(),
                args: vec!["--root".to_owned(), "a b".to_owned()],
                env: [pair("KEY", "k"), pair("CODEX_KEY", "c"), pair("MODE", "v")].concat(),
            },
        ),
        server(
            "web",
            McpVia::Http {
                url: "https://example.com/mcp".to_owned(),
                headers: pair("Authorization", "Bearer x"),
            },
        ),
    ];
    let none = config("");
    let mut text = String::new();
    for name in ["claude", "codex"] {
        text += &launch_line(&launch(name, &none, &request));
        text.push('\n');
    }
    expect![[r#"
        /bin/claude -p --output-format stream-json --verbose --include-partial-messages --forward-subagent-text --input-format stream-json --permission-prompt-tool stdio --effort high --permission-mode manual --settings '{"useAutoModeDuringPlan":false}' <open --mcp-config=<<<{"mcpServers":{"files":{"args":["--root","a b"],"command":"/bin/files","env":{"CODEX_KEY":"c","KEY":"k","MODE":"v"},"type":"stdio"},"web":{"headers":{"Authorization":"Bearer x"},"type":"http","url":"https://example.com/mcp"}}}
        KEY=k LINKSPAN_MCP_1_0_TOKEN='Bearer x' /bin/codex app-server -c 'model_reasoning_effort="high"' -c 'mcp_servers.files={ args = ["--root", "a b"], command = "/bin/files", env = { CODEX_KEY = "c", MODE = "v" }, env_vars = ["KEY"] }' -c 'mcp_servers.web={ env_http_headers = { Authorization = "LINKSPAN_MCP_1_0_TOKEN" }, url = "https://example.com/mcp" }' -c 'sandbox_mode="read-only"' -c 'approval_policy="on-request"' <open
    "#]].assert_eq(&text);
    request.mcp_servers[1].name = "a.b".to_owned();
    expect![
        "error: the name of an MCP server has more than letters, digits, `_` and `-`: `a.b`; hint: "
    ]
    .assert_eq(&launch_line(&launch("codex", &none, &request)));
    request.mcp_servers[1].via = McpVia::Sse {
        url: "https://example.com/sse".to_owned(),
        headers: Vec::new(),
    };
    expect!["error: engine `codex` cannot use MCP servers over SSE; hint: name the server's HTTP address"].assert_eq(&launch_line(&launch("codex", &none, &request)));
}
