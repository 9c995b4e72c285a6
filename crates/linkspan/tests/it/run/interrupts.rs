//! `linkspan run`: interrupts, and readers of its output that go away.

use super::*;

#[test]
fn the_first_interrupt_aborts_the_run() {
    let folder = claude(
        "run-abort",
        &[INIT, "trap 'exit 0' INT", "sleep 60 & wait", RESULT],
    );
    let args = ["--to", "linkspan", "--permissions", "deny", "hi"];
    let mut child = started(&mut command(&folder, &args));
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    lines.read_line(&mut seen).unwrap();
    interrupt(&child);
    lines.read_to_string(&mut seen).unwrap();
    let mut ran = ran(child.wait_with_output().unwrap());
    ran.stdout = seen;
    assert_eq!(
        (ran.code, &end(&ran)["outcome"]),
        (Some(130), &"aborted".into())
    );
    assert_eq!(
        ran.stderr,
        "\nlinkspan: stopping; a second signal kills it\n"
    );
}

#[test]
fn an_interrupt_that_is_ignored_from_the_start_stays_ignored() {
    let folder = claude("run-nohup", &[INIT, HELLO, RESULT]);
    let nohup = format!(
        "trap '' HUP; exec {} run --engine claude --to linkspan hi",
        env!("CARGO_BIN_EXE_linkspan")
    );
    let slow = [INIT, "sleep 1", HELLO, RESULT].join("\n");
    folder.file(
        "bin/claude",
        &format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{slow}\n"),
    );
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &nohup])
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .stdin(Stdio::null())
        .current_dir(folder.path("work"));
    let mut child = started(&mut command);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    lines.read_to_string(&mut String::new()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_second_interrupt_kills_what_does_not_listen() {
    let folder = claude(
        "run-kill",
        &["trap '' INT TERM", INIT, "while :; do sleep 1; done"],
    );
    let mut child = started(&mut command(&folder, &["--to", "linkspan", "hi"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    lines.read_line(&mut seen).unwrap();
    let began = Instant::now();
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(100));
    interrupt(&child);
    lines.read_to_string(&mut seen).unwrap();
    let mut ran = ran(child.wait_with_output().unwrap());
    ran.stdout = seen;
    assert_eq!(
        (ran.code, &end(&ran)["outcome"]),
        (Some(130), &"aborted".into())
    );
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let folder = claude(
        "run-pipe",
        &[INIT, "while :; do", HELLO, "sleep 0.05", "done"],
    );
    let mut child = started(&mut command(&folder, &["--to", "linkspan", "hi"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    drop(lines);
    let began = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_reader_that_stalls_does_not_make_it_deaf() {
    let many = "i=0; while [ $i -lt 3000 ]; do i=$((i+1))";
    let folder = claude("run-stall", &[INIT, many, HELLO, "done", "sleep 60"]);
    let mut child = started(&mut command(&folder, &["--to", "linkspan", "hi"]));
    // Until the pipe is full and somebody waits in a write.
    std::thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(20));
}
