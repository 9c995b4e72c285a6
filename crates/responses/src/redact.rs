//! Keeps secrets out of the answers of an endpoint: some repeat the key in their errors.
//!
//! Only what cannot be anything else is hidden. A key such as `not-needed`, or a header that names a
//! tenant, would otherwise take the words of the answer with it, and the keywords of the stream.

use memchr::memmem;

/// What is shown instead of each byte.
const MASK: u8 = b'*';
/// Shorter values are not secrets, and redacting them would hide innocent text.
const MIN_SECRET: usize = 8;
/// What the name of a header has in it when its value is a secret.
const SECRET_NAMES: &[&str] = &[
    "auth",
    "cookie",
    "credential",
    "key",
    "password",
    "secret",
    "token",
];

/// Hides secrets in a stream, wherever it is cut.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Vec<u8>>,
    /// The end of what came, when a secret may have begun in it.
    held: Vec<u8>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = secrets.into_iter().filter(|it| is_secret(it));
        Self {
            secrets: secrets.map(|it| it.as_bytes().to_vec()).collect(),
            held: Vec::new(),
        }
    }

    /// The part of the input so far that may be shown.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(chunk);
        // First, so that the end of one secret is not held as the beginning of another.
        self.mask(&mut all);
        let begun = self.secrets.iter().map(|it| begun(&all, it)).max();
        // The rest of a secret may come with the next chunk.
        self.held = all.split_off(all.len() - begun.unwrap_or(0));
        all
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// A text that is whole.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn mask(&self, bytes: &mut [u8]) {
        for secret in &self.secrets {
            let mut at = 0;
            while let Some(found) = memmem::find(&bytes[at..], secret) {
                // Of the same length, so that it can be done in place.
                bytes[at + found..at + found + secret.len()].fill(MASK);
                at += found + secret.len();
            }
        }
    }
}

/// The parts of a header that may not be repeated: `Bearer` may, and the name of a cookie.
pub(crate) fn secrets<'a>(name: &str, value: &'a str) -> impl Iterator<Item = &'a str> {
    let name = name.to_ascii_lowercase();
    let is_secret = SECRET_NAMES.iter().any(|it| name.contains(it));
    let parts = value.split([' ', '\t', ';', '=']);
    parts.filter(move |_| is_secret)
}

/// Not a word that may stand in an answer, such as `response.created`.
fn is_secret(text: &str) -> bool {
    let is_word = |it: u8| it.is_ascii_lowercase() || b"_-./: ".contains(&it);
    text.len() >= MIN_SECRET && !text.bytes().all(is_word)
}

/// How many bytes at the end could be the beginning of a secret.
fn begun(bytes: &[u8], secret: &[u8]) -> usize {
    // Whole secrets are masked already. `is_secret` lets no empty one through.
    let longest = bytes.len().min(secret.len() - 1);
    let mut lengths = (1..=longest).rev();
    lengths
        .find(|it| bytes.ends_with(&secret[..*it]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_wherever_the_stream_is_cut() {
        let text = b"key sk-canary-1 and sk-canar, sk-canary-1";
        for cut in 0..text.len() {
            let mut redactor = Redactor::new(["sk-canary-1"]);
            let mut out = redactor.push(&text[..cut]);
            out.extend(redactor.push(&text[cut..]));
            out.extend(redactor.end());
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, "key *********** and sk-canar, ***********", "{cut}");
        }
    }

    #[test]
    fn ordinary_text_is_not_redacted() {
        let headers = [
            ("x-tenant-name", "Team-42-of-many"),
            ("authorization", "Bearer Qm9zdG9uMTIz"),
            ("x-api-key", "output_text"),
            ("Cookie", "session=c00kie-value; theme=response.created"),
        ];
        let secrets = headers
            .iter()
            .flat_map(|(name, value)| secrets(name, value));
        let redactor = Redactor::new(secrets);
        let text =
            "Team-42-of-many Bearer Qm9zdG9uMTIz output_text session=c00kie-value response.created";
        assert_eq!(
            redactor.text(text),
            "Team-42-of-many Bearer ************ output_text session=************ response.created"
        );
    }

    #[test]
    fn without_secrets_nothing_waits() {
        let mut redactor = Redactor::new([]);
        assert_eq!(redactor.push(b"abc"), b"abc");
    }
}
