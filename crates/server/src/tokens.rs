//! Tokens: one secret that opens everything, and others that open less.
//!
//! The first one lies in a file of its own that only its owner can read, so that the page's address can
//! be printed again. The others are kept as hashes: they are shown once, when they are made.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Bytes of a token.
const LENGTH: usize = 32;
/// Characters of a token below which it may be found by trying.
pub const MIN_TOKEN: usize = 32;
/// The prefix of our tokens, so that secret scanners can recognise them.
const PREFIX: &str = "lsp_";

/// What a token may do; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "TokenRole"))]
pub enum Role {
    /// Look.
    Watch,
    /// Give prompts, stop runs.
    Prompt,
    /// Answer what agents ask.
    Approve,
    /// Everything.
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Watch, Self::Prompt, Self::Approve, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Prompt => "prompt",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// A token in the open; it is neither printed nor compared by accident.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A token chosen by the operator.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn generate() -> io::Result<Self> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(format!("{PREFIX}{}", hex(&bytes))))
    }

    /// The plain text, to be shown only to its recipient.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A token that was handed out, without the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub id: String,
    pub role: Role,
    pub created_at: Timestamp,
    hash: String,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The key's id; none is the first token.
    pub(crate) key: Option<String>,
    pub(crate) role: Role,
}

impl Caller {
    /// The user who started the program, or anyone with the first token.
    pub(crate) fn user() -> Self {
        Self {
            key: None,
            role: Role::Admin,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot read the token file `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write the token file `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others can read the token file `{}`", .0.display())]
    Exposed(PathBuf),
    #[error("everybody can write to `{}`", .0.display())]
    Writable(PathBuf),
    #[error("the token file `{}` is empty", .0.display())]
    Empty(PathBuf),
    #[error("the token file `{}` is not what linkspan writes", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("cannot use the data directory `{}`", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no token is called `{0}`")]
    NoKey(String),
}

impl TokenError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Exposed(_) => "`chmod 600` it, and make a new token if it may have been read",
            Self::Writable(_) => "name a directory of your own with `--data-dir`",
            Self::Read { .. } => "name a file you may read, or none, and one is made",
            Self::Write { .. } | Self::Directory { .. } => {
                "name a directory you may write to with `--data-dir`"
            }
            Self::Empty(_) => "remove it, and a new token is made",
            Self::Malformed { .. } => "move it away; the tokens in it are then revoked",
            Self::NoKey(_) => "`linkspan token` lists them",
        })
    }
}

/// The tokens of a data directory.
#[derive(Debug)]
pub struct Keys {
    first: Secret,
    keys: Vec<Key>,
    path: PathBuf,
    /// Which file the keys were read from.
    version: Option<(u64, i64, i64)>,
    /// The first token was made just now.
    pub is_new: bool,
}

impl Keys {
    /// Reads the tokens of a data directory, and makes the first one if there is none. `given` is a
    /// first token that is not in a file; `file` is another place for it than the usual one.
    pub fn open(
        dir: &Path,
        file: Option<&Path>,
        given: Option<Secret>,
    ) -> Result<Self, TokenError> {
        make_private(dir)?;
        let usual = dir.join("token");
        let (first, is_new) = match given {
            Some(secret) => (secret, false),
            None => first(file.unwrap_or(&usual))?,
        };
        let path = dir.join("tokens.json");
        Ok(Self {
            first,
            version: version(&path),
            keys: read(&path)?,
            path,
            is_new,
        })
    }

    /// Looks at the token files without making any: how many tokens were handed out beside the first, and
    /// nothing where there is none yet.
    pub fn examine(dir: &Path, file: Option<&Path>) -> Result<Option<usize>, TokenError> {
        let usual = dir.join("token");
        let file = file.unwrap_or(&usual);
        if !file.exists() {
            return Ok(None);
        }
        first(file)?;
        let others = dir.join("tokens.json");
        if fs::metadata(&others).is_ok_and(|it| it.mode() & 0o077 != 0) {
            return Err(TokenError::Exposed(others));
        }
        Ok(Some(read(&others)?.len()))
    }

    /// The token that opens everything.
    pub fn first(&self) -> &Secret {
        &self.first
    }

    /// The others, the oldest first.
    pub fn list(&self) -> &[Key] {
        &self.keys
    }

    /// Makes a token; a running server takes it at once.
    pub fn make(&mut self, role: Role) -> Result<(Key, Secret), TokenError> {
        let secret = Secret::generate().map_err(|err| write_failed(&self.path, err))?;
        let hash = hash(secret.reveal());
        let key = Key {
            // Short enough to be typed; it tells nothing about the token but its hash.
            id: hash[..8].to_owned(),
            role,
            created_at: SystemTime::now().into(),
            hash,
        };
        self.keys.push(key.clone());
        self.write()?;
        Ok((key, secret))
    }

    /// Revokes a token; a running server closes its connections.
    pub fn revoke(&mut self, id: &str) -> Result<(), TokenError> {
        let before = self.keys.len();
        self.keys.retain(|it| it.id != id);
        if self.keys.len() == before {
            return Err(TokenError::NoKey(id.to_owned()));
        }
        self.write()
    }

    /// Finds the caller of a token, in constant time over all tokens.
    pub(crate) fn find(&self, token: &str) -> Option<Caller> {
        // Hashes are of one length, so the comparison reveals nothing about that of a token.
        let given = hash(token);
        let same = |it: &str| -> Choice { it.as_bytes().ct_eq(given.as_bytes()) };
        let mut found = bool::from(same(&hash(&self.first.0))).then(Caller::user);
        // No early end: how long it takes must not depend on which token is compared.
        for key in &self.keys {
            if bool::from(same(&key.hash)) {
                found = Some(Caller {
                    key: Some(key.id.clone()),
                    role: key.role,
                });
            }
        }
        found
    }

