//! Questions of an agent that are answered at a terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::program::machine;
use crate::terminal::terminal;

/// Asks for two tools at once, and notes what it is told about each.
const TWO: &str = r#"
PATH=/usr/bin:/bin
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
sleep 1
for n in one two; do
  echo '{"type":"assistant","message":{"id":"m-'$n'","content":[{"type":"tool_use","id":"t-'$n'","name":"Bash","input":{"command":"touch '$n'"}}]},"session_id":"s-1"}'
done
for n in one two; do
  echo '{"type":"control_request","request_id":"q-'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch '$n'"},"tool_use_id":"t-'$n'"}}'
done
read -r first; echo "$first" >> "$HOME/answers"
read -r second; echo "$second" >> "$HOME/answers"
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1"}'
read -r closed
"#;

/// What is on the screen after the last clearing of a line.
fn visible_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\r', "")
}

#[test]
fn each_question_is_answered_by_what_is_typed_under_it() {
    let folder = machine("asks-two", &[("claude", TWO)], "");
    let (mut ours, theirs) = terminal();
    let mut child = Command::new("setsid")
        .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_linkspan")])
        .args(["run", "--engine", "claude", "--color", "never", "go"])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path("bin")))
        .env("HOME", folder.path(""))
        .env("TERM", "xterm")
        .current_dir(folder.path(""))
        .stdin(theirs.try_clone().unwrap())
        .stdout(Stdio::from(theirs.try_clone().unwrap()))
        .stderr(Stdio::from(theirs))
        .spawn()
        .unwrap();
    let (tx, rx) = mpsc::channel();
    let mut screen = ours.try_clone().unwrap();
    thread::spawn(move || {
        let mut buf = [0; 4096];
        // Linux reports the end of a terminal as an error.
        while let Ok(n) = screen.read(&mut buf) {
            if n == 0 || tx.send(buf[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut seen = Vec::new();
    let mut wait_for = |words: &str, times: usize| {
        while visible_text(&seen).matches(words).count() < times {
            let bytes = rx.recv_timeout(Duration::from_secs(20));
            let bytes = bytes.unwrap_or_else(|_| panic!("no `{words}` in {}", visible_text(&seen)));
            seen.extend(bytes);
        }
        visible_text(&seen)
    };
    // Typed before anybody asked: it answers nothing.
    wait_for("› go", 1);
    writeln!(ours, "y").unwrap();
    let first = wait_for("allow once", 1);
    let question = first.rsplit("? ").next().unwrap();
    assert!(question.contains("touch one"), "{first}");
    thread::sleep(Duration::from_millis(300));
    assert!(!fs::exists(folder.path("answers")).unwrap());
    writeln!(ours, "n not that").unwrap();
    let second = wait_for("allow once", 2);
    let question = second.rsplit("? ").next().unwrap();
    assert!(question.contains("touch two"), "{second}");
    writeln!(ours, "y").unwrap();
    wait_for("✓ done", 1);
    assert!(child.wait().unwrap().success());
    let answers = fs::read_to_string(folder.path("answers")).unwrap();
    let answers: Vec<(String, String)> = answers
        .lines()
        .map(|it| {
            let it: serde_json::Value = serde_json::from_str(it).unwrap();
            let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
            let response = &it["response"];
            (
                text(&response["request_id"]),
                text(&response["response"]["behavior"]),
            )
        })
        .collect();
    let expected = [("q-one", "deny"), ("q-two", "allow")];
    assert_eq!(
        answers,
        expected.map(|(id, it)| (id.to_owned(), it.to_owned()))
    );
}

/// What a terminal shows, and the agent's notes, when nobody types anything.
fn unanswered(name: &str, flags: &[&str]) -> (String, String) {
    let folder = machine(name, &[("claude", TWO)], "");
    let (ours, theirs) = terminal();
    let screen = thread::spawn(move || crate::terminal::seen(ours));
    let status = Command::new("setsid")
        .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_linkspan")])
        .args(["run", "--engine", "claude", "--ask-timeout", "0.2"])
        .args(flags)
        .args(["--color", "never", "go"])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path("bin")))
        .env("HOME", folder.path(""))
        .env("TERM", "xterm")
        .current_dir(folder.path(""))
        .stdin(theirs.try_clone().unwrap())
        .stdout(Stdio::from(theirs.try_clone().unwrap()))
        .stderr(Stdio::from(theirs))
        .status()
        .unwrap();
    let seen = visible_text(screen.join().unwrap().as_bytes());
    assert!(status.success(), "{seen}");
    (seen, fs::read_to_string(folder.path("answers")).unwrap())
}

#[test]
fn an_overdue_question_gets_the_default_answer() {
    let (seen, answers) = unanswered("asks-deadline", &[]);
    assert_eq!(
        answers.matches(r#""behavior":"deny""#).count(),
        2,
        "{answers}"
    );
    assert!(answers.contains("no answer within 200ms"), "{answers}");
    let decision = "\n  → denied: no answer within 200ms\n";
    assert_eq!(seen.matches(decision).count(), 2, "{seen}");
    let (seen, answers) = unanswered("asks-deadline-allow", &["--ask-default", "allow"]);
    assert_eq!(
        answers.matches(r#""behavior":"allow""#).count(),
        2,
        "{answers}"
    );
    let decision = "\n  → allowed: no answer within 200ms\n";
    assert_eq!(seen.matches(decision).count(), 2, "{seen}");
}
