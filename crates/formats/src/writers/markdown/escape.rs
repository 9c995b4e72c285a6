//! Foreign text that is no Markdown, in a place where Markdown is read.

use crate::{display_safe, visible};

/// Text that shows as it is: everything Markdown or HTML would act on is escaped, lines stay lines.
pub(super) fn plain(text: &str) -> String {
    let safe = display_safe(text);
    let mut escaped = String::with_capacity(safe.len() + safe.len() / 8);
    for (n, line) in safe.split('\n').enumerate() {
        if n > 0 {
            // Two lines of a paragraph flow together; a blank line is a paragraph's end anyway.
            let is_between = !escaped.is_empty() && !escaped.ends_with('\n');
            if is_between && !line.trim().is_empty() {
                escaped.push('\\');
            }
            escaped.push('\n');
        }
        push_line(line, &mut escaped);
    }
    escaped
}

fn push_line(line: &str, escaped: &mut String) {
    let text = line.trim_start_matches([' ', '\t']);
    if text.trim().is_empty() {
        return;
    }
    // White space before a line is an order; kept white space is not.
    for it in line[..line.len() - text.len()].chars() {
        escaped.push_str(if it == '\t' { "&emsp;&emsp;" } else { "&nbsp;" });
    }
    let text = text.trim_end();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, it)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, it)| *it);
        let is_order = match it {
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '!' => true,
            // Inside a word it has no meaning, and names of files and functions are full of it.
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '#' | '+' | '-' | '=' => at == 0,
            // Behind the number that a line begins with, it would make a list.
            '.' | ')' => digits > 0 && at == digits,
            // An address becomes a link by itself, which shows the same.
            _ => false,
        };
        match it {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            _ if is_order => {
                escaped.push('\\');
                escaped.push(it);
            }
            _ => escaped.push(it),
        }
        before = it;
    }
}

/// Text between backticks, more of them than it has in a row.
pub(super) fn inline(text: &str) -> String {
    let safe = visible(text.trim());
    if safe.is_empty() {
        return String::new();
    }
    let longest = safe.split(|it| it != '`').map(str::len).max();
    let ticks = "`".repeat(longest.unwrap_or_default() + 1);
    // A tick at the edge would join the fence; Markdown drops the space again.
    let space = if safe.starts_with('`') || safe.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{safe}{space}{ticks}")
}
