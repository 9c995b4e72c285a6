//! What each role may cause, generated from the tables: every control of the bridge with every role, and
//! every entry point of a prompt with every engine and every permission mode.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use runner::engines::{Invocation, Selected, select};
use runner::permissions::{MODES, Permissions};
use runner::{Interaction, Mode, Request, Resume, RunOptions};
use serde_json::Value;
use server::Role;

use crate::auth::Work;
use crate::fields::controls;
use crate::rights::{Case, ENTRIES, Recorded};
use crate::test_server::TestServer;

fn role(name: &str) -> Role {
    let mut roles = Role::ALL.into_iter();
    roles.find(|it| it.name() == name).unwrap()
}

/// An example of a control, about things that are there.
fn filled(example: &Value, work: &Work, dir: &Path) -> Value {
    let (session, seq) = work.ask.rsplit_once(':').unwrap();
    let text = example
        .to_string()
        .replace("SESSION", session)
        .replace("SEQ", seq)
        .replace("DIR", dir.to_str().unwrap());
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn every_control_does_nothing_for_a_role_below_its_own() {
    let test_server = TestServer::new().await;
    let work = Work::begin(&test_server).await;
    let before = work.look(&test_server).await;
    let mut n_refused = 0;
    for (example, needed) in controls(&test_server).await {
        let needed = role(&needed);
        let control = filled(&example, &work, test_server.dir.path());
        let name = control["control"].as_str().unwrap();
        for role in Role::ALL.into_iter().filter(|it| *it < needed) {
            let mut socket = test_server.socket("?subscribe=none", role.name()).await;
            let refused = socket.call(control.clone()).await;
            let (own, needed) = (role.name(), needed.name());
            let message = format!("a token for `{needed}` is needed for `{name}`");
            let hint = format!(
                "this token is for `{own}`; `linkspan token --role {needed}` makes one that may"
            );
            let expected = serde_json::json!({
                "type": "bridge.error", "code": "forbidden", "message": message, "hint": hint,
            });
            assert_eq!(refused, expected, "{role:?} {name}");
            n_refused += 1;
        }
        assert_eq!(work.look(&test_server).await, before, "{name}");
    }
    assert!(n_refused > 8, "{n_refused}");
    test_server.stop().await;
}

#[tokio::test]
async fn every_control_is_open_to_its_role_and_those_above() {
    for role_name in Role::ALL {
        let test_server = TestServer::new().await;
        let work = Work::begin(&test_server).await;
        let mut socket = test_server
            .socket("?subscribe=none", role_name.name())
            .await;
        for (example, needed) in controls(&test_server).await {
            if role_name < role(&needed) {
                continue;
            }
            // What an earlier one has done may be in its way, but not its role.
            let control = filled(&example, &work, test_server.dir.path());
            let reply = socket.call(control.clone()).await;
            assert_ne!(
                reply["code"], "forbidden",
                "{role_name:?} {control}: {reply}"
            );
        }
        test_server.stop().await;
    }
}

/// What an agent has to be started with, by the rules of its engine.
fn expected(
    settings: &runner::config::Config,
    case: &Case,
    cwd: &Path,
) -> Result<Invocation, runner::engines::Error> {
    let Selected::Agent(agent) = select(&case.engine, settings)? else {
        panic!("{} is no agent", case.engine);
    };
    agent.invocation(&Request {
        prompt: "x".to_owned(),
        resume: Resume::Fresh,
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        cwd: cwd.to_owned(),
        permissions: Permissions {
            // A prompt that names none asks.
            mode: case.mode.map_or(Mode::Ask, |it| Mode::parse(it).unwrap()),
            allow: None,
            deny: Vec::new(),
        },
        talk: match agent.engine.dialogue {
            Some(_) => Interaction::Dialogue,
            None => Interaction::OneShot,
        },
    })
}

/// What was written down, by the directory it was started in.
fn records(it: &Recorded) -> BTreeMap<PathBuf, Vec<(String, String)>> {
    let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (args, env) in it.started().into_values().flatten() {
        let cwd = env.lines().find_map(|it| it.strip_prefix("PWD="));
        let cwd = PathBuf::from(cwd.unwrap());
        records.entry(cwd).or_default().push((args, env));
    }
    records
}

fn text(words: &OsString) -> &str {
    words.to_str().unwrap()
}

#[tokio::test]
async fn every_agent_gets_the_mode_that_was_named_and_no_other() {
    let it = Recorded::new().await;
    let modes = MODES.iter().map(|it| Some(it.name)).chain([None]);
    let modes: Vec<_> = modes.collect();
    let mut wanted = Vec::new();
    for entry in ENTRIES {
        for (engine, engine_needs) in &it.engines {
            for &mode in &modes {
                let case = Case {
                    entry,
                    engine: engine.clone(),
                    engine_needs: *engine_needs,
                    mode,
                    allow: None,
                };
                let number = wanted.len();
                let cwd = it
                    .cwd
                    .canonicalize()
                    .unwrap()
                    .join(format!("case-{number}"));
                fs::create_dir(&cwd).unwrap();
                let expected = expected(&it.settings, &case, &cwd);
                let taken = it.ask_in(&cwd, &case, case.needs(), number).await;
                assert_eq!(taken.is_ok(), expected.is_ok(), "{case:?}: {taken:?}");
                if let Ok(expected) = expected {
                    wanted.push((case, cwd, expected));
                } else {
                    fs::remove_dir(&cwd).unwrap();
                }
            }
        }
    }
    assert!(wanted.len() >= ENTRIES.len() * it.engines.len() * MODES.len() / 2);
    it.settle().await;
    let mut records = records(&it);
    for (case, cwd, expected) in wanted {
        let started = records.remove(&cwd).unwrap_or_default();
        assert_eq!(started.len(), 1, "{case:?}: {started:?}");
        let args: String = expected
            .args
            .iter()
            .map(|it| format!("{}\n", text(it)))
            .collect();
        assert_eq!(started[0].0, args, "{case:?}");
        for (name, value) in &expected.env {
            let line = format!("{}={}\n", text(name), text(value));
            assert!(started[0].1.contains(&line), "{case:?}: no {line}");
        }
    }
    it.test_server.stop().await;
}
