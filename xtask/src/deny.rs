//! Holds the dependencies to `deny.toml`: their licences, and where they come from.
//!
//! `cargo deny` reads the same file and does more, but takes minutes to build, so that the test command
//! would skip it. What is checked here are its `licenses` and `sources`, with the same parser of licences.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::process::{capture, cargo, root};

/// The one registry that dependencies may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for those of the workspace.
    source: Option<String>,
}

pub(crate) fn run() -> Result<()> {
    let policy = fs::read_to_string(root().join("deny.toml")).context("cannot read `deny.toml`")?;
    let policy: Policy = toml::from_str(&policy).context("`deny.toml` is not as expected")?;
    let printed = capture(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_slice(&printed.stdout)?;
    let allowed = allowed(&policy.licenses.allow)?;
    let faults: Vec<String> = metadata
        .packages
        .iter()
        .filter_map(|it| {
            let fault = fault(it, &allowed)?;
            Some(format!("{} {}: {fault}", it.name, it.version))
        })
        .collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

fn allowed(names: &[String]) -> Result<Vec<spdx::Licensee>> {
    let parse = |it: &String| {
        spdx::Licensee::parse(it)
            .with_context(|| format!("`deny.toml` allows `{it}`, an unknown licence"))
    };
    names.iter().map(parse).collect()
}

/// Why a package may not be used.
fn fault(package: &Package, allowed: &[spdx::Licensee]) -> Option<String> {
    if package.source.as_ref().is_some_and(|it| it != REGISTRY) {
        return Some("it does not come from crates.io".to_owned());
    }
    let Some(license) = &package.license else {
        return Some("it names no licence".to_owned());
    };
    let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
        return Some(format!("its licence `{license}` cannot be read"));
    };
    let is_allowed = expression.evaluate(|wanted| allowed.iter().any(|it| it.satisfies(wanted)));
    (!is_allowed).then(|| format!("its licence `{license}` is not in `deny.toml`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(license: Option<&str>, source: Option<&str>) -> Option<String> {
        let package = Package {
            name: "x".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        let names = ["MIT", "Apache-2.0"].map(str::to_owned);
        fault(&package, &allowed(&names).expect("these are licences"))
    }

    #[test]
    fn one_of_the_allowed_licences_is_enough_and_all_that_apply_are_needed() {
        for fine in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0-only OR Apache-2.0",
            "MIT AND Apache-2.0",
        ] {
            assert_eq!(check(Some(fine), None), None, "{fine}");
        }
        let gpl = "its licence `MIT AND GPL-3.0-only` is not in `deny.toml`";
        assert_eq!(
            check(Some("MIT AND GPL-3.0-only"), None).as_deref(),
            Some(gpl)
        );
        assert_eq!(check(None, None).as_deref(), Some("it names no licence"));
        let git = Some("git+https://example.org/x");
        let elsewhere = "it does not come from crates.io";
        assert_eq!(check(Some("MIT"), git).as_deref(), Some(elsewhere));
    }
}
