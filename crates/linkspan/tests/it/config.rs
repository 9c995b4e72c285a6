//! `linkspan config`: layers, places, secrets and mistakes, through the program.

use std::fs;

use expect_test::{Expect, expect};

use crate::program::{Folder, linkspan, ran};

/// Runs with a clean environment and a home of its own.
fn check(folder: &Folder, variables: &[(&str, &str)], args: &[&str], expect: Expect) {
    let mut command = linkspan(args);
    command.env_clear().envs(variables.iter().copied());
    command
        .env("HOME", folder.path(""))
        .current_dir(folder.path(""));
    let shown = ran(command.output().unwrap()).shown();
    expect.assert_eq(&shown.replace(&folder.path(""), "/home/"));
}

#[test]
fn every_value_names_its_origin() {
    let folder = Folder::new("config-layers");
    fs::create_dir_all(folder.path(".config/linkspan")).unwrap();
    folder.file(
        ".config/linkspan/config.toml",
        "permissions = 'plan'\nidle_timeout = 2.5\n\n[claude]\nmodel = 'opus'\n\
         env = { ANTHROPIC_API_KEY = 'sk-secret', IS_SANDBOX = '1' }\n\
         [engines.acp.mine]\nprogram = 'm'\n",
    );
    let variables = [
        ("LINKSPAN_ENGINE", "codex"),
        ("LINKSPAN_PERMISSIONS", "deny"),
    ];
    check(
        &folder,
        &variables,
        &["config"],
        expect![[r#"
            key                                             value                                         from
            default_engine                                  codex                                         $LINKSPAN_ENGINE
            model                                           -                                             default
            permissions                                     deny                                          $LINKSPAN_PERMISSIONS
            start_timeout                                   180 s                                         default
            idle_timeout                                    2.5 s                                         /home/.config/linkspan/config.toml:2
            ask_timeout                                     0 s                                           default
            ask_default                                     -                                             default
            interrupt_grace                                 5 s                                           default
            terminate_grace                                 3 s                                           default
            journal.keep_days                               -                                             default
            journal.keep_sessions                           -                                             default
            journal.keep_bytes                              -                                             default
            journal.cut_above                               -                                             default
            serve.roots                                     -                                             default
            serve.allow_origins                             []                                            default
            serve.permissions                               -                                             default
            serve.log_format                                text                                          default
            serve.log_level                                 info                                          default
            engines.claude.program                          -                                             default
            engines.claude.args                             []                                            default
            engines.claude.env                              ANTHROPIC_API_KEY set, IS_SANDBOX set         /home/.config/linkspan/config.toml:6
            engines.claude.ask_timeout                      -                                             default
            engines.claude.ask_default                      -                                             default
            engines.claude.model                            opus                                          /home/.config/linkspan/config.toml:5
            engines.claude.dangerously_skip_permissions     false                                         default
            engines.claude.allowed_tools                    ["Bash","Read","Edit","Write"]                default
            engines.claude.use_api_billing                  auto                                          default
            engines.claude.output_style                     -                                             default
            engines.codex.program                           -                                             default
            engines.codex.args                              []                                            default
            engines.codex.env                               -                                             default
            engines.codex.ask_timeout                       -                                             default
            engines.codex.ask_default                       -                                             default
            engines.codex.model                             -                                             default
            engines.codex.dangerously_skip_permissions      false                                         default
            engines.codex.sandbox                           -                                             default
            engines.codex.verbosity                         -                                             default
            engines.codex.use_api_billing                   auto                                          default
            engines.opencode.program                        -                                             default
            engines.opencode.args                           []                                            default
            engines.opencode.env                            -                                             default
            engines.opencode.ask_timeout                    -                                             default
            engines.opencode.ask_default                    -                                             default
            engines.opencode.model                          -                                             default
            engines.opencode.dangerously_skip_permissions   false                                         default
            engines.opencode.allowed_tools                  ["bash","read","edit","write"]                default
            engines.gemini.program                          -                                             default
            engines.gemini.args                             []                                            default
            engines.gemini.env                              -                                             default
            engines.gemini.ask_timeout                      -                                             default
            engines.gemini.ask_default                      -                                             default
            engines.gemini.model                            -                                             default
            engines.gemini.dangerously_skip_permissions     false                                         default
            engines.gemini.allowed_tools                    ["run_shell_command","write_file","replace"]  default
            engines.openhands.program                       -                                             default
            engines.openhands.args                          []                                            default
            engines.openhands.env                           -                                             default
            engines.openhands.ask_timeout                   -                                             default
            engines.openhands.ask_default                   -                                             default
            engines.openhands.model                         -                                             default
            engines.openhands.dangerously_skip_permissions  false                                         default
            engines.openhands.allowed_tools                 ["terminal","file_editor"]                    default
            engines.acp.mine.program                        m                                             /home/.config/linkspan/config.toml:8

            file: /home/.config/linkspan/config.toml
            exit 0
        "#]],
    );
    check(
        &folder,
        &variables,
        &["config", "--json"],
        expect![[r#"
            {"key":"default_engine","value":"codex","origin":"variable","place":"LINKSPAN_ENGINE"}
            {"key":"model","value":null,"origin":"default","place":null}
            {"key":"permissions","value":"deny","origin":"variable","place":"LINKSPAN_PERMISSIONS"}
            {"key":"start_timeout","value":180.0,"origin":"default","place":null}
            {"key":"idle_timeout","value":2.5,"origin":"file","place":"/home/.config/linkspan/config.toml:2"}
            {"key":"ask_timeout","value":0.0,"origin":"default","place":null}
            {"key":"ask_default","value":null,"origin":"default","place":null}
            {"key":"interrupt_grace","value":5.0,"origin":"default","place":null}
            {"key":"terminate_grace","value":3.0,"origin":"default","place":null}
            {"key":"journal.keep_days","value":null,"origin":"default","place":null}
            {"key":"journal.keep_sessions","value":null,"origin":"default","place":null}
            {"key":"journal.keep_bytes","value":null,"origin":"default","place":null}
            {"key":"journal.cut_above","value":null,"origin":"default","place":null}
            {"key":"serve.roots","value":null,"origin":"default","place":null}
            {"key":"serve.allow_origins","value":[],"origin":"default","place":null}
            {"key":"serve.permissions","value":null,"origin":"default","place":null}
            {"key":"serve.log_format","value":"text","origin":"default","place":null}
            {"key":"serve.log_level","value":"info","origin":"default","place":null}
            {"key":"engines.claude.program","value":null,"origin":"default","place":null}
            {"key":"engines.claude.args","value":[],"origin":"default","place":null}
            {"key":"engines.claude.env","value":{"ANTHROPIC_API_KEY":"set","IS_SANDBOX":"set"},"origin":"file","place":"/home/.config/linkspan/config.toml:6"}
            {"key":"engines.claude.ask_timeout","value":null,"origin":"default","place":null}
            {"key":"engines.claude.ask_default","value":null,"origin":"default","place":null}
            {"key":"engines.claude.model","value":"opus","origin":"file","place":"/home/.config/linkspan/config.toml:5"}
            {"key":"engines.claude.dangerously_skip_permissions","value":false,"origin":"default","place":null}
            {"key":"engines.claude.allowed_tools","value":["Bash","Read","Edit","Write"],"origin":"default","place":null}
            {"key":"engines.claude.use_api_billing","value":"auto","origin":"default","place":null}
            {"key":"engines.claude.output_style","value":null,"origin":"default","place":null}
            {"key":"engines.codex.program","value":null,"origin":"default","place":null}
            {"key":"engines.codex.args","value":[],"origin":"default","place":null}
            {"key":"engines.codex.env","value":null,"origin":"default","place":null}
            {"key":"engines.codex.ask_timeout","value":null,"origin":"default","place":null}
            {"key":"engines.codex.ask_default","value":null,"origin":"default","place":null}
            {"key":"engines.codex.model","value":null,"origin":"default","place":null}
            {"key":"engines.codex.dangerously_skip_permissions","value":false,"origin":"default","place":null}
            {"key":"engines.codex.sandbox","value":null,"origin":"default","place":null}
            {"key":"engines.codex.verbosity","value":null,"origin":"default","place":null}
            {"key":"engines.codex.use_api_billing","value":"auto","origin":"default","place":null}
            {"key":"engines.opencode.program","value":null,"origin":"default","place":null}
            {"key":"engines.opencode.args","value":[],"origin":"default","place":null}
            {"key":"engines.opencode.env","value":null,"origin":"default","place":null}
            {"key":"engines.opencode.ask_timeout","value":null,"origin":"default","place":null}
            {"key":"engines.opencode.ask_default","value":null,"origin":"default","place":null}
            {"key":"engines.opencode.model","value":null,"origin":"default","place":null}
            {"key":"engines.opencode.dangerously_skip_permissions","value":false,"origin":"default","place":null}
            {"key":"engines.opencode.allowed_tools","value":["bash","read","edit","write"],"origin":"default","place":null}
            {"key":"engines.gemini.program","value":null,"origin":"default","place":null}
            {"key":"engines.gemini.args","value":[],"origin":"default","place":null}
            {"key":"engines.gemini.env","value":null,"origin":"default","place":null}
            {"key":"engines.gemini.ask_timeout","value":null,"origin":"default","place":null}
            {"key":"engines.gemini.ask_default","value":null,"origin":"default","place":null}
            {"key":"engines.gemini.model","value":null,"origin":"default","place":null}
            {"key":"engines.gemini.dangerously_skip_permissions","value":false,"origin":"default","place":null}
            {"key":"engines.gemini.allowed_tools","value":["run_shell_command","write_file","replace"],"origin":"default","place":null}
            {"key":"engines.openhands.program","value":null,"origin":"default","place":null}
            {"key":"engines.openhands.args","value":[],"origin":"default","place":null}
            {"key":"engines.openhands.env","value":null,"origin":"default","place":null}
            {"key":"engines.openhands.ask_timeout","value":null,"origin":"default","place":null}
            {"key":"engines.openhands.ask_default","value":null,"origin":"default","place":null}
            {"key":"engines.openhands.model","value":null,"origin":"default","place":null}
            {"key":"engines.openhands.dangerously_skip_permissions","value":false,"origin":"default","place":null}
            {"key":"engines.openhands.allowed_tools","value":["terminal","file_editor"],"origin":"default","place":null}
            {"key":"engines.acp.mine.program","value":"m","origin":"file","place":"/home/.config/linkspan/config.toml:8"}
            exit 0
        "#]],
    );
}

#[test]
fn the_working_directory_is_never_read() {
    let folder = Folder::new("config-cwd");
    for name in ["config.toml", "linkspan.toml", ".linkspan.toml"] {
        folder.file(name, "permissions = 'allow'");
    }
    fs::create_dir_all(folder.path("linkspan")).unwrap();
    folder.file("linkspan/config.toml", "permissions = 'allow'");
    let output = linkspan(&["config"])
        .env_clear()
        .env("HOME", folder.path("home"))
        .env("XDG_CONFIG_HOME", ".")
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let stdout = ran(output).stdout;
    assert_eq!(stdout.matches("config.toml").count(), 1, "{stdout}");
    let file = folder.path("home/.config/linkspan/config.toml");
    let last = format!("file: {file}, which does not exist");
    assert_eq!(stdout.lines().last(), Some(last.as_str()));
}

#[test]
fn a_file_that_was_named_has_to_exist() {
    let folder = Folder::new("config-missing");
    check(
        &folder,
        &[],
        &["config", "--config", "no.toml"],
        expect![[r#"
            linkspan: cannot read the config `no.toml`: No such file or directory

            hint: check the path; without `--config` and `LINKSPAN_CONFIG` no file is needed
            exit 3
        "#]],
    );
    let variable = [("LINKSPAN_CONFIG", "/no/such.toml")];
    check(
        &folder,
        &variable,
        &["config"],
        expect![[r#"
        linkspan: cannot read the config `/no/such.toml`: No such file or directory

        hint: check the path; without `--config` and `LINKSPAN_CONFIG` no file is needed
        exit 3
    "#]],
    );
}

#[test]
fn a_flag_wins_over_the_variable() {
    let folder = Folder::new("config-named");
    let named = folder.file("named.toml", "model = 'flag'\n");
    let other = folder.file("other.toml", "model = 1\n");
    let args = ["config", "--config", &named, "--json"];
    let output = linkspan(&args)
        .env("LINKSPAN_CONFIG", &other)
        .output()
        .unwrap();
    let stdout = ran(output).stdout;
    let line = stdout.lines().find(|it| it.contains(r#""key":"model""#));
    let expected =
        format!(r#"{{"key":"model","value":"flag","origin":"file","place":"{named}:1"}}"#);
    assert_eq!(line, Some(expected.as_str()));
}

#[test]
fn mistakes_name_file_line_and_key() {
    let folder = Folder::new("config-bad");
    folder.file("unknown.toml", "\n[engines.claude]\nmodle = 'x'\n");
    folder.file("type.toml", "[engines.claude]\nargs = '--x'\n");
    folder.file("syntax.toml", "a b\n");
    folder.file("escape.toml", "\"\\u001b[2J\" = 1\n");
    for (name, expect) in [
        (
            "unknown.toml",
            expect![[r#"
                linkspan: unknown.toml:3: there is no key `engines.claude.modle`

                hint: did you mean `model`? known here: program, args, env, ask_timeout, ask_default, model, dangerously_skip_permissions, allowed_tools, use_api_billing, output_style
                exit 2
            "#]],
        ),
        (
            "type.toml",
            expect![[r#"
            linkspan: type.toml:2: `engines.claude.args` is "--x", expected a list of strings
            exit 2
        "#]],
        ),
        (
            "syntax.toml",
            expect![[r#"
            linkspan: syntax.toml:1: not TOML: key with no value, expected `=`
            exit 2
        "#]],
        ),
        (
            "escape.toml",
            expect![[r#"
                linkspan: escape.toml:1: there is no key `␛[2J`

                hint: known here: default_engine, model, permissions, start_timeout, idle_timeout, ask_timeout, ask_default, interrupt_grace, terminate_grace, claude, engines, journal, serve
                exit 2
            "#]],
        ),
    ] {
        check(&folder, &[], &["config", "--config", name], expect);
    }
    let variable = [("LINKSPAN_IDLE_TIMEOUT", "soon")];
    check(
        &folder,
        &variable,
        &["config"],
        expect![[r#"
        linkspan: the variable `LINKSPAN_IDLE_TIMEOUT` is `soon`, expected a number of seconds
        exit 2
    "#]],
    );
}
