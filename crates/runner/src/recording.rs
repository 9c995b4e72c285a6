//! Recordings as they are opened: the bytes, and the format they turn out to have.

use std::fs::File;
use std::io::{self, Cursor, Read};

use formats::detect::{DetectError, Detector};
use formats::registry::Format;

use crate::engines::Recording;

/// Bytes asked of the input at once.
const READ_SIZE: usize = 64 * 1024;

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("cannot read the recording")]
    Read(#[source] io::Error),
    #[error("cannot detect the format of the recording")]
    Detect(DetectError),
}

/// Reads as much of `input` as it takes to detect its format; returns those bytes, too.
pub fn recognise(
    input: &mut dyn Read,
) -> Result<(&'static Format, Cursor<Vec<u8>>), RecordingError> {
    let mut detector = Detector::default();
    let mut head = Vec::new();
    let mut buf = vec![0; READ_SIZE];
    let verdict = loop {
        match input.read(&mut buf) {
            Ok(0) => break detector.end(),
            Ok(n) => {
                // Kept, because the input may be a pipe, which cannot be read again.
                head.extend_from_slice(&buf[..n]);
                if let Some(verdict) = detector.push(&buf[..n]) {
                    break verdict;
                }
            }
            Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
            Err(err) => return Err(RecordingError::Read(err)),
        }
    };
    let format = verdict.map_err(RecordingError::Detect)?;
    Ok((format, Cursor::new(head)))
}

impl Recording {
    /// Its name for users.
    pub fn name(&self) -> String {
        match self {
            Self::Bundled(it) => it.name.to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Opens it, and detects its format.
    pub fn open(&self) -> Result<(Box<dyn Read + Send>, &'static str), RecordingError> {
        match self {
            Self::Bundled(it) => Ok((Box::new(it.bytes), it.format)),
            Self::File(path) => {
                let mut file = File::open(path).map_err(RecordingError::Read)?;
                let (format, head) = recognise(&mut file)?;
                Ok((Box::new(head.chain(file)), format.name))
            }
        }
    }
}
