//! `Conversation` with an agent that stays: a script that answers each line it is sent.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use linkspan::{
    Answer, Body, Conversation, ConversationConfig, ConversationError, Mode, Outcome, RunOptions,
    State,
};
use runner::config::Config;

use crate::program::{Folder, machine};

/// Answers each message with its number, and asks before the second.
const SCRIPT: &str = r#"
PATH=/usr/bin:/bin
echo start >> "$HOME/starts"
n=0
while read -r line; do
  case $line in
    *'"type":"user"'*)
      n=$((n+1))
      echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
      if [ $n = 2 ]; then
        echo '{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]},"session_id":"s-1"}'
        echo '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}'
        read -r answer
        echo "$answer" > "$HOME/answer"
        echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"session_id":"s-1"}'
      fi
      if [ $n = 4 ]; then exit 3; fi
      echo '{"type":"result","subtype":"success","is_error":false,"result":"answer '$n'","session_id":"s-1","num_turns":1}';;
    *interrupt*) ;;
  esac
done
"#;

fn conversation(folder: &Folder) -> Conversation {
    let program = folder.path("bin/agent");
    let home = folder.path("");
    let settings = format!("[engines.claude]\nprogram = '{program}'\nenv.HOME = '{home}'\n");
    let settings = Config::parse(Some((Path::new("made"), &settings)), |_| None).unwrap();
    Conversation::new(ConversationConfig {
        engine: "claude".to_owned(),
        cwd: folder.path("").into(),
        options: RunOptions {
            permissions: Some(Mode::Ask),
            ..RunOptions::default()
        },
        resume: None,
        guard: Some(env!("CARGO_BIN_EXE_linkspan").into()),
        settings,
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(future)
}

#[test]
fn an_agent_serves_many_runs_and_is_restarted_after_its_exit() {
    let folder = machine("conversation", &[("agent", SCRIPT)], "");
    let mut conversation = conversation(&folder);
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&kinds);
    conversation.on_event(move |event| told.lock().unwrap().push(event.body.name().to_owned()));
    conversation.on_event(|event| assert!(!matches!(&event.body, Body::FrameUnmapped(_))));
    conversation.on_ask(|asked| {
        assert_eq!((&*asked.ask.tool, asked.kind.name()), ("Bash", "shell"));
        Answer::Allow { input: None }
    });
    block_on(async {
        assert_eq!(conversation.state(), State::Idle);
        let nothing = conversation.run().await.unwrap_err();
        assert!(matches!(nothing, ConversationError::NothingToSend));
        for n in 1..=3 {
            conversation.send_message(format!("message {n}"));
            let ended = conversation.run().await.unwrap();
            assert_eq!(ended.outcome, Outcome::Completed);
            assert_eq!(conversation.state(), State::Finished);
        }
        assert_eq!(conversation.session(), Some("s-1"));
        conversation.send_message("message 4");
        let ended = conversation.run().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Failed);
        assert_eq!(ended.message.as_deref(), Some("claude failed (rc=3)"));
        assert_eq!(conversation.state(), State::Error);
        conversation.send_message("message 5");
        let ended = conversation.run().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
        conversation.close().await;
    });
    assert_eq!(
        fs::read_to_string(folder.path("starts")).unwrap(),
        "start\nstart\n"
    );
    let answer = fs::read_to_string(folder.path("answer")).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        answer["response"]["response"],
        serde_json::json!({"behavior": "allow", "updatedInput": {"command": "ls"}})
    );
    let kinds = kinds.lock().unwrap();
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!((count("run.started"), count("run.ended")), (5, 5));
    assert_eq!((count("ask.opened"), count("ask.settled")), (1, 1));
}

#[test]
fn a_run_is_aborted_from_elsewhere() {
    let script = r#"
PATH=/usr/bin:/bin
while read -r line; do
  case $line in
    *interrupt*)
      echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["x"],"terminal_reason":"aborted_streaming","session_id":"s-1"}';;
    *'"type":"user"'*) echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}';;
  esac
done
"#;
    let folder = machine("conversation-abort", &[("agent", script)], "");
    let mut conversation = conversation(&folder);
    let aborter = conversation.aborter();
    conversation.on_event(move |event| {
        if let Body::RunStarted(_) = &event.body {
            aborter.abort();
        }
    });
    block_on(async {
        for _ in 0..2 {
            conversation.send_message("work");
            let ended = conversation.run().await.unwrap();
            assert_eq!(ended.outcome, Outcome::Aborted);
        }
        conversation.close().await;
    });
}

#[test]
fn model_and_permissions_are_switched_between_runs() {
    let script = r#"
PATH=/usr/bin:/bin
while read -r line; do
  echo "$line" >> "$HOME/said"
  case $line in
    *'"type":"user"'*)
      echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
      echo '{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"s-1"}';;
  esac
done
"#;
    let folder = machine("conversation-switch", &[("agent", script)], "");
    let mut conversation = conversation(&folder);
    block_on(async {
        conversation.send_message("one");
        conversation.run().await.unwrap();
        assert!(conversation.set_model("opus"));
        assert!(conversation.set_permissions(Mode::Plan));
        conversation.send_message("two");
        conversation.run().await.unwrap();
        conversation.close().await;
    });
    let said = fs::read_to_string(folder.path("said")).unwrap();
    let requests: Vec<serde_json::Value> = said
        .lines()
        .map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap()["request"].take())
        .filter(|it| !it.is_null())
        .collect();
    assert_eq!(
        requests,
        [
            serde_json::json!({"subtype": "set_model", "model": "opus"}),
            serde_json::json!({"subtype": "set_permission_mode", "mode": "plan"}),
        ]
    );
}

#[test]
fn without_a_client_the_answer_is_no() {
    let folder = machine("conversation-deny", &[("agent", SCRIPT)], "");
    let mut conversation = conversation(&folder);
    block_on(async {
        for n in 1..=2 {
            conversation.send_message(format!("message {n}"));
            conversation.run().await.unwrap();
        }
        conversation.close().await;
    });
    let answer = fs::read_to_string(folder.path("answer")).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        answer["response"]["response"],
        serde_json::json!({
            "behavior": "deny",
            "message": "`Bash` was not allowed beforehand, and nobody can be asked"
        })
    );
}
