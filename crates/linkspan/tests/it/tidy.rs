//! The names of the source tree: one name for one type, and no name in the documentation that is gone.
//!
//! The sources are read line by line, not parsed: `rustfmt` puts every definition on a line of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use linkspan::registry::FORMATS;
use runner::engines::ENGINES;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Names that several types of a crate may have, because they are always written with their module.
const SHARED: &[(&str, &str)] = &[
    ("Error", "one error type for each module that fails"),
    ("Result", "the alias that goes with it"),
    ("Acp", "the reader and the writer of a format have its name"),
    (
        "AgUi",
        "the reader and the writer of a format have its name",
    ),
    (
        "Claude",
        "the reader and the writer of a format have its name",
    ),
    (
        "Linkspan",
        "the reader and the writer of a format have its name",
    ),
    (
        "OpenHands",
        "the reader and the writer of a format have its name",
    ),
];

/// Past participles say what happened to a value, not what it is.
const BANNED: &[&str] = &["Told", "Said", "Heard", "Shown", "Asked", "Woken"];

/// Where the name of a format or an engine may decide what happens.
const BY_NAME: &[(&str, &str)] = &[
    (
        "crates/formats/src/writers/takopi.rs",
        "the profile `upstream` imitates what takopi makes of each engine",
    ),
    (
        "crates/formats/src/writers/openhands.rs",
        "`acp` is the name of one of its profiles, too",
    ),
    (
        "crates/runner/src/config/file.rs",
        "takopi's config has `claude` at the top",
    ),
];

