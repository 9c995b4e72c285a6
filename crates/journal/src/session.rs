//! Sessions as a list shows them.

use model::{SessionId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    pub id: SessionId<'static>,
    pub engine: String,
    pub cwd: Option<String>,
    pub title: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId<'static>,
    pub engine: String,
    /// The agent's own id, the last one it gave; the session is found by the earlier ones too.
    pub native: Option<SessionId<'static>>,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub created_at: Timestamp,
    /// When it was made, or its last run began or ended.
    pub active_at: Timestamp,
    /// The last event.
    pub head: u64,
    /// What its events and frames take up.
    pub bytes: u64,
    pub state: State,
}

impl Session {
    /// Where it stands in the list.
    pub fn place(&self) -> Place {
        Place {
            active_at: self.active_at,
            id: self.id.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    Running,
    /// An ask is open and has no answer.
    Waiting,
}

/// Which sessions; each filter that is absent lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    pub engine: Option<String>,
    /// Some of the title, the directory, or an id; the case does not matter.
    pub text: Option<String>,
    pub state: Option<State>,
}

/// A place in the list: the page after it begins with the next older session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub active_at: Timestamp,
    pub id: SessionId<'static>,
}

/// A page of the list, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub sessions: Vec<Session>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<Place>,
}

/// What the text filter looks at, one line each, in lower case.
pub(crate) fn searchable<'a>(fields: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let mut text = String::new();
    for field in fields.into_iter().flatten() {
        text.push_str(&field.to_lowercase());
        text.push('\n');
    }
    text
}
