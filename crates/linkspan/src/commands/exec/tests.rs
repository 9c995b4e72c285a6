//! The table of flags, row by row: what each becomes for Codex, and for an engine that is not Codex.

use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Command};

/// The order is that of `@openai/codex-sdk` 0.163.0.
const ALL: &[&str] = &[
    "--experimental-json",
    "--config",
    "linkspan.engine=\"claude\"",
    "--config",
    "linkspan.allowed_tools=[\"Bash\"]",
    "--model",
    "m",
    "--sandbox",
    "workspace-write",
    "--cd",
    "/work space",
    "--skip-git-repo-check",
    "--config",
    "approval_policy=\"never\"",
    "resume",
    "5c0d",
];

fn parsed(flags: &[&str]) -> Box<ExecArgs> {
    let words = ["linkspan", "exec"].iter().chain(flags);
    match Cli::try_parse_from(words).unwrap().command {
        Command::Exec(args) => args,
        other => panic!("{other:?}"),
    }
}

/// What a command line becomes for an engine: its words for `run`, and what is handed on.
fn becomes(flags: &[&str], engine: &str) -> Result<(String, HandedOn), String> {
    let args = parsed(flags);
    let settings = CodexSettings::read(&args.config).map_err(|err| err.message())?;
    let run = run_args(&args, &settings);
    let handed = HandedOn::new(&args, &settings, engines::find(engine), engine);
    let options = &run.options;
    let mut words = vec![format!("--to {}", run.to)];
    words.extend(run.engine.map(|it| format!("--engine {it}")));
    words.extend(options.model.iter().map(|it| format!("--model {it}")));
    let mode = options.permissions;
    words.extend(mode.map(|it| format!("--permissions {}", it.name())));
    words.extend(options.allow.iter().map(|it| format!("--allow {it}")));
    words.extend(run.cwd.map(|it| format!("--cwd {}", it.display())));
    words.extend(run.resume.map(|it| format!("--resume {it}")));
    Ok((words.join(" "), handed.map_err(|err| err.message())?))
}

fn handed(args: &[&str], ignored: &[&str]) -> HandedOn {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    HandedOn {
        args: own(args),
        effort: None,
        ignored: own(ignored),
    }
}

#[test]
fn the_whole_command_line_of_the_sdk() {
    let (words, rest) = becomes(ALL, "claude").unwrap();
    let expected = "--to thread --engine claude --model m --permissions listed --allow Bash \
                    --cwd /work space --resume 5c0d";
    assert_eq!((&*words, rest), (expected, HandedOn::default()));
}

#[test]
fn the_sandbox_is_a_permission_mode() {
    for (sandbox, mode) in [
        ("read-only", "plan"),
        ("workspace-write", "listed"),
        ("danger-full-access", "allow"),
    ] {
        let (words, _) = becomes(&["--json", "--sandbox", sandbox], "codex").unwrap();
        assert_eq!(words, format!("--to thread --permissions {mode} --cwd ."));
    }
    let both = [
        "--json",
        "-s",
        "read-only",
        "-c",
        "linkspan.permissions=\"allow\"",
    ];
    let (words, _) = becomes(&both, "claude").unwrap();
    assert_eq!(words, "--to thread --permissions allow --cwd .");
}

/// A flag, what Codex is given, and what becomes of it for another engine.
#[test]
fn what_only_codex_has() {
    enum Other {
        Refused,
        Ignored(&'static str),
        Meaningless,
    }
    use Other::{Ignored, Meaningless, Refused};
    let table: &[(&[&str], &[&str], Other)] = &[
        (&["--skip-git-repo-check"], &[], Meaningless),
        (
            &["--thread-source", "s"],
            &["--thread-source=s"],
            Ignored("`--thread-source` has no effect with claude"),
        ),
        (
            &["-c", "web_search=\"live\""],
            &["--config=web_search=\"live\""],
            Ignored("`web_search` has no effect with claude"),
        ),
        (
            &["-c", "sandbox_workspace_write.network_access=true"],
            &["--config=sandbox_workspace_write.network_access=true"],
            Ignored("`sandbox_workspace_write.network_access` has no effect with claude"),
        ),
        (&["--output-schema", "f"], &["--output-schema=f"], Refused),
        (&["--add-dir", "d"], &["--add-dir=d"], Refused),
        (
            &["--cyber-access-program", "p"],
            &["--cyber-access-program=p"],
            Refused,
        ),
        (
            &["-c", "openai_base_url=\"u\""],
            &["--config=openai_base_url=\"u\""],
            Refused,
        ),
        (&["resume", "t", "--image", "i"], &["--image=i"], Refused),
    ];
    for (flags, to_codex, other) in table {
        let (_, rest) = becomes(flags, "codex").unwrap();
        assert_eq!(rest, handed(to_codex, &[]), "{flags:?}");
        let name = flags.iter().find(|it| it.starts_with("--")).copied();
        let name = name.unwrap_or_else(|| flags[1].split('=').next().unwrap());
        let refusal = format!("linkspan: `{name}` is not supported by claude");
        let expected = match other {
            Refused => Err(refusal),
            Ignored(line) => Ok(handed(&[], &[line])),
            Meaningless => Ok(HandedOn::default()),
        };
        let found = becomes(flags, "claude").map(|it| it.1);
        assert_eq!(found, expected, "{flags:?}");
    }
}

#[test]
fn an_effort_goes_to_the_engines_that_know_it() {
    let effort = ["-c", "model_reasoning_effort=\"minimal\""];
    let given = |engine| becomes(&effort, engine).unwrap().1;
    assert_eq!(given("codex").effort.as_deref(), Some("minimal"));
    let line = "`model_reasoning_effort` `minimal` has no effect with claude";
    assert_eq!(given("claude"), handed(&[], &[line]));
    let high = becomes(&["-c", "model_reasoning_effort=high"], "claude");
    assert_eq!(high.unwrap().1.effort.as_deref(), Some("high"));
}

#[test]
fn nobody_can_be_asked() {
    for policy in ["on-request", "untrusted", "on-failure"] {
        let setting = format!("approval_policy=\"{policy}\"");
        let refused = becomes(&["-c", &setting], "codex").unwrap_err();
        let expected = format!("linkspan: `approval_policy` cannot be `{policy}`");
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_setting_of_linkspan_that_is_wrong_is_named() {
    for (setting, expected) in [
        (
            "linkspan.engin=x",
            "linkspan: there is no setting `linkspan.engin`",
        ),
        (
            "linkspan.permissions=\"all\"",
            "linkspan: `linkspan.permissions`: there is no `all`, only `plan`, `deny`, `ask`, \
             `accept-edits`, `listed`, `allow`",
        ),
        (
            "linkspan.allowed_tools=Bash",
            "linkspan: `linkspan.allowed_tools` is a list of names, not `Bash`",
        ),
        ("model", "linkspan: `--config model` has no value"),
    ] {
        assert_eq!(becomes(&["-c", setting], "claude").unwrap_err(), expected);
    }
}

#[test]
fn an_unknown_flag_is_refused_by_its_name() {
    let refused = Cli::try_parse_from(["linkspan", "exec", "--ephemeral"]).unwrap_err();
    assert!(refused.to_string().contains("--ephemeral"), "{refused}");
}
