//! Failures of one kind have one code, whichever agent was recorded, and the manual says which.

use std::fs;
use std::path::Path;

use formats::ReaderConfig;
use formats::errors;
use formats::registry::find_reader;
use model::{Body, End, Event, Exit, Frame};

use crate::fixtures::recordings;

/// The codes of the runs that a recording holds, and what the agent called them.
fn codes(from: &str, name: &str) -> Vec<(String, Option<String>)> {
    let all = recordings(from);
    let recording = all.iter().find(|it| it.name == name);
    let recording = recording.unwrap_or_else(|| panic!("no {from}/{name}"));
    let lines: Vec<&[u8]> = recording.bytes.split(|it| *it == b'\n').collect();
    read(from, &lines, None)
}

fn read(from: &str, lines: &[&[u8]], exit: Option<Exit>) -> Vec<(String, Option<String>)> {
    let mut reader = find_reader(from).unwrap().1(&ReaderConfig::default());
    let mut codes = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body
            && let Some(error) = &ended.error
        {
            let native = error.native.as_ref().map(ToString::to_string);
            codes.push((error.code.to_string(), native));
        }
    };
    for line in lines.iter().filter(|it| !it.is_empty()) {
        reader.frame(Frame::Data(line), &mut sink);
    }
    let end = End {
        exit,
        aborted: false,
    };
    reader.end(&end, &mut sink);
    codes
}

#[test]
fn recordings_of_all_agents_have_the_same_codes() {
    let all = [
        ("claude", "api_error_400", "bad_request", "unknown"),
        ("claude", "api_error_401", "auth", "authentication_failed"),
        ("claude", "no_api_key", "auth", "authentication_failed"),
        (
            "claude",
            "api_error_404_model",
            "not_found",
            "model_not_found",
        ),
        (
            "claude",
            "rate_limit_rejected",
            "rate_limited",
            "rate_limit",
        ),
        (
            "claude",
            "api_error_529_exhausted",
            "overloaded",
            "server_error",
        ),
        (
            "claude",
            "api_error_prompt_too_long",
            "context_too_long",
            "invalid_request",
        ),
        (
            "claude",
            "api_connection_refused",
            "network",
            "server_error",
        ),
        (
            "openhands",
            "condensation-control",
            "rate_limited",
            "LLMRateLimitError",
        ),
    ];
    for (from, name, code, native) in all {
        let expected = (code.to_owned(), Some(native.to_owned()));
        assert_eq!(codes(from, name), [expected], "{from}/{name}");
    }
}

#[test]
fn one_status_has_one_code_for_every_agent() {
    let codex = |message: &str| {
        let line = serde_json::json!({"type": "turn.failed", "error": {"message": message}});
        read("codex", &[line.to_string().as_bytes()], None)
    };
    let gemini = |status: u16| {
        let message = format!(r#"[API Error: {{"error":{{"code":{status},"message":"no"}}}}]"#);
        let line = serde_json::json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": message}});
        read("gemini", &[line.to_string().as_bytes()], None)
    };
    let opencode = |status: u16| {
        let data = serde_json::json!({"message": "no", "statusCode": status});
        let error = serde_json::json!({"name": "APIError", "data": data});
        let line = serde_json::json!({"type": "error", "sessionID": "s", "error": error});
        read(
            "opencode",
            &[line.to_string().as_bytes()],
            Some(Exit::Code(1)),
        )
    };
    let responses = |code: &str| {
        let error = serde_json::json!({"code": code, "message": "no"});
        let response = serde_json::json!({"id": "r", "status": "failed", "error": error});
        let line = serde_json::json!({"type": "response.failed", "response": response});
        read("openresponses", &[line.to_string().as_bytes()], None)
    };
    let kinds = [
        (400, "invalid_request_error", "bad_request"),
        (401, "invalid_api_key", "auth"),
        (402, "insufficient_quota", "billing"),
        (404, "model_not_found", "not_found"),
        (429, "rate_limit_exceeded", "rate_limited"),
        (503, "server_overloaded", "overloaded"),
        (529, "overloaded_error", "overloaded"),
        (413, "context_length_exceeded", "context_too_long"),
        (500, "server_error", "server_error"),
    ];
    let code = |codes: Vec<(String, Option<String>)>| codes.into_iter().next().unwrap().0;
    for (status, word, expected) in kinds {
        let said = format!("unexpected status {status} X: no, url: http://127.0.0.1:1/v1");
        assert_eq!(code(codex(&said)), expected, "codex {status}");
        assert_eq!(code(gemini(status)), expected, "gemini {status}");
        assert_eq!(code(opencode(status)), expected, "opencode {status}");
        assert_eq!(code(responses(word)), expected, "openresponses {word}");
    }
}

#[test]
fn a_crash_is_a_crash_whichever_agent_it_is() {
    for from in ["claude", "codex", "opencode", "gemini", "openhands", "acp"] {
        for exit in [Exit::Code(7), Exit::Signal(9)] {
            let codes = read(from, &[], Some(exit));
            assert_eq!(codes, [("crashed".to_owned(), None)], "{from} {exit:?}");
        }
    }
}

#[test]
fn the_last_stdout_lines_are_in_the_error() {
    let words = b"kimi-cli is no longer maintained. Please use the new Kimi Code CLI.";
    for from in ["claude", "codex", "opencode", "gemini", "openhands", "acp"] {
        let mut reader = find_reader(from).unwrap().1(&ReaderConfig::default());
        let mut messages = Vec::new();
        let mut sink = |event: &Event<'_>| match &event.body {
            Body::RunEnded(it) => messages.push(it.error.as_ref().unwrap().message.to_string()),
            Body::NoticeRaised(it) => messages.push(it.text.to_string()),
            _ => (),
        };
        reader.frame(Frame::Data(words), &mut sink);
        let end = End {
            exit: Some(Exit::Code(0)),
            aborted: false,
        };
        reader.end(&end, &mut sink);
        let said = String::from_utf8_lossy(words);
        assert_eq!(messages[0], format!("not JSON: {said}"), "{from}");
        assert!(
            messages[1].ends_with(&format!("\n{said}")),
            "{from}: {messages:?}"
        );
    }
}

#[test]
fn the_manual_has_the_table_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let manual = fs::read_to_string(&path).unwrap();
    let (before, rest) = manual.split_once("errors.rs -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let expected = format!(
        "{before}errors.rs -->\n{}<!-- end -->{after}",
        errors::table()
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}
