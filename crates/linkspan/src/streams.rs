//! Where bytes come from and go to: a file, or stdin and stdout, and what the system says of them.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use formats::detect::Detector;
use formats::registry::Format;
use formats::{ReaderConfig, WriterConfig};
use linkspan::Options;
use model::Timestamp;

use crate::exit::{self, Failure, printable};
use crate::suggestions;

/// What is read, with the name it has in messages.
pub(crate) struct InputStream {
    pub(crate) name: String,
    pub(crate) bytes: Box<dyn Read>,
    metadata: Option<Metadata>,
}

impl InputStream {
    /// `-` and nothing are stdin; nothing is an error on a terminal, where the user would have to
    /// type the stream.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            None if io::stdin().is_terminal() => Err(Failure::usage(
                "there is nothing to read: stdin is a terminal",
                "name a file, or pipe a stream into it; `-` reads what you type",
            )),
            None => Ok(Self::stdin()),
            Some(path) if path == Path::new("-") => Ok(Self::stdin()),
            Some(path) => {
                Self::file(path).map_err(|err| Self::failure(&path.to_string_lossy(), &err))
            }
        }
    }

    pub(crate) fn failure(name: &str, err: &io::Error) -> Failure {
        let hint = match err.kind() {
            io::ErrorKind::NotFound => Some("check the path; `-` reads stdin"),
            io::ErrorKind::IsADirectory => Some("name a file; `-` reads stdin"),
            io::ErrorKind::PermissionDenied => Some("ask for the right to read it"),
            _ => None,
        };
        Failure::io(&format!("cannot read `{}`", printable(name)), err, hint)
    }

    /// Tells the format by the first frames; nothing that was read for it is lost.
    pub(crate) fn recognise(&mut self) -> Result<&'static Format, Failure> {
        match linkspan::recognise(&mut self.bytes) {
            Ok((format, head)) => {
                let rest = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
                self.bytes = Box::new(head.chain(rest));
                Ok(format)
            }
            Err(err) => Err(Self::refused(&self.name, err)),
        }
    }

    /// Why it cannot be converted.
    pub(crate) fn refused(name: &str, err: linkspan::Error) -> Failure {
        match err {
            linkspan::Error::Detect(why) => suggestions::undetected_format(name, why),
            linkspan::Error::Read(err) => Self::failure(name, &err),
            linkspan::Error::Write(err) => Failure::write("stdout", &err),
            linkspan::Error::Format(err) => suggestions::source(err),
        }
    }

    /// How to convert it; relative times count from when it was recorded.
    pub(crate) fn options(&self, from: &str, to: &str, writer: WriterConfig) -> Options {
        let began = Some(self.began());
        Options {
            from: from.to_owned(),
            to: to.to_owned(),
            reader: ReaderConfig {
                started_at: began,
                ..ReaderConfig::default()
            },
            writer: WriterConfig { began, ..writer },
        }
    }

    /// Says so on stderr when the input turns out to be of another format than it was named.
    pub(crate) fn watch(&mut self, named: &str) {
        let bytes = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        self.bytes = Box::new(DetectingReader {
            bytes,
            detector: Some(Detector::default()),
            named: named.to_owned(),
        });
    }

    /// The length of a regular file.
    pub(crate) fn length(&self) -> Option<u64> {
        self.regular().map(Metadata::len)
    }

    /// When the recording was made; what comes through a pipe is made now.
    fn began(&self) -> Timestamp {
        // Not `created`, which not every file system has.
        let written = self.regular().and_then(|it| it.modified().ok());
        written.unwrap_or_else(SystemTime::now).into()
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.regular().is_some()
    }

    fn regular(&self) -> Option<&Metadata> {
        self.metadata.as_ref().filter(|it| it.is_file())
    }

    fn file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            name: path.to_string_lossy().into_owned(),
            metadata: file.metadata().ok(),
            bytes: Box::new(file),
        })
    }

    fn stdin() -> Self {
        Self {
            name: "stdin".to_owned(),
            metadata: metadata(&io::stdin()),
            bytes: Box::new(io::stdin().lock()),
        }
    }
}

/// Passes everything on, and looks at the first frames of it.
struct DetectingReader {
    bytes: Box<dyn Read>,
    /// Gone as soon as it knows.
    detector: Option<Detector>,
    named: String,
}

impl Read for DetectingReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(buf)?;
        if let Some(detector) = &mut self.detector
            && let Some(verdict) = detector.push(&buf[..n])
        {
            self.detector = None;
            if let Some(format) = verdict.ok().filter(|it| it.name != self.named) {
                exit::print_line(&suggestions::misnamed(format.name, &self.named));
            }
        }
        Ok(n)
    }
}

/// What is written, with the name it has in messages.
pub(crate) struct OutputStream {
    pub(crate) name: String,
    pub(crate) bytes: Box<dyn Write + Send>,
    pub(crate) is_regular: bool,
    pub(crate) is_terminal: bool,
}

impl OutputStream {
    /// Refuses to write over what is being read: the first line written would destroy the rest.
    pub(crate) fn open(path: Option<&Path>, input: &InputStream) -> Result<Self, Failure> {
        let path = path.filter(|it| *it != Path::new("-"));
        // Before the file is created: that would empty an input of the same name.
        let before = path.map_or_else(|| metadata(&io::stdout()), |it| fs::metadata(it).ok());
        if let (Some(read), Some(written)) = (input.regular(), &before)
            && is_same(read, written)
        {
            let message = format!("the output is the input, `{}`", printable(&input.name));
            return Err(Failure::usage(
                message,
                "write to another file, and rename it after",
            ));
        }
        match path {
            None => Ok(Self {
                name: "stdout".to_owned(),
                // Not locked: a lock is not `Send`, and Ctrl-C ends the output on another thread.
                bytes: Box::new(io::stdout()),
                is_regular: before.is_some_and(|it| it.is_file()),
                is_terminal: io::stdout().is_terminal(),
            }),
            Some(path) => {
                Self::file(path).map_err(|err| Failure::write(&path.to_string_lossy(), &err))
            }
        }
    }

    fn file(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self {
            name: path.to_string_lossy().into_owned(),
            is_regular: file.metadata()?.is_file(),
            is_terminal: file.is_terminal(),
            bytes: Box::new(file),
        })
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    b.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// What an open stream is connected to.
fn metadata(stream: &impl AsFd) -> Option<Metadata> {
    // A `File` closes its descriptor when it is dropped, so it gets a copy.
    let copy = stream.as_fd().try_clone_to_owned().ok()?;
    File::from(copy).metadata().ok()
}
