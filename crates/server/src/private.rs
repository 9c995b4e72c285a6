//! Files that the server does not show: linkspan's own, which are hidden from everyone, and those
//! that usually hold credentials, which need `admin`.
//!
//! A role that could read the tokens of all roles would be meaningless. The same check applies to
//! files that are read and to directories in which an agent works.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::ApiError;
use crate::tokens::{Caller, Role};

/// Entries of linkspan's own directories that are compared with a file that has several names.
const MAX_ENTRIES: usize = 10_000;

/// Names of files and directories that usually hold credentials, and whose they are. A pattern that ends
/// with `/` is a directory with all that is in it, one that begins with `/` starts at the root, any other
/// is the end of a path. `*` is any part of a name. Upper and lower case are the same.
pub const CREDENTIALS: &[(&str, &str)] = &[
    (".env*", "environment files"),
    ("*.env", "environment files"),
    (".netrc", "logins of curl, Git and others"),
    ("_netrc", "logins of curl, Git and others"),
    (".git-credentials", "Git"),
    (".config/git/credentials", "Git"),
    (".config/gh/", "GitHub CLI"),
    (".config/glab-cli/", "GitLab CLI"),
    (".config/hub", "GitHub"),
    (".ssh/", "SSH"),
    ("id_rsa", "SSH"),
    ("id_dsa", "SSH"),
    ("id_ecdsa", "SSH"),
    ("id_ed25519", "SSH"),
    ("*.ppk", "PuTTY"),
    (".gnupg/", "GnuPG"),
    (".password-store/", "pass"),
    ("*.kdbx", "KeePass"),
    (".aws/", "AWS"),
    (".azure/", "Azure"),
    (".config/gcloud/", "Google Cloud"),
    (".boto", "Google Cloud and AWS"),
    (".s3cfg", "S3"),
    (".config/rclone/", "rclone"),
    (".kube/", "Kubernetes"),
    (".docker/config.json", "Docker"),
    (".config/containers/auth.json", "Podman"),
    (".terraform.d/", "Terraform"),
    (".terraformrc", "Terraform"),
    ("*.tfstate", "Terraform"),
    ("*.tfvars", "Terraform"),
    (".vault-token", "Vault"),
    (".npmrc", "npm"),
    (".yarnrc.yml", "Yarn"),
    (".pypirc", "PyPI"),
    (".cargo/credentials*", "Cargo"),
    (".gem/credentials", "RubyGems"),
    (".m2/settings.xml", "Maven"),
    (".gradle/gradle.properties", "Gradle"),
    (".composer/auth.json", "Composer"),
    (".nuget/NuGet.Config", "NuGet"),
    (".pgpass", "PostgreSQL"),
    (".my.cnf", "MySQL"),
    (".htpasswd", "web servers"),
    (".claude/.credentials.json", "Claude Code"),
    (".claude.json", "Claude Code"),
    (".codex/auth.json", "Codex"),
    (".gemini/oauth_creds.json", "Gemini CLI"),
    (".qwen/oauth_creds.json", "Qwen Code"),
    ("opencode/auth.json", "OpenCode"),
    (".openhands/agent_settings.json", "OpenHands"),
    (".openhands/settings.json", "OpenHands"),
    (".openhands/secrets.json", "OpenHands"),
    (".openclaw/", "OpenClaw"),
    ("*.key", "private keys"),
    ("*.p12", "private keys"),
    ("*.pfx", "private keys"),
    ("*.jks", "private keys"),
    ("*.keystore", "private keys"),
    (".*_history", "what was typed into shells"),
    ("/etc/shadow*", "logins of this machine"),
    ("/etc/gshadow*", "logins of this machine"),
    ("/etc/ssl/private/", "private keys"),
    ("/proc/", "processes of this machine"),
    ("/sys/", "the kernel"),
    ("/dev/", "devices"),
];

/// Why something is not shown, or not worked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HiddenReason {
    /// It is linkspan's own.
    Own,
    /// It has the name of something that holds credentials.
    Named(&'static str),
    /// It holds a private key.
    Key,
}

