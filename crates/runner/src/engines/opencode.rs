//! OpenCode: `opencode run` for one prompt, `opencode acp` to talk with it.
//!
//! `run` puts a prompt with spaces into quotes and escapes those inside, so prompts always go by stdin.
//! Permissions are rules in its config, by tool and pattern; `OPENCODE_PERMISSION` is laid over them.

use serde_json::{Map, Value, json};

use super::invocation::allowed;
use super::{AgentRules, EngineConfig, Error, Invocation, Login, arguments};
use crate::request::{Interaction, Mode, Request, Resume, Stdin};

/// Its own config chooses the provider and the login.
pub(super) const LOGIN: Login = Login {
    command: "opencode auth login",
    terminal_args: &["auth", "login"],
    keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    tokens: &["OPENCODE_CONFIG_CONTENT"],
    folder: (None, ".local/share/opencode"),
    file: "auth.json",
    account: None,
    store: None,
    has_billing: false,
};

/// Tools, and the name that OpenCode's rules have for them: one rule is for all changes of files.
const TOOLS: &[(&str, &str)] = &[
    ("apply_patch", "edit"),
    ("bash", "bash"),
    ("edit", "edit"),
    ("glob", "glob"),
    ("grep", "grep"),
    ("list", "list"),
    ("read", "read"),
    ("shell", "bash"),
    ("task", "task"),
    ("todowrite", "todowrite"),
    ("webfetch", "webfetch"),
    ("websearch", "websearch"),
    ("write", "edit"),
];

/// What `listed` allows when neither the caller nor the config has a list; reading is never asked.
pub(crate) const ALLOWED_TOOLS: &[&str] = &["bash", "read", "edit", "write"];

/// Tools that change nothing and reach nothing but the working directory.
const LOOKS: &[&str] = &[
    "glob",
    "grep",
    "list",
    "lsp",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
];

pub(super) const RULES: AgentRules = AgentRules {
    fixed_rules,
    ..AgentRules::new(invocation, ALLOWED_TOOLS)
};

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    let mut it = match request.talk {
        Interaction::OneShot => run(config, request)?,
        Interaction::Dialogue => acp(config, request)?,
    };
    let rules = rules(config, request)?;
    if !rules.is_empty() {
        it.env("OPENCODE_PERMISSION", Value::Object(rules).to_string());
    }
    Ok(it)
}

fn run(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    let mut it = Invocation::new(Stdin::Text(request.prompt.clone()));
    it.args(["run", "--format", "json", "--thinking"]);
    match &request.resume {
        Resume::Fresh => (),
        Resume::Session(id) => _ = it.args(["--session", arguments::id(id)?]),
        Resume::Latest => _ = it.arg("--continue"),
        Resume::Fork(id) => _ = it.args(["--session", arguments::id(id)?, "--fork"]),
    }
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        it.args(["--model", arguments::model(model)?]);
    }
    match request.permissions.mode {
        Mode::Ask | Mode::Deny | Mode::AcceptEdits | Mode::Listed => (),
        Mode::Allow => _ = it.arg("--auto"),
        Mode::Plan => _ = it.args(["--agent", "plan"]),
    }
    it.extra(config);
    Ok(it)
}

/// Session, model and mode are chosen by messages.
fn acp(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    if let Resume::Session(id) | Resume::Fork(id) = &request.resume {
        arguments::id(id)?;
    }
    let mut it = Invocation::new(Stdin::Open);
    it.arg("acp").extra(config);
    Ok(it)
}

/// By default OpenCode asks hardly anything, so every mode has to say what may happen.
fn rules(config: &EngineConfig, request: &Request) -> Result<Map<String, Value>, Error> {
    // An unanswered question ends the run; after a refusal it continues.
    let asked = match request.can_ask() {
        true => "ask",
        false => "deny",
    };
    let (edit, bash, rest) = match request.permissions.mode {
        Mode::Plan => ("deny", "deny", asked),
        Mode::Deny | Mode::Listed => ("deny", "deny", "deny"),
        Mode::Ask => (asked, asked, asked),
        Mode::AcceptEdits => ("allow", asked, asked),
        Mode::Allow => ("allow", "allow", "allow"),
    };
    let mut rules = Map::new();
    let rest = ["*", "external_directory"].map(|it| (it, rest));
    let looks = LOOKS.iter().map(|it| (*it, "allow"));
    for (tool, rule) in rest.into_iter().chain(looks) {
        rules.insert(tool.to_owned(), json!({ "*": rule }));
    }
    for (tool, rule) in [("edit", edit), ("bash", bash)] {
        rules.insert(tool.to_owned(), json!({ "*": rule }));
    }
    list(
        &mut rules,
        &allowed(config, request, ALLOWED_TOOLS),
        "allow",
    )?;
    // Last, so that a denial replaces what a list allows.
    list(&mut rules, &request.permissions.deny, "deny")?;
    Ok(rules)
}

/// The rules as text: they hold as long as the process.
fn fixed_rules(config: &EngineConfig, request: &Request) -> Result<Vec<String>, Error> {
    rules(config, request).map(|it| vec![Value::Object(it).to_string()])
}

/// Adds `bash`, or `bash(git *)` for some of its commands.
fn list(rules: &mut Map<String, Value>, tools: &[String], rule: &str) -> Result<(), Error> {
    arguments::tools(tools)?;
    for tool in tools {
        let (name, pattern) = match tool.strip_suffix(')').and_then(|it| it.split_once('(')) {
            Some((name, pattern)) => (name, pattern),
            None => (tool.as_str(), "*"),
        };
        let patterns = rules.entry(own_name(name)).or_insert_with(|| json!({}));
        if pattern == "*" {
            // Earlier rules for some commands would be exceptions otherwise.
            *patterns = json!({});
        }
        patterns[pattern] = json!(rule);
    }
    Ok(())
}

/// A rule under any other name would be no rule. Tools of tool servers are called as they are.
fn own_name(name: &str) -> &str {
    let known = TOOLS.iter().find(|it| it.0.eq_ignore_ascii_case(name));
    known.map_or(name, |it| it.1)
}
