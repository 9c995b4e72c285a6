//! The engine `openhands`, with a stand-in for its shim: a script that takes the same lines and prints
//! the same events. The real SDK is tried in `tests/agents`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use expect_test::expect;
use linkspan::{Answer, Body, Conversation, ConversationConfig, Mode, Outcome, RunOptions};
use runner::config::Config;
use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, machine, ran};

/// Notes every line. The second prompt calls a tool and waits for its answer, the third for an end.
const STAND_IN: &str = r#"
PATH=/usr/bin:/bin
state() {
  echo '{"source":"environment","key":"'$1'","value":'$2',"kind":"ConversationStateUpdateEvent"}'
}
n=0
while read -r line; do
  echo "$line" >> "$HOME/lines"
  case $line in
    *'"type":"open"'*) state full_state '{"id":"11111111-2222-4333-8444-555555555555"}';;
    *'"type":"prompt"'*)
      n=$((n+1))
      echo '{"source":"user","llm_message":{"role":"user","content":"prompt '$n'"},"kind":"MessageEvent"}'
      state execution_status '"running"'
      case $n in
        2)
          echo '{"source":"agent","thought":[],"action":{"command":"ls","kind":"TerminalAction"},"tool_name":"terminal","tool_call_id":"c-1","llm_response_id":"r","kind":"ActionEvent"}'
          state execution_status '"waiting_for_confirmation"';;
        3) ;;
        *)
          echo '{"source":"agent","llm_message":{"role":"assistant","content":"answer '$n'"},"kind":"MessageEvent"}'
          state execution_status '"finished"';;
      esac;;
    *'"type":"answer"'*)
      echo '{"source":"environment","tool_call_id":"c-1","tool_name":"terminal","rejection_reason":"not here","kind":"UserRejectObservation"}'
      state execution_status '"finished"';;
    *'"type":"interrupt"'*)
      echo '{"source":"user","kind":"InterruptEvent"}'
      state execution_status '"paused"';;
  esac
done
"#;

fn lines(folder: &Folder) -> Vec<Value> {
    let lines = fs::read_to_string(folder.path("lines")).unwrap();
    let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap());
    lines.collect()
}

fn run(folder: &Folder, flags: &[&str]) -> Ran {
    let output = linkspan(&["run", "--engine", "openhands"])
        .args(flags)
        .arg("Hello?")
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path("bin")))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .output();
    ran(output.unwrap())
}

