//! Recordings as people read them, and what holds for all of them.

use expect_test::{Expect, expect};
use formats::convert::Converter;
use formats::registry::{find_reader, writer};
use formats::{ReaderConfig, WriterConfig, display_safe};
use model::{Body, Event, Item, Role};

use crate::fixtures::{BEGAN, Recording, convert, recordings};

#[derive(Clone, Copy)]
enum Display {
    File,
    Live,
    Colored,
}

fn text(recording: &Recording, shown: Display) -> String {
    let config = WriterConfig {
        live: matches!(shown, Display::Live),
        color: matches!(shown, Display::Colored),
        ..WriterConfig::default()
    };
    let (format, reader) = find_reader("claude").unwrap();
    let reader = reader(&ReaderConfig {
        started_at: Some(BEGAN),
        ..ReaderConfig::default()
    });
    let writer = writer("text", &config).unwrap();
    let mut converter = Converter::new(format.framing, reader, writer);
    let mut out = Vec::new();
    converter.push(&recording.bytes, &mut out);
    converter.end(&recording.end, &mut out);
    String::from_utf8(out).unwrap()
}

fn check(name: &str, shown: Display, expect: Expect) {
    let recordings = recordings("claude");
    let recording = recordings.iter().find(|it| it.name == name).unwrap();
    expect.assert_eq(&text(recording, shown));
}

