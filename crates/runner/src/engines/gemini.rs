//! Gemini CLI: one process per prompt, or ACP on stdio.

use super::invocation::{PromptVia, allowed, prompt};
use super::{AgentRules, EngineConfig, Error, Invocation, Login, arguments};
use crate::request::{Interaction, Mode, Request, Resume, Stdin};

/// What `listed` allows when neither the caller nor the config has a list; reading is never asked.
pub(crate) const ALLOWED_TOOLS: &[&str] = &["run_shell_command", "write_file", "replace"];

/// Otherwise it starts itself a second time, which takes twice as long, and the first one keeps
/// signals to itself.
pub(super) const ENV: &[(&str, &str)] = &[("GEMINI_CLI_NO_RELAUNCH", "true")];

/// Its own settings say which of them it uses.
pub(super) const LOGIN: Login = Login {
    command: "gemini",
    terminal_args: &[],
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    tokens: &["GOOGLE_GENAI_USE_VERTEXAI"],
    folder: (None, ".gemini"),
    file: "oauth_creds.json",
    account: None,
    store: None,
    has_billing: false,
};

pub(super) const RULES: AgentRules = AgentRules {
    fixed_rules: |config, request| Ok(allowed(config, request, ALLOWED_TOOLS)),
    ..AgentRules::new(invocation, ALLOWED_TOOLS)
};

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    let session = session(&request.resume)?;
    if !request.permissions.deny.is_empty() {
        return Err(Error::Unable {
            engine: "gemini",
            what: "deny single tools",
            hint: "write a policy file, and name it in `args` in the config: `--policy=FILE`",
        });
    }
    arguments::whole_tools(request.permissions.allow.as_deref().unwrap_or_default())?;
    let mut it = Invocation::new(Stdin::Closed);
    if request.talk == Interaction::OneShot {
        it.args(["--output-format", "stream-json"]);
        // In a folder that the user does not trust, it refuses to run a prompt without this. When it is
        // talked with it can do without, and then reads no settings, hooks and tool servers from there.
        it.arg("--skip-trust");
    } else {
        it.stdin = Stdin::Open;
        it.arg("--acp");
    }
    permissions(&mut it, config, request)?;
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        it.args(["-m", arguments::model(model)?]);
    }
    // When it talks, a session is opened by messages.
    if let (Some(session), Interaction::OneShot) = (session, request.talk) {
        it.args(["--resume", session]);
    }
    it.extra(config);
    match (request.talk, prompt(request)) {
        (Interaction::Dialogue, _) => (),
        (Interaction::OneShot, PromptVia::Stdin(text)) => it.stdin = Stdin::Text(text.to_owned()),
        // Tied by `=`: a prompt that begins with a dash would be taken for a flag.
        (Interaction::OneShot, PromptVia::Argument(text)) => _ = it.arg(format!("--prompt={text}")),
    }
    Ok(it)
}

fn session(resume: &Resume) -> Result<Option<&str>, Error> {
    match resume {
        Resume::Fresh => Ok(None),
        Resume::Session(id) => named(id).map(Some),
        Resume::Latest => Ok(Some("latest")),
        Resume::Fork(_) => Err(Error::Unable {
            engine: "gemini",
            what: "fork a session",
            hint: "resume it instead, with `--resume`",
        }),
    }
}

/// `latest` and numbers are places in a list, not ids.
fn named(id: &str) -> Result<&str, Error> {
    let id = arguments::id(id)?;
    if id != "latest" && id.contains(|it: char| !it.is_ascii_digit()) {
        return Ok(id);
    }
    Err(arguments::refused(
        "the session id",
        "is a place in a list to Gemini CLI, no id",
        id,
    ))
}

fn permissions(it: &mut Invocation, config: &EngineConfig, request: &Request) -> Result<(), Error> {
    let mode = match request.permissions.mode {
        // In a one-shot run, what would be asked is not even offered to the model.
        Mode::Ask | Mode::Deny | Mode::Listed => "default",
        Mode::Allow => "yolo",
        Mode::AcceptEdits => "auto_edit",
        Mode::Plan => "plan",
    };
    it.args(["--approval-mode", mode]);
    let allow = allowed(config, request, ALLOWED_TOOLS);
    arguments::tools(&allow)?;
    if !allow.is_empty() {
        it.arg(format!("--allowed-tools={}", allow.join(",")));
    }
    Ok(())
}
