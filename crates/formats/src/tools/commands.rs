//! Command lines: a list of words as one line, and a line without the shell it is wrapped in.

use model::{Raw, Text};

use crate::wire::lenient::Str;

/// A command as a line to be pasted into a shell; Codex gives some as a list of words.
pub(super) fn line(command: Raw<'_>) -> Text<'_> {
    if !command.get().starts_with('[') {
        return Text::from(command);
    }
    let words: Vec<Str<'_>> = serde_json::from_str(command.get()).unwrap_or_default();
    let words: Option<Vec<String>> = words.iter().map(|it| it.as_deref().map(quoted)).collect();
    match words {
        Some(words) if !words.is_empty() => Text::new(words.join(" ")),
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

/// What `bash -lc '…'` runs: Codex wraps every command like that, and nobody wants to read it.
pub(crate) fn without_shell<'a>(command: &Text<'a>) -> Text<'a> {
    let decoded = command.to_str();
    let script = decoded.split_once(" -lc ").and_then(|(shell, script)| {
        let name = shell.rsplit('/').next().unwrap_or(shell);
        matches!(name, "bash" | "zsh" | "sh")
            .then(|| one_word(script))
            .flatten()
    });
    match script {
        Some(script) => Text::new(script),
        None => command.clone(),
    }
}

/// The text taken as one word of a shell; nothing when it is more than one.
fn one_word(text: &str) -> Option<String> {
    let mut word = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(it) = chars.next() {
        match it {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    it => word.push(it),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        it @ ('"' | '\\' | '$' | '`') => word.push(it),
                        it => word.extend(['\\', it]),
                    },
                    it => word.push(it),
                }
            },
            '\\' => word.push(chars.next()?),
            it if it.is_whitespace() => return None,
            it => word.push(it),
        }
    }
    Some(word).filter(|it| !it.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_shown_without_its_shell() {
        let check = |command: &str, script: &str| {
            assert_eq!(without_shell(&Text::new(command)).to_str(), script);
        };
        check("/bin/bash -lc 'ls && echo ok'", "ls && echo ok");
        check("/bin/bash -lc ls", "ls");
        check(
            r#"bash -lc "python3 -c 'print(\"a\")'""#,
            r#"python3 -c 'print("a")'"#,
        );
        check(r"zsh -lc 'it'\''s'", "it's");
        check("/bin/bash -lc ls -l", "/bin/bash -lc ls -l");
        check("/bin/bash -lc 'ls", "/bin/bash -lc 'ls");
        check("bash -c 'ls'", "bash -c 'ls'");
        check("/bin/bash -lc ''", "/bin/bash -lc ''");
        check("cargo test", "cargo test");
    }
}
