//! Patches over several files, as Codex reports them: a path and a kind for each, at best a diff.

use std::borrow::Cow;

use model::{Change, Diff, Text};

use super::text;
use crate::wire::lenient::{Any, Boxed, Str};

object! {
    PatchedFile {
        path: Any<'a> = "path",
        kind: ChangeKind<'a> = "kind",
        /// The whole file when it is new or gone, else hunks.
        diff: Any<'a> = "diff",
    }
}

/// `"add"`, or an object whose `type` is `add`.
#[derive(Debug, Default)]
pub(crate) struct ChangeKind<'a>(Str<'a>);

object! {
    KindObject {
        r#type: Str<'a> = "type",
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for ChangeKind<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let any = Any::deserialize(deserializer)?;
        // `codex exec` prints the name by itself.
        let name: Str<'de> = any.parse().unwrap_or_default();
        if name.0.is_some() {
            return Ok(Self(name));
        }
        let mut object: Boxed<KindObject<'de>> = any.parse().unwrap_or_default();
        Ok(Self(object.take().r#type))
    }
}

impl PatchedFile<'_> {
    pub(crate) fn change(&self) -> Option<Change> {
        match self.kind.0.as_deref()? {
            "add" => Some(Change::Add),
            "update" => Some(Change::Update),
            "delete" => Some(Change::Delete),
            _ => None,
        }
    }
}

/// What happened to all the files alike.
pub(super) fn one_change(changes: &[PatchedFile<'_>]) -> Option<Change> {
    let first = changes.first()?.change()?;
    let is_same = |it: &PatchedFile<'_>| it.change() == Some(first);
    changes.iter().all(is_same).then_some(first)
}

pub(super) fn diffs<'a>(changes: &[PatchedFile<'a>]) -> Vec<Diff<'a>> {
    let mut diffs = Vec::new();
    for change in changes {
        let (Some(path), Some(diff)) = (text(change.path), text(change.diff)) else {
            continue;
        };
        let whole = |old, new| Diff {
            path: path.clone(),
            old,
            new,
        };
        match change.change() {
            Some(Change::Add) => diffs.push(whole(None, diff)),
            Some(Change::Delete) => diffs.push(whole(Some(diff), Text::EMPTY)),
            Some(Change::Update) | None => {
                diffs.extend(
                    hunks(&diff.to_str())
                        .map(|(old, new)| whole(Some(Text::Plain(old)), Text::Plain(new))),
                );
            }
        }
    }
    diffs
}

/// The hunks of a unified diff: what was there, and what is there now.
fn hunks(diff: &str) -> impl Iterator<Item = (Cow<'static, str>, Cow<'static, str>)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        let Some((old, new)) = hunks.last_mut() else {
            continue; // The names of the files.
        };
        match line.split_at_checked(1) {
            Some(("-", rest)) => old.push_str(rest),
            Some(("+", rest)) => new.push_str(rest),
            Some((" ", rest)) => {
                old.push_str(rest);
                new.push_str(rest);
            }
            // Such as `\ No newline at end of file`.
            Some(_) | None => (),
        }
    }
    // A hunk that only has context shows no change.
    let hunks = hunks.into_iter().filter(|(old, new)| old != new);
    hunks.map(|(old, new)| (Cow::Owned(old), Cow::Owned(new)))
}
