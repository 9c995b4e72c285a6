//! The scanner accepts what serde_json accepts, with the same value.

use serde_json::value::RawValue;

use super::*;
use crate::wire::claude;
use crate::wire::lenient::{Object as _, read};

/// The text of a value.
fn scan(text: &str) -> Option<&str> {
    from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// Both parsers, by text and by value.
#[track_caller]
fn check(text: &str) {
    let raw: Option<&RawValue> = serde_json::from_str(text).ok();
    assert_eq!(scan(text), raw.map(RawValue::get), "{text}");
    let value: Option<Value> = serde_json::from_str(text).ok();
    assert_eq!(from_str::<Value>(text).ok(), value, "{text}");
}

const TEXTS: [&str; 8] = [
    r#"{"a":"b","c":[1,-2.5e+10,0,true,false,null,{}],"d":{"e":[]}}"#,
    "\t[ 1 , { \"a\" : \"b\" } ]\r\n",
    r#""\"\\\/\b\f\n\r\t\u00e9\ud83d plain text behind the escapes""#,
    r#"["","1234567","12345678","1234567890123456789012345678901234567890\n","é—👍"]"#,
    r#"{"a":0.5,"b":1E2,"c":-0,"d":12345678901234567890123}"#,
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "truefalse",
    "  null ",
];

#[test]
fn it_accepts_what_serde_json_accepts() {
    for text in TEXTS {
        for at in (0..text.len()).filter(|it| text.is_char_boundary(*it)) {
            let (head, tail) = text.split_at(at);
            check(head);
            check(tail);
            let behind = tail.chars().next().map_or(0, char::len_utf8);
            for other in [
                "", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "u", "\u{1}",
                "\n", " ",
            ] {
                check(&format!("{head}{other}{tail}"));
                check(&format!("{head}{other}{}", &tail[behind..]));
            }
        }
    }
}

#[test]
fn strings_end_where_they_do_at_any_length() {
    for n in 0..70 {
        for end in ["\"", "\\n\"", "\u{1f}\"", "é\"", "\u{7f}\"", ""] {
            let text = format!("\"{}{end}", "x".repeat(n));
            let parsed: Option<&RawValue> = serde_json::from_str(&text).ok();
            assert_eq!(scan(&text), parsed.map(RawValue::get), "{text:?}");
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests own the files they read")]
fn recordings_have_the_values_of_serde_json() {
    for name in ["claude", "codex", "opencode", "gemini", "openhands", "acp"] {
        let folder = format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(&folder).unwrap_or_else(|err| panic!("{folder}: {err}"));
        let lines: Vec<String> = files
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
            .flat_map(|it| {
                let bytes = std::fs::read(it).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        assert!(lines.len() > 10, "{folder} has {} lines", lines.len());
        lines.iter().for_each(|it| check(it));
    }
}

#[test]
fn values_may_be_as_deep_as_in_serde_json() {
    for depth in [1, 62, 63, 64, 65, 126, 127, 128, 129, 500] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[0,{"a":"#, "},1]")] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            check(&format!("{open}1{close}"));
            check(&format!("{open}1{close} ,"));
            check(&format!("{open}1{close}]"));
            check(&format!("{open}{close}"));
            check(&format!(r#"{{"a":{open}1{close},"b":2}}"#));
        }
    }
}

#[test]
fn numbers_are_those_of_serde_json() {
    for number in [
        "0",
        "-0",
        "-1",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "1.5",
        "0.1",
        "1e3",
        "1E-3",
        "123456789012345678.25",
        "5e-324",
        "1e308",
        "1e309",
        "-1e999",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "-",
        "NaN",
    ] {
        check(number);
        let parsed: Option<f64> = serde_json::from_str(number).ok();
        assert_eq!(from_str::<f64>(number).ok(), parsed, "{number}");
        let parsed: Option<i64> = serde_json::from_str(number).ok();
        assert_eq!(from_str::<i64>(number).ok(), parsed, "{number}");
    }
}

#[test]
fn halves_of_surrogate_pairs_are_refused_where_they_are_decoded() {
    for text in [
        r#""\ud83d\udc4d""#,
        r#""\ud83d""#,
        r#"["\udc4d"]"#,
        r#"{"\ud83d":1}"#,
    ] {
        check(text);
    }
}

#[test]
fn types_are_read_as_by_serde_json() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Empty,
        Round(u8),
        Pair(u8, u8),
        Named { side: Option<u8> },
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Wrapped(String);
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct All {
        shape: Option<Shape>,
        wrapped: Option<Wrapped>,
        pair: Option<(u8, char)>,
        unit: Option<()>,
    }
    for text in [
        r#"{"shape":"empty"}"#,
        r#"{"shape":"e\u006dpty"}"#,
        r#"{"shape":{"empty":null}}"#,
        r#"{"shape":{"round":3}}"#,
        r#"{"shape":{"pair":[1,2]}}"#,
        r#"{"shape":{"pair":[1]}}"#,
        r#"{"shape":{"pair":[1,2,3]}}"#,
        r#"{"shape":{"named":{"side":1}}}"#,
        r#"{"shape":{"named":{"side":null}}}"#,
        r#"{"shape":{"named":{}}}"#,
        r#"{"shape":{"round":3,"empty":null}}"#,
        r#"{"shape":{"round":3,}}"#,
        r#"{"shape":{}}"#,
        r#"{"shape":"round"}"#,
        r#"{"shape":"other"}"#,
        r#"{"shape":7}"#,
        r#"{"shape":null,"shape":null}"#,
        r#"{"wrapped":"text","pair":[1,"x"],"unit":null}"#,
        r#"{"wrapped":1}"#,
        r#"{"pair":[1,"xy"]}"#,
        r#"{"pair":[256,"x"]}"#,
        r#"["empty","text",[1,"x"],null]"#,
        r#"["empty"]"#,
        "{}",
        "null",
    ] {
        let parsed: Option<All> = serde_json::from_str(text).ok();
        assert_eq!(from_str::<All>(text).ok(), parsed, "{text}");
    }
}

#[test]
fn the_error_of_a_line_is_that_of_serde_json() {
    let mut line = claude::Init::default();
    for text in [
        "",
        "not JSON",
        r#"{"uuid":"u","x":1,}"#,
        r#"{"uuid":"u"} x"#,
        r#"{"uuid":"u","x":[1,2"#,
        r#"{"uuid":"\ud83d"}"#,
        r#"{"type":1e999}"#,
    ] {
        let err = read(text, &mut line).unwrap_err();
        let parsed = serde_json::from_str::<Value>(text).unwrap_err();
        assert_eq!(err.to_string(), parsed.to_string(), "{text}");
        assert!(!line.is_object(), "{text}");
    }
}

#[test]
fn a_deep_field_costs_a_line_nothing() {
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let text = format!(r#"{{"uuid":"u","x":{open}1{close}}}"#);
    let mut line = claude::Line::default();
    read(&text, &mut line).unwrap();
    assert_eq!(
        (line.uuid.str().as_deref(), line.extra().len()),
        (Some("u"), 1)
    );
}
