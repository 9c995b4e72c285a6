//! Lists of what an agent has announced and may refer to again, with a bound.
//!
//! A reader remembers calls, requests and messages by id until their end. An agent that never ends
//! them must not fill the memory, so that a full list forgets its oldest entry.

use std::ops::{Deref, DerefMut};

/// At most `MAX` entries, the latest ones.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> Recent<T, MAX> {
    /// Adds an entry and returns its place.
    pub(crate) fn push(&mut self, entry: T) -> usize {
        // Shifts a few hundred entries at most, and only when an agent leaves that many open.
        if self.0.len() >= MAX {
            self.0.remove(0);
        }
        self.0.push(entry);
        self.0.len() - 1
    }
}

impl<T, const MAX: usize> Recent<(String, T), MAX> {
    pub(crate) fn has(&self, id: &str) -> bool {
        // From the back: most messages are about the latest.
        self.0.iter().rev().any(|it| it.0 == id)
    }

    /// Takes out the first entry of an id.
    pub(crate) fn take(&mut self, id: &str) -> Option<T> {
        let at = self.0.iter().position(|it| it.0 == id)?;
        Some(self.0.remove(at).1)
    }
}

impl<T, const MAX: usize> Default for Recent<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize> Deref for Recent<T, MAX> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T, const MAX: usize> DerefMut for Recent<T, MAX> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}
