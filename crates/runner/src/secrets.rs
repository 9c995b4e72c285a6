//! Redacts secrets in an agent's stderr.
//!
//! Variables of the environment are secrets by their names, and other keys by their
//! shapes. Agents print their keys when a login fails, and a transcript is shown to more people than an
//! environment is. The stdout of an agent is its work, and stays as it is.

mod shapes;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;

/// How the name of a variable ends that holds a secret.
const NAMES: &[&str] = &[
    "CREDENTIAL",
    "CREDENTIALS",
    "DSN",
    "KEY",
    "PASSPHRASE",
    "PASSWORD",
    "PAT",
    "SECRET",
    "TOKEN",
];

/// How the name of a variable ends that holds an address, which is a secret unless it is a plain one.
const ADDRESSES: &[&str] = &["URI", "URL"];

/// A shorter value is a word like any other, and would be found everywhere.
const MIN_LENGTH: usize = 8;

/// As much of a secret that was cut off gives something away.
const MIN_PIECE: usize = 4;

const REDACTED: &str = "[redacted]";

/// What must not be repeated, the longest first.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets among these variables.
    pub(crate) fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in variables {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
                && holds_secret(name, value)
            {
                // Stderr is looked at line by line, and keys may have several.
                let lines = value.lines().map(str::trim);
                secrets.extend(lines.filter(|it| it.len() >= MIN_LENGTH).map(str::to_owned));
            }
        }
        // A secret that begins with a shorter one would leave its rest behind otherwise.
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets)
    }

    /// The text without secrets.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(&**secret) {
                text = Cow::Owned(text.replace(&**secret, REDACTED));
            }
        }
        let found = shapes::find(&text);
        if found.is_empty() {
            return text;
        }
        let mut text = text.into_owned();
        // From the end, so that the places before it stay right.
        for range in found.into_iter().rev() {
            text.replace_range(range, REDACTED);
        }
        Cow::Owned(text)
    }

    /// Takes the beginning of a secret off the end of a text that was cut there.
    pub(crate) fn trim_end(&self, text: &mut String) {
        let piece = |secret: &String| {
            let cuts = (MIN_PIECE..secret.len()).rev();
            // `get`, because a cut may fall into the middle of a character.
            let mut pieces = cuts.filter_map(|at| secret.get(..at));
            pieces.find(|it| text.ends_with(it)).map(str::len)
        };
        let known = self.0.iter().filter_map(piece).max();
        let known = known.map(|length| text.len() - length);
        if let Some(start) = known.into_iter().chain(shapes::cut_off(text)).min() {
            text.truncate(start);
            text.push_str(REDACTED);
        }
    }

    /// Takes the end of a secret off the beginning of a text that has lost its own.
    pub(crate) fn trim_start(&self, text: &mut String) {
        let piece = |secret: &String| {
            let cuts = 1..=secret.len().saturating_sub(MIN_PIECE);
            let mut pieces = cuts.filter_map(|at| secret.get(at..));
            pieces.find(|it| text.starts_with(it)).map(str::len)
        };
        if let Some(length) = self.0.iter().filter_map(piece).max() {
            text.replace_range(..length, REDACTED);
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// `API_KEY`, `TOKEN` and `db_password`, but not `MONKEY`.
pub(crate) fn is_secret(name: &str) -> bool {
    ends_with_one_of(name, NAMES)
}

/// Whether a variable of this name has a secret in it, now that it has this value.
fn holds_secret(name: &str, value: &str) -> bool {
    // A plain address is worth reading when the agent cannot reach it.
    if ends_with_one_of(name, ADDRESSES) {
        return !shapes::is_plain_address(value.trim());
    }
    // Google's way: the name of a file, which is worth knowing when it cannot be read.
    let is_file = value.starts_with('/') && value.ends_with(".json");
    is_secret(name) && !is_file
}

fn ends_with_one_of(name: &str, words: &[&str]) -> bool {
    // The last word alone: `PASSWORD_STORE_DIR` and `KEY_FILE` name places, not secrets.
    let last = name.rsplit('_').next().unwrap_or_default();
    words.iter().any(|it| last.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        Secrets::of(variables.iter().map(|it| (it.0.into(), it.1.into())))
    }

    #[test]
    fn variables_are_secret_by_their_names() {
        let named = [
            "API_KEY",
            "TOKEN",
            "github_token",
            "A_B_SECRET",
            "PASSWORD",
            "GITHUB_PAT",
            "SENTRY_DSN",
            "AWS_CREDENTIALS",
        ];
        assert!(named.iter().all(|it| is_secret(it)));
        let others = [
            "HOME",
            "MONKEY",
            "KEY_FILE",
            "TOKENS",
            "PASSWORD_STORE_DIR",
            "PWD",
            "COMPAT",
            "",
        ];
        assert!(!others.iter().any(|it| is_secret(it)));
    }

    #[test]
    fn values_are_replaced_wherever_they_stand() {
        let secrets = secrets(&[
            ("API_KEY", "sk-12345678"),
            ("LONG_KEY", "sk-12345678-more"),
            ("PEM_KEY", "-----BEGIN-----\nabcdefghijkl\n-----END-----"),
            ("SHORT_TOKEN", "1234567"),
            ("HOME", "/home/somebody"),
        ]);
        let text = "sk-12345678,sk-12345678-more! abcdefghijkl 1234567 /home/somebody";
        assert_eq!(
            secrets.redact(text),
            "[redacted],[redacted]! [redacted] 1234567 /home/somebody"
        );
        assert_eq!(format!("{secrets:?}"), "Secrets(5)");
    }

    #[test]
    fn addresses_and_shapes_of_keys_are_secrets_too() {
        let secrets = secrets(&[
            ("DATABASE_URL", "postgres://app:canary@db:5432/x"),
            ("GITHUB_PAT", "canary-of-github"),
            (
                "SLACK_WEBHOOK_URL",
                "https://hooks.slack.com/services/T0/B0/canarycanarycanary",
            ),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/key.json"),
        ]);
        let text = "postgres://app:canary@db:5432/x canary-of-github \
                    https://hooks.slack.com/services/T0/B0/canarycanarycanary \
                    http://127.0.0.1:8080/v1 /etc/google/key.json \
                    mysql://u:canary@h/x sk-canary0123456789abc";
        assert_eq!(
            secrets.redact(text),
            "[redacted] [redacted] [redacted] http://127.0.0.1:8080/v1 /etc/google/key.json \
             mysql://[redacted]@h/x [redacted]"
        );
        let mut cut = "bad key xoxb-cana".to_owned();
        Secrets::default().trim_end(&mut cut);
        assert_eq!(cut, "bad key [redacted]");
    }

    #[test]
    fn the_rest_of_a_truncated_secret_is_redacted() {
        let secrets = secrets(&[("API_KEY", "sk-12345678")]);
        let end = |text: &str| {
            let mut text = text.to_owned();
            secrets.trim_end(&mut text);
            text
        };
        assert_eq!(end("key: sk-12345"), "key: [redacted]");
        assert_eq!(end("key: sk-1"), "key: [redacted]");
        assert_eq!(end("key: sk-"), "key: sk-");
        let start = |text: &str| {
            let mut text = text.to_owned();
            secrets.trim_start(&mut text);
            text
        };
        assert_eq!(start("k-12345678 is wrong"), "[redacted] is wrong");
        assert_eq!(start("5678 is wrong"), "[redacted] is wrong");
        assert_eq!(start("678 is wrong"), "678 is wrong");
    }
}
