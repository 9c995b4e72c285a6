//! What the Claude reader is told and no recording shows by itself.

use expect_test::expect;
use formats::registry::find_reader;
use formats::{ReaderConfig, RunEnds};
use model::{Body, End, Event, Frame, Reader};

use crate::fixtures::{convert, recordings};

fn reader(config: &ReaderConfig) -> Box<dyn Reader> {
    find_reader("claude").unwrap().1(config)
}

/// The names of the events that one line makes.
fn names(reader: &mut dyn Reader, line: &[u8]) -> Vec<&'static str> {
    let mut names = Vec::new();
    reader.frame(Frame::Data(line), &mut |event: &Event<'_>| {
        names.push(event.body.name())
    });
    names
}

#[test]
fn a_client_that_waits_sees_the_end_with_its_result() {
    let recording = recordings("claude")
        .into_iter()
        .find(|it| it.name == "stdin_multi_turn.duplex")
        .unwrap();
    let config = ReaderConfig {
        run_ends: RunEnds::AtResult,
        ..ReaderConfig::default()
    };
    let (mut waiting, mut patient) = (reader(&config), reader(&ReaderConfig::default()));
    for line in recording
        .bytes
        .split(|it| *it == b'\n')
        .filter(|it| !it.is_empty())
    {
        let text = String::from_utf8_lossy(line).replace("\": ", "\":");
        let is_result = text.contains("\"type\":\"result\"");
        assert_eq!(names(&mut *waiting, line).contains(&"run.ended"), is_result);
        assert!(!(names(&mut *patient, line).contains(&"run.ended") && is_result));
    }
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let recording = recordings("claude")
        .into_iter()
        .find(|it| it.name == "text")
        .unwrap();
    let expect = Some("the-one-i-want".to_owned());
    let mut reader = reader(&ReaderConfig {
        expected_session: expect,
        ..ReaderConfig::default()
    });
    let mut ends = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body {
            ends.push(ended.error.as_ref().unwrap().message.to_string());
        }
    };
    for line in recording
        .bytes
        .split(|it| *it == b'\n')
        .filter(|it| !it.is_empty())
    {
        reader.frame(Frame::Data(line), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    let got = "eea8584c-27f8-43bb-8cec-ff1078196ebc";
    assert_eq!(
        ends,
        [format!(
            "session `the-one-i-want` was asked for, the agent answered as `{got}`"
        )]
    );
}

#[test]
fn a_payload_as_deep_as_a_file_is_long_is_kept() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let line = format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"tool_use","id":"t","name":"Bash","input":{{"command":"ls","deep":{deep},"huge":1e400}}}}]}},"session_id":"s"}}"#
    );
    let mut reader = reader(&ReaderConfig::default());
    let mut inputs = Vec::new();
    reader.frame(Frame::Data(line.as_bytes()), &mut |event: &Event<'_>| {
        if let Body::ItemOpened(model::Item::Tool(tool)) = &event.body {
            inputs.push((
                tool.class.command.as_ref().map(ToString::to_string),
                tool.input.as_ref().unwrap().get().len(),
            ));
        }
    });
    let whole = deep.len() + r#"{"command":"ls","deep":,"huge":1e400}"#.len();
    assert_eq!(inputs, [(Some("ls".to_owned()), whole)]);
}

#[test]
fn a_session_named_only_by_a_hook_is_bound_before_the_result() {
    let lines = concat!(
        r#"{"type":"system","subtype":"hook_started","hook_name":"SessionStart","session_id":"s1"}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}"#,
        "\n",
    );
    let told = convert("claude", "takopi", None, lines.as_bytes(), &End::default());
    expect![[r#"
        {"type":"started","engine":"claude","resume":{"engine":"claude","value":"s1"}}
        {"type":"completed","engine":"claude","ok":true,"answer":"ok","resume":{"engine":"claude","value":"s1"},"resume_line":"`claude --resume s1`"}
    "#]]
    .assert_eq(&told);
}

/// A call of `Write` that says whether the file is new, and its result, which does not.
fn written(create: bool) -> String {
    let call = format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"tool_use","id":"t","name":"Write","input":{{"file_path":"/w/n.txt","content":"x","create":{create}}}}}]}},"session_id":"s1"}}"#
    );
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"written"}]},"session_id":"s1"}"#;
    let end =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}"#;
    format!("{call}\n{result}\n{end}\n")
}

/// The phase and the kind of each change of a file that an output tells.
fn changes(to: &str, create: bool) -> Vec<(String, String)> {
    let told = convert(
        "claude",
        to,
        None,
        written(create).as_bytes(),
        &End::default(),
    );
    let lines = told.lines().map(|it| serde_json::from_str(it).unwrap());
    let changes = lines.filter_map(|line: serde_json::Value| {
        let (phase, changes) = match to {
            "takopi" => (&line["phase"], &line["action"]["detail"]["changes"]),
            _ => (&line["type"], &line["item"]["changes"]),
        };
        let kind = changes[0]["kind"].as_str()?;
        Some((phase.as_str()?.to_owned(), kind.to_owned()))
    });
    changes.collect()
}

#[test]
fn a_call_that_creates_a_file_lists_it_from_its_start() {
    for (create, kind) in [(true, "add"), (false, "update")] {
        let told = |phase: &str| (phase.to_owned(), kind.to_owned());
        assert_eq!(
            changes("takopi", create),
            [told("started"), told("completed")]
        );
        assert_eq!(
            changes("thread", create),
            [told("item.started"), told("item.completed")]
        );
    }
}

#[test]
fn a_delta_without_a_context_window_has_that_of_the_totals() {
    let mut reader = reader(&ReaderConfig::default());
    let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s","modelUsage":{"m":{"inputTokens":9,"outputTokens":9,"contextWindow":200000}},"model_usage_since_last_result":{"m":{"inputTokens":1,"outputTokens":2}}}"#;
    let mut windows = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body {
            let models = ended.models.iter();
            windows.extend(models.map(|it| (it.model.to_string(), it.context_window)));
        }
    };
    for line in [init, result] {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    assert_eq!(windows, [("m".to_owned(), Some(200_000))]);
}
