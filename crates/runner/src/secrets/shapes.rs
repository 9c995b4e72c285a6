//! Secrets that are known by what they look like: keys with the prefixes of their vendors, JSON Web
//! Tokens, and the passwords in addresses. Pure text in, places out.

use std::ops::Range;

/// How keys begin, and how many characters follow at least. Keys consist of letters, digits, `_` and `-`.
const SHAPES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxc-", 10),
    ("xoxd-", 10),
    ("xoxe-", 10),
    ("xoxe.", 10),
    ("xoxo-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("hf_", 30),
];

/// Ordinary words have these prefixes, too: a key has a digit or a capital letter besides.
const WORDLIKE: &[&str] = &["sk-", "npm_", "hf_"];

/// The parts of a JSON Web Token: the first two are JSON objects in base64.
const TOKEN: &str = "eyJ";

/// As much of a key that was cut off gives something away.
const MIN_PIECE: usize = 4;

/// Where secrets stand in a text, in order, apart from each other.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next_word(text, at) {
        let end = start + length(&text[start..], is_key);
        let secret = key(text, start, end)
            .or_else(|| token(text, start))
            .or_else(|| password(text, start, end));
        at = match secret {
            Some(range) => {
                let end = range.end.max(end);
                found.push(range);
                end
            }
            None => end,
        };
    }
    found
}

/// Where a key begins that a cut has left at the end of the text, too short to be known otherwise.
pub(super) fn cut_off(text: &str) -> Option<usize> {
    let tail = text.len() - text.bytes().rev().take_while(|it| is_key(*it)).count();
    let word = &text[tail..];
    let prefixes = SHAPES.iter().map(|it| it.0).chain([TOKEN]);
    let mut begun = prefixes.filter_map(|it| word.strip_prefix(it));
    begun.any(|rest| rest.len() >= MIN_PIECE).then_some(tail)
}

/// The next place where a word of key characters begins.
fn next_word(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (from..bytes.len()).find(|at| is_key(bytes[*at]) && (*at == 0 || !is_key(bytes[*at - 1])))
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn length(text: &str, is_part: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|it| is_part(*it)).count()
}

/// A key with the prefix of its vendor.
fn key(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let fits = |(prefix, min): &(&str, usize)| {
        let rest = text[start..].strip_prefix(prefix)?;
        let n = length(rest, is_key);
        let is_mixed = |it: u8| it.is_ascii_digit() || it.is_ascii_uppercase();
        let is_word = WORDLIKE.contains(prefix) && !rest[..n].bytes().any(is_mixed);
        // Prefixes such as `ya29.` hold a dot, so a key may end behind its first word.
        (n >= *min && !is_word).then_some(start..(start + prefix.len() + n).max(end))
    };
    SHAPES.iter().find_map(fits)
}

/// A JSON Web Token: three parts between dots; the last may be empty.
fn token(text: &str, start: usize) -> Option<Range<usize>> {
    let mut at = start;
    for n in 0..3 {
        let part = length(&text[at..], is_key);
        if n < 2 && (part < 8 || !text[at..].starts_with(TOKEN)) {
            return None;
        }
        at += part;
        if n < 2 {
            text[at..].strip_prefix('.')?;
            at += 1;
        }
    }
    Some(start..at)
}

/// The name and the password in `scheme://name:password@host`; the word at `start` is the scheme.
fn password(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    // A scheme may have `+` in it, which is no part of a key: its last word will do.
    text[start..end]
        .bytes()
        .all(|it| it != b'_')
        .then_some(())?;
    let rest = text[end..].strip_prefix("://")?;
    let is_authority = |it: u8| !it.is_ascii_whitespace() && !b"/?#\"'<>`".contains(&it);
    let authority = &rest[..length(rest, is_authority)];
    // The last one, because a password may hold `@` unescaped.
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    let from = end + "://".len();
    (!password.is_empty()).then_some(from..from + user.len())
}

/// Whether an address gives nothing away: no name, no password, no question, and no long word in its
/// path that could be a key.
pub(super) fn is_plain_address(value: &str) -> bool {
    // Without a scheme it may be anything, a bare key too.
    let Some((scheme, rest)) = value.split_once("://") else {
        return false;
    };
    let is_scheme = |it: char| it.is_ascii_alphanumeric() || "+.-".contains(it);
    let is_short = |it: &str| it.len() <= 16 && it.chars().all(|it| is_scheme(it) || it == '_');
    let mut parts = rest.split('/');
    let host = parts.next().unwrap_or_default();
    !scheme.is_empty()
        && scheme.chars().all(is_scheme)
        && !host.is_empty()
        && host.chars().all(|it| is_scheme(it) || "[]:".contains(it))
        && parts.all(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for range in find(text) {
            out += &text[at..range.start];
            out.push('#');
            at = range.end;
        }
        out + &text[at..]
    }

    #[test]
    fn keys_are_known_by_their_shapes() {
        let alnum = "abcDEF0123456789abcDEF0123456789abcd";
        let keys = [
            "sk-ant-api03-abcDEF0123456789_-x".to_owned(),
            "sk-proj-abcdef0123456789abcdef".to_owned(),
            format!("ghp_{alnum}"),
            format!("github_pat_{alnum}_{alnum}"),
            "xoxb-1234567890-abcdefghij".to_owned(),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("AIza{}", &alnum[..35]),
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl".to_owned(),
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.".to_owned(),
        ];
        for key in &keys {
            assert_eq!(hidden(key), "#");
            assert_eq!(hidden(&format!("key={key}, \"{key}\"!")), "key=#, \"#\"!");
        }
    }

    #[test]
    fn passwords_of_addresses_are_hidden_and_the_rest_is_not() {
        let rows = [
            ("postgres://app:s3cr3t@db:5432/x", "postgres://#@db:5432/x"),
            ("see https://u:p@h/x.", "see https://#@h/x."),
            ("git+https://x:p@ss@h", "git+https://#@h"),
            ("ssh://git@github.com/x", "ssh://git@github.com/x"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
            ("http://u:@h", "http://u:@h"),
            ("a:b@c", "a:b@c"),
        ];
        for (text, expected) in rows {
            assert_eq!(hidden(text), expected);
        }
    }

    #[test]
    fn ordinary_text_is_kept() {
        for text in [
            "",
            "sk-learn is a library, sk-estimator-html-doc-link a class",
            "npm_config_cache=/tmp ghp_short AKIAx eyJ.eyJ.x",
            "error: ENOENT at /home/me/sk-1/file.rs:12:3",
            "ünïcödé ☃ sk-☃",
            "task-0123456789abcdef0123456789",
        ] {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn a_key_that_was_cut_off_is_found_at_the_end() {
        assert_eq!(cut_off("bad key sk-ant1"), Some(8));
        assert_eq!(cut_off("bad key ghp_abcd"), Some(8));
        assert_eq!(cut_off("bad key ghp_abc"), None);
        assert_eq!(cut_off("bad key"), None);
    }

    #[test]
    fn some_addresses_are_plain() {
        let plain = [
            "http://127.0.0.1:8080",
            "https://api.example.com/v1/",
            "wss://[::1]:9/a_b",
        ];
        assert!(plain.iter().all(|it| is_plain_address(it)));
        let others = [
            "postgres://u:p@h/db",
            "https://key@sentry.io/1",
            "https://h/x?token=abc",
            "https://hooks.slack.com/services/T000/B000/abcdefghijklmnopqrstuvwx",
            "canary-value",
            "",
        ];
        assert!(!others.iter().any(|it| is_plain_address(it)));
    }
}
