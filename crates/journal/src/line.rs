//! The line of an event that is to be stored.

use std::io;

use bytes::Bytes;
use model::{Raw, escape_line_breaks};

/// A line to be stored.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Whole(Bytes),
    /// A line whose longest value is in memory anyway until its ask is answered: it is shared, not copied,
    /// until the line is stored.
    Split {
        head: Bytes,
        value: Raw<'static>,
        tail: Bytes,
    },
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(line) => line.len(),
            Self::Split { head, value, tail } => head.len() + value.get().len() + tail.len(),
        }
    }

    /// The line as it is stored.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(line) => line.clone(),
            Self::Split { head, value, tail } => {
                let mut line = Vec::with_capacity(self.len());
                line.extend_from_slice(head);
                line.extend_from_slice(value.get().as_bytes());
                line.extend_from_slice(tail);
                // The head is escaped already; the value is shared, so only its copy may change.
                escape_line_breaks(&mut line, head.len());
                line.into()
            }
        }
    }
}

impl From<Vec<u8>> for Line {
    fn from(line: Vec<u8>) -> Self {
        Self::Whole(line.into())
    }
}

/// Collects JSON around one value, which is recognized by where it stands in memory.
#[derive(Debug)]
pub(crate) struct Splitter {
    value: Raw<'static>,
    out: Vec<u8>,
    /// Where the value belongs, once it came.
    at: Option<usize>,
}

impl Splitter {
    pub(crate) fn new(value: Raw<'static>) -> Self {
        let (out, at) = (Vec::new(), None);
        Self { value, out, at }
    }

    pub(crate) fn finish(mut self) -> Line {
        // The value came in another way: the line is whole, only without the saving.
        let Some(at) = self.at else {
            escape_line_breaks(&mut self.out, 0);
            return self.out.into();
        };
        let (mut head, mut tail) = (self.out[..at].to_vec(), self.out[at..].to_vec());
        escape_line_breaks(&mut head, 0);
        escape_line_breaks(&mut tail, 0);
        Line::Split {
            head: head.into(),
            value: self.value,
            tail: tail.into(),
        }
    }
}

impl io::Write for Splitter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.at {
            // serde_json hands a raw value on in one piece, from where it stands in memory.
            None if std::ptr::eq(bytes, self.value.get().as_bytes()) => {
                self.at = Some(self.out.len());
            }
            _ => self.out.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
