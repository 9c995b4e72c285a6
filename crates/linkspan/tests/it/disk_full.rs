//! A store that cannot be written: nothing is acknowledged, nothing is shown that is not stored, and
//! when there is room again everything goes on.
//!
//! The kernel refuses writes for the server alone: it may not write to any file beyond its first byte.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use crate::program::{Folder, run};
use crate::served::{PATIENCE, Served, check, serve};

/// How long it is looked at what a server without room does.
const A_WHILE: Duration = Duration::from_millis(700);

/// Takes the room away, or gives it back.
fn limit(pid: Pid, is_full: bool) {
    let usual = getrlimit(Resource::Fsize);
    let new = Rlimit {
        current: if is_full { Some(1) } else { usual.current },
        maximum: usual.maximum,
    };
    prlimit(Some(pid), Resource::Fsize, new).unwrap();
}

/// Hears events as long as there are any.
fn listen(stream: BufReader<TcpStream>) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&heard);
    thread::spawn(move || {
        for line in stream.lines().map_while(Result::ok) {
            if let Some(data) = line.strip_prefix("data: {\"v\"") {
                all.lock().unwrap().push(format!("{{\"v\"{data}"));
            }
        }
    });
    heard
}

#[test]
fn prompts_are_refused_on_a_full_disk_and_accepted_again_later() {
    let folder = Folder::new("full");
    let served = Served::start(&folder);
    let prompt = json!({ "prompt": "x", "engine": "replay:tools", "speed": 1 });
    let id = served.submit(&prompt);
    let heard = listen(served.sse(&id, "0"));
    let began = Instant::now();
    while heard.lock().unwrap().len() < 10 {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    limit(served.pid(), true);
    let refused = served.request("POST", "/api/runs", &prompt.to_string());
    let error = refused.json();
    assert_eq!(
        (refused.status, &*refused.code()),
        (503, "storage"),
        "{error}"
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the journal cannot be used"),
        "{message}"
    );
    // What is on its way when the room ends may still have been stored.
    thread::sleep(A_WHILE);
    let stored = served.events(&id);
    thread::sleep(A_WHILE);
    assert_eq!(served.events(&id), stored, "it was stored after all");
    assert_eq!(*heard.lock().unwrap(), stored, "what is shown is stored");
    assert_eq!(served.sessions(), [&*id]);
    assert_eq!(served.request("GET", "/healthz", "").status, 200);

    limit(served.pid(), false);
    let session = served.idle(&id);
    assert_eq!(session["runs"].as_array().unwrap().len(), 1, "{session}");
    assert_eq!(session["runs"][0]["outcome"], "completed");
    let events = served.events(&id);
    check(&events);
    assert!(events.len() > stored.len());
    while heard.lock().unwrap().len() < events.len() {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(*heard.lock().unwrap(), events);
    served.submit(&prompt);
}

#[test]
fn without_a_data_directory_serve_fails_and_run_continues() {
    // Nobody makes folders there, whatever they may do elsewhere.
    let nowhere = ["--data-dir", "/proc/linkspan"];
    let refused = run(
        &[&["serve", "--listen", "127.0.0.1:0"][..], &nowhere].concat(),
        b"",
    );
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("/proc/linkspan"),
        "{}",
        refused.stderr
    );
    let args = ["run", "--engine", "replay:tools", "--speed", "0"];
    let rest = ["--to", "linkspan", "hello"];
    let ran = run(&[&args[..], &nowhere, &rest].concat(), b"");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("this run is not kept"),
        "{}",
        ran.stderr
    );
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "run.ended");
}

/// A server whose files may not grow beyond a few bytes.
fn start_without_room(folder: &Folder) -> Served {
    let whole = serve(folder);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -S -f 1; exec \"$@\"", "sh"])
        .arg(whole.get_program())
        .args(whole.get_args());
    for (name, value) in whole.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Served::from(&mut command, folder)
}

/// Looking at old sessions needs no room.
#[test]
fn on_a_full_disk_a_server_starts_to_look_at_and_takes_prompts_when_there_is_room() {
    let folder = Folder::new("full-start");
    let served = Served::start(&folder);
    let prompt = json!({ "prompt": "x", "engine": "replay:tools", "speed": 0 });
    let id = served.submit(&prompt);
    served.idle(&id);
    let events = served.events(&id);
    served.stop();
    let sessions = ["sessions", "--json", "--data-dir", &folder.path("data")];
    assert_eq!(run(&sessions, b"").code, Some(0));

    let served = start_without_room(&folder);
    assert_eq!(served.sessions(), [&*id]);
    assert_eq!(served.events(&id), events);
    for _ in 0..2 {
        let refused = served.request("POST", "/api/runs", &prompt.to_string());
        assert_eq!(
            (refused.status, &*refused.code()),
            (507, "disk_full"),
            "{refused:?}"
        );
    }
    assert_eq!(served.sessions(), [&*id]);
    assert!(
        served
            .body("GET", "/api/metrics", "")
            .contains("linkspan_store_trouble")
    );

    limit(served.pid(), false);
    let began = Instant::now();
    while served
        .request("POST", "/api/runs", &prompt.to_string())
        .status
        != 202
    {
        assert!(began.elapsed() < PATIENCE, "it never found the room");
        thread::sleep(Duration::from_millis(50));
    }
    let [new] = &served.sessions()[..1] else {
        panic!("no session");
    };
    served.idle(new);
    check(&served.events(new));
    assert_eq!(served.events(&id), events);
}
