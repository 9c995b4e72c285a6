//! Whatever follows the terminal event of a run changes neither its outcome nor its text: it is kept in a
//! notice, counted, and never begins a run of its own.

use formats::registry::{FORMATS, find_reader, writer};
use formats::{ReaderConfig, RunEnds, WriterConfig};
use model::{Body, End, Event, Exit, Frame};

use crate::invariants::Law;

const CLAUDE: [&str; 3] = [
    r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/w"}"#,
    r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello."}]},"session_id":"s"}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s","num_turns":1}"#,
];
/// What a process may still print, each alone enough for a second run before.
const CLAUDE_AFTER: [&str; 9] = [
    r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"More."}]},"session_id":"s"}"#,
    r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"More."}]},"session_id":"other"}"#,
    r#"{"type":"user","message":{"role":"user","content":"and now?"},"session_id":"s"}"#,
    r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]},"session_id":"s"}"#,
    r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m3"}},"session_id":"s"}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}},"session_id":"s"}"#,
    r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","num_turns":2}"#,
    r#"{"type":"error","message":"boom"}"#,
    r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/w"}"#,
];
const CODEX: [&str; 4] = [
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hello."}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#,
];
const CODEX_AFTER: [&str; 6] = [
    r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"More."}}"#,
    r#"{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"ls","status":"in_progress"}}"#,
    r#"{"type":"item.updated","item":{"id":"item_2","type":"todo_list","items":[]}}"#,
    r#"{"type":"turn.failed","error":{"message":"boom"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":9}}"#,
    r#"{"type":"error","message":"boom"}"#,
];
const RESPONSES: [&str; 4] = [
    r#"{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}}"#,
    r#"{"type":"response.completed","response":{"id":"r","model":"m","status":"completed"}}"#,
];
const RESPONSES_AFTER: [&str; 5] = [
    r#"{"type":"response.output_text.delta","item_id":"j","output_index":1,"content_index":0,"delta":"More."}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"j","type":"message","role":"assistant","content":[{"type":"output_text","text":"More."}]}}"#,
    r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"boom"}}}"#,
    r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#,
    r#"{"type":"error","code":"server_error","message":"boom","sequence_number":9}"#,
];

/// Everything one stream becomes: canonical lines, and whether each writer's output is lawful for one run.
fn read(from: &str, run_ends: RunEnds, lines: &[&str]) -> (Vec<String>, Vec<(String, String)>) {
    let config = ReaderConfig {
        run_ends,
        ..ReaderConfig::default()
    };
    let mut reader = find_reader(from).unwrap().1(&config);
    let mut outs: Vec<_> = (FORMATS.iter().filter(|it| it.writer.is_some()))
        .map(|it| {
            let writer = writer(it.name, &WriterConfig::default()).unwrap();
            (it.name, writer, Law::new(it.name, None))
        })
        .collect();
    let mut told = Vec::new();
    let mut sink = |event: &Event<'_>| {
        told.push(serde_json::to_string(event).unwrap());
        for (_, writer, law) in &mut outs {
            let mut bytes = Vec::new();
            writer.event(event, &mut bytes);
            law.push(&bytes);
        }
    };
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    let exit = (run_ends == RunEnds::AtExit).then_some(Exit::Code(0));
    let end = End {
        exit,
        aborted: false,
    };
    reader.end(&end, &mut sink);
    let mut unlawful = Vec::new();
    for (name, mut writer, mut law) in outs {
        let mut bytes = Vec::new();
        writer.end(&mut bytes);
        law.push(&bytes);
        if let Err(why) = law.verdict(1) {
            unlawful.push((name.to_owned(), why));
        }
    }
    (told, unlawful)
}

/// The canonical lines without their numbers, and how many of them are lines after the end.
fn without_late(told: &[String]) -> (Vec<serde_json::Value>, usize) {
    let mut all: Vec<serde_json::Value> = (told.iter())
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let before = all.len();
    all.retain(|it| it["data"]["code"] != "after_end");
    for event in &mut all {
        event["seq"].take();
    }
    let n_late = before - all.len();
    (all, n_late)
}

fn check(from: &str, run_ends: RunEnds, lines: &[&str], after: &[&str]) {
    let alone = without_late(&read(from, run_ends, lines).0).0;
    let each = after.iter().map(std::slice::from_ref);
    for late in each.chain([after]) {
        let (told, unlawful) = read(from, run_ends, &[lines, late].concat());
        let (rest, n_late) = without_late(&told);
        assert_eq!(rest, alone, "{from} {run_ends:?}: {late:?}");
        assert_eq!(n_late, late.len(), "{from} {run_ends:?}: {late:?}");
        assert_eq!(unlawful, [], "{from} {run_ends:?}: {late:?}");
    }
}

