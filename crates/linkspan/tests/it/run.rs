//! `linkspan run` with agents that are made up: small scripts that speak Claude Code's stream.

mod interrupts;
mod sessions;

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

            hint: install it with `npm install -g @anthropic-ai/claude-code`, or say where it is with `engines.claude.program` in the config, or with `--program PATH` of `linkspan run`
            exit 1
        "#]],
    );
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
