//! The Homebrew formula, for the archives that are there.

use std::{fs, path::Path};

use anyhow::Result;

use super::{
    platform::{PLATFORMS, Platform},
    release::Release,
    sum,
};
use crate::process::root;

pub(super) fn write(release: &Release, dist: &Path) -> Result<()> {
    let mut archives = Vec::new();
    for platform in PLATFORMS {
        let name = format!("{}.tar.gz", platform.archive(&release.version));
        let path = dist.join(&name);
        if path.exists() {
            archives.push((platform, sum(&path)?));
        }
    }
    let template = fs::read_to_string(root().join("packages/homebrew/linkspan.rb"))?;
    fs::write(
        dist.join("linkspan.rb"),
        filled(&template, release, &archives),
    )?;
    Ok(())
}

fn filled(template: &str, release: &Release, archives: &[(&Platform, String)]) -> String {
    let of = |is_linux: bool| {
        let own = archives
            .iter()
            .filter(move |it| it.0.is_linux() == is_linux);
        own.map(|(platform, sum)| block(release, platform, sum))
            .collect::<Vec<_>>()
    };
    let systems = [("macos", of(false)), ("linux", of(true))];
    let systems: Vec<String> = systems
        .into_iter()
        .filter(|(_, blocks)| !blocks.is_empty())
        .map(|(name, blocks)| format!("  on_{name} do\n{}  end", blocks.concat()))
        .collect();
    template
        .replace("@DESCRIPTION@", &release.description)
        .replace("@REPOSITORY@", &release.repository)
        .replace("@VERSION@", &release.version)
        .replace("@ARCHIVES@", &systems.join("\n\n"))
}

fn block(release: &Release, platform: &Platform, sum: &str) -> String {
    let processor = if platform.is_arm() { "arm" } else { "intel" };
    let Release {
        repository,
        version,
        ..
    } = release;
    let archive = platform.archive(version);
    format!(
        "    on_{processor} do
      url \"{repository}/releases/download/v{version}/{archive}.tar.gz\"
      sha256 \"{sum}\"
    end
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_archives_that_are_there_are_offered() {
        let release = Release {
            version: "1.2.3".to_owned(),
            repository: "https://example.org".to_owned(),
            description: "Does it all".to_owned(),
            epoch: 0,
        };
        let archives = [
            (&PLATFORMS[0], "aa".to_owned()),
            (&PLATFORMS[3], "bb".to_owned()),
        ];
        let expected = r#"  on_macos do
    on_arm do
      url "https://example.org/releases/download/v1.2.3/linkspan-1.2.3-aarch64-apple-darwin.tar.gz"
      sha256 "bb"
    end
  end

  on_linux do
    on_intel do
      url "https://example.org/releases/download/v1.2.3/linkspan-1.2.3-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "aa"
    end
  end"#;
        assert_eq!(filled("@ARCHIVES@", &release, &archives), expected);
    }
}
