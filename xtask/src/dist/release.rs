//! What is released: the version and its time, and whether the changelog agrees.

use std::{env, fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::process::{capture, root};

/// After the version in the changelog, until it is released.
const UNRELEASED: &str = "(unreleased)";

/// What all packages say of themselves.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) version: String,
    pub(super) repository: String,
    pub(super) description: String,
    /// The time of every file, in seconds: that of the commit, unless `SOURCE_DATE_EPOCH` says another.
    pub(super) epoch: u64,
}

#[derive(Deserialize)]
struct Workspace {
    workspace: WorkspaceTable,
}

#[derive(Deserialize)]
struct WorkspaceTable {
    package: WorkspacePackage,
}

#[derive(Deserialize)]
struct WorkspacePackage {
    version: String,
    repository: String,
}

#[derive(Deserialize)]
struct Manifest {
    package: ManifestPackage,
}

#[derive(Deserialize)]
struct ManifestPackage {
    description: String,
}

impl Release {
    pub(super) fn read() -> Result<Self> {
        let workspace: Workspace = read_toml("Cargo.toml")?;
        let manifest: Manifest = read_toml("crates/linkspan/Cargo.toml")?;
        Ok(Self {
            version: workspace.workspace.package.version,
            repository: workspace.workspace.package.repository,
            description: manifest.package.description,
            epoch: epoch()?,
        })
    }

    /// Fails when a package with this version would not be what the changelog calls so.
    pub(super) fn refuse_wrong_version(&self, tag: Option<&str>) -> Result<()> {
        let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
        check_version(&self.version, &changelog, tag)
    }
}

pub(super) fn read_toml<T: for<'de> Deserialize<'de>>(name: &str) -> Result<T> {
    let text = fs::read_to_string(root().join(name)).with_context(|| format!("no `{name}`"))?;
    toml::from_str(&text).with_context(|| format!("`{name}` is not as expected"))
}

/// The newest entry of the changelog is that of the workspace's version; a tag wants it to be finished.
fn check_version(version: &str, changelog: &str, tag: Option<&str>) -> Result<()> {
    let Some(heading) = changelog.lines().find_map(|it| it.strip_prefix("## ")) else {
        bail!("CHANGELOG.md has no entry");
    };
    let (newest, state) = heading.split_once(' ').unwrap_or((heading, ""));
    ensure!(
        newest == version,
        "the workspace is version {version}, and the newest entry of CHANGELOG.md is `{heading}`: \
         set the version in Cargo.toml, or begin an entry `## {version} {UNRELEASED}`"
    );
    let Some(tag) = tag else { return Ok(()) };
    ensure!(
        tag.strip_prefix('v') == Some(version),
        "the tag `{tag}` is not that of version {version}, `v{version}`"
    );
    ensure!(
        state != UNRELEASED,
        "CHANGELOG.md calls {version} unreleased: write the date in its place before it is tagged"
    );
    Ok(())
}

fn epoch() -> Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(it) => it,
        Err(_) => {
            let mut log = Command::new("git");
            log.args(["log", "-1", "--format=%ct"]).current_dir(root());
            let printed = capture(&mut log).context("the time of the commit is needed")?;
            String::from_utf8(printed.stdout)?
        }
    };
    let text = text.trim();
    text.parse()
        .with_context(|| format!("the time `{text}` is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, heading: &str, tag: Option<&str>) -> Option<String> {
        let changelog = format!("# Changelog\n\n## {heading}\n\n- x\n\n## 0.0.9\n");
        check_version(version, &changelog, tag)
            .err()
            .map(|it| it.to_string())
    }

    #[test]
    fn the_newest_entry_of_the_changelog_names_the_version() {
        for heading in ["0.1.0", "0.1.0 (unreleased)", "0.1.0 (2026-11-20)"] {
            assert_eq!(check("0.1.0", heading, None), None, "{heading}");
        }
        let wrong = "the workspace is version 0.2.0, and the newest entry of CHANGELOG.md is `0.1.0`: set the \
                     version in Cargo.toml, or begin an entry `## 0.2.0 (unreleased)`";
        assert_eq!(check("0.2.0", "0.1.0", None).as_deref(), Some(wrong));
    }

    #[test]
    fn a_tag_wants_its_own_version_released() {
        assert_eq!(check("0.1.0", "0.1.0 (2026-11-20)", Some("v0.1.0")), None);
        let other = "the tag `v0.1.1` is not that of version 0.1.0, `v0.1.0`";
        let checked = check("0.1.0", "0.1.0 (2026-11-20)", Some("v0.1.1"));
        assert_eq!(checked.as_deref(), Some(other));
        let early =
            "CHANGELOG.md calls 0.1.0 unreleased: write the date in its place before it is tagged";
        let checked = check("0.1.0", "0.1.0 (unreleased)", Some("v0.1.0"));
        assert_eq!(checked.as_deref(), Some(early));
    }
}
