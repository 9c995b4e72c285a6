//! Shortening strings that are too long to keep: where they may be cut, and how the cut is marked.

/// What stands at the end of a string that was shortened.
pub fn cut_mark(n_missing: usize) -> String {
    format!("… [{n_missing} bytes cut]")
}

/// The last place at or before `limit` where the inside of a JSON string may be cut: no character, escape or
/// surrogate pair is split.
pub fn json_boundary(inside: &[u8], limit: usize) -> usize {
    if inside.len() <= limit {
        return inside.len();
    }
    let (mut boundary, mut at) = (0, 0);
    let mut is_after_high_surrogate = false;
    // From the start, because escapes have different lengths: from the middle, `\\u` could be either.
    while at <= limit {
        // In bounds: the text is longer than `limit`.
        let byte = inside[at];
        // A character's later bytes and the second half of a surrogate pair belong to what precedes them.
        if byte & 0xC0 != 0x80 && !is_after_high_surrogate {
            boundary = at;
        }
        is_after_high_surrogate = false;
        at += match (byte, inside.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                is_after_high_surrogate = is_high_surrogate(&inside[at..]);
                6
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    boundary
}

/// True for an escape of `\ud800` to `\udbff`.
fn is_high_surrogate(escape: &[u8]) -> bool {
    matches!(escape.get(2), Some(b'd' | b'D'))
        && matches!(escape.get(3), Some(b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B'))
}
