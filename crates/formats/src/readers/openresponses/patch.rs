//! The diff of one file in a patch: lines that begin with `+`, `-` or a space, under `@@` headers.

use model::{Diff, Text};

/// The text before and after, as far as the diff shows it.
pub(super) fn patch<'a>(path: Text<'a>, diff: &Text<'_>, is_new: bool) -> Diff<'a> {
    let diff = diff.to_str();
    let (mut old, mut new) = (String::new(), String::new());
    let push = |text: &mut String, line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for line in diff.lines() {
        match line.split_at_checked(1) {
            Some(("+", rest)) => push(&mut new, rest),
            Some(("-", rest)) => push(&mut old, rest),
            Some((" ", rest)) => {
                push(&mut old, rest);
                push(&mut new, rest);
            }
            _ if line.starts_with("@@") || line.starts_with("***") => (),
            // An unchanged line that is empty may come without its leading space.
            _ => {
                push(&mut old, line);
                push(&mut new, line);
            }
        }
    }
    Diff {
        path,
        old: (!is_new).then(|| Text::new(old)),
        new: Text::new(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_kept_apart() {
        let text = Text::new("@@ def f\n a\n-b\n+c\n\n");
        let diff = patch(Text::new("x"), &text, false);
        assert_eq!(diff.old, Some(Text::new("a\nb\n\n")));
        assert_eq!(diff.new, Text::new("a\nc\n\n"));
        let diff = patch(Text::new("x"), &Text::new("+a\n+b"), true);
        assert_eq!((diff.old, diff.new), (None, Text::new("a\nb\n")));
    }
}