#[test]
fn a_process_with_one_prompt_has_one_end() {
    check("claude", RunEnds::AtExit, &CLAUDE, &CLAUDE_AFTER);
    check("codex", RunEnds::AtExit, &CODEX, &CODEX_AFTER);
    let turn = [r#"{"type":"turn.started"}"#];
    check("codex", RunEnds::AtExit, &CODEX, &turn);
    check(
        "openresponses",
        RunEnds::AtExit,
        &RESPONSES,
        &RESPONSES_AFTER,
    );
    let other = [r#"{"type":"response.created","response":{"id":"q","status":"in_progress"}}"#];
    check("openresponses", RunEnds::AtExit, &RESPONSES, &other);
}

#[test]
fn a_recording_has_one_end_per_turn() {
    // An `init` announces a turn; the lines after it would be its own.
    check("claude", RunEnds::AtNextTurn, &CLAUDE, &CLAUDE_AFTER[..8]);
    check("codex", RunEnds::AtNextTurn, &CODEX, &CODEX_AFTER);
    check(
        "openresponses",
        RunEnds::AtNextTurn,
        &RESPONSES,
        &RESPONSES_AFTER,
    );
}

#[test]
fn an_agent_that_stays_begins_no_run_by_itself() {
    check("claude", RunEnds::AtResult, &CLAUDE, &CLAUDE_AFTER);
    check("codex", RunEnds::AtResult, &CODEX, &CODEX_AFTER);
}

fn ends(run_ends: RunEnds, lines: &[&str]) -> Vec<String> {
    let config = ReaderConfig {
        run_ends,
        ..ReaderConfig::default()
    };
    let mut reader = find_reader("claude").unwrap().1(&config);
    let mut ends = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::RunEnded(ended) = &event.body {
            let answer = ended.answer.as_ref().map(ToString::to_string);
            ends.push(format!(
                "{:?} {}",
                ended.outcome,
                answer.unwrap_or_default()
            ));
        }
    };
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    ends
}

#[test]
fn an_announcement_alone_is_no_run() {
    let init = [&CLAUDE[..], &CLAUDE_AFTER[8..]].concat();
    assert_eq!(ends(RunEnds::AtNextTurn, &init), ["Completed Hello."]);
    let twice = [&CLAUDE[..], &CLAUDE[..]].concat();
    let both = ["Completed Hello.", "Completed Hello."];
    assert_eq!(ends(RunEnds::AtNextTurn, &twice), both);
}

#[test]
fn a_background_task_extends_the_run() {
    let woken = [
        r#"{"type":"system","subtype":"task_notification","task_id":"b","status":"completed","summary":"done","session_id":"s"}"#,
        CLAUDE_AFTER[8],
        CLAUDE_AFTER[0],
        r#"{"type":"result","subtype":"success","is_error":false,"result":"More.","session_id":"s","num_turns":1,"origin":{"kind":"task-notification"}}"#,
    ];
    let lines = [&CLAUDE[..], &woken].concat();
    for run_ends in [RunEnds::AtExit, RunEnds::AtNextTurn] {
        assert_eq!(ends(run_ends, &lines), ["Completed More."]);
    }
    let result_alone = [&CLAUDE[..], &woken[3..]].concat();
    assert_eq!(ends(RunEnds::AtExit, &result_alone), ["Completed More."]);
}

#[test]
fn a_subtype_alone_ends_nothing() {
    let odd = [
        r#"{"subtype":"success"}"#,
        r#"{"subtype":"success","session_id":"s"}"#,
        r#"{"subtype":"success","is_error":false,"num_turns":1}"#,
    ];
    for line in odd {
        let lines = [CLAUDE[0], line, CLAUDE[1], CLAUDE[2]];
        assert_eq!(
            ends(RunEnds::AtResult, &lines),
            ["Completed Hello."],
            "{line}"
        );
    }
}

#[test]
fn a_line_of_the_type_error_fails_the_turn() {
    let error = r#"{"type":"error","message":"top-level boom"}"#;
    let lines = [CLAUDE[0], error, CLAUDE[1], CLAUDE[2]];
    assert_eq!(ends(RunEnds::AtExit, &lines), ["Failed Hello."]);
    assert_eq!(ends(RunEnds::AtExit, &lines[..3]), ["Failed Hello."]);
    for (to, shown) in [
        ("thread", r#""error":{"message":"top-level boom"}"#),
        ("takopi", r#""error":"top-level boom""#),
    ] {
        let mut reader = find_reader("claude").unwrap().1(&ReaderConfig::default());
        let mut writer = writer(to, &WriterConfig::default()).unwrap();
        let mut out = Vec::new();
        let mut sink = |event: &Event<'_>| writer.event(event, &mut out);
        for line in lines {
            reader.frame(Frame::Data(line.as_bytes()), &mut sink);
        }
        reader.end(&End::default(), &mut sink);
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(shown), "{to}: {out}");
    }
}
