//! Where agents may work: the directories that the operator has named, or, when none is, those that a token
//! could reach anyway.
//!
//! A directory is checked as the kernel would find it, after every symbolic link. Everything
//! below an allowed directory is allowed, because an agent in a directory can reach what is in it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use hub::{SessionPages, Submit, Target};
use journal::SessionQuery;
use model::SessionId;
use serde_json::Value;

use crate::config::Error;
use crate::error::{ApiError, Result};
use crate::private::HiddenReason;
use crate::state::App;
use crate::tokens::{Caller, Role};

/// The directories that the owner has named, and the one that the server was started in.
#[derive(Debug)]
pub(crate) struct Roots {
    named: Vec<PathBuf>,
    here: Option<PathBuf>,
}

impl Roots {
    pub(crate) fn new(named: &[PathBuf]) -> Result<Self, Error> {
        let resolved = |path: &PathBuf| {
            let failed = |source| Error::Root {
                path: path.clone(),
                source,
            };
            let found = path.canonicalize().map_err(failed)?;
            match found.is_dir() {
                true => Ok(found),
                false => Err(failed(io::ErrorKind::NotADirectory.into())),
            }
        };
        let here = env::current_dir().and_then(|it| it.canonicalize());
        Ok(Self {
            named: named.iter().map(resolved).collect::<Result<_, _>>()?,
            here: here.ok(),
        })
    }

    /// Whether nothing has to be looked at.
    fn are_open_to(&self, caller: &Caller) -> bool {
        self.named.is_empty() && caller.role == Role::Admin
    }
}

/// Whether the caller may let an agent work where this prompt goes.
pub(crate) async fn check_submit(app: &App, caller: &Caller, submit: &Submit) -> Result<()> {
    let known = match (&submit.cwd, &submit.target) {
        (Some(_), _) | (None, Target::New) => None,
        (None, Target::Session(id) | Target::Own(id) | Target::Fork(id)) => {
            match app.hub.find(id).await {
                Ok(session) => session.cwd,
                // The hub reports the error.
                Err(hub::Error::NoSession(_)) => None,
                Err(err) => return Err(err.into()),
            }
        }
        (None, Target::Native(id)) => {
            let native = SessionId::new(&**id);
            let found = app.hub.journal().find_native(&native).await?;
            found.and_then(|it| it.cwd)
        }
    };
    let known = known.map(PathBuf::from);
    let cwd = submit.cwd.as_deref().or(known.as_deref());
    check(app, caller, cwd.unwrap_or(Path::new("."))).await
}

/// Whether the caller may let an agent work there.
pub(crate) async fn check(app: &App, caller: &Caller, cwd: &Path) -> Result<()> {
    let real = found(cwd);
    let private = app.own.find(&real);
    // Before the roots: linkspan's own directories are closed to `admin` as well.
    if let Some(private) = private.filter(|it| it.is_kept_from(caller)) {
        return Err(not_private(private, cwd));
    }
    if app.roots.are_open_to(caller) || is_allowed(app, &real).await? {
        return Ok(());
    }
    let cwd = cwd.display();
    let message = format!("`{cwd}` is outside of the directories that this token may use");
    Err(not_allowed(message).hint("`linkspan serve --root DIR` names more of them"))
}

fn not_allowed(message: String) -> ApiError {
    ApiError::forbidden(message).code("directory_not_allowed")
}

fn not_private(private: HiddenReason, cwd: &Path) -> ApiError {
    let cwd = cwd.display();
    not_allowed(match private {
        HiddenReason::Own => format!("no agent works in `{cwd}`, which is linkspan's own"),
        HiddenReason::Named(pattern) => format!(
            "a token for `admin` is needed to work in `{cwd}`: `{pattern}` usually holds credentials"
        ),
        HiddenReason::Key => format!("a token for `admin` is needed to work in `{cwd}`"),
    })
}

/// Canonicalises a path. A missing path is judged by its nearest existing ancestor, so that errors
/// do not reveal what exists elsewhere.
fn found(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors().filter(|it| !it.as_os_str().is_empty());
    let nearest = ancestors.find_map(|it| it.canonicalize().ok());
    nearest
        .or_else(|| env::current_dir().ok()?.canonicalize().ok())
        .unwrap_or_else(|| path.to_owned())
}

async fn is_allowed(app: &App, cwd: &Path) -> Result<bool> {
    let is_below = |root: &PathBuf| cwd.starts_with(root);
    let Roots { named, here } = &app.roots;
    // The operator's list is final: sessions and projects elsewhere add nothing to it.
    if !named.is_empty() {
        return Ok(named.iter().any(is_below));
    }
    if here.as_ref().is_some_and(is_below) {
        return Ok(true);
    }
    let is_project = |it: &serde_json::Map<String, Value>| {
        let dir = it.get("workingDir").and_then(Value::as_str);
        dir.is_some_and(|it| is_below(&it.into()))
    };
    if app.bridge.projects().iter().any(is_project) {
        return Ok(true);
    }
    let mut pages = SessionPages::new(&**app.hub.journal(), SessionQuery::default());
    while let Some(sessions) = pages.next().await? {
        let mut dirs = sessions.iter().filter_map(|it| it.cwd.as_deref());
        if dirs.any(|it| is_below(&it.into())) {
            return Ok(true);
        }
    }
    Ok(false)
}
