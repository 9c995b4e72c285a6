//! What is tried with OpenHands alone: many prompts in one process, and the other direction, in which
//! its own `Conversation` runs an agent through `linkspan acp`, or takes up what linkspan wrote. See
//! `examples/openhands`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use linkspan::{Answer, Body, Conversation, ConversationConfig, Mode, RunOptions};
use model::Decision;
use runner::config::Config;
use scripted_model::{Block, Turn};
use serde_json::json;

use crate::aborts::STAY;
use crate::peers::PEERS;
use crate::processes;
use crate::test_env::{Call, TestEnv, Tests, python};

pub(crate) const TESTS: Tests = &[
    ("four prompts in one process", prompts),
    ("a command called view is no look at a file", view),
    ("its conversation runs Claude Code", runs_claude),
    ("its conversation runs another OpenHands", runs_itself),
    ("its log takes what linkspan wrote", takes_a_log),
];

const NO: &str = "not in this house";

fn prompts(test_env: &TestEnv) {
    let shell = test_env.peer.shell;
    let made = test_env.file("made.txt");
    let edit = json!({"command": "create", "path": made, "file_text": "made\n"});
    test_env.script([
        Turn::of([shell("echo one | tee one.txt")]),
        Turn::of([Block::tool("file_editor", &edit)]),
        Turn::text("One."),
        Turn::of([shell("touch forbidden.txt")]),
        Turn::text("Two."),
        Turn::of([shell(STAY)]),
        Turn::text("Four."),
    ]);
    let mut conversation = Conversation::new(config(test_env));
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    conversation.on_event(move |event| {
        let word = match &event.body {
            Body::SessionBound(_) => "session".to_owned(),
            Body::FrameUnmapped(it) => panic!("{it:?}"),
            Body::AskSettled(it) if it.decision == Decision::Allowed => "allowed".to_owned(),
            Body::AskSettled(it) => {
                let reason = it.message.as_ref().map(ToString::to_string);
                format!("denied: {}", reason.unwrap_or_default())
            }
            Body::RunEnded(it) => {
                let answer = it.answer.as_ref().map(ToString::to_string);
                format!("{:?}: {}", it.outcome, answer.unwrap_or_default())
            }
            _ => return,
        };
        heard.lock().unwrap().push(word);
    });
    conversation.on_ask(|asked| {
        let input = asked
            .ask
            .input
            .as_ref()
            .map(|it| it.get())
            .unwrap_or_default();
        if input.contains("forbidden") {
            let message = NO.to_owned();
            return Answer::Deny { message };
        }
        Answer::Allow { input: None }
    });
    let aborter = conversation.aborter();
    let started = test_env.file("started");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(async move {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            aborter.abort();
        });
        for n in 1..=4 {
            conversation.send_message(format!("prompt {n}"));
            conversation.run().await.unwrap();
        }
        conversation.close().await;
    });
    let denied = format!("denied: {NO}");
    let expected = [
        "session",
        "allowed",
        "allowed",
        "Completed: One.",
        &denied,
        "Completed: Two.",
        "allowed",
        "Aborted: ",
        "Completed: Four.",
    ];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!(fs::read_to_string(made).unwrap(), "made\n");
    assert!(!test_env.file("forbidden.txt").exists());
    let last = test_env.asked().pop().unwrap().body;
    for words in ["prompt 1", "prompt 2", NO, "prompt 3", "prompt 4"] {
        assert!(last.contains(words), "the history lacks: {words}");
    }
}

/// `view` is a verb of its editor, and the name of a program to its terminal.
fn view(test_env: &TestEnv) {
    test_env.script([
        Turn::of([(test_env.peer.shell)("view")]),
        Turn::text("It was not run."),
    ]);
    let deny = ["--permissions", "deny"];
    let ran = test_env.start(&Call::with("Look.", &deny)).end();
    ran.ended("completed", 0);
    let denials = ran.end()["denials"].as_array().unwrap().iter();
    let denied: Vec<&str> = denials.map(|it| it["tool"].as_str().unwrap()).collect();
    assert_eq!(denied, ["terminal"]);
}

