//! `linkspan run --continue` joins the session of the journal that holds the agent's newest one.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, machine, ran};

/// A Claude Code whose newest session is the one that the file says.
const CLAUDE: &str = r#"PATH=/usr/bin:/bin
s=$(cat "$HOME/newest")
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$s\",\"model\":\"m\",\"cwd\":\"/w\"}"
echo "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Hello.\"}]},\"session_id\":\"$s\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Hello.\",\"session_id\":\"$s\",\"num_turns\":1}"
"#;

/// A Codex that numbers its items anew in every process, as the real one does.
const CODEX: &str = r#"PATH=/usr/bin:/bin
s=$(cat "$HOME/newest")
echo "{\"type\":\"thread.started\",\"thread_id\":\"$s\"}"
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hello."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

/// One that has nothing to go on with.
const NOTHING: &str = "echo 'No conversation found to continue' >&2; exit 1";

fn folder(name: &str, engine: &str, script: &str) -> Folder {
    let folder = machine(name, &[(engine, script)], "");
    folder.file("newest", "s-1");
    folder
}

fn linkspan_in(folder: &Folder, args: &[&str]) -> Ran {
    let output = linkspan(args)
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .output();
    ran(output.unwrap())
}

fn run(folder: &Folder, engine: &str, args: &[&str]) -> Ran {
    let args = [&["run", "--engine", engine, "--to", "linkspan"], args].concat();
    linkspan_in(folder, &args)
}

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// Every session with the agent's name of it, the newest first, and the outcome of each of its runs with its
/// prompt.
fn sessions(folder: &Folder) -> Vec<(Value, Vec<(String, String)>)> {
    let listed = lines(&linkspan_in(folder, &["sessions", "--json"]));
    let told = listed.into_iter().map(|it| {
        let id = it["id"].as_str().unwrap();
        let events = lines(&linkspan_in(folder, &["replay", id, "--to", "linkspan"]));
        is_one_log(&events);
        (it["native"].clone(), runs(&events))
    });
    told.collect()
}

/// Numbers without gaps, no id used twice.
fn is_one_log(events: &[Value]) {
    let numbers: Vec<u64> = events
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let opened = events.iter().filter(|it| it["type"] == "item.opened");
    let mut ids: Vec<&str> = opened
        .map(|it| it["data"]["id"].as_str().unwrap())
        .collect();
    let n_ids = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n_ids, "{ids:?}");
}

fn runs(events: &[Value]) -> Vec<(String, String)> {
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let ends = events.iter().filter(|it| it["type"] == "run.ended");
    let runs = ends.map(|end| {
        let mut of_run = events.iter().filter(|it| it["run"] == end["run"]);
        let prompt = of_run.find(|it| it["data"]["item"]["role"] == "user");
        let prompt = prompt.map(|it| word(&it["data"]["item"]["text"]));
        (prompt.unwrap_or_default(), word(&end["data"]["outcome"]))
    });
    runs.collect()
}

fn completed(prompts: &[&str]) -> Vec<(String, String)> {
    let runs = prompts.iter();
    runs.map(|it| ((*it).to_owned(), "completed".to_owned()))
        .collect()
}

#[test]
fn the_newest_session_goes_on_where_the_journal_has_it() {
    for (engine, script) in [("claude", CLAUDE), ("codex", CODEX)] {
        let folder = folder(&format!("newest-{engine}"), engine, script);
        assert_eq!(run(&folder, engine, &["one"]).code, Some(0));
        let shown = run(&folder, engine, &["--continue", "two"]);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        assert_eq!(
            sessions(&folder),
            [(json!("s-1"), completed(&["one", "two"]))],
            "{engine}"
        );
        // What is shown is what is stored.
        let sessions = lines(&linkspan_in(&folder, &["sessions", "--json"]));
        let id = sessions[0]["id"].as_str().unwrap();
        let stored = lines(&linkspan_in(&folder, &["replay", id, "--to", "linkspan"]));
        let shown = lines(&shown);
        assert_eq!(stored[stored.len() - shown.len()..], shown, "{engine}");
    }
}

#[test]
fn a_newer_session_of_the_agent_begins_one_in_the_journal() {
    let folder = folder("newest-newer", "claude", CLAUDE);
    run(&folder, "claude", &["one"]);
    // Somebody has worked with the agent alone.
    fs::write(folder.path("newest"), "s-2").unwrap();
    run(&folder, "claude", &["--continue", "two"]);
    run(&folder, "claude", &["--continue", "three"]);
    assert_eq!(
        sessions(&folder),
        [
            (json!("s-2"), completed(&["two", "three"])),
            (json!("s-1"), completed(&["one"])),
        ]
    );
}

#[test]
fn an_agent_that_names_no_session_ends_a_run_of_its_own() {
    let folder = folder("newest-nothing", "claude", NOTHING);
    let shown = run(&folder, "claude", &["--continue", "one"]);
    assert_eq!(shown.code, Some(1));
    let failed = vec![("one".to_owned(), "failed".to_owned())];
    assert_eq!(runs(&lines(&shown)), failed);
    assert!(shown.stdout.contains("No conversation found to continue"));
    assert_eq!(sessions(&folder), [(Value::Null, failed)]);
}
