//! Passwords from files that nobody else can read.

use std::fs;
use std::path::Path;

use super::address::AddressError;

/// The text of a file that its owner alone can read.
pub(super) fn read_private(path: &Path) -> Result<String, AddressError> {
    let failed = |source| AddressError::File {
        path: path.to_owned(),
        source,
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(AddressError::Exposed(path.to_owned()));
        }
    }
    fs::read_to_string(path).map_err(failed)
}

/// The password of the first line that matches, in the form of `.pgpass`: `host:port:database:user:password`,
/// where `*` matches everything and a backslash makes the next character an ordinary one.
pub(super) fn find(
    lines: &str,
    host: &str,
    port: u16,
    database: &str,
    user: &str,
) -> Option<String> {
    let wanted = [host, &port.to_string(), database, user];
    lines
        .lines()
        .filter(|it| !it.starts_with('#'))
        .find_map(|line| {
            let fields: [String; 5] = fields(line).try_into().ok()?;
            let [keys @ .., password] = &fields;
            let is_match = |(key, wanted): (&String, &str)| key == "*" || key == wanted;
            let matches = keys.iter().zip(wanted).all(is_match);
            matches.then(|| password.clone())
        })
}

/// The first four end with a colon; the last one is the rest of the line.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let is_last = fields.len() == 5;
        let field = fields.last_mut().expect("there is always one");
        match character {
            '\\' => field.extend(characters.next()),
            ':' if !is_last => fields.push(String::new()),
            _ => field.push(character),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_counts() {
        let lines = "# h:1:d:u:comment\nh:1:other:u:no\n*:1:d\\:x:u:a\\\\b\\:c:d\nh:*:*:*:last\n";
        let find = |host, database| find(lines, host, 1, database, "u");
        let found = [find("h", "d:x"), find("h", "d"), find("g", "d")];
        let expected = [Some("a\\b:c:d"), Some("last"), None];
        assert_eq!(found, expected.map(|it| it.map(str::to_owned)));
    }
}
