//! A process with one prompt has one end, whatever it prints after its result; and what is said of inputs
//! of which nothing is understood.

use std::fs;
use std::process::Stdio;

use crate::program::{Folder, Ran, linkspan, machine, ran, run};

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w","uuid":"u1"}"#;
const HELLO: &str = r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello."}]},"session_id":"s-1","uuid":"u2"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s-1","num_turns":1,"duration_ms":5,"uuid":"u3"}"#;
const FAILURE: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["boom"],"session_id":"s-1","num_turns":1,"uuid":"u3"}"#;

/// One more line after the result.
const AFTER: [(&str, &str); 9] = [
    ("nothing", ""),
    (
        "status",
        r#"{"type":"system","subtype":"status","status":"requesting","session_id":"s-1"}"#,
    ),
    (
        "suggestion",
        r#"{"type":"prompt_suggestion","suggestion":"go on","session_id":"s-1"}"#,
    ),
    ("garbage", "bye"),
    (
        "assistant",
        r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"More."}]},"session_id":"s-1"}"#,
    ),
    (
        "user",
        r#"{"type":"user","message":{"role":"user","content":"more"},"session_id":"s-1"}"#,
    ),
    (
        "stream_event",
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m2"}},"session_id":"s-1"}"#,
    ),
    (
        "result",
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s-1","num_turns":1}"#,
    ),
    ("init", INIT),
];
/// Each target, and what an end is there.
const ENDS: [(&str, &[&str]); 6] = [
    ("linkspan", &[r#""type":"run.ended""#]),
    ("takopi", &[r#""type":"completed""#]),
    (
        "thread",
        &[r#""type":"turn.completed""#, r#""type":"turn.failed""#],
    ),
    (
        "openhands",
        &[r#""value":"finished""#, r#""value":"error""#],
    ),
    ("ag-ui", &["RUN_FINISHED", "RUN_ERROR"]),
    ("acp", &[r#""stopReason":"#, r#""error":{"code":"#]),
];

fn n_ends(out: &str, ends: &[&str]) -> usize {
    let is_end = |line: &&str| ends.iter().any(|it| line.contains(it));
    out.lines().filter(is_end).count()
}

fn machine_that_prints(name: &str, lines: &str) -> Folder {
    let folder = machine(name, &[("claude", "PATH=/usr/bin:/bin\ncat ../lines")], "");
    fs::create_dir_all(folder.path("work")).unwrap();
    folder.file("lines", lines);
    folder
}

fn run_claude(folder: &Folder, to: &str) -> Ran {
    let mut command = linkspan(&["run", "--engine", "claude", "--to", to, "hi"]);
    command
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("LINKSPAN_DATA_DIR", folder.path("data"))
        .current_dir(folder.path("work"))
        .stdin(Stdio::null());
    ran(command.output().unwrap())
}

/// Each line after the result is shown in one target; a recording is shown in all of them below.
#[test]
fn one_prompt_has_one_end_and_its_result_is_the_exit_code() {
    for (result, code) in [(RESULT, 0), (FAILURE, 1)] {
        for ((name, after), (to, ends)) in AFTER.into_iter().zip(ENDS.into_iter().cycle()) {
            let lines = format!("{INIT}\n{HELLO}\n{result}\n{after}\n");
            let folder = machine_that_prints("one-end", &lines);
            let ran = run_claude(&folder, to);
            let seen = (n_ends(&ran.stdout, ends), ran.code);
            assert_eq!(seen, (1, Some(code)), "{name} to {to}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_recording_of_one_prompt_has_one_end() {
    for (name, after) in AFTER {
        let lines = format!("{INIT}\n{HELLO}\n{RESULT}\n{after}\n");
        for (to, ends) in ENDS {
            let args = ["convert", "--from", "claude", "--to", to];
            let ran = run(&args, lines.as_bytes());
            let told = (n_ends(&ran.stdout, ends), ran.code);
            assert_eq!(told, (1, Some(0)), "{name} to {to}: {}", ran.stdout);
        }
    }
}

#[test]
fn what_comes_after_the_end_is_kept_and_counted() {
    let lines = [INIT, HELLO, RESULT, AFTER[4].1].join("\n");
    let args = ["convert", "--from", "claude", "--to", "thread", "--report"];
    let ran = run(&args, lines.as_bytes());
    assert!(ran.stderr.contains("debug notice"), "{}", ran.stderr);
    let args = ["convert", "--from", "claude", "--to", "linkspan"];
    let ran = run(&args, lines.as_bytes());
    let notice = ran.stdout.lines().find(|it| it.contains("\"after_end\""));
    assert!(
        notice.is_some_and(|it| it.contains("More.")),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_input_without_known_frames_is_reported_as_foreign() {
    let rollout = r#"{"timestamp":"2026-11-16T18:29:14.927Z","type":"session_meta","payload":{"id":"x"}}
{"timestamp":"2026-11-16T18:29:15.000Z","type":"response_item","payload":{"type":"message"}}
"#;
    let ran = run(
        &["convert", "--from", "codex", "--to", "text"],
        rollout.as_bytes(),
    );
    assert_eq!(
        ran.shown(),
        "linkspan: none of the 2 lines of `stdin` is codex\n\n\
         hint: it looks like a rollout file of Codex, which linkspan does not read\nexit 2\n"
    );
    let chat = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"t","type":"user","provenance":"real_user","cwd":"/w","version":"0.24.4","message":{"role":"user","parts":[{"text":"hi"}]}}"#;
    let ran = run(&["convert", "--to", "text"], chat.as_bytes());
    assert_eq!(
        ran.shown(),
        "linkspan: the input is a chat file of Qwen Code, which linkspan does not read: `stdin`\n\n\
         hint: only what the agent prints can be read\nexit 2\n"
    );
}

#[test]
fn qwen_code_is_resumed_with_its_own_program() {
    let init = r#"{"type":"system","subtype":"init","session_id":"q-1","model":"m","cwd":"/w","permission_mode":"default","qwen_code_version":"0.24.4"}"#;
    let lines = [
        init,
        &HELLO.replace("s-1", "q-1"),
        &RESULT.replace("s-1", "q-1"),
    ]
    .join("\n");
    let ran = run(&["convert", "--to", "text"], lines.as_bytes());
    assert!(ran.stdout.contains("qwen --resume q-1"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("claude --resume"), "{}", ran.stdout);
}

#[test]
fn the_last_stdout_lines_explain_a_failed_run() {
    let words = "this program is no longer maintained, use the new one";
    let folder = machine_that_prints("last-words", &format!("{words}\n"));
    let ran = run_claude(&folder, "text");
    assert_eq!(ran.code, Some(1));
    let shown = ran.stdout.matches(words).count();
    assert!(shown >= 1, "{}", ran.shown());
    let ran = run_claude(&folder, "linkspan");
    let end = ran.stdout.lines().find(|it| it.contains("\"run.ended\""));
    assert!(end.unwrap().contains(words), "{}", ran.stdout);
}
