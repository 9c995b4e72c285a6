//! Foreign text made harmless for a terminal. Everything a person is shown passes through here once.
//!
//! Agents print what models, tools and web pages say. A terminal obeys control characters in it:
//! they move the cursor, rename the window, fill the clipboard, ask for answers on stdin, hide
//! text. Here each of them becomes a visible sign instead of an order; nothing is removed.
//! Left alone: line ends and tabs. Colours are the printing side's own and are added afterwards.

use std::borrow::Cow;

/// The same text with every control character made visible; CR LF becomes a plain line end.
///
/// Control characters below U+0020 and DEL show as their control pictures (ESC as `␛`), the C1
/// controls and the bidirectional overrides as `\u{…}`. Applying it twice changes nothing more.
pub fn display_safe(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_order) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(clean);
    let mut chars = rest.chars().peekable();
    while let Some(it) = chars.next() {
        if it == '\r' && chars.peek() == Some(&'\n') {
            continue;
        }
        if is_order(it) {
            push_sign(&mut safe, it);
        } else {
            safe.push(it);
        }
    }
    Cow::Owned(safe)
}

/// True for what a terminal would obey, or use to show text in another order than it is stored.
fn is_order(it: char) -> bool {
    match it {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => false,
    }
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
