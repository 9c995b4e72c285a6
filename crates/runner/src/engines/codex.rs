//! Codex: `codex exec` for one prompt, `codex app-server` to talk with it.
//!
//! Codex has no lists of tools: a sandbox limits what commands can do, and a policy decides when it asks.

use super::invocation::{PromptVia, prompt};
use super::login::{Key, Store};
use super::{AgentRules, EngineConfig, Error, Invocation, Login, arguments};
use crate::request::{
    Interaction, Launch, McpServer, McpVia, Mode, Permissions, Request, Resume, Stdin,
};
use crate::secrets::is_secret;

/// `codex exec` prefers `CODEX_API_KEY` to the login of `codex login`, and its app server takes a key by
/// message. Neither looks at `OPENAI_API_KEY`, which is never withheld: providers of the user's own config,
/// and programs that Codex runs, may need it.
pub(super) const LOGIN: Login = Login {
    command: "codex login",
    terminal_args: &["login"],
    keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    tokens: &[],
    folder: (Some("CODEX_HOME"), ".codex"),
    file: "auth.json",
    account: None,
    store: Some(Store {
        file: "config.toml",
        key: "cli_auth_credentials_store",
        elsewhere: &["auto", "keyring"],
    }),
    has_billing: true,
};

/// Gives Codex the key that it is to use. The dialogue sends it to the app server; with this setting it
/// keeps the key in memory, and leaves the user's `auth.json` alone.
fn use_key(launch: &mut Launch, key: &Key, talk: Interaction) {
    match talk {
        Interaction::OneShot => {
            let name = LOGIN.first_key();
            launch.env.push((name.into(), key.value.clone()));
        }
        Interaction::Dialogue => {
            let setting = "cli_auth_credentials_store=\"ephemeral\"";
            launch.args.extend(["-c".into(), setting.into()]);
        }
    }
}

pub(super) const RULES: AgentRules = AgentRules {
    use_key: Some(use_key),
    sandbox: Some("workspace-write"),
    // It has a sandbox instead of a list.
    ..AgentRules::new(invocation, &[])
};

fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    lists(request)?;
    match request.talk {
        Interaction::OneShot => exec(config, request),
        Interaction::Dialogue => app_server(config, request),
    }
}

/// What Codex asks for can be answered by its name, where it is talked with. What it does without
/// asking cannot be denied.
fn lists(request: &Request) -> Result<(), Error> {
    let Permissions { mode, allow, deny } = &request.permissions;
    let allow = allow.as_deref().unwrap_or_default();
    arguments::whole_tools(allow)?;
    let what = match (*mode, request.talk) {
        _ if !deny.is_empty() => "deny single tools",
        _ if allow.is_empty() => return Ok(()),
        (Mode::Plan | Mode::Allow, _) | (_, Interaction::Dialogue) => return Ok(()),
        (Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Listed, Interaction::OneShot) => {
            "allow single tools where it asks nobody"
        }
    };
    Err(Error::Unable {
        engine: "codex",
        what,
        hint: "choose what it may do with `--permissions`, or with `sandbox` in the config",
    })
}

fn exec(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    let (stdin, text) = match prompt(request) {
        // Codex appends what it reads on stdin to the prompt, so there must be nothing.
        PromptVia::Argument(text) => (Stdin::Closed, text),
        PromptVia::Stdin(text) => (Stdin::Text(text.to_owned()), "-"),
    };
    let mut it = Invocation::new(stdin);
    // Outside of a Git repository Codex exits with an error otherwise.
    it.args(["exec", "--json", "--skip-git-repo-check"]);
    settings(&mut it, config, request)?;
    it.extra(config);
    match &request.resume {
        Resume::Fresh => (),
        Resume::Session(id) => _ = it.args(["resume", thread(id)?]),
        Resume::Latest => _ = it.args(["resume", "--last"]),
        Resume::Fork(id) => _ = it.args(["fork", thread(id)?]),
    }
    it.arg("--").arg(text);
    Ok(it)
}

/// The session is opened by messages; these are the settings it begins with.
fn app_server(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    if let Resume::Session(id) | Resume::Fork(id) = &request.resume {
        // Checked here too, because the dialogue sends the id as it is.
        thread(id)?;
    }
    let mut it = Invocation::new(Stdin::Open);
    it.arg("app-server");
    settings(&mut it, config, request)?;
    it.extra(config);
    Ok(it)
}

/// Codex silently starts a new session when the requested id is not a UUID.
fn thread(id: &str) -> Result<&str, Error> {
    let id = arguments::id(id)?;
    if arguments::is_uuid(id) {
        return Ok(id);
    }
    Err(arguments::refused(
        "the session id",
        "is no UUID, which Codex needs",
        id,
    ))
}

