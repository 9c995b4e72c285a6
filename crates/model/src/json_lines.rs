//! JSON on one line, for readers that take more characters for line ends than JSON does.
//!
//! U+0085, U+2028 and U+2029 are allowed unescaped in a JSON string. Python's `splitlines`, the
//! line readers built on it and Node's `readline` end a line there, and the message is cut in two.
//! So they are escaped in every JSON line and server-sent event. Outside of strings they are not
//! valid JSON, so there is no need to look for string boundaries.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Serialize;

/// One JSON value, without a line end.
pub fn json_string(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut bytes = text.into_bytes();
    escape_line_breaks(&mut bytes, 0);
    Ok(String::from_utf8(bytes).expect("whole characters were replaced by ASCII"))
}

/// One JSON value and a line end.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    escape_line_breaks(&mut line, 0);
    line.push(b'\n');
    Ok(line)
}

/// Escapes the three characters in the JSON behind `from`. Text without them is only looked at.
pub fn escape_line_breaks(json: &mut Vec<u8>, from: usize) {
    let Some(first) = find(&json[from..]) else {
        return;
    };
    let tail = json.split_off(from + first);
    let mut done = 0;
    // One pass, however many there are of one kind and however few of another.
    for at in memchr::memchr2_iter(0xc2, 0xe2, &tail) {
        let (escape, len): (&[u8], usize) = match tail[at..] {
            [0xc2, 0x85, ..] => (b"\\u0085", 2),
            [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
            [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
            _ => continue,
        };
        json.extend_from_slice(&tail[done..at]);
        json.extend_from_slice(escape);
        done = at + len;
    }
    json.extend_from_slice(&tail[done..]);
}

static BREAKS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["\u{85}", "\u{2028}", "\u{2029}"].map(Finder::new));

/// Where the first of them may be. The bytes that they begin with are missing in most texts; where
/// they are frequent, as in quotation marks and lines of tables, whole characters are looked for.
fn find(json: &[u8]) -> Option<usize> {
    let from = memchr::memchr2(0xc2, 0xe2, json)?;
    let rest = &json[from..];
    let first = BREAKS.iter().filter_map(|it| it.find(rest)).min();
    first.map(|it| from + it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_are_escaped() {
        let check = |json: &str, escaped: &str| {
            let mut bytes = json.as_bytes().to_vec();
            escape_line_breaks(&mut bytes, 0);
            assert_eq!(String::from_utf8(bytes).unwrap(), escaped);
        };
        check(
            "\"a\u{2028}b\u{2029}c\u{85}d\"",
            r#""a\u2028b\u2029c\u0085d""#,
        );
        check("\"\u{2028}\u{2028}\"", r#""\u2028\u2028""#);
        let plain = "\"\u{2027}\u{202a}\u{a9}\u{84}\u{86}\u{e2} “—” \u{3000}\"";
        check(plain, plain);
        check("", "");
    }

    #[test]
    fn preceding_text_is_unchanged() {
        let mut bytes = "\u{2028}\"\u{2028}\"".as_bytes().to_vec();
        escape_line_breaks(&mut bytes, 3);
        assert_eq!(bytes, "\u{2028}\"\\u2028\"".as_bytes());
    }

    #[test]
    fn a_line_is_one_line_for_every_parser() {
        let line = json_line(&"a\u{2028}b\n\u{85}").unwrap();
        assert_eq!(line, b"\"a\\u2028b\\n\\u0085\"\n");
        let back: String = serde_json::from_slice(&line).unwrap();
        assert_eq!(back, "a\u{2028}b\n\u{85}");
    }
}