#[test]
fn one_prompt_is_two_lines_and_the_end_of_stdin() {
    let folder = machine("openhands-one", &[("python3", STAND_IN)], "");
    let id = "11111111-2222-4333-8444-555555555555";
    let ran = run(
        &folder,
        &[
            "--to", "text", "--model", "m", "--resume", id, "--color", "never",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    assert!(ran.stdout.contains("answer 1"), "{}", ran.shown());
    let limits = json!({
        "everything": false,
        "edits": false,
        "asks": false,
        "allow": ["terminal", "file_editor"],
        "deny": [],
    });
    let expected = [
        json!({"type": "open", "session": id, "model": "m", "permissions": limits}),
        json!({"type": "prompt", "text": "Hello?"}),
    ];
    assert_eq!(lines(&folder), expected);
}

#[test]
fn a_conversation_is_prompted_aborted_and_resumed_in_one_process() {
    let folder = machine("openhands-talk", &[("agent", STAND_IN)], "");
    let (program, home) = (folder.path("bin/agent"), folder.path(""));
    let settings = format!("[engines.openhands]\nprogram = '{program}'\nenv.HOME = '{home}'\n");
    let settings = Config::parse(Some((Path::new("made"), &settings)), |_| None).unwrap();
    let mut conversation = Conversation::new(ConversationConfig {
        engine: "openhands".to_owned(),
        cwd: folder.path("").into(),
        options: RunOptions {
            permissions: Some(Mode::Ask),
            ..RunOptions::default()
        },
        resume: None,
        guard: Some(env!("CARGO_BIN_EXE_linkspan").into()),
        settings,
    });
    let settled = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&settled);
    let aborter = conversation.aborter();
    let mut n_runs = 0;
    conversation.on_event(move |event| match &event.body {
        Body::FrameUnmapped(it) => panic!("{it:?}"),
        Body::RunStarted(_) => {
            n_runs += 1;
            if n_runs == 3 {
                aborter.abort();
            }
        }
        Body::AskSettled(it) => {
            let message = it.message.as_ref().map(ToString::to_string);
            heard.lock().unwrap().push((it.decision, message));
        }
        _ => (),
    });
    conversation.on_ask(|asked| {
        assert_eq!((&*asked.ask.tool, asked.kind.name()), ("terminal", "shell"));
        let message = "not here".to_owned();
        Answer::Deny { message }
    });
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let outcomes = runtime.block_on(async {
        let mut outcomes = Vec::new();
        for n in 1..=4 {
            conversation.send_message(format!("message {n}"));
            outcomes.push(conversation.run().await.unwrap().outcome);
        }
        conversation.close().await;
        outcomes
    });
    let done = Outcome::Completed;
    assert_eq!(outcomes, [done, done, Outcome::Aborted, done]);
    let denied = (model::Decision::Denied, Some("not here".to_owned()));
    assert_eq!(*settled.lock().unwrap(), [denied]);
    let limits =
        json!({"everything": false, "edits": false, "asks": true, "allow": [], "deny": []});
    let prompt = |n: u8| json!({"type": "prompt", "text": format!("message {n}")});
    let expected = [
        json!({"type": "open", "permissions": limits}),
        prompt(1),
        prompt(2),
        json!({"type": "answer", "call": "c-1", "allow": false, "reason": "not here"}),
        prompt(3),
        json!({"type": "interrupt"}),
        prompt(4),
    ];
    assert_eq!(lines(&folder), expected);
}

/// The real shim, in a Python that sees no packages.
#[test]
fn a_python_without_the_sdk_names_the_install_command() {
    let config = "[engines.openhands]\nargs = ['-S']";
    let folder = machine("openhands-bare", &[], config);
    // Nothing of the working directory is imported.
    for name in ["json.py", "litellm.py", "asyncio.py"] {
        folder.file(name, "open('imported', 'w')");
    }
    let ran = run(&folder, &["--to", "linkspan"]);
    let ended = ran.stdout.lines().last().unwrap_or_default();
    let ended: Value = serde_json::from_str(ended).unwrap();
    let error = &ended["data"]["error"];
    let message = error["message"].as_str().unwrap();
    let (why, hint) = message.split_once('\n').unwrap();
    assert_eq!(
        (&error["code"], ran.code),
        (&json!("NotInstalled"), Some(1))
    );
    assert!(why.ends_with("No module named 'litellm'"), "{why}");
    expect!["hint: install it for a Python of at least 3.12, with `pip install openhands-sdk openhands-tools`, and name that Python with `engines.openhands.program` in the config or with `--program PATH` of `linkspan run`"].assert_eq(hint);
    assert!(!fs::exists(folder.path("imported")).unwrap());
}

#[test]
fn it_is_installed_where_a_python_has_the_sdk() {
    let row = |name: &str, python: &str| {
        let folder = machine(name, &[("python3", python)], "");
        let output = linkspan(&["engines", "--json"])
            .env_clear()
            .env("PATH", folder.path("bin"))
            .env("HOME", folder.path(""))
            .output();
        let shown = ran(output.unwrap()).stdout;
        let row = shown
            .lines()
            .find(|it| it.contains("\"openhands\""))
            .unwrap();
        row.replace(&folder.path(""), "/made/") + "\n"
    };
    let rows = row("openhands-there", "echo 1.58.0") + &row("openhands-not-there", "exit 1");
    expect![[r#"
        {"name":"openhands","summary":"OpenHands","installed":true,"version":"1.58.0","path":"/made/bin/python3","install":"pip install openhands-sdk openhands-tools","default":false}
        {"name":"openhands","summary":"OpenHands","installed":false,"version":null,"path":null,"install":"pip install openhands-sdk openhands-tools","default":false}
    "#]].assert_eq(&rows);
}
