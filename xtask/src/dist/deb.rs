//! The Debian package, put together in a folder and packed by `dpkg-deb`.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{
    Folders, archive::gz, files_below, program::Needs, release::Release, systemd_unit,
    wheel::Installed,
};
use crate::process::{capture, root, run};

/// Before the text of the second licence; Debian has that of the first.
const COPYRIGHT: &str = "\
linkspan is licensed under the Apache License 2.0, which is in /usr/share/common-licenses/Apache-2.0,
or under the following licence, at your option.

";

pub(super) fn build(
    release: &Release,
    architecture: &str,
    needs: &Needs,
    installed: &Installed,
    folders: &Folders,
) -> Result<()> {
    let tree = folders.work.join("deb");
    let put = |path: &str, content: &[u8], mode: u32| put(&tree.join(path), content, mode);
    put("usr/bin/linkspan", &installed.program, 0o755)?;
    for (name, content) in &installed.share {
        match name.strip_prefix("zsh/site-functions/") {
            // Debian keeps that folder for the administrator.
            Some(name) => put(
                &format!("usr/share/zsh/vendor-completions/{name}"),
                content,
                0o644,
            )?,
            None if name.starts_with("man/") => {
                put(&format!("usr/share/{name}.gz"), &gz(content)?, 0o644)?;
            }
            None => put(&format!("usr/share/{name}"), content, 0o644)?,
        }
    }
    let unit = systemd_unit("/usr/bin/linkspan")?;
    put(
        "usr/lib/systemd/user/linkspan.service",
        unit.as_bytes(),
        0o644,
    )?;
    let read = |name: &str| fs::read(root().join(name)).with_context(|| format!("no `{name}`"));
    let doc = |name: &str| format!("usr/share/doc/linkspan/{name}");
    put(&doc("changelog.gz"), &gz(&read("CHANGELOG.md")?)?, 0o644)?;
    let copyright = [COPYRIGHT.as_bytes(), &read("LICENSE-MIT")?];
    put(&doc("copyright"), &copyright.concat(), 0o644)?;

    let files = files_below(&tree)?;
    let mut sizes = 0;
    let mut md5sum = Command::new("md5sum");
    md5sum.current_dir(&tree);
    for file in &files {
        sizes += file.metadata()?.len().div_ceil(1024);
        md5sum.arg(file.strip_prefix(&tree)?);
    }
    put("DEBIAN/md5sums", &capture(&mut md5sum)?.stdout, 0o644)?;
    let control = control(release, architecture, needs, sizes);
    put("DEBIAN/control", control.as_bytes(), 0o644)?;

    let name = format!("linkspan_{}_{architecture}.deb", release.version);
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"])
        .args([&tree, &folders.dist.join(name)])
        // Later times, which those of the files just written are, become this one.
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    run(&mut pack)
}

fn put(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)?;
    // Whatever the mask of this user is.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn control(release: &Release, architecture: &str, needs: &Needs, kilobytes: u64) -> String {
    let Release {
        version,
        repository,
        description,
        ..
    } = release;
    let depends = depends(needs);
    format!(
        "Package: linkspan
Version: {version}
Architecture: {architecture}
Maintainer: The linkspan authors <linkspan@users.noreply.github.com>
Installed-Size: {kilobytes}
Depends: {depends}
Suggests: git
Section: devel
Priority: optional
Homepage: {repository}
Description: {description}
 linkspan starts Claude Code, Codex, OpenCode, Gemini CLI, OpenHands, any ACP
 agent or a model behind an endpoint, keeps what they do in a journal, and
 serves it to browsers, editors and programs in the protocol of each.
 .
 The agents themselves are not part of this package.
"
    )
}

/// The packages of Debian that have the libraries.
fn depends(needs: &Needs) -> String {
    let mut packages: Vec<String> = needs
        .glibc
        .iter()
        .map(|it| format!("libc6 (>= {it})"))
        .collect();
    if needs.libraries.iter().any(|it| it == "libgcc_s.so.1") {
        packages.push("libgcc-s1 (>= 4.2)".to_owned());
    }
    packages.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::program::Glibc;

    #[test]
    fn the_control_file_is_what_dpkg_reads() {
        let release = Release {
            version: "1.2.3".to_owned(),
            repository: "https://example.org".to_owned(),
            description: "Does it all".to_owned(),
            epoch: 0,
        };
        let needs = Needs {
            glibc: Some(Glibc(2, 34)),
            libraries: vec!["libgcc_s.so.1".to_owned(), "libc.so.6".to_owned()],
        };
        let control = control(&release, "amd64", &needs, 12_345);
        let expected = "Package: linkspan
Version: 1.2.3
Architecture: amd64
Maintainer: The linkspan authors <linkspan@users.noreply.github.com>
Installed-Size: 12345
Depends: libc6 (>= 2.34), libgcc-s1 (>= 4.2)
Suggests: git
Section: devel
Priority: optional
Homepage: https://example.org
Description: Does it all
 linkspan starts";
        assert!(control.starts_with(expected), "{control}");
        let is_one_paragraph = control.lines().all(|it| !it.is_empty());
        assert!(is_one_paragraph && control.ends_with('\n'), "{control}");
    }
}
