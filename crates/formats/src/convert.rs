//! One stream through one reader into one writer.

use model::{End, Event, Losses, Reader, Sink, Writer};

use crate::framing::{Framer, Framing};

/// A reader joined to a writer: bytes in, bytes out.
#[derive(Debug)]
pub struct Converter {
    framer: Framer,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    n_events: u64,
}

impl Converter {
    pub fn new(framing: Framing, reader: Box<dyn Reader>, writer: Box<dyn Writer>) -> Self {
        Self {
            framer: Framer::new(framing),
            reader,
            writer,
            n_events: 0,
        }
    }

    /// Takes the next bytes and appends everything that follows from them to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let Self {
            framer,
            reader,
            writer,
            n_events,
        } = self;
        let mut sink = Written {
            writer: &mut **writer,
            out,
            n_events,
        };
        framer.push(chunk, &mut |frame| reader.frame(frame, &mut sink));
    }

    /// The input is over: closes what is open and appends the rest to `out`.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        let Self {
            framer,
            reader,
            writer,
            n_events,
        } = self;
        let mut sink = Written {
            writer: &mut **writer,
            out,
            n_events,
        };
        framer.end(&mut |frame| reader.frame(frame, &mut sink));
        reader.end(end, &mut sink);
        writer.end(out);
    }

    pub fn losses(&self) -> &Losses {
        self.writer.losses()
    }

    pub fn n_events(&self) -> u64 {
        self.n_events
    }
}

impl Clone for Converter {
    fn clone(&self) -> Self {
        Self {
            framer: self.framer.clone(),
            reader: self.reader.clone_box(),
            writer: self.writer.clone_box(),
            n_events: self.n_events,
        }
    }
}

struct Written<'a> {
    writer: &'a mut dyn Writer,
    out: &'a mut Vec<u8>,
    n_events: &'a mut u64,
}

impl Sink for Written<'_> {
    fn event(&mut self, event: &Event<'_>) {
        *self.n_events += 1;
        self.writer.event(event, self.out);
    }
}
