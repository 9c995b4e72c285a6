//! Errors in the words that people are shown.

use std::error::Error;

/// An error and its causes in one line. Rust puts the number of a system error behind its words
/// (`No such file or directory (os error 2)`); the words say it all, so the number is left out.
pub fn error_chain(err: &dyn Error) -> String {
    let mut text = without_number(err.to_string());
    let mut cause = err.source();
    while let Some(err) = cause {
        text.push_str(": ");
        text.push_str(&without_number(err.to_string()));
        cause = err.source();
    }
    text
}

/// Takes out every ` (os error N)`, also in the middle: libraries put the text of a cause into their own.
fn without_number(mut text: String) -> String {
    const BEGIN: &str = " (os error ";
    // Only numbers are taken out: a file may be called ` (os error x)`.
    let mut from = 0;
    while let Some(at) = text[from..].find(BEGIN).map(|it| it + from) {
        let rest = &text[at + BEGIN.len()..];
        let n_digits = rest.len()
            - rest
                .trim_start_matches(|it: char| it.is_ascii_digit())
                .len();
        if n_digits > 0 && rest[n_digits..].starts_with(')') {
            text.replace_range(at..at + BEGIN.len() + n_digits + 1, "");
            from = at;
        } else {
            from = at + BEGIN.len();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn causes_follow_without_the_number_of_the_system() {
        let err = Outer("cannot start `x`", io::Error::from_raw_os_error(2));
        assert_eq!(
            error_chain(&err),
            "cannot start `x`: No such file or directory"
        );
    }

    #[test]
    fn only_numbers_are_taken_out() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error_chain(&io::Error::other(text.to_owned())), expected);
        };
        check("a (os error 2): b (os error 13)", "a: b");
        check("a (os error x) (os error ", "a (os error x) (os error ");
        check("plain", "plain");
    }
}
