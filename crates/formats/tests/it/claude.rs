//! What the Claude reader is told and no recording shows by itself.

use formats::registry::find_reader;
use formats::{ReaderConfig, RunEnds};
use model::{Body, End, Event, Frame, Reader};

use crate::fixtures::recordings;

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
        expect,
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
