//! Tools that work, and tools that do not.

use std::fs;

use scripted_model::Turn;

use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[("tools", tools), ("a tool that fails", failing_tool)];

fn tools(test_env: &TestEnv) {
    let shell = test_env.peer.shell;
    test_env.script([
        Turn::of([shell("echo first | tee one.txt")]),
        Turn::of([shell("cat one.txt > two.txt; echo second")]),
        Turn::text("Both are done."),
    ]);
    let ran = test_env.start(&Call::new("Make two files.")).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "Both are done.");
    assert_eq!(
        fs::read_to_string(test_env.file("two.txt")).unwrap(),
        "first\n"
    );
    let calls = ran.calls();
    let statuses: Vec<&str> = calls.iter().map(|it| it.0).collect();
    assert_eq!(statuses, ["ok", "ok"]);
    for ((_, call), (command, output)) in calls.iter().zip([
        ("echo first | tee one.txt", "first"),
        ("cat one.txt > two.txt; echo second", "second"),
    ]) {
        assert_eq!(call["class"]["kind"], "shell");
        // Codex hands its commands to a shell, and they are shown to the letter.
        let title = call["class"]["title"].as_str().unwrap();
        let shell = format!("bash -lc '{command}'");
        let is_whole = match test_env.peer.engine {
            "codex" => title.ends_with(&shell),
            _ => title == command,
        };
        assert!(is_whole, "{title:?} is not {command:?}");
        assert!(call["result"].to_string().contains(output), "{call}");
    }
    let last = test_env.asked().pop().unwrap().body;
    assert!(
        last.contains("second"),
        "the model does not know what the tool said"
    );
}

fn failing_tool(test_env: &TestEnv) {
    let (call, words) = (test_env.peer.failing)();
    test_env.script([Turn::of([call]), Turn::text("It did not work.")]);
    let ran = test_env.start(&Call::new("Break something.")).end();
    ran.ended("completed", 0);
    assert_eq!(ran.answer(), "It did not work.");
    let calls = ran.calls();
    assert_eq!(calls.len(), 1);
    let (status, call) = calls[0];
    assert_eq!(status, "error", "{call}");
    assert!(call["result"].to_string().contains(words), "{call}");
    let last = test_env.asked().pop().unwrap().body;
    assert!(
        last.contains(words),
        "the model does not know what went wrong"
    );
}
