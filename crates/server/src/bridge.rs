//! What the bridge remembers between connections: the chosen provider, projects, where to go on.
//!
//! It is one small file. What cannot be kept is still true until the server ends.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tokens::replace;

/// Projects kept; more are a mistake of whoever saves them.
pub(crate) const MAX_PROJECTS: usize = 1000;

#[derive(Debug)]
pub(crate) struct Bridge {
    path: PathBuf,
    notes: Mutex<Notes>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    projects: Vec<Project>,
    #[serde(default)]
    resume: Vec<Resume>,
}

/// A project as its client describes it. We need its directory; the rest is kept as it is.
pub(crate) type Project = Map<String, Value>;

/// Whether prompts of an engine in a directory go on with its last session.
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
            path,
            notes: Mutex::new(notes.unwrap_or_default()),
        }
    }

    pub(crate) fn provider(&self) -> Option<String> {
        self.notes().provider.clone()
    }

    pub(crate) fn select(&self, provider: String) {
        self.notes().provider = Some(provider);
        self.keep();
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

    /// From now on prompts go on there, or begin anew.
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
        let notes = self.notes().clone();
        let json = serde_json::to_vec_pretty(&notes).expect("notes are plain data");
        replace(&self.path, &json).ok();
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_called(project: &Project, id: &str) -> bool {
    project.get("id").and_then(Value::as_str) == Some(id)
}