struct TypeDefinition {
    crate_name: String,
    name: String,
    at: String,
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in sources().iter().filter(|it| is_product_code(it)) {
        for it in types(file, &product_lines(&read(file))) {
            let is_shared = SHARED.iter().any(|(name, _)| *name == it.name);
            if !is_shared {
                let key = (it.crate_name, it.name);
                places.entry(key).or_default().push(it.at);
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    assert_eq!(places, BTreeMap::new());
}

/// Whatever is known of a format or an engine is a column of its table, so that a new one is a new row.
#[test]
fn formats_and_engines_are_told_apart_by_their_tables() {
    let formats = FORMATS.iter().map(|it| it.name);
    let engines = ENGINES.iter().map(|it| it.name);
    // Every protocol has contents of the type `text`.
    let names: BTreeSet<&str> = formats.chain(engines).filter(|it| *it != "text").collect();
    let mut found = BTreeSet::new();
    let is_in_crates = |it: &&PathBuf| is_product_code(it) && relative(it).starts_with("crates/");
    for file in sources().iter().filter(is_in_crates) {
        let text = code(&product_lines(&read(file)));
        let decides = |it: &str| names.iter().any(|name| decides_by(it, name));
        if text.lines().any(decides) {
            found.insert(relative(file));
        }
    }
    let expected = BY_NAME.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(found, expected);
}

/// Whether a line compares something with this name, or has an arm for it.
fn decides_by(line: &str, name: &str) -> bool {
    let name = format!("\"{name}\"");
    line.match_indices(&name).any(|(at, _)| {
        let before = line[..at].trim_end();
        let compared = before.trim_end_matches(['(', '&', '*']);
        let compared = compared.strip_suffix("Some").unwrap_or(compared).trim_end();
        let after = line[at + name.len()..].trim_start_matches([')', ' ']);
        let is_operand = ["==", "!=", "|"].iter().any(|it| compared.ends_with(it));
        let is_pattern = ["=", "!=", "|", "if "]
            .iter()
            .any(|it| after.starts_with(it));
        is_operand || is_pattern || before.contains("matches!(")
    })
}

#[test]
fn names_are_found_where_they_decide() {
    for line in [
        r#"if engine == "codex" {"#,
        r#"let is_it = Some("codex") != name;"#,
        r#""claude" | "codex" => 1,"#,
        r#"Some("codex") => 1,"#,
        r#"if let (Some(key), "codex") = (used, name) {"#,
        r#"matches!(engine, "codex")"#,
    ] {
        assert!(decides_by(line, "codex"), "{line}");
    }
    for line in [r#"name: "codex","#, r#"Lifecycle::new("codex", config)"#] {
        assert!(!decides_by(line, "codex"), "{line}");
    }
}

/// A rule about leases, asks or backpressure has one place only if agents run in one place.
#[test]
fn only_the_hub_runs_agents() {
    let is_elsewhere = |it: &&PathBuf| {
        let path = it.to_string_lossy();
        is_product_code(it) && !path.contains("crates/hub/") && !path.contains("crates/runner/")
    };
    let starts: Vec<PathBuf> = sources()
        .iter()
        .filter(is_elsewhere)
        .filter(|it| read(it).contains("Agent::start("))
        .cloned()
        .collect();
    assert_eq!(starts, Vec::<PathBuf>::new());
}

/// A thread of messages is part of the model; AG-UI is one protocol that carries it.
#[test]
fn the_supervisor_does_not_know_ag_ui() {
    let crates = ["runner", "hub", "responses"].map(|it| format!("crates/{it}/"));
    let is_supervisor = |it: &&PathBuf| crates.iter().any(|name| relative(it).starts_with(name));
    let users: Vec<String> = sources()
        .iter()
        .filter(is_supervisor)
        .filter(|it| code(&read(it)).contains("ag_ui"))
        .map(|it| relative(it))
        .collect();
    assert_eq!(users, Vec::<String>::new());
}

#[test]
fn types_are_named_after_what_they_are() {
    let mut found = Vec::new();
    for file in sources() {
        let types = types(&file, &read(&file));
        found.extend(types.into_iter().filter(|it| BANNED.contains(&&*it.name)));
    }
    let found: Vec<String> = found.into_iter().map(|it| it.at).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_name_in_the_architecture_exists() {
    let mut known = BTreeSet::new();
    for file in sources() {
        known.extend(words(&code(&read(&file))));
        let path = relative(&file);
        known.extend(words(&path));
    }
    let text = read(&Path::new(ROOT).join("ARCHITECTURE.md"));
    let mut missing = BTreeSet::new();
    for name in backticked(&text) {
        if name.contains('/') {
            let path = Path::new(ROOT).join(name.trim_end_matches('/'));
            if path.exists() || name.contains('*') {
                continue;
            }
        }
        let is_known = words(name).all(|it| known.contains(&it));
        if !is_known {
            missing.insert(name.to_owned());
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

/// All Rust files of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "fuzz/src", "fuzz/targets"] {
        collect(&Path::new(ROOT).join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 400, "the sources were not found");
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

/// Neither a test nor a module of foreign JSON, whose types have the names of their protocol.
fn is_product_code(file: &Path) -> bool {
    let path = relative(file);
    let Some((_, inside)) = path.split_once("/src/") else {
        return false;
    };
    let is_test = inside
        .split('/')
        .any(|it| it == "tests" || it == "tests.rs");
    let is_test_support = inside.contains("/test_");
    let is_wire = inside.split('/').any(|it| it == "wire" || it == "wire.rs");
    !is_test && !is_test_support && !is_wire
}

/// A file without the test module at its end.
fn product_lines(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    text[..end.unwrap_or(text.len())].to_owned()
}

fn types(file: &Path, text: &str) -> Vec<TypeDefinition> {
    let path = relative(file);
    let crate_name = path.split('/').take(2).collect::<Vec<_>>().join("/");
    let mut types = Vec::new();
    let mut is_object = false;
    for (n, line) in text.lines().enumerate() {
        // `object! { Name { … } }` defines a type, too.
        is_object = line.ends_with("object! {") || (is_object && line != "}");
        if let Some(name) = type_name(line).or_else(|| object_name(line).filter(|_| is_object)) {
            types.push(TypeDefinition {
                crate_name: crate_name.clone(),
                name: name.to_owned(),
                at: format!("{path}:{}", n + 1),
            });
        }
    }
    types
}

/// The type that a line defines; an indented `type` is an associated one.
fn type_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    let is_indented = rest.len() < line.len();
    if let Some(public) = rest.strip_prefix("pub") {
        let end = if public.starts_with('(') {
            public.find(')')? + 1
        } else {
            0
        };
        rest = public[end..].strip_prefix(' ')?;
    }
    let (keyword, rest) = rest.split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !is_indented,
        _ => false,
    };
    let end = rest
        .find(|it: char| !it.is_alphanumeric())
        .unwrap_or(rest.len());
    let name = &rest[..end];
    (is_type && name.starts_with(|it: char| it.is_uppercase())).then_some(name)
}

fn object_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    ")?.strip_suffix(" {")?;
    let is_name = name.starts_with(|it: char| it.is_uppercase());
    (is_name && name.chars().all(char::is_alphanumeric)).then_some(name)
}

/// Without comments, in which an old name may live on.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|it| !it.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    parts.filter(|it| !it.is_empty()).map(str::to_owned)
}

fn backticked(text: &str) -> impl Iterator<Item = &str> {
    // Code blocks draw pictures; every second piece of the rest stands between back-ticks.
    let prose = text.split("```").step_by(2);
    prose.flat_map(|it| it.split('`').skip(1).step_by(2))
}

fn relative(file: &Path) -> String {
    let path = file.strip_prefix(ROOT).unwrap();
    path.to_str().unwrap().to_owned()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}
