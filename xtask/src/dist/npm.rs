//! The npm packages: the main one, and the one with this platform's program.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Folders, copy, files_below, platform::Platform, release::Release, wheel::Installed};
use crate::process::{capture, root};

pub(super) fn build(
    release: &Release,
    platform: &Platform,
    installed: &Installed,
    folders: &Folders,
) -> Result<()> {
    let source = root().join("packages/npm/linkspan");
    let manifest = manifest(&source)?;
    let main = folders.work.join("npm/linkspan");
    for path in files_below(&source)? {
        let name = path.strip_prefix(&source)?;
        if !name.starts_with("node_modules") {
            copy(&path, &main.join(name))?;
        }
    }
    pack(release, &main, folders)?;

    let own = folders.work.join("npm").join(platform.npm_package());
    fs::create_dir_all(own.join("bin"))?;
    let program = own.join("bin/linkspan");
    fs::write(&program, &installed.program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let text = serde_json::to_string_pretty(&platform_manifest(&manifest, platform))?;
    fs::write(own.join("package.json"), text + "\n")?;
    let readme = format!(
        "# {}\n\nThe program of [linkspan](https://www.npmjs.com/package/linkspan) for {} on {}. Install `linkspan`, which takes this one by itself.\n",
        platform.npm_package(),
        platform.npm_os,
        platform.npm_cpu
    );
    fs::write(own.join("README.md"), readme)?;
    pack(release, &own, folders)
}

pub(super) fn manifest(package: &Path) -> Result<Value> {
    let path = package.join("package.json");
    let text = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("`{}` is no JSON", path.display()))
}

/// Of the same version, licence and repository as the main one, for one platform.
fn platform_manifest(main: &Value, platform: &Platform) -> Value {
    let mut manifest = json!({
        "name": platform.npm_package(),
        "version": main["version"],
        "description": format!("The program of linkspan for {} on {}", platform.npm_os, platform.npm_cpu),
        "license": main["license"],
        "repository": main["repository"],
        "os": [platform.npm_os],
        "cpu": [platform.npm_cpu],
        "files": ["bin/linkspan", "LICENSE-APACHE", "LICENSE-MIT"],
        "preferUnplugged": true,
    });
    if platform.is_linux() {
        manifest["libc"] = json!(["glibc"]);
    }
    manifest
}

/// npm's own archives have one time for all files, and no owners.
fn pack(release: &Release, package: &Path, folders: &Folders) -> Result<()> {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(name), &package.join(name))?;
    }
    let version = &manifest(package)?["version"];
    ensure!(
        *version == release.version,
        "`{}` has the version {version}, not that of the workspace, {}",
        package.display(),
        release.version
    );
    let mut npm = Command::new("npm");
    npm.args(["pack", "--ignore-scripts", "--no-update-notifier"])
        .arg("--loglevel=error")
        .arg("--pack-destination")
        .arg(&folders.npm)
        .current_dir(package);
    capture(&mut npm)?;
    Ok(())
}
