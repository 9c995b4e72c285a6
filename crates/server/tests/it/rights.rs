//! What each role may cause, made from the tables: roles, entry points, permission modes, lists of tools
//! and engines, with agents that write down how they were started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner::config::Config;
use runner::engines::ENGINES;
use runner::permissions::MODES;
use serde_json::{Value, json};
use server::Role;
use tokio::time::{sleep, timeout};

use crate::test_server::{PATIENCE, Socket, TestServer};

/// Writes down its arguments and its environment, and leaves.
const RECORDER: &str = r#"#!/bin/sh
at="$RECORDS/$(basename "$0")-$$"
{ for it in "$@"; do printf '%s\n' "$it"; done; echo --env--; env; } > "$at.part"
mv "$at.part" "$at"
exit 1
"#;

/// Words in a command line that let tools run unasked, in the flags of every agent.
const UNASKED: &[&str] = &[
    "dangerously-skip-permissions",
    "bypassPermissions",
    "acceptEdits",
    "allowedTools",
    "allowed-tools",
    "yolo",
    "auto_edit",
    "danger-full-access",
    "dangerously-bypass-approvals-and-sandbox",
    "workspace-write",
];

/// Where a prompt can come in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Api,
    Bridge,
    /// The engine is selected first, and the prompt names none.
    Selected,
    AgUi,
}

pub(crate) const ENTRIES: [Entry; 4] = [Entry::Api, Entry::Bridge, Entry::Selected, Entry::AgUi];

/// One request, without who makes it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) entry: Entry,
    pub(crate) engine: String,
    /// The lowest role that may name this engine.
    pub(crate) engine_needs: Role,
    pub(crate) mode: Option<&'static str>,
    pub(crate) allow: Option<&'static [&'static str]>,
}

impl Case {
    /// The lowest role that may do it, by the tables.
    pub(crate) fn needs(&self) -> Role {
        let has_list = self.allow.is_some_and(|it| !it.is_empty());
        let mode = self.mode.and_then(runner::Mode::parse);
        let is_yes = mode.map_or(has_list, |it| it.needs_approval(has_list));
        let permissions = if is_yes { Role::Approve } else { Role::Prompt };
        permissions.max(self.engine_needs)
    }

    /// The fields that a client sends.
    fn fields(&self, cwd: &Path) -> Value {
        let mut fields = json!({ "cwd": cwd });
        if let Some(mode) = self.mode {
            fields["permissions"] = mode.into();
        }
        if let Some(allow) = self.allow {
            fields["allow"] = json!(allow);
        }
        fields
    }
}

/// Everything that can be asked for.
fn cases(engines: &[(String, Role)]) -> Vec<Case> {
    let mut modes: Vec<_> = MODES.iter().map(|it| Some(it.name)).collect();
    modes.push(None);
    let lists: [Option<&'static [&'static str]>; 3] = [None, Some(&[]), Some(&["Bash"])];
    let mut cases = Vec::new();
    for entry in ENTRIES {
        for (engine, engine_needs) in engines {
            for &mode in &modes {
                for allow in lists {
                    cases.push(Case {
                        entry,
                        engine: engine.clone(),
                        engine_needs: *engine_needs,
                        mode,
                        allow,
                    });
                }
            }
        }
    }
    cases
}

pub(crate) struct Recorded {
    pub(crate) test_server: TestServer,
    records: PathBuf,
    pub(crate) engines: Vec<(String, Role)>,
    pub(crate) cwd: PathBuf,
    pub(crate) settings: Config,
}

impl Recorded {
    /// A server whose agents are recorders, each under the name of its engine.
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap().keep();
        let records = dir.join("records");
        fs::create_dir_all(&records).unwrap();
        let mut config = String::new();
        let mut engines = Vec::new();
        let recorder = |name: &str| {
            let path = dir.join(name);
            fs::write(
                &path,
                RECORDER.replace("$RECORDS", records.to_str().unwrap()),
            )
            .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        for engine in ENGINES.iter().filter(|it| it.program.is_some()) {
            let path = recorder(engine.name);
            config += &format!("[engines.{}]\nprogram = {path:?}\n", engine.name);
            engines.push((engine.name.to_owned(), Role::Prompt));
        }
        let named = recorder("named");
        config += &format!("[engines.acp.named]\nprogram = {named:?}\n");
        engines.push(("acp:named".to_owned(), Role::Prompt));
        // A command line is `admin`'s to name, whatever the mode is.
        let command = format!("acp:{} --flag", recorder("command").display());
        engines.push((command, Role::Admin));
        let roots = vec![dir.clone()];
        let file = Some((Path::new("test.toml"), &*config));
        let settings = Config::parse(file, |_| None).unwrap();
        let test_server = TestServer::with(|it| {
            it.hub.settings = settings.clone();
            it.roots = roots;
        })
        .await;
        Self {
            test_server,
            records,
            engines,
            cwd: dir,
            settings,
        }
    }

