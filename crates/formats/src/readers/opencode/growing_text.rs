//! Parts that grow: how much of each was shown, and which have ended.
//!
//! A part comes again whole with every update. What is new in it is found by its length and the last
//! few bytes before that, so that a long text is not compared from its start each time; a text that
//! changed in its middle is noticed when it ends.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use model::{ItemId, Text};

/// Parts that grow at once; a server that starts more without ending any loses track of the oldest.
const MAX_GROWING: usize = 256;
/// Parts remembered after their end, to know an update that comes too late.
const MAX_ENDED: usize = 1024;
/// Bytes compared at the place where new text begins.
const TAIL: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct GrowingTexts {
    parts: Vec<EmittedText>,
    ended: VecDeque<u64>,
}

#[derive(Clone, Debug)]
struct EmittedText {
    id: ItemId<'static>,
    message: String,
    n_bytes: usize,
    tail: String,
}

impl GrowingTexts {
    pub(super) fn begin(&mut self, id: &ItemId<'_>, message: Option<&str>) {
        if self.parts.len() >= MAX_GROWING {
            self.parts.remove(0);
        }
        self.parts.push(EmittedText {
            id: id.clone().into_owned(),
            message: message.unwrap_or_default().to_owned(),
            n_bytes: 0,
            tail: String::new(),
        });
    }

    pub(super) fn has(&self, id: &ItemId<'_>) -> bool {
        self.parts.iter().any(|it| it.id == *id)
    }

    /// More was shown of a part.
    pub(super) fn add(&mut self, id: &ItemId<'_>, text: &Text<'_>) {
        if let Some(shown) = self.parts.iter_mut().rfind(|it| it.id == *id) {
            shown.add(&text.to_str());
        }
    }

    /// What the whole text so far has beyond what was shown; none when it does not continue it.
    pub(super) fn news(&self, id: &ItemId<'_>, whole: &Text<'_>) -> Option<Text<'static>> {
        let shown = self.parts.iter().rfind(|it| it.id == *id)?;
        let whole = whole.to_str();
        if whole.len() <= shown.n_bytes || !whole.is_char_boundary(shown.n_bytes) {
            return None;
        }
        let (before, news) = whole.split_at(shown.n_bytes);
        before
            .ends_with(&shown.tail)
            .then(|| Text::new(news.to_owned()))
    }

    pub(super) fn end(&mut self, id: &ItemId<'_>) {
        self.parts.retain(|it| it.id != *id);
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(hash(id));
    }

    pub(super) fn has_ended(&self, id: &ItemId<'_>) -> bool {
        self.ended.contains(&hash(id))
    }

    /// The parts of a message that still grow.
    pub(super) fn of_message(&self, message: &str) -> Vec<ItemId<'static>> {
        let parts = self.parts.iter().filter(|it| it.message == message);
        parts.map(|it| it.id.clone()).collect()
    }

    pub(super) fn forget_run(&mut self) {
        self.parts.clear();
    }
}

impl EmittedText {
    fn add(&mut self, text: &str) {
        self.n_bytes += text.len();
        self.tail.push_str(text);
        if self.tail.len() > TAIL {
            let mut from = self.tail.len() - TAIL;
            while !self.tail.is_char_boundary(from) {
                from += 1;
            }
            self.tail.drain(..from);
        }
    }
}

fn hash(id: &ItemId<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.as_str().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_found() {
        let mut growing = GrowingTexts::default();
        let id = ItemId::new("p");
        growing.begin(&id, None);
        let mut whole = String::new();
        for piece in ["", "é", "a\n", &"long ".repeat(20), "é!"] {
            whole.push_str(piece);
            let news = growing.news(&id, &Text::new(&*whole));
            assert_eq!(
                news.as_ref().map(|it| it.to_string()).unwrap_or_default(),
                piece
            );
            if let Some(news) = news {
                growing.add(&id, &news);
            }
        }
        assert_eq!(growing.news(&id, &Text::new(&*whole)), None);
        assert_eq!(growing.news(&id, &Text::new("x".repeat(999))), None);
    }
}
