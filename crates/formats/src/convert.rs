//! One stream through one reader into one writer.

use model::{Body, End, Event, Losses, Reader, Sink, Writer};

use crate::framing::{Framer, Framing};

/// A reader joined to a writer: bytes in, bytes out.
#[derive(Debug)]
pub struct Converter {
    framer: Framer,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    n_events: u64,
    n_frames: u64,
    n_understood: u64,
}

impl Converter {
    pub fn new(framing: Framing, reader: Box<dyn Reader>, writer: Box<dyn Writer>) -> Self {
        Self {
            framer: Framer::new(framing),
            reader,
            writer,
            n_events: 0,
            n_frames: 0,
            n_understood: 0,
        }
    }

    /// Takes the next bytes and appends everything that follows from them to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let Self {
            framer,
            reader,
            writer,
            n_events,
            n_frames,
            n_understood,
        } = self;
        let mut sink = CountingSink {
            writer: &mut **writer,
            out,
            n_events,
            n_understood,
        };
        framer.push(chunk, &mut |frame| {
            *n_frames += 1;
            reader.frame(frame, &mut sink);
        });
    }

    /// The input is over: closes what is open and appends the rest to `out`.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        let Self {
            framer,
            reader,
            writer,
            n_events,
            n_frames,
            n_understood,
        } = self;
        let mut sink = CountingSink {
            writer: &mut **writer,
            out,
            n_events,
            n_understood,
        };
        framer.end(&mut |frame| {
            *n_frames += 1;
            reader.frame(frame, &mut sink);
        });
        // An end is made up where there is none: it says nothing about the lines.
        let before = *sink.n_understood;
        reader.end(end, &mut sink);
        *sink.n_understood = before;
        writer.end(out);
    }

    pub fn losses(&self) -> &Losses {
        self.writer.losses()
    }

    pub fn n_events(&self) -> u64 {
        self.n_events
    }

    /// Lines, or other frames, that were read.
    pub fn n_frames(&self) -> u64 {
        self.n_frames
    }

    /// True when there was something to read and none of it meant anything to the reader.
    pub fn is_foreign(&self) -> bool {
        self.n_frames > 0 && self.n_understood == 0
    }
}

impl Clone for Converter {
    fn clone(&self) -> Self {
        Self {
            framer: self.framer.clone(),
            reader: self.reader.clone_box(),
            writer: self.writer.clone_box(),
            n_events: self.n_events,
            n_frames: self.n_frames,
            n_understood: self.n_understood,
        }
    }
}

struct CountingSink<'a> {
    writer: &'a mut dyn Writer,
    out: &'a mut Vec<u8>,
    n_events: &'a mut u64,
    n_understood: &'a mut u64,
}

impl Sink for CountingSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        *self.n_events += 1;
        *self.n_understood += u64::from(is_understood(&event.body));
        self.writer.event(event, self.out);
    }
}

/// False for what a reader made nothing of, and for what it kept beside something that it understood.
fn is_understood(body: &Body<'_>) -> bool {
    match body {
        Body::NoticeRaised(notice) => !matches!(&*notice.code, "bad_line" | "unread"),
        Body::FrameUnmapped(_) => false,
        Body::SessionBound(_)
        | Body::RunStarted(_)
        | Body::RunEnded(_)
        | Body::ItemOpened(_)
        | Body::ItemUpdated(_)
        | Body::ItemDelta(_)
        | Body::ItemClosed(_)
        | Body::AskOpened(_)
        | Body::AskSettled(_)
        | Body::UsageReported(_) => true,
    }
}
