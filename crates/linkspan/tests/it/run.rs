//! `linkspan run` with agents that are made up: small scripts that speak Claude Code's stream.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Folder, Ran, fixture, linkspan, machine, ran};

/// Says who it is, as Claude Code does.
const INIT: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w","uuid":"u1"}'"#;
const HELLO: &str = r#"echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello."}]},"session_id":"s-1","uuid":"u2"}'"#;
const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s-1","num_turns":1,"duration_ms":5,"uuid":"u3"}'"#;

/// A machine whose `claude` is this script.
fn claude(name: &str, script: &[&str]) -> Folder {
    let script = format!("PATH=/usr/bin:/bin\n{}", script.join("\n"));
    let folder = machine(name, &[("claude", &script)], "interrupt_grace = 1\n");
    fs::create_dir_all(folder.path("work/deep")).unwrap();
    folder
}

fn command(folder: &Folder, args: &[&str]) -> Command {
    command_of(folder, &[&["run", "--engine", "claude"], args].concat())
}

fn command_of(folder: &Folder, args: &[&str]) -> Command {
    let mut command = linkspan(args);
    command
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path("work"))
        .stdin(Stdio::null());
    command
}

fn run(folder: &Folder, args: &[&str]) -> Ran {
    ran(command(folder, args).output().unwrap())
}

fn check(folder: &Folder, args: &[&str], expect: Expect) {
    let shown = run(folder, args).shown();
    expect.assert_eq(&shown.replace(&folder.path(""), "/made/"));
}

fn started(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).unwrap();
}

fn events(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The one end of the run.
fn end(ran: &Ran) -> Value {
    let events = events(ran);
    let mut ends = events.iter().filter(|it| it["type"] == "run.ended");
    let end = ends.next().expect("a run has an end")["data"].clone();
    assert_eq!(ends.next(), None);
    end
}

#[test]
fn a_run_is_a_transcript_and_its_outcome_the_exit_code() {
    let folder = claude("run-text", &[INIT, HELLO, RESULT]);
    check(
        &folder,
        &["say", "hello"],
        expect![[r#"
            › say hello

            claude · m · /w · session s-1

            Hello.

            ✓ done in 0.0s
              claude --resume s-1
            linkspan: runs without asking: Bash, Read, Edit, Write; everything else is denied (`--permissions listed`)
            exit 0
        "#]],
    );
}

#[test]
fn events_are_numbered_timed_and_begin_with_the_prompt() {
    let folder = claude("run-events", &[INIT, HELLO, RESULT, "echo careful >&2"]);
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    let events = events(&ran);
    let told: Vec<(u64, &str, &str)> = events
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap();
            (it["seq"].as_u64().unwrap(), text("type"), text("origin"))
        })
        .filter(|it| it.1 != "notice.raised")
        .collect();
    let kinds: Vec<_> = told.iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(
        kinds,
        [
            ("run.started", "linkspan"),
            ("item.opened", "client"),
            ("item.closed", "client"),
            ("session.bound", "agent"),
            ("item.opened", "agent"),
            ("item.closed", "agent"),
            ("run.ended", "agent"),
        ]
    );
    let numbers: Vec<u64> = events
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.iter().all(|it| it["at"].is_string()));
    let notices: Vec<_> = events
        .iter()
        .filter(|it| it["type"] == "notice.raised")
        .map(|it| (it["data"]["code"].clone(), it["data"]["text"].clone()))
        .collect();
    assert_eq!(notices, [("stderr".into(), "careful".into())]);
}

#[test]
fn a_crash_reports_the_exit_code_and_the_end_of_stderr() {
    let folder = claude("run-crash", &[INIT, "echo 'out of luck' >&2", "exit 7"]);
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    let end = end(&ran);
    assert_eq!(ran.code, Some(1));
    assert_eq!(end["outcome"], "failed");
    assert_eq!(
        end["error"],
        serde_json::json!({"code": "crashed", "message": "claude failed (rc=7)\nout of luck"})
    );
    let folder = claude("run-signal", &[INIT, "kill -9 $$"]);
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    assert_eq!(
        (ran.code, &self::end(&ran)["error"]["message"]),
        (Some(1), &Value::from("claude was ended by signal 9"))
    );
}

#[test]
fn an_end_without_a_result_is_a_failure() {
    let folder = claude("run-quiet", &[INIT, HELLO]);
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    assert_eq!(
        (ran.code, &end(&ran)["outcome"]),
        (Some(1), &"failed".into())
    );
}

