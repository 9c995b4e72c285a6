//! Foreign text made harmless for a terminal. Everything a person is shown passes through here once.
//!
//! Agents print what models, tools and web pages say. A terminal obeys control characters in it:
//! they move the cursor, rename the window, fill the clipboard, ask for answers on stdin, hide
//! text. Other characters show as nothing at all, or change the order in which the rest is read.
//! Here each of them becomes a visible sign instead; nothing is removed.
//! Left alone: line ends and tabs, and joiners and variation selectors where a script or an emoji
//! needs them. Colours are the printing side's own and are added afterwards.

use std::borrow::Cow;

/// The same text with every control and every invisible character made visible; CR LF becomes a
/// plain line end.
///
/// Control characters below U+0020 and DEL show as their control pictures (ESC as `␛`), the C1
/// controls, the bidirectional controls, tag characters and the like as `\u{…}`. Applying it twice
/// changes nothing more.
pub fn display_safe(text: &str) -> Cow<'_, str> {
    let is_suspect = |it: char| sign(it) != CharClass::Plain;
    let Some(first) = text.find(is_suspect) else {
        return Cow::Borrowed(text);
    };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first]);
    // What the next character may be joined to.
    let mut base = text[..first].chars().next_back();
    let mut chars = text[first..].chars().peekable();
    while let Some(it) = chars.next() {
        let next = chars.peek().copied();
        if it == '\r' && next == Some('\n') {
            continue;
        }
        let is_kept = match sign(it) {
            CharClass::Plain => true,
            CharClass::Order | CharClass::Hidden => false,
            CharClass::Joiner => joins(base) && joins(next),
            CharClass::Variation => can_vary(base, it, next),
        };
        if is_kept {
            safe.push(it);
        } else {
            push_sign(&mut safe, it);
        }
        base = match sign(it) {
            CharClass::Plain => Some(it),
            // A joiner may follow a heart in its coloured form, another selector may not.
            CharClass::Variation if is_kept && joins(base) && next == Some(ZWJ) => base,
            CharClass::Order | CharClass::Hidden | CharClass::Joiner | CharClass::Variation => None,
        };
    }
    Cow::Owned(safe)
}

/// A text for approval on one line with nothing hidden: [`display_safe`], plus visible line ends,
/// tabs, unusual spaces and leading or trailing spaces.
///
/// Ordinary text stays as it is. Applying it twice changes nothing more.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_plain = !text.starts_with(' ') && !text.ends_with(' ');
    if is_plain && !text.contains(|it| is_blank(it) || sign(it) != CharClass::Plain) {
        return Cow::Borrowed(text);
    }
    let trimmed = text.trim_matches(' ');
    let n_before = text.len() - text.trim_start_matches(' ').len();
    // In a text of nothing but spaces all of them stand in front.
    let n_after = text.len() - n_before.min(text.len()) - trimmed.len();
    let mut shown = "\u{2420}".repeat(n_before);
    // A CR LF must not lose its CR here: it is part of what runs.
    for (n, line) in trimmed.split("\r\n").enumerate() {
        if n > 0 {
            shown.push_str("\u{240d}\u{240a}");
        }
        for it in display_safe(line).chars() {
            match it {
                '\n' | '\t' => push_sign(&mut shown, it),
                it if is_blank(it) => shown.extend(it.escape_unicode()),
                it => shown.push(it),
            }
        }
    }
    shown.push_str(&"\u{2420}".repeat(n_after));
    Cow::Owned(shown)
}

const ZWJ: char = '\u{200d}';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharClass {
    Plain,
    /// A terminal would obey it.
    Order,
    /// It shows as nothing, or changes the order in which the text is read.
    Hidden,
    /// Emoji, Persian and the scripts of India need it between two of their characters.
    Joiner,
    /// Chooses a form of the character before it.
    Variation,
}

fn sign(it: char) -> CharClass {
    match it {
        '\n' | '\t' | ' '..='~' => CharClass::Plain,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => CharClass::Order,
        '\u{200c}' | ZWJ => CharClass::Joiner,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => CharClass::Variation,
        '\u{180b}'..='\u{180d}' | '\u{180f}' => CharClass::Variation,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' => CharClass::Hidden,
        '\u{17b4}'..='\u{17b5}' | '\u{180e}' | '\u{200b}' => CharClass::Hidden,
        '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => CharClass::Hidden,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => CharClass::Hidden,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => CharClass::Hidden,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => CharClass::Hidden,
        _ => CharClass::Plain,
    }
}

/// True for a character that a joiner may stand beside: no ASCII, no Latin letter.
fn joins(it: Option<char>) -> bool {
    it.is_some_and(|it| it >= '\u{300}' && sign(it) == CharClass::Plain && !it.is_whitespace())
}

fn can_vary(base: Option<char>, selector: char, next: Option<char>) -> bool {
    let Some(base) = base else { return false };
    match (selector, base) {
        // Keycaps: a digit, the selector, and the cap.
        ('\u{fe0f}', '0'..='9' | '#' | '*') => next == Some('\u{20e3}'),
        ('\u{fe00}'..='\u{fe0f}', '\u{a9}' | '\u{ae}') => true,
        // Forms of ideographs.
        ('\u{e0100}'..='\u{e01ef}', base) => base >= '\u{2e80}' && joins(Some(base)),
        (_, base) => joins(Some(base)),
    }
}

/// White space that is no plain space, or looks like one.
fn is_blank(it: char) -> bool {
    it != ' ' && it.is_whitespace() || it == '\u{2800}'
}

fn push_sign(safe: &mut String, it: char) {
    let code = u32::from(it);
    match it {
        '\0'..='\x1f' => safe.extend(char::from_u32(0x2400 + code)),
        '\x7f' => safe.push('\u{2421}'),
        _ => safe.extend(it.escape_unicode()),
    }
}

#[cfg(test)]
mod tests;