fn config(test_env: &TestEnv) -> ConversationConfig {
    let mut settings = fs::read_to_string(test_env.path("config.toml")).unwrap();
    settings.push_str("[engines.openhands.env]\n");
    let home = test_env.path("home").to_str().unwrap().to_owned();
    let own = [("HOME".to_owned(), home)];
    for (name, value) in (test_env.peer.env)(&test_env.server.url())
        .into_iter()
        .chain(own)
    {
        settings.push_str(&format!("{name} = {value:?}\n"));
    }
    let settings = Config::parse(Some((Path::new("made"), &settings)), |_| None).unwrap();
    ConversationConfig {
        engine: test_env.peer.engine.to_owned(),
        cwd: test_env.path("project"),
        options: RunOptions {
            permissions: Some(Mode::Ask),
            ..RunOptions::default()
        },
        resume: None,
        guard: Some(env!("CARGO_BIN_EXE_linkspan").into()),
        settings,
    }
}

/// A program of `examples/openhands`, in the world of the case.
fn example(test_env: &TestEnv, name: &str) -> Command {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/openhands");
    let mut python = Command::new(python().unwrap_or_default());
    python.arg(examples.join(name));
    test_env.house(&mut python);
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

fn run_and_capture(test_env: &TestEnv, command: &mut Command) -> (String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    test_env.say(&format!("$ {command:?}\n{stdout}{stderr}"));
    assert!(status.success(), "{status}");
    (stdout, stderr)
}

/// The agent is Claude Code, as `linkspan acp` offers it.
fn runs_claude(test_env: &TestEnv) {
    let claude = &PEERS[0];
    test_env.script([
        Turn::of([(claude.shell)("touch made.txt")]),
        Turn::text("One file."),
        Turn::text("Still one."),
    ]);
    let config = test_env.path("claude.toml");
    fs::write(&config, (claude.config)(test_env)).unwrap();
    let mut command = example(test_env, "conversation.py");
    command.envs((claude.env)(&test_env.server.url()));
    converses(test_env, &mut command, claude.engine, &config);
}

/// The agent is one of the same SDK, in a process of its own.
fn runs_itself(test_env: &TestEnv) {
    test_env.script([
        Turn::of([(test_env.peer.shell)("touch made.txt")]),
        Turn::text("One file."),
        Turn::text("Still one."),
    ]);
    let mut command = example(test_env, "conversation.py");
    let config = test_env.path("config.toml");
    converses(test_env, &mut command, test_env.peer.engine, &config);
}

/// Two prompts and a tool, through `linkspan acp`.
fn converses(test_env: &TestEnv, command: &mut Command, engine: &str, config: &Path) {
    let linkspan = env!("CARGO_BIN_EXE_linkspan");
    let config = config.display();
    let agent = format!("{linkspan} acp --engine {engine} --permissions allow --config {config}");
    command.arg("--command").arg(agent);
    command.args(["Make a file.", "How many are there?"]);
    let (stdout, stderr) = run_and_capture(test_env, command);
    assert_eq!(stdout, "One file.\nStill one.\n");
    assert!(stderr.contains("[completed] touch made.txt"), "{stderr}");
    assert!(test_env.file("made.txt").exists());
    processes::none_is_left(&test_env.mark, &test_env.path(""));
}

fn takes_a_log(test_env: &TestEnv) {
    let mut run = test_env.command(false);
    run.args([
        "run",
        "--engine",
        "replay:tools",
        "--to",
        "openhands",
        "--",
        "Go.",
    ]);
    let (events, _) = run_and_capture(test_env, &mut run);
    fs::write(test_env.file("run.jsonl"), events).unwrap();
    let mut load = example(test_env, "load.py");
    load.arg("run.jsonl").arg(test_env.file("log"));
    let (messages, _) = run_and_capture(test_env, &mut load);
    expect![[r#"
        system: Claude Code session 75a96da3-bec9-4384-bb13-e439319facf0 (mo
        user: Go.
        assistant: Bash: Read: Read: I will look around and run a command.
        tool: 1 # Sample 2 3 A tiny project. 4
        tool: 1 def add(a, b): 2 return a + b 3 4 def sub(a, b): 5 return
        tool: README.md dot.png nb.ipynb src to-stderr
        assistant: Write: Edit: Write
        tool: File created successfully at: /workspace/notes/new.txt (file
        tool: The file /workspace/src/calc.py has been updated successfull
        tool: The file /workspace/README.md has been updated successfully.
        assistant: Everything is done: created notes/new.txt and edited src/cal
    "#]]
    .assert_eq(&messages);
}
