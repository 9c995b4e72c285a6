//! Opens a file below a directory, and nothing outside of it, whatever changes meanwhile.
//!
//! The kernel sees to it (`openat2` with `RESOLVE_BENEATH`), but it refuses every absolute link, also one
//! that leads back into the directory. Such a link is resolved here, one name at a time and never by
//! leaving the directory; what comes of it is opened without following any link at all.

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
pub(crate) fn open(root: &Path, path: &Path) -> io::Result<File> {
    use rustix::io::Errno;
    let dir = linux::directory(root)?;
    match linux::open(&dir, path, linux::Links::Relative) {
        Err(Errno::XDEV) => {
            let path = linux::resolve(root, &dir, path)?;
            Ok(linux::open(&dir, &path, linux::Links::None)?)
        }
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(root: &Path, path: &Path) -> io::Result<File> {
    let root = root.canonicalize()?;
    // Without `openat2` the path may change between this check and the opening.
    let path = root.join(path).canonicalize()?;
    match path.starts_with(&root) && path.is_file() {
        true => File::open(path),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::VecDeque;
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Component, Path, PathBuf};

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlinkat};
    use rustix::io::{Errno, Result};

    /// Links that are followed for one path, as the kernel has it.
    const MAX_LINKS: usize = 40;

    /// Which links are followed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Links {
        /// Those that stay below the directory by every step.
        Relative,
        None,
    }

    impl Links {
        fn flags(self) -> ResolveFlags {
            // Links below `/proc/PID/fd` lead anywhere, whatever path they show.
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match self {
                Self::Relative => beneath,
                Self::None => beneath | ResolveFlags::NO_SYMLINKS,
            }
        }
    }

    pub(super) fn directory(path: &Path) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
    }

    pub(super) fn open(dir: impl AsFd, path: &Path, links: Links) -> Result<File> {
        // Without NONBLOCK a pipe in the directory would hold the thread.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(openat2(dir, path, flags, Mode::empty(), links.flags())?.into())
    }

    /// The path below `dir`, which is open at `root`, that `path` leads to when absolute links into the
    /// directory are followed. It held at some moment, so it has to be opened without following links.
    pub(super) fn resolve(root: &Path, dir: &OwnedFd, path: &Path) -> io::Result<PathBuf> {
        // A link may name the directory as it was given or as the kernel resolves it.
        let roots = [root.to_owned(), root.canonicalize()?];
        let mut done = PathBuf::new();
        let mut n_links = 0;
        let mut rest = names(&inside(&roots, path)?);
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                // Above the directory nothing is looked at, not even on the way back into it.
                if !done.pop() {
                    return Err(Errno::XDEV.into());
                }
                continue;
            }
            match link(dir, &done, &name)? {
                None => done.push(name),
                Some(target) => {
                    n_links += 1;
                    if n_links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    // `inside` keeps what is below the directory, so the path starts there again.
                    if target.is_absolute() {
                        done.clear();
                    }
                    for name in names(&inside(&roots, &target)?).into_iter().rev() {
                        rest.push_front(name);
                    }
                }
            }
        }
        Ok(done)
    }

    /// A relative path as it is; of an absolute one what is below the directory.
    fn inside(roots: &[PathBuf], path: &Path) -> io::Result<PathBuf> {
        if path.is_relative() {
            return Ok(path.to_owned());
        }
        let mut below = roots.iter().filter_map(|it| path.strip_prefix(it).ok());
        let below = below.next().map(Path::to_owned);
        below.ok_or_else(|| Errno::XDEV.into())
    }

    fn names(path: &Path) -> VecDeque<OsString> {
        let components = path.components();
        let names = components.filter(|it| !matches!(it, Component::CurDir));
        names.map(|it| it.as_os_str().to_owned()).collect()
    }

    /// Where a name leads to, if it is a link. Its parent has no links in it.
    fn link(dir: &OwnedFd, parent: &Path, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = match parent.as_os_str().is_empty() {
            // `openat2` takes no empty path.
            true => Path::new("."),
            false => parent,
        };
        let parent = openat2(dir, parent, flags, Mode::empty(), Links::None.flags())?;
        match readlinkat(parent, name, Vec::new()) {
            Ok(target) => {
                let target = OsString::from_vec(target.into_bytes());
                Ok(Some(PathBuf::from(target)))
            }
            // It is no link.
            Err(Errno::INVAL) => Ok(None),
            Err(err) => Err(err.into()),
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn absolute_links_are_followed_as_far_as_they_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("work");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(top.join("other")).unwrap();
        fs::write(root.join("sub/note"), "inside").unwrap();
        fs::write(top.join("other/note"), "outside").unwrap();
        // The session knows its directory by another name.
        symlink(&root, top.join("alias")).unwrap();
        let alias = top.join("alias");
        for (target, name) in [
            (root.join("sub/note"), "file"),
            (root.join("sub"), "folder"),
            (alias.join("sub/note"), "by-alias"),
            (root.join("chain-2"), "chain-1"),
            ("sub/../folder/note".into(), "chain-2"),
            (root.clone(), "self"),
            (root.join("sub/deep/../note"), "dots"),
            (top.join("other/note"), "out"),
            (top.join("other"), "out-folder"),
            (root.join("../other/note"), "out-by-dots"),
            (top.join("other/../work/sub/note"), "out-and-back"),
            (root.join("folder/../../other/note"), "out-by-folder"),
            (root.join("loop-2"), "loop-1"),
            (root.join("loop-1"), "loop-2"),
            (root.join("nothing"), "dangling"),
            ("/proc/self/cwd".into(), "magic"),
            (
                format!("/proc/self/root{}/sub/note", root.display()).into(),
                "magic-root",
            ),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        let read = |root: &Path, path: &str| {
            let mut text = String::new();
            let mut file = open(root, Path::new(path)).ok()?;
            file.read_to_string(&mut text).ok()?;
            Some(text)
        };
        for root in [&root, &alias] {
            for path in [
                "sub/note",
                "file",
                "folder/note",
                "by-alias",
                "chain-1",
                "self/self/folder/note",
                "dots",
                "folder/deep/../note",
            ] {
                let is_known = path != "by-alias" || root == &alias;
                let expected = is_known.then(|| "inside".to_owned());
                assert_eq!(read(root, path), expected, "{path}");
            }
            for path in [
                "out",
                "out-folder/note",
                "out-by-dots",
                "out-and-back",
                "out-by-folder",
                "loop-1",
                "dangling",
                "magic",
                "magic-root",
                "../other/note",
                "../work/sub/note",
                "file/note",
                "folder/../../other/note",
                "/etc/passwd",
            ] {
                assert_eq!(read(root, path), None, "{path}");
            }
        }
    }
}