fn settings(it: &mut Invocation, config: &EngineConfig, request: &Request) -> Result<(), Error> {
    if let Some(model) = request.options.model.as_ref().or(config.model.as_ref()) {
        setting(it, "model", arguments::model(model)?);
    }
    if let Some(verbosity) = (request.options.verbosity.as_ref()).or(config.verbosity.as_ref()) {
        setting(it, "model_verbosity", arguments::verbosity(verbosity)?);
    }
    if let Some(effort) = &request.options.effort {
        let effort = arguments::flag_value("the effort", effort)?;
        setting(it, "model_reasoning_effort", effort);
    }
    for (n, server) in request.mcp_servers.iter().enumerate() {
        mcp_server(it, n, server)?;
    }
    let sandbox = config.sandbox.as_deref();
    let limits = limits(&request.permissions, request.talk, sandbox);
    setting(it, "sandbox_mode", limits.sandbox);
    setting(it, "approval_policy", limits.approval);
    if limits.is_below_cwd {
        // Otherwise commands may write to `/tmp` and `$TMPDIR` too.
        for key in ["exclude_slash_tmp", "exclude_tmpdir_env_var"] {
            it.arg("-c")
                .arg(format!("sandbox_workspace_write.{key}=true"));
        }
    }
    Ok(())
}

/// A table of the config for each server. Its secrets are in the environment, where others cannot read
/// them; Codex keeps what is called a token from the commands that it runs.
fn mcp_server(it: &mut Invocation, n: usize, server: &McpServer) -> Result<(), Error> {
    let string = |it: &String| toml::Value::String(it.clone());
    let mut of = toml::Table::new();
    match &server.via {
        McpVia::Stdio { command, args, env } => {
            of.insert("command".to_owned(), string(command));
            let args = args.iter().map(string).collect();
            of.insert("args".to_owned(), toml::Value::Array(args));
            let (passed, plain): (Vec<_>, Vec<_>) = env.iter().partition(|it| is_passed(&it.0));
            let plain = plain
                .into_iter()
                .map(|(name, value)| (name.clone(), string(value)));
            of.insert("env".to_owned(), toml::Value::Table(plain.collect()));
            if !passed.is_empty() {
                let names = passed.iter().map(|(name, _)| string(name)).collect();
                of.insert("env_vars".to_owned(), toml::Value::Array(names));
            }
            for (name, value) in passed {
                it.env(name, value);
            }
        }
        McpVia::Http { url, headers } => {
            of.insert("url".to_owned(), string(url));
            let mut names = toml::Table::new();
            for (at, (header, value)) in headers.iter().enumerate() {
                // By this ending Codex keeps the variable from the commands that it runs.
                let name = format!("LINKSPAN_MCP_{n}_{at}_TOKEN");
                it.env(&name, value);
                names.insert(header.clone(), toml::Value::String(name));
            }
            of.insert("env_http_headers".to_owned(), toml::Value::Table(names));
        }
        McpVia::Sse { .. } => {
            return Err(Error::Unable {
                engine: "codex",
                what: "use MCP servers over SSE",
                hint: "name the server's HTTP address",
            });
        }
    }
    // A dot or a quote in it would make another key of Codex's config.
    let name = arguments::key("the name of an MCP server", &server.name)?;
    let of = toml::Value::Table(of);
    it.arg("-c").arg(format!("mcp_servers.{name}={of}"));
    Ok(())
}

/// Whether a variable of a server can be one of Codex, too: a secret that is not for Codex itself.
fn is_passed(name: &str) -> bool {
    let is_its_own = ["OPENAI_", "CODEX_"].iter().any(|it| name.starts_with(it));
    is_secret(name) && !is_its_own
}

/// What commands can do, and when Codex asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SandboxSettings<'a> {
    pub(crate) sandbox: &'a str,
    pub(crate) approval: &'static str,
    /// Nothing but the working directory can be written to, not even the folder for temporary files.
    pub(crate) is_below_cwd: bool,
}

/// `sandbox` is that of the config: it can narrow what `accept-edits` lets commands do, and it is
/// Codex's own list in `listed`. The messages of a dialogue say the same as the arguments.
pub(crate) fn limits<'a>(
    permissions: &Permissions,
    talk: Interaction,
    sandbox: Option<&'a str>,
) -> SandboxSettings<'a> {
    let mode = permissions.mode;
    // With a list of tools everything else must be asked, so that the list decides.
    let is_by_list = permissions.allow.is_some() && talk == Interaction::Dialogue;
    let sandbox = match mode {
        // In a read-only sandbox every change is a question.
        Mode::Plan | Mode::Deny | Mode::Ask => "read-only",
        Mode::Listed if is_by_list => "read-only",
        Mode::AcceptEdits => match sandbox {
            Some("read-only") => "read-only",
            _ => "workspace-write",
        },
        Mode::Listed => sandbox.unwrap_or("workspace-write"),
        Mode::Allow => "danger-full-access",
    };
    let is_asking = match mode {
        Mode::Plan | Mode::Ask | Mode::AcceptEdits => talk == Interaction::Dialogue,
        Mode::Deny | Mode::Listed => is_by_list,
        Mode::Allow => false,
    };
    SandboxSettings {
        sandbox,
        approval: if is_asking { "on-request" } else { "never" },
        is_below_cwd: mode == Mode::AcceptEdits,
    }
}

/// A value of Codex's config, which is TOML.
fn setting(it: &mut Invocation, key: &str, value: &str) {
    let value = toml::Value::String(value.to_owned());
    it.arg("-c").arg(format!("{key}={value}"));
}