#[test]
fn a_whole_run() {
    check(
        "multi_tool",
        Display::File,
        expect![[r#"
        claude 2.1.325 · claude-opus-5-5 · /workspace · session 865d1047-39ef-4c41-b0f7-eb64d2c79f2c

        ∴ thinking
          Look at the project first.

        I will look around and run a command.

        ● Read  README.md
          ⎿ 1	# Sample
            2	
            3	A tiny project.
            4

        ● Read  src/calc.py
          ⎿ 1	def add(a, b):
            2	    return a + b
            3	
            4	def sub(a, b):
            5	    return a - b
            6

        ● Bash  ls -1 && echo to-stderr 1>&2
          ⎿ README.md
            dot.png
            nb.ipynb
            src
            to-stderr

        ● Write  notes/new.txt
            + line one
            + line two

        ● Edit  src/calc.py
            - a - b
            + a - b  # subtract

        ● Write  README.md
              # Sample

            - A tiny project.
            + Overwritten.

        Everything is done: created notes/new.txt and edited src/calc.py.

        ✓ done in 0.8s · 3 requests · 396 in / 45 out tokens · $0.0014
          claude --resume 865d1047-39ef-4c41-b0f7-eb64d2c79f2c
    "#]],
    );
}

#[test]
fn a_sub_agent_stands_behind_a_bar() {
    check(
        "subagent_forward_text",
        Display::File,
        expect![[r#"
            claude 2.1.325 · claude-opus-5-5 · /workspace · session 4357180c-f7bb-46a6-9764-e7e601c60ab4

            Delegating.

            ● Agent  Count files
              ┃ › [[lane:sub1]] count the files
              ┃
              ┃ ∴ thinking
              ┃   sub thinking here
              ┃
              ┃ Let me count.
              ┃
              ┃ ● Bash  ls | wc -l
              ┃   ⎿ 4
              ┃
              ┃ There are 4 entries.
              ⎿ 1.3s
                There are 4 entries.

            The subagent counted the files.

            ✓ done in 2.5s · 2 requests · 528 in / 60 out tokens · $0.0018
              claude --resume 4357180c-f7bb-46a6-9764-e7e601c60ab4
        "#]],
    );
}

#[test]
fn alternating_agents_are_kept_apart() {
    check(
        "subagent_parallel",
        Display::Live,
        expect![[r#"
        claude 2.1.325 · claude-opus-5-5 · /workspace · session f8835377-aaa7-4cc6-bdcc-f1695f647ddd

        ● Agent  A
          ┃ › [[lane:a]] do a

        ● Agent  B
          ┃ › [[lane:b]] do b

        ↳ Agent  A
          ┃ ● Bash  echo a

        ↳ Agent  B
          ┃ ● Read  README.md
          ┃   ⎿ 1	# Sample
          ┃     2	
          ┃     3	A tiny project.
          ┃     4

        ↳ Agent  A
          ┃ ● Bash  echo a
          ┃   ⎿ a

        ● Agent  B
          ⎿ B done.

        ● Agent  A
          ⎿ A done.

        Both done.

        ✓ done in 0.8s · 2 requests · 792 in / 90 out tokens · $0.0027
          claude --resume f8835377-aaa7-4cc6-bdcc-f1695f647ddd
    "#]],
    );
}

#[test]
fn a_background_agent_reports_later() {
    check(
        "subagent_background",
        Display::File,
        expect![[r#"
            claude 2.1.325 · claude-opus-5-5 · /workspace · session bef99a5f-4cb5-40c0-b2d5-2e58feca14f7

            ● Agent  Background count
              ⎿ goes on in the background

            Started a background agent; waiting.

            ↳ Agent  Background count
              ┃ ● Bash  sleep 1; ls | wc -l · 1.1s
              ┃   ⎿ 4
              ┃
              ┃ There are 4 entries.

            ● Agent  Background count
              ⎿ There are 4 entries.

            Background agent finished.

            ✓ done in 0.1s · 3 requests · 660 in / 75 out tokens · $0.0023
              claude --resume bef99a5f-4cb5-40c0-b2d5-2e58feca14f7
        "#]],
    );
}

#[test]
fn permissions_in_a_file_stand_with_their_calls() {
    check(
        "control_permissions.duplex",
        Display::File,
        expect![[r#"
            claude 2.1.325 · claude-opus-5-5 · /workspace · session 91fbc607-c6e5-4412-af06-fb7894c1711b

            › do it

            I will write.

            ● Write  a.txt
                + A
              → allowed

            ● Bash  touch forbidden && echo did
              ⎿ ⊘ denied: No touching please

            ● Bash  mkdir original
              → allowed, changed to {"command": "mkdir changed", "description": "changed by host"}
              ⎿ (Bash completed with no output)

            Finished with permissions.

            ✓ done in 2.3s · 3 requests · 396 in / 45 out tokens · $0.0014 · 1 denied
              claude --resume 91fbc607-c6e5-4412-af06-fb7894c1711b
        "#]],
    );
}

#[test]
fn permissions_are_asked_when_a_client_is_attached() {
    check(
        "control_permissions.duplex",
        Display::Live,
        expect![[r#"
            claude 2.1.325 · claude-opus-5-5 · /workspace · session 91fbc607-c6e5-4412-af06-fb7894c1711b

            › do it

            I will write.

            ● Write  a.txt
                + A

            ● Bash  touch forbidden && echo did

            ? allow Write /workspace/a.txt
              → allowed

            ? allow Bash  touch forbidden && echo did
              → denied: No touching please
              ⎿ ⊘ denied: No touching please

            ● Bash  mkdir original

            ? allow Bash  mkdir original
              → allowed, changed to {"command": "mkdir changed", "description": "changed by host"}
              ⎿ (Bash completed with no output)

            Finished with permissions.

            ✓ done in 2.3s · 3 requests · 396 in / 45 out tokens · $0.0014 · 1 denied
              claude --resume 91fbc607-c6e5-4412-af06-fb7894c1711b
        "#]],
    );
}

#[test]
fn a_plan_shows_what_changed() {
    check(
        "task_tools",
        Display::File,
        expect![[r#"
        claude 2.1.325 · claude-opus-5-5 · /workspace · session 4faa3364-8214-47ef-be72-c6b37134e0f5

        ▤ plan 0/1
          ☐ Search code

        ▤ plan 0/2
          ☐ Edit code

        ▤ plan 0/2
          ◐ Search code

        ▤ plan 1/2
          ☑ Search code

        Tasks are tracked.

        ✓ done in 1.6s · 4 requests · 528 in / 60 out tokens · $0.0018
          claude --resume 4faa3364-8214-47ef-be72-c6b37134e0f5
    "#]],
    );
}

#[test]
fn a_settled_question_shows_the_answer() {
    check(
        "control_ask_user_question.duplex",
        Display::File,
        expect![[r#"
            claude 2.1.325 · claude-opus-5-5 · /workspace · session a586a876-4214-4c71-9b17-8cc1310c37e3

            › x

            ● Question  Which color?
              → Blue
              ⎿ Your questions have been answered: "Which color?"="Blue". You can now continue with these answers in mind.

            You chose.

            ✓ done in 0.2s · 2 requests · 264 in / 30 out tokens · $0.0009
              claude --resume a586a876-4214-4c71-9b17-8cc1310c37e3
        "#]],
    );
}

#[test]
fn colour_is_all_that_colour_adds() {
    for recording in recordings("claude") {
        let plain = text(&recording, Display::File);
        let colored = text(&recording, Display::Colored);
        assert_ne!(plain, colored, "{}", recording.name);
        assert_eq!(plain, without_sgr(&colored), "{}", recording.name);
    }
}

#[test]
fn every_text_of_the_agent_is_present() {
    for recording in recordings("claude") {
        let shown = [Display::File, Display::Live].map(|it| text(&recording, it));
        for line in texts(&recording).iter().flat_map(|it| it.lines()) {
            let safe = display_safe(line.trim_end());
            let is_shown = shown.iter().all(|it| it.contains(&*safe));
            assert!(is_shown, "{}: {line:?}", recording.name);
        }
    }
}

#[test]
fn a_transcript_holds_no_control_characters() {
    for recording in recordings("claude") {
        for shown in [Display::File, Display::Live] {
            let text = text(&recording, shown);
            assert_eq!(display_safe(&text), text, "{}", recording.name);
        }
    }
}

/// What the agent says and thinks in a recording.
fn texts(recording: &Recording) -> Vec<String> {
    let (format, reader) = find_reader("claude").unwrap();
    let mut reader = reader(&ReaderConfig::default());
    let mut framer = formats::framing::Framer::new(format.framing);
    let mut texts = Vec::new();
    let mut sink = |event: &Event<'_>| {
        let Body::ItemClosed(closed) = &event.body else {
            return;
        };
        match &closed.item {
            Item::Message(it) if it.role == Role::Assistant => texts.push(it.text.to_string()),
            Item::Reasoning(it) => texts.push(it.text.to_string()),
            Item::Message(_)
            | Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    };
    framer.push(&recording.bytes, &mut |frame| {
        reader.frame(frame, &mut sink)
    });
    reader.end(&recording.end, &mut sink);
    texts
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
fn an_agents_title_does_not_hide_the_command() {
    let mut recordings = recordings("openhands").into_iter();
    let recording = recordings.find(|it| it.name == "real-fix-bug").unwrap();
    let text = convert("openhands", "text", None, &recording.bytes, &recording.end);
    for line in [
        "● terminal  listing files and reading calc.py: ls -1 && cat calc.py",
        "● grep  searching for add",
        "● file_editor  fixing the operator in add",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
