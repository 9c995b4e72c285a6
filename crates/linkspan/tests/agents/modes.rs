//! Every permission mode with every agent: what happened on disk, and which questions were put.
//!
//! One run has the model read a file, edit it, write one outside of the working directory, and let a
//! command write one. The tables say what came of each. Questions are answered with yes.

use std::fs;

use scripted_model::{Block, Turn};
use serde_json::json;

use crate::test_env::{Call, TestEnv, Tests};

pub(crate) const TESTS: Tests = &[
    ("every permission mode", one_prompt),
    ("every permission mode that asks, talked with", talked_with),
];

/// A mode, and what came of each call in the order of [`Calls`]: it ran without a question, it did not, or
/// it ran after a question.
type Row = (&'static str, &'static str);

/// Claude Code takes plainer commands that write a file for edits of that file, and Gemini CLI asks for
/// redirections once more.
const SHELL: &str = "sh -c 'touch shell.txt'";

/// The calls of the model, by the agent's own tools.
struct Calls {
    read: Block,
    edit: Block,
    outside: Block,
    shell: Block,
}

fn calls(test_env: &TestEnv) -> Calls {
    let notes = test_env.file("notes.txt");
    let outside = test_env.path("outside.txt");
    let (notes, outside) = (notes.to_str().unwrap(), outside.to_str().unwrap());
    let shell = (test_env.peer.shell)(SHELL);
    match test_env.peer.engine {
        "claude" => Calls {
            read: Block::tool("Read", &json!({"file_path": notes})),
            edit: Block::tool(
                "Edit",
                &json!({"file_path": notes, "old_string": "zebrafish", "new_string": "narwhal"}),
            ),
            outside: Block::tool("Write", &json!({"file_path": outside, "content": "x"})),
            shell,
        },
        "codex" => Calls {
            read: Block::tool("exec_command", &json!({"cmd": "cat notes.txt"})),
            edit: Block::Custom {
                name: "apply_patch".to_owned(),
                input: "*** Begin Patch\n*** Update File: notes.txt\n@@\n-zebrafish\n+narwhal\n*** End Patch"
                    .to_owned(),
            },
            outside: Block::Custom {
                name: "apply_patch".to_owned(),
                input: format!("*** Begin Patch\n*** Add File: {outside}\n+x\n*** End Patch"),
            },
            shell,
        },
        "opencode" => Calls {
            read: Block::tool("read", &json!({"filePath": notes})),
            edit: Block::tool(
                "edit",
                &json!({"filePath": notes, "oldString": "zebrafish", "newString": "narwhal"}),
            ),
            outside: Block::tool("write", &json!({"filePath": outside, "content": "x"})),
            shell,
        },
        "gemini" => Calls {
            read: Block::tool("read_file", &json!({"file_path": notes})),
            edit: Block::tool(
                "replace",
                &json!({
                    "file_path": notes,
                    "instruction": "say narwhal",
                    "old_string": "zebrafish",
                    "new_string": "narwhal",
                }),
            ),
            outside: Block::tool("write_file", &json!({"file_path": outside, "content": "x"})),
            shell,
        },
        "openhands" => Calls {
            read: Block::tool("file_editor", &json!({"command": "view", "path": notes})),
            edit: Block::tool(
                "file_editor",
                &json!({
                    "command": "str_replace",
                    "path": notes,
                    "old_str": "zebrafish",
                    "new_str": "narwhal",
                }),
            ),
            outside: Block::tool(
                "file_editor",
                &json!({"command": "create", "path": outside, "file_text": "x"}),
            ),
            shell,
        },
        other => panic!("{other} has no calls here"),
    }
}