    /// What comes of a request: the session, or the error.
    async fn ask(&self, case: &Case, role: Role, number: usize) -> Result<String, Value> {
        self.ask_in(&self.cwd, case, role, number).await
    }

    /// What comes of a request for an agent in this directory.
    pub(crate) async fn ask_in(
        &self,
        cwd: &Path,
        case: &Case,
        role: Role,
        number: usize,
    ) -> Result<String, Value> {
        let mut fields = case.fields(cwd);
        match case.entry {
            Entry::Api => {
                fields["prompt"] = "x".into();
                fields["engine"] = case.engine.clone().into();
                let bearer = self.test_server.bearer(role.name());
                let body = fields.to_string();
                let answer = self
                    .test_server
                    .request("POST", "/api/runs", &bearer, &body)
                    .await;
                let json = answer.json();
                match answer.status {
                    202 => Ok(json["session"].as_str().unwrap().to_owned()),
                    _ => Err(json["error"].clone()),
                }
            }
            Entry::Bridge => {
                fields["provider"] = case.engine.clone().into();
                self.submit(&mut self.test_server.socket("", role.name()).await, fields)
                    .await
            }
            Entry::Selected => {
                let mut socket = self.test_server.socket("", role.name()).await;
                let select = json!({ "control": "provider.select", "provider": case.engine });
                let reply = socket.call(select).await;
                if reply["type"] == "bridge.error" {
                    return Err(reply);
                }
                self.submit(&mut socket, fields).await
            }
            Entry::AgUi => {
                let input = json!({
                    "threadId": format!("thread-{number}"), "runId": "r", "state": {},
                    "tools": [], "context": [],
                    "messages": [{ "id": "1", "role": "user", "content": "x" }],
                    "forwardedProps": { "linkspan": fields },
                });
                let engine = case.engine.replace('/', "%2F").replace(' ', "%20");
                let bearer = self.test_server.bearer(role.name());
                let path = format!("/ag-ui/{engine}");
                let body = input.to_string();
                let answer = self
                    .test_server
                    .request("POST", &path, &bearer, &body)
                    .await;
                match answer.status {
                    200 => Ok(answer.body),
                    _ => Err(answer.json()["error"].clone()),
                }
            }
        }
    }

    async fn submit(&self, socket: &mut Socket, mut control: Value) -> Result<String, Value> {
        control["control"] = "run.submit".into();
        control["text"] = "x".into();
        control["resumeId"] = "new".into();
        let reply = socket.call(control).await;
        match reply["type"].as_str() {
            Some("bridge.run_submit") => Ok(reply["sessionId"].as_str().unwrap().to_owned()),
            _ => Err(reply),
        }
    }

    async fn n_sessions(&self) -> usize {
        let page = self.test_server.get("/api/sessions?limit=500").await.json();
        page["sessions"].as_array().unwrap().len()
    }

