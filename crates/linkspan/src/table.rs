//! Tables for people: columns that line up, in plain text.

/// One line per row.
pub(crate) fn aligned<const N: usize>(
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let heading = heading.map(str::to_owned);
    let rows: Vec<[String; N]> = [heading].into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        // The padding of the last column would wrap on a narrow terminal.
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
        let heading = ["format", "read", "write", "profile", "what it is"];
        let rows = [
            ["ä", "yes", "-", "", "first"],
            ["", "", "", "other", "second"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned));
        expect![[r#"
            format  read  write  profile  what it is
            ä       yes   -               first
                                 other    second
        "#]]
        .assert_eq(&aligned(heading, rows));
    }
}