/// Runs all calls in one mode, and says what came of them.
fn run(test_env: &TestEnv, mode: &str, is_attended: bool) -> String {
    fs::write(test_env.file("notes.txt"), "zebrafish\n").unwrap();
    for left in [test_env.path("outside.txt"), test_env.file("shell.txt")] {
        fs::remove_file(left).ok();
    }
    let Calls {
        read,
        edit,
        outside,
        shell,
    } = calls(test_env);
    let turns = [read, edit, outside, shell].map(|it| Turn::of([it]));
    test_env.script(turns.into_iter().chain([Turn::text("That was it.")]));
    let project = test_env.path("project");
    let flags = ["--permissions", mode, "--cwd", project.to_str().unwrap()];
    let n_before = test_env.asked().len();
    let (ran, asked) = match is_attended {
        false => (
            test_env.start(&Call::with("Do it.", &flags)).end(),
            Vec::new(),
        ),
        true => {
            let mut running = test_env.start(&Call::attended_with("Do it.", &flags));
            let asked = running.allow_all();
            (running.end(), asked)
        }
    };
    if !is_attended {
        assert_eq!(ran.of("ask.opened").count(), 0, "nobody can be asked");
    }
    ran.ended("completed", 0);
    // The second request says what came of the first call.
    let requests = test_env.asked();
    let is_read = requests[n_before + 1].body.contains("zebrafish");
    let is_edited = fs::read_to_string(test_env.file("notes.txt")).unwrap() == "narwhal\n";
    let done = [
        ("read", is_read),
        ("edit", is_edited),
        ("outside", test_env.path("outside.txt").exists()),
        ("shell", test_env.file("shell.txt").exists()),
    ];
    let asked: Vec<&str> = asked.iter().map(|it| about(it)).collect();
    let cell = |(what, is_done): (&str, bool)| match (is_done, asked.contains(&what)) {
        (true, false) => format!("{what} ran"),
        (false, false) => format!("{what} no"),
        (true, true) => format!("{what} asked"),
        (false, true) => format!("{what} asked in vain"),
    };
    done.map(cell).join(", ")
}

/// Which call a question is about.
fn about(question: &str) -> &'static str {
    if question.contains("outside.txt") {
        "outside"
    } else if question.contains("shell.txt") {
        "shell"
    } else if question.contains("narwhal") {
        "edit"
    } else {
        "read"
    }
}

fn check(test_env: &TestEnv, is_attended: bool, rows: &[Row]) {
    let told: Vec<(&str, String)> = rows
        .iter()
        .map(|it| (it.0, run(test_env, it.0, is_attended)))
        .collect();
    let expected: Vec<(&str, String)> = rows.iter().map(|it| (it.0, it.1.to_owned())).collect();
    assert_eq!(told, expected);
}

const NOTHING: &str = "read ran, edit no, outside no, shell no";
const BELOW: &str = "read ran, edit ran, outside no, shell no";
const INSIDE: &str = "read ran, edit ran, outside no, shell ran";
const ALL: &str = "read ran, edit ran, outside ran, shell ran";

fn one_prompt(test_env: &TestEnv) {
    let (edits, listed, all) = match test_env.peer.engine {
        "claude" => (BELOW, ALL, ALL),
        // Its sandbox lets commands change what may be edited. That of `listed` has the folder for
        // temporary files in it, which the other folder is below.
        "codex" => (INSIDE, ALL, ALL),
        "opencode" => (BELOW, INSIDE, ALL),
        // Its tools never write outside of the working directory; commands may.
        "gemini" => (BELOW, INSIDE, INSIDE),
        "openhands" => (BELOW, ALL, ALL),
        other => panic!("{other} has no rows here"),
    };
    let rows = [
        ("plan", NOTHING),
        ("deny", NOTHING),
        ("ask", NOTHING),
        ("accept-edits", edits),
        ("listed", listed),
        ("allow", all),
    ];
    check(test_env, false, &rows);
}

fn talked_with(test_env: &TestEnv) {
    let (ask, edits) = match test_env.peer.engine {
        "claude" | "opencode" | "openhands" => (
            "read ran, edit asked, outside asked, shell asked",
            "read ran, edit ran, outside asked, shell asked",
        ),
        // A command that its sandbox forbids fails; the model has to ask for more in the same call.
        "codex" => (
            "read ran, edit asked, outside asked, shell no",
            "read ran, edit ran, outside asked, shell ran",
        ),
        "gemini" => (
            "read ran, edit asked, outside no, shell asked",
            "read ran, edit ran, outside no, shell asked",
        ),
        other => panic!("{other} has no rows here"),
    };
    let rows = [("plan", NOTHING), ("ask", ask), ("accept-edits", edits)];
    check(test_env, true, &rows);
}
