use std::borrow::Cow;

use expect_test::{Expect, expect};
use model::{
    Ask, AskId, AskKind, Binding, Body, Change, Channel, Class, Decision, Delta, Diff, Item,
    ItemClosed, Mcp, McpServer, Message, Notice, Origin, Raw, Role, RunError, RunId, RunStarted,
    SessionBound, SessionId, Text, Timestamp, ToolResult,
};

use super::*;

const FILE: WriterConfig = config(false, false);
const LIVE: WriterConfig = config(true, false);

const fn config(live: bool, color: bool) -> WriterConfig {
    WriterConfig {
        profile: None,
        live,
        began: None,
        color,
        served: None,
    }
}

/// Events in, a transcript out.
fn written(config: &WriterConfig, events: &[Event<'_>]) -> String {
    let mut writer = TextTranscript::new(config);
    let mut out = Vec::new();
    for event in events {
        writer.event(event, &mut out);
    }
    writer.end(&mut out);
    String::from_utf8(out).unwrap()
}

fn check(config: &WriterConfig, events: &[Event<'_>], expect: Expect) {
    expect.assert_eq(&written(config, events));
}

fn at<'a>(path: &[&'static str], body: Body<'a>) -> Event<'a> {
    Event {
        seq: 1,
        at: None,
        session: SessionId::new("s1"),
        run: Some(RunId::new("r1")),
        engine: Cow::Borrowed("claude"),
        path: path.iter().map(|it| ItemId::new(*it)).collect(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Cow::Borrowed(&[]),
        body,
    }
}

fn bound<'a>(native: &'a str, model: &'a str) -> Event<'a> {
    let bound = SessionBound {
        native: SessionId::new(native),
        how: Binding::Init,
        model: Some(Cow::Borrowed(model)),
        cwd: Some(Cow::Borrowed("/w")),
        permission_mode: Some(Cow::Borrowed("default")),
        version: Some(Cow::Borrowed("2.1")),
        tools: Vec::new(),
        mcp_servers: Vec::<McpServer<'_>>::new(),
        commands: Vec::new(),
    };
    at(&[], Body::SessionBound(bound))
}

fn started<'a>() -> Event<'a> {
    let cause = Cause::Prompt;
    at(&[], Body::RunStarted(RunStarted { cause }))
}

fn ended<'a>(outcome: Outcome, error: Option<&'a str>) -> Event<'a> {
    let error = error.map(|message| RunError {
        code: Cow::Borrowed("code"),
        message: Text::new(message),
        native: None,
    });
    let mut ended = RunEnded::new(outcome, error);
    ended.duration_ms = Some(3_260);
    at(&[], Body::RunEnded(ended))
}

fn message<'a>(id: &'a str, role: Role, text: &'a str) -> Item<'a> {
    Item::Message(Message {
        id: ItemId::new(id),
        role,
        group: None,
        text: Text::new(text),
        parts: Vec::new(),
    })
}

fn opened(item: Item<'_>) -> Event<'_> {
    at(&[], Body::ItemOpened(item))
}

fn closed(status: Status, item: Item<'_>) -> Event<'_> {
    at(&[], Body::ItemClosed(ItemClosed { status, item }))
}

fn delta<'a>(item: &'a str, channel: Channel, text: &'a str) -> Event<'a> {
    let delta = Delta {
        item: ItemId::new(item),
        channel,
        text: Text::new(text),
    };
    at(&[], Body::ItemDelta(delta))
}

fn tool<'a>(id: &'a str, name: &'a str, class: Class<'a>, result: Option<&str>) -> Item<'a> {
    Item::Tool(Box::new(Tool {
        id: ItemId::new(id),
        group: None,
        name: Cow::Borrowed(name),
        input: Some(Raw::parse(r#"{"a":1}"#.to_owned())),
        class,
        server_side: false,
        result: result.map(|text| ToolResult {
            content: Raw::of(&text),
            is_error: false,
            structured: None,
            meta: None,
        }),
    }))
}

fn class(kind: ToolKind, title: &str) -> Class<'_> {
    Class::plain(kind, Text::new(title))
}

fn notice(level: Level, text: &str) -> Event<'_> {
    let notice = Notice {
        level,
        code: Cow::Borrowed("code"),
        text: Text::new(text),
        item: None,
        detail: None,
    };
    at(&[], Body::NoticeRaised(notice))
}

