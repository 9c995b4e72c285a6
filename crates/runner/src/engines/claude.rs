//! Claude Code: one process per prompt, or one per session with the control protocol on stdin.

use serde_json::{Map, Value, json};

use super::invocation::{PromptVia, allowed, mcp_servers, prompt};
use super::{AgentRules, EngineConfig, Error, Invocation, Login, arguments};
use crate::policy::SPECIAL;
use crate::request::{Interaction, Mode, Request, Resume, SecretFile, Stdin};

/// What `listed` allows when neither the caller nor the config has a list.
pub(crate) const ALLOWED_TOOLS: &[&str] = &["Bash", "Read", "Edit", "Write"];

/// The folders that Claude Code itself asks about in its mode `acceptEdits`.
const ITS_OWN_SPECIAL: &[&str] = &[".git", ".claude", ".vscode", ".husky"];

/// With the key, Claude Code does not bill the user's subscription.
pub(super) const LOGIN: Login = Login {
    command: "claude auth login",
    terminal_args: &["/login"],
    keys: &["ANTHROPIC_API_KEY"],
    tokens: &["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"],
    folder: (Some("CLAUDE_CONFIG_DIR"), ".claude"),
    file: ".credentials.json",
    account: Some((".claude.json", "\"oauthAccount\"")),
    store: None,
    has_billing: true,
};

pub(super) const RULES: AgentRules = AgentRules {
    fixed_rules,
    refuses_root: true,
    ..AgentRules::new(invocation, ALLOWED_TOOLS)
};

fn fixed_rules(config: &EngineConfig, request: &Request) -> Result<Vec<String>, Error> {
    let mut rules = refused_edits(request);
    rules.extend(allowed(config, request, ALLOWED_TOOLS));
    Ok(rules)
}

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    let (stdin, argument) = match (request.talk, prompt(request)) {
        (Interaction::Dialogue, _) => (Stdin::Open, None),
        (Interaction::OneShot, PromptVia::Stdin(text)) => (Stdin::Text(text.to_owned()), None),
        // An open stdin would cost three seconds: Claude Code waits for text to add to the prompt.
        (Interaction::OneShot, PromptVia::Argument(text)) => (Stdin::Closed, Some(text)),
    };
    let mut it = Invocation::new(stdin);
    // Without `--verbose`, Claude Code exits with an error when it is to print `stream-json`.
    it.args(["-p", "--output-format", "stream-json", "--verbose"]);
    it.args(["--include-partial-messages", "--forward-subagent-text"]);
    if request.talk == Interaction::Dialogue {
        it.args(["--input-format", "stream-json"]);
        // Without it Claude Code asks nothing and denies; its `--help` does not have the flag.
        it.args(["--permission-prompt-tool", "stdio"]);
    }
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        it.args(["--model", arguments::model(model)?]);
    }
    if let Some(effort) = &request.options.effort {
        it.args(["--effort", arguments::flag_value("the effort", effort)?]);
    }
    resume(&mut it, &request.resume)?;
    permissions(&mut it, config, request)?;
    if let Some(style) = &request.options.output_style {
        arguments::flag_value("the output style", style)?;
    }
    let settings = settings(config, request);
    if !settings.is_empty() {
        it.arg("--settings").arg(Value::from(settings).to_string());
    }
    if !request.mcp_servers.is_empty() {
        // Variables and headers of the servers may be keys, and arguments are in the process list.
        it.private = Some(SecretFile {
            flag: "--mcp-config",
            text: json!({ "mcpServers": mcp_servers(&request.mcp_servers, "type") }).to_string(),
        });
    }
    it.extra(config);
    if let Some(text) = argument {
        // A prompt may begin with a dash, and a flag that takes many words would swallow it.
        it.arg("--").arg(text);
    }
    Ok(it)
}

fn resume(it: &mut Invocation, resume: &Resume) -> Result<(), Error> {
    match resume {
        Resume::Fresh => (),
        Resume::Session(id) => _ = it.args(["--resume", session(id)?]),
        Resume::Latest => _ = it.arg("--continue"),
        Resume::Fork(id) => _ = it.args(["--resume", session(id)?, "--fork-session"]),
    }
    Ok(())
}

/// `--resume` also reads a transcript from any file whose name ends in `.jsonl`, and takes URLs. A
/// caller who may name a session must not thereby name a file or a server.
fn session(id: &str) -> Result<&str, Error> {
    let id = arguments::id(id)?;
    let is_file = id.contains(['/', '\\']) || id.to_lowercase().ends_with(".jsonl");
    // Every URL has a scheme before a colon, and no id of a session has one.
    if is_file || id.contains(':') {
        return Err(arguments::refused(
            "the session id",
            "is a file or an address to Claude Code, no session",
            id,
        ));
    }
    Ok(id)
}

fn permissions(it: &mut Invocation, config: &EngineConfig, request: &Request) -> Result<(), Error> {
    let is_answered = request.can_ask();
    match request.permissions.mode {
        Mode::Ask if is_answered => it.args(["--permission-mode", "manual"]),
        Mode::Ask | Mode::Deny | Mode::Listed => it.args(["--permission-mode", "dontAsk"]),
        // The same as the mode `bypassPermissions`; as root it needs `IS_SANDBOX=1`.
        Mode::Allow => it.arg("--dangerously-skip-permissions"),
        Mode::AcceptEdits => it.args(["--permission-mode", "acceptEdits"]),
        Mode::Plan => it.args(["--permission-mode", "plan"]),
    };
    let allow = allowed(config, request, ALLOWED_TOOLS);
    tools(it, "--allowedTools", &allow)?;
    tools(it, "--disallowedTools", &request.permissions.deny)
}

/// Settings that override the user's own.
fn settings(config: &EngineConfig, request: &Request) -> Map<String, Value> {
    let mut settings = Map::new();
    if let Some(style) = (request.options.output_style.as_ref()).or(config.output_style.as_ref()) {
        settings.insert("outputStyle".to_owned(), json!(style));
    }
    // Otherwise a classifier decides in plan mode which commands run, without asking. An agent that
    // stays may be switched to that mode later.
    if request.permissions.mode == Mode::Plan || request.talk == Interaction::Dialogue {
        settings.insert("useAutoModeDuringPlan".to_owned(), json!(false));
    }
    let refused = refused_edits(request);
    if !refused.is_empty() {
        settings.insert("permissions".to_owned(), json!({ "deny": refused }));
    }
    settings
}

/// The files that `accept-edits` must not change without a question, and that Claude Code does not know to
/// be special. A rule that asks would hold for its tools only, one that denies holds for commands too.
pub(super) fn refused_edits(request: &Request) -> Vec<String> {
    match request.permissions.mode {
        Mode::AcceptEdits => {
            let folders = SPECIAL.iter().filter(|it| !ITS_OWN_SPECIAL.contains(it));
            folders.map(|it| format!("Edit(**/{it}/**)")).collect()
        }
        Mode::Plan | Mode::Deny | Mode::Ask | Mode::Listed | Mode::Allow => Vec::new(),
    }
}

/// The flags take any number of words, so the list is tied to them by `=`.
fn tools(it: &mut Invocation, flag: &str, tools: &[String]) -> Result<(), Error> {
    arguments::tools(tools)?;
    if !tools.is_empty() {
        it.arg(format!("{flag}={}", tools.join(",")));
    }
    Ok(())
}
