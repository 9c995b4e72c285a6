//! Layers, places and every kind of mistake, with whole messages.

use std::path::Path;

use expect_test::{Expect, expect};

use super::keys::{ACP, PROVIDERS, RESPONSES, SECTIONS, SectionSpec};
use super::*;

const NOTHING: fn(&str) -> Option<String> = |_| None;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse(Some((Path::new("c.toml"), text)), NOTHING)
}

/// What is set by something else than the defaults, one line each.
fn set(config: &Config) -> String {
    let settings = config.settings().iter();
    let set = settings.filter(|it| it.origin != Origin::Default);
    set.map(|it| format!("{} = {:?} ({})\n", it.key, it.value, it.origin))
        .collect()
}

fn check_error(text: &str, expect: Expect) {
    let err = parse(text).unwrap_err();
    let hint = err.hint().map(|it| format!("\nhint: {it}"));
    expect.assert_eq(&format!("{err}{}", hint.unwrap_or_default()));
}

#[test]
fn a_file_with_everything_is_read_with_its_lines() {
    let text = r#"
default_engine = "acp:mine"
permissions = "accept-edits"
start_timeout = 90
idle_timeout = 1.5

[engines.claude]
program = "/opt/claude"
args = ["--add-dir", "../x"]
model = "opus"
allowed_tools = ["Bash"]
dangerously_skip_permissions = true
use_api_billing = true
output_style = "Explanatory"
env = { A = "b" }

[engines.codex]
sandbox = "read-only"
verbosity = "low"

[engines.acp.mine]
program = "mine"
args = ["acp"]

[engines.acp.mine.env]
TOKEN = "secret"
"#;
    expect![[r#"
        default_engine = Text("acp:mine") (c.toml:2)
        permissions = Text("accept-edits") (c.toml:3)
        start_timeout = Seconds(90s) (c.toml:4)
        idle_timeout = Seconds(1.5s) (c.toml:5)
        engines.claude.program = Text("/opt/claude") (c.toml:8)
        engines.claude.args = List(["--add-dir", "../x"]) (c.toml:9)
        engines.claude.env = Table({"A": "b"}) (c.toml:15)
        engines.claude.model = Text("opus") (c.toml:10)
        engines.claude.dangerously_skip_permissions = Switch(true) (c.toml:12)
        engines.claude.allowed_tools = List(["Bash"]) (c.toml:11)
        engines.claude.use_api_billing = Switch(true) (c.toml:13)
        engines.claude.output_style = Text("Explanatory") (c.toml:14)
        engines.codex.sandbox = Text("read-only") (c.toml:18)
        engines.codex.verbosity = Text("low") (c.toml:19)
        engines.acp.mine.args = List(["acp"]) (c.toml:23)
        engines.acp.mine.env = Table({"TOKEN": "secret"}) (c.toml:25)
        engines.acp.mine.program = Text("mine") (c.toml:22)
    "#]]
    .assert_eq(&set(&parse(text).unwrap()));
}

#[test]
fn retention_takes_numbers_and_units() {
    let text =
        "[journal]\nkeep_days = 30\nkeep_sessions = 0\nkeep_bytes = '2 GiB'\ncut_above = 65536";
    let mut config = parse(text).unwrap();
    let keep = Keep {
        days: Some(30),
        sessions: None,
        bytes: Some(2 << 30),
        cut_above: Some(65536),
    };
    assert_eq!(config.keep(), keep);
    for (text, bytes) in [("500MB", 500_000_000), ("7", 7), ("3 kib", 3072)] {
        config
            .flag("journal.keep_bytes", "--keep-bytes", text)
            .unwrap();
        assert_eq!(config.keep().bytes, Some(bytes));
    }
    assert_eq!(parse("").unwrap().keep(), Keep::default());
    let wrong = config.flag("journal.keep_days", "--keep-days", "a month");
    expect!["`--keep-days` is `a month`, expected a whole number"]
        .assert_eq(&wrong.unwrap_err().to_string());
    check_error(
        "[journal]\nkeep_bytes = '2 elephants'",
        expect![[
            r#"c.toml:2: `journal.keep_bytes` is "2 elephants", expected a number of bytes, or a text such as "500 MB" or "2 GiB""#
        ]],
    );
    check_error(
        "[journal]\nkeep_days = -1",
        expect!["c.toml:2: `journal.keep_days` is -1, expected a whole number"],
    );
    check_error(
        "[journal]\nkeep_day = 1",
        expect![[r#"
        c.toml:2: there is no key `journal.keep_day`
        hint: did you mean `keep_days`? known here: keep_days, keep_sessions, keep_bytes, cut_above"#]],
    );
}

#[test]
fn later_layers_win() {
    let text = "default_engine = 'claude'\npermissions = 'plan'\nmodel = 'a'";
    let variables = |name: &str| match name {
        "LINKSPAN_ENGINE" => Some("codex".to_owned()),
        "LINKSPAN_PERMISSIONS" => Some(String::new()),
        "LINKSPAN_START_TIMEOUT" => Some("0".to_owned()),
        _ => None,
    };
    let mut config = Config::parse(Some((Path::new("c.toml"), text)), variables).unwrap();
    config.flag("model", "--model", "b").unwrap();
    config
        .flag("engines.codex.program", "--program", "/x")
        .unwrap();
    expect![[r#"
        default_engine = Text("codex") ($LINKSPAN_ENGINE)
        model = Text("b") (--model)
        permissions = Text("plan") (c.toml:2)
        start_timeout = Seconds(0ns) ($LINKSPAN_START_TIMEOUT)
        engines.codex.program = Text("/x") (--program)
    "#]]
    .assert_eq(&set(&config));
    assert_eq!(config.default_engine(), Some("codex"));
    assert_eq!(config.limits().start, None);
}

#[test]
fn the_engine_model_wins_unless_the_general_one_comes_from_a_later_layer() {
    let text = "model = 'general'\n[engines.claude]\nmodel = 'own'";
    let file = Some((Path::new("c.toml"), text));
    let model = |config: &Config, engine| config.engine(engine).model.unwrap();
    let config = Config::parse(file, NOTHING).unwrap();
    assert_eq!(model(&config, "claude"), "own");
    assert_eq!(model(&config, "codex"), "general");
    let variable = |name: &str| (name == "LINKSPAN_MODEL").then(|| "later".to_owned());
    let config = Config::parse(file, variable).unwrap();
    assert_eq!(model(&config, "claude"), "later");
}

#[test]
fn skip_permissions_wins_unless_permissions_come_from_a_later_layer() {
    let skip = "[engines.claude]\ndangerously_skip_permissions = true";
    let mut config = parse(&format!("permissions = 'ask'\n{skip}")).unwrap();
    assert_eq!(config.permissions("claude", Mode::Deny), Mode::Allow);
    assert_eq!(config.permissions("codex", Mode::Deny), Mode::Ask);
    config.flag("permissions", "--permissions", "plan").unwrap();
    assert_eq!(config.permissions("claude", Mode::Deny), Mode::Plan);
    let config = parse(skip).unwrap();
    assert_eq!(config.permissions("claude", Mode::Deny), Mode::Allow);
    assert_eq!(config.permissions("codex", Mode::Deny), Mode::Deny);
}

#[test]
fn a_table_called_claude_is_the_engine() {
    let config = parse("[claude]\nmodel = 'sonnet'\nallowed_tools = ['Bash']").unwrap();
    expect![[r#"
        engines.claude.model = Text("sonnet") (c.toml:2)
        engines.claude.allowed_tools = List(["Bash"]) (c.toml:3)
    "#]]
    .assert_eq(&set(&config));
    check_error(
        "[claude]\nmodel = 'sonnet'\n\n[engines.claude]\nmodel = 'opus'",
        expect![[r#"
            c.toml:5: `engines.claude.model` is the same as `claude.model` in line 2
            hint: keep one of them"#]],
    );
}

#[test]
fn allowed_tools_are_listed_only_by_the_user() {
    let tools = |text| parse(text).unwrap().engine("claude").allowed_tools;
    assert_eq!(tools(""), None);
    assert_eq!(tools("[claude]\nallowed_tools = []"), Some(Vec::new()));
}

#[test]
fn unknown_keys_name_the_nearest() {
    check_error(
        "defualt_engine = 'claude'",
        expect![[r#"
            c.toml:1: there is no key `defualt_engine`
            hint: did you mean `default_engine`? known here: default_engine, model, permissions, start_timeout, idle_timeout, ask_timeout, ask_default, interrupt_grace, terminate_grace, claude, engines, journal, serve"#]],
    );
    check_error(
        "\n\n[engines.claude]\nmodle = 'x'",
        expect![[r#"
            c.toml:4: there is no key `engines.claude.modle`
            hint: did you mean `model`? known here: program, args, env, ask_timeout, ask_default, model, dangerously_skip_permissions, allowed_tools, use_api_billing, output_style"#]],
    );
    check_error(
        "[claude]\nallowed-tools = []",
        expect![[r#"
            c.toml:2: there is no key `claude.allowed-tools`
            hint: did you mean `allowed_tools`? known here: program, args, env, ask_timeout, ask_default, model, dangerously_skip_permissions, allowed_tools, use_api_billing, output_style"#]],
    );
    check_error(
        "[engines.cluade]\nmodel = 'x'",
        expect![[r#"
            c.toml:1: there is no key `engines.cluade`
            hint: did you mean `claude`? known here: claude, codex, opencode, gemini, openhands, acp, responses"#]],
    );
    check_error(
        "[engines.gemini]\nuse_api_billing = true",
        expect![[r#"
            c.toml:2: there is no key `engines.gemini.use_api_billing`
            hint: known here: program, args, env, ask_timeout, ask_default, model, dangerously_skip_permissions, allowed_tools"#]],
    );
    check_error(
        "[engines.acp.mine]\nprogramme = 'x'",
        expect![[r#"
            c.toml:2: there is no key `engines.acp.mine.programme`
            hint: did you mean `program`? known here: program, args, env, ask_timeout, ask_default, auth_method"#]],
    );
    check_error(
        "[server]\nport = 1",
        expect![[r#"
            c.toml:1: there is no key `server`
            hint: did you mean `serve`? known here: default_engine, model, permissions, start_timeout, idle_timeout, ask_timeout, ask_default, interrupt_grace, terminate_grace, claude, engines, journal, serve"#]],
    );
}

#[test]
fn misspelt_values_name_the_nearest() {
    check_error(
        "permissions = 'alow'",
        expect![[r#"
            c.toml:1: `permissions` is "alow", expected one of plan, deny, ask, accept-edits, listed, allow
            hint: did you mean `allow`?"#]],
    );
    check_error(
        "default_engine = 'acpp:helper'",
        expect![[r#"
            c.toml:1: `default_engine` is "acpp:helper", expected one of claude, codex, opencode, gemini, openhands, acp, responses, replay
            hint: did you mean `acp`?"#]],
    );
    check_error(
        "[engines.codex]\nsandbox = 'readonly'",
        expect![[r#"
            c.toml:2: `engines.codex.sandbox` is "readonly", expected one of read-only, workspace-write, danger-full-access
            hint: did you mean `read-only`?"#]],
    );
}

#[test]
fn wrong_values_name_what_was_expected() {
    check_error(
        "default_engine = 'emacs'",
        expect![[
            r#"c.toml:1: `default_engine` is "emacs", expected one of claude, codex, opencode, gemini, openhands, acp, responses, replay"#
        ]],
    );
    check_error(
        "permissions = true",
        expect![
            "c.toml:1: `permissions` is true, expected one of plan, deny, ask, accept-edits, listed, allow"
        ],
    );
    check_error(
        "permissions = 'yes'",
        expect![[
            r#"c.toml:1: `permissions` is "yes", expected one of plan, deny, ask, accept-edits, listed, allow"#
        ]],
    );
    check_error(
        "start_timeout = -1",
        expect!["c.toml:1: `start_timeout` is -1, expected a number of seconds"],
    );
    check_error(
        "start_timeout = '5s'",
        expect![[r#"c.toml:1: `start_timeout` is "5s", expected a number of seconds"#]],
    );
    check_error(
        "idle_timeout = inf",
        expect!["c.toml:1: `idle_timeout` is inf, expected a number of seconds"],
    );
    check_error(
        "engines = 1",
        expect!["c.toml:1: `engines` is 1, expected a table"],
    );
    check_error(
        "[engines]\nclaude = 'x'",
        expect![[r#"c.toml:2: `engines.claude` is "x", expected a table"#]],
    );
    check_error(
        "[engines.acp]\nmine = 'x'",
        expect![[r#"c.toml:2: `engines.acp.mine` is "x", expected a table"#]],
    );
    check_error(
        "[engines.acp.mine]\nargs = []",
        expect![[r#"
        c.toml:1: `engines.acp.mine` has no program
        hint: add `program = "COMMAND"`"#]],
    );
    check_error(
        "[engines.claude]\nargs = '--x'",
        expect![[r#"c.toml:2: `engines.claude.args` is "--x", expected a list of strings"#]],
    );
    check_error(
        "[engines.claude]\nargs = [\n  'a',\n  1,\n]",
        expect!["c.toml:4: `engines.claude.args` is 1, expected a list of strings"],
    );
    check_error(
        "[engines.claude.env]\nA = 1",
        expect!["c.toml:2: `engines.claude.env.A` is something else, expected a string"],
    );
    check_error(
        "[engines.claude.env]\n'A=B' = 'x'",
        expect!["c.toml:2: `engines.claude.env.A=B` is no variable, expected a name without `=`"],
    );
    check_error(
        "[engines.claude.env]\nA = \"\\u0000\"",
        expect!["c.toml:2: `engines.claude.env.A` is something else, expected a string"],
    );
    check_error(
        "[engines.claude]\nenv = 'KEY=secret'",
        expect!["c.toml:2: `engines.claude.env` is something else, expected a table of strings"],
    );
    check_error(
        "[engines.claude]\nuse_api_billing = 'no'",
        expect![[
            r#"c.toml:2: `engines.claude.use_api_billing` is "no", expected true, false or "auto""#
        ]],
    );
    check_error(
        "[engines.codex]\nsandbox = 'none'",
        expect![[
            r#"c.toml:2: `engines.codex.sandbox` is "none", expected one of read-only, workspace-write, danger-full-access"#
        ]],
    );
}

#[test]
fn what_is_no_toml_names_the_line() {
    check_error(
        "model = 'a'\nmodel = 'b'",
        expect!["c.toml:2: not TOML: duplicate key"],
    );
    check_error(
        "\n[engines",
        expect!["c.toml:2: not TOML: unclosed table, expected `]`"],
    );
    check_error(
        "model = ",
        expect!["c.toml:1: not TOML: string values must be quoted, expected literal string"],
    );
}

#[test]
fn variables_and_flags_name_themselves() {
    let bad = |name: &str| (name == "LINKSPAN_PERMISSIONS").then(|| "maybe".to_owned());
    let err = Config::parse(None, bad).unwrap_err();
    expect!["the variable `LINKSPAN_PERMISSIONS` is `maybe`, expected one of plan, deny, ask, accept-edits, listed, allow"].assert_eq(&err.to_string());
    let mut config = Config::parse(None, NOTHING).unwrap();
    let err = config
        .flag("idle_timeout", "--idle-timeout", "soon")
        .unwrap_err();
    expect!["`--idle-timeout` is `soon`, expected a number of seconds"].assert_eq(&err.to_string());
    let err = config.flag("engines.claude.modle", "--x", "y").unwrap_err();
    expect!["there is no key `engines.claude.modle`"].assert_eq(&err.to_string());
}

#[test]
fn an_endpoint_has_defaults_and_tables_for_its_provider() {
    let config = parse(
        r#"
model = "general"
[engines.responses.azure]
base_url = "https://x.openai.azure.com"
api_key_env = "KEY"
azure.api_version = "v"
azure.deployment_name = "d"
headers = { x-team = "a" }
[engines.responses.claw]
base_url = "http://localhost:18789"
provider = "custom"
stateful = false
max_retries = 0
idle_timeout = 0
[engines.responses.claw.openclaw]
session_key = "secret"
nested_tools = false
"#,
    )
    .unwrap();
    let names: Vec<&str> = config.endpoint_names().collect();
    assert_eq!(names, ["azure", "claw"]);
    let azure = config.endpoint("azure").unwrap().unwrap();
    assert_eq!(azure.provider.name(), "azure");
    assert_eq!(azure.model.as_deref(), Some("general"));
    assert_eq!(azure.azure.deployment_name.as_deref(), Some("d"));
    assert_eq!(azure.headers["x-team"], "a");
    assert_eq!((azure.is_stateful, azure.max_retries), (true, 3));
    let seconds = [
        azure.limits.connect,
        azure.limits.first_byte,
        azure.limits.idle,
    ];
    assert_eq!(seconds.map(|it| it.as_secs()), [10, 300, 120]);
    let claw = config.endpoint("claw").unwrap().unwrap();
    assert_eq!(claw.provider.name(), "custom");
    assert_eq!((claw.is_stateful, claw.max_retries), (false, 0));
    assert_eq!(claw.limits.idle.as_secs(), 366 * 86_400, "0 waits for ever");
    assert!(!claw.openclaw.nested_tools);
    assert!(config.endpoint("other").is_none());
}

#[test]
fn mistakes_in_an_endpoint_are_reported_with_their_location() {
    check_error(
        "[engines.responses.x]\nmodel = 'm'",
        expect![[r#"
        c.toml:1: `engines.responses.x` has no address
        hint: add `base_url = "https://…/v1"`"#]],
    );
    check_error(
        "[engines.responses.x]\nbase_url = 'u'\nmax_retries = 'many'",
        expect![[r#"c.toml:3: `engines.responses.x.max_retries` is "many", expected a number"#]],
    );
    check_error(
        "[engines.responses.x]\nbase_url = 'u'\nopenclaw.session_key = 5",
        expect![
            "c.toml:3: `engines.responses.x.openclaw.session_key` is something else, expected a string"
        ],
    );
}

#[test]
fn the_manual_lists_every_key_and_variable() {
    let manual = include_str!("../../../../docs/config.md");
    let inner = |it: &SectionSpec| match it.path.strip_prefix("engines.responses.NAME.") {
        Some(provider) => format!("{provider}."),
        None => String::new(),
    };
    let endpoints = PROVIDERS.iter().chain([&ACP, &RESPONSES]);
    for section in SECTIONS.iter().chain(endpoints) {
        for key in section.keys() {
            let row = format!("| `{}{}` |", inner(section), key.name);
            assert!(manual.contains(&row), "docs/config.md lacks: {row}");
            if let Some(text) = key.variable {
                assert!(manual.contains(text), "docs/config.md lacks: {text}");
            }
        }
    }
}
