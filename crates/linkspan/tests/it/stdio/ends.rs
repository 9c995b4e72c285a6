//! How `linkspan stdio` ends, and what it leaves behind: nothing that runs, and whole sessions.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, exit_code, is_working, made, nothing_is_left, of_type, session};
use crate::acp::client::at_home;
use crate::program::{linkspan, run};
use crate::served::{Served, serve};

/// What was said about the end of a run.
fn outcomes(messages: &[Value]) -> Vec<&Value> {
    let ends = of_type(messages, "bridge.run_ended");
    ends.iter().map(|it| &it["outcome"]).collect()
}

#[test]
fn the_end_of_stdin_ends_runs_and_withdraws_asks() {
    let folder = made("stdio-eof");
    let mut client = Client::new(&folder, &["--to", "linkspan"]);
    let asking = client.submit("ask me");
    client.until_type("bridge.ask");
    let working = client.submit("hang");
    client.until(is_working);
    // It never begins.
    let queued = json!({
        "control": "run.submit", "prompt": "later", "engine": "claude", "session": working,
    });
    assert_eq!(client.call(queued)["position"], 1);
    let (code, last) = client.leave();
    assert_eq!(code, Some(0));
    nothing_is_left(&folder);
    let settled = of_type(&last, "bridge.ask_settled");
    let settled: Vec<_> = settled
        .iter()
        .map(|it| (&it["sessionId"], &it["decision"]))
        .collect();
    assert_eq!(settled, [(&json!(asking), &json!("withdrawn"))]);
    assert_eq!(outcomes(&last), ["aborted", "aborted"]);
    // What it had accepted is nobody's work afterwards.
    let served = Served::start(&folder);
    for id in [&asking, &working] {
        let session = served.session(id);
        let runs = session["runs"].as_array().unwrap().iter();
        let runs: Vec<&Value> = runs.map(|it| &it["outcome"]).collect();
        assert_eq!(runs, ["aborted"], "{session}");
        assert_eq!(session["queue"], json!([]), "{session}");
    }
}

#[test]
fn a_signal_ends_it_like_the_end_of_stdin() {
    let folder = made("stdio-term");
    let mut client = Client::new(&folder, &["--to", "linkspan"]);
    client.submit("hang");
    client.until(is_working);
    kill_process(Pid::from_child(&client.child), Signal::TERM).unwrap();
    let (code, last) = client.rest();
    assert_eq!(code, Some(0));
    assert_eq!(outcomes(&last), ["aborted"]);
    nothing_is_left(&folder);
}

#[test]
fn controls_before_the_end_of_stdin_are_answered() {
    let folder = made("stdio-last-words");
    let mut client = Client::new(&folder, &[]);
    let prompt = json!({ "control": "run.submit", "prompt": "hang", "engine": "claude" });
    client.write(prompt.to_string().as_bytes());
    client.write(b"{\"control\":\"echo\",\"tag\":1}");
    let (code, last) = client.leave();
    assert_eq!(code, Some(0));
    assert_eq!(of_type(&last, "bridge.run_submit").len(), 1);
    assert_eq!(of_type(&last, "bridge.echo").len(), 1);
    assert_eq!(outcomes(&last), ["aborted"]);
    nothing_is_left(&folder);
}

/// The program itself is killed: the guard ends the agents, and no server goes on with its prompts.
#[test]
fn nothing_stays_when_it_is_killed() {
    let folder = made("stdio-killed");
    let mut client = Client::new(&folder, &["--to", "linkspan"]);
    let id = client.submit("hang");
    client.until(is_working);
    let later = json!({
        "control": "run.submit", "prompt": "later", "engine": "claude", "session": id,
    });
    assert_eq!(client.call(later)["position"], 1);
    client.child.kill().unwrap();
    nothing_is_left(&folder);
    let served = Served::start(&folder);
    let session = served.until(&id, |it| it["state"] == "idle");
    let runs = session["runs"].as_array().unwrap().iter();
    let runs: Vec<&Value> = runs.map(|it| &it["outcome"]).collect();
    assert_eq!(
        (runs, &session["queue"]),
        (vec![&json!("lost")], &json!([]))
    );
}

#[test]
fn nothing_stays_when_its_parent_is_killed() {
    let folder = made("stdio-orphan");
    let control = json!({ "control": "run.submit", "prompt": "hang", "engine": "claude" });
    let script = format!(
        "mkfifo \"$HOME/in\"\n\
         {} stdio --to linkspan < \"$HOME/in\" > \"$HOME/out\" &\n\
         exec 3> \"$HOME/in\"\n\
         echo '{control}' >&3\n\
         echo started\n\
         wait",
        env!("CARGO_BIN_EXE_linkspan")
    );
    let mut parent = Command::new("/bin/sh");
    parent.args(["-c", &script]);
    let path = format!("{}:/usr/bin:/bin", folder.path("bin"));
    let mut parent = at_home(&mut parent, &folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let out = || fs::read_to_string(folder.path("out")).unwrap_or_default();
    while !out().contains("Working.") {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", out());
        thread::sleep(Duration::from_millis(10));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    nothing_is_left(&folder);
    assert!(out().contains(r#""outcome":"aborted""#), "{}", out());
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it_alive() {
    let folder = made("stdio-unread");
    let mut command = linkspan(&["stdio"]);
    let mut child = at_home(&mut command, &folder).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (full, is_full) = mpsc::channel();
    let writer = thread::spawn(move || {
        let line = json!({ "control": "echo", "payload": "x".repeat(4096) }).to_string() + "\n";
        // It ends with a broken pipe, when the program does.
        while stdin.write_all(line.as_bytes()).is_ok() {
            full.send(()).ok();
        }
    });
    // Nothing is taken any more.
    while is_full.recv_timeout(Duration::from_secs(2)).is_ok() {}
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(exit_code(&mut child), Some(0));
    writer.join().unwrap();
}

/// A hub for one client has no business with what a dead server has left.
#[test]
fn prompts_of_a_killed_server_are_left_alone() {
    let folder = made("stdio-not-adopting");
    let served = Served::from(&mut serve(&folder), &folder);
    let working = served.submit(&json!({ "prompt": "hang", "engine": "claude" }));
    served.until(&working, |it| it["state"] == "running");
    served.submit(&json!({ "prompt": "later", "engine": "claude", "session": working }));
    served.end(Signal::KILL);
    let mut client = Client::new(&folder, &[]);
    // Its own prompt runs; the other stays where it is.
    let own = session(&client.call(json!({
        "control": "run.submit", "prompt": "hi", "engine": "claude",
    })));
    client.until(|it| it["type"] == "bridge.run_ended" && it["sessionId"] == own);
    assert_eq!(client.leave().0, Some(0));
    let data = folder.path("data");
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"").stdout;
    let states: Vec<(String, String)> = listed
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap())
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap().to_owned();
            (text("id"), text("state"))
        })
        .collect();
    let expected = [(own, "idle".to_owned()), (working, "queued".to_owned())];
    assert_eq!(states, expected);
}
