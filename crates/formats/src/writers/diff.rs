//! A replacement as lines that go and lines that come.
//!
//! Lines that both sides begin or end with are context; what lies between is shown as removed and
//! added, as a whole. That is no minimal diff, but an edit is small and this is quick to read.

/// Lines of context on each side of a change.
const CONTEXT: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Old,
    New,
}

/// The lines of a change in the order they are shown.
pub(crate) fn lines<'a>(old: &'a str, new: &'a str) -> Vec<(Side, &'a str)> {
    let old = split(old);
    let new = split(new);
    let shorter = old.len().min(new.len());
    let n_before = (0..shorter).take_while(|&n| old[n] == new[n]).count();
    let n_after = (0..shorter - n_before)
        .take_while(|&n| old[old.len() - 1 - n] == new[new.len() - 1 - n])
        .count();
    let before = &old[n_before.saturating_sub(CONTEXT)..n_before];
    let after = &old[old.len() - n_after..][..n_after.min(CONTEXT)];
    let mut lines = Vec::new();
    lines.extend(before.iter().map(|it| (Side::Both, *it)));
    lines.extend(
        old[n_before..old.len() - n_after]
            .iter()
            .map(|it| (Side::Old, *it)),
    );
    lines.extend(
        new[n_before..new.len() - n_after]
            .iter()
            .map(|it| (Side::New, *it)),
    );
    lines.extend(after.iter().map(|it| (Side::Both, *it)));
    lines
}

fn split<'a>(text: &'a str) -> Vec<&'a str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let without_cr = |line: &'a str| line.strip_suffix('\r').unwrap_or(line);
    text.split('\n').map(without_cr).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(old: &str, new: &str, expect: Expect) {
        let mut shown = String::new();
        for (side, line) in lines(old, new) {
            let sign = match side {
                Side::Both => ' ',
                Side::Old => '-',
                Side::New => '+',
            };
            shown += &format!("{sign}{line}\n");
        }
        expect.assert_eq(&shown);
    }

    #[test]
    fn context_is_kept_short() {
        check(
            "a\nb\nc\nd\ne\nf",
            "a\nb\nc\nX\ne\nf",
            expect![[r#"
             b
             c
            -d
            +X
             e
             f
        "#]],
        );
    }

    #[test]
    fn added_in_the_middle_of_equal_lines() {
        check(
            "a\na\n",
            "a\na\na\n",
            expect![[r#"
             a
             a
            +a
        "#]],
        );
    }

    #[test]
    fn a_new_file_and_an_emptied_one() {
        check(
            "",
            "x\n\ny\n",
            expect![[r#"
            +x
            +
            +y
        "#]],
        );
        check(
            "x",
            "",
            expect![[r#"
            -x
        "#]],
        );
    }

    #[test]
    fn line_ends_of_both_kinds_are_the_same() {
        check(
            "a\r\nb\r\n",
            "a\nc\n",
            expect![[r#"
             a
            -b
            +c
        "#]],
        );
    }
}
