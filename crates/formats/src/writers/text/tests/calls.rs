//! How calls look in a file.

use super::*;

#[test]
fn how_calls_look() {
    let mut shell = class(ToolKind::Shell, "cat <<X\none\nX");
    shell.exit_code = Some(2);
    let mut edit = class(ToolKind::Edit, "Edit src/a.rs");
    edit.change = Some(Change::Update);
    edit.diffs = vec![Diff {
        path: Text::new("/w/src/a.rs"),
        old: Some(Text::new("a\nb\nc\nd")),
        new: Text::new("a\nb\nX\nd"),
    }];
    let mut mcp = class(ToolKind::Mcp, "echo");
    mcp.mcp = Some(Mcp {
        server: Cow::Borrowed("demo"),
        tool: Cow::Borrowed("echo"),
    });
    let long: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let wide = "x".repeat(1000);
    let events = [
        started(),
        closed(
            Status::Error,
            tool("1", "Bash", shell, Some("Exit code 2\nboom\nbang")),
        ),
        closed(Status::Ok, tool("2", "Edit", edit.clone(), Some("updated"))),
        closed(Status::Denied, tool("3", "Edit", edit, Some("not now"))),
        closed(Status::Ok, tool("4", "mcp__demo__echo", mcp, Some("hi"))),
        closed(
            Status::Cancelled,
            tool("5", "Bash", class(ToolKind::Shell, "ls"), None),
        ),
        closed(
            Status::Lost,
            tool("6", "Magic", class(ToolKind::Other, "Magic"), None),
        ),
        closed(
            Status::Ok,
            tool("7", "Bash", class(ToolKind::Shell, "true"), Some("")),
        ),
        closed(
            Status::Ok,
            tool(
                "8",
                "Read",
                class(ToolKind::Read, "Read a.txt"),
                Some(&long),
            ),
        ),
        closed(
            Status::Ok,
            tool("9", "Bash", class(ToolKind::Shell, "yes"), Some(&wide)),
        ),
        closed(
            Status::Error,
            tool(
                "10",
                "Fetch",
                class(ToolKind::Fetch, "Fetch x"),
                Some("<tool_use_error>no</tool_use_error>"),
            ),
        ),
        closed(
            Status::Ok,
            tool(
                "11",
                "TodoWrite",
                class(ToolKind::Todo, "TodoWrite"),
                Some("ok"),
            ),
        ),
        ended(Outcome::Completed, None),
    ];
    check(
        &FILE,
        &events,
        expect![[r#"
        ● Bash  cat <<X
            one
            X
          ⎿ ✗ exit 2
            boom
            bang

        ● Edit  src/a.rs
              a
              b
            - c
            + X
              d

        ● Edit  src/a.rs
              a
              b
            - c
            + X
              d
          ⎿ ⊘ denied: not now

        ● demo/echo  {"a":1}
          ⎿ hi

        ● Bash  ls
          ⎿ ⊘ cancelled

        ● Magic  {"a":1}
          ⎿ ? end not seen

        ● Bash  true
          ⎿ (no output)

        ● Read  a.txt
          ⎿ line 1
            line 2
            line 3
            line 4
            line 5
            line 6
            line 7
            line 8
            line 9
            line 10
            line 11
            line 12
            … +18 lines

        ● Bash  yes
          ⎿ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…

        ● Fetch  x
          ⎿ ✗ failed: no

        ✓ done in 3.2s
    "#]],
    );
}

#[test]
fn the_output_of_an_aborted_command_is_shown() {
    let ls = || tool("t", "Bash", class(ToolKind::Shell, "ls"), None);
    let events = [
        started(),
        opened(ls()),
        delta("t", Channel::Output, "a\nb"),
        closed(Status::Cancelled, ls()),
    ];
    check(
        &FILE,
        &events,
        expect![[r#"
        ● Bash  ls
          ⎿ ⊘ cancelled
            a
            b

        ? cut off
    "#]],
    );
}

#[test]
fn a_slow_call_shows_its_duration() {
    let shell = |result| tool("t", "Bash", class(ToolKind::Shell, "npm test"), result);
    let run = |config, millis, status, result| {
        let mut opened = opened(shell(None));
        opened.at = Some(Timestamp::from_millis(0));
        let mut closed = closed(status, shell(result));
        closed.at = Some(Timestamp::from_millis(millis));
        written(config, &[opened, closed])
    };
    let shown = [
        run(&FILE, 3_260, Status::Ok, Some("fine")),
        run(&FILE, 999, Status::Ok, Some("fine")),
        run(&FILE, -5_000, Status::Ok, Some("fine")),
        run(&LIVE, 3_260, Status::Ok, Some("fine")),
        run(&LIVE, 3_260, Status::Ok, Some("")),
        run(&LIVE, 61_000, Status::Error, Some("boom")),
        run(&LIVE, 3_260, Status::Denied, None),
    ];
    expect![[r#"
        ● Bash  npm test · 3.2s
          ⎿ fine
        ● Bash  npm test
          ⎿ fine
        ● Bash  npm test
          ⎿ fine
        ● Bash  npm test
          ⎿ 3.2s
            fine
        ● Bash  npm test
          ⎿ (no output) · 3.2s
        ● Bash  npm test
          ⎿ ✗ failed after 1m 01s: boom
        ● Bash  npm test
          ⎿ ⊘ denied
    "#]]
    .assert_eq(&shown.concat());
}
