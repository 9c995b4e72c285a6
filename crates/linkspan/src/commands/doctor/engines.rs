//! The agents: which are installed, and whether anybody has logged in to them.

use std::env;
use std::path::PathBuf;

use runner::config::Config;
use runner::engines::{self, Installed};
use runner::process::find_on_path;

use super::Finding;

/// Where an agent keeps its login, and the variables that do instead.
struct Login {
    engine: &'static str,
    /// A variable with another directory than the one in the home directory.
    dir: Option<&'static str>,
    home: &'static str,
    file: &'static str,
    variables: &'static [&'static str],
}

const LOGINS: &[Login] = &[
    Login {
        engine: "claude",
        dir: Some("CLAUDE_CONFIG_DIR"),
        home: ".claude",
        file: ".credentials.json",
        variables: &[
            "CLAUDE_CODE_OAUTH_TOKEN",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_API_KEY",
        ],
    },
    Login {
        engine: "codex",
        dir: Some("CODEX_HOME"),
        home: ".codex",
        file: "auth.json",
        variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    },
    Login {
        engine: "opencode",
        dir: None,
        home: ".local/share/opencode",
        file: "auth.json",
        variables: &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENCODE_CONFIG_CONTENT",
        ],
    },
    Login {
        engine: "gemini",
        dir: None,
        home: ".gemini",
        file: "oauth_creds.json",
        variables: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
    },
];

pub(super) fn check(config: Option<&Config>, findings: &mut Vec<Finding>) {
    let Some(config) = config else { return };
    let survey = engines::survey(config, &find_on_path);
    for engine in &survey {
        findings.push(one(engine));
    }
    if survey.iter().all(|it| it.path.is_none()) {
        findings.push(
            Finding::warn("engines", "no agent is installed")
                .hint("`linkspan engines` says how to get one; `replay:tools` works anyway"),
        );
    }
    for name in config.acp_names() {
        let about = format!("acp:{name}");
        let program = config.acp(name).and_then(|it| it.program);
        findings.push(match program.as_deref().map(|it| (it, find_on_path(it))) {
            Some((_, Ok(path))) => Finding::ok(&about, format!("`{}`", path.display())),
            Some((program, Err(_))) => {
                Finding::problem(&about, format!("`{program}` is not on the PATH"))
                    .hint("install it, or mend the config")
            }
            None => Finding::problem(&about, "the config names no program for it"),
        });
    }
    for name in config.endpoint_names() {
        let about = format!("responses:{name}");
        findings.push(match config.endpoint(name) {
            Some(Ok(endpoint)) => Finding::ok(
                &about,
                format!("{} at {}", endpoint.provider, endpoint.base_url),
            ),
            Some(Err(err)) => Finding::problem(&about, crate::exit::chain(&err)),
            None => Finding::problem(&about, "it cannot be used"),
        });
    }
}

fn one(installed: &Installed) -> Finding {
    let name = installed.engine.name;
    let Some(path) = &installed.path else {
        return Finding::ok(name, "not installed");
    };
    let place = path.display();
    let Some(version) = &installed.version else {
        return Finding::warn(name, format!("`{place}` does not say its version"))
            .hint("try it by hand");
    };
    let text = format!("{version} at `{place}`");
    let Some(login) = LOGINS.iter().find(|it| it.engine == name) else {
        return Finding::ok(name, text);
    };
    match login.found() {
        Some(how) => Finding::ok(name, format!("{text}, {how}")),
        None => Finding::warn(
            name,
            format!("{text}, without a login or a key that linkspan knows of"),
        )
        .hint("log in with the agent itself, or set its key"),
    }
}

impl Login {
    /// How the agent can prove who its user is.
    fn found(&self) -> Option<String> {
        let is_set = |it: &&&str| env::var_os(it).is_some_and(|it| !it.is_empty());
        let file = self.file();
        if file.is_some_and(|it| it.exists()) {
            return Some("logged in".to_owned());
        }
        let variable = self.variables.iter().find(is_set)?;
        Some(format!("with {variable}"))
    }

    fn file(&self) -> Option<PathBuf> {
        let named = self.dir.and_then(env::var_os).filter(|it| !it.is_empty());
        let dir = match named {
            Some(dir) => PathBuf::from(dir),
            None => env::home_dir()?.join(self.home),
        };
        Some(dir.join(self.file))
    }
}
