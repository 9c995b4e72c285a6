//! A replacement as lines that go and lines that come.
//!
//! Lines that both sides begin or end with are context; what lies between is shown as removed and
//! added, as a whole. That is no minimal diff, but an edit is small and this is quick to read.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Old,
    New,
    /// So many lines that both have are not shown.
    Gap(usize),
}

/// The lines of a change in the order they are shown, with so many of context on each side of it.
pub(crate) fn lines<'a>(old: &'a str, new: &'a str, context: usize) -> Vec<(Side, &'a str)> {
    let old = split(old);
    let new = split(new);
    let shorter = old.len().min(new.len());
    let n_before = (0..shorter).take_while(|&n| old[n] == new[n]).count();
    // A line that was counted from the front must not be counted again from the end.
    let n_after = (0..shorter - n_before)
        .take_while(|&n| old[old.len() - 1 - n] == new[new.len() - 1 - n])
        .count();
    let before = &old[n_before.saturating_sub(context)..n_before];
    let after = &old[old.len() - n_after..][..n_after.min(context)];
    let gap = |n: usize| (n > 0).then_some((Side::Gap(n), ""));
    let mut lines = Vec::new();
    lines.extend(gap(n_before - before.len()));
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
    lines.extend(gap(n_after - after.len()));
    lines
}

fn split<'a>(text: &'a str) -> Vec<&'a str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    // Another kind of line end is no change that people want to see.
    let without_cr = |line: &'a str| line.strip_suffix('\r').unwrap_or(line);
    text.split('\n').map(without_cr).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(old: &str, new: &str, expect: Expect) {
        let mut shown = String::new();
        for (side, line) in lines(old, new, 2) {
            let sign = match side {
                Side::Both => " ".to_owned(),
                Side::Old => "-".to_owned(),
                Side::New => "+".to_owned(),
                Side::Gap(n) => format!("… {n}"),
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
            … 1
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