    /// The command lines and environments that were written down, by the name of their program.
    pub(crate) fn started(&self) -> BTreeMap<String, BTreeSet<(String, String)>> {
        let mut started: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for entry in fs::read_dir(&self.records).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.ends_with(".part") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let (args, env) = text.split_once("--env--\n").unwrap();
            let program = name.rsplit_once('-').unwrap().0.to_owned();
            let pair = (args.to_owned(), env.to_owned());
            started.entry(program).or_default().insert(pair);
        }
        started
    }

    /// Waits until nothing runs and nothing waits.
    pub(crate) async fn settle(&self) {
        let look = async {
            for state in ["starting", "running", "waiting"] {
                loop {
                    let path = format!("/api/sessions?state={state}&limit=1");
                    let page = self.test_server.get(&path).await.json();
                    let is_empty = |it: &Vec<Value>| it.is_empty();
                    if page["sessions"].as_array().is_none_or(is_empty) {
                        break;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            }
        };
        timeout(4 * PATIENCE, look).await.expect("it never ended");
    }
}

#[tokio::test]
async fn no_role_exceeds_the_tables() {
    let it = Recorded::new().await;
    let cases = cases(&it.engines);
    assert!(cases.len() >= 4 * 7 * 3 * it.engines.len());
    let mut n_refused = 0;
    for (number, case) in cases.iter().enumerate() {
        let needs = case.needs();
        for role in Role::ALL.into_iter().filter(|role| *role < needs) {
            let refused = it.ask(case, role, number).await.expect_err("it was taken");
            assert_eq!(refused["code"], "forbidden", "{role:?} {case:?}: {refused}");
            let message = refused["message"].as_str().unwrap();
            // Whoever may not even prompt is told that first.
            let named = if role < Role::Prompt {
                Role::Prompt
            } else {
                needs
            };
            let names_role = message.contains(&format!("a token for `{}`", named.name()));
            // A control of its own is refused by what it names.
            let is_engine = matches!(case.entry, Entry::Selected) && case.engine_needs > role;
            let names_engine = message.contains("to name a command or a file as the engine");
            assert!(
                names_role || (is_engine && names_engine),
                "{role:?} {case:?}: {message}"
            );
            n_refused += 1;
        }
    }
    assert!(n_refused > cases.len());
    // Nothing was stored, and nothing was started.
    assert_eq!(it.n_sessions().await, 0);
    assert_eq!(it.started(), BTreeMap::new());
}

#[tokio::test]
async fn what_a_prompt_token_starts_runs_nothing_unasked() {
    let it = Recorded::new().await;
    let mut n_taken = 0;
    for (number, case) in cases(&it.engines).iter().enumerate() {
        // An empty list is tried above; what it starts is what no list starts.
        if case.needs() != Role::Prompt || case.allow.is_some() {
            continue;
        }
        match it.ask(case, Role::Prompt, number).await {
            Ok(_) => n_taken += 1,
            Err(err) => panic!("{case:?}: {err}"),
        }
    }
    assert!(n_taken >= 4 * it.engines.len(), "{n_taken}");
    it.settle().await;
    let started = it.started();
    let with_program = ENGINES.iter().filter(|it| it.program.is_some());
    let n_programs = with_program.count() + 1;
    assert!(started.len() >= n_programs - 1, "{:?}", started.keys());
    assert!(!started.contains_key("command"));
    let first = it.test_server.token("first");
    for (program, records) in &started {
        for (args, env) in records {
            let found = UNASKED.iter().find(|word| args.contains(**word));
            assert_eq!(found, None, "{program}: {args}");
            let has_token = args.contains(first) || env.contains(first);
            assert!(!has_token, "{program} was given the token");
            assert!(!env.contains("LINKSPAN_TOKEN="), "{program}: {env}");
        }
    }
    it.test_server.stop().await;
}

#[tokio::test]
async fn an_approver_starts_what_the_mode_allows_and_the_owner_any_command() {
    let it = Recorded::new().await;
    for (number, case) in cases(&it.engines).iter().enumerate() {
        let is_chosen = match case.needs() {
            Role::Watch | Role::Prompt => false,
            Role::Approve => case.mode == Some("allow") && case.allow.is_none(),
            Role::Admin => case.mode.is_none() && case.allow.is_none(),
        };
        if is_chosen {
            let taken = it.ask(case, case.needs(), number).await;
            assert!(taken.is_ok(), "{case:?}: {taken:?}");
        }
    }
    it.settle().await;
    let started = it.started();
    let said = |program: &str, word: &str| {
        let records = started.get(program);
        records.is_some_and(|it| it.iter().any(|it| it.0.contains(word)))
    };
    assert!(
        said("claude", "bypassPermissions") || said("claude", "dangerously"),
        "{started:?}"
    );
    assert!(said("command", "--flag"), "{:?}", started.keys());
    it.test_server.stop().await;
}

#[tokio::test]
async fn a_selected_provider_is_the_tokens_own() {
    let test_server = TestServer::with_settings("").await;
    let select = |provider: &str| json!({ "control": "provider.select", "provider": provider });
    let status = json!({ "control": "bridge.status" });
    let mut prompt = test_server.socket("", "prompt").await;
    let mut admin = test_server.socket("", "admin").await;
    for (role, provider) in [
        ("prompt", "acp:/bin/sh -c id"),
        ("approve", "acp:/bin/sh -c id"),
        ("approve", "replay:/etc/passwd"),
    ] {
        let mut socket = test_server.socket("", role).await;
        let refused = socket.call(select(provider)).await;
        let message = "a token for `admin` is needed to name a command or a file as the engine";
        let words = (refused["code"].as_str(), refused["message"].as_str());
        assert_eq!(words, (Some("forbidden"), Some(message)));
        let mut resume = json!({ "control": "claude.session.resume", "enabled": true });
        resume["provider"] = provider.into();
        assert_eq!(socket.call(resume).await["code"], "forbidden");
    }
    assert_eq!(
        prompt.call(select("replay:tools")).await["provider"],
        "replay:tools"
    );
    assert_eq!(admin.call(select("claude")).await["provider"], "claude");
    assert_eq!(
        prompt.call(status.clone()).await["provider"],
        "replay:tools"
    );
    assert_eq!(admin.call(status.clone()).await["provider"], "claude");
    let mut approve = test_server.socket("", "approve").await;
    assert_eq!(approve.call(status).await["provider"], json!(null));
    // They outlive the server, each under its own token.
    let kept = fs::read_to_string(test_server.dir.path().join("data/bridge.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let expected = json!({ (test_server.keys["prompt"].as_str()): "replay:tools", (test_server.keys["admin"].as_str()): "claude" });
    assert_eq!(kept["providers"], expected);
}

#[tokio::test]
async fn a_shared_provider_of_an_earlier_version_is_ignored() {
    let test_server = TestServer::with(|it| {
        let planted = json!({ "provider": "acp:/bin/sh -c id", "projects": [], "resume": [] });
        fs::write(it.data_dir.join("bridge.json"), planted.to_string()).unwrap();
    })
    .await;
    let mut admin = test_server.socket("", "first").await;
    let status = admin.call(json!({ "control": "bridge.status" })).await;
    assert_eq!(status["provider"], json!(null));
}
