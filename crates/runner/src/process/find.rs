//! Finding a program, and saying where it was looked for when it is not there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The absolute path of a program: of a name, the first in `path`; of a path, itself.
///
/// Relative entries of `path` are passed over: they depend on the working directory, which may be
/// an untrusted repository.
pub fn find_program(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, NotFound> {
    let mut not_found = NotFound {
        program: program.to_owned(),
        looked_in: Vec::new(),
        not_executable: Vec::new(),
    };
    let candidates = if program.as_encoded_bytes().contains(&b'/') {
        vec![std::path::absolute(program).unwrap_or_else(|_| PathBuf::from(program))]
    } else {
        let folders = env::split_paths(path.unwrap_or_default());
        for folder in folders.filter(|it| it.is_absolute()) {
            if !not_found.looked_in.contains(&folder) {
                not_found.looked_in.push(folder);
            }
        }
        let folders = not_found.looked_in.iter();
        folders.map(|it| it.join(program)).collect()
    };
    for candidate in candidates {
        match kind(&candidate) {
            FileKind::Program => return Ok(candidate),
            // The search goes on as in a shell, and the file is named if nothing else is found.
            FileKind::File => not_found.not_executable.push(candidate),
            FileKind::Nothing => (),
        }
    }
    Err(not_found)
}

/// The same in the `PATH` of this program.
pub fn find_on_path(program: &str) -> Result<PathBuf, NotFound> {
    find_program(program.as_ref(), env::var_os("PATH").as_deref())
}

enum FileKind {
    Program,
    File,
    Nothing,
}

fn kind(path: &Path) -> FileKind {
    match path.is_file() {
        // By the rights of this user: mode bits alone do not show what may be executed.
        true if access(path, Access::EXEC_OK).is_ok() => FileKind::Program,
        true => FileKind::File,
        false => FileKind::Nothing,
    }
}

/// Why there is no program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    pub program: OsString,
    /// Empty for a path, which is looked for in one place only.
    pub looked_in: Vec<PathBuf>,
    /// Files of that name that may not be executed.
    pub not_executable: Vec<PathBuf>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.display();
        if let [file, ..] = self.not_executable.as_slice() {
            return write!(f, "`{}` is not executable", file.display());
        }
        write!(f, "`{program}` was not found")?;
        for (n, folder) in self.looked_in.iter().enumerate() {
            let before = if n == 0 { "; looked in " } else { ", " };
            write!(f, "{before}{}", folder.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for NotFound {}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(program: &str, path: &str) -> Result<PathBuf, String> {
        find_program(OsStr::new(program), Some(OsStr::new(path))).map_err(|it| it.to_string())
    }

    #[test]
    fn a_name_is_looked_for_in_the_absolute_folders_of_the_path() {
        assert_eq!(find("sh", "/nowhere:/bin:/usr/bin"), Ok("/bin/sh".into()));
        assert_eq!(
            find("sh", ":.:bin:/nowhere:/etc:/nowhere"),
            Err("`sh` was not found; looked in /nowhere, /etc".to_owned())
        );
        assert_eq!(find("sh", ""), Err("`sh` was not found".to_owned()));
    }

    #[test]
    fn a_path_is_resolved_as_given() {
        assert_eq!(find("/bin/sh", ""), Ok("/bin/sh".into()));
        assert_eq!(
            find("/nowhere/sh", "/bin"),
            Err("`/nowhere/sh` was not found".to_owned())
        );
        assert_eq!(
            find("/bin/", "/bin"),
            Err("`/bin/` was not found".to_owned())
        );
    }

    #[test]
    fn a_file_that_may_not_be_executed_is_named() {
        assert_eq!(
            find("passwd", "/nowhere:/etc"),
            Err("`/etc/passwd` is not executable".to_owned())
        );
    }
}
