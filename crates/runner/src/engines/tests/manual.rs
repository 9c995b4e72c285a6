//! The tables of permissions in `docs/engines.md` are made from the code: from the table of modes, from
//! the arguments that each agent is started with, and from the answers that questions get.
//!
//! `UPDATE_EXPECT=1 cargo test -p linkspan-runner manual` writes them.

use std::fs;

use model::{Ask, AskId, AskKind, Text, ToolKind};
use serde_json::Value;

use super::*;
use crate::policy::{PendingAsk, PolicyDecision, decide};
use crate::request::Answer;

const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engines.md");
const BEGIN: &str = "<!-- permissions: made from the code -->\n";
const END: &str = "<!-- permissions: end -->\n";

#[test]
fn the_manual_has_the_permissions_of_the_code() {
    let manual = fs::read_to_string(MANUAL).unwrap();
    let (before, rest) = manual.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let made = format!("\n{}\n{}\n{}\n", modes(), engines(), lists());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(MANUAL, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, made,
        "`UPDATE_EXPECT=1 cargo test -p linkspan-runner manual` writes docs/engines.md"
    );
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter().map(|it| format!(" {it} |"));
    format!("|{}\n", cells.collect::<String>())
}

fn modes() -> String {
    let mut table = "| Mode | What runs without a question | Needs on the server |\n\
                     | --- | --- | --- |\n"
        .to_owned();
    for it in MODES {
        let name = format!("`{}`", it.name);
        let role = match it.needs_approval {
            true => "`approve`",
            false => "`prompt`; with a list `approve`",
        };
        table += &row([name, it.runs.to_owned(), role.to_owned()]);
    }
    table
}

/// What every mode becomes for every agent.
fn engines() -> String {
    let names = MODES.iter().map(|it| format!("`{}`", it.name));
    let mut table = row([String::new()].into_iter().chain(names));
    table = table.replacen("|  |", "| |", 1);
    table += &format!("|{}\n", " --- |".repeat(MODES.len() + 1));
    for name in ["claude", "codex", "opencode", "gemini", "openhands"] {
        for (talk_name, talk) in [
            ("one prompt", Interaction::OneShot),
            ("talked with", Interaction::Dialogue),
        ] {
            let cells = MODES.iter().map(|it| cell(name, it.mode, talk));
            let title = format!("`{name}`, {talk_name}");
            table += &row([title].into_iter().chain(cells));
        }
    }
    let answers = MODES.iter().map(|it| answers(it.mode));
    table + &row(["`acp:…`".to_owned()].into_iter().chain(answers))
}

fn cell(name: &str, mode: Mode, talk: Interaction) -> String {
    let launch = launch(name, &config(""), &request(mode, talk, Resume::Fresh)).unwrap();
    let args: Vec<&str> = launch.args.iter().map(|it| it.to_str().unwrap()).collect();
    match name {
        "claude" | "gemini" => flags(&args),
        "codex" => sandbox(&args),
        "opencode" => rules(&args, &launch),
        _ => limits(mode, talk),
    }
}

/// The flags that are about permissions.
fn flags(args: &[&str]) -> String {
    let mut shown = Vec::new();
    for pair in args.windows(2) {
        if matches!(pair[0], "--permission-mode" | "--approval-mode") {
            shown.push(format!("`{} {}`", pair[0], pair[1]));
        }
    }
    let alone = ["--dangerously", "--allowed", "--skip-trust"];
    for arg in args {
        if alone.iter().any(|it| arg.starts_with(it)) {
            shown.push(format!("`{arg}`"));
        }
    }
    shown.join(", ")
}

fn sandbox(args: &[&str]) -> String {
    let value = |key: &str| {
        let mut values = args
            .iter()
            .filter_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        values.next().map(|it| it.trim_matches('"').to_owned())
    };
    let asks = match value("approval_policy").as_deref() {
        Some("never") => "",
        Some("on-request") => ", asks",
        other => panic!("{other:?}"),
    };
    let elsewhere = match value("sandbox_workspace_write.exclude_slash_tmp") {
        Some(_) => ", without `/tmp`",
        None => "",
    };
    format!("`{}`{elsewhere}{asks}", value("sandbox_mode").unwrap())
}

