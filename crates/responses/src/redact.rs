//! Keeps secrets out of what an endpoint says: some repeat the key in their errors.

use memchr::memmem;

/// What is shown instead of each byte.
const MASK: u8 = b'*';
/// Shorter ones are no secrets, and would hide innocent text.
const MIN_SECRET: usize = 8;

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
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let secrets = secrets.into_iter().filter(|it| it.len() >= MIN_SECRET);
        Self {
            secrets: secrets.map(<[u8]>::to_vec).collect(),
            held: Vec::new(),
        }
    }

    /// What may be shown of what has come.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(chunk);
        self.mask(&mut all);
        let begun = self.secrets.iter().map(|it| begun(&all, it)).max();
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
                bytes[at + found..at + found + secret.len()].fill(MASK);
                at += found + secret.len();
            }
        }
    }
}

/// How many bytes at the end could be the beginning of a secret.
fn begun(bytes: &[u8], secret: &[u8]) -> usize {
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
            let mut redactor = Redactor::new([b"sk-canary-1".as_slice()]);
            let mut out = redactor.push(&text[..cut]);
            out.extend(redactor.push(&text[cut..]));
            out.extend(redactor.end());
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, "key *********** and sk-canar, ***********", "{cut}");
        }
    }

    #[test]
    fn without_secrets_nothing_waits() {
        let mut redactor = Redactor::new([]);
        assert_eq!(redactor.push(b"abc"), b"abc");
    }
}
