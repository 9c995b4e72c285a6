//! `linkspan serve` as a program: what it says, what it keeps, and who finds it.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran, run};
use crate::served::{PATIENCE, Served, check, kind, serve};

#[test]
fn it_prints_its_address_and_stops_cleanly() {
    let folder = Folder::new("serve-life");
    let served = Served::start(&folder);
    assert_eq!(served.body("GET", "/healthz", ""), "ok\n");
    let id = served.submit(&json!({ "prompt": "hello", "engine": "replay:tools" }));
    let began = Instant::now();
    while served
        .events(&id)
        .last()
        .is_none_or(|it| kind(it) != "run.ended")
    {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let events = served.events(&id);
    let data = folder.path("data");
    // Others read the same journal while it is served.
    let replayed = run(
        &["replay", &id, "--to", "linkspan", "--data-dir", &data],
        b"",
    );
    assert_eq!(replayed.stdout.lines().collect::<Vec<_>>(), events);
    let shown = run(&["show", &id, "--data-dir", &data], b"");
    assert!(shown.stdout.contains("› hello"), "{}", shown.stdout);
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed["id"], &listed["title"]),
        (&json!(id), &json!("hello"))
    );
    let page = run(&["token", "--data-dir", &data], b"");
    let url = format!("http://{}/#token={}\n", served.address, served.token);
    assert_eq!((page.stdout, page.code), (url, Some(0)));
    let address = served.address.clone();
    assert_eq!(served.end(Signal::TERM), Some(0));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn what_would_be_open_to_all_is_not_started() {
    let folder = Folder::new("serve-open");
    let data = folder.path("data");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let ran = run(&["serve", "--listen", listen, "--data-dir", &data], b"");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("nothing would be encrypted"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("hint: give `--tls-cert`"),
            "{}",
            ran.stderr
        );
    }
    let half = run(&["serve", "--tls-cert", "x.pem", "--data-dir", &data], b"");
    assert_eq!(half.code, Some(2));
    let none = run(
        &["replay", "none", "--to", "text", "--data-dir", &data],
        b"",
    );
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(
        none.stderr.contains("no session matches `none`"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_run_is_found_where_the_server_looks() {
    let folder = Folder::new("serve-run");
    let data = folder.path("data");
    let args = ["run", "--engine", "replay:tools", "--speed", "0"];
    let ran = run(
        &[
            &args[..],
            &["--to", "linkspan", "--data-dir", &data, "hello"],
        ]
        .concat(),
        b"",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed["title"], &listed["engine"], &listed["state"]),
        (&json!("hello"), &json!("replay:tools"), &json!("idle"))
    );
    let served = Served::start(&folder);
    let events = served.events(listed["id"].as_str().unwrap());
    assert_eq!(events, ran.stdout.lines().collect::<Vec<_>>());
    check(&events);
}

#[test]
fn a_run_in_another_process_is_stopped_from_the_server() {
    let script = r#"echo '{"type":"system","subtype":"init","session_id":"s-9","model":"m","cwd":"/w","uuid":"u1"}'
while :; do sleep 0.1; done"#;
    let folder = machine("serve-stop", &[("claude", script)], "interrupt_grace = 1\n");
    let data = folder.path("data");
    let path = std::env::var("PATH").unwrap();
    let running = linkspan(&["run", "--engine", "claude", "--to", "linkspan", "work"])
        .args(["--data-dir", &data])
        .env("PATH", format!("{}:{path}", folder.path("bin")))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let served = Served::start(&folder);
    let began = Instant::now();
    // By the agent's own name for it, as soon as it is known.
    let aborted = loop {
        let answer = served.body("POST", "/api/sessions/s-9/abort", "");
        if answer.contains("aborted") {
            break answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer}");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(aborted, r#"{"aborted":true}"#);
    let ran = ran(running.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let events = served.events("s-9");
    assert_eq!(events, ran.stdout.lines().collect::<Vec<_>>());
    check(&events);
}

#[test]
fn a_session_of_the_server_is_shown_as_it_happens() {
    let folder = Folder::new("serve-attach");
    let served = Served::start(&folder);
    let prompt = json!({ "prompt": "hello", "engine": "replay:tools", "speed": 5 });
    let id = served.submit(&prompt);
    let data = folder.path("data");
    let attached = run(
        &[
            "run",
            "--attach",
            &id,
            "--to",
            "linkspan",
            "--data-dir",
            &data,
        ],
        b"",
    );
    assert_eq!((attached.code, attached.stderr.as_str()), (Some(0), ""));
    let events = served.events(&id);
    assert_eq!(attached.stdout.lines().collect::<Vec<_>>(), events);
    assert_eq!(kind(&events[events.len() - 1]), "run.ended");
    let none = run(&["run", "--attach", "none", "--data-dir", &data], b"");
    assert_eq!(none.code, Some(2), "{}", none.stderr);
}

#[test]
fn silent_connections_leave_room_for_others_however_few_files_there_are() {
    let folder = Folder::new("serve-files");
    let plain = serve(&folder);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let served = Served::from(&mut command, &folder);
    let silent: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(&served.address).unwrap())
        .collect();
    // It would be deaf until they time out, after half a minute.
    let began = Instant::now();
    assert_eq!(served.request("GET", "/api/sessions", "").status, 200);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    drop(silent);
    served.stop();
}
