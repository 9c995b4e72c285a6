//! The user's terminal, whatever stdin and stdout are: asked line by line, lent to an editor.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::process::Command;
use std::{env, fs, process, thread};

use tokio::sync::oneshot;

/// Editors that are there when none is named.
const EDITORS: [&str; 2] = ["vi", "nano"];

#[derive(Debug)]
pub(super) struct Tty {
    file: File,
    /// A line that somebody is typing; a read of a terminal cannot be taken back.
    typing: Option<oneshot::Receiver<Option<String>>>,
}

impl Tty {
    /// None where there is no terminal.
    pub(super) fn open() -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let file = file.ok()?;
        Some(Self { file, typing: None })
    }

    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    /// The next line; none when the terminal is gone. May be dropped and called again.
    pub(super) async fn line(&mut self) -> Option<String> {
        if self.typing.is_none() {
            let file = self.file.try_clone().ok()?;
            let (tx, rx) = oneshot::channel();
            thread::spawn(move || tx.send(read(file)));
            self.typing = Some(rx);
        }
        let line = match &mut self.typing {
            Some(typing) => typing.await.ok().flatten(),
            None => None,
        };
        self.typing = None;
        line
    }

    /// Lets somebody change `text` in an editor, and waits for it.
    pub(super) fn edit(&self, text: &str) -> io::Result<String> {
        let folder = env::temp_dir().join(format!("linkspan-edit-{}", process::id()));
        let path = folder.join("input.json");
        fs::create_dir_all(&folder)?;
        fs::write(&path, text)?;
        let edited = self
            .run_editor(&path)
            .and_then(|()| fs::read_to_string(&path));
        fs::remove_dir_all(&folder)?;
        edited
    }

    fn run_editor(&self, path: &std::path::Path) -> io::Result<()> {
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|it| env::var(it).ok());
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
    let n = BufReader::new(file).read_line(&mut line).ok()?;
    (n > 0).then_some(line)
}
