//! Command lines: a list of words as one line.

use model::{Raw, Text};

use crate::wire::lenient::Str;
use crate::wire::scanner;

/// A command as a line to be pasted into a shell; Codex gives some as a list of words.
pub(super) fn line(command: Raw<'_>) -> Text<'_> {
    if !command.get().starts_with('[') {
        return Text::from(command);
    }
    let words: Vec<Str<'_>> = scanner::from_str(command.get()).unwrap_or_default();
    let words: Option<Vec<String>> = words.iter().map(|it| it.as_deref().map(quoted)).collect();
    match words {
        Some(words) if !words.is_empty() => Text::new(words.join(" ")),
        // A word that is no string cannot be quoted, and leaving it out would show another command.
        Some(_) | None => Text::from(command),
    }
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./=:,@%+".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
