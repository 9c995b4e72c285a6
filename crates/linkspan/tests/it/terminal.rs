//! What changes on a terminal: no waiting for typed input, colours, and a progress bar.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::thread;

use rustix::pty;

use crate::program::{Folder, event, fixture, linkspan, ran, run};

/// Both ends of a terminal: ours, and the one a program is given.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let flags = pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY;
    let ours = pty::openpt(flags).unwrap();
    pty::grantpt(&ours).unwrap();
    pty::unlockpt(&ours).unwrap();
    let name = pty::ptsname(&ours, Vec::new())
        .unwrap()
        .into_string()
        .unwrap();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .unwrap();
    (ours.into(), theirs.into())
}

/// Everything that was shown until the last program left the terminal.
pub(crate) fn seen(mut ours: File) -> String {
    let mut bytes = Vec::new();
    // Linux reports the end of a terminal as an error; what came before it is in the buffer.
    ours.read_to_end(&mut bytes).ok();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_stream_is_not_awaited_from_a_keyboard() {
    let (_ours, theirs) = terminal();
    let output = linkspan(&["convert", "--from", "linkspan", "--to", "linkspan"])
        .stdin(theirs)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|it| it.wait_with_output());
    assert_eq!(
        ran(output.unwrap()).shown(),
        "linkspan: there is nothing to read: stdin is a terminal\n\n\
         hint: name a file, or pipe a stream into it; `-` reads what you type\nexit 2\n"
    );
}

/// What a terminal shows on stderr while a file of this many bytes is converted.
fn shown_for(megabytes: usize) -> String {
    let folder = Folder::new(&format!("progress-{megabytes}"));
    let text = "x".repeat(1024 * 1024);
    let notice = format!(r#"{{"level":"info","code":"status","text":"{text}"}}"#);
    let content = event(1, "notice.raised", &notice).repeat(megabytes);
    let path = folder.file("run.jsonl", &content);
    let (ours, theirs) = terminal();
    let watcher = thread::spawn(move || seen(ours));
    let status = linkspan(&["convert", "--from", "linkspan", "--to", "linkspan", &path])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(theirs)
        .status();
    assert!(status.unwrap().success());
    watcher.join().unwrap()
}

#[test]
fn a_large_file_has_a_progress_bar_and_a_small_one_none() {
    assert!(shown_for(33).contains(" % "));
    assert_eq!(shown_for(1), "");
}

/// A transcript as a terminal gets it, with these flags and variables.
fn transcript(flags: &[&str], variables: &[(&str, &str)]) -> String {
    let recording = fixture("claude/text.jsonl");
    let args = ["convert", "--from", "claude", "--to", "text", &recording];
    let (ours, theirs) = terminal();
    let watcher = thread::spawn(move || seen(ours));
    let status = linkspan(&[&args[..], flags].concat())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(theirs)
        .status();
    assert!(status.unwrap().success());
    watcher.join().unwrap()
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let is_coloured = |text: &str| text.contains('\u{1b}');
    assert!(is_coloured(&transcript(&[], &[])));
    assert!(!is_coloured(&transcript(&["--color", "never"], &[])));
    assert!(!is_coloured(&transcript(&[], &[("NO_COLOR", "1")])));
    assert!(!is_coloured(&transcript(&[], &[("TERM", "dumb")])));
}

#[test]
fn colour_goes_into_a_pipe_only_when_asked_for() {
    let recording = fixture("claude/text.jsonl");
    let args = ["convert", "--from", "claude", "--to", "text", &recording];
    let plain = run(&args, b"").stdout;
    let coloured = run(&[&args[..], &["--color", "always"]].concat(), b"").stdout;
    assert!(!plain.contains('\u{1b}') && coloured.contains('\u{1b}'));
}