    /// Whether a caller that came in earlier would come in now.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        match &caller.key {
            // The first token is read once, at the start, and cannot be revoked meanwhile.
            None => true,
            Some(id) => self
                .keys
                .iter()
                .any(|it| it.id == *id && it.role == caller.role),
        }
    }

    /// Whether the file of tokens is another one than that which was read: cheap enough to be asked for
    /// every wrong token.
    pub(crate) fn may_have_changed(&self) -> bool {
        version(&self.path) != self.version
    }

    /// Reads the file again; true if the tokens have changed.
    pub(crate) fn refresh(&mut self) -> Result<bool, TokenError> {
        // Before the file is read: a write in between is then seen by the next refresh.
        let version = version(&self.path);
        let keys = read(&self.path)?;
        self.version = version;
        let has_changed = keys != self.keys;
        self.keys = keys;
        Ok(has_changed)
    }

    fn write(&self) -> Result<(), TokenError> {
        let json = serde_json::to_vec_pretty(&self.keys).expect("keys are plain data");
        replace(&self.path, &json).map_err(|err| write_failed(&self.path, err))
    }
}

/// Which file this is: each write puts a new one in its place.
fn version(path: &Path) -> Option<(u64, i64, i64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

/// Makes a directory that its owner alone can enter. An existing one is left as it is, but must not
/// be writable by others.
fn make_private(dir: &Path) -> Result<(), TokenError> {
    let failed = |source| TokenError::Directory {
        path: dir.to_owned(),
        source,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failed)?;
    match fs::metadata(dir).map_err(failed)?.mode() & 0o002 {
        0 => Ok(()),
        _ => Err(TokenError::Writable(dir.to_owned())),
    }
}

/// The token in this file, which is made if there is none.
fn first(path: &Path) -> Result<(Secret, bool), TokenError> {
    let failed = |err| read_failed(path, err);
    match fs::metadata(path) {
        // Refused and not mended: the token may have been read already.
        Ok(found) if found.mode() & 0o077 != 0 => Err(TokenError::Exposed(path.to_owned())),
        Ok(_) => {
            let text = fs::read_to_string(path).map_err(failed)?;
            match text.trim() {
                "" => Err(TokenError::Empty(path.to_owned())),
                token => Ok((Secret::new(token), false)),
            }
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            let failed = |err| write_failed(path, err);
            let secret = Secret::generate().map_err(failed)?;
            replace(path, format!("{}\n", secret.reveal()).as_bytes()).map_err(failed)?;
            Ok((secret, true))
        }
        Err(err) => Err(failed(err)),
    }
}

fn read(path: &Path) -> Result<Vec<Key>, TokenError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(read_failed(path, err)),
    };
    serde_json::from_slice(&text).map_err(|source| TokenError::Malformed {
        path: path.to_owned(),
        source,
    })
}

fn read_failed(path: &Path, source: io::Error) -> TokenError {
    let path = path.to_owned();
    TokenError::Read { path, source }
}

fn write_failed(path: &Path, source: io::Error) -> TokenError {
    let path = path.to_owned();
    TokenError::Write { path, source }
}

/// Writes a file that its owner alone can read, whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Left by a writer that was killed; `create_new` would refuse it.
    let beside = path.with_extension("new");
    fs::remove_file(&beside).or_else(|err| match err.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(err),
    })?;
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        // From the start: with a later `chmod` others could read it for a moment.
        .mode(0o600)
        .open(&beside)?;
    file.write_all(bytes)?;
    // Before the rename: after a power failure the name must not lead to an empty file.
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_created_once_and_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let made = Keys::open(&data, None, None).unwrap();
        let found = Keys::open(&data, None, None).unwrap();
        assert_eq!((made.is_new, found.is_new), (true, false));
        assert_eq!(made.first().reveal(), found.first().reveal());
        assert_eq!(made.first().reveal().len(), PREFIX.len() + 2 * LENGTH);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&data), mode(&data.join("token"))), (0o700, 0o600));
        fs::set_permissions(data.join("token"), fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Keys::open(&data, None, None).unwrap_err().to_string();
        assert!(refused.starts_with("others can read"), "{refused}");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Keys::open(&data, None, None).unwrap_err().to_string();
        assert!(refused.starts_with("everybody can write"), "{refused}");
    }

    #[test]
    fn a_token_opens_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let mut keys = Keys::open(dir.path(), None, Some(Secret::new("given"))).unwrap();
        let (key, secret) = keys.make(Role::Watch).unwrap();
        let mut served = Keys::open(dir.path(), None, Some(Secret::new("given"))).unwrap();
        let caller = served.find(secret.reveal()).unwrap();
        assert_eq!(caller.role, Role::Watch);
        assert_eq!(served.find("given").unwrap().role, Role::Admin);
        assert_eq!(served.find("give"), None);
        let stored = fs::read_to_string(dir.path().join("tokens.json")).unwrap();
        assert!(!stored.contains(secret.reveal()));
        keys.revoke(&key.id).unwrap();
        assert!(served.refresh().unwrap());
        assert_eq!(served.find(secret.reveal()), None);
        assert!(!served.knows(&caller));
        assert!(keys.revoke(&key.id).is_err());
    }

    #[test]
    fn a_secret_is_not_printed_by_accident() {
        assert_eq!(format!("{:?}", Secret::new("abc")), "Secret(…)");
    }
}
