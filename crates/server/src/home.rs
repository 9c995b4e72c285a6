//! Expands `~` in a directory to the home of the user that the server runs as.

use std::env;
use std::path::{Path, PathBuf};

/// `~` and `~/…` as a shell reads them; everything else as it is.
pub(crate) fn expanded(path: &str) -> PathBuf {
    let home = env::var_os("HOME").filter(|it| !it.is_empty());
    below(path, home.as_deref().map(Path::new))
}

fn below(path: &str, home: Option<&Path>) -> PathBuf {
    match (home, path.strip_prefix('~')) {
        (Some(home), Some("")) => home.to_owned(),
        (Some(home), Some(rest)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_directory_and_a_name_is_none() {
        let home = Path::new("/home/me");
        let check = |path, meant| assert_eq!(below(path, Some(home)), Path::new(meant), "{path}");
        check("~", "/home/me");
        check("~/proj", "/home/me/proj");
        check("~//proj", "/home/me/proj");
        check("~other/proj", "~other/proj");
        check("a/~/b", "a/~/b");
        check("/srv", "/srv");
        assert_eq!(below("~/proj", None), Path::new("~/proj"));
    }
}
