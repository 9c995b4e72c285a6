//! The loop around the pure converter: reads what is there, writes what follows from it.
//!
//! Everything an input line leads to is written and flushed before the next read, so a consumer
//! never waits for a line that the agent has already printed. Memory does not grow with the input.

use std::io::{self, Read, Write};

use formats::convert::Converter;
use formats::detect::DetectError;
use formats::registry::{self, Format, find_reader};
use formats::{ReaderConfig, WriterConfig};
use model::{End, Losses};
use runner::RecordingError;

/// Bytes asked of the input at once: few system calls, and it stays in the cache while it is parsed.
const READ_SIZE: usize = 64 * 1024;
/// The capacity that the output buffer keeps between two reads; memory for a huge line is released.
const OUT_KEPT: usize = 1024 * 1024;

/// The format of the input is detected from its first frames.
pub const AUTO: &str = "auto";

/// What to convert, and the configuration of its reader and writer.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the format to read, or [`AUTO`].
    pub from: String,
    /// The name of the format to write.
    pub to: String,
    /// How the input is read.
    pub reader: ReaderConfig,
    /// How the output is written.
    pub writer: WriterConfig,
}

/// What a conversion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Canonical events that were read.
    pub n_events: u64,
    /// Lines or server-sent events of the input.
    pub n_frames: u64,
    /// There was something to read, and none of it is of the format it was read as.
    pub is_foreign: bool,
    /// The size of the input.
    pub bytes_read: u64,
    /// The size of the output.
    pub bytes_written: u64,
    /// What the target had no place for.
    pub losses: Losses,
}

/// Why a conversion stopped. What was read before is converted and written all the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The format or profile does not exist, or does not support this direction.
    #[error(transparent)]
    Format(#[from] registry::Error),
    /// The format of the input cannot be detected from its first frames.
    #[error("{}", detect_failed(.0))]
    Detect(DetectError),
    /// The input failed.
    #[error("cannot read the input")]
    Read(#[source] io::Error),
    /// The output failed.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
}

impl From<RecordingError> for Error {
    fn from(err: RecordingError) -> Self {
        match err {
            RecordingError::Read(err) => Self::Read(err),
            RecordingError::Detect(why) => Self::Detect(why),
        }
    }
}

fn detect_failed(why: &DetectError) -> String {
    match why {
        DetectError::Empty => "the input is empty".to_owned(),
        DetectError::Document => "the input is not one JSON value per line".to_owned(),
        DetectError::Unknown => "cannot detect the input format".to_owned(),
        DetectError::Stored(name) => format!("the input is {name}, which linkspan does not read"),
        DetectError::Several(names) => format!("the input looks like {}", names.join(" and like ")),
    }
}

/// Converts `input` to its end.
pub fn convert(
    input: &mut dyn Read,
    output: impl Write,
    options: &Options,
) -> Result<Report, Error> {
    if options.from == AUTO {
        let (format, head) = recognise(input)?;
        let options = Options {
            from: format.name.to_owned(),
            ..options.clone()
        };
        return convert(&mut head.chain(input), output, &options);
    }
    let mut conversion = Conversion::new(output, options)?;
    let read = each_chunk(input, |chunk| conversion.push(chunk));
    // A broken stream still gets its end, unless the output is closed.
    if !matches!(read, Err(Error::Write(_))) {
        conversion.end(&End::default()).map_err(Error::Write)?;
    }
    read.map(|()| conversion.report())
}

/// Reads enough of `input` to detect its format, and returns the bytes that were read.
pub fn recognise(input: &mut dyn Read) -> Result<(&'static Format, io::Cursor<Vec<u8>>), Error> {
    Ok(runner::recognise(input)?)
}

/// Passes the bytes of `input` to `take` as they arrive; `take` may be slow.
pub fn each_chunk(
    input: &mut dyn Read,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Error> {
    let mut buf = vec![0; READ_SIZE];
    loop {
        match input.read(&mut buf) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&buf[..n]).map_err(Error::Write)?,
            // A signal came during the read; no bytes are lost by that.
            Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
            Err(err) => return Err(Error::Read(err)),
        }
    }
}

/// A conversion under way, for callers with their own loop.
#[derive(Debug)]
pub struct Conversion<W> {
    converter: Converter,
    output: W,
    out: Vec<u8>,
    bytes_read: u64,
    bytes_written: u64,
}

impl<W: Write> Conversion<W> {
    /// Nothing is written before the first bytes are pushed.
    pub fn new(output: W, options: &Options) -> Result<Self, registry::Error> {
        let (format, new_reader) = find_reader(&options.from)?;
        let reader = new_reader(&options.reader);
        let writer = registry::writer(&options.to, &options.writer)?;
        Ok(Self {
            converter: Converter::new(format.framing, reader, writer),
            output,
            out: Vec::new(),
            bytes_read: 0,
            bytes_written: 0,
        })
    }

    /// Takes the next bytes and writes everything that follows from them.
    pub fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.bytes_read += chunk.len() as u64;
        self.converter.push(chunk, &mut self.out);
        self.write()
    }

    /// The input is over: writes what a valid stream still needs. Called once, last.
    pub fn end(&mut self, end: &End) -> io::Result<()> {
        self.converter.end(end, &mut self.out);
        self.write()
    }

    /// What was done so far.
    pub fn report(&self) -> Report {
        Report {
            n_events: self.converter.n_events(),
            n_frames: self.converter.n_frames(),
            is_foreign: self.converter.is_foreign(),
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            losses: self.converter.losses().clone(),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.output.write_all(&self.out)?;
        self.output.flush()?;
        self.bytes_written += self.out.len() as u64;
        self.out.clear();
        self.out.shrink_to(OUT_KEPT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: &str = r#"{"v":1,"seq":1,"session":"s1","run":"r1","engine":"x","origin":"agent","frame":1,"type":"run.started","data":{"cause":"prompt"}}"#;

    fn options(from: &str, to: &str) -> Options {
        Options {
            from: from.to_owned(),
            to: to.to_owned(),
            reader: ReaderConfig::default(),
            writer: WriterConfig::default(),
        }
    }

    /// Gives one line, then fails.
    struct BrokenReader<'a>(&'a [u8]);

    impl Read for BrokenReader<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(io::Error::other("gone")),
                n => Ok(n),
            }
        }
    }

    #[test]
    fn a_broken_input_is_an_error_and_the_output_still_ends() {
        let line = format!("{STARTED}\n");
        let mut out = Vec::new();
        let result = convert(
            &mut BrokenReader(line.as_bytes()),
            &mut out,
            &options("linkspan", "linkspan"),
        );
        assert!(matches!(result, Err(Error::Read(_))), "{result:?}");
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.matches(r#""type":"run.ended""#).count(), 1, "{out}");
    }

    #[test]
    fn unknown_formats_are_errors() {
        let result = convert(&mut io::empty(), io::sink(), &options("linkspan", "morse"));
        let Err(Error::Format(err)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(err, registry::Error::UnknownFormat("morse".to_owned()));
    }
}
