//! Nodes: the machines that agents run on.

use std::fmt;

/// The name of a node. A session's agent runs on its home node, and nobody else works on its commands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(String);

/// As many as a label of a host name has.
const MAX_LENGTH: usize = 63;

impl Node {
    /// Letters in lower case, digits, `.`, `_` and `-`, beginning with a letter or a digit, as host names do;
    /// `None` for any other name.
    pub fn find(name: &str) -> Option<Self> {
        let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        let begins = name.as_bytes().first().is_some_and(|it| is_letter(*it));
        let is_inner = |it| is_letter(it) || b"._-".contains(&it);
        let is_name = begins && name.len() <= MAX_LENGTH && name.bytes().all(is_inner);
        is_name.then(|| Self(name.to_owned()))
    }

    /// A name that the store has.
    pub(crate) fn stored(name: String) -> Self {
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Node {
    /// The only node of a store on one machine.
    fn default() -> Self {
        Self("local".to_owned())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_like_that_of_a_host() {
        let long = "x".repeat(64);
        let names = [
            "dev-1",
            "7.b_c",
            "",
            "-a",
            "A",
            "a b",
            "ä",
            &long,
            &long[1..],
        ];
        let are_names = names.map(|it| Node::find(it).is_some());
        let expected = [true, true, false, false, false, false, false, false, true];
        assert_eq!(are_names, expected);
    }
}
