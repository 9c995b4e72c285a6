//! Texts that come again whole with every update: how much of each was shown.
//!
//! What is new is found by the length of what was shown and its last few bytes, so that a long text is
//! not compared from its start each time; a text that changed in its middle is noticed when it ends.

/// Bytes compared at the place where new text begins.
const TAIL: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct ShownText {
    n_bytes: usize,
    tail: String,
}

impl ShownText {
    /// What the whole text so far has beyond what was shown; none when it does not continue it.
    pub(super) fn news<'t>(&self, whole: &'t str) -> Option<&'t str> {
        // A shorter text, or one that is cut inside a character here, is not the one that was shown.
        let before = whole.get(..self.n_bytes)?;
        let news = &whole[self.n_bytes..];
        (!news.is_empty() && before.ends_with(&self.tail)).then_some(news)
    }

    /// More was shown.
    pub(super) fn add(&mut self, text: &str) {
        self.n_bytes += text.len();
        self.tail.push_str(text);
        let from = self.tail.len().saturating_sub(TAIL);
        // Rounded up, so that the tail never grows past its bound.
        self.tail.drain(..self.tail.ceil_char_boundary(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_found() {
        let mut shown = ShownText::default();
        let mut whole = String::new();
        for piece in ["", "é", "a\n", &"long ".repeat(20), "é!"] {
            whole.push_str(piece);
            let news = shown.news(&whole);
            assert_eq!(news.unwrap_or_default(), piece);
            shown.add(piece);
        }
        assert_eq!(shown.news(&whole), None);
        assert_eq!(shown.news(&"x".repeat(999)), None);
    }
}