#[test]
fn a_program_that_is_missing_is_looked_for_by_name() {
    let folder = machine("run-missing", &[], "");
    fs::create_dir_all(folder.path("work")).unwrap();
    check(
        &folder,
        &["hi"],
        expect![[r#"
            linkspan: engine `claude` cannot be started: `claude` was not found; looked in /made/bin

            hint: install it with `npm install -g @anthropic-ai/claude-code`, or say where it is with `--program PATH`
            exit 1
        "#]],
    );
}

#[test]
fn a_resume_line_chooses_engine_and_session_and_leaves_the_prompt() {
    let echo = r#"for it in "$@"; do echo "arg: $it" >&2; done"#;
    let folder = claude("run-resume", &[echo, INIT, HELLO, RESULT]);
    let mut command = linkspan(&["run", "--to", "linkspan", "go on\n`claude --resume s-1`"]);
    command
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path("work"))
        .stdin(Stdio::null());
    let ran = ran(command.output().unwrap());
    let args: Vec<String> = events(&ran)
        .iter()
        .filter_map(|it| {
            it["data"]["text"]
                .as_str()?
                .strip_prefix("arg: ")
                .map(str::to_owned)
        })
        .collect();
    let tail = &args[args.len() - 2..];
    assert_eq!(tail, ["--", "go on"]);
    let at = args.iter().position(|it| it == "--resume").unwrap();
    assert_eq!(args[at + 1], "s-1");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn another_session_than_the_one_asked_for_fails_the_run_and_stops_the_agent() {
    let folder = claude("run-wrong", &[INIT, "sleep 60", RESULT]);
    let began = Instant::now();
    let ran = run(&folder, &["--to", "linkspan", "--resume", "s-2", "hi"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        end(&ran)["error"],
        serde_json::json!({
            "code": "wrong_session",
            "message": "session `s-2` was asked for, the agent answered as `s-1`"
        })
    );
    assert!(began.elapsed() < Duration::from_secs(30));
}

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
    assert_eq!(ran.stderr, "\nlinkspan: stopping; once more kills it\n");
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
fn a_session_in_use_is_waited_for_or_not() {
    let folder = claude("run-lock", &[INIT, "sleep 2", HELLO, RESULT]);
    let mut first = started(&mut command(
        &folder,
        &["--to", "linkspan", "--resume", "s-1", "hi"],
    ));
    let mut lines = BufReader::new(first.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    let hasty = run(&folder, &["--resume", "s-1", "--no-wait", "hi"]);
    assert_eq!(hasty.code, Some(5));
    let said = format!(
        "linkspan: session `s-1` is in use by process {}\n",
        first.id()
    );
    assert!(hasty.stderr.starts_with(&said), "{}", hasty.stderr);
    let patient = run(&folder, &["--resume", "s-1", "hi"]);
    assert_eq!(patient.code, Some(0));
    let said = format!("linkspan: waiting for process {}\n", first.id());
    assert!(patient.stderr.starts_with(&said), "{}", patient.stderr);
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_silent_agent_times_out() {
    let folder = claude("run-silent", &["sleep 60"]);
    folder.file("config/linkspan/config.toml", "start_timeout = 1\n");
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    assert_eq!(
        (ran.code, &end(&ran)["error"]),
        (
            Some(1),
            &serde_json::json!({
                "code": "start_timeout",
                "message": "claude printed nothing for 1s after it was started"
            })
        )
    );
}

#[test]
fn an_idle_agent_is_stopped_after_the_configured_time() {
    let folder = claude("run-idle", &[INIT, "sleep 60"]);
    folder.file("config/linkspan/config.toml", "idle_timeout = 1\n");
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    assert_eq!(
        (ran.code, &end(&ran)["error"]["code"]),
        (Some(1), &"idle_timeout".into())
    );
}

#[test]
fn the_agent_works_in_the_nearest_git_root_by_default() {
    let folder = claude("run-cwd", &["pwd >&2", INIT, HELLO, RESULT]);
    fs::create_dir_all(folder.path("work/.git")).unwrap();
    let cwd = |args: &[&str]| {
        let mut command = command(&folder, args);
        let ran = ran(command
            .current_dir(folder.path("work/deep"))
            .output()
            .unwrap());
        let said = events(&ran);
        let said = said
            .iter()
            .find(|it| it["data"]["code"] == "stderr")
            .unwrap();
        said["data"]["text"].as_str().unwrap().to_owned()
    };
    let real = |name: &str| {
        fs::canonicalize(folder.path(name))
            .unwrap()
            .display()
            .to_string()
    };
    assert_eq!(cwd(&["--to", "linkspan", "hi"]), real("work"));
    assert_eq!(
        cwd(&["--to", "linkspan", "--cwd", ".", "hi"]),
        real("work/deep")
    );
}

#[test]
fn a_large_prompt_goes_by_stdin_and_any_prompt_arrives_as_it_is() {
    let echo = r#"last=; for it in "$@"; do last=$it; done; printf '%s' "$last" > "$HOME/arg"; cat > "$HOME/stdin""#;
    let folder = claude("run-prompt", &[echo, INIT, HELLO, RESULT]);
    let file = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    for prompt in [
        "--help",
        "-",
        "a\nb",
        "$(reboot) `x` 'y' \"z\"",
        "→ ünïcode ✓",
        " x ",
    ] {
        let mut child = command(&folder, &["--to", "linkspan", "--", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), prompt.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        let (argument, stdin) = (file("arg"), file("stdin"));
        if prompt == "-" {
            assert_eq!(stdin, prompt);
        } else {
            assert_eq!((argument.as_str(), stdin.as_str()), (prompt, ""));
        }
    }
    let large = "x".repeat(1 << 20);
    let path = folder.file("large", &large);
    let status = command(&folder, &["--to", "linkspan"])
        .stdin(fs::File::open(path).unwrap())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    assert!(file("stdin") == large);
}

#[test]
fn a_key_is_withheld_from_the_agent_and_a_failed_login_reports_it() {
    let failed = r#"echo '{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login","session_id":"s-1","uuid":"u3"}'"#;
    let show = r#"echo "key: $ANTHROPIC_API_KEY" >&2"#;
    let folder = claude("run-key", &[show, INIT, failed, "exit 1"]);
    let said = |config: &str, key: &str| {
        folder.file("config/linkspan/config.toml", config);
        let mut command = command(&folder, &["--to", "linkspan", "hi"]);
        let ran = ran(command.env("ANTHROPIC_API_KEY", key).output().unwrap());
        let key = events(&ran);
        let key = key
            .iter()
            .find(|it| it["data"]["code"] == "stderr")
            .unwrap();
        let key = key["data"]["text"].as_str().unwrap().to_owned();
        let message = end(&ran)["error"]["message"].as_str().unwrap().to_owned();
        format!("{key}\n{message}\n")
    };
    expect![[r#"
        key:
        Not logged in · Please run /login
        hint: ANTHROPIC_API_KEY is withheld from the agent; set `engines.claude.use_api_billing = true` in the config to use it
    "#]]
    .assert_eq(&said("[claude]\nuse_api_billing = false\n", "canary"));
    expect![[r#"
        key: canary
        Not logged in · Please run /login
        hint: the agent was given ANTHROPIC_API_KEY; check that it is right
    "#]]
    .assert_eq(&said("", "canary"));
    expect![[r#"
        key:
        Not logged in · Please run /login
        hint: log in with `claude auth login`, or set `ANTHROPIC_API_KEY`
    "#]]
    .assert_eq(&said("", ""));
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

#[test]
fn a_busy_newest_session_is_left_alone() {
    let folder = claude("run-newest", &[INIT, "sleep 2", HELLO, RESULT]);
    let mut first = started(&mut command(
        &folder,
        &["--to", "linkspan", "--resume", "s-1", "hi"],
    ));
    let mut lines = BufReader::new(first.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    let hasty = run(
        &folder,
        &["--continue", "--no-wait", "--to", "linkspan", "hi"],
    );
    assert_eq!((hasty.code, &*hasty.stdout), (Some(5), ""));
    let patient = run(
        &folder,
        &[
            "--continue",
            "--permissions",
            "deny",
            "--to",
            "linkspan",
            "hi",
        ],
    );
    let said = format!("linkspan: waiting for process {}\n", first.id());
    assert_eq!(patient.stderr, said);
    assert_eq!(
        (patient.code, &end(&patient)["outcome"]),
        (Some(0), &"completed".into())
    );
    assert!(first.wait().unwrap().success());
    // Those who were turned away have left nothing in the journal.
    let listed = command_of(&folder, &["sessions", "--json"]).output();
    assert_eq!(ran(listed.unwrap()).stdout.lines().count(), 1);
}

#[test]
fn a_gigabyte_without_a_newline_costs_only_itself() {
    let flood = "head -c 1073741824 /dev/zero | tr '\\0' x; echo";
    let folder = claude("run-flood", &[INIT, flood, HELLO, RESULT]);
    let mut child = started(&mut command(&folder, &["--to", "linkspan", "hi"]));
    let status = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(text) = fs::read_to_string(&status) {
            let line = text.lines().find_map(|it| it.strip_prefix("VmHWM:"));
            let Some(line) = line else { break };
            peak = line.trim().trim_end_matches(" kB").parse().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    });
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let mut ran = ran(child.wait_with_output().unwrap());
    ran.stdout = stdout;
    let peak: u64 = watcher.join().unwrap();
    assert_eq!(
        (ran.code, &end(&ran)["outcome"]),
        (Some(0), &"completed".into())
    );
    let events = events(&ran);
    assert!(
        events
            .iter()
            .any(|it| it["data"]["code"] == "oversized_line")
    );
    assert!(
        events
            .iter()
            .any(|it| it["data"]["item"]["text"] == "Hello.")
    );
    assert!(peak < 160 * 1024, "{peak} kB");
}

#[test]
fn denials_are_reported_with_the_flag_that_allows_them() {
    let result = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"no","session_id":"s-1","permission_denials":[{"tool_name":"WebFetch","tool_use_id":"t","tool_input":{}}],"uuid":"u3"}'"#;
    let folder = claude("run-denied", &[INIT, HELLO, result]);
    let ran = run(&folder, &["--to", "linkspan", "hi"]);
    assert_eq!(
        (ran.code, &*ran.stderr),
        (
            Some(0),
            "linkspan: runs without asking: Bash, Read, Edit, Write; everything else is denied \
             (`--permissions listed`)\n\
             linkspan: not allowed: WebFetch\n\n\
             hint: `--allow Bash --allow Read --allow Edit --allow Write --allow WebFetch` allows it, \
             `--permissions` says what else may be done\n"
        )
    );
    let ran = run(
        &folder,
        &["--to", "linkspan", "--permissions", "deny", "hi"],
    );
    assert_eq!(
        (ran.code, &*ran.stderr),
        (
            Some(0),
            "linkspan: not allowed: WebFetch\n\n\
             hint: `--allow WebFetch` allows it, `--permissions` says what else may be done\n"
        )
    );
    let ran = run(
        &folder,
        &["--to", "linkspan", "--permissions", "plan", "hi"],
    );
    assert_eq!(
        (ran.code, &*ran.stderr),
        (
            Some(0),
            "linkspan: not allowed: WebFetch\n\n\
             hint: `plan` changes nothing, whatever is allowed; `--permissions` has other modes\n"
        )
    );
}

#[test]
fn a_stored_session_resumes_with_its_own_engine() {
    let result = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"s-1","uuid":"u3"}'"#;
    let folder = claude("run-own-engine", &[INIT, HELLO, result]);
    assert_eq!(run(&folder, &["--to", "linkspan", "hi"]).code, Some(0));
    let listed = ran(command_of(&folder, &["sessions", "--json"])
        .output()
        .unwrap());
    let session: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = session["id"].as_str().unwrap();
    for name in [id, "s-1"] {
        let args = ["run", "--to", "linkspan", "--resume", name, "go on"];
        let mut command = command_of(&folder, &args);
        // What runs when nobody names an engine is another one.
        let ran = ran(command.env("LINKSPAN_ENGINE", "codex").output().unwrap());
        assert_eq!(
            (ran.code, end(&ran)["outcome"].as_str()),
            (Some(0), Some("completed")),
            "{ran:?}"
        );
    }
}

#[test]
fn sessions_that_cannot_be_locked_are_reported() {
    let folder = claude("run-unlocked", &[INIT, HELLO, RESULT]);
    let blocked = folder.file("blocked", "");
    let mut command = command(&folder, &["--to", "linkspan", "hi"]);
    let ran = ran(command.env("XDG_STATE_HOME", blocked).output().unwrap());
    let events = events(&ran);
    let notice = events.iter().find(|it| it["data"]["code"] == "not_locked");
    assert_eq!((ran.code, notice.is_some()), (Some(0), true));
}

#[test]
fn recordings_are_played_and_end_as_they_ended() {
    let folder = machine("run-replay", &[], "");
    fs::create_dir_all(folder.path("work")).unwrap();
    let play = |engine: &str, args: &[&str]| {
        let mut command = linkspan(&[
            "run", "--engine", engine, "--speed", "0", "--to", "linkspan",
        ]);
        command
            .args(args)
            .env_clear()
            .env("HOME", folder.path(""))
            .stdin(Stdio::null());
        ran(command.output().unwrap())
    };
    assert_eq!(play("replay:tools", &[]).code, Some(0));
    assert_eq!(play("replay:approval", &[]).code, Some(0));
    assert_eq!(play("replay:subagents", &[]).code, Some(0));
    assert_eq!(play("replay:failure", &[]).code, Some(1));
    let limit = format!("replay:{}", fixture("claude/max_turns.jsonl"));
    assert_eq!(play(&limit, &[]).code, Some(4));
    let codex = format!("replay:{}", fixture("codex/text.jsonl"));
    let with_prompt = play(&codex, &["what is this"]);
    assert_eq!(with_prompt.code, Some(0));
    assert!(with_prompt.stdout.contains("what is this"));
    let nothing = play("replay:nothing-of-that-name", &[]);
    assert_eq!(
        nothing.shown(),
        "linkspan: there is no recording `nothing-of-that-name`\n\n\
         hint: recordings: replay:tools, replay:approval, replay:subagents, replay:failure, \
         or `replay:FILE` with the path of one\nexit 3\n"
    );
}
