//! The descriptions of the packages agree with each other and with the files that they name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{files_below, npm, platform::PLATFORMS, release::Release, release::read_toml};
use crate::process::root;

fn release() -> Release {
    Release::read().expect("the workspace has a version")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|err| panic!("`{name}`: {err}"))
}

/// The folders of all crates that are published.
fn published() -> Vec<PathBuf> {
    let entries = root().join("crates").read_dir().expect("there are crates");
    let mut folders: Vec<PathBuf> = entries.map(|it| it.expect("a folder").path()).collect();
    folders.retain(|it| {
        let manifest = fs::read_to_string(it.join("Cargo.toml")).expect("a manifest");
        !manifest.contains("publish = false")
    });
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    let name = folder.file_name().and_then(|it| it.to_str());
    name.expect("crates have names")
}

#[test]
fn the_changelog_begins_with_the_version() {
    release()
        .refuse_wrong_version(None)
        .expect("CHANGELOG.md fits the version");
}

#[test]
fn every_crate_is_published_under_its_own_name_with_one_version() {
    let workspace: Value = read_toml("Cargo.toml").expect("the workspace");
    let dependencies = &workspace["workspace"]["dependencies"];
    let version = format!("={}", release().version);
    let folders = published();
    assert!(folders.len() >= 9, "{folders:?}");
    for folder in folders {
        let name = name(&folder);
        let path = format!("crates/{name}/Cargo.toml");
        let manifest: Value = read_toml(&path).expect("a manifest");
        let package = match name {
            "linkspan" => name.to_owned(),
            _ => {
                assert_eq!(dependencies[name]["version"], version, "{name}");
                assert_eq!(manifest["lib"]["name"], name);
                format!("linkspan-{}", name.replace('_', "-"))
            }
        };
        assert_eq!(manifest["package"]["name"], package);
        let readme = read(&format!("crates/{name}/README.md"));
        assert!(readme.starts_with(&format!("# {package}\n")), "{readme}");
        for key in ["description", "repository", "keywords", "categories"] {
            assert!(!manifest["package"][key].is_null(), "{path} has no {key}");
        }
    }
}

/// Cargo packs nothing from outside of a crate, and the build would fail for whoever installs it.
#[test]
fn what_a_crate_embeds_is_inside_of_it() {
    let mut found = BTreeSet::new();
    for folder in published() {
        for file in files_below(&folder.join("src")).expect("its sources") {
            let inside = file.strip_prefix(&folder).expect("inside");
            let is_test = inside.components().any(|it| {
                let it = it.as_os_str().to_string_lossy();
                it == "tests" || it == "tests.rs" || it.ends_with("_tests.rs")
            });
            if is_test || file.extension().is_none_or(|it| it != "rs") {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source");
            let end = text.find("#[cfg(test)]\nmod tests {");
            for path in embedded(&text[..end.unwrap_or(text.len())]) {
                // `src/x.rs` may go up once, `src/a/x.rs` twice.
                let n_up = path.split('/').take_while(|it| *it == "..").count();
                if n_up >= inside.components().count() {
                    found.insert(format!("{}: {path}", file.display()));
                }
            }
        }
    }
    assert_eq!(found, BTreeSet::new());
}

fn embedded(text: &str) -> impl Iterator<Item = &str> {
    let calls = text.split("include_str!(").skip(1);
    let calls = calls.chain(text.split("include_bytes!(").skip(1));
    calls.filter_map(|it| it.split('"').nth(1))
}

#[test]
fn the_python_package_describes_the_same_program() {
    let release = release();
    let python: Value = read_toml("pyproject.toml").expect("the Python package");
    let project = &python["project"];
    assert_eq!(project["name"], "linkspan");
    assert_eq!(project["dynamic"], serde_json::json!(["version"]));
    assert_eq!(project["description"], release.description);
    assert_eq!(project["urls"]["Repository"], release.repository);
    let workspace: Value = read_toml("Cargo.toml").expect("the workspace");
    assert_eq!(
        project["license"],
        workspace["workspace"]["package"]["license"]
    );
    for file in project["license-files"].as_array().expect("a list") {
        read(file.as_str().expect("a name"));
    }
    read(project["readme"].as_str().expect("a name"));
    for extra in ["openhands", "ag-ui", "takopi"] {
        assert!(
            !project["optional-dependencies"][extra].is_null(),
            "{extra}"
        );
    }
}

#[test]
fn the_entry_points_of_the_python_package_exist() {
    let python: Value = read_toml("pyproject.toml").expect("the Python package");
    let groups = python["project"]["entry-points"].as_object();
    let entries = groups
        .expect("there are entry points")
        .values()
        .flat_map(|it| it.as_object().expect("a table"));
    let mut n_entries = 0;
    for (name, value) in entries {
        let value = value.as_str().expect("a text");
        let (module, object) = value.split_once(':').expect("a module and its object");
        let path = format!("packages/python/src/{}.py", module.replace('.', "/"));
        let is_defined = |it: &str| {
            it.strip_prefix(object)
                .is_some_and(|rest| rest.starts_with([' ', ':']))
        };
        assert!(
            read(&path).lines().any(is_defined),
            "{path} has no `{object}`, which the entry point `{name}` names"
        );
        n_entries += 1;
    }
    assert_eq!(n_entries, 6);
}

#[test]
fn the_npm_package_wants_the_programs_of_its_own_version() {
    let release = release();
    let folder = root().join("packages/npm/linkspan");
    let manifest = npm::manifest(&folder).expect("the npm package");
    assert_eq!(manifest["name"], "linkspan");
    assert_eq!(manifest["version"], release.version);
    assert_eq!(manifest["license"], "Apache-2.0 OR MIT");
    let expected: BTreeMap<String, &str> = PLATFORMS
        .iter()
        .map(|it| (it.npm_package(), release.version.as_str()))
        .collect();
    assert_eq!(
        manifest["optionalDependencies"],
        serde_json::to_value(expected).expect("texts")
    );
    let mut named = Vec::new();
    for key in ["bin", "exports", "main", "types"] {
        texts(&manifest[key], &mut named);
    }
    assert!(!named.is_empty());
    let packed: Vec<&str> = manifest["files"]
        .as_array()
        .expect("a list of what is packed")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for path in named {
        let path = path.trim_start_matches("./");
        assert!(folder.join(path).exists(), "there is no `{path}`");
        let is_packed = path == "package.json"
            || packed
                .iter()
                .any(|it| path.starts_with(it.trim_end_matches('/')));
        assert!(is_packed, "`{path}` is not among the `files`");
    }
}

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(it) => found.push(it),
        Value::Object(it) => it.values().for_each(|it| texts(it, found)),
        Value::Array(it) => it.iter().for_each(|it| texts(it, found)),
        _ => (),
    }
}

#[test]
fn the_release_builds_every_platform() {
    let workflow = read(".github/workflows/release.yml");
    let built: BTreeSet<&str> = workflow
        .lines()
        .filter_map(|it| it.split_once("{ triple: ")?.1.split(',').next())
        .collect();
    let expected: BTreeSet<&str> = PLATFORMS.iter().map(|it| it.triple).collect();
    assert_eq!(built, expected);
    assert!(workflow.contains("cargo xtask dist --check --tag \"$GITHUB_REF_NAME\""));
}
