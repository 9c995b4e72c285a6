use expect_test::{Expect, expect};
use model::{Event, Writer};

use super::super::html::Html;
use super::super::markdown::Markdown;
use super::*;

type TestEvent = (&'static str, &'static str, String);

/// Tells a page events given by path, type and data.
fn write_event<M: Renderer>(
    story: &mut PageTranscript<M>,
    seq: usize,
    told: &TestEvent,
    out: &mut Vec<u8>,
) {
    let (path, name, data) = told;
    let line = format!(
        r#"{{"v":1,"seq":{seq},"session":"s","engine":"x","path":{path},"origin":"agent","type":"{name}","data":{data}}}"#
    );
    story.event(&Event::from_json(&line).unwrap(), out);
}

fn page(markup: impl Renderer, events: &[TestEvent]) -> String {
    let mut story = PageTranscript::page(markup);
    let mut out = Vec::new();
    for (n, told) in events.iter().enumerate() {
        write_event(&mut story, n + 1, told, &mut out);
    }
    story.end(&mut out);
    String::from_utf8(out).unwrap()
}

fn started() -> TestEvent {
    ("[]", "run.started", r#"{"cause":"prompt"}"#.to_owned())
}

fn message(path: &'static str, id: &str, role: &str, text: &str) -> TestEvent {
    let text = serde_json::to_string(text).unwrap();
    let item = format!(r#"{{"kind":"message","id":"{id}","role":"{role}","text":{text}}}"#);
    (
        path,
        "item.closed",
        format!(r#"{{"status":"ok","item":{item}}}"#),
    )
}

fn task(path: &'static str, id: &str) -> [TestEvent; 2] {
    let agent =
        format!(r#"{{"kind":"subagent","id":"agent:{id}","call":"{id}","name":"Explore"}}"#);
    [
        (path, "item.opened", call(id, "null")),
        (path, "item.opened", agent),
    ]
}

fn call(id: &str, result: &str) -> String {
    format!(
        r#"{{"kind":"tool","id":"{id}","name":"Agent","input":{{}},"class":{{"kind":"task","title":"Look {id}"}},"result":{result}}}"#
    )
}

fn returned(path: &'static str, id: &str, result: &str) -> TestEvent {
    let item = call(id, &format!(r#"{{"content":"{result}"}}"#));
    (
        path,
        "item.closed",
        format!(r#"{{"status":"ok","item":{item}}}"#),
    )
}

fn check(events: &[TestEvent], expect: Expect) {
    let page = page(Markdown, events);
    let body = page.split_once("## Run 1\n\n").unwrap().1;
    let body = body.split_once("**? cut off**").unwrap().0;
    expect.assert_eq(body);
}

#[test]
fn agents_at_the_same_time_stand_apart() {
    let mut events = vec![started()];
    events.extend(task("[]", "a"));
    events.extend(task("[]", "b"));
    events.push(message(r#"["a"]"#, "1", "assistant", "a says"));
    events.extend(task(r#"["b"]"#, "c"));
    events.push(message(r#"["b","c"]"#, "2", "assistant", "c says"));
    events.push(message(r#"["a"]"#, "3", "assistant", "a ends"));
    events.push(message(r#"["b"]"#, "4", "assistant", "b says"));
    events.push(returned(r#"["b"]"#, "c", "of c"));
    events.push(returned("[]", "b", "of b"));
    events.push(returned("[]", "a", "a ends"));
    check(
        &events,
        expect![[r#"
            <details>
            <summary>⑂ <b>Agent</b> <code>Look b</code></summary>

            b says

            <details>
            <summary>⑂ <b>Agent</b> <code>Look c</code></summary>

            c says

            of c

            </details>

            of b

            </details>

            <details>
            <summary>⑂ <b>Agent</b> <code>Look a</code></summary>

            a says

            a ends

            </details>

        "#]],
    );
}

#[test]
fn a_prompt_is_shown_once_and_becomes_the_title() {
    let events = [
        (
            "[]",
            "notice.raised",
            r#"{"level":"info","code":"x","text":"early"}"#.to_owned(),
        ),
        started(),
        message("[]", "p", "user", "\n  Do *it*\nnow"),
        message("[]", "m", "assistant", "Done."),
    ];
    let page = page(Markdown, &events);
    let head = page.split_once("Done.").unwrap().0;
    expect![[r#"
        # Do \*it\*

        · early

        ## Run 1

        > Do \*it\*\
        > now

    "#]]
    .assert_eq(head);
}

#[test]
fn a_verbose_sub_agent_is_shown_in_parts() {
    let mut events = vec![started()];
    events.extend(task("[]", "a"));
    let much = "x".repeat(100_000);
    let n = agents::MAX_HELD / much.len() + 10;
    for at in 0..n {
        events.push(message(r#"["a"]"#, &at.to_string(), "assistant", &much));
    }
    let mut story = PageTranscript::page(Html);
    for (seq, told) in events.iter().enumerate() {
        write_event(&mut story, seq + 1, told, &mut Vec::new());
        assert!(story.layout.agents.n_held() <= agents::MAX_HELD);
    }
    let page = page(Html, &events);
    assert_eq!(page.matches(&much).count(), n);
    assert_eq!(page.matches("class=\"card agent-call\"").count(), 2);
}

#[test]
fn an_agent_in_the_background_has_a_card_of_its_own() {
    let agent = |report: &str| {
        format!(
            r#"{{"kind":"subagent","id":"agent:a","call":"a","name":"Explore","background":true{report}}}"#
        )
    };
    let closed = format!(
        r#"{{"status":"ok","item":{}}}"#,
        agent(r#","report":"all **fine**""#)
    );
    let events = [
        started(),
        ("[]", "item.opened", call("a", "null")),
        ("[]", "item.opened", agent("")),
        returned("[]", "a", "started"),
        message("[]", "m", "assistant", "Meanwhile."),
        message(r#"["a"]"#, "1", "assistant", "working"),
        ("[]", "item.closed", closed),
    ];
    check(
        &events,
        expect![[r#"
            <details>
            <summary>⑂ <b>Agent</b> <code>Look a</code> · in the background</summary>

            started

            </details>

            Meanwhile.

            <details>
            <summary>⑂ <b>Agent</b> <code>Look a</code></summary>

            working

            all **fine**

            </details>

        "#]],
    );
}

#[test]
fn long_outputs_are_truncated_with_their_size_and_texts_are_not() {
    let long = "y".repeat(Markdown::MAX_SHOWN + 1000);
    let page = page(
        Markdown,
        &[
            started(),
            message("[]", "m", "assistant", &long),
            returned("[]", "a", &long.replace('y', "z")),
        ],
    );
    assert!(page.contains(&long));
    assert!(page.contains("… cut here, 32 KB in all"));
    assert_eq!(page.matches('z').count(), Markdown::MAX_SHOWN);
}
