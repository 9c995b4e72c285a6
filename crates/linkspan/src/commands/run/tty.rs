//! The user's terminal, whatever stdin and stdout are: asked line by line, lent to an editor.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::Command;
use std::{env, fs, thread};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

/// Editors to try if none is configured.
const EDITORS: [&str; 2] = ["vi", "nano"];

#[derive(Debug)]
pub(super) struct Tty {
    file: File,
    /// A pending terminal read, which cannot be cancelled.
    typing: Option<oneshot::Receiver<Option<String>>>,
    /// It is typed for a question that is gone.
    is_stale: bool,
}

impl Tty {
    /// None where there is no terminal.
    pub(super) fn open() -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let file = file.ok()?;
        Some(Self {
            file,
            typing: None,
            is_stale: false,
        })
    }

    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    /// A new question: what was typed before it was not meant for it.
    pub(super) fn forget(&mut self) {
        // A terminal that cannot do it has nothing that waits.
        tcflush(&self.file, QueueSelector::IFlush).ok();
        self.is_stale = self.typing.is_some();
    }

    /// The next line; none when the terminal is gone. May be dropped and called again.
    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            if self.typing.is_none() {
                let file = self.file.try_clone().ok()?;
                // A thread, because tokio cannot wait for a terminal, and a read of it has no time-out.
                let (tx, rx) = oneshot::channel();
                thread::spawn(move || tx.send(read(file)));
                self.typing = Some(rx);
            }
            let line = match &mut self.typing {
                Some(typing) => typing.await.ok().flatten(),
                None => None,
            };
            self.typing = None;
            if !std::mem::take(&mut self.is_stale) {
                return line;
            }
        }
    }

    /// Opens `text` in an editor and waits for it.
    pub(super) fn edit(&self, text: &str) -> io::Result<String> {
        // A folder of a random name that only we may enter: what is in it is going to be run.
        let folder = tempfile::Builder::new().prefix("linkspan-").tempdir()?;
        let path = folder.path().join("input.json");
        fs::write(&path, text)?;
        self.run_editor(&path)?;
        fs::read_to_string(&path)
    }

    fn run_editor(&self, path: &std::path::Path) -> io::Result<()> {
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|it| env::var(it).ok().filter(|it| !it.trim().is_empty()));
        let candidates = match &named {
            Some(editor) => vec![&**editor],
            None => EDITORS.to_vec(),
        };
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for editor in candidates {
            let mut words = editor.split_whitespace();
            let Some(program) = words.next() else {
                continue;
            };
            let status = Command::new(program)
                .args(words)
                .arg(path)
                .stdin(self.file.try_clone()?)
                .stdout(self.file.try_clone()?)
                .stderr(self.file.try_clone()?)
                .status();
            match status {
                Ok(status) if status.success() => return Ok(()),
                Ok(status) => failed = io::Error::other(format!("`{program}`: {status}")),
                Err(err) => failed = err,
            }
        }
        Err(failed)
    }
}

fn read(file: File) -> Option<String> {
    let mut line = String::new();
    // A terminal gives one line per read, so nothing is lost with the buffer.
    let n = BufReader::new(file).read_line(&mut line).ok()?;
    (n > 0).then_some(line)
}
