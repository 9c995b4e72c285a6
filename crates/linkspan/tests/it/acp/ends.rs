//! How `linkspan acp` ends, and what it leaves behind: nothing that runs, and whole sessions.

use std::fs;
use std::io::{Read, Write};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{Client, at_home, ends, made, made_with};
use crate::program::{Folder, linkspan};

#[test]
fn a_client_that_goes_away_takes_the_agent_with_it() {
    let folder = made("acp-gone");
    let mut client = Client::ready(&folder, &["--stats"]);
    let session = client.new_session(&folder);
    client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    assert_eq!(client.leave(), 0);
    let pids = fs::read_to_string(folder.path("pids")).unwrap();
    let is_there = |it: &&str| fs::exists(format!("/proc/{it}")).unwrap();
    assert_eq!(pids.lines().filter(is_there).count(), 0, "{pids}");
}

#[test]
fn a_turn_that_is_stopped_from_outside_has_an_end() {
    let folder = made("acp-stopped");
    let mut client = Client::ready(&folder, &["--stats"]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    terminate(&client.child);
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
    let mut stderr = client.child.stderr.take().unwrap();
    assert_eq!(code(&mut client.child), 0);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("linkspan: 1 prompts, "), "{said}");
    assert!(said.contains(" writes; half of them within "), "{said}");
    assert_eq!(ends(&folder, &session), ["aborted"]);
    assert_eq!(n_left(&folder), 0);
}

#[test]
fn an_agent_that_does_not_stop_is_made_to_and_its_run_has_an_end() {
    // By itself it would be given more time than a client that leaves has.
    let folder = made_with("acp-stuck", "interrupt_grace = 30\n");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "stuck");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    let closing = client.send("session/close", json!({"sessionId": session}));
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
    assert_eq!(client.answer(closing)["result"], json!({}));
    assert_eq!(ends(&folder, &session), ["aborted"]);
    assert_eq!(n_left(&folder), 0);
}

#[test]
fn an_unresponsive_agent_is_killed_nine_seconds_after_a_cancel() {
    let folder = made_with("acp-deaf", "");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "stuck");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    let began = Instant::now();
    client.notify("session/cancel", json!({"sessionId": session}));
    let answer = client.answer(prompt);
    let took = began.elapsed();
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(took < Duration::from_secs(9), "it took {took:?}");
    assert_eq!(n_left(&folder), 0);
}

#[test]
fn a_client_that_does_not_read_blocks_no_one() {
    let folder = made("acp-unread");
    let mut command = linkspan(&["acp", "--engine", "claude"]);
    let mut child = at_home(&mut command, &folder).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (full, is_full) = std::sync::mpsc::channel();
    let writer = thread::spawn(move || {
        let line =
            json!({"jsonrpc": "2.0", "id": 1, "method": "x".repeat(4096)}).to_string() + "\n";
        // It ends with a broken pipe, when the program does.
        while stdin.write_all(line.as_bytes()).is_ok() {
            full.send(()).ok();
        }
    });
    // Nothing is taken any more.
    while is_full.recv_timeout(Duration::from_secs(2)).is_ok() {}
    terminate(&child);
    assert_eq!(code(&mut child), 0);
    writer.join().unwrap();
}

#[test]
fn a_line_without_an_end_is_refused_and_the_next_one_is_read() {
    let folder = made("acp-long-line");
    let mut client = Client::ready(&folder, &[]);
    client.write(&"a".repeat((64 << 20) + 1));
    let refused = client.until(|it| it["id"].is_null() && it.get("error").is_some());
    let message = "the message has 67108865 bytes, which is too long";
    assert_eq!(
        refused["error"],
        json!({"code": -32600, "message": message})
    );
    client.new_session(&folder);
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

fn code(child: &mut Child) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it stays");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The agents that are still there.
fn n_left(folder: &Folder) -> usize {
    let pids = fs::read_to_string(folder.path("pids")).unwrap();
    let is_there = |it: &&str| fs::exists(format!("/proc/{it}")).unwrap();
    pids.lines().filter(is_there).count()
}
