//! A terminal with somebody at it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::Stdio;

use rustix::pty;

pub(crate) struct Terminal {
    ours: File,
    theirs: File,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let flags = pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY;
        let ours = pty::openpt(flags).unwrap();
        pty::grantpt(&ours).unwrap();
        pty::unlockpt(&ours).unwrap();
        let name = pty::ptsname(&ours, Vec::new()).unwrap();
        let theirs = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap());
        Self {
            ours: ours.into(),
            theirs: theirs.unwrap(),
        }
    }

    /// The end that a program is given.
    pub(crate) fn theirs(&self) -> Stdio {
        self.theirs.try_clone().unwrap().into()
    }

    /// What is shown comes out of it, until the last program has left the terminal.
    pub(crate) fn ours(&self) -> File {
        self.ours.try_clone().unwrap()
    }

    pub(crate) fn enter(&mut self, line: &str) {
        writeln!(self.ours, "{line}").unwrap();
    }
}
