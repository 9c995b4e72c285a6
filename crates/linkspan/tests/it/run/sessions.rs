//! `linkspan run`: sessions that are resumed, in use, or not to be had.

use super::*;

#[test]
fn a_resume_line_chooses_engine_and_session_and_leaves_the_prompt() {
    let echo = r#"for it in "$@"; do echo "arg: $it" >&2; done"#;
    let folder = claude("run-resume", &[echo, INIT, HELLO, RESULT]);
    let args = ["run", "--to", "linkspan", "go on\n`claude --resume s-1`"];
    let ran = ran(command_of(&folder, &args).output().unwrap());
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
fn a_resume_line_of_linkspan_finds_the_engine_of_its_session() {
    let folder = claude("run-resume-own", &[INIT, HELLO, RESULT]);
    assert_eq!(run(&folder, &["--to", "text", "hi"]).code, Some(0));
    for line in [
        "`linkspan run --resume s-1`",
        "`linkspan run --engine claude --resume s-1`",
    ] {
        let prompt = format!("go on\n{line}");
        let mut command = command_of(&folder, &["run", "--to", "takopi", &prompt]);
        // Without the line, this one would be started, and it is not there.
        let ran = ran(command.env("LINKSPAN_ENGINE", "codex").output().unwrap());
        let resumed = events(&ran)[0]["resume"].clone();
        let session = serde_json::json!({ "engine": "claude", "value": "s-1" });
        assert_eq!((resumed, ran.code), (session, Some(0)), "{}", ran.stderr);
    }
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

/// Keeps the first agent busy until [`run_and_go`] has another one that waits for it.
const UNTIL_GO: &str = "until [ -e ../go ]; do sleep 0.02; done";

/// Runs another one, and lets the first go on as soon as this one says that it waits.
fn run_and_go(folder: &Folder, args: &[&str]) -> Ran {
    let mut child = started(&mut command(folder, args));
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    stderr.read_line(&mut text).unwrap();
    fs::write(folder.path("go"), "").unwrap();
    stderr.read_to_string(&mut text).unwrap();
    let mut ran = ran(child.wait_with_output().unwrap());
    ran.stderr = text;
    ran
}

#[test]
fn a_session_in_use_is_waited_for_or_not() {
    let folder = claude("run-lock", &[INIT, UNTIL_GO, HELLO, RESULT]);
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
    let patient = run_and_go(&folder, &["--resume", "s-1", "hi"]);
    assert_eq!(patient.code, Some(0));
    let said = format!("linkspan: waiting for process {}\n", first.id());
    assert!(patient.stderr.starts_with(&said), "{}", patient.stderr);
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_busy_newest_session_is_left_alone() {
    let folder = claude("run-newest", &[INIT, UNTIL_GO, HELLO, RESULT]);
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
    let patient = run_and_go(
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
