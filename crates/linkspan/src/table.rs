//! Tables for people: columns that line up, in plain text.

/// One line per row; the first row is the heading.
pub(crate) fn aligned<const N: usize>(rows: &[[impl AsRef<str>; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].as_ref());
        cells.map(|it| it.chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{:width$}", cell.as_ref()))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            ["format", "read", "write", "profile", "what it is"],
            ["ä", "yes", "-", "", "first"],
            ["", "", "", "other", "second"],
        ];
        expect![[r#"
            format  read  write  profile  what it is
            ä       yes   -               first
                                 other    second
        "#]]
        .assert_eq(&aligned(&rows));
    }
}
