//! `linkspan engines` on machines that are made up: a `PATH` of small scripts, a home of one file.

use std::time::{Duration, Instant};

use expect_test::{Expect, expect};

use crate::agents_table::{BEHAVIOURS, Cell, ENGINES};
use crate::program::{Folder, Ran, linkspan, machine, ran};

fn run(folder: &Folder, args: &[&str]) -> Ran {
    let output = linkspan(args)
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .output()
        .unwrap();
    ran(output)
}

fn check(folder: &Folder, args: &[&str], expect: Expect) {
    let shown = run(folder, args).shown();
    expect.assert_eq(&shown.replace(&folder.path(""), "/made/"));
}

const CLAUDE: (&str, &str) = ("claude", "echo '2.1.325 (Claude Code)'");
const GEMINI: (&str, &str) = ("gemini", "echo noise >&2; echo 0.61.0");

#[test]
fn installed_engines_have_a_version_and_the_rest_a_command() {
    let folder = machine("engines-some", &[CLAUDE, GEMINI], "");
    check(
        &folder,
        &["engines"],
        expect![[r#"
            engine            installed  version  what it is                                                   where, or how to install
            claude            yes        2.1.325  Claude Code                                                  /made/bin/claude
            codex             no                  Codex                                                        npm install -g @openai/codex
            opencode          no                  OpenCode                                                     npm install -g opencode-ai
            gemini            yes        0.61.0   Gemini CLI                                                   /made/bin/gemini
            openhands         no                  OpenHands                                                    pip install openhands-sdk openhands-tools
            acp:COMMAND       -                   any agent that speaks the Agent Client Protocol
            responses:NAME    -                   a model of any OpenResponses endpoint
            replay:FILE       -                   a recording, played again
            replay:tools      yes                 Claude Code runs a command, writes and edits a file
            replay:approval   yes                 Claude Code asks before it writes a file and runs a command
            replay:subagents  yes                 Claude Code hands work to a sub-agent
            replay:failure    yes                 Claude Code meets an error of the model server

            default: claude, the first one installed of codex, claude, opencode, gemini
            exit 0
        "#]],
    );
    check(
        &folder,
        &["engines", "--json"],
        expect![[r#"
            {"name":"claude","summary":"Claude Code","installed":true,"version":"2.1.325","path":"/made/bin/claude","install":"npm install -g @anthropic-ai/claude-code","default":true}
            {"name":"codex","summary":"Codex","installed":false,"version":null,"path":null,"install":"npm install -g @openai/codex","default":false}
            {"name":"opencode","summary":"OpenCode","installed":false,"version":null,"path":null,"install":"npm install -g opencode-ai","default":false}
            {"name":"gemini","summary":"Gemini CLI","installed":true,"version":"0.61.0","path":"/made/bin/gemini","install":"npm install -g @google/gemini-cli","default":false}
            {"name":"openhands","summary":"OpenHands","installed":false,"version":null,"path":null,"install":"pip install openhands-sdk openhands-tools","default":false}
            {"name":"acp:COMMAND","summary":"any agent that speaks the Agent Client Protocol","installed":null,"version":null,"path":null,"install":null,"default":false}
            {"name":"responses:NAME","summary":"a model of any OpenResponses endpoint","installed":null,"version":null,"path":null,"install":null,"default":false}
            {"name":"replay:FILE","summary":"a recording, played again","installed":null,"version":null,"path":null,"install":null,"default":false}
            {"name":"replay:tools","summary":"Claude Code runs a command, writes and edits a file","installed":true,"version":null,"path":null,"install":null,"default":false}
            {"name":"replay:approval","summary":"Claude Code asks before it writes a file and runs a command","installed":true,"version":null,"path":null,"install":null,"default":false}
            {"name":"replay:subagents","summary":"Claude Code hands work to a sub-agent","installed":true,"version":null,"path":null,"install":null,"default":false}
            {"name":"replay:failure","summary":"Claude Code meets an error of the model server","installed":true,"version":null,"path":null,"install":null,"default":false}
            exit 0
        "#]],
    );
}

#[test]
fn nothing_installed_still_has_recordings() {
    let folder = machine("engines-none", &[], "");
    check(
        &folder,
        &["engines"],
        expect![[r#"
            engine            installed  version  what it is                                                   where, or how to install
            claude            no                  Claude Code                                                  npm install -g @anthropic-ai/claude-code
            codex             no                  Codex                                                        npm install -g @openai/codex
            opencode          no                  OpenCode                                                     npm install -g opencode-ai
            gemini            no                  Gemini CLI                                                   npm install -g @google/gemini-cli
            openhands         no                  OpenHands                                                    pip install openhands-sdk openhands-tools
            acp:COMMAND       -                   any agent that speaks the Agent Client Protocol
            responses:NAME    -                   a model of any OpenResponses endpoint
            replay:FILE       -                   a recording, played again
            replay:tools      yes                 Claude Code runs a command, writes and edits a file
            replay:approval   yes                 Claude Code asks before it writes a file and runs a command
            replay:subagents  yes                 Claude Code hands work to a sub-agent
            replay:failure    yes                 Claude Code meets an error of the model server

            default: none of codex, claude, opencode, gemini is installed; `linkspan run --engine replay:tools` works anyway
            exit 0
        "#]],
    );
}

#[test]
fn the_config_names_programs_agents_and_the_default() {
    let config = "default_engine = 'acp:mine'\n[engines.codex]\nprogram = 'my-codex'\n\
                  env = { VERSION = '7.8.9' }\n[engines.acp.mine]\nprogram = 'claude'";
    let programs = [CLAUDE, ("my-codex", "echo \"codex-cli $VERSION\"")];
    let folder = machine("engines-config", &programs, config);
    check(
        &folder,
        &["engines"],
        expect![[r#"
            engine            installed  version  what it is                                                   where, or how to install
            claude            yes        2.1.325  Claude Code                                                  /made/bin/claude
            codex             yes        7.8.9    Codex                                                        /made/bin/my-codex
            opencode          no                  OpenCode                                                     npm install -g opencode-ai
            gemini            no                  Gemini CLI                                                   npm install -g @google/gemini-cli
            openhands         no                  OpenHands                                                    pip install openhands-sdk openhands-tools
            acp:COMMAND       -                   any agent that speaks the Agent Client Protocol
            acp:mine          yes        ?        an agent of the config                                       /made/bin/claude
            responses:NAME    -                   a model of any OpenResponses endpoint
            replay:FILE       -                   a recording, played again
            replay:tools      yes                 Claude Code runs a command, writes and edits a file
            replay:approval   yes                 Claude Code asks before it writes a file and runs a command
            replay:subagents  yes                 Claude Code hands work to a sub-agent
            replay:failure    yes                 Claude Code meets an error of the model server

            default: acp:mine, as /made/config/linkspan/config.toml:1 says
            exit 0
        "#]],
    );
}

#[test]
fn a_program_that_does_not_answer_is_not_waited_for() {
    let hung = ("codex", "trap '' INT TERM; while :; do /bin/sleep 60; done");
    let loud = ("opencode", "while :; do echo no version; done");
    let failing = ("gemini", "echo 'v1.2.3-beta+7'; exit 3");
    let folder = machine("engines-hung", &[hung, loud, failing], "");
    let start = Instant::now();
    check(
        &folder,
        &["engines"],
        expect![[r#"
            engine            installed  version       what it is                                                   where, or how to install
            claude            no                       Claude Code                                                  npm install -g @anthropic-ai/claude-code
            codex             yes        ?             Codex                                                        /made/bin/codex
            opencode          yes        ?             OpenCode                                                     /made/bin/opencode
            gemini            yes        1.2.3-beta+7  Gemini CLI                                                   /made/bin/gemini
            openhands         no                       OpenHands                                                    pip install openhands-sdk openhands-tools
            acp:COMMAND       -                        any agent that speaks the Agent Client Protocol
            responses:NAME    -                        a model of any OpenResponses endpoint
            replay:FILE       -                        a recording, played again
            replay:tools      yes                      Claude Code runs a command, writes and edits a file
            replay:approval   yes                      Claude Code asks before it writes a file and runs a command
            replay:subagents  yes                      Claude Code hands work to a sub-agent
            replay:failure    yes                      Claude Code meets an error of the model server

            default: codex, the first one installed of codex, claude, opencode, gemini
            exit 0
        "#]],
    );
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_bad_config_is_reported_before_any_question() {
    let folder = machine("engines-bad", &[], "defualt_engine = 'claude'");
    check(
        &folder,
        &["engines"],
        expect![[r#"
        linkspan: /made/config/linkspan/config.toml:1: there is no key `defualt_engine`

        hint: did you mean `default_engine`? known here: default_engine, model, permissions, start_timeout, idle_timeout, ask_timeout, ask_default, interrupt_grace, terminate_grace, claude, engines, journal, serve
        exit 2
    "#]],
    );
}

#[test]
fn the_manual_lists_what_is_tried_with_the_real_agents() {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |");
    let names = ENGINES.map(|it| format!("`{it}`"));
    let mut table = row([&[String::new()], &names[..]].concat());
    table.push_str(&row(vec!["---".to_owned(); ENGINES.len() + 1]));
    for behaviour in BEHAVIOURS {
        let cells = behaviour.cells.map(|it| match it {
            Cell::Yes => "yes".to_owned(),
            Cell::Never(why) => format!("n/a: {why}"),
        });
        table.push_str(&row([&[behaviour.name.to_owned()], &cells[..]].concat()));
    }
    let manual = include_str!("../../../../docs/engines.md");
    assert!(
        manual.contains(&table),
        "docs/engines.md lacks this table:\n{table}"
    );
}