impl HiddenReason {
    /// Whether it is hidden from this caller.
    pub(crate) fn is_kept_from(self, caller: &Caller) -> bool {
        match self {
            Self::Own => true,
            Self::Named(_) | Self::Key => caller.role < Role::Admin,
        }
    }

    /// The error for the caller.
    pub(crate) fn refusal(self) -> ApiError {
        ApiError::forbidden(match self {
            Self::Own => "linkspan's own files are never shown".to_owned(),
            Self::Named(pattern) => format!(
                "a token for `admin` is needed to read `{pattern}`, which usually holds credentials"
            ),
            Self::Key => "a token for `admin` is needed to read a private key".to_owned(),
        })
    }
}

/// The paths of linkspan's own files.
#[derive(Debug)]
pub(crate) struct OwnPaths {
    paths: Vec<PathBuf>,
}

impl OwnPaths {
    /// The data directory, and what else holds tokens, keys or settings.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        // A path that does not exist yet is matched by its name.
        let real = |it: PathBuf| it.canonicalize().unwrap_or(it);
        Self {
            paths: paths.into_iter().map(real).collect(),
        }
    }

    /// Why a canonical path of a file or directory is hidden, if it is.
    pub(crate) fn find(&self, path: &Path) -> Option<HiddenReason> {
        if self.holds(path) {
            return Some(HiddenReason::Own);
        }
        named(path).map(HiddenReason::Named)
    }

    /// Why an open file is hidden, if it is: by its canonical path or its hard links.
    pub(crate) fn find_file(&self, path: &Path, found: &Metadata) -> Option<HiddenReason> {
        if let Some(private) = self.find(path) {
            return Some(private);
        }
        // A second name of the same file, wherever that is.
        (found.nlink() > 1 && self.has_entry(found)).then_some(HiddenReason::Own)
    }

    /// Whether a path is one of ours or lies below one, also by the way of another mount.
    fn holds(&self, path: &Path) -> bool {
        if self.paths.iter().any(|own| path.starts_with(own)) {
            return true;
        }
        let own: Vec<_> = self.paths.iter().filter_map(|it| identity(it)).collect();
        let mut above = path.ancestors().filter_map(identity);
        above.any(|it| own.contains(&it))
    }

    fn has_entry(&self, wanted: &Metadata) -> bool {
        let wanted = (wanted.dev(), wanted.ino());
        let mut folders = self.paths.clone();
        let mut n_entries = 0;
        while let Some(folder) = folders.pop() {
            // A file among them has no entries.
            let Ok(entries) = fs::read_dir(&folder) else {
                if identity(&folder) == Some(wanted) {
                    return true;
                }
                continue;
            };
            for entry in entries.flatten() {
                n_entries += 1;
                if n_entries > MAX_ENTRIES {
                    return false;
                }
                // It does not follow links, so that a loop of them cannot keep this walk going.
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(entry.path()),
                    Ok(found) if (found.dev(), found.ino()) == wanted => return true,
                    _ => (),
                }
            }
        }
        false
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The pattern that a path falls under.
pub(crate) fn named(path: &Path) -> Option<&'static str> {
    let text = path.to_string_lossy().to_lowercase();
    let names = text.split('/').filter(|it| !["", ".", ".."].contains(it));
    let names: Vec<&str> = names.collect();
    let mut patterns = CREDENTIALS.iter().map(|it| it.0);
    patterns.find(|it| matches_path(it, &names, path.is_absolute()))
}

fn matches_path(pattern: &str, names: &[&str], is_absolute: bool) -> bool {
    let pattern = pattern.to_lowercase();
    let is_folder = pattern.ends_with('/');
    let is_rooted = pattern.starts_with('/');
    let parts: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty()).collect();
    let fits = |at: &[&str]| {
        at.iter()
            .zip(&parts)
            .all(|(name, it)| matches_name(it, name))
    };
    let mut windows = names.windows(parts.len()).enumerate();
    windows.any(|(at, window)| {
        let is_end = at + parts.len() == names.len();
        (is_folder || is_end) && (!is_rooted || (is_absolute && at == 0)) && fits(window)
    })
}

