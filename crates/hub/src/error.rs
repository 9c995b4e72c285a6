//! Why a request to the hub failed.

use std::io;
use std::path::PathBuf;

use formats::registry;
use model::SessionId;
use runner::{NotSettled, RecordingError, engines};

use crate::setup::SetupError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no session matches `{0}`")]
    NoSession(String),
    #[error("session `{0}` is in use")]
    Busy(SessionId<'static>),
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("session `{session}` is one of `{engine}`, not of `{wanted}`")]
    OtherEngine {
        session: SessionId<'static>,
        engine: String,
        wanted: String,
    },
    #[error("the agent has not named session `{0}` yet, so it cannot be forked")]
    NotNamed(SessionId<'static>),
    #[error("cannot work in `{}`", cwd.display())]
    Cwd {
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot play the recording `{name}`")]
    Recording {
        name: String,
        #[source]
        source: RecordingError,
    },
    #[error(transparent)]
    Engine(#[from] engines::Error),
    #[error(transparent)]
    Answer(#[from] NotSettled),
    #[error("this ask belongs to a recording, which has its own answer")]
    Recorded,
    #[error("session `{session}` ends with event {head}, event {after} is not there")]
    NoSuchCursor {
        session: SessionId<'static>,
        after: u64,
        head: u64,
    },
    #[error(transparent)]
    Format(registry::Error),
    #[error("the hub has been stopped")]
    Stopped,
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

impl From<SetupError> for Error {
    fn from(err: SetupError) -> Self {
        match err {
            SetupError::Engine(err) => Self::Engine(err),
            SetupError::Recording { name, source } => Self::Recording { name, source },
        }
    }
}
