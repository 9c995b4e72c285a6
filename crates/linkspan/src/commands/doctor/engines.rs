//! Checks the agents: installed versions and logins.

use runner::config::Config;
use runner::engines::{self, Found, Installed, Machine};
use runner::process::find_on_path;

use super::Finding;

pub(super) fn check(config: Option<&Config>, findings: &mut Vec<Finding>) {
    // The config names the programs: without a valid one nothing can be said about them.
    let Some(config) = config else { return };
    let survey = engines::detect_installed(config, &find_on_path);
    for engine in &survey {
        findings.push(one(engine, config));
    }
    // A missing agent is fine, since one is enough; none at all is worth a warning.
    if survey.iter().all(|it| it.path.is_none()) {
        findings.push(
            Finding::warn("engines", "no agent is installed")
                .hint("`linkspan engines` says how to get one; `linkspan run --engine replay:tools` works anyway"),
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

fn one(installed: &Installed, config: &Config) -> Finding {
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
    let Some(login) = &installed.engine.login else {
        return Finding::ok(name, text);
    };
    match login.find(&config.engine(name), Machine::own()) {
        Some(Found::Login) => Finding::ok(name, format!("{text}, logged in")),
        Some(Found::Variable(variable)) => Finding::ok(name, format!("{text}, with {variable}")),
        None => {
            let text = format!("{text}, without a login or a key that linkspan knows of");
            Finding::warn(name, text).hint(login.hint())
        }
    }
}
