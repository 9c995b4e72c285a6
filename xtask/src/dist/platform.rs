//! What one platform is called by cargo, pip, npm and dpkg.

use std::env::consts::{ARCH, OS};

use anyhow::{Context, Result};

/// One machine that programs are built for, on itself.
#[derive(Debug)]
pub(super) struct Platform {
    os: &'static str,
    arch: &'static str,
    pub(super) triple: &'static str,
    /// In the name of a wheel; a wheel for Linux names a glibc as well.
    pub(super) wheel: &'static str,
    pub(super) npm_os: &'static str,
    pub(super) npm_cpu: &'static str,
    /// Its architecture in Debian; none where there is no Debian.
    pub(super) deb: Option<&'static str>,
}

pub(super) const PLATFORMS: &[Platform] = &[
    Platform {
        os: "linux",
        arch: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        wheel: "x86_64",
        npm_os: "linux",
        npm_cpu: "x64",
        deb: Some("amd64"),
    },
    Platform {
        os: "linux",
        arch: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        wheel: "aarch64",
        npm_os: "linux",
        npm_cpu: "arm64",
        deb: Some("arm64"),
    },
    Platform {
        os: "macos",
        arch: "x86_64",
        triple: "x86_64-apple-darwin",
        wheel: "macosx_11_0_x86_64",
        npm_os: "darwin",
        npm_cpu: "x64",
        deb: None,
    },
    Platform {
        os: "macos",
        arch: "aarch64",
        triple: "aarch64-apple-darwin",
        wheel: "macosx_11_0_arm64",
        npm_os: "darwin",
        npm_cpu: "arm64",
        deb: None,
    },
];

impl Platform {
    pub(super) fn of_this_machine() -> Result<&'static Self> {
        let found = PLATFORMS.iter().find(|it| (it.os, it.arch) == (OS, ARCH));
        found.with_context(|| format!("there are no packages for {OS} on {ARCH}"))
    }

    pub(super) fn is_linux(&self) -> bool {
        self.os == "linux"
    }

    pub(super) fn is_arm(&self) -> bool {
        self.arch == "aarch64"
    }

    /// The name of the archive, and of the folder inside of it.
    pub(super) fn archive(&self, version: &str) -> String {
        format!("linkspan-{version}-{}", self.triple)
    }

    /// The npm package that has this platform's program.
    pub(super) fn npm_package(&self) -> String {
        format!("linkspan-{}-{}", self.npm_os, self.npm_cpu)
    }
}