fn rules(args: &[&str], launch: &Launch) -> String {
    let rules = launch
        .env
        .iter()
        .find(|it| it.0 == "OPENCODE_PERMISSION")
        .unwrap();
    let rules: Value = serde_json::from_str(rules.1.to_str().unwrap()).unwrap();
    let rule = |tool: &str| rules[tool]["*"].as_str().unwrap().to_owned();
    let mut shown = format!(
        "`edit` {}, `bash` {}, looks {}, the rest {}",
        rule("edit"),
        rule("bash"),
        rule("read"),
        rule("*")
    );
    for flag in ["--auto", "plan"] {
        if args.contains(&flag) {
            let flag = flag.replace("plan", "--agent plan");
            shown = format!("`{flag}`; {shown}");
        }
    }
    shown
}

fn limits(mode: Mode, talk: Interaction) -> String {
    let limits = openhands::limits(
        &EngineConfig::default(),
        &request(mode, talk, Resume::Fresh),
    );
    let limits = serde_json::to_value(limits).unwrap();
    let is = |key: &str| limits[key] == Value::Bool(true);
    if is("everything") {
        return "everything".to_owned();
    }
    let tools = limits["allow"].as_array().unwrap().iter();
    let tools = tools.map(|it| format!("`{}`", it.as_str().unwrap()));
    let edits = is("edits").then(|| "`file_editor` below the working directory".to_owned());
    let runs: Vec<String> = ["looks".to_owned()]
        .into_iter()
        .chain(tools)
        .chain(edits)
        .collect();
    let rest = match (is("asks"), mode) {
        (true, Mode::Plan) => "commands and changes denied, the rest asked",
        (true, _) => "the rest asked",
        (false, _) => "the rest denied",
    };
    format!("{}; {rest}", runs.join(", "))
}

/// How questions are answered where there is no list.
fn answers(mode: Mode) -> String {
    let answer = |kind: ToolKind| {
        let ask = Ask {
            id: AskId::new("a"),
            kind: AskKind::Permission,
            item: None,
            tool: "tool".into(),
            title: Text::new("tool"),
            description: None,
            input: None,
            suggestions: None,
            deadline: None,
        };
        let asked = PendingAsk {
            ask,
            kind,
            paths: vec!["Cargo.toml".into()],
            cwd: Some(env!("CARGO_MANIFEST_DIR").into()),
        };
        let permissions = Permissions {
            mode,
            ..Permissions::default()
        };
        match decide(&permissions, &asked) {
            PolicyDecision::Ask => "asked",
            PolicyDecision::Settle(Answer::Allow { .. } | Answer::AllowAlways { .. }) => "yes",
            PolicyDecision::Settle(Answer::Deny { .. }) => "no",
        }
    };
    let kinds = [
        ("read", ToolKind::Read),
        ("edit", ToolKind::Edit),
        ("command", ToolKind::Shell),
        ("other", ToolKind::Fetch),
    ];
    let answers: Vec<(&str, &str)> = kinds.map(|it| (it.0, answer(it.1))).to_vec();
    if answers.iter().all(|it| it.1 == answers[0].1) {
        return format!("every question: {}", answers[0].1);
    }
    let shown: Vec<String> = answers
        .iter()
        .map(|it| format!("{} {}", it.0, it.1))
        .collect();
    format!("questions: {}", shown.join(", "))
}

/// What `listed` runs when nobody has given a list.
fn lists() -> String {
    let mut table = "| Engine | `listed` without a list |\n| --- | --- |\n".to_owned();
    let config = config("[engines.acp.mine]\nprogram = 'm'");
    for name in [
        "claude",
        "codex",
        "opencode",
        "gemini",
        "openhands",
        "acp:mine",
    ] {
        let permissions = Permissions {
            mode: Mode::Listed,
            ..Permissions::default()
        };
        let list = agent(name, &config)
            .listed(&permissions)
            .unwrap_or_default();
        let list = match list.contains('`') {
            true => list,
            false => format!("`{}`", list.replace(", ", "`, `")),
        };
        let name = name.replace("mine", "…");
        table += &row([format!("`{name}`"), list]);
    }
    table
}
