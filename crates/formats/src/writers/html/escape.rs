//! Foreign text as the text of a page or of a quoted attribute.

use std::borrow::Cow;

use crate::display_safe;

/// The same text without a character that HTML, or a terminal it is copied to, would obey.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let safe = display_safe(text);
    if !safe.contains(['&', '<', '>', '"', '\'']) {
        return safe;
    }
    let mut escaped = String::with_capacity(safe.len() + safe.len() / 8);
    for it in safe.chars() {
        match it {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(it),
        }
    }
    Cow::Owned(escaped)
}
