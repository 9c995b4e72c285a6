//! Errors in the settings: the location, the key, and what would be valid.

use std::io;
use std::path::PathBuf;

use super::keys::RequiredKey;
use crate::did_you_mean;

/// `file` and `line` say where to look.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the config `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}:{line}: not TOML: {message}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error("{}:{line}: there is no key `{key}`", path.display())]
    UnknownKey {
        path: PathBuf,
        line: usize,
        key: String,
        /// The valid values.
        known: Vec<String>,
    },
    #[error("{}:{line}: `{key}` is {found}, expected {expected}", path.display())]
    WrongType {
        path: PathBuf,
        line: usize,
        key: String,
        found: String,
        expected: String,
        /// The value that was probably meant.
        meant: Option<&'static str>,
    },
    #[error("{}:{line}: `{key}` is the same as `{other}` in line {other_line}", path.display())]
    Twice {
        path: PathBuf,
        line: usize,
        key: String,
        other: String,
        other_line: usize,
    },
    #[error("{}:{line}: `{key}` has no {}", path.display(), required.name)]
    Missing {
        path: PathBuf,
        line: usize,
        key: String,
        required: &'static RequiredKey,
    },
    #[error("{place} is `{value}`, expected {expected}")]
    Value {
        place: String,
        value: String,
        expected: String,
        /// The value that was probably meant.
        meant: Option<&'static str>,
    },
    #[error("there is no key `{0}`")]
    NoSuchKey(String),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "check the path; without `--config` and `LINKSPAN_CONFIG` no file is needed"
                    .to_owned(),
            ),
            Self::UnknownKey { key, known, .. } => Some(suggestion(key, known)),
            Self::Twice { .. } => Some("keep one of them".to_owned()),
            Self::Missing { required, .. } => {
                Some(format!("add `{} = \"{}\"`", required.key, required.example))
            }
            Self::WrongType { meant, .. } | Self::Value { meant, .. } => {
                meant.map(|it| format!("did you mean `{it}`?"))
            }
            Self::Read { .. } | Self::Syntax { .. } | Self::NoSuchKey(_) => None,
        }
    }
}

/// The closest key, and all valid ones.
fn suggestion(key: &str, known: &[String]) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let all = format!("known here: {}", known.join(", "));
    did_you_mean(name, known.iter().map(String::as_str), &all)
}