#[test]
fn every_way_to_end() {
    let mut events = vec![bound("n1", "opus")];
    for (outcome, error) in [
        (Outcome::Completed, None),
        (Outcome::Failed, Some("no key")),
        (Outcome::Aborted, Some("aborted")),
        (Outcome::Refused, None),
        (Outcome::Limit, Some("too many turns\nof them")),
        (Outcome::Lost, Some("the stream stopped")),
    ] {
        events.extend([started(), ended(outcome, error)]);
    }
    check(
        &FILE,
        &events,
        expect![[r#"
            claude 2.1 · opus · /w · session n1

            ✓ done in 3.2s

            ✗ failed after 3.2s: no key

            ⊘ stopped after 3.2s

            ⊘ refused after 3.2s

            ✗ stopped at a limit after 3.2s: too many turns
              of them

            ? cut off after 3.2s: the stream stopped
              claude --resume n1
        "#]],
    );
}

#[test]
fn the_end_prints_no_error_twice() {
    let events = [
        started(),
        notice(Level::Warning, "retry"),
        notice(Level::Error, "no key"),
        notice(Level::Info, "one\ntwo"),
        notice(Level::Debug, "noise"),
        ended(Outcome::Failed, Some("no key")),
    ];
    check(
        &FILE,
        &events,
        expect![[r#"
        ⚠ retry
        ✗ no key
        · one
          two

        ✗ failed after 3.2s
    "#]],
    );
}

#[test]
fn a_session_is_introduced_once_and_its_changes_are_shown() {
    let events = [
        bound("n1", "opus"),
        started(),
        ended(Outcome::Completed, None),
        bound("n1", "opus"),
        bound("n1", "sonnet"),
        bound("n2; rm -rf ~", "sonnet"),
        started(),
        ended(Outcome::Completed, None),
    ];
    check(
        &FILE,
        &events,
        expect![[r#"
        claude 2.1 · opus · /w · session n1

        ✓ done in 3.2s

        · now sonnet

          claude --resume n1

        claude 2.1 · sonnet · /w · session n2; rm -rf ~

        ✓ done in 3.2s
    "#]],
    );
}

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
fn a_call_is_named_again_when_something_came_between() {
    let ls = |result| tool("t", "Bash", class(ToolKind::Shell, "ls"), result);
    let pwd = |result| tool("u", "Bash", class(ToolKind::Shell, "pwd"), result);
    let events = [
        started(),
        opened(ls(None)),
        opened(pwd(None)),
        closed(Status::Ok, ls(Some("a"))),
        closed(Status::Ok, pwd(Some("/"))),
        ended(Outcome::Completed, None),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        ● Bash  ls

        ● Bash  pwd

        ● Bash  ls
          ⎿ a

        ● Bash  pwd
          ⎿ /

        ✓ done in 3.2s
    "#]],
    );
    check(
        &FILE,
        &events,
        expect![[r#"
        ● Bash  ls
          ⎿ a

        ● Bash  pwd
          ⎿ /

        ✓ done in 3.2s
    "#]],
    );
}

#[test]
fn others_wait_for_the_current_speaker() {
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "Hello "),
        notice(Level::Warning, "meanwhile"),
        delta("m", Channel::Text, "world\n\n"),
        closed(Status::Ok, message("m", Role::Assistant, "Hello world\n\n")),
        ended(Outcome::Completed, None),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        Hello world

        ⚠ meanwhile

        ✓ done in 3.2s
    "#]],
    );
}

#[test]
fn an_idle_speaker_yields_to_others() {
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "\n"),
        notice(Level::Warning, "first"),
        delta("m", Channel::Text, "then me"),
        closed(Status::Ok, message("m", Role::Assistant, "\nthen me")),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        ⚠ first

        then me

        ? cut off
    "#]],
    );
}

#[test]
fn a_full_queue_interrupts_the_speaker() {
    let long = "w".repeat(70_000);
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "before "),
        notice(Level::Warning, &long),
        delta("m", Channel::Text, "after"),
        notice(Level::Warning, "last"),
        closed(Status::Ok, message("m", Role::Assistant, "before after")),
        ended(Outcome::Completed, None),
    ];
    let text = written(&LIVE, &events).replace(&long, "www");
    expect![[r#"
        before

        ⚠ www

        after

        ⚠ last

        ✓ done in 3.2s
    "#]]
    .assert_eq(&text);
}

#[test]
fn an_answer_that_no_message_held_is_shown() {
    let mut end = RunEnded::new(Outcome::Completed, None);
    end.answer = Some(Text::new("only here"));
    let events = [started(), at(&[], Body::RunEnded(end))];
    check(
        &FILE,
        &events,
        expect![[r#"
        only here

        ✓ done
    "#]],
    );
}

#[test]
fn streamed_text_equals_the_whole_text() {
    let pieces = [
        "a", "b", " ", "\n", "\r", "\r\n", "\t", "é", "\x1b[2J", "\u{202e}", "\n\n", "  ",
    ];
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    };
    for _ in 0..5_000 {
        let words: Vec<&str> = (0..below(12))
            .map(|_| pieces[below(pieces.len())])
            .collect();
        let whole = words.concat();
        let item = |text| message("m", Role::Assistant, text);
        let mut events = vec![started(), opened(item(""))];
        events.extend(words.iter().map(|it| delta("m", Channel::Text, it)));
        events.push(closed(Status::Ok, item(&whole)));
        events.push(ended(Outcome::Completed, None));
        assert_eq!(
            written(&LIVE, &events),
            written(&FILE, &events),
            "{whole:?}"
        );
    }
}

#[test]
fn foreign_text_cannot_control_the_terminal() {
    let evil = "\x1b]0;owned\x07\x1b[2J\u{9b}2J\u{202e}\r";
    let mut class = class(ToolKind::Mcp, evil);
    class.command = Some(Text::new(evil));
    class.diffs = vec![Diff {
        path: Text::new(evil),
        old: Some(Text::new(evil)),
        new: Text::new("new"),
    }];
    class.mcp = Some(Mcp {
        server: Cow::Borrowed(evil),
        tool: Cow::Borrowed(evil),
    });
    let task = Class::plain(ToolKind::Task, Text::new(evil));
    let ask = Ask {
        id: AskId::new("q"),
        kind: AskKind::Permission,
        item: None,
        tool: Cow::Borrowed(evil),
        title: Text::new(evil),
        description: None,
        input: None,
        suggestions: None,
        deadline: None,
    };
    let settled = AskSettled {
        id: AskId::new("q"),
        decision: Decision::Denied,
        message: Some(Text::new(evil)),
        input: None,
        remembered: None,
    };
    let plan = Plan {
        id: ItemId::new("p"),
        entries: vec![PlanEntry {
            key: None,
            text: Text::new(evil),
            status: PlanStatus::Pending,
            doing: None,
        }],
    };
    let other = Other {
        id: ItemId::new("o"),
        name: Cow::Borrowed(evil),
        text: Some(Text::new(evil)),
        data: Raw::parse("{}".to_owned()),
    };
    let events = [
        bound(evil, evil),
        started(),
        opened(tool("task", evil, task.clone(), None)),
        at(&["task"], notice(Level::Info, evil).body),
        notice(Level::Error, evil),
        at(
            &["task"],
            closed(Status::Ok, message("m", Role::User, evil)).body,
        ),
        closed(Status::Error, tool("t", evil, class, Some(evil))),
        at(&[], Body::AskOpened(ask)),
        at(&[], Body::AskSettled(settled)),
        opened(Item::Plan(plan)),
        closed(Status::Ok, Item::Other(other)),
        closed(Status::Ok, tool("task", evil, task, Some(evil))),
        ended(Outcome::Failed, Some(evil)),
    ];
    for config in [FILE, LIVE, config(false, true)] {
        let text = without_sgr(&written(&config, &events));
        assert_eq!(crate::display_safe(&text), text);
        assert!(text.contains("owned"));
    }
}

/// Takes out the colours, and only those.
fn without_sgr(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain += before;
        let end = after
            .find(|it: char| !it.is_ascii_digit() && it != ';')
            .unwrap();
        assert_eq!(&after[end..=end], "m");
        rest = &after[end + 1..];
    }
    plain + rest
}

#[test]
fn a_long_error_keeps_its_end() {
    let crash = |n: usize| {
        let lines = (1..=n).map(|n| format!("trace {n}\n"));
        format!("the agent crashed\n{}", lines.collect::<String>())
    };
    let text = written(
        &FILE,
        &[started(), ended(Outcome::Failed, Some(&crash(30)))],
    );
    expect![[r#"
        ✗ failed after 3.2s: the agent crashed
          … 20 lines left out
          trace 21
          trace 22
          trace 23
          trace 24
          trace 25
          trace 26
          trace 27
          trace 28
          trace 29
          trace 30
    "#]]
    .assert_eq(&text);
    let text = written(
        &FILE,
        &[started(), ended(Outcome::Failed, Some(&crash(11)))],
    );
    assert!(!text.contains("left out"), "{text}");
}

#[test]
fn a_session_that_was_not_found_is_not_offered_again() {
    let said = |role| closed(Status::Ok, message("m", role, "hello"));
    let run = |said: Vec<Event<'static>>, outcome| {
        let mut events = vec![bound("s-1", "opus"), started()];
        events.extend(said);
        events.push(ended(outcome, Some("no such session")));
        written(&FILE, &events).contains("claude --resume s-1")
    };
    let offers = [
        run(vec![], Outcome::Failed),
        run(vec![said(Role::User)], Outcome::Failed),
        run(vec![said(Role::Assistant)], Outcome::Failed),
        run(vec![], Outcome::Aborted),
    ];
    assert_eq!(offers, [false, false, true, true]);
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
