//! Programs that are killed during a run, and what the others make of it while no server runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, machine, ran};
use crate::served::Served;

/// Speaks Claude's stream-json, and never ends by itself.
const AGENT: &str = r#"
case $1 in --version) exec echo 1.0.0 ;; esac
echo '{"type":"system","subtype":"init","session_id":"native-1","cwd":"/w","model":"m","tools":[]}'
echo '{"type":"assistant","session_id":"native-1","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"on it"}]}}'
exec sleep 60"#;

/// A command on the data of `folder`.
fn start(folder: &Folder, args: &[&str]) -> Child {
    let path = std::env::var("PATH").unwrap();
    linkspan(args)
        .args(["--data-dir", &folder.path("data")])
        .env("PATH", format!("{}:{path}", folder.path("bin")))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn command(folder: &Folder, args: &[&str]) -> Ran {
    ran(start(folder, args).wait_with_output().unwrap())
}

/// Starts a run and kills its program while the agent works.
fn killed_run(folder: &Folder) {
    let args = ["run", "--engine", "claude", "--permissions", "deny"];
    let mut child = start(folder, &[&args[..], &["--to", "linkspan", "go"]].concat());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|it| it.contains("on it")));
    // What is shown may not be stored yet.
    while session(folder)["state"] != "running" {}
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The only session.
fn session(folder: &Folder) -> Value {
    let listed = command(folder, &["sessions", "--json"]);
    assert_eq!((listed.code, &*listed.stderr), (Some(0), ""));
    serde_json::from_str(&listed.stdout).unwrap()
}

/// What `doctor` says about the journal, by level.
fn findings(folder: &Folder, args: &[&str]) -> Vec<(String, String)> {
    let ran = command(folder, &[&["doctor", "--json"], args].concat());
    let lines = ran.stdout.lines().map(|it| {
        let finding: Value = serde_json::from_str(it).unwrap();
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        (text("about"), text("level"), text("text"))
    });
    let journal = lines.filter(|it| it.0 == "journal");
    journal.map(|it| (it.1, it.2)).collect()
}

#[test]
fn whoever_opens_the_journal_closes_the_run_of_a_killed_program() {
    let folder = machine("dead-run", &[("claude", AGENT)], "");
    killed_run(&folder);
    let found = session(&folder);
    assert_eq!(found["state"], "idle");
    let id = found["id"].as_str().unwrap();
    let shown = command(&folder, &["show", id]);
    let words = "the program that looked after this run ended before the run did";
    assert!(shown.stdout.contains(words), "{}", shown.stdout);
    let attached = command(&folder, &["run", "--attach", id]);
    assert_eq!(attached.code, Some(1), "{}", attached.stderr);
    assert!(attached.stdout.contains(words), "{}", attached.stdout);
    let removed = command(&folder, &["sessions", "--remove", id]);
    assert_eq!((removed.code, &*removed.stderr), (Some(0), ""));
}

#[test]
fn a_client_that_is_attached_to_a_killed_server_sees_the_end_of_the_run() {
    let folder = machine("dead-server", &[("claude", AGENT)], "");
    let served = Served::start(&folder);
    let id = served.submit(&json!({ "prompt": "go", "engine": "claude" }));
    served.until(&id, |it| it["state"] == "running");
    let mut attached = start(&folder, &["run", "--attach", &id, "--to", "linkspan"]);
    let mut stdout = BufReader::new(attached.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    served.end(Signal::KILL);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "run.ended");
    assert_eq!(last["data"]["outcome"], "lost");
    assert_eq!(attached.wait().unwrap().code(), Some(1));
}

#[test]
fn doctor_names_the_runs_of_killed_programs_and_closes_them_if_told_to() {
    let folder = machine("dead-doctor", &[("claude", AGENT)], "");
    killed_run(&folder);
    let open = findings(&folder, &[]);
    let warned: Vec<&str> = open
        .iter()
        .filter_map(|(level, text)| (level == "warn").then_some(text.as_str()))
        .collect();
    let repaired = findings(&folder, &["--repair"]);
    let after = findings(&folder, &[]);
    let found = session(&folder);
    let id = found["id"].as_str().unwrap();
    let open = format!("a program died during the run of session `{id}`, which is still open");
    assert_eq!(warned, [open]);
    let place = folder.path("data/journal.sqlite");
    let ok = |text: String| ("ok".to_owned(), text);
    assert_eq!(
        repaired,
        [
            ok(format!("`{place}` is whole")),
            ok(format!(
                "the run of session `{id}`, whose program died, was closed as lost"
            )),
        ]
    );
    assert!(after.iter().all(|(level, _)| level == "ok"), "{after:?}");
}

#[test]
fn the_prompts_that_a_killed_server_has_left_wait_for_the_next_one() {
    let folder = machine("dead-queue", &[("claude", AGENT)], "");
    let served = Served::start(&folder);
    let id = served.submit(&json!({ "prompt": "go", "engine": "claude" }));
    served.until(&id, |it| it["state"] == "running");
    served.submit(&json!({ "prompt": "then this", "session": id }));
    served.end(Signal::KILL);
    assert_eq!(session(&folder)["state"], "queued");
    let refused = command(&folder, &["sessions", "--remove", &id]);
    assert_eq!(
        refused.shown(),
        format!(
            "linkspan: session `{id}` is in use\n\nhint: it has prompts that wait: take them back, \
             or let `linkspan serve` run them\nexit 5\n"
        )
    );
    let mut attached = start(&folder, &["run", "--attach", &id]);
    let mut line = String::new();
    let mut stderr = BufReader::new(attached.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "linkspan: its prompts wait for a server; `linkspan serve` starts one, and Ctrl-C leaves\n"
    );
    attached.kill().unwrap();
    attached.wait().unwrap();
}
