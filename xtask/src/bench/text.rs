//! Words, code and program output for the corpus, from a generator that needs no clock.

/// splitmix64: small, seeded, and good enough for sizes and words.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() as usize) % (high - low + 1)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.between(0, from.len() - 1)]
    }

    /// From `low` to `high`, small ones as likely as large ones by order of magnitude.
    pub(crate) fn size(&mut self, low: usize, high: usize) -> usize {
        let share = self.next() as f64 / u64::MAX as f64;
        (low as f64 * (high as f64 / low as f64).powf(share)) as usize
    }

    /// In the form of a random UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}

const WORDS: [&str; 32] = [
    "the",
    "parser",
    "returns",
    "an",
    "error",
    "when",
    "file",
    "is",
    "empty,",
    "so",
    "I",
    "will",
    "add",
    "a",
    "test",
    "first",
    "and",
    "then",
    "fix",
    "it.",
    "Zeilenlänge",
    "naïve",
    "→",
    "`foo`",
    "\"quoted\"",
    "größer",
    "日本語",
    "✅",
    "🚀",
    "module",
    "function",
    "again",
];

/// Prose with line breaks, quotes, accents and emoji.
pub(crate) fn prose(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(random.pick(&WORDS));
        text.push(if random.between(0, 17) == 0 {
            '\n'
        } else {
            ' '
        });
    }
    text
}

const CODE: [&str; 10] = [
    "\tif err != nil {",
    "\t\treturn fmt.Errorf(\"cannot open %q: %w\", path, err)",
    "    let total: u64 = items.iter().map(|it| it.size).sum();",
    "def add(a, b):",
    "    return a + b",
    "",
    "const label = `\"${name}\" \\u00b7 ${count}`;",
    "  // größer als erwartet → siehe oben",
    "\t}",
    "#include <stdio.h>",
];

/// Lines of source, with tabs, quotes and backslashes.
pub(crate) fn code(random: &mut Random, bytes: usize) -> String {
    lines(random, bytes, &CODE)
}

const OUTPUT: [&str; 9] = [
    "\u{1b}[32m✓\u{1b}[0m parses an empty file (3 ms)",
    "\u{1b}[31m✗ fails on \"quoted\" names\u{1b}[39m",
    "   Compiling linkspan v0.1.0 (/workspace/crates/linkspan)",
    "warning: unused variable: `x`",
    "  --> src/main.rs:10:9\r",
    "test result: ok. 27 passed; 0 failed; 1 ignored",
    "-rw-r--r-- 1 user user   4096 Nov 15 17:55 README.md",
    "Traceback (most recent call last):\n\tFile \"a.py\", line 3",
    "🚀 deployed größer.example → 日本",
];

/// What programs print: colours, paths, tables.
pub(crate) fn output(random: &mut Random, bytes: usize) -> String {
    lines(random, bytes, &OUTPUT)
}

fn lines(random: &mut Random, bytes: usize, from: &[&str]) -> String {
    let mut text = String::with_capacity(bytes + 80);
    while text.len() < bytes {
        text.push_str(random.pick(from));
        text.push('\n');
    }
    text
}

/// Pieces of `low` to `high` bytes that add up to the text, cut between characters.
pub(crate) fn pieces<'a>(
    random: &mut Random,
    mut text: &'a str,
    low: usize,
    high: usize,
) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let end = text.ceil_char_boundary(random.between(low, high).min(text.len()));
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}