/// `*` matches any part, once.
fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => {
            // The two ends must not overlap.
            name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        }
    }
}

/// Whether a text holds a private key, as PEM and others write them.
pub(crate) fn holds_key(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"PuTTY-User-Key-File-") {
        return true;
    }
    const BEGIN: &[u8] = b"-----BEGIN ";
    const KEY: &[u8] = b"PRIVATE KEY";
    /// Longer than every kind of key that stands before the word.
    const MAX_KIND: usize = 40;
    let starts = bytes.windows(BEGIN.len()).enumerate();
    let mut starts = starts
        .filter(|it| it.1 == BEGIN)
        .map(|it| it.0 + BEGIN.len());
    starts.any(|at| {
        let label = &bytes[at..bytes.len().min(at + MAX_KIND)];
        let label = label.split(|it| *it == b'-').next().unwrap_or_default();
        label.windows(KEY.len()).any(|it| it == KEY)
    })
}

/// The path that an open file has now, after every link; none when it has been removed.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &fs::File, _asked: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    // Of the open file: resolving the asked path again could meet other links.
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // The kernel says ` (deleted)` behind the path of one that is gone.
    match fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(_file: &fs::File, asked: &Path) -> io::Result<PathBuf> {
    asked.canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_known_wherever_they_are() {
        for path in [
            "/home/u/app/.env",
            "/home/u/app/.env.production",
            "/home/u/app/.envrc",
            "/home/u/app/.ENV",
            "/home/u/app/prod.env",
            ".env",
            "/home/u/.ssh/config",
            "/home/u/.ssh",
            "/home/u/.SSH/id_custom",
            "/x/.config/gcloud/a/b/c.json",
            "/home/u/.claude/.credentials.json",
            "/home/u/.codex/auth.json",
            "/home/u/.gemini/oauth_creds.json",
            "/home/u/.docker/config.json",
            "/home/u/.kube/config",
            "/home/u/.cargo/credentials.toml",
            "/srv/tls/server.key",
            "/etc/shadow",
            "/etc/shadow-",
            "/proc/self/environ",
        ] {
            assert!(named(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/home/u/app/environment.ts",
            "/home/u/app/src/env.rs",
            "/home/u/app/docs/ssh.md",
            "/home/u/.config/other/config.json",
            "/home/u/.claude/settings.json",
            "/home/u/app/config.json",
            "/home/u/id_rsa.pub",
            "/home/u/app/etc/shadow",
            "/home/u/proc/a",
            "/",
            "",
        ] {
            assert_eq!(named(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn private_keys_are_known_by_what_they_hold() {
        for text in [
            "-----BEGIN PRIVATE KEY-----\nMIIE",
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "comment\n-----BEGIN OPENSSH PRIVATE KEY-----\n",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            r#"{"private_key": "-----BEGIN PRIVATE KEY-----\nMIIE"}"#,
            "PuTTY-User-Key-File-3: ssh-ed25519",
        ] {
            assert!(holds_key(text.as_bytes()), "{text}");
        }
        for text in [
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----\nPRIVATE KEY",
            "a PRIVATE KEY",
            "-----BEGIN ",
            "",
        ] {
            assert!(!holds_key(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn own_directories_are_known_by_any_way_that_leads_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("data");
        fs::create_dir_all(data.join("below")).unwrap();
        fs::write(data.join("token"), "x").unwrap();
        fs::hard_link(data.join("token"), root.join("second")).unwrap();
        fs::write(root.join("other"), "x").unwrap();
        fs::hard_link(root.join("other"), root.join("third")).unwrap();
        let own = OwnPaths::new([data.clone(), root.join("not there")]);
        let check = |path: &Path| own.find_file(path, &fs::metadata(path).unwrap());
        for path in [&data, &data.join("token"), &data.join("below")] {
            assert_eq!(check(path), Some(HiddenReason::Own), "{}", path.display());
        }
        assert_eq!(check(&root.join("second")), Some(HiddenReason::Own));
        assert_eq!(check(&root.join("third")), None);
        assert_eq!(check(&root), None);
        assert_eq!(own.find(&root.join("not there/a")), Some(HiddenReason::Own));
    }
}
