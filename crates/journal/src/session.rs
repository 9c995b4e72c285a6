//! Sessions as a list shows them.

use model::{SessionId, Timestamp};

use crate::node::Node;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    pub id: SessionId<'static>,
    /// Where its agent is to run.
    pub home: Node,
    pub engine: String,
    pub cwd: Option<String>,
    pub title: Option<String>,
    /// The parent, when it is a fork.
    pub parent: Option<Parent>,
}

/// The parent of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub session: SessionId<'static>,
    /// The last event that the fork begins with.
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId<'static>,
    /// Where its agent runs.
    pub home: Node,
    pub engine: String,
    /// The agent's own id, the last one it gave; the session is found by the earlier ones too.
    pub native: Option<SessionId<'static>>,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub created_at: Timestamp,
    /// When it was made, or its last run began or ended.
    pub active_at: Timestamp,
    /// Incremented whenever a session is active: the order of the list, independent of the clock.
    pub activity: u64,
    /// The last event.
    pub head: u64,
    /// What its events and frames take up.
    pub bytes: u64,
    pub state: State,
    /// The number of queued prompts.
    pub queued: u64,
    pub parent: Option<Parent>,
}

impl Session {
    /// Its position in the list.
    pub fn cursor(&self) -> ListCursor {
        ListCursor {
            activity: self.activity,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    /// Prompts are queued and no run is open: another process holds the session, or the run is
    /// about to start.
    Queued,
    /// A run is open and its agent has not emitted anything yet.
    Starting,
    Running,
    /// An ask is open and has no answer.
    Waiting,
}

impl State {
    pub const ALL: [Self; 5] = [
        Self::Idle,
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Waiting,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting => "waiting",
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Which sessions; each filter that is absent lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    pub home: Option<Node>,
    pub engine: Option<String>,
    /// Some of the title, the directory, or an id; the case does not matter.
    pub text: Option<String>,
    pub state: Option<State>,
}

/// A place in the list: the page after it begins with the next older session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    pub activity: u64,
}

/// A page of the list, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub sessions: Vec<Session>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<ListCursor>,
}

impl Listing {
    /// A page of at most `limit` sessions; one more tells that there is another page.
    pub(crate) fn page(mut sessions: Vec<Session>, limit: usize) -> Self {
        let has_more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| has_more).map(Session::cursor);
        Self { sessions, next }
    }
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
