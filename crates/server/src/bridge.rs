//! State of the bridge that outlives connections: the provider of each token, projects, which
//! session to resume.
//!
//! It is one small file of the servers. If it cannot be written, the state is kept until the server stops.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tokens::{Caller, replace};

/// Maximum number of projects.
pub(crate) const MAX_PROJECTS: usize = 1000;
/// The engine of clients that name none: there was no other when they were written.
pub(crate) const DEFAULT_ENGINE: &str = "claude";

/// The first token, which has no id. Ids are hexadecimal, so no key is called so.
const FIRST: &str = "first";

#[derive(Debug)]
pub(crate) struct Bridge {
    /// None where changes are not kept.
    path: Option<PathBuf>,
    notes: Mutex<BridgeFile>,
}

/// A file of an earlier version may hold one `provider` for all tokens. It is ignored, because any
/// client that could prompt could have set it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct BridgeFile {
    /// The provider that each token has selected, by the id of its key.
    #[serde(default)]
    providers: BTreeMap<String, String>,
    #[serde(default)]
    projects: Vec<Project>,
    #[serde(default)]
    resume: Vec<Resume>,
}

/// A project as its client describes it. We need its directory; the rest is kept as it is.
pub(crate) type Project = Map<String, Value>;

/// Whether prompts of an engine in a directory resume its last session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resume {
    pub(crate) engine: String,
    pub(crate) cwd: String,
    /// That one; none is the last one.
    pub(crate) session: Option<String>,
}

impl Bridge {
    pub(crate) fn open(dir: &Path) -> Self {
        let path = dir.join("bridge.json");
        // Without it everything is as on the first day, which is no reason not to serve.
        let notes = std::fs::read(&path).ok();
        let notes = notes.and_then(|it| serde_json::from_slice(&it).ok());
        Self {
            path: Some(path),
            notes: Mutex::new(notes.unwrap_or_default()),
        }
    }

    /// A state for one client, which ends with it.
    pub(crate) fn temporary() -> Self {
        Self {
            path: None,
            notes: Mutex::default(),
        }
    }

    /// The provider that this token has selected.
    pub(crate) fn provider(&self, caller: &Caller) -> Option<String> {
        self.notes().providers.get(key(caller)).cloned()
    }

    pub(crate) fn select(&self, caller: &Caller, provider: String) {
        let key = key(caller).to_owned();
        self.notes().providers.insert(key, provider);
        self.keep();
    }

    /// Forgets the selections of revoked tokens.
    pub(crate) fn forget(&self, is_known: impl Fn(&str) -> bool) {
        let mut notes = self.notes();
        let before = notes.providers.len();
        notes.providers.retain(|id, _| id == FIRST || is_known(id));
        let has_changed = notes.providers.len() != before;
        // `keep` takes the lock again.
        drop(notes);
        if has_changed {
            self.keep();
        }
    }

    pub(crate) fn projects(&self) -> Vec<Project> {
        self.notes().projects.clone()
    }

    pub(crate) fn project(&self, id: &str) -> Option<Project> {
        let notes = self.notes();
        notes.projects.iter().find(|it| is_called(it, id)).cloned()
    }

    /// Puts a project in place of the one with its id; false when there are too many.
    pub(crate) fn save(&self, id: &str, project: Project) -> bool {
        let mut notes = self.notes();
        let place = notes.projects.iter().position(|it| is_called(it, id));
        match place {
            Some(place) => notes.projects[place] = project,
            None if notes.projects.len() >= MAX_PROJECTS => return false,
            None => notes.projects.push(project),
        }
        drop(notes);
        self.keep();
        true
    }

    pub(crate) fn delete(&self, id: &str) {
        self.notes().projects.retain(|it| !is_called(it, id));
        self.keep();
    }

    pub(crate) fn resume(&self, engine: &str, cwd: &str) -> Option<Resume> {
        let notes = self.notes();
        let mut resume = notes.resume.iter();
        resume
            .find(|it| it.engine == engine && it.cwd == cwd)
            .cloned()
    }

    /// Sets whether prompts there resume or start a new session.
    pub(crate) fn set_resume(&self, engine: &str, cwd: &str, resume: Option<Resume>) {
        let mut notes = self.notes();
        notes
            .resume
            .retain(|it| it.engine != engine || it.cwd != cwd);
        notes.resume.extend(resume);
        drop(notes);
        self.keep();
    }

    fn keep(&self) {
        let Some(path) = &self.path else { return };
        // A copy, so that no request waits for the disk.
        let notes = self.notes().clone();
        let json = serde_json::to_vec_pretty(&notes).expect("notes are plain data");
        replace(path, &json).ok();
    }

    fn notes(&self) -> MutexGuard<'_, BridgeFile> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a caller's token in the file.
fn key(caller: &Caller) -> &str {
    caller.key.as_deref().unwrap_or(FIRST)
}

fn is_called(project: &Project, id: &str) -> bool {
    project.get("id").and_then(Value::as_str) == Some(id)
}
