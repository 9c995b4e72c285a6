//! Why a request to the hub failed.

use std::io;
use std::path::PathBuf;

use formats::registry;
use model::SessionId;
use runner::{NotSettled, engines};

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
    #[error("there is no such format or profile")]
    Format(registry::Error),
    #[error("the hub has been stopped")]
    Stopped,
    #[error(transparent)]
    Journal(#[from] journal::Error),
}
