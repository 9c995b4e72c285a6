//! Whatever the scanner accepts, serde_json accepts, with the same value.

use serde_json::value::RawValue;

use super::*;
use crate::wire::claude;
use crate::wire::lenient::{Object as _, read};

/// The text of a value, unless the scanner leaves it to serde_json.
fn scan(text: &str) -> Option<&str> {
    let mut scanner = Scanner::new(text);
    let raw = <&RawValue>::deserialize(&mut scanner).ok()?;
    scanner.end().ok()?;
    Some(raw.get())
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
fn ordinary_json_is_not_refused() {
    for text in &TEXTS[..6] {
        assert_eq!(scan(text), Some(text.trim()), "{text}");
    }
}

#[test]
fn nothing_is_accepted_that_serde_json_refuses() {
    let check = |text: &str| {
        if let Some(raw) = scan(text) {
            let parsed: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(raw, parsed.get(), "{text}");
        }
    };
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
fn what_is_refused_is_read_by_serde_json() {
    let deep = format!(
        r#"{{"uuid":"u","x":{}1{}}}"#,
        "[".repeat(100),
        "]".repeat(100)
    );
    assert_eq!(scan(&deep), None);
    let mut line = claude::Line::default();
    read(&deep, &mut line).unwrap();
    assert_eq!(
        (line.uuid.str().as_deref(), line.extra().len()),
        (Some("u"), 1)
    );
    let err = read(r#"{"uuid":"u","x":1,}"#, &mut line).unwrap_err();
    assert_eq!(err.to_string(), "trailing comma at line 1 column 19");
}

#[test]
fn values_are_those_of_serde_json() {
    let text = r#"{"a\n":"b\u00e9","n":18446744073709551615,"f":1.5,"i":-1,"none":null}"#;
    type Values = std::collections::BTreeMap<String, Option<serde_json::Value>>;
    let parsed: Values = serde_json::from_str(text).unwrap();
    assert_eq!(from_str::<Values>(text).unwrap(), parsed);
}
