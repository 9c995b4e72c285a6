mod calls;
mod live;

use std::borrow::Cow;

use expect_test::{Expect, expect};
use model::{
    Ask, AskId, AskKind, Binding, Body, Change, Channel, Class, Decision, Delta, Diff, Item,
    ItemClosed, ItemId, Mcp, McpServer, Message, Notice, Origin, Raw, Role, RunError, RunId,
    RunStarted, SessionBound, SessionId, Text, Timestamp, ToolResult,
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
    at(&[], Body::RunStarted(RunStarted::new(cause)))
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
